"""A resumed run draws and decides as the uninterrupted one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from trainers_tiny import grpo_config, model, parameters, rows, tokenizer, vowels

from mixwright import SteeredGRPOTrainer, SteeringConfig
from mixwright.errors import InputError
from mixwright.records import CellAssessment, Plan, Stage

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*gradient_checkpointing.*:FutureWarning"  # TRL 1.16 still sets transformers' older name
)

CELLS = (
    CellAssessment("letters", 1.0, "hopeless", 0.3, 0.0, 64, 12),
    CellAssessment("sums", 2.0, "mastered", 0.9, 0.0, 64, 12),
)
PLAN = Plan(
    "test",
    (
        Stage(
            "grpo",
            "grpo",
            10,
            {"letters": 0.75, "sums": 0.25},
            selector="difficulty",
            gates=("too_hard",),
            controllers=("drift",),
            options={"gates.too_hard": {"floor": 0.7}},
        ),
    ),
    CELLS,
)


def run(folder: Path, resume: str | None = None, **settings: Any) -> Any:
    defaults = {"save_strategy": "steps", "save_steps": 1, "max_steps": 14}
    config = grpo_config(folder, **(defaults | settings))
    trainer = SteeredGRPOTrainer(
        model(),
        vowels,
        config,
        train_dataset=rows(),
        processing_class=tokenizer(),
        steering=SteeringConfig(PLAN),
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer


@pytest.mark.parametrize(
    ("settings", "step"),
    [
        ({}, 3),  # inside the first epoch (12 steps)
        pytest.param({}, 12, marks=pytest.mark.slow),  # at its end
        ({}, 13),  # inside the second
        ({"steps_per_generation": 2, "num_iterations": 2, "gradient_accumulation_steps": 2}, 4),
        pytest.param({"steps_per_generation": 1, "gradient_accumulation_steps": 2}, 5, marks=pytest.mark.slow),
    ],
)
def test_a_resumed_run_equals_the_uninterrupted_one(tmp_path: Path, settings: dict[str, Any], step: int) -> None:
    whole = run(tmp_path / "whole", **settings)
    shutil.copytree(tmp_path / "whole", tmp_path / "broken")
    resumed = run(tmp_path / "broken", str(tmp_path / "broken" / f"checkpoint-{step}"), **settings)
    assert resumed.steered.draws.rows == whole.steered.draws.rows
    assert resumed.steered.state() == whole.steered.state()
    for name in ("steps.jsonl", "decisions.jsonl", "draws.parquet"):
        one, two = (tmp_path / side / "steering" / name for side in ("whole", "broken"))
        assert one.read_bytes() == two.read_bytes(), name
    assert {"refuse.letters@1", "skip_step", "lr_factor"} & {
        json.loads(line)["what"] for line in (tmp_path / "whole" / "steering" / "decisions.jsonl").read_text().splitlines()
    }
    proofs = [json.loads((tmp_path / side / "steering" / "proof.json").read_text()) for side in ("whole", "broken")]
    assert proofs[0] == proofs[1]


def default(folder: Path, steps: int, scheduler: str) -> Any:
    config = grpo_config(folder, save_strategy="steps", save_steps=1, max_steps=steps, lr_scheduler_type=scheduler)
    given = {"train_dataset": rows(), "processing_class": tokenizer(), "steering": True}
    return SteeredGRPOTrainer(model(), vowels, config, **given)


def test_a_default_run_under_a_constant_rate_may_be_made_longer(tmp_path: Path) -> None:
    whole = default(tmp_path / "whole", 5, "constant")
    whole.train()
    default(tmp_path / "longer", 2, "constant").train()
    longer = default(tmp_path / "longer", 5, "constant")
    longer.train(resume_from_checkpoint=True)
    for name in ("steps.jsonl", "draws.parquet"):
        one, two = (tmp_path / side / "steering" / name for side in ("whole", "longer"))
        assert one.read_bytes() == two.read_bytes(), name
    assert torch.equal(parameters(whole), parameters(longer))


def test_another_number_of_steps_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    default(tmp_path, 2, "linear").train()
    longer = default(tmp_path, 3, "linear")
    longer.train(resume_from_checkpoint=True)
    assert longer.state.global_step == 3
    assert "max_steps was 2 and is now 3" in caplog.text


def test_a_checkpoint_of_other_data_is_refused(tmp_path: Path) -> None:
    """As many rows of the same tasks and ids, but one prompt is another."""
    run(tmp_path, max_steps=2)
    changed = rows()
    changed = changed.map(lambda row, place: {"prompt": "say z=" if place == 2 else row["prompt"]}, with_indices=True)
    config = grpo_config(tmp_path, max_steps=3)
    other = SteeredGRPOTrainer(
        model(),
        vowels,
        config,
        train_dataset=changed,
        processing_class=tokenizer(),
        steering=SteeringConfig(PLAN),
    )
    with pytest.raises(
        InputError, match=r": content_digest \w+, got content_digest \w+\. Resume with the same seed, data and plan"
    ):
        other.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))


def test_a_checkpoint_without_steering_is_refused(tmp_path: Path) -> None:
    run(tmp_path, max_steps=2)
    (tmp_path / "checkpoint-2" / "steering.json").unlink()
    with pytest.raises(InputError, match=r"steering\.json is missing"):
        run(tmp_path, str(tmp_path / "checkpoint-2"))
    (tmp_path / "checkpoint-2" / "steering.json").write_text("{")
    with pytest.raises(InputError, match="broken steering state"):
        run(tmp_path, str(tmp_path / "checkpoint-2"))
