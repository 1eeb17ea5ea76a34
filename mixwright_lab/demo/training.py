"""Fine-tuning as a user's own script does it: TRL's SFTTrainer with LoRA, and the steered one with a plan."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Training:
    """How the demo trains; the same with the plan and without."""

    steps: int = 20
    """Optimiser steps."""
    batch: int = 16
    """Rows per step."""
    rank: int = 16
    """Of LoRA, on all linear layers."""
    learning_rate: float = 1.5e-3
    """Of the first step, falling to 0 in a straight line, as TRL does by default."""


def fine_tune(
    model: str, rows: Path, out: Path, how: Training, *, seed: int, plan: Path | None = None, rehearsal: Path | None = None
) -> None:
    """Train a LoRA adapter and save it, with the tokenizer, in `out`.

    Args:
        model: folder of the starting model.
        rows: JSONL with task, prompt and completion.
        out: folder of the adapter.
        how: steps and rates.
        seed: of the order of rows and of the adapter's first weights.
        plan: plan.yaml to draw by; None is TRL's own trainer.
        rehearsal: further rows, which the plan draws.
    """
    from datasets import Dataset, disable_progress_bars
    from peft import LoraConfig
    from transformers import PrinterCallback
    from trl.trainer.sft_config import SFTConfig

    from mixwright import SteeredSFTTrainer
    from mixwright.learner.load import load_learner
    from mixwright.learner.settings import cheap_settings

    disable_progress_bars()
    learner = load_learner(model)
    read = [json.loads(line) for path in (rows, rehearsal) if path for line in path.read_text(encoding="utf-8").splitlines()]
    dataset = Dataset.from_list([learner.form.row({k: row[k] for k in ("task", "prompt", "completion")}) for row in read])
    settings: dict[str, Any] = {"max_steps": how.steps, "per_device_train_batch_size": how.batch, "save_strategy": "no"}
    settings |= {"learning_rate": how.learning_rate, "lr_scheduler_type": "linear", "logging_strategy": "no"}
    args = SFTConfig(output_dir=str(out), seed=seed, **settings, **cheap_settings(learner.device))
    lora = LoraConfig(r=how.rank, lora_alpha=2 * how.rank, target_modules="all-linear", task_type="CAUSAL_LM")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        trainer = SteeredSFTTrainer(
            model=learner.model,
            args=args,
            train_dataset=dataset,
            processing_class=learner.tokenizer,
            peft_config=lora,
            steering=None if plan is None else str(plan),
        )
        trainer.remove_callback(PrinterCallback)  # one line of ours says what was done
        trainer.train()
    trainer.save_model(str(out))
