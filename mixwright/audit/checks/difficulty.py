"""Check of levels of difficulty per task, and of cells where a rule without the skill does well.

Source: own; success must be read beside its chance level (in Reasoning Gym, gcd's answer is often 1).
Unit: rows per level; chance level per cell (task and level), 0..1: the best rule without the skill, chosen on other rows.
Cost: one pass, and the grader a few times on at most 500 rows of each cell.
Blind spot: whether a higher level really is harder (measure says), and guesses that read the prompt. Levels that only
    held-out rows have: `coverage`.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from typing import Any

from mixwright.audit.rows import EXCERPT_CHARACTERS, MAX_NAMES_SHOWN
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.records import Observation, cell_key

MAX_ANSWERS_COUNTED = 256
"""Different answers counted per cell; answers that first come later are not considered for the majority."""
LUCKY_CHANCE, MIN_ROWS = 0.25, 20
"""Chance level from which on a cell is told, and rows below which a cell is too small to judge."""

Levels = dict[str, Counter[float | None]]


class Difficulty(Check):
    """Looks at the train split's levels, and at the chance level of its cells."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Levels per task, rows without one, and lucky cells with their majority answer."""
        train: Levels = defaultdict(Counter)
        answers: dict[str, Counter[str]] = defaultdict(Counter)
        reader_of_task = functools.cache(lambda task: corpus.grader(task).reading)
        for batch in corpus.batches():
            columns = (batch.column(name).to_pylist() for name in ("task", "split", "level", "answer"))
            for task, split, level, answer in zip(*columns, strict=True):
                if split == "eval":
                    continue
                train[task][level] += 1
                cell_answers = answers[cell_key(task, level)]
                answer = None if answer is None else reader_of_task(task)(answer)
                if answer is not None and (answer in cell_answers or len(cell_answers) < MAX_ANSWERS_COUNTED):
                    cell_answers[answer] += 1
        observations = [_observe_levels(task, levels) for task, levels in sorted(train.items()) if set(levels) != {None}]
        observations += _observe_missing_levels(train)
        return [*observations, *_observe_lucky_cells(corpus, answers)]


def _observe_lucky_cells(corpus: Corpus, answers: dict[str, Counter[str]]) -> list[Observation]:
    observations = []
    for cell in corpus.cells() if answers else ():
        if cell.count < MIN_ROWS or cell.chance < LUCKY_CHANCE or cell.key not in answers:
            continue
        error = f"± {100 * cell.chance_error:.0f} points"
        text = (
            f"{cell.key}: a rule without the skill gets {cell.chance:.1%} ({error}) right "
            f"({cell.rule[:EXCERPT_CHARACTERS]})."
        )
        evidence: tuple[dict[str, Any], ...] = ()
        if answers[cell.key]:
            answer, answer_rows = answers[cell.key].most_common(1)[0]
            answer = answer[:EXCERPT_CHARACTERS]
            text += f" The majority answer is {answer!r}: {answer_rows} of {cell.count} rows."
            evidence = ({"level": cell.level, "answer": answer, "rows": answer_rows, "chance": cell.chance},)
        remedy = "Compare success with this chance level (as `measure` does), or vary the answers."
        null = f"were all answers different: {1 / cell.count:.2%}"
        count = round(cell.chance * cell.count)
        observations.append(Observation("difficulty", cell.task, "info", count, cell.count, text, remedy, null, evidence))
    return observations


def _observe_levels(task: str, levels: Counter[float | None]) -> Observation:
    """Report the levels of a task and their shares."""
    total = levels.total()
    rows_by_level = sorted((level, n) for level, n in levels.items() if level is not None)
    shares = ", ".join(f"{level:g} ({n / total:.1%})" for level, n in rows_by_level[:MAX_NAMES_SHOWN])
    others_text = f" and {len(rows_by_level) - MAX_NAMES_SHOWN} more" if len(rows_by_level) > MAX_NAMES_SHOWN else ""
    text = f"{len(rows_by_level)} {'level' if len(rows_by_level) == 1 else 'levels'}: {shares}{others_text}."
    null = f"uniform: {1 / len(rows_by_level):.1%} for each level"
    evidence = tuple({"level": level, "rows": n} for level, n in rows_by_level[:50])
    return Observation("difficulty", task, "info", total - levels[None], total, text, "", null, evidence)


def _observe_missing_levels(train: Levels) -> list[Observation]:
    """Report tasks without levels, and each task with levels in some rows only."""
    levelless = sorted(task for task, levels in train.items() if set(levels) == {None})
    observations = []
    if levelless:
        names = ", ".join(levelless[:MAX_NAMES_SHOWN])
        text = f"{len(levelless)} of {len(train)} tasks have no levels ({names})."
        observations.append(Observation("difficulty", None, "info", len(levelless), len(train), text, ""))
    for task, levels in sorted(train.items()):
        if None in levels and len(levels) > 1:
            text = f"{levels[None]} of {levels.total()} training rows have no level, unlike the other rows of the task."
            remedy = "Fill in the level column, or leave it out for the whole task."
            observations.append(Observation("difficulty", task, "warning", levels[None], levels.total(), text, remedy))
    return observations
