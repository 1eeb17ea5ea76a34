"""Checks around a steered run: what cannot be steered is refused, and processes must agree."""

from __future__ import annotations

import json
import zlib
from typing import Any

from mixwright.errors import InputError
from mixwright.steer.beside.run import RunSteering

STEPS_BETWEEN_CHECKS = 100
"""Steps between comparisons of draws and evidence over processes; each save compares too."""
PLAIN_PROMPTS = (
    "the prompts are plain text, and TRL trains on them without the tokenizer's chat template. `mixwright measure` and "
    "`verdict` use that template, so they would ask the model in another format than it is trained in. Write prompts and "
    "completions as messages: [{'role': 'user', 'content': ...}]. If you want plain text, measure with --no-chat-template."
)
UNRESUMABLE_REMEDIES = {
    "ignore_data_skip": "A resumed epoch would start from its first rows again. Steering skips rows without loading them "
    "anyway.",
    "auto_find_batch_size": "A second attempt would sample and count the same steps again. Set a batch size that fits.",
    "save_on_each_node": "The state of a run is saved once, so let all nodes write to one shared output_dir.",
    "enable_jit_checkpoint": "Its save on SIGTERM knows no steering. Set save_steps, and resume from the last save.",
}
"""Settings under which a resumed run, or a second attempt, would draw again: each -> why, and what to do."""


def refuse_settings(args: Any, objective: str) -> None:
    """Raise InputError for the trainer's settings under which nothing can be steered, or no run resumed."""
    dataloader, dataset_settings = args.accelerator_config, getattr(args, "dataset_kwargs", None) or {}
    strategy, is_sft = getattr(args, "train_sampling_strategy", "random"), objective == "sft"
    one_by_one = "Rows are drawn one by one. To pack them, train with TRL on an export of the plan (--export trl)."
    by_plan = "Under steering the plan decides the order of rows."
    as_laid_out = "The processes need the batches as TRL lays them out."
    alone = "Every process must sample by itself, so that all sample the same rows."
    is_ordered = objective != "grpo" and strategy not in ("random", "sequential")
    skips = dataset_settings.get("skip_prepare_dataset") and "skip_prepare_dataset"
    refusals: list[tuple[Any, str, str]] = [
        (is_sft and args.packing, "packing=False under steering", one_by_one),
        (is_sft and args.padding_free, "padding_free=False under steering", one_by_one),
        (skips, "a dataset that TRL prepares", "Let TRL prepare the dataset."),
        (is_ordered and strategy, "train_sampling_strategy 'random'", by_plan),
        (dataloader.dispatch_batches, "dispatch_batches=None", alone),
        (dataloader.split_batches, "split_batches=False", as_laid_out),
    ]
    for name, remedy in UNRESUMABLE_REMEDIES.items():
        refusals.append((getattr(args, name, False), f"{name}=False under steering", remedy))
    for value, wanted, remedy in refusals:
        if value:
            raise InputError(wanted, str(value), remedy)


def has_plain_prompts(processing_class: Any, rows: Any) -> bool:
    """Whether prompts are plain text beside a chat template, by the first row, by which TRL decides, too.

    Rows without prompts (`text`, `messages`) say themselves what they are.

    Args:
        processing_class: tokenizer or processor of the trainer.
        rows: its data set, before TRL prepares it.
    """
    tokenizer = getattr(processing_class, "tokenizer", processing_class)
    return bool(getattr(tokenizer, "chat_template", None) and len(rows)) and isinstance(rows[0].get("prompt"), str)


def check_same_data(run: RunSteering) -> None:
    """Raises InputError when the processes do not hold the same examples in the same order."""
    text = "\n".join([json.dumps(run.engine.state_dict()["made_of"], default=str), *run.pool.ids])
    from accelerate.utils import gather_object  # the settings of a trainer are checked without it

    gathered = gather_object([f"{len(run.pool.ids)} rows with checksum {zlib.crc32(text.encode()):08x}"])
    if len(set(gathered)) > 1:
        remedy = "Load and shuffle it with the same order and seed on every process."
        raise InputError("the same train_dataset, plan and seed on every process", ", ".join(gathered), remedy)


def check_same_run(run: RunSteering, step: int) -> None:
    """Compare draws, wanted shares, evidence per cell and coefficients over processes.

    Raises:
        RuntimeError: they differ, so the processes no longer train on what was decided.
    """
    from accelerate import PartialState
    from accelerate.utils import gather_object

    if PartialState().num_processes == 1:
        return
    # without the per-example arrays of the evidence: those follow from the same outcomes
    decided = [run.engine.wanted_shares(), run.engine.snapshot(), run.beta, run.lr_factor, run.stop_reason]
    decided_text = json.dumps([*decided, run.rollouts, run.batches], sort_keys=True, default=float)
    checksums = zlib.crc32(run.draws.rows.tobytes()), zlib.crc32(decided_text.encode())
    gathered = gather_object([f"{len(run.draws)} draws {checksums[0]:08x}, state {checksums[1]:08x}"])
    if len(set(gathered)) > 1:
        states_text = "; ".join(f"process {rank}: {state}" for rank, state in enumerate(gathered))
        raise RuntimeError(f"step {step}: the processes no longer sample and decide alike ({states_text}); stopped")
