"""Calibration of gradient sketches: the directions in which the gradients of some rows are largest, found once per scan.

Random directions are too noisy for layers this size: the factors of different rows are far from orthogonal, and with 32
random directions a side the cosines of sketches order rows quite unlike those of the gradients.
So the principal directions of the gradients of a few rows are taken, first of the outputs, then of the inputs given those,
and of the products the ones with the largest mean square.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mixwright.extend import InputError, Learner, TrainingRow, replacing, token_batches
from mixwright_extras.scan.gradient_sketch import Directions, GradientSketch, find_matrices

CALIBRATION_ROWS = 256
"""Rows that directions are found from; fewer where they would not fit into `MAX_NUMBERS_HELD`."""
MAX_NUMBERS_HELD = 2**28
"""Numbers of projected gradients that are held at a time."""
INPUT_PROBES = 16
"""Random directions that stand for the inputs while those of the outputs are found."""
BATCH_TOKENS = 2048
"""Padded tokens of a batch."""


@dataclass(frozen=True)
class SketchSettings:
    """Size of gradient sketches."""

    directions_per_side: int = 64
    """Of a weight matrix, at most."""
    dims: int = 8192
    """Numbers per row, at most."""


@dataclass(frozen=True)
class Calibration:
    """What sketches are made with; sketches of one calibration can be compared."""

    directions: Mapping[str, Directions]
    """By the name of the matrix."""
    kept_indices: Tensor
    """Which numbers make a sketch, int64."""

    def sketch(self, learner: Learner) -> GradientSketch:
        """Hooks on a model."""
        return GradientSketch(learner.model, directions=self.directions, kept_indices=self.kept_indices)


def calibration_rows(rows: Sequence[TrainingRow], seed: int) -> list[TrainingRow]:
    """At most `CALIBRATION_ROWS` rows with targets, by a hash of their ids."""
    usable = [row for row in rows if row.target]
    return sorted(usable, key=lambda row: hashlib.sha256(f"{seed} {row.example.id}".encode()).digest())[:CALIBRATION_ROWS]


def calibrate(learner: Learner, rows: Sequence[TrainingRow], settings: SketchSettings) -> Calibration:
    """Find directions from rows like those that will be sketched; two backward passes over them.

    Args:
        learner: left as it was.
        rows: with targets, such as `calibration_rows` chooses.
        settings: how many directions and numbers.

    Raises:
        InputError: no row with a target, or no weight matrix that trains.
    """
    if not rows:
        raise InputError("rows with a target, for gradients", "none", "Leave the column `sketch` out.")
    weight_matrices = find_matrices(learner.model)
    width = max(
        sum(matrix.outputs for matrix in weight_matrices) * INPUT_PROBES,
        sum(matrix.inputs for matrix in weight_matrices) * settings.directions_per_side,
    )
    rows, directions_per_side = rows[: max(8, MAX_NUMBERS_HELD // width)], settings.directions_per_side
    probes = {matrix.name: Directions(None, _random_signs(matrix.inputs)) for matrix in weight_matrices}
    products = _compute_products(learner, rows, GradientSketch(learner.model, directions=probes))
    output_directions = [_find_directions(product.transpose(0, 1).flatten(1), directions_per_side) for product in products]
    outputs_alone = {
        matrix.name: Directions(found) for matrix, found in zip(weight_matrices, output_directions, strict=True)
    }
    products = _compute_products(learner, rows, GradientSketch(learner.model, directions=outputs_alone))
    input_directions = [_find_directions(product.permute(2, 0, 1).flatten(1), directions_per_side) for product in products]
    energy = [(product @ found).square().mean(0) for product, found in zip(products, input_directions, strict=True)]
    pairs = [Directions(*pair) for pair in zip(output_directions, input_directions, strict=True)]
    directions, kept_indices = _trim(pairs, energy, settings.dims)
    return Calibration({matrix.name: pair for matrix, pair in zip(weight_matrices, directions, strict=True)}, kept_indices)


def _trim(
    pairs: Sequence[Directions], energy: Sequence[Float[Tensor, "outputs inputs"]], dims: int
) -> tuple[list[Directions], Tensor]:
    """The directions without those of which no product is among the `dims` largest, and the places of those that are."""
    all_energy = torch.cat([matrix_energy.flatten() for matrix_energy in energy])
    chosen = torch.zeros(len(all_energy), dtype=torch.bool)
    chosen[all_energy.argsort(descending=True, stable=True)[:dims]] = True
    directions, kept_indices, first_number, kept_count = [], [], 0, 0
    for pair, matrix_energy in zip(pairs, energy, strict=True):
        chosen_mask = chosen[first_number : first_number + matrix_energy.numel()].view_as(matrix_energy)
        first_number += matrix_energy.numel()
        used = (chosen_mask.any(1), chosen_mask.any(0))
        sides = [torch.eye(len(used_mask)) if side is None else side for side, used_mask in zip(pair, used, strict=True)]
        directions.append(
            Directions(*(side[:, used_mask].contiguous() for side, used_mask in zip(sides, used, strict=True)))
        )
        kept_mask = chosen_mask[used[0]][:, used[1]].flatten()
        kept_indices.append(kept_mask.nonzero()[:, 0] + kept_count)
        kept_count += len(kept_mask)
    return directions, torch.cat(kept_indices)


def save_calibration(path: Path, calibration: Calibration, key: Mapping[str, object]) -> None:
    """Write a calibration as safetensors, whole or not at all; `key`: what it was made from."""
    tensors = {"kept": calibration.kept_indices, **_flatten_directions(calibration.directions)}
    with replacing(path) as temporary:
        save_file(tensors, temporary, metadata={"key": json.dumps(key, sort_keys=True)})


def load_calibration(path: Path, key: Mapping[str, object]) -> Calibration | None:
    """What `save_calibration` wrote for the same key; None when it is not there, broken, or another's.

    So is what an earlier version wrote, which called its tensors otherwise: it is made anew.
    """
    try:
        with safe_open(path, framework="pt") as file:
            if (file.metadata() or {}).get("key") != json.dumps(key, sort_keys=True):
                return None
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except (OSError, SafetensorError):
        return None
    directions = _unflatten_directions(tensors)
    return Calibration(directions, tensors["kept"]) if directions else None


def _flatten_directions(directions: Mapping[str, Directions]) -> dict[str, Tensor]:
    """Named directions as they are kept; `_unflatten_directions` makes pairs of them again."""
    sides = ((name, side, tensor) for name, pair in directions.items() for side, tensor in pair._asdict().items())
    return {f"directions/{name}/{side}": tensor.contiguous() for name, side, tensor in sides if tensor is not None}


def _unflatten_directions(tensors: Mapping[str, Tensor]) -> dict[str, Directions]:
    """Directions by the name of the matrix; none where the tensors are named otherwise."""
    sides_by_name: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith("directions/"):
            name, _, side = key.removeprefix("directions/").rpartition("/")
            sides_by_name.setdefault(name, {})[side] = tensor
    return {name: Directions(**sides) for name, sides in sides_by_name.items()}


def _compute_products(learner: Learner, rows: Sequence[TrainingRow], sketch: GradientSketch) -> list[Tensor]:
    """Projected gradients of all rows, per matrix (rows, outputs, inputs), on the CPU."""
    products_by_matrix: list[list[Tensor]] = [[] for _ in sketch.matrices]
    for batch in token_batches([len(row.prompt) + len(row.target) for row in rows], BATCH_TOKENS):
        for matrix_index, product in enumerate(sketch.products(learner, [rows[i] for i in batch])):
            products_by_matrix[matrix_index].append(product.cpu())
    return [torch.cat(products) for products in products_by_matrix]


def _random_signs(size: int) -> Float[Tensor, "size probes"] | None:
    """Random signs, always the same."""
    if size <= INPUT_PROBES:
        return None
    generator = torch.Generator().manual_seed(size)
    return torch.randint(0, 2, (size, INPUT_PROBES), generator=generator).float() * 2 - 1


def _find_directions(columns: Float[Tensor, "size columns"], limit: int) -> Float[Tensor, "size side"]:
    """The left singular vectors of the largest singular values, all of them where there are no more than `limit`."""
    size, count = columns.shape
    if size <= count:
        return torch.linalg.eigh(columns @ columns.T).eigenvectors[:, -limit:].flip(1).contiguous()
    values, vectors = torch.linalg.eigh(columns.T @ columns)
    scale = values[-limit:].clamp_min(values[-1] * 1e-10).rsqrt()
    return (columns @ (vectors[:, -limit:] * scale)).flip(1).contiguous()
