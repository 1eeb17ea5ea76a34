"""Sketches of per-row gradients by factors: one batched backward pass, without the gradients of any weight being made.

The gradient of a row with respect to a weight matrix is the sum over its tokens of (gradient of the layer's output) x (input
of the layer). Both factors are projected by fixed matrices of random signs before the product is summed, so that products of
two sketches are those of the gradients on average. Weights are frozen meanwhile: the backward pass only goes through
activations. Vectors (norms) are left out; biases and tied embeddings are not.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from mixwright.errors import InputError
from mixwright.learner.batches import quiet

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner
    from mixwright.measure.scan_rows import ScanRow

TINY = 1e-30
"""Second moments below it count as this much."""


class Moments(NamedTuple):
    """Second moments of the gradient of one weight matrix: its rows' and columns' means, as factors of the whole."""

    outputs: Float[Tensor, " outputs"]
    """Mean over the inputs."""
    inputs: Float[Tensor, " inputs"]
    """Mean over the outputs."""


def moments_of(second: Float[Tensor, "outputs inputs"]) -> Moments:
    """Row and column means of Adam's `exp_avg_sq` of a weight matrix.

    Adam divides each gradient by the root of its own second moment, which cannot be done to factors. Of the product of these
    two vectors over their mean, the best guess of rank one, it can.
    """
    second = second.detach().float()
    return Moments(second.mean(1), second.mean(0))


def adam_moments(model: Any, optimizer: torch.optim.Optimizer) -> dict[str, Moments]:
    """Moments of every weight matrix of `model` that the optimiser has seen a gradient of, by the parameter's name."""
    found = {}
    for name, parameter in model.named_parameters():
        second = optimizer.state.get(parameter, {}).get("exp_avg_sq")
        if second is not None and second.dim() == 2:
            found[name] = moments_of(second)
    return found


def save_moments(path: Path, moments: Mapping[str, Moments]) -> None:
    """Write moments as safetensors, for the option `moments` of the column `sketch`."""
    from safetensors.torch import save_file

    tensors = {f"{name}/{side}": part.contiguous() for name, pair in moments.items() for side, part in pair._asdict().items()}
    save_file(tensors, path)


def load_moments(path: Path) -> dict[str, Moments]:
    """Read what `save_moments` wrote. Raises InputError when it is missing or not such a file."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        tensors = load_file(path)
        names = sorted({name.rpartition("/")[0] for name in tensors})
        return {name: Moments(tensors[f"{name}/outputs"], tensors[f"{name}/inputs"]) for name in names}
    except (OSError, SafetensorError, KeyError) as error:
        remedy = "Write it with mixwright.measure.gradient_sketch.save_moments."
        raise InputError("second moments in a safetensors file", str(error)[:120], remedy, file=path) from None


@dataclass
class _Block:
    """One weight matrix, tied modules together."""

    name: str
    outputs: Tensor
    """Projection of output gradients, (outputs, side)."""
    inputs: Tensor
    """Projection of inputs, (inputs, side)."""
    bias: Tensor | None
    """Projection of the constant input of the bias, (side,); None without a bias."""
    start: int
    """Place of its numbers among all."""

    @property
    def size(self) -> int:
        return self.outputs.shape[1] * self.inputs.shape[1]


@dataclass
class _Call:
    """What one batch has shown so far."""

    rows: int
    raw: Tensor
    """(rows, numbers of all blocks): sums of the products of factors."""
    owners: Tensor | None = None
    """Row of each place that the output layer sees."""
    spots: Tensor | None = None
    """Place of each of them within its row."""
    handles: list[Any] = field(default_factory=list)


class GradientSketch:
    """Projections of every trainable weight matrix of a model, and the hooks that collect the factors.

    Args:
        model: a causal language model; where some weights are frozen (PEFT), only the others are sketched.
        side: directions per side of a matrix; a side no longer than this is kept as it is.
        dims: numbers per row; what the blocks give beyond it is folded onto them with random signs.
        seed: of the projections.
        moments: by the parameter's name; the gradient is divided by their roots, as Adam does roughly.
    """

    def __init__(
        self, model: Any, *, side: int = 32, dims: int = 4096, seed: int = 0, moments: Mapping[str, Moments] | None = None
    ) -> None:
        self.model = model
        self._blocks: dict[int, _Block] = {}
        self._modules: list[tuple[nn.Module, _Block]] = []
        total, device = 0, next(model.parameters()).device
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        for module in model.modules():
            weight = getattr(module, "weight", None)
            if not isinstance(module, nn.Linear | nn.Embedding | Conv1D) or weight is None or not weight.requires_grad:
                continue
            block = self._blocks.get(id(weight))
            if block is None:
                block = _block(names[id(weight)], module, total, (side, seed), (moments or {}).get(names[id(weight)]))
                block.outputs, block.inputs = block.outputs.to(device), block.inputs.to(device)
                block.bias = block.bias.to(device) if block.bias is not None else None
                self._blocks[id(weight)] = block
                total += block.size
            self._modules.append((module, block))
        if not total:
            raise InputError("a model with weight matrices that train", "none", "Leave the column `sketch` out.")
        self.total = total
        """Numbers of all blocks together."""
        self.size = min(dims, total)
        """Numbers per row."""
        self._signs = _signs((total,), "fold", seed).to(device) if total > dims else None

    @contextlib.contextmanager
    def collecting(self, rows: int, places: Int[Tensor, " tokens"], width: int) -> Iterator[Callable[[], Tensor]]:
        """Collect the factors of one forward and backward pass; afterwards the function that is yielded gives the sketches.

        Args:
            rows: of the batch.
            places: of the flattened batch that the output layer sees.
            width: padded length of the batch.
        """
        head, call = self.model.get_output_embeddings(), _Call(rows, self._blank(rows))
        call.owners = places // width
        first = torch.searchsorted(call.owners, torch.arange(rows, device=places.device))
        call.spots = torch.arange(len(places), device=places.device) - first[call.owners]
        flags = [(parameter, parameter.requires_grad) for parameter in self.model.parameters()]
        try:
            for parameter, _ in flags:
                parameter.requires_grad_(False)
            for module, block in self._modules:
                call.handles.append(module.register_forward_hook(self._hook(call, block, chosen=module is head)))
            yield lambda: self._folded(call.raw)
        finally:
            for handle in call.handles:
                handle.remove()
            for parameter, trains in flags:
                parameter.requires_grad_(trains)

    def _blank(self, rows: int) -> Tensor:
        return torch.zeros(rows, self.total, device=next(self.model.parameters()).device)

    def _folded(self, raw: Float[Tensor, "rows numbers"]) -> Float[Tensor, "rows dims"]:
        if self._signs is None:
            return raw
        signed = raw * self._signs
        rest = -self.total % self.size
        return nn.functional.pad(signed, (0, rest)).view(len(raw), -1, self.size).sum(1)

    def _hook(self, call: _Call, block: _Block, *, chosen: bool) -> Callable[..., Tensor]:
        def forward(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
            embeds = isinstance(module, nn.Embedding)
            with torch.no_grad():
                if embeds:  # the factors of the tied output layer the other way round: the token is an output there
                    given = block.outputs[inputs[0]]
                else:
                    given = inputs[0].detach().float() @ block.inputs
                    given = given if block.bias is None else given + block.bias
            if not output.requires_grad:
                output = output.detach().requires_grad_(True)
            output.register_hook(lambda gradient: self._add(call, block, given, gradient, embeds=embeds, chosen=chosen))
            return output

        return forward

    def _add(
        self, call: _Call, block: _Block, given: Tensor, gradient: Tensor, *, embeds: bool, chosen: bool
    ) -> None:
        """Sum the products of the factors over the tokens of each row."""
        with torch.no_grad():
            taken = gradient.detach().float() @ (block.inputs if embeds else block.outputs)
            if chosen:
                given, taken = self._apart(call, given), self._apart(call, taken)
            left, right = (given, taken) if embeds else (taken, given)
            product = torch.bmm(left.transpose(1, 2), right).flatten(1)
            call.raw[:, block.start : block.start + block.size] += product

    def _apart(self, call: _Call, flat: Float[Tensor, "1 tokens side"]) -> Float[Tensor, "rows time side"]:
        """Places of a flat batch, row by row again."""
        assert call.owners is not None and call.spots is not None
        longest = int(call.spots.max()) + 1
        apart = flat.new_zeros(call.rows, longest, flat.shape[-1])
        apart[call.owners, call.spots] = flat[0]
        return apart


def sketched(learner: Learner, sketch: GradientSketch, rows: Sequence[ScanRow]) -> np.ndarray:
    """Sketches of the rows' gradients of the mean loss over their targets, float32 of shape (rows, dims).

    Parameters, their gradients and the model's mode are left as they were.
    """
    from mixwright.measure.scan_passes import right_padded, selected

    ids = right_padded([[*row.prompt, *row.target] for row in rows], learner.tokenizer.pad_token_id or 0)
    ids = ids.to(learner.device)
    width = ids.shape[1]
    spans = [torch.arange(len(row.target)) + i * width + len(row.prompt) - 1 for i, row in enumerate(rows)]
    places = torch.cat(spans).to(learner.device)
    weights = torch.cat([torch.full((len(row.target),), 1 / len(row.target)) for row in rows]).to(learner.device)
    options: dict[str, Any] = {"use_cache": False} if "past_key_values" in learner.accepts else {}
    with quiet(learner.model), selected(learner.model, places), sketch.collecting(len(rows), places, width) as found:
        with torch.enable_grad():
            logits = learner.model(input_ids=ids, **options).logits.flatten(0, 1).float()
            losses = nn.functional.cross_entropy(logits, ids.flatten()[places + 1], reduction="none")
            (losses * weights).sum().backward()
        return found().cpu().numpy()


def _block(
    name: str, module: nn.Module, start: int, shape: tuple[int, int], moments: Moments | None
) -> _Block:
    """Projections of one weight matrix, scaled by its moments where they are given."""
    weight: Any = module.weight
    outputs, inputs = weight.shape if not isinstance(module, Conv1D) else weight.shape[::-1]
    side, seed = shape
    left, right = _projection(outputs, side, f"{name} outputs", seed), _projection(inputs, side, f"{name} inputs", seed)
    if moments is not None:
        if len(moments.outputs) != outputs or len(moments.inputs) != inputs:
            expected = f"second moments of {name} with {outputs} outputs and {inputs} inputs"
            got = f"{len(moments.outputs)} and {len(moments.inputs)}"
            raise InputError(expected, got, "Give those of a warm-up of this model.")
        mean = moments.outputs.mean().clamp_min(TINY)
        left = left * (mean / moments.outputs.clamp_min(TINY)).sqrt()[:, None]
        right = right * moments.inputs.clamp_min(TINY).rsqrt()[:, None]
    has_bias = getattr(module, "bias", None) is not None
    bias = _signs((right.shape[1],), f"{name} bias", seed) / right.shape[1] ** 0.5 if has_bias else None
    return _Block(name, left, right, bias, start)


def _projection(size: int, side: int, name: str, seed: int) -> Tensor:
    """Random signs over the root of `side`; the identity where it is no smaller than what is projected."""
    return torch.eye(size) if size <= side else _signs((size, side), name, seed) / side**0.5


def _signs(shape: tuple[int, ...], name: str, seed: int) -> Tensor:
    """Fixed signs that depend on the name and the seed alone."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return torch.from_numpy(rng.integers(0, 2, shape).astype(np.float32) * 2 - 1)
