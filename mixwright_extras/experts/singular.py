"""Matrices with one learned scale per singular value: W' = U diag(S exp(z)) V^T, where z alone trains and begins at 0."""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from mixwright.extend import WEIGHTS_FILE, InputError, join_some, matrices

Scales = Mapping[str, Float[Tensor, " values"]]
"""An expert: z by the full name of its matrix."""


def replace_module(model: nn.Module, name: str, module: nn.Module) -> None:
    """Put a module into the place of the one called `name`."""
    parent, _, last_name = name.rpartition(".")
    setattr(model.get_submodule(parent), last_name, module)


class Scaled(nn.Module):
    """A linear map with frozen weights and a log-scale per singular value.

    The weights keep their names in the state dict, U and V are made from them and are not saved. The change is added to
    the output of the plain map, so that z = 0 gives the same numbers to the bit, whatever the precision of the weights.
    """

    def __init__(self, matrix_module: nn.Linear | Conv1D) -> None:
        """Take over the weights of `matrix_module`; its singular value decomposition is made here, in float32."""
        super().__init__()
        self.weight, self.bias = matrix_module.weight, matrix_module.bias
        self.transposed = isinstance(matrix_module, Conv1D)
        matrix = self.weight.detach().float()
        left, values, right = torch.linalg.svd(matrix.T if self.transposed else matrix, full_matrices=False)
        for name, tensor in (("left", left), ("values", values), ("right", right)):
            self.register_buffer(name, tensor.contiguous(), persistent=False)
        self.left: Tensor
        self.values: Tensor
        self.right: Tensor
        self.log_scale = nn.Parameter(torch.zeros_like(values))
        self.active = True

    def forward(self, hidden: Float[Tensor, "... inputs"]) -> Float[Tensor, "... outputs"]:
        """The plain map, and what the scales change of it."""
        if self.transposed:  # as Conv1D computes it
            flat = hidden.reshape(-1, hidden.shape[-1])
            output = torch.addmm(self.bias, flat, self.weight).view(*hidden.shape[:-1], self.weight.shape[1])
        else:
            output = nn.functional.linear(hidden, self.weight, self.bias)
        if not self.active:
            return output
        inner = nn.functional.linear(hidden.to(self.right.dtype), self.right) * (self.values * self.log_scale.expm1())
        return output + nn.functional.linear(inner, self.left).to(output.dtype)

    @torch.no_grad()
    def merged(self) -> nn.Linear | Conv1D:
        """A plain module with the weights U diag(S exp(z)) V^T, of the class that this one was made from."""
        left, right = self.left.double(), self.right.double()  # so that the sum is rounded once
        change = (left * (self.values * self.log_scale.expm1()).double()) @ right
        change = change.T if self.transposed else change
        weight = nn.Parameter((self.weight.double() + change).to(self.weight.dtype))
        inputs, outputs = weight.shape if self.transposed else weight.shape[::-1]
        with torch.random.fork_rng(devices=[]):  # the weights that it draws are replaced
            merged_module = (
                Conv1D(outputs, inputs) if self.transposed else nn.Linear(inputs, outputs, bias=False, device="meta")
            )
        merged_module.weight, merged_module.bias = weight, self.bias
        return merged_module


def scaled_matrices(model: nn.Module) -> dict[str, Scaled]:
    """The scaled matrices of a model, by their full names."""
    return {name: module for name, module in model.named_modules() if isinstance(module, Scaled)}


def add_scales(model: nn.Module, targets: Sequence[str] | None) -> None:
    """Put scales, all of them 0, on the matrices of these names. Raises InputError as `matrices` does."""
    for name, matrix_module in matrices(model, targets).items():
        replace_module(model, name, Scaled(matrix_module))


def scales(model: nn.Module) -> dict[str, Float[Tensor, " values"]]:
    """The expert that a model has: a copy of every z, float32 on the CPU."""
    return {name: module.log_scale.detach().float().cpu().clone() for name, module in scaled_matrices(model).items()}


def read_expert(folder: Path) -> dict[str, Float[Tensor, " values"]]:
    """The vectors z of an expert that the adapter `svf` saved. Raises InputError for a folder without them."""
    try:
        return load_file(folder / WEIGHTS_FILE)
    except (OSError, SafetensorError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise InputError("the vectors of an expert", reason, f"Name a folder with {WEIGHTS_FILE}.", file=folder) from error


@torch.no_grad()
def set_scales(model: nn.Module, expert: Scales) -> None:
    """Give a model with scales those of an expert. Raises InputError for other matrices or other sizes."""
    matrices = scaled_matrices(model)
    wrong = matrices.keys() ^ expert.keys()
    wrong |= {name for name in matrices.keys() & expert.keys() if matrices[name].log_scale.shape != expert[name].shape}
    if wrong:
        remedy = "Use the base and the targets that it was trained with."
        raise InputError("an expert of the same matrices as the model", f"others at {join_some(sorted(wrong))}", remedy)
    for name, module in matrices.items():
        module.log_scale.copy_(expert[name])


@contextlib.contextmanager
def without_adapter(model: Any) -> Iterator[None]:
    """The model reads as its base inside the block: adapters of PEFT and scales are switched off, and on again after it.

    Raises:
        InputError: the model has neither.
    """
    modules = [module for module in scaled_matrices(model).values() if module.active]
    if not modules and not hasattr(model, "disable_adapter"):
        raise InputError("a model with an adapter that can be switched off", type(model).__name__, "Give both models.")
    try:
        for module in modules:
            module.active = False
        with model.disable_adapter() if hasattr(model, "disable_adapter") else contextlib.nullcontext():
            yield
    finally:
        for module in modules:
            module.active = True
