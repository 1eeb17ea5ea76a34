"""Work that grows with tasks, cells and rows no faster than they do: lines that are run are counted, not seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest
from comparisons import folder, right

from mixwright.audit.stage import run_audit
from mixwright.corpus import Corpus
from mixwright.records import Example, Measurement
from mixwright.verbs import measure as measured
from mixwright.verdict.stage import write_verdict

TraceFunction = Callable[[FrameType, str, Any], Any]
STEEPEST = 1.4
"""Lines may grow so many times as fast as the size; work for each pair of tasks would be four times as fast."""


def count_lines(do: Callable[[], object]) -> int:
    """Lines that are run, a loop's once for each turn; those of compiled code are not seen."""
    lines = 0

    def count(frame: FrameType, event: str, argument: Any) -> TraceFunction:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        do()
    finally:
        sys.settrace(before)
    return lines


def growth(do: Callable[[int], object], small: int) -> float:
    """Lines at four times the size, over four times the lines; what is done once is taken out."""
    do(small)  # imports, and what is kept for later
    once, few, many = (count_lines(lambda size=size: do(size)) for size in (small // 2, small, 4 * small))
    per_size = (few - once) / (small - small // 2)
    return (many - few) / (3 * small) / per_size


def test_the_count_tells_work_for_each_pair() -> None:
    assert growth(lambda size: [abs(n) for n in range(size)], 20) == pytest.approx(1.0, abs=0.1)
    assert growth(lambda size: [abs(n) for n in range(size) for _ in range(size)], 20) > 2 * STEEPEST


def test_a_comparison_is_judged_in_time_that_follows_its_cells(tmp_path: Path) -> None:
    def judge(cells: int) -> None:
        sides = {when: {f"task{n}": right(count, 12) for n in range(cells)} for when, count in (("before", 9), ("after", 8))}
        write_verdict(folder(tmp_path / f"run{cells}", sides))

    assert growth(judge, 20) < STEEPEST


def test_an_audit_follows_its_tasks() -> None:
    def audit(tasks: int) -> None:
        rows = [
            Example(
                f"{split}{task}-{n}", f"task{task}", f"{split} question {n * 7919} of {task}?", answer=str(n), split=split
            )
            for task in range(tasks)
            for split, count in (("train", 12), ("eval", 4))
            for n in range(count)
        ]
        run_audit(Corpus.from_examples(rows))

    assert growth(audit, 20) < STEEPEST


def test_near_copies_among_few_words_follow_the_rows() -> None:
    """Most prompts share runs of words there, and each pair of them was looked at."""

    def audit(count: int) -> None:
        rng = Random(0)
        prompts = [
            " ".join(rng.choices(["river", "stone", "market", "ticket", "engine", "garden"], k=12)) for _ in range(count)
        ]
        rows = [
            Example(f"r{n}", "t", prompt, answer=str(n % 9), split="eval" if n % 5 == 0 else "train")
            for n, prompt in enumerate(prompts)
        ]
        run_audit(Corpus.from_examples(rows), ["duplicates", "contamination"])

    assert growth(audit, 200) < STEEPEST


def test_the_table_of_measurements_follows_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "table", lambda header, rows, full: [])  # drawing hides the time of the rest

    def show(cells: int) -> None:
        rows = [
            Measurement("competence", f"task{n // 4}", "greedy", 0.5, 0.4, 0.6, 12, "share", level=float(n % 4))
            for n in range(cells)
        ]
        measured.measured_lines("m", rows)

    assert growth(show, 100) < STEEPEST
