"""Adapters of Mixwright on a tiny GPT: a copy with one in place, what it changed, and mixtures of such changes."""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from mixwright import catalog
from mixwright_lab.training.gpt import GPT

MATRICES = ("qkv", "out", "up", "down")
"""Last names of the matrices of a block: what adapters act on where they are not told otherwise."""
Changes = Mapping[str, Float[Tensor, "outputs inputs"]]
"""What training added to each matrix, by its name in the base."""


def adapted(base: GPT, adapter: str, options: Mapping[str, Any]) -> GPT:
    """A copy of a base, with an adapter in place and all else frozen; it writes as the base does until it is trained.

    Args:
        base: only read.
        adapter: its name in the catalogue.
        options: of the adapter; `targets` are all of `MATRICES` by default.
    """
    model = copy.deepcopy(base)
    if adapter == "full":
        return catalog.create("adapters", adapter, dict(options)).wrap(model)
    setattr(model, "prepare_inputs_for_generation", None)  # noqa: B010 - PEFT looks for it, this GPT has its own sampler
    catalog.create("adapters", adapter, {"targets": list(MATRICES)} | dict(options)).wrap(model)  # in place, all of them
    return model


@torch.no_grad()
def changes(base: GPT, model: GPT) -> dict[str, Float[Tensor, "outputs inputs"]]:
    """What a model adds to each of the base's `MATRICES`, whatever adapter it has; its biases are left out."""
    found = {}
    for name in (f"blocks.{number}.{last}" for number in range(len(base.blocks)) for last in MATRICES):
        weight = _weight(base, name)
        rows = torch.cat((torch.eye(weight.shape[1]), torch.zeros(1, weight.shape[1])))
        read = model.get_submodule(name)(rows)
        found[name] = (read[:-1] - read[-1]).T - weight
    return found


@torch.no_grad()
def moved(base: GPT, experts: Sequence[Changes], weights: Sequence[float], model: GPT) -> GPT:
    """Give a plain copy of a base its weights plus the weighted sum of the changes; returns that copy."""
    for name in experts[0]:
        parts = [float(weight) * expert[name] for expert, weight in zip(experts, weights, strict=True)]
        _weight(model, name).copy_(_weight(base, name) + torch.stack(parts).sum(0))
    return model


def _weight(model: GPT, name: str) -> Float[Tensor, "outputs inputs"]:
    return model.get_parameter(f"{name}.weight")
