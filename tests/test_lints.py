"""Warnings at the start of a GRPO run: each said where it should be, and not otherwise; once per run, never refusing."""

from __future__ import annotations

import functools
import logging
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from trainers_tiny import UNIFORM, grpo_config, make, model, read, rows, tokenizer, vowels
from trl.trainer.grpo_trainer import GRPOTrainer

from mixwright import SteeredGRPOTrainer, SteeringCallback, SteeringConfig
from mixwright.records import CellPlan, GroupOutcome
from mixwright.steer.pool import make_pool
from mixwright.trainers.checks.setting_warnings import (
    EVIDENCE_BY_LINT,
    Lint,
    Reward,
    Settings,
    lint_formats,
    lint_lengths,
    lint_novelty,
    lint_too_hard,
    read_settings,
    warn_at_first_batch,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*gradient_checkpointing.*:FutureWarning"  # TRL 1.16 still sets transformers' older name
)
CORRECT, VARIED = Reward("correct", 1.0, False), Reward("diversity_bonus", 0.2, False)
CALM = Settings(0.04, "dapo", "sum_then_normalize", "group", (CORRECT,))


def group(forms: tuple[str, ...], tokens: tuple[int, ...] = (), task: str = "t") -> GroupOutcome:
    return GroupOutcome("e", task, None, 0, (0.0,) * len(forms), tokens, forms)


def sourced(lint: Lint | None, name: str) -> str:
    assert lint is not None
    assert lint.name == name
    assert "Source: arXiv " in lint.sentence
    assert lint.sentence.endswith(f"here: {EVIDENCE_BY_LINT[name]}.")
    return lint.sentence


MIXED = [group(("# 9", "9 # 9"), (3, 9))] * 4


def test_several_formats_without_a_kl_penalty() -> None:
    said = sourced(lint_formats(replace(CALM, beta=0.0), MIXED), "formats")
    assert "2 formats ('# 9' 50%, '9 # 9' 50%)" in said
    assert lint_formats(CALM, MIXED) is None  # a KL penalty
    assert lint_formats(replace(CALM, beta=0.0), [group(("# 9",) * 19 + ("9 # 9",))]) is None  # 5 % are no second format
    assert (
        lint_formats(replace(CALM, beta=0.0), [group(("# 9",) * 8), group(("9 # 9",) * 8, task="u")]) is None
    )  # one per task
    assert lint_formats(replace(CALM, beta=0.0), [group(())]) is None  # nobody told
    assert lint_formats(replace(CALM, beta=0.0), MIXED[:3]) is None  # three of each are too few
    assert (
        lint_formats(replace(CALM, beta=0.0), [group((*"aaaabbbb", *"cdefghijkl"))]) is None
    )  # content, no choice of formats


@pytest.mark.parametrize("loss", ["grpo", "sapo"])
def test_formats_of_different_length_under_a_loss_per_sequence(loss: str) -> None:
    said = sourced(lint_lengths(replace(CALM, loss_type=loss), MIXED), "lengths")
    assert "'# 9' 3 tokens, '9 # 9' 9" in said
    assert lint_lengths(replace(CALM, loss_type=loss), [group(("# 9", "9 # 9"), (8, 9))] * 4) is None
    assert lint_lengths(replace(CALM, loss_type=loss), [group(("# 9", "9 # 9"))] * 4) is None


@pytest.mark.parametrize("loss", ["dapo", "dr_grpo", "bnpo", "cispo", "vespo", "luspo"])
def test_no_other_loss_divides_by_a_completions_own_length(loss: str) -> None:
    assert lint_lengths(replace(CALM, loss_type=loss), MIXED) is None


def test_a_reward_for_variety_that_is_scaled_with_the_sum() -> None:
    both = replace(CALM, rewards=(CORRECT, VARIED))
    assert "'divers' in its name" in sourced(lint_novelty(both), "novelty")
    marked = replace(CALM, rewards=(CORRECT, Reward("bonus", 0.2, True)))
    assert "its attribute novelty" in sourced(lint_novelty(marked), "novelty")
    assert lint_novelty(replace(both, aggregation="normalize_then_sum")) is None
    assert lint_novelty(replace(both, scale_rewards="none")) is None
    assert lint_novelty(replace(CALM, rewards=(CORRECT, replace(VARIED, weight=0.0)))) is None
    assert lint_novelty(replace(CALM, rewards=(CORRECT, Reward("format", 0.2, False)))) is None
    assert lint_novelty(replace(CALM, rewards=(VARIED,))) is None  # alone it has nothing to drown


@pytest.mark.parametrize(("hard", "said"), [(11, True), (10, False)])
def test_a_pool_that_is_mostly_too_hard(hard: int, said: bool) -> None:
    levels = [1.0] * (20 - hard) + [2.0] * (hard - 5) + [3.0] * 5
    pool = make_pool([str(n) for n in range(20)], ["t"] * 20, levels, None)
    states = {1.0: "reachable", 2.0: "hopeless", 3.0: "lucky"}
    cells = tuple(CellPlan("t", level, state, 0.1, 0.05, 8, 1) for level, state in states.items())  # type: ignore[arg-type]
    lint = lint_too_hard(replace(UNIFORM, cells=cells), pool)
    assert (lint is not None) == said
    assert lint is None or f"{hard} of 20 rows" in sourced(lint, "too_hard")
    assert lint_too_hard(UNIFORM, pool) is None  # nothing was measured


def test_settings_are_read_as_trl_has_them_and_by_its_defaults_where_it_has_not(tmp_path: Path) -> None:
    def bonus(completions: list[str], **_: Any) -> list[float]:
        return vowels(completions)

    bonus.novelty = True  # type: ignore[attr-defined]
    config = grpo_config(
        tmp_path, scale_rewards=True, beta=0.1, loss_type="sapo", multi_objective_aggregation="normalize_then_sum"
    )
    found = read_settings(config, [vowels, functools.partial(bonus, extra=1), "org/model"], [1, 0.5, 2])
    rewards = (Reward("vowels", 1.0, False), Reward("bonus", 0.5, True), Reward("org/model", 2.0, False))
    assert found == Settings(0.1, "sapo", "normalize_then_sum", "group", rewards)
    assert read_settings(SimpleNamespace(), [], []) == Settings(0.0, "dapo", "sum_then_normalize", "group", ())


def diversity(completions: list[str], **_: Any) -> list[float]:
    """A reward for letters that no other completion begins with."""
    first = [text[:1] for text in completions]
    return [0.2 / first.count(letter) for letter in first]


def lints(folder: Path) -> list[str]:
    return [line["what"] for line in read(folder, "decisions.jsonl") if line["what"].startswith("lint.")]


def test_a_real_run_is_warned_once_and_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cells = (CellPlan("letters", 1.0, "hopeless", 0.0, 0.0, 8, 12), CellPlan("sums", 2.0, "lucky", 0.1, 0.1, 8, 12))
    plan = replace(UNIFORM, cells=cells)
    settings = {"loss_type": "grpo", "save_strategy": "steps", "save_steps": 1, "max_steps": 2}
    with caplog.at_level(logging.WARNING, logger="mixwright"):
        trainer = make(
            SteeredGRPOTrainer, tmp_path, settings, reward_funcs=[vowels, diversity], steering=SteeringConfig(plan)
        )
        trainer.train()
    assert trainer.state.global_step == 2
    assert lints(tmp_path)[:2] == ["lint.novelty", "lint.too_hard"]
    assert sum("looks like a reward for variety" in record.getMessage() for record in caplog.records) == 1
    again = make(
        SteeredGRPOTrainer,
        tmp_path,
        settings | {"max_steps": 3},
        reward_funcs=[vowels, diversity],
        steering=SteeringConfig(plan),
    )
    before = lints(tmp_path)
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert lints(tmp_path) == before


def test_the_first_batch_is_judged_and_no_later_one(tmp_path: Path) -> None:
    trainer = make(SteeredGRPOTrainer, tmp_path, {"max_steps": 1, "beta": 0.0}, steering=SteeringConfig(UNIFORM))
    trainer.train()
    run = trainer.steered
    assert run.batches == 1
    before = lints(tmp_path)
    warn_at_first_batch(run, replace(CALM, beta=0.0, loss_type="grpo"), MIXED, 0)
    assert lints(tmp_path) == [*before, "lint.formats", "lint.lengths"]
    run.batches = 2
    warn_at_first_batch(run, replace(CALM, beta=0.0), MIXED, 1)
    assert lints(tmp_path) == [*before, "lint.formats", "lint.lengths"]


def test_a_trainer_class_of_ones_own_is_warned_too(tmp_path: Path) -> None:

    args = grpo_config(tmp_path, shuffle_dataset=False, max_steps=1, remove_unused_columns=False)
    steering = SteeringCallback(SteeringConfig(UNIFORM), rows(), [vowels, diversity], args)
    functions: Any = steering.reward_funcs
    trainer = GRPOTrainer(
        model(), functions, args, steering.train_dataset, processing_class=tokenizer(), callbacks=[steering]
    )
    trainer.train()
    assert lints(tmp_path)[0] == "lint.novelty"


def test_a_task_named_by_the_data_does_not_colour_the_terminal(caplog: pytest.LogCaptureFixture) -> None:
    noted: list[str] = []
    run: Any = SimpleNamespace(batches=1, files=SimpleNamespace(write=True), note=lambda step, what, why: noted.append(why))
    hostile = [replace(each, task="red\x1b[31m") for each in MIXED]
    with caplog.at_level(logging.WARNING, logger="mixwright"):
        warn_at_first_batch(run, replace(CALM, beta=0.0), hostile, 0)
    assert len(noted) == len(caplog.records) == 1
    assert caplog.records[0].getMessage().isprintable()
    assert "red [31m is answered in 2 formats" in caplog.records[0].getMessage()
