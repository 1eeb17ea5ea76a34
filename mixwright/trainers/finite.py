"""Guard that stops a run at the first loss, gradient or weight that is not finite, before it is trained on or saved.

The losses of a step and its gradients are read before the optimiser moves anything. The norm that the trainer itself took of
all gradients stands for them, so that they are read once. Weights are read before completions are generated with them and
before a save, so that no checkpoint that looks whole has weights that are no numbers; between saves the loss of the next
step shows them. Under a loss scaler overflows are the scaler's to handle: a step is looked at through the weights alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import Tensor

from mixwright.errors import InputError
from mixwright.records import Decision

if TYPE_CHECKING:
    from mixwright.steer.beside.run import RunSteering

REMEDY = (
    "a lower learning rate, a smaller max_grad_norm, or bf16 or float32 instead of float16. Check the rows of that step, too"
)


class FiniteGuard:
    """Looks at one run.

    Args:
        run: whose end is written down.
        last_whole_checkpoint: the newest checkpoint that can be resumed, of the given step or an earlier one; None when
            there is none.
    """

    def __init__(self, run: RunSteering, last_whole_checkpoint: Callable[[int], Path | None]) -> None:
        self.run, self.last_whole_checkpoint = run, last_whole_checkpoint
        self.losses: list[Tensor] = []
        """Of the micro-steps since the last optimiser step; nothing is read from the device before it."""
        self.gradient_norm: object = None
        """Norm that the trainer took of all gradients of this step."""

    def check_step(self, step: int, optimizer: Any) -> None:
        """Before the optimiser moves anything. Raises InputError when a loss or a gradient of the step is not finite."""
        losses, self.losses = self.losses, []
        norm, self.gradient_norm = self.gradient_norm, None
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        has_scaler = getattr(optimizer, "scaler", None) is not None
        if losses and not bool(torch.isfinite(torch.stack([loss.float() for loss in losses])).all()):
            if not has_scaler or not all_finite(parameters):
                self.stop(step, "loss", "the weights were not updated with it")
        elif not has_scaler and not is_finite_norm(norm) and not all_finite(parameter.grad for parameter in parameters):
            self.stop(step, "gradient", "the weights were not updated with it", last_good_step=step)

    def check_weights(self, step: int, model: Any) -> None:
        """Raises InputError when a weight that is trained is not finite."""
        if not all_finite(parameter for parameter in model.parameters() if parameter.requires_grad):
            self.stop(step, "weight", "no further step was made and no checkpoint saved")

    def stop(self, step: int, quantity: str, state: str, *, last_good_step: int | None = None) -> NoReturn:
        """Write down the end of the run and raise InputError.

        Args:
            step: optimiser steps done.
            quantity: was no finite number.
            state: of the weights.
            last_good_step: last step after which the weights gave finite losses; None is the one before, because nothing
                else shows that weights are good.
        """
        folder = self.last_whole_checkpoint(step - 1 if last_good_step is None else last_good_step)
        advice = "There is no earlier checkpoint: start again with"
        if folder is not None:
            advice = f"Resume from {folder}, the last complete checkpoint with finite losses, with"
        # resuming with True reads the name: what is newer is passed over
        name = folder.name if folder is not None else ""
        self.run.log([Decision(step, "not finite", None, name, f"a {quantity} is not finite; {state}")])
        self.run.write()
        got = f"a {quantity} that is not finite; {state}"
        raise InputError(f"finite numbers at step {step}", got, f"{advice} {REMEDY}.")


def is_finite_norm(norm: object) -> bool:
    """Whether this is a norm, and finite; False for what is none, and for one that is spread over processes."""
    return type(norm) in (float, Tensor) and math.isfinite(float(norm))  # type: ignore[arg-type]


def all_finite(tensors: Iterable[Tensor | None]) -> bool:
    """Whether every entry is a finite number; what has no floating point is left out.

    The norms of all tensors of a kind are one fused call and one number read from the device, and where that is finite so
    is every entry; else each is looked at. Of tensors spread over processes this process's part is read.
    """
    by_kind: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
    for tensor in tensors:
        local: Any = tensor.to_local() if hasattr(tensor, "to_local") else tensor  # type: ignore[union-attr]
        if local is not None and local.is_floating_point() and not local.is_sparse:
            by_kind.setdefault((local.device, local.dtype), []).append(local.detach())
    return all(_norm(group) < math.inf or all(bool(torch.isfinite(t).all()) for t in group) for group in by_kind.values())


def _norm(tensors: Sequence[Tensor]) -> float:
    """Largest Euclidean norm; NaN or infinite where an entry is, and where squares overflow."""
    norms = torch._foreach_norm(list(tensors), 2, torch.float32)  # pyright: ignore[reportPrivateImportUsage]
    return float(torch.stack(list(norms)).max())
