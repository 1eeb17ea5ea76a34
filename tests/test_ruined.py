"""A checkpoint that training ruined is never shipped, whatever its graders say, and a harmless one is not called ruined."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from verdicts import ask

from mixwright.answers.table import Answers
from mixwright.run.folder import RunFolder
from mixwright.verdict.words import START
from mixwright_lab.studies.gate import FAKES, NEW, TASKS, write_comparison


@pytest.mark.parametrize("name", FAKES)
def test_ruined_is_never_shipped_and_no_exit_code_contradicts_its_sentence(name: str, tmp_path: Path) -> None:
    passed = 0
    for seed in (1, 2):
        run = write_comparison(tmp_path / str(seed), name, seed)
        for protect, margin in (((), None), (TASKS, None), (TASKS, 0.1), (TASKS[:2], 0.15)):
            verdict = ask(run, *protect, margin=margin)
            assert verdict.headline.startswith(START[verdict.outcome]), verdict.headline
            if protect == TASKS and margin is None:
                passed += verdict.exit_code == 0
                assert not (FAKES[name].ruined and verdict.exit_code == 0), verdict.headline
    assert passed or FAKES[name].ruined


def test_the_reason_is_named_where_a_form_was_lost(tmp_path: Path) -> None:
    for name in ("form only", "overwritten", "overwritten, no grader fits"):
        run = write_comparison(tmp_path / name, name, 4)
        for protect in ((), TASKS):
            verdict = ask(run, *protect)
            assert (verdict.exit_code, verdict.reason) == (3, "one format took over"), name
            assert [(form.owner, len(form.tasks)) for form in verdict.forms] == [(NEW, 8)]


def test_a_task_that_nothing_judges_is_no_ship(tmp_path: Path) -> None:
    run = write_comparison(tmp_path / "a", "a little better", 5)
    for when in ("before", "after"):
        set_to_zero(run.answers(when), [TASKS[2]])
    verdict = ask(run)
    assert (verdict.reason, verdict.exit_code, list(verdict.not_judged)) == ("a task was not judged", 4, [TASKS[2]])
    verdict = ask(run, *TASKS[:2], margin=0.15)
    assert verdict.exit_code == 0
    assert TASKS[2] in verdict.headline


def set_to_zero(path: Path, tasks: Sequence[str]) -> None:
    """Let no answer to these tasks be right."""
    answers = Answers.read(path)
    is_zero = np.isin(answers.column("task").astype(str), tasks)
    zero = {name: np.where(is_zero, 0.0, answers.column(name)) for name in ("right", "swapped", "chance")}
    answers.with_columns(answers.header, **zero).write(path)


def unjudged(path: Path, name: str, seed: int, tasks: Sequence[str]) -> RunFolder:
    """A made-up comparison in which no answer of these tasks was right before or after."""
    run = write_comparison(path, name, seed)
    for when in ("before", "after"):
        set_to_zero(run.answers(when), tasks)
    return run


def test_a_protected_task_that_nothing_judges_is_no_pass(tmp_path: Path) -> None:
    run = unjudged(tmp_path / "a", "a little better", 5, [TASKS[1]])
    verdict = ask(run, *TASKS[:2], margin=0.15)
    assert (verdict.exit_code, verdict.reason) == (4, "a task was not judged")
    assert TASKS[1] in verdict.headline
    assert ask(run, TASKS[0], TASKS[2], margin=0.15).exit_code == 0, "what was not named stops nothing"
