"""Refusals, before training, of what cannot be steered, with the reason."""

from __future__ import annotations

from typing import Any

from mixwright.errors import InputError


def refuse_settings(args: Any, objective: str) -> None:
    """Raise InputError for the trainer's settings under which nothing can be steered."""
    dataloader = args.accelerator_config
    strategy = getattr(args, "train_sampling_strategy", "random")
    packing_strategy = args.packing_strategy if getattr(args, "packing", False) else "bfd"
    if packing_strategy != "bfd":
        remedy = "Other strategies cut rows into pieces, which cannot be sampled or tracked; 'bfd' keeps rows whole."
        raise InputError("packing_strategy 'bfd' under steering", repr(packing_strategy), remedy)
    if (getattr(args, "dataset_kwargs", None) or {}).get("skip_prepare_dataset"):
        raise InputError("a dataset that TRL prepares", "skip_prepare_dataset", "Let TRL prepare the dataset.")
    if objective != "grpo" and strategy not in ("random", "sequential"):
        remedy = "Under steering the plan decides the order of rows."
        raise InputError("train_sampling_strategy 'random'", repr(strategy), remedy)
    if dataloader.dispatch_batches:
        remedy = "Every process must sample by itself, so that all sample the same rows."
        raise InputError("dispatch_batches=None", "True", remedy)
    if dataloader.split_batches:
        raise InputError("split_batches=False", "True", "The processes need the batches as TRL lays them out.")
    refuse_unresumable(args)


def refuse_unresumable(args: Any) -> None:
    """Raise InputError for the trainer's settings under which a resumed run, or a second attempt, would draw again."""
    if args.ignore_data_skip:
        remedy = "A resumed epoch would start from its first rows again. Steering skips rows without loading them anyway."
        raise InputError("ignore_data_skip=False under steering", "True", remedy)
    if args.auto_find_batch_size:
        remedy = "A second attempt would sample and count the same steps again. Set a batch size that fits."
        raise InputError("auto_find_batch_size=False under steering", "True", remedy)
    if args.save_on_each_node:
        remedy = "The state of a run is saved once, so let all nodes write to one shared output_dir."
        raise InputError("save_on_each_node=False under steering", "True", remedy)
