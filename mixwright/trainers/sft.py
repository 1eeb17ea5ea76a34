"""SFT as in TRL, steered: which rows are drawn, and what each of them still costs.

With `steering=None` it is TRL's own trainer, bit for bit. With steering, row numbers are attached before TRL prepares the
data, the sampler draws, and each example's loss is read off the forward pass that TRL makes anyway. Canaries and drift
need answers that somebody judges; SFT has no judge, so they are off here and the log says so.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather
from torch.utils.data import Sampler
from trl.trainer.sft_trainer import SFTTrainer

from mixwright.records import Outcome
from mixwright.trainers._draws import SteeredSampler
from mixwright.trainers._refusals import SFT_NAMES, check_names, refuse_sft, refuse_sft_data
from mixwright.trainers._steering import INDEX, Steering, indexed, pool_of, read_steering
from mixwright.trainers._trainer import SteeredTrainer, is_training, measured


class SteeredSFTTrainer(SteeredTrainer, SFTTrainer):
    """TRL's `SFTTrainer` with one more argument.

    Args:
        *args: as `SFTTrainer` takes them.
        steering: None, True, the path of a plan.yaml, or a `Steering`.
        **kwargs: as `SFTTrainer` takes them.

    Raises:
        InputError: a plan that does not fit the data, or a setting that cannot be steered (packing, padding_free,
            data that TRL does not prepare, images, sampling strategies of transformers).
    """

    def __init__(self, *args: Any, steering: Steering | str | Path | bool | None = None, **kwargs: Any) -> None:
        wanted = read_steering(steering)
        if wanted is None:
            super().__init__(*args, **kwargs)
            return
        check_names(SFTTrainer, SFT_NAMES)
        bound = inspect.signature(SFTTrainer.__init__).bind(self, *args, **kwargs)
        refuse_sft(bound.arguments.get("args"))
        dataset = indexed(bound.arguments.get("train_dataset"), "SteeredSFTTrainer")
        bound.arguments["train_dataset"] = dataset
        super().__init__(*bound.args[1:], **bound.kwargs)
        refuse_sft_data(self)
        prepared: Any = self.train_dataset
        rows = list(prepared[INDEX])  # TRL shuffles, and drops rows that truncation left without a target
        self._place = np.full(len(dataset), -1)
        self._place[rows] = np.arange(len(rows))
        self._seen: list[torch.Tensor] = []
        collate: Any = self.data_collator
        self.data_collator = IndexCollator(collate)
        run = self.steer(wanted, pool_of(dataset, wanted, rows), objective="sft", beta=0.0, micro_steps=1)
        if len(rows) < len(dataset):
            run.dropped = len(dataset) - len(rows)

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """As TRL's; in training each example's own loss is kept."""
        index = inputs.pop(INDEX, None)
        if self.steered is None or index is None or not is_training(self):
            return super().compute_loss(model, inputs, *args, **kwargs)
        outputs: list[Any] = []
        whole: Any = self.model
        hook = whole.register_forward_hook(lambda module, given, output: outputs.append(output))
        try:
            loss = super().compute_loss(model, inputs, *args, **kwargs)
        finally:
            hook.remove()
        output = next((output for output in outputs if getattr(output, "log_probs", None) is not None), None)
        if output is None:
            raise RuntimeError("TRL's forward pass no longer shows log-probabilities; train with steering=None")
        nats = -output.log_probs.detach().sum(1)
        local = torch.stack([index.to(nats.device).double(), nats.double(), output.label_mask.sum(1).double()], dim=1)
        self._seen.append(gather(local))  # type: ignore[arg-type]
        return loss

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler | None:
        if self.steered is None:
            return super()._get_train_sampler(train_dataset)
        dataset: Any = self.train_dataset if train_dataset is None else train_dataset
        batch = self._train_batch_size * self.args.gradient_accumulation_steps * self.args.world_size
        return self._serve(SteeredSampler(self.steered.log, len(dataset), batch_size=batch, whole_batches=False))

    def _begin_steering(self, step: int) -> None:
        super()._begin_steering(step)
        if self.steered is not None and self.steered.batches == 0:
            self.steered.note(0, "canaries off", "SFT has no reward function that could judge an answer")

    def _hand_in(self, step: int) -> None:
        run = self.steered
        if run is None or not self._seen:
            return
        outcomes = []
        for row, nats, tokens in torch.cat(self._seen).tolist():
            place = int(self._place[int(row)])
            cell = run.pool.cells[run.pool.cell_of[place]]
            loss = nats / max(1.0, tokens)
            outcomes.append(Outcome(run.pool.ids[place], cell.task, cell.level, step, loss, int(tokens)))
        self._seen.clear()
        entropy = measured(self, self.args.gradient_accumulation_steps)[1]
        run.observe_losses(step, outcomes, entropy=entropy)


class IndexCollator:
    """Carries row numbers past TRL's collator.

    Args:
        collate: TRL's.
    """

    def __init__(self, collate: Any) -> None:
        self.collate = collate

    def __call__(self, examples: list[dict[str, Any]]) -> Any:
        """TRL's batch, with the row numbers of training examples added."""
        batch = self.collate([{key: value for key, value in row.items() if key != INDEX} for row in examples])
        if INDEX in examples[0]:
            batch[INDEX] = torch.tensor([row[INDEX] for row in examples])
        return batch
