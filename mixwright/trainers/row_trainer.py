"""Base of the SFT and DPO trainers: rows drawn one by one, and known past the collator.

A trainer of this kind prepares every row before training, so a pool index is the place of a prepared row. What a row
showed is collected at each micro-step, gathered over processes, and handed in before the optimiser steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather
from datasets import Dataset
from torch.utils.data import Sampler

from mixwright.errors import InputError
from mixwright.steer.beside.files import PAIR_NUMBERS
from mixwright.steer.beside.run import RunSteering
from mixwright.trainers.checks import refuse_settings
from mixwright.trainers.sampler import SteeredSampler
from mixwright.trainers.steered_trainer import SteeredTrainer, is_training
from mixwright.trainers.steering import INDEX_COLUMN, SteeringConfig, make_dataset_pool


class RowTrainer(SteeredTrainer):
    """Parent beside TRL's class; without a run it changes nothing."""

    def steer_rows(self, steering: SteeringConfig, dataset: Dataset, *, objective: str) -> RunSteering:
        """Put a run beside a trainer whose `train_dataset` TRL has prepared from `dataset`.

        Args:
            steering: as read by `read_steering`.
            dataset: with row numbers, as given to TRL.
            objective: sft or dpo.

        Raises:
            InputError: data that cannot be steered, or a plan that does not fit them.
        """
        refuse_settings(self.args, objective)
        prepared: Any = self.train_dataset
        if len(prepared) == 0:
            raise InputError("rows with a target after truncation", "none", "Raise max_length or change truncation_mode.")
        rows = list(prepared[INDEX_COLUMN])  # TRL may shuffle, and drops rows that truncation left without a target
        self._index_of_row = np.full(len(dataset), -1)
        self._index_of_row[rows] = np.arange(len(rows))
        self._collected: list[list[torch.Tensor]] = []
        self.data_collator = IndexCollator(self.data_collator)
        pool = make_dataset_pool(dataset, steering, rows)
        run = self.steer(steering, pool, dataset, objective=objective, beta=0.0, micro_steps=1)
        run.dropped = len(dataset) - len(rows)
        return run

    def is_steered_batch(self, index: torch.Tensor | None) -> bool:
        """Whether this batch is one of steered training, with row numbers."""
        return self.steered is not None and index is not None and is_training(self)

    def collect(self, index: torch.Tensor, *columns: torch.Tensor) -> None:
        """Keep what a micro-step showed of its rows: numbers of shape (rows,), gathered over processes in sampler order."""
        device = columns[0].device
        gathered: Any = gather((index.to(device), *(column.detach().float() for column in columns)))
        self._collected.append(list(gathered))

    def take_collected(self, step: int) -> tuple[list[int], list[list[float]]]:
        """Pool indices of the rows of the coming optimiser step, and the columns collected; none twice.

        Several processes pad the last batch of an epoch with rows seen before; they stand at its end and are left out.
        """
        if not self._collected:
            return [], []
        columns = [torch.cat(batches) for batches in zip(*self._collected, strict=True)]
        self._collected.clear()
        sampler = self.hooks.sampler
        steps = math.ceil(sampler.rows / sampler.batch_size)
        count = min(sampler.batch_size, sampler.rows - (step % steps) * sampler.batch_size)
        row_indices = self._index_of_row[columns[0][:count].cpu().numpy()].tolist()
        return row_indices, [column[:count].tolist() for column in columns[1:]]

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler | None:
        if self.steered is None:
            return super()._get_train_sampler(train_dataset)
        dataset: Any = self.train_dataset if train_dataset is None else train_dataset
        rows_per_micro_step = self._train_batch_size * self.args.world_size
        row_count = len(dataset)
        if self.args.dataloader_drop_last and row_count >= rows_per_micro_step:
            row_count -= row_count % rows_per_micro_step  # rows that the dataloader would drop are not drawn
        rows_per_step = rows_per_micro_step * self.args.gradient_accumulation_steps
        return self._register_sampler(
            SteeredSampler(self.steered.draws, row_count, batch_size=rows_per_step, whole_batches=False)
        )

    def begin_steering(self) -> None:
        """Forget what an interrupted step of an earlier call left behind."""
        super().begin_steering()
        self._collected.clear()


def keep_finite(outcomes: Sequence[Any]) -> list[Any]:
    """Those of losses or pairs whose numbers are all finite: what overflowed says nothing that could be learnt from."""
    numbers = ("loss", *PAIR_NUMBERS)

    def is_finite(outcome: Any) -> bool:
        return all(math.isfinite(getattr(outcome, name, None) or 0.0) for name in numbers)

    return [outcome for outcome in outcomes if is_finite(outcome)]


class IndexCollator:
    """Carries row numbers past TRL's collator.

    Args:
        collate: TRL's.
    """

    def __init__(self, collate: Any) -> None:
        self.collate = collate

    def __call__(self, examples: list[dict[str, Any]]) -> Any:
        """TRL's batch, with the row numbers of training examples added."""
        batch = self.collate([{key: value for key, value in row.items() if key != INDEX_COLUMN} for row in examples])
        if INDEX_COLUMN in examples[0]:
            batch[INDEX_COLUMN] = torch.tensor([row[INDEX_COLUMN] for row in examples])
        return batch
