"""SteeringCallback with TRL's own GRPOTrainer, unchanged, and mistakes in wiring it."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from trainers_tiny import grpo_config, model, rows, tokenizer, vowels
from trl import GRPOTrainer

from mixwright import SteeringCallback, SteeringConfig
from mixwright.errors import InputError
from mixwright.records import Action, Plan, Stage

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*gradient_checkpointing.*:FutureWarning"  # TRL 1.16 still sets transformers' older name
)
PLAN = Plan("test", (Stage("grpo", "grpo", 10, {"letters": 0.75, "sums": 0.25}),))


def make(folder: Path, **settings: Any) -> tuple[SteeringCallback, GRPOTrainer]:
    args = grpo_config(folder, shuffle_dataset=False, **settings)
    steering = SteeringCallback(SteeringConfig(PLAN), rows(), vowels, args)
    trainer = GRPOTrainer(
        model(), steering.reward_funcs, args, steering.train_dataset, processing_class=tokenizer(), callbacks=[steering]
    )
    return steering, trainer


@pytest.mark.parametrize(
    "settings", [{"max_steps": 8}, {"max_steps": 8, "steps_per_generation": 2, "gradient_accumulation_steps": 2}]
)
def test_a_plain_trainer_follows_the_plan(tmp_path: Path, settings: dict[str, Any]) -> None:
    _, trainer = make(tmp_path, **settings)
    trainer.train()
    steps = [json.loads(line) for line in (tmp_path / "steering" / "steps.jsonl").read_text().splitlines()]
    drawn = sum(line["scored"].get("letters", 0) for line in steps)
    groups = sum(line["groups"] for line in steps)
    assert abs(drawn - 0.75 * groups) <= 1
    assert steps[-1]["rollouts"] == 4 * groups
    logged = set().union(*trainer.state.log_history)
    assert {"steering/zero_signal_share", "rewards/vowels/mean"} <= logged
    proof = json.loads((tmp_path / "steering" / "proof.json").read_text())
    assert proof["draws"] >= groups


def test_a_refused_group_does_not_teach(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    steering, trainer = make(tmp_path, max_steps=2)
    observe, seen = steering.run.engine.observe, []

    def refuse_all(groups: Any, signals: Any) -> list[Action]:
        observe(groups, signals)
        seen.extend(groups)
        return [Action("refuse", group.example, None, "test") for group in groups]

    steering.run.engine.observe = refuse_all
    before = torch.cat([p.detach().reshape(-1) for p in trainer.model.parameters()])
    with caplog.at_level(logging.ERROR):  # TRL warns of rows without a reward
        trainer.train()
    after = torch.cat([p.detach().reshape(-1) for p in trainer.model.parameters()])
    assert torch.equal(before, after)
    assert trainer.state.log_history[0]["reward"] is None
    assert all(len(group.answers) == len(group.lengths) == len(group.rewards) for group in seen)
    assert any(any(group.answers) for group in seen)


def test_a_resumed_run_draws_as_the_uninterrupted_one(tmp_path: Path) -> None:
    settings = {"max_steps": 6, "save_strategy": "steps", "save_steps": 1}
    whole, trainer = make(tmp_path / "whole", **settings)
    trainer.train()
    shutil.copytree(tmp_path / "whole", tmp_path / "broken")
    resumed, trainer = make(tmp_path / "broken", **settings)
    trainer.train(resume_from_checkpoint=str(tmp_path / "broken" / "checkpoint-3"))
    assert resumed.run.draws.rows == whole.run.draws.rows
    assert resumed.run.state() == whole.run.state()


def test_settings_it_cannot_steer_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="shuffle_dataset"):
        SteeringCallback(True, rows(), vowels, grpo_config(tmp_path))
    with pytest.raises(InputError, match="max_steps"):
        SteeringCallback(True, rows(), vowels, grpo_config(tmp_path, shuffle_dataset=False, max_steps=-1))
    split = grpo_config(tmp_path, shuffle_dataset=False)
    split.per_device_train_batch_size = 6  # what one of two processes would see of groups of 4
    with pytest.raises(InputError, match="parts of groups"):
        SteeringCallback(True, rows(), vowels, split)


def test_async_rewards_are_refused(tmp_path: Path) -> None:
    async def later(**kwargs: Any) -> list[float]:
        return []

    with pytest.raises(InputError, match="synchronous"):
        SteeringCallback(True, rows(), later, grpo_config(tmp_path, shuffle_dataset=False))


def test_columns_must_reach_the_rewards(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="remove_unused_columns"):
        SteeringCallback(True, rows(), vowels, grpo_config(tmp_path, shuffle_dataset=False, remove_unused_columns=True))


@pytest.mark.parametrize("forgotten", ["reward_funcs", "train_dataset"])
def test_a_trainer_wired_past_steering_is_stopped(forgotten: str, tmp_path: Path) -> None:
    args = grpo_config(tmp_path, shuffle_dataset=False)
    steering = SteeringCallback(SteeringConfig(PLAN), rows(), vowels, args)
    given = {"reward_funcs": steering.reward_funcs, "train_dataset": steering.train_dataset}
    given |= {"reward_funcs": vowels, "train_dataset": rows()} if forgotten == "reward_funcs" else {"train_dataset": rows()}
    trainer = GRPOTrainer(model(), args=args, processing_class=tokenizer(), callbacks=[steering], **given)
    with pytest.raises(InputError, match=forgotten):
        trainer.train()


def test_the_learning_rate_is_not_said_to_move_under_deepspeed(tmp_path: Path) -> None:
    args = grpo_config(tmp_path, shuffle_dataset=False)
    args.deepspeed = {"zero_optimization": {"stage": 2}}
    assert "DeepSpeed" in SteeringCallback(True, rows(), vowels, args).run.lr_reason
