"""Base of the SFT and DPO trainers: rows drawn one by one, and known past the collator.

A trainer of this kind prepares every row before training, so a pool index is the place of a prepared row. What a row
showed is collected at each micro-step, gathered over processes, and handed in before the optimiser steps.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather
from datasets import Dataset
from torch.utils.data import Sampler

from mixwright.errors import InputError
from mixwright.records import PairOutcome, SFTOutcome
from mixwright.steer.beside.files import PAIR_NUMBERS
from mixwright.trainers.sampler import SteeredSampler
from mixwright.trainers.steered_trainer import SteeredTrainer, is_training
from mixwright.trainers.steering import INDEX_COLUMN, SteeringConfig, make_dataset_pool


class RowTrainer(SteeredTrainer):
    """Parent beside TRL's class; without a run it changes nothing."""

    def steer_rows(self, steering: SteeringConfig, dataset: Dataset) -> None:
        """Put a run beside a trainer whose `train_dataset` TRL has prepared from `dataset`."""
        prepared: Any = self.train_dataset
        if len(prepared) == 0:
            raise InputError("rows with a target after truncation", "none", "Raise max_length or change truncation_mode.")
        rows = list(prepared[INDEX_COLUMN])  # TRL may shuffle, and drops rows that truncation left without a target
        self._index_of_row = np.full(len(dataset), -1)
        self._index_of_row[rows] = np.arange(len(rows))
        self._collected: list[list[torch.Tensor]] = []
        self.data_collator = functools.partial(collate_with_index, self.data_collator)
        run = self.steer(steering, make_dataset_pool(dataset, steering, rows), dataset, beta=0.0, micro_steps=1)
        run.dropped = len(dataset) - len(rows)

    def is_steered_batch(self, index: torch.Tensor | None) -> bool:
        """Whether this batch is one of steered training, with row numbers."""
        return self.steered is not None and index is not None and is_training(self)

    def collect(self, index: torch.Tensor, *columns: torch.Tensor) -> None:
        """Keep what a micro-step showed of its rows: numbers of shape (rows,), gathered over processes in sampler order."""
        device = columns[0].device
        gathered: Any = gather((index.to(device), *(column.detach().float() for column in columns)))
        self._collected.append(list(gathered))

    def hand_in(self, step: int) -> None:
        """Hand the rows of the coming step to the run, none twice.

        Several processes pad the last batch of an epoch with rows seen before; they stand at its end and are left out.
        """
        run = self.steered
        if run is None or not self._collected:
            return
        sampler = self.hooks.sampler
        steps = math.ceil(sampler.rows / sampler.batch_size)
        count = min(sampler.batch_size, sampler.rows - (step % steps) * sampler.batch_size)
        index, *columns = (torch.cat(batches)[:count] for batches in zip(*self._collected, strict=True))
        self._collected.clear()
        columns, outcomes = [column.tolist() for column in columns], []
        for row, *numbers in zip(self._index_of_row[index.cpu().numpy()].tolist(), *columns, strict=True):
            cell = run.pool.cells[run.pool.cell_of[row]]
            outcomes.append(self.make_outcome((run.pool.ids[row], cell.task, cell.level, step), numbers))
        finite_outcomes = keep_finite(outcomes)
        run.observe_rows(step, finite_outcomes, len(outcomes), self.make_line(finite_outcomes, columns))

    def make_outcome(self, row: tuple[str, str, float | None, int], numbers: Sequence[float]) -> SFTOutcome | PairOutcome:
        """Return what a row (id, task, level, step) showed, of which these numbers were collected."""
        raise NotImplementedError

    def make_line(self, outcomes: Sequence[Any], columns: Sequence[Sequence[float]]) -> dict[str, Any]:
        """Return the line of a step with these outcomes; `columns` are all numbers that were collected, row by row."""
        raise NotImplementedError

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
    names = ("loss", *PAIR_NUMBERS)
    return [one for one in outcomes if all(math.isfinite(getattr(one, name, None) or 0.0) for name in names)]


def collate_with_index(collate: Callable[[list[dict[str, Any]]], Any], examples: list[dict[str, Any]]) -> Any:
    """TRL's batch, by its collator, with the row numbers of training examples added."""
    batch = collate([{key: value for key, value in row.items() if key != INDEX_COLUMN} for row in examples])
    if INDEX_COLUMN in examples[0]:
        batch[INDEX_COLUMN] = torch.tensor([row[INDEX_COLUMN] for row in examples])
    return batch
