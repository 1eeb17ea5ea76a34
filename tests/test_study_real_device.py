"""Jobs that studies hand to an accelerator: in their order, none twice, and rows of one device where one made all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mixwright_lab.studies import (
    public_sets,
    real_all_weights,
    real_device,
    real_grpo,
    real_mine,
    real_sft,
    real_skill_sft,
    sft_study,
)
from mixwright_lab.studies.jobs import rows_by_seed
from mixwright_lab.studies.real_models import MIDDLE_NUMBER, PLAN, settings


def _row(seed: int, arm: str, device: str | None = None) -> dict[str, Any]:
    return {"seed": seed, "arm": arm, "settings": settings()} | ({"device": device} if device else {})


def test_rows_of_a_seed_come_from_the_device_that_made_most() -> None:
    """A row without a device is a CPU's; gaps are filled from the other device."""
    rows = [_row(1, "a"), _row(1, "b"), _row(1, "c", "GPU"), _row(1, "a", "GPU"), _row(1, "d", "GPU"), _row(2, "a")]
    found = rows_by_seed(rows)
    assert {arm: row.get("device", "cpu") for arm, row in found[1].items()} == {
        "a": "GPU", "b": "cpu", "c": "GPU", "d": "GPU",
    }  # fmt: skip
    assert set(found[2]) == {"a"}


def test_what_has_a_row_is_not_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """On whichever device; the waves of the study together are all that is left, and none holds another's arm."""
    first, last = real_sft.SEEDS[0], real_sft.SEEDS[-1]
    rows = [_row(first, arm) for arm in real_sft.FIRST_ARMS] + [_row(last, PLAN, "GPU")]
    monkeypatch.setattr(sft_study, "read_rows", lambda path: rows)
    waves = [real_device.WAVES[name](False) for name in ("first", "harmless", "others")]
    jobs = [[(task.arguments[0].seed, arm) for task in wave for arm in task.arguments[0].arms] for wave in waves]
    assert first not in {seed for seed, _ in jobs[0]}
    wanted = {(seed, arm) for seed in real_sft.SEEDS for arms in real_sft.STUDY.jobs_of(seed).values() for arm in arms}
    assert {job for wave in jobs for job in wave} == wanted - {(row["seed"], row["arm"]) for row in rows}
    assert sum(map(len, jobs)) == len(wanted) - len(rows)
    names = [task.name for wave in waves for task in wave]
    assert len(set(names)) == len(names)


def test_other_arms_wait_for_the_model_that_they_begin_from() -> None:
    """Every name is there once, and what a task waits for is a task."""
    tasks = real_device.all_tasks(("grpo", "mine"), quick=True)
    names = [task.name for task in tasks]
    assert len(set(names)) == len(names)
    assert {task.after for task in tasks} - {""} <= set(names)
    assert len(tasks) == len(real_grpo.ARMS) + len(real_mine.ARMS) + 1


def test_rows_and_items_of_grpo_share_no_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tasks are there, and the rare one is rare."""
    pairs = [{"input": f"verb{n}", "output": f"verbed{n}"} for n in range(200)]
    (tmp_path / public_sets.QUESTIONS["past_tenses"][0]).write_text(json.dumps(pairs))
    monkeypatch.setenv("MIXWRIGHT_PUBLIC", str(tmp_path))
    train, test = real_grpo.make_rows(7)
    assert not {row["prompt"] for row in train} & {row["prompt"] for row in test}
    assert {row["task"] for row in train} == {row["task"] for row in test} == set(real_grpo.TASKS)
    assert sum(row["task"] == real_grpo.RARE for row in train) == real_grpo.RARE_ROWS
    assert sum(row["task"] == "past_tenses" for row in train) == 200 - real_grpo.ITEMS


def test_a_seed_that_lacks_an_arm_begins_with_its_model_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One seed lacks one arm: its starting model is made, and nothing of the seeds that are whole."""
    seeds, arms = real_grpo.SEEDS, real_grpo.ARMS
    rows = [_row(seed, arm) for seed in seeds for arm in arms if (seed, arm) != (seeds[-1], real_grpo.FILTER)]
    monkeypatch.setattr(real_grpo, "kept_rows", lambda: rows)
    assert [task.arguments[:2] for task in real_device.grpo_tasks(quick=False)] == [
        (real_grpo.FROZEN, seeds[-1]),
        (real_grpo.FILTER, seeds[-1]),
    ]


def test_models_of_the_skill_for_the_gate_are_of_other_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of the gate's seeds stands in no table of the skill, and models of all weights are made once."""
    rows = [_row(seed, "narrow") | {"settings": settings(MIDDLE_NUMBER)} for seed in (421, 613)]
    monkeypatch.setattr(sft_study, "read_rows", lambda path: rows)
    assert [row["seed"] for row in real_skill_sft.STUDY.kept_rows()] == [421]
    jobs = [task.arguments[0] for task in real_device.WAVES["gate"](False)]
    assert {job.seed for job in jobs} == set(real_skill_sft.STUDY.gate_seeds)
    assert {job.seed: job.arms for job in jobs if job.name == "narrow"}[613][0] != "narrow"
    monkeypatch.setattr(sft_study, "read_rows", lambda path: [])
    assert len(real_device.WAVES["weights"](False)) == len(real_all_weights.STUDY.seeds) * len(real_all_weights.ARMS)
