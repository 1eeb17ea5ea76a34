"""A checkpoint that training ruined is never shipped, whatever its graders say, and a harmless one is not called ruined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mixwright.measure.former import former_file
from mixwright.records import FormerAnswers
from mixwright.run.folder import RunFolder, read_measurements, write_json, write_measurements
from mixwright.verdict.rules.basis import gate_answer, recommend_run
from mixwright.verdict.rules.gate_question import GateQuestion, write_question
from mixwright.verdict.stage import render
from mixwright_lab.studies.gate import FAKES, NEW, TASKS, write_comparison

GOOD = ("Ship", "AFTER may be shipped")


def asked(run: RunFolder, *protect: str, margin: float | None = None) -> tuple[str, int]:
    """First sentence of the page, and exit code."""
    write_question(run, GateQuestion(protect, margin=margin))
    found, result = recommend_run(run)[0], gate_answer(run)
    assert found is not None
    assert result is not None
    return found.sentence, result.exit_code()


@pytest.mark.parametrize("name", FAKES)
def test_ruined_is_never_shipped_and_no_exit_code_contradicts_its_sentence(name: str, tmp_path: Path) -> None:
    passed = 0
    for seed in (1, 2):
        run = write_comparison(tmp_path / str(seed), name, seed)
        for protect, margin in (((), None), (TASKS, None), (TASKS, 0.1), (TASKS[:2], 0.15)):
            sentence, code = asked(run, *protect, margin=margin)
            assert sentence.startswith(GOOD) == (code == 0), (sentence, code)
            assert sentence.startswith("Do not ship") == (code == 3), (sentence, code)
            if protect == TASKS and margin is None:
                passed += code == 0
                assert not (FAKES[name].ruined and code == 0), sentence
    assert passed or FAKES[name].ruined


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
    assert TASKS[2] in sentence


def unjudged(path: Path, name: str, seed: int, tasks: Sequence[str]) -> RunFolder:
    """A made-up comparison in which no answer of these tasks was right before or after."""
    run = write_comparison(path, name, seed)
    for when in ("before", "after"):
        rows = read_measurements(run.measurements(when))
        zero = [replace(row, value=0.0, low=0.0, high=0.0) if row.task in tasks else row for row in rows]
        write_measurements(run.measurements(when), zero)
    return run


def test_a_protected_task_that_nothing_judges_is_no_pass(tmp_path: Path) -> None:
    run = unjudged(tmp_path / "a", "a little better", 5, [TASKS[1]])
    sentence, code = asked(run, *TASKS[:2], margin=0.15)
    assert (code, sentence.startswith("Cannot tell")) == (4, True), sentence
    assert f"nothing says what became of {TASKS[1]}, where no answer was right" in sentence
    assert asked(run, TASKS[0], TASKS[2], margin=0.15)[1] == 0, "what was not named stops nothing"


def test_former_answers_speak_for_a_protected_task_that_nothing_judges_and_for_no_other(tmp_path: Path) -> None:
    run = unjudged(tmp_path / "a", "a little better", 5, [TASKS[1]])
    far = [FormerAnswers(task, 30, 300, -0.4, -3.0, -3.5, -2.5) for task in TASKS[:3]]
    write_json(former_file(run), far)
    sentence, code = asked(run, *TASKS[:2], margin=0.15)
    assert code == 3
    assert f"its own former answers to {TASKS[1]} became far less likely, by 3 nats a token" in sentence
    assert TASKS[0] not in sentence, "a task whose answers are graded is judged by its grades"
    near = FormerAnswers(TASKS[1], 30, 300, -0.4, -1.5, -2.1, -0.9)
    write_json(former_file(run), [near, *far[2:]])
    assert asked(run, *TASKS[:2], margin=0.15)[1] == 4, "less than a nat a token is not excluded"
