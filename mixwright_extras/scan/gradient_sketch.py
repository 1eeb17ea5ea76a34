"""Sketches of per-row gradients by factors: one batched backward pass, in which no gradient of a weight is ever made.

The gradient of a row with respect to a weight matrix is the sum over its tokens of (gradient of the layer's output) x (input
of the layer). Both factors are projected on few directions before their product is summed, so a row costs about what it
costs in a plain backward pass: weights are frozen meanwhile, which saves what the projections take. Norms and
tables of positions are left out; biases and tied embeddings are not.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from mixwright.extend import InputError, Learner, TrainingRow, reading_mode, right_padded


@contextlib.contextmanager
def restrict_output(model: Any, positions: Int[Tensor, " tokens"]) -> Iterator[list[Tensor]]:
    """Have the output layer see only these places of the flattened hidden states; its logits have shape (1, tokens, ...).

    Inside the block the list that is yielded takes the hidden states of the call, shape (batch, time, width).
    """
    layer, states = model.get_output_embeddings(), []

    def keep_positions(_: Any, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        states.append(inputs[0])
        return (inputs[0].flatten(0, 1)[positions][None], *inputs[1:])

    handle = layer.register_forward_pre_hook(keep_positions) if layer is not None else None
    try:
        yield states
    finally:
        if handle is not None:
            handle.remove()


class Directions(NamedTuple):
    """Directions that the two sides of one weight matrix's gradient are projected on; None keeps a side as it is."""

    outputs: Float[Tensor, "outputs side"] | None = None
    inputs: Float[Tensor, "inputs side"] | None = None
    """With a bias there is one more input, the constant 1, at the end."""


@dataclass(frozen=True)
class Matrix:
    """One weight matrix that trains, and the modules that use it (a tied embedding has two)."""

    name: str
    modules: tuple[nn.Module, ...]
    outputs: int
    inputs: int
    """With a bias one more than the weight has."""


@dataclass
class _BatchSums:
    """What one batch has shown so far, added up, and where its rows lie."""

    sums: list[Tensor]
    """Per matrix (rows, outputs, inputs): sums of the products of factors."""
    row_of_position: Tensor
    """Row of each place that the output layer sees."""
    positions_in_row: Tensor
    """Its place among those of the row."""
    handles: list[Any] = field(default_factory=list)


def find_matrices(model: Any) -> list[Matrix]:
    """Every weight matrix of a model that trains: of linear layers, biases with them, and of the token embedding.

    A learned table of positions is left out: all rows of a batch share what it gives.

    Raises:
        InputError: there is none.
    """
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    modules_by_weight: dict[int, list[nn.Module]] = {}
    tokens = model.get_input_embeddings()
    for module in model.modules():
        weight = getattr(module, "weight", None)
        has_matrix = isinstance(module, nn.Linear | Conv1D) or module is tokens
        if has_matrix and weight is not None and weight.requires_grad:
            modules_by_weight.setdefault(id(weight), []).append(module)
    matrices_that_train = []
    for key, modules in modules_by_weight.items():
        shape: Any = modules[0].weight.shape
        outputs, inputs = shape[::-1] if isinstance(modules[0], Conv1D) else shape
        bias = any(getattr(module, "bias", None) is not None for module in modules)
        matrices_that_train.append(Matrix(names[key], tuple(modules), outputs, inputs + bias))
    if not matrices_that_train:
        raise InputError("a model with trainable weight matrices", "none", "Leave the column `sketch` out.")
    return matrices_that_train


class GradientSketch:
    """Projections of every trainable weight matrix of a model, and the hooks that collect the factors.

    Args:
        model: a causal language model; where some weights are frozen (PEFT), only the others are sketched.
        directions: by the name of the matrix; one without is kept as it is.
        kept_indices: which numbers of all matrices together make the sketch, int64; None keeps all.

    Raises:
        InputError: no weight matrix, or directions of another model.
    """

    def __init__(
        self,
        model: Any,
        *,
        directions: Mapping[str, Directions] | None = None,
        kept_indices: Int[Tensor, " dims"] | None = None,
    ) -> None:
        self.model, self.matrices, self.kept_indices = model, find_matrices(model), kept_indices
        device = next(model.parameters()).device
        self._directions = []
        for matrix in self.matrices:
            pair = _checked_directions(matrix, (directions or {}).get(matrix.name, Directions()))
            self._directions.append(tuple(None if side is None else side.to(device) for side in pair))

    def sketch_rows(self, learner: Learner, rows: Sequence[TrainingRow]) -> Float[Tensor, "rows dims"]:
        """Sketches of the rows' gradients of the mean loss over their targets; every row needs a target.

        Parameters, their gradients and the model's mode are left as they were.
        """
        sketches = torch.cat([product.flatten(1) for product in self.products(learner, rows)], 1)
        return sketches if self.kept_indices is None else sketches[:, self.kept_indices.to(sketches.device)]

    def products(self, learner: Learner, rows: Sequence[TrainingRow]) -> list[Float[Tensor, "rows outputs inputs"]]:
        """The projected gradient of each matrix, in the order of `find_matrices`."""
        device = learner.device
        ids = right_padded([[*row.prompt, *row.target] for row in rows], learner.tokenizer.pad_token_id or 0).to(device)
        width = ids.shape[1]
        spans = [torch.arange(len(row.target)) + i * width + len(row.prompt) - 1 for i, row in enumerate(rows)]
        positions = torch.cat(spans).to(device)
        weights = torch.cat([torch.full((len(row.target),), 1 / len(row.target)) for row in rows]).to(device)
        options: dict[str, Any] = {} if learner.cache_name is None else {"use_cache": False}
        with (
            reading_mode(self.model),
            restrict_output(self.model, positions),
            self._collecting(len(rows), positions // width) as sums,
        ):
            with torch.enable_grad():
                logits = learner.model(input_ids=ids, **options).logits.flatten(0, 1).float()
                losses = nn.functional.cross_entropy(logits, ids.flatten()[positions + 1], reduction="none")
                (losses * weights).sum().backward()
            return sums

    @contextlib.contextmanager
    def _collecting(self, rows: int, row_of_position: Int[Tensor, " tokens"]) -> Iterator[list[Tensor]]:
        """Collect the factors of one forward and backward pass in the list of sums that is yielded."""
        head = self.model.get_output_embeddings()
        first_positions = torch.searchsorted(row_of_position, torch.arange(rows, device=row_of_position.device))
        positions_in_row = (
            torch.arange(len(row_of_position), device=row_of_position.device) - first_positions[row_of_position]
        )
        batch = _BatchSums(
            [torch.zeros(rows, 0, 0, device=row_of_position.device) for _ in self.matrices],
            row_of_position,
            positions_in_row,
        )
        trained_before = [(parameter, parameter.requires_grad) for parameter in self.model.parameters()]
        try:
            for parameter, _ in trained_before:
                parameter.requires_grad_(False)
            for matrix_index, matrix in enumerate(self.matrices):
                is_empty = [side is not None and side.shape[1] == 0 for side in self._directions[matrix_index]]
                for module in matrix.modules if not any(is_empty) else ():
                    hook = self._hook(batch, matrix_index, matrix, is_output_layer=module is head)
                    batch.handles.append(module.register_forward_hook(hook))
            yield batch.sums
        finally:
            for handle in batch.handles:
                handle.remove()
            for parameter, trains in trained_before:
                parameter.requires_grad_(trains)

    def _hook(self, batch: _BatchSums, matrix_index: int, matrix: Matrix, *, is_output_layer: bool) -> Callable[..., Tensor]:
        output_directions, input_directions = self._directions[matrix_index]

        def forward(module: nn.Module, inputs_given: tuple[Tensor, ...], output: Tensor) -> Tensor:
            is_embedding = isinstance(module, nn.Embedding)
            with torch.no_grad():
                if is_embedding:  # the weight of a tied output layer the other way round: tokens are its outputs
                    input_values = _embed(inputs_given[0], matrix.outputs, output_directions)
                else:
                    input_values = _project(
                        _with_constant(inputs_given[0].detach().float(), matrix.inputs), input_directions
                    )
            if not output.requires_grad:
                output = output.detach().requires_grad_(True)

            def backward(gradient: Tensor) -> None:
                with torch.no_grad():
                    output_gradient = gradient.detach().float()
                    if is_embedding:
                        pair = (
                            input_values,
                            _project(_with_constant(output_gradient, matrix.inputs, 0.0), input_directions),
                        )
                    else:
                        pair = (_project(output_gradient, output_directions), input_values)
                    if is_output_layer:
                        pair = tuple(_split_rows(batch, side) for side in pair)
                    product = torch.bmm(pair[0].transpose(1, 2), pair[1])
                    batch.sums[matrix_index] = (
                        product if not batch.sums[matrix_index].numel() else batch.sums[matrix_index] + product
                    )

            output.register_hook(backward)
            return output

        return forward


def _embed(ids: Int[Tensor, "batch time"], size: int, directions: Tensor | None) -> Float[Tensor, "batch time side"]:
    """Token ids on these directions, each as the vector that is 1 at its own place."""
    return nn.functional.one_hot(ids, size).float() if directions is None else directions[ids]


def _project(values: Tensor, directions: Tensor | None) -> Tensor:
    """Values on these directions, as they are where it is None."""
    return values if directions is None else values @ directions


def _with_constant(values: Tensor, width: int, constant: float = 1.0) -> Tensor:
    """One more input where there is a bias: always 1."""
    if values.shape[-1] == width:
        return values
    return torch.cat([values, values.new_full((*values.shape[:-1], 1), constant)], -1)


def _split_rows(batch: _BatchSums, flat: Float[Tensor, "1 tokens side"]) -> Float[Tensor, "rows time side"]:
    """Places of a flat batch, row by row again."""
    by_row = flat.new_zeros(int(batch.row_of_position[-1]) + 1, int(batch.positions_in_row.max()) + 1, flat.shape[-1])
    by_row[batch.row_of_position, batch.positions_in_row] = flat[0]
    return by_row


def _checked_directions(matrix: Matrix, directions: Directions) -> Directions:
    """The directions, as they are. Raises InputError where they are those of another matrix."""
    sizes = (matrix.outputs, matrix.inputs)
    if any(side is not None and len(side) != size for side, size in zip(directions, sizes, strict=True)):
        actual = f"one with {' and '.join('all' if side is None else str(len(side)) for side in directions)}"
        raise InputError(f"a projection of {matrix.name}, {sizes[0]} x {sizes[1]}", actual, "Scan this model again.")
    return directions


def as_numpy(values: Tensor) -> np.ndarray:
    """Float32 on the CPU."""
    return values.float().cpu().numpy()
