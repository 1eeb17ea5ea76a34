"""What the study of rollouts shows on the bare loop, the same direction through TRL's own trainer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from trainers_tiny import make, read

from mixwright import SteeredGRPOTrainer, SteeringConfig
from mixwright.records import Plan, Stage

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*gradient_checkpointing.*:FutureWarning"  # TRL 1.16 still sets transformers' older name
)

PROMPTS = 60


def rows() -> Dataset:
    """A third each of level 1, always right, of level 2, right by some completions, and of level 3, never right."""
    levels = [1.0 + i % 3 for i in range(PROMPTS)]
    return Dataset.from_dict(
        {
            "id": [f"row-{i}" for i in range(PROMPTS)],
            "task": ["vowels"] * PROMPTS,
            "level": levels,
            "prompt": [f"say {i}=" for i in range(PROMPTS)],
        }
    )


def graded(completions: list[str], level: list[float], **kwargs: Any) -> list[float]:
    """1 always, when there is a vowel, or never, by level."""
    return [
        float(n == 1 or (n == 2 and any(c in "aeiou" for c in text))) for text, n in zip(completions, level, strict=True)
    ]


def teaching(folder: Path, selector: str) -> float:
    """Share of groups with different rewards in the second half of a run."""
    plan = Plan("test", (Stage("grpo", "grpo", 16, {"vowels": 1.0}, selector=selector),))
    settings = {"max_steps": 16, "per_device_train_batch_size": 32, "num_generations": 8, "learning_rate": 1e-5}
    trainer = make(
        SteeredGRPOTrainer, folder, settings, reward_funcs=graded, train_dataset=rows(), steering=SteeringConfig(plan)
    )
    trainer.train()
    lines = read(folder, "steps.jsonl")[8:]
    return 1 - sum(line["zero_signal"] for line in lines) / sum(line["groups"] for line in lines)


def test_more_groups_teach_through_trl(tmp_path: Path) -> None:
    uniform, ours = (teaching(tmp_path / selector, selector) for selector in ("uniform", "difficulty"))
    assert 0.15 < uniform < 0.5
    assert ours > uniform + 0.25
