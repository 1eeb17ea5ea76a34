"""A run whose numbers overflow stops at that step by name, before it trains on what is no number or saves it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from trainers_tiny import (
    dpo_config,
    grpo_config,
    model,
    pairs,
    parameters,
    read,
    rows,
    saved_model,
    sft_config,
    tokenizer,
    vowels,
)
from transformers import TrainerCallback

from mixwright import SteeredDPOTrainer, SteeredGRPOTrainer, SteeredSFTTrainer, SteeringConfig
from mixwright.errors import InputError
from mixwright.records import CellAssessment, Plan, Stage

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets the older name
CELLS = (
    CellAssessment("letters", 1.0, "mastered", 0.9, 0.0, 64, 12),
    CellAssessment("sums", 2.0, "mastered", 0.9, 0.0, 64, 12),
)
SHARES = {"letters": 0.5, "sums": 0.5}
SAVED = {"max_steps": 6, "save_strategy": "steps", "save_steps": 1}


class Break(TrainerCallback):
    """During the third step a weight of the model is no number, or its gradient has one that is none; or all are huge."""

    def __init__(self, part: str, value: float) -> None:
        self.part, self.value = part, value

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == 2 and self.part in ("weight", "all"):
            with torch.no_grad():
                if self.part == "weight":
                    next(kwargs["model"].parameters())[0, 0] = self.value
                for parameter in kwargs["model"].parameters() if self.part == "all" else ():
                    parameter.mul_(self.value)
        if state.global_step == 2 and self.part == "gradient":
            next(kwargs["model"].parameters()).register_hook(lambda gradient: torch.full_like(gradient, self.value))


def trainer_of(objective: str, folder: Path, callbacks: list[Any], **settings: Any) -> Any:
    monitors = ("displacement",) if objective == "dpo" else ()
    stage = Stage(objective, objective, 6, SHARES, controllers=("drift",), monitors=monitors)  # type: ignore[arg-type]
    shared = {
        "processing_class": tokenizer(),
        "callbacks": callbacks,
        "steering": SteeringConfig(Plan("test", (stage,), CELLS)),
    }
    settings = SAVED | settings
    if objective == "grpo":
        return SteeredGRPOTrainer(model(), vowels, grpo_config(folder, **settings), train_dataset=rows(64), **shared)
    if objective == "sft":
        data = rows(64).rename_column("answer", "completion")
        return SteeredSFTTrainer(model(), args=sft_config(folder, **settings), train_dataset=data, **shared)
    made = saved_model(folder / "model")
    return SteeredDPOTrainer(made, args=dpo_config(folder, **settings), train_dataset=pairs(64), **shared)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("part", ["weight", "gradient"])
@pytest.mark.parametrize("objective", ["sft", "dpo", "grpo"])
def test_it_stops_with_the_step_and_the_last_whole_checkpoint(
    objective: str, part: str, value: float, tmp_path: Path
) -> None:
    trainer = trainer_of(objective, tmp_path, [Break(part, value)])
    last = 1 if part == "weight" else 2  # the save of step 2 would have held the weight
    told = rf"finite numbers at step 2, got a {part} .*Resume from \S*checkpoint-{last}, .*lower"
    with pytest.raises(InputError, match=told):
        trainer.train()
    assert trainer.state.global_step == 2
    (line,) = [line for line in read(tmp_path, "decisions.jsonl") if line["what"] == "not finite"]
    assert line["step"] == 2
    assert part != "gradient" or bool(torch.isfinite(parameters(trainer)).all())
    again = trainer_of(objective, tmp_path, [], max_steps=4)
    again.train(resume_from_checkpoint=True)
    assert again.state.global_step == 4
    assert not [line for line in read(tmp_path, "decisions.jsonl") if line["what"] == "not finite"]
    assert bool(torch.isfinite(parameters(again)).all())


@pytest.mark.parametrize("objective", ["sft", "dpo", "grpo"])
def test_finite_weights_that_give_no_numbers_are_not_resumed_from(
    objective: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = trainer_of(objective, tmp_path, [Break("all", 1e15)])
    what = "probability of a token" if objective == "grpo" else "loss"
    good = tmp_path / "checkpoint-1"
    with pytest.raises(InputError, match=rf"numbers at step 2, got a {what} .*Resume from {good}, .*lower"):
        trainer.train()
    assert (tmp_path / "checkpoint-2" / "steering.json").exists()  # whole, finite, and of no use
    again = trainer_of(objective, tmp_path, [], max_steps=4)
    again.train(resume_from_checkpoint=True)
    assert again.state.global_step == 4
    assert "Resuming from checkpoint-1; skipped: checkpoint-2 (its weights may not give finite" in caplog.text
    assert [line["step"] for line in read(tmp_path, "steps.jsonl")].count(2) == 1
    assert not [line for line in read(tmp_path, "decisions.jsonl") if line["what"] == "not finite"]
    later = trainer_of(objective, tmp_path, [], max_steps=5)
    later.train(resume_from_checkpoint=True)
    assert "Resumed from checkpoint-4" in caplog.text  # made since


def test_where_only_the_ruined_checkpoint_is_left_it_is_said(tmp_path: Path) -> None:
    trainer = trainer_of("sft", tmp_path, [Break("all", 1e15)], save_total_limit=1)
    with pytest.raises(InputError, match=r"step 2, got a loss .*There is no earlier checkpoint: start again with"):
        trainer.train()
    with pytest.raises(
        InputError, match=r"a checkpoint that can be resumed, got checkpoint-2 \(its weights .*at step 2, a loss"
    ):
        trainer_of("sft", tmp_path, []).train(resume_from_checkpoint=True)


@pytest.mark.parametrize("objective", ["sft", "dpo"])
def test_a_loss_that_overflows_stops_before_the_weights_move(objective: str, tmp_path: Path) -> None:
    trainer = trainer_of(objective, tmp_path, [], save_strategy="no")
    before, compute = parameters(trainer).clone(), trainer.compute_loss
    trainer.compute_loss = lambda *args, **kwargs: compute(*args, **kwargs) * float("inf")
    with pytest.raises(InputError, match=r"step 0, got a loss .*There is no earlier checkpoint: start again with a lower"):
        trainer.train()
    assert torch.equal(parameters(trainer), before)


@pytest.mark.parametrize("objective", ["sft", "dpo"])
def test_between_saves_a_weight_is_found_by_the_loss_of_its_step(objective: str, tmp_path: Path) -> None:
    """The weights are not read at each step, and the one that is no number is not trained on all the same."""
    trainer = trainer_of(objective, tmp_path, [Break("weight", float("nan"))], save_steps=6)
    with pytest.raises(InputError, match="step 2, got a loss "):
        trainer.train()
    assert not list(tmp_path.glob("checkpoint-*"))


@pytest.mark.parametrize("most", [0.0, 1.0])
def test_gradients_are_read_once_where_the_trainer_took_their_norm(
    most: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With or without clipping; a trainer that takes no norm has them read here."""
    from mixwright.trainers import finite

    passes: list[int] = []
    monkeypatch.setattr(finite, "all_finite", lambda tensors: bool(passes.append(1)) or True)
    for takes_norm, expected in ((True, 0), (False, 3)):
        trainer = trainer_of("sft", tmp_path, [], save_strategy="no", max_steps=3, max_grad_norm=most)
        if not takes_norm:
            monkeypatch.delattr("mixwright.trainers.steered_trainer.SteeredTrainer._get_grad_norm")
        passes.clear()
        trainer.train()
        assert len(passes) == expected + 1  # and the weights once, at the end


def test_a_last_step_that_overflows_is_no_normal_end(tmp_path: Path) -> None:
    trainer = trainer_of("sft", tmp_path, [Break("weight", float("nan"))], max_steps=2, save_strategy="no")
    with pytest.raises(InputError, match="step 2, got a weight"):
        trainer.train()


def test_large_numbers_are_numbers(tmp_path: Path) -> None:
    """A gradient whose square overflows is still one; so is one of float16 whose sum of squares is."""
    from mixwright.trainers.finite import all_finite

    large = torch.full((4,), 1e30)
    half = torch.full((64,), 6e4, dtype=torch.float16)
    assert all_finite([large, None, half, torch.arange(3), torch.zeros(0)])
    for tensor in (large, half):
        for value in (float("nan"), float("inf"), float("-inf")):
            spoilt = tensor.clone()
            spoilt[1] = value
            assert not all_finite([large, half, spoilt])


def test_a_run_without_such_numbers_is_left_alone(tmp_path: Path) -> None:
    trainer = trainer_of("sft", tmp_path, [])
    trainer.train()
    assert trainer.state.global_step == 6
    assert json.loads((tmp_path / "steering" / "proof.json").read_text())["unscored"] == 0
