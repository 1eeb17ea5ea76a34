"""Refusals, before training, of what cannot be steered, with the reason."""

from __future__ import annotations

from typing import Any

from mixwright.errors import InputError
from mixwright.trainers.steering import INDEX_COLUMN


def refuse_grpo(dataset: Any) -> None:
    """Raises InputError for GRPO data whose rows cannot be chosen; None where an environment gives the prompts."""
    if dataset is None:
        _refuse(
            "a train_dataset",
            "none",
            "Pass a train_dataset; steering cannot choose rows if an environment provides the prompts.",
        )
    if {"image", "images"} & set(getattr(dataset, "column_names", None) or ()):
        _refuse("a text dataset", "images", "The start-up check handles only text; train on images with steering=None.")


def refuse_settings(args: Any, objective: str) -> None:
    """Raises InputError for the trainer's settings under which nothing can be steered; `args` is None for TRL's defaults."""
    packing_strategy = getattr(args, "packing_strategy", "bfd")
    if getattr(args, "packing", False) and packing_strategy != "bfd":
        remedy = "Other strategies cut rows into pieces, which cannot be sampled or tracked; 'bfd' keeps rows whole."
        _refuse("packing_strategy 'bfd' under steering", repr(packing_strategy), remedy)
    if (getattr(args, "dataset_kwargs", None) or {}).get("skip_prepare_dataset"):
        _refuse("a dataset that TRL prepares", "skip_prepare_dataset", "Let TRL prepare the dataset.")
    if objective != "sft" and getattr(args, "padding_free", False):
        _refuse(
            "padding_free=False", "padding_free=True", "In flattened batches steering cannot tell where an example ends."
        )
    strategy = getattr(args, "train_sampling_strategy", "random")
    if objective != "grpo" and strategy not in ("random", "sequential"):
        _refuse("train_sampling_strategy 'random'", repr(strategy), "Under steering the plan decides the order of rows.")
    if args is not None:
        refuse_unresumable(args)
        refuse_dataloader(args)


def refuse_images(dataset: Any) -> None:
    """Raises InputError for SFT or DPO data of images."""
    if {"image", "images"} & set(dataset.column_names):
        _refuse("a text dataset", "images", "Images are prepared in the collator; train on them with steering=None.")


def refuse_unresumable(args: Any) -> None:
    """Raises InputError for the trainer's settings under which a resumed run, or a second attempt, would draw again."""
    for name, why in {
        "ignore_data_skip": (
            "A resumed epoch would start from its first rows again. Steering skips rows without loading them anyway."
        ),
        "auto_find_batch_size": "A second attempt would sample and count the same steps again. Set a batch size that fits.",
    }.items():
        if getattr(args, name, False):
            _refuse(f"{name}=False under steering", "True", why)


def refuse_unprepared(trainer: Any) -> None:
    """Raises InputError for data that an SFT or DPO trainer has not prepared row by row."""
    if INDEX_COLUMN not in trainer.train_dataset.column_names:
        _refuse("prepared rows that keep their other columns", "rows without their indices", "Train with steering=None.")


def why_lr_is_fixed(deepspeed: bool) -> str:
    """Why the learning rate of a single step cannot be scaled in this set-up; empty when it can."""
    if deepspeed:
        return "DeepSpeed runs its optimizer step inside backward, before the learning rate can be scaled"
    return ""


def refuse_dataloader(args: Any) -> None:
    """Raises InputError for dataloader settings under which the processes would not draw the same."""
    settings = args.accelerator_config
    if getattr(settings, "dispatch_batches", None):
        _refuse("dispatch_batches=None", "True", "Every process must sample by itself, so that all sample the same rows.")
    if getattr(settings, "split_batches", False):
        _refuse("split_batches=False", "True", "The processes need the batches as TRL lays them out.")


def _refuse(expected: str, got: str, remedy: str) -> None:
    raise InputError(expected, got, remedy)
