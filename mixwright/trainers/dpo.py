"""Trainer for DPO as in TRL, steered: which pairs are drawn, and whether chosen answers gain or only rejected ones lose.

With `steering=None` it is TRL's own trainer, bit for bit. With steering, row numbers are attached before TRL prepares the
data, the sampler draws, and log-probabilities of chosen and rejected completions are read off the forward passes that TRL
makes anyway: the model's and the reference's, or the reference columns that were computed before training. DPO's beta is
the temperature of its loss; it is read for the margins and never moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from accelerate.utils import gather
from datasets import Dataset
from trl.trainer.dpo_trainer import DPOTrainer

from mixwright.records import PairOutcome
from mixwright.steer.beside.files import pair_line
from mixwright.trainers.logprobs import capture_logprobs, output_at
from mixwright.trainers.row_trainer import RowTrainer
from mixwright.trainers.steering import INDEX_COLUMN, SteeringConfig


class SteeredDPOTrainer(RowTrainer, DPOTrainer):
    """TRL's `DPOTrainer` with one more argument.

    The loss is kept per step, as TRL makes it. With `ld_alpha` log-probabilities are TRL's: tokens
    past the length of the shorter completion count `ld_alpha`. With `sync_ref_model` log-ratios are to the reference of the
    moment.

    Args:
        *args: as `DPOTrainer` takes them.
        steering: None, True, the path of a plan.yaml, or a `SteeringConfig`.
        **kwargs: as `DPOTrainer` takes them.

    Raises:
        InputError: a plan that does not fit the data, or a setting that cannot be steered (images, streams,
            sampling strategies of transformers).
    """

    OBJECTIVE, EXTENDED_METHODS = "dpo", ("compute_loss",)

    def steer_rows(self, steering: SteeringConfig, dataset: Dataset) -> None:
        """Put a run beside this trainer."""
        super().steer_rows(steering, dataset)
        self._losses: list[torch.Tensor] = []
        """Of the micro-steps since the last optimiser step, on this process."""

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """As TRL's; in training the log-probabilities of each pair are kept."""
        index = inputs.pop(INDEX_COLUMN, None)
        if not self.is_steered_batch(index):
            return super().compute_loss(model, inputs, *args, **kwargs)
        reference = self.model if self.ref_model is None else self.ref_model
        mask = inputs["completion_mask"]
        labels = inputs["input_ids"].masked_fill(mask == 0, -100)
        with capture_logprobs(model, labels) as policy_outputs, capture_logprobs(reference, labels) as reference_outputs:
            loss = super().compute_loss(model, inputs, *args, **kwargs)
        # The reference pass comes after the model's own; with adapters both go through the same module.
        pair = completion_logprobs(output_at(policy_outputs, 0).log_probs, mask, self.ld_alpha)
        if self.precompute_ref_logps:
            reference_pair = (inputs["ref_chosen_logps"], inputs["ref_rejected_logps"])
        else:
            reference_pair = completion_logprobs(output_at(reference_outputs, -1).log_probs, mask, self.ld_alpha)
        tokens = mask[:, 1:].sum(1).view(2, -1).sum(0)
        self.collect(index, *pair, *reference_pair, tokens)
        self._losses.append(loss.detach().float())
        return loss

    def make_outcome(self, row: tuple[str, str, float | None, int], numbers: Sequence[float]) -> PairOutcome:
        """Return what a pair showed."""
        chosen, rejected, chosen_base, rejected_base, _ = numbers
        return PairOutcome(*row, chosen, rejected, chosen_base, rejected_base, self.beta)

    def make_line(self, outcomes: Sequence[Any], columns: Sequence[Sequence[float]]) -> dict[str, Any]:
        """Return the line of a step's pairs."""
        losses: Any = gather(torch.stack(self._losses))
        self._losses.clear()
        return pair_line(outcomes, losses.mean().item()) | {"tokens": int(sum(columns[-1]))}

    def begin_steering(self) -> None:
        """Forget what an interrupted step of an earlier call left behind."""
        self._losses.clear()
        super().begin_steering()


def completion_logprobs(
    log_probs: torch.Tensor, completion_mask: torch.Tensor, ld_alpha: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability of each chosen and each rejected completion, nats, as TRL's loss sums it.

    Args:
        log_probs: (2 x pairs, time): of every next token, 0 outside completions, chosen first; virtual tokens of
            prompt-learning adapters may stand in front.
        completion_mask: (2 x pairs, time + 1): 1 at completion tokens.
        ld_alpha: weight of tokens past the shorter completion's length (LD-DPO); None: 1.
    """
    mask = completion_mask[:, 1:]
    log_probs = log_probs[:, -mask.shape[1] :].detach()
    if ld_alpha is not None:
        shorter = torch.minimum(*mask.sum(1).chunk(2)).repeat(2)
        log_probs = torch.where(mask.cumsum(1) > shorter[:, None], ld_alpha * log_probs, log_probs)
    chosen, rejected = log_probs.sum(1).chunk(2)
    return chosen, rejected
