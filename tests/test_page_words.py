"""Next command, which must fit the run at hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from _example_run import item_rows
from answer_rows import write_measured
from verdicts import cell, judge_run

from mixwright.estimates.looks import Look
from mixwright.records import Effect, Interval, Observation, RunManifest
from mixwright.run.folder import RunFolder, read_json, write_json
from mixwright.verdict.page.text import format_p
from mixwright.verdict.rules.evidence import LARGEST_CELL_ROWS_SETTING, PACE_SETTING
from mixwright.verdict.rules.gate_question import LOOK_SETTING
from mixwright.verdict.rules.next_steps import _for_later_model, list_steps_after_trial, with_option, without_option
from mixwright.verdict.rules.trial import TrialBasis


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("mixwright verdict a b --items 60 --samples 4", "mixwright verdict a b --samples 4 --items 266"),
        ("mixwright verdict a b --items=60", "mixwright verdict a b --items 266"),
        ("mixwright verdict 'a b' c --items 1 --items 2", "mixwright verdict 'a b' c --items 266"),
        ("mixwright verdict a b", "mixwright verdict a b --items 266"),
    ],
)
def test_an_option_stands_once_in_a_command(command: str, expected: str) -> None:
    assert with_option(command, "--items", "266") == expected


ASKED = "mixwright verdict BEFORE AFTER --eval eval.jsonl --items 40"


def compared(folder: Path, *, items: int, rows: int, cut: int = 0, command: str = ASKED) -> RunFolder:
    """Two checkpoints on 40 items of one task, of which one more was right after; 100 completions, some of them cut."""
    run = RunFolder(folder)
    for name, right in (("before", 10), ("after", 11)):
        values = [1.0] * right + [0.0] * (40 - right)
        columns: dict[str, Sequence[float]] = {
            "greedy": values,
            "pass@1": values,
            "greedy.swapped": [0.0] * 40,
            "pass@1.swapped": [0.0] * 40,
        }
        write_measured(run.measurements(name), item_rows(("t", None), columns | {"chance": [0.0] * 40}))
    settings = {"items": items, LARGEST_CELL_ROWS_SETTING: rows, "max_new_tokens": 32}
    write_json(run.manifest, RunManifest({}, {}, {}, settings, "base", command))
    if cut:
        write_json(run.notes, [Observation("cut", None, "warning", cut, 100, "cut", "raise it")])
    return run


def test_more_items_are_asked_for_where_the_file_has_more(tmp_path: Path) -> None:
    run = compared(tmp_path, items=40, rows=101)
    manifest = read_json(run.manifest, RunManifest)
    write_json(run.manifest, replace(manifest, settings=dict(manifest.settings) | {PACE_SETTING: 1.5}))
    verdict = judge_run(run)
    (step,) = verdict.next
    needed = int(step.command.rpartition(" ")[2])
    assert (verdict.reason, needed > 40) == ("too few items", True)
    assert step.command == f"mixwright verdict BEFORE AFTER --eval eval.jsonl --items {needed}"
    assert f"{math.ceil(needed * 1.5 / 60)} minutes" in step.text  # one cell


def test_after_looks_more_items_are_asked_for_in_all(tmp_path: Path) -> None:
    run = compared(tmp_path, items=40, rows=101, command="mixwright verdict BEFORE AFTER --eval eval.jsonl")
    manifest = read_json(run.manifest, RunManifest)
    write_json(
        run.manifest, replace(manifest, settings=dict(manifest.settings) | {LOOK_SETTING: asdict(Look(1, 40, 40, 1, 1))})
    )
    most = int(judge_run(run).next[0].command.partition(" --max-items ")[2])
    assert most > 80, "twice as many as were planned, or more"


@pytest.mark.parametrize(
    ("command", "later"),
    [
        ("mixwright verdict a b --folder out", "mixwright verdict a LATER"),
        ("mixwright verdict --no-suite a b", "mixwright verdict --no-suite a LATER"),
        ("mixwright verdict --eval f a b/", "mixwright verdict --eval f a LATER"),
        ("mixwright run run.yaml", "mixwright run run.yaml"),
    ],
)
def test_the_later_model_is_found_wherever_it_stands(command: str, later: str) -> None:
    assert _for_later_model(command, RunManifest({}, {}, {}, {"checkpoint after": "b"}, "a", command)) == later


@pytest.mark.parametrize(
    ("command", "more"),
    [
        (ASKED, "mixwright verdict BEFORE AFTER --eval FILE_WITH_MORE_ROWS --items {}"),
    ],
)
def test_where_all_items_were_measured_rows_must_be_added(tmp_path: Path, command: str, more: str) -> None:
    (step,) = judge_run(compared(tmp_path, items=40, rows=40, command=command)).next
    needed = int(step.command.partition("--items ")[2].partition(" ")[0])
    assert step.command == more.format(needed)
    assert f"{needed - 40:,}" in step.text


def test_answers_that_were_cut_come_first(tmp_path: Path) -> None:
    assert len(judge_run(compared(tmp_path / "few", items=40, rows=101, cut=4)).next) == 1
    first, second = judge_run(compared(tmp_path / "many", items=40, rows=101, cut=5)).next
    assert first.command == f"{ASKED} --max-new-tokens 64"
    assert " --max-new-tokens 64" in second.command


def test_a_trial_on_more_items_is_another_run(tmp_path: Path) -> None:
    found = (Effect("steered", "frozen", "success", Interval(0.0, -0.1, 0.1, 8), "cannot tell", detectable=0.1),)
    seen = TrialBasis(8, True, ("steered",), found, lever="steered")
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    manifest = RunManifest({}, {}, {}, {}, "base", "mixwright run run.yaml --folder runs/run")
    (step,) = list_steps_after_trial(run, manifest, "cannot tell", seen)
    assert "more held-out items (measure.items" in step.text
    assert step.command == f"mixwright run run.yaml --folder {run.path}-2"


def trained(low: float, high: float, **fields) -> TrialBasis:
    """Five seeds of one arm against not training."""
    found = (
        Effect("uniform", "frozen", "success", Interval((low + high) / 2, low, high, 5), "cannot tell", detectable=0.05),
    )
    return replace(TrialBasis(5, True, ("uniform",), found), **fields)


LOST = {"uniform": [cell("t", None)]}
LOSS = {"decoding": "loss"}
SLOWER, REACH = "Lower train.learning_rate to a fifth", "out of reach"
REMEDIES = [
    (trained(-0.043, 0.030), "raise train.steps", False),
    (trained(-0.043, 0.030, decoding="preference"), "raise train.steps", False),
    (trained(-0.06, 0.030), SLOWER, True),
    (trained(-0.06, 0.030, **LOSS), SLOWER, False),
    (trained(-0.043, 0.030, changes=LOST), SLOWER, True),
]


@pytest.mark.parametrize(("seen", "remedy", "reach"), REMEDIES)
def test_a_fifth_of_the_learning_rate_is_no_remedy_for_nothing(
    tmp_path: Path, seen: TrialBasis, remedy: str, reach: bool
) -> None:
    (step,) = list_steps_after_trial(RunFolder(tmp_path / "run"), None, "no gain", seen)
    assert remedy in step.text
    assert (REACH in step.text) == reach
    assert step.command == f"mixwright run run.yaml --folder {tmp_path}/run-2"


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.0, "< 0.001"), (0.00099, "< 0.001"), (0.001, "0.001"), (0.0132, "0.013")],
)
def test_no_p_value_is_0(p: float, text: str) -> None:
    assert format_p(p) == text


def test_an_option_is_taken_out_with_its_value() -> None:
    command = "mixwright verdict a b --folder 'old place' --gate"
    assert without_option(command, "--folder") == "mixwright verdict a b --gate"
    assert without_option("mixwright verdict a b --folder=m", "--folder") == "mixwright verdict a b"
    assert without_option("mixwright verdict a b --gate", "--folder") == "mixwright verdict a b --gate"
