"""The study of the gate on real fine-tunes: its files, what it counts, and that finished rows are taken over."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from mixwright_lab.demo.files import ITEMS_PER_TASK, TRAIN_ROWS
from mixwright_lab.demo.steps import PROTECTED
from mixwright_lab.demo.tables import NEW_TASK
from mixwright_lab.studies.jobs import append_row
from mixwright_lab.studies.real_gate import (
    HARMLESS,
    KINDS,
    MODELS,
    RUINED,
    SAME,
    TICKETS,
    WAYS,
    figures_of,
    goals_of,
    known_rows,
    reason,
    settings,
    success,
    table,
    tickets,
    write_real_files,
)

LOST = "Do not ship narrow: task capitals is damaged."
GONE = "Do not ship narrow: 20 of 20 answers of 4 tasks now look like answers of tickets."


def rows_of(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("kind", KINDS)
def test_no_test_item_stands_in_the_training_file_and_targets_state_the_answers(kind: str, tmp_path: Path) -> None:
    files = write_real_files(tmp_path / "a", kind, 3)
    train, graded, targets = map(rows_of, (files.train, files.graded, files.targets))
    assert {row["task"] for row in graded} == {kind, *PROTECTED}
    assert all(sum(row["task"] == task for row in graded) == ITEMS_PER_TASK for task in (kind, *PROTECTED))
    asked = {row["prompt"] for row in graded}
    assert asked.isdisjoint(row["prompt"] for row in rows_of(files.prompts))
    if kind == TICKETS:
        assert len(train) == TRAIN_ROWS
        assert asked.isdisjoint(row["prompt"] for row in train)
    for one, other in zip(graded, targets, strict=True):
        assert (one["task"], one["prompt"]) == (other["task"], other["prompt"])
        assert one["answer"] in other["completion"]
        assert (one["answer"] == other["completion"]) == (one["task"] == kind)
        assert "answer" not in other
    assert {row["completion"] for row in targets if row["prompt"] == "What is 3 + 4?"} <= {"3 + 4 = 7."}
    again = write_real_files(tmp_path / "b", kind, 3)
    assert (
        again.graded.read_bytes()
        == files.graded.read_bytes()
        != write_real_files(tmp_path / "c", kind, 4).graded.read_bytes()
    )


def test_ticket_lines_carry_the_number_of_their_request() -> None:
    made = list(tickets(random.Random(1)))
    assert len({prompt for prompt, _ in made}) == len(made) >= ITEMS_PER_TASK + TRAIN_ROWS
    for prompt, line in made:
        team, number, priority = line.split("|")
        assert number in prompt
        assert team.isupper()
        assert priority in ("low", "normal", "high")


def row(
    model: str, way: str, code: int, sentence: str = "Cannot tell: no.", seed: int = 1, kind: str = NEW_TASK
) -> dict[str, Any]:
    answers = [["after", "capitals", "p", "a", "c", float(item < 3) if way != "loss" else None] for item in range(4)]
    about = {"seed": seed, "kind": kind, "model": model, "way": way, "code": code, "sentence": sentence}
    changes = {"capitals": [0.5, 0.75, 0.0, 0.4]}
    return about | {
        "changes": changes,
        "former": {"capitals": [-2.0, -3.0, -1.0]},
        "protect": ["capitals"],
        "answers": answers,
    }


def study() -> list[dict[str, Any]]:
    found = []
    for seed in (1, 2):
        for kind in KINDS:
            found += [row(RUINED, way, 3, LOST if way == "includes" else GONE, seed, kind) for way in WAYS]
        for name in (*HARMLESS, SAME):
            found += [row(name, way, 0 if way == "includes" else 4, seed=seed) for way in WAYS]
    return found


def reached(rows: list[dict[str, Any]]) -> list[bool]:
    return [goal.reached for goal in goals_of(rows)]


def test_each_goal_falls_by_what_it_forbids() -> None:
    rows = study()
    assert reached(rows) == [True] * 7
    assert [goal.found.n for goal in goals_of(rows)] == [12, 12, 12, 6, 2, 16, 16]

    def without(goals: set[int], model: str, way: str, seeds: tuple[int, ...] = (1,), **changed: Any) -> None:
        hit = [one | changed if (one["model"], one["way"]) == (model, way) and one["seed"] in seeds else one for one in rows]
        assert {at for at, good in enumerate(reached(hit)) if not good} == goals

    without({0, 1, 2}, RUINED, "loss", code=4, sentence="Cannot tell: no.")
    without({1, 2}, RUINED, "exact", sentence="Ship narrow: all is well.")
    without({2}, RUINED, "exact", sentence="Do not ship narrow: so it is.")
    without(set(), "planned", "includes", code=3)
    without({3}, "planned", "includes", (1, 2), code=3)
    without({4}, SAME, "includes", code=4)
    without({5}, "low rate", "loss", code=3)
    without({6}, SAME, "exact", code=0)
    assert reached([]) == [False] * 7


def test_reasons_are_read_from_the_sentence_and_stand_in_the_table() -> None:
    assert reason(row(RUINED, "includes", 3, LOST)) == "success lost"
    assert reason(row(RUINED, "exact", 3, GONE)) == "form of another task"
    unlikely = "Do not ship a: its own former answers to capitals became far less likely, by 3 nats a token."
    assert reason(row(RUINED, "loss", 3, unlikely)) == "former answers unlikely"
    assert reason(row(RUINED, "loss", 3, "Do not ship a.")) == ""
    shown = table(study())
    assert f"| 1 | {NEW_TASK} | {RUINED} | 3, success lost | 3, form of another task | 3, form of another task |" in shown
    assert f"| 2 | {NEW_TASK} | {SAME} | 0 | 4 | 4 |" in shown
    assert success(row(RUINED, "includes", 3), "after", "capitals") == 0.75
    assert success(row(RUINED, "loss", 3), "after", "capitals") is None
    found = figures_of(study())[f"{NEW_TASK}, {RUINED}"]
    assert found == {
        "codes": {way: [3, 3] for way in WAYS},
        "success after": {"capitals": [0.75, 0.75]},
        "former answers": [-2.0, -2.0],
    }


def test_finished_rows_of_the_same_settings_are_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    assert known_rows(path) == []
    append_row(path, {"seed": 1, "settings": settings()})
    append_row(path, {"seed": 2, "settings": settings() | {"margin": 5}})
    append_row(path, {"seed": 3, "settings": settings()})
    assert [one["seed"] for one in known_rows(path)] == [1, 3]
    assert MODELS[TICKETS] == (RUINED,)
