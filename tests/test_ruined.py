"""A checkpoint that training ruined is never shipped, whatever its graders say, and a harmless one is not called ruined."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks._fake_checkpoints import FAKES, NEW, TASKS, write_comparison
from mixwright.runs import RunFolder, read_measurements, write_measurements
from mixwright.verdict.basis import gate_answer, recommended
from mixwright.verdict.gate_asked import GateAsked, write_asked
from mixwright.verdict.stage import render

GOOD = ("Ship", "AFTER may be shipped")


def asked(run: RunFolder, *protect: str, margin: float | None = None) -> tuple[str, int]:
    """First sentence of the page, and exit code."""
    write_asked(run, GateAsked(protect, margin=margin))
    found, result = recommended(run)[0], gate_answer(run)
    assert found is not None
    assert result is not None
    return found.sentence, result.code()


@pytest.mark.parametrize("name", FAKES)
def test_ruined_is_never_shipped_and_no_exit_code_contradicts_its_sentence(name: str, tmp_path: Path) -> None:
    passed = 0
    for seed in (1, 2, 3):
        run = write_comparison(tmp_path / str(seed), name, seed)
        for protect, margin in (((), None), (TASKS, None), (TASKS, 0.1), (TASKS[:2], 0.15)):
            sentence, code = asked(run, *protect, margin=margin)
            assert sentence.startswith(GOOD) == (code == 0), (sentence, code)
            assert sentence.startswith("Do not ship") == (code == 3), (sentence, code)
            if protect == TASKS and margin is None:
                passed += code == 0
                assert not (FAKES[name].ruined and code == 0), sentence
    assert passed >= 2 or FAKES[name].ruined


def test_the_reason_is_named_where_a_form_was_lost(tmp_path: Path) -> None:
    for name in ("form only", "overwritten", "overwritten, no grader fits"):
        run = write_comparison(tmp_path / name, name, 4)
        for protect in ((), TASKS):
            sentence, code = asked(run, *protect)
            assert code == 3, name
            assert f"answers of 8 tasks now look like answers of {NEW}" in sentence
    page = render(run).read_text(encoding="utf-8")
    assert page.index("Do not ship") < page.index("now look like answers of") < page.index("protected cell")


def test_a_task_that_nothing_judges_is_no_ship(tmp_path: Path) -> None:
    run = write_comparison(tmp_path / "a", "a little better", 5)
    for when in ("before", "after"):
        rows = read_measurements(run.measurements(when))
        zero = [row for row in rows if row.task == TASKS[2]]
        kept = [row for row in rows if row.task != TASKS[2]]
        write_measurements(run.measurements(when), [*kept, *(replace(row, value=0.0, low=0.0, high=0.0) for row in zero)])
    sentence, code = asked(run)
    assert (sentence.startswith("Ship"), code) == (False, 4)
    assert TASKS[2] in sentence
    sentence, code = asked(run, *TASKS[:2], margin=0.15)
    assert (code, sentence.startswith("AFTER may be shipped")) == (0, True)
    assert f"Not judged, since no answer was right before or after: {TASKS[2]}" in sentence
