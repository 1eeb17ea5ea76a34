"""Trainer for SFT as in TRL, steered: which rows are drawn, and the loss of each.

With `steering=None` it is TRL's own trainer, bit for bit, where no row says that a part of it is not learnt from
(`masks.py`). With steering, row numbers are attached before TRL prepares the data, the sampler draws, and each example's
loss is read off the forward pass that TRL makes anyway: the plain log-likelihood in nats, also where another loss is trained
(`loss_type="dft"`, label smoothing, a loss of your own).
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trl.trainer.sft_trainer import SFTTrainer

from mixwright.errors import InputError
from mixwright.records import SFTOutcome
from mixwright.steer.beside.files import loss_line
from mixwright.trainers.logprobs import capture_logprobs, output_at
from mixwright.trainers.masks import IGNORED, carries_masks, mask_labels, refuse_unprepared_masks
from mixwright.trainers.row_trainer import RowTrainer
from mixwright.trainers.steering import INDEX_COLUMN, SteeringConfig

_log = logging.getLogger("mixwright")


class SteeredSFTTrainer(RowTrainer, SFTTrainer):
    """TRL's `SFTTrainer` with one more argument.

    Args:
        *args: as `SFTTrainer` takes them.
        steering: None, True, the path of a plan.yaml, or a `SteeringConfig`.
        **kwargs: as `SFTTrainer` takes them.

    Raises:
        InputError: a plan that does not fit the data, or a setting that cannot be steered (packing, data that TRL does
            not prepare, images, streams, sampling strategies of transformers). A mask of a row that cannot be told in its
            tokens, with the reason.
    """

    OBJECTIVE, EXTENDED_METHODS = "sft", ("_prepare_dataset", "compute_loss")
    _has_seen_labels = False

    def __init__(self, *args: Any, steering: SteeringConfig | str | Path | bool | None = None, **kwargs: Any) -> None:
        refuse_unprepared_masks(inspect.signature(SFTTrainer.__init__).bind_partial(self, *args, **kwargs).arguments)
        super().__init__(*args, steering=steering, **kwargs)

    def _prepare_dataset(
        self, dataset: Any, processing_class: Any, args: Any, packing: bool, formatting_func: Any, dataset_name: str
    ) -> Any:
        prepared = super()._prepare_dataset(dataset, processing_class, args, packing, formatting_func, dataset_name)
        if not carries_masks(dataset):
            return prepared
        return mask_labels(prepared, self, args, packing=packing, formatted=formatting_func is not None)

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """As TRL's; in training each example's own loss is kept."""
        index = inputs.pop(INDEX_COLUMN, None)
        if not self.is_steered_batch(index):
            return super().compute_loss(model, inputs, *args, **kwargs)
        self._check_first_labels(inputs.get("labels"))
        with capture_logprobs(model, inputs.get("labels")) as outputs:
            loss = super().compute_loss(model, inputs, *args, **kwargs)
        output = output_at(outputs, 0)
        self.collect(index, -output.log_probs.sum(1), output.label_mask.sum(1))
        return loss

    def _check_first_labels(self, labels: Any) -> None:
        """Log how many tokens of the first batch are targets. Raises InputError where none is: the loss would look fine."""
        if self._has_seen_labels or labels is None:
            return
        self._has_seen_labels, targets = True, int((labels != IGNORED).sum())
        if not targets:
            remedy = "See which tokens the loss is taken on: mixwright preview TRAIN --model MODEL"
            raise InputError("at least one token with a loss in the first batch", "none", remedy)
        _log.info("first batch: the loss is taken on %d of %d tokens", targets, labels.numel())

    def make_outcome(self, row: tuple[str, str, float | None, int], numbers: Sequence[float]) -> SFTOutcome:
        """Return what an example showed."""
        nats, tokens = numbers
        return SFTOutcome(*row, nats / max(1.0, tokens), int(tokens))

    def make_line(self, outcomes: Sequence[Any], columns: Sequence[Sequence[float]]) -> dict[str, Any]:
        """Return the line of a step's examples."""
        return loss_line(outcomes)
