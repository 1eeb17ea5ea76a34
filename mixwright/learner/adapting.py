"""Parts that adapters share: their matrices, settings beside their weights, loading one, and reading the base beneath."""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from mixwright import catalog
from mixwright.config import ADAPTER_FILES
from mixwright.errors import InputError, join_some, told_as
from mixwright.learner.batches import without_warnings
from mixwright.learner.checkpoint_checks import check_adapter_weights
from mixwright.run.folder import write_json

if TYPE_CHECKING:
    from mixwright.contracts import Adapter

SETTINGS_FILE = ADAPTER_FILES[1]
"""Settings in the folder of an adapter: {"adapter": name in the catalogue, "options": its options, "base": its base}."""
WEIGHTS_FILE = "adapter.safetensors"
"""Weights in the folder of an adapter, where it has no format of its own."""

MATRIX_NAMES = (
    *("q_proj", "k_proj", "v_proj", "o_proj", "out_proj", "qkv_proj", "query_key_value", "Wqkv", "c_attn", "c_proj"),
    *("gate_proj", "up_proj", "down_proj", "gate_up_proj", "c_fc", "fc1", "fc2"),
    *("dense", "dense_h_to_4h", "dense_4h_to_h"),
)
"""Last names of the attention projections and MLP matrices of Llama, Qwen, Mistral, Gemma, Phi, OPT, NeoX and GPT-2."""


def matrices(model: nn.Module, targets: Sequence[str] | None) -> dict[str, Any]:
    """The plain matrices (`nn.Linear`, `Conv1D`) that an adapter acts on, by their full names, in the model's order.

    Args:
        model: a causal language model.
        targets: last parts of their names, such as `down_proj` or `mlp.c_proj`; None for `MATRIX_NAMES`.

    Raises:
        InputError: the model has no such matrix, or is adapted already, so that none of them is plain.
    """
    endings = tuple(f".{name}" for name in targets or MATRIX_NAMES)
    plain_matrices = {name: module for name, module in model.named_modules() if type(module) in (nn.Linear, Conv1D)}
    chosen_matrices = {name: module for name, module in plain_matrices.items() if f".{name}".endswith(endings)}
    if not chosen_matrices:
        present = (
            join_some(sorted({name.rpartition(".")[2] for name in plain_matrices}))
            if plain_matrices
            else "no plain matrix at all"
        )
        remedy = "Name targets that the model has; merge another adapter first."
        raise InputError(f"matrices named {join_some(targets or MATRIX_NAMES)}", present, remedy)
    return chosen_matrices


def name_of(adapter: Adapter) -> str:
    """The name by which the catalogue knows an adapter; that of its module where the catalogue does not."""
    module = type(adapter).__module__
    name_by_module = {entry.module.partition(":")[0]: entry.name for entry in catalog.listing("adapters").values()}
    return name_by_module.get(module, module.rpartition(".")[2])


def write_settings(adapter: Adapter, model: nn.Module, folder: Path, **more: Any) -> None:
    """Write the name and the options of an adapter, its base's name, and what else its `load` reads, into its folder."""
    base = getattr(getattr(model, "config", None), "_name_or_path", "")
    write_json(folder / SETTINGS_FILE, {"adapter": name_of(adapter), "options": vars(adapter), "base": base} | more)


def read_settings(folder: Path) -> dict[str, Any]:
    """What `write_settings` wrote. Raises InputError for a folder without it."""
    file = folder / SETTINGS_FILE
    try:
        settings: Any = json.loads(file.read_text(encoding="utf-8"))
        return {**settings, "adapter": str(settings["adapter"]), "options": dict(settings["options"])}
    except (OSError, ValueError, TypeError, KeyError):
        remedy = "Name a folder that an adapter was saved in."
        raise InputError("the folder of an adapter", f"no readable {SETTINGS_FILE}", remedy, file=file) from None


def load_adapted(model: Any, folder: Path) -> tuple[Adapter, Any]:
    """The adapter that a folder was saved by, and the model with it. Raises InputError as `Adapter.load` does, and for
    weights that are no numbers.
    """
    settings = read_settings(folder)
    adapter = catalog.create("adapters", settings["adapter"], settings["options"])
    with _told_as_misfit(folder):
        adapted = adapter.load(model, folder)
    check_adapter_weights(adapted, folder)
    return adapter, adapted


def load_peft(model: Any, folder: Path) -> Any:
    """The model inside PEFT's with the adapter of a folder. The state of torch's random numbers stays as it was.

    Raises:
        InputError: not an adapter of this model, it lacks weights or has some that the model has no place for, or NaN.
    """
    from peft import PeftModel

    unknown: list[str] = []
    hook = model.register_load_state_dict_post_hook(lambda _, names: unknown.extend(names.unexpected_keys))
    try:
        with _told_as_misfit(folder), torch.random.fork_rng(), without_warnings():
            warnings.filterwarnings("error", message="Found missing adapter keys")
            adapted = PeftModel.from_pretrained(model, str(folder), is_trainable=True)
    finally:
        hook.remove()
    if unknown:
        remedy = "Use the model it was trained on, and a whole adapter."
        raise InputError(
            "an adapter that fits the model", f"weights that the model lacks: {join_some(unknown)}", remedy, file=folder
        )
    check_adapter_weights(adapted, folder)
    return adapted


def _told_as_misfit(folder: Path) -> contextlib.AbstractContextManager[None]:
    """PEFT and safetensors raise many kinds for an adapter that does not fit its model, and one warning is an error here."""
    return told_as("an adapter that fits the model", "Use the model it was trained on, and a whole adapter.", file=folder)


def can_switch_off(model: Any) -> bool:
    """Whether the model is a base with an adapter of PEFT on it, which reads exactly as the base once that is off."""
    return hasattr(model, "disable_adapter")
