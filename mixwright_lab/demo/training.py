"""Fine-tuning as a user's own script does it: TRL's SFTTrainer with LoRA, and the steered one with a plan."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Sequence
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
    """Of LoRA, on all linear layers; 0 trains all weights."""
    learning_rate: float = 1.5e-3
    """Of the first step, falling to 0 in a straight line, as TRL does by default."""


def fine_tune(
    model: str,
    rows: Path,
    out: Path,
    how: Training,
    *,
    seed: int,
    plan: Path | None = None,
    save_at: Sequence[int] = (),
    penalty: float = 0.0,
    at_once: int | None = None,
    held_near: Path | None = None,
) -> None:
    """Train a LoRA adapter, or all weights, and save it with the tokenizer in `out`.

    Args:
        model: folder of the starting model.
        rows: JSONL with task, prompt and completion, and the mask of those that have one.
        out: folder of the adapter or of the model.
        how: steps and rates.
        seed: of the order of rows and of the adapter's first weights.
        plan: plan.yaml to draw by; None is TRL's own trainer.
        save_at: steps after which the adapter is saved, too, in `out/step-N`.
        at_once: rows that go through the model together, of those of a step: fewer are padded less, and the gradient is
            the same; needs no plan. None takes all.
        penalty: weight of the Kullback-Leibler divergence from the starting model, in nats per token; needs no plan.
        held_near: rows that the penalty is on, all of them once in a pass; None takes the training rows.
    """
    from datasets import Dataset, disable_progress_bars
    from peft import LoraConfig
    from transformers import PrinterCallback
    from trl.trainer.sft_config import SFTConfig

    from mixwright import SteeredSFTTrainer
    from mixwright.learner.load import load_learner
    from mixwright.learner.settings import float32_settings

    disable_progress_bars()
    learner = load_learner(model)
    read = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
    columns = ["task", "prompt", "completion", *(["mask"] if any(row.get("mask") for row in read) else [])]
    dataset = Dataset.from_list([learner.form.row({name: row.get(name) for name in columns}) for row in read])
    settings: dict[str, Any] = {"max_steps": how.steps, "per_device_train_batch_size": at_once or how.batch}
    settings |= {"gradient_accumulation_steps": how.batch // (at_once or how.batch), "save_strategy": "no"}
    settings |= {"learning_rate": how.learning_rate, "lr_scheduler_type": "linear", "logging_strategy": "no"}
    args = SFTConfig(output_dir=str(out), seed=seed, **settings, **float32_settings(learner.device))
    lora = None
    if how.rank:
        lora = LoraConfig(r=how.rank, lora_alpha=2 * how.rank, target_modules="all-linear", task_type="CAUSAL_LM")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        penalised = penalised_trainer(penalty, None if held_near is None else _encode_rows(learner, held_near), how.steps)
        trainer = (penalised if penalty else SteeredSFTTrainer)(
            model=learner.model,
            args=args,
            train_dataset=dataset,
            processing_class=learner.tokenizer,
            peft_config=lora,
            **({} if penalty else {"steering": None if plan is None else str(plan)}),
        )
        if save_at:
            trainer.add_callback(saving_callback(out, save_at))
        trainer.remove_callback(PrinterCallback)  # one line of ours says what was done
        trainer.train()
    trainer.save_model(str(out))


def saving_callback(out: Path, steps: Sequence[int]) -> Any:
    """A callback that saves the adapter in `out/step-N` after each of these steps."""
    from transformers import TrainerCallback

    class Saving(TrainerCallback):
        """Saves adapters on the way."""

        def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            """Save, where this step is one of them."""
            if state.global_step in steps:
                given["model"].save_pretrained(str(out / f"step-{state.global_step}"))

    return Saving()


def _encode_rows(learner: Any, path: Path) -> list[list[int]]:
    """Token ids of rows, prompt and completion."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    write = learner.tokenizer
    return [
        [*learner.encode(row["prompt"]), *write(row["completion"], add_special_tokens=False)["input_ids"]] for row in rows
    ]


def penalised_trainer(weight: float, rows: Sequence[Sequence[int]] | None, steps: int) -> Any:
    """TRL's trainer, whose loss grows by `weight` times the divergence from the model without its adapter.

    Args:
        weight: in nats per token.
        rows: token ids that the divergence is measured on, each once in all steps; None takes those of the batch.
        steps: of the training.
    """
    import torch
    from torch.nn.functional import kl_div, log_softmax
    from torch.nn.utils.rnn import pad_sequence

    from mixwright import SteeredSFTTrainer

    class Penalised(SteeredSFTTrainer):
        """Stays near the starting model on some rows, prompts included."""

        def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None) -> Any:
            """TRL's loss and the penalty, from a pass of its own: the outputs that TRL returns may carry no gradient."""
            loss, outputs = super().compute_loss(model, inputs, return_outputs=True, num_items_in_batch=num_items_in_batch)
            given = {name: inputs[name] for name in ("input_ids", "attention_mask")}
            if rows is not None:
                due = [torch.tensor(row) for row in rows[self.state.global_step % steps :: steps]]
                masks = [torch.ones_like(row) for row in due]
                given = {name: pad_sequence(part, True) for name, part in zip(given, (due, masks), strict=True) if due}
            if given:
                loss = loss + weight * self.divergence(model, given)
            return (loss, outputs) if return_outputs else loss

        def divergence(self, model: Any, given: Any) -> torch.Tensor:
            """Mean over the tokens, a scalar."""
            with torch.no_grad(), model.disable_adapter():
                before = log_softmax(model(**given).logits.float(), dim=-1)
            now = log_softmax(model(**given).logits.float(), dim=-1)
            per_token = kl_div(before, now, log_target=True, reduction="none").sum(dim=-1)
            return per_token[given["attention_mask"].bool()].mean()

    return Penalised


def scale_adapter(source: Path, target: Path, scale: float) -> None:
    """Copy a LoRA adapter with its product times `scale`: PEFT multiplies it by lora_alpha / r."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("checkpoint-*", "steering"))
    path = target / "adapter_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings["lora_alpha"] *= scale
    path.write_text(json.dumps(settings, indent=1), encoding="utf-8")
