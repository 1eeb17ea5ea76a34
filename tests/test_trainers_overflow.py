"""A run whose numbers overflow goes on as far as TRL's does; what is no number is told as null and steers nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from trainers_tiny import dpo_config, losses, model, pairs, read, rows, saved_model, sft_config, tokenizer
from transformers import TrainerCallback

from mixwright import SteeredDPOTrainer, SteeredSFTTrainer, Steering
from mixwright.records import CellPlan, Plan, Stage

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets the older name
CELLS = (CellPlan("letters", 1.0, "mastered", 0.9, 0.0, 64, 12), CellPlan("sums", 2.0, "mastered", 0.9, 0.0, 64, 12))
SHARES = {"letters": 0.5, "sums": 0.5}


class Break(TrainerCallback):
    """After the second step a part of the model is no number."""

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == 2:
            with torch.no_grad():
                next(kwargs["model"].parameters()).fill_(torch.nan)


@pytest.mark.parametrize("objective", ["sft", "dpo"])
def test_a_run_that_overflows_goes_on_and_says_null(objective: str, tmp_path: Path) -> None:
    monitors = ("canary", "displacement") if objective == "dpo" else ("canary",)
    stage = Stage(objective, objective, 6, SHARES, controllers=("drift",), monitors=monitors)  # type: ignore[arg-type]
    shared = {
        "processing_class": tokenizer(),
        "callbacks": [Break()],
        "steering": Steering(Plan("test", (stage,), CELLS), canary_every=1),
    }
    settings = {"max_steps": 6, "save_strategy": "steps", "save_steps": 1}
    if objective == "sft":
        data, args = rows(64).rename_column("answer", "completion"), sft_config(tmp_path, **settings)
        trainer: Any = SteeredSFTTrainer(model(), args=args, train_dataset=data, **shared)
    else:
        made = saved_model(tmp_path / "model")
        trainer = SteeredDPOTrainer(made, args=dpo_config(tmp_path, **settings), train_dataset=pairs(64), **shared)
    trainer.train()
    assert trainer.canaries is not None
    assert trainer.state.global_step == 6
    assert len(losses(trainer)) == 6
    lines = read(tmp_path, "steps.jsonl")
    assert [line["loss"] is None for line in lines] == [False, False, True, True, True, True]
    assert [line["examples" if objective == "sft" else "pairs"] for line in lines] == [4, 4, 0, 0, 0, 0]
    assert all(line["entropy"] is None for line in lines[2:])
    said = [line for line in read(tmp_path, "decisions.jsonl") if line["what"] == "nothing scored"]
    assert [(line["step"], line["because"]) for line in said] == [
        (2, "no loss of the 4 rows is a finite number; the run has overflowed")
    ]
    assert trainer.steered.proof()["unscored"] == 16
    used = trainer.steered.state()["progress"]["used"]
    assert [tuple(pair) for pair in used] == [(step, 4) for step in range(6)]
    assert (tmp_path / "checkpoint-6" / "steering.json").exists()
