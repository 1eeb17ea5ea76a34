"""Training run of one arm through TRL: the settings every arm shares, the reward from the corpus's graders, the trainer."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixwright import catalog
from mixwright.corpus.timed_grades import TimedGrades
from mixwright.corpus.trainable import check_training
from mixwright.errors import InputError
from mixwright.learner.settings import cheap_settings
from mixwright.trainers.configs import make_config
from mixwright.trainers.rewards import text_of

if TYPE_CHECKING:
    from mixwright.config import MeasureConfig, TrainConfig
    from mixwright.contracts import Adapter, Branch
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner

Reward = Callable[..., list[float]]


def make_trainer(
    learner: Learner,
    train: Corpus,
    branch: Branch,
    settings: TrainConfig,
    measure: MeasureConfig,
    *,
    seed: int,
    folder: Path,
    drop_short_batches: bool = False,
    save_every: int = 0,
) -> Any:
    """A steered trainer for the first stage of the branch's plan, writing its files into `folder`.

    Args:
        learner: is trained.
        train: rows to train on.
        branch: plan, and what is done to rewards.
        settings: of training.
        measure: limit of the graders, which reward GRPO.
        seed: of data order, sampling and training noise.
        folder: gets the files.
        drop_short_batches: leave out a short batch at the end of each pass, which would give fewer rows smaller steps; GRPO
            has none.
        save_every: steps between checkpoints; 0 for none.

    Raises:
        InputError: a field that TRL's config does not know, or a row without a pair for DPO.
    """
    from mixwright.trainers.steering import SteeringConfig

    stage = branch.plan.stages[0]
    steering = SteeringConfig(branch.plan, folder, seed, permute_rewards=branch.permuted == "rewards")
    steering.reward_seconds = 0.0  # each answer has its own limit
    # The learning rate is constant and has no warm-up: a trial is a short stretch of a longer run, and a schedule that ends
    # within it would hide late damage. `train.settings` overrides every field here.
    shared = cheap_settings(learner.device) | {
        "output_dir": str(folder / "trainer"),
        "max_steps": stage.steps,
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": "constant",
        "seed": seed,
        "data_seed": seed,
        "logging_steps": max(1, stage.steps // 10),
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
    }
    if drop_short_batches and stage.objective != "grpo":
        shared["dataloader_drop_last"] = True
    if save_every:
        shared |= {"save_strategy": "steps", "save_steps": save_every, "save_total_limit": 1}
    common: dict[str, Any] = {"model": learner.model, "processing_class": learner.tokenizer, "steering": steering}
    config = make_config(stage.objective, settings, shared)
    if stage.objective == "grpo":
        return _grpo_trainer(train, measure, config, common, learner)
    common |= {"args": config, "train_dataset": _to_dataset(train, learner)}
    if stage.objective == "sft":
        from mixwright.trainers.sft import SteeredSFTTrainer

        return SteeredSFTTrainer(**common)
    from mixwright.trainers.dpo import SteeredDPOTrainer

    check_training("dpo", train)
    return SteeredDPOTrainer(**common)


def _to_dataset(train: Corpus, learner: Learner) -> Any:
    """The rows as TRL takes them, in the form in which the model is measured: the chat template, or plain text."""
    dataset = train.to_datasets()
    if learner.form.template is None and learner.form.system is None:
        return dataset
    from datasets import Dataset

    mixed = "use_json" if "Json" in str(dataset.features) else None
    return Dataset.from_list([learner.form.row(row) for row in dataset.to_list()], on_mixed_types=mixed)


def _grpo_trainer(
    train: Corpus, measure: MeasureConfig, args: Any, trainer_arguments: dict[str, Any], learner: Learner
) -> Any:
    from mixwright.trainers.grpo import SteeredGRPOTrainer

    if any(example.tools for example in train):
        raise InputError(
            "rows without tools for GRPO", "a column tools", "Train these rows by SFT, or leave the column out."
        )
    args.chat_template_kwargs = dict(learner.form.arguments)
    grades = TimedGrades(train, measure.grader_seconds, measure.slow_grader)
    reward = corpus_reward(train, grades, token_limit=args.max_completion_length, end_tokens=learner.end_ids)
    trainer = SteeredGRPOTrainer(
        args=args, train_dataset=_to_dataset(train, learner), reward_funcs=[reward], **trainer_arguments
    )
    grades.tell = functools.partial(_note_slow_grader, trainer)
    return trainer


def _note_slow_grader(trainer: Any, sentence: str) -> None:
    """Say that a grader took too long, to the log and in the branch's decisions."""
    logging.getLogger("mixwright").warning(sentence)
    trainer.steered.note(trainer.state.global_step, "grader too slow", sentence)


def add_adapter(
    learner: Learner, name: str, settings: TrainConfig, loaded_adapter: str | None
) -> tuple[TrainConfig, Adapter]:
    """Put an adapter on the learner's model; the settings with its learning rate, and the adapter.

    Args:
        learner: its model is wrapped.
        name: of the adapter.
        settings: of training, with the adapter's options.
        loaded_adapter: that the model was loaded with, as `model.adapter` says; None for none.

    Raises:
        InputError: an unknown adapter or option, or a model that has an adapter already.
    """
    if loaded_adapter is not None:
        remedy = "Leave out model.adapter or the adapter of the training."
        raise InputError(f"a model without an adapter, to train {name} on", "model.adapter", remedy)
    options = dict(settings.adapters.get(name, {}))
    rate = options.pop("learning_rate", settings.learning_rate)
    adapter = catalog.create("adapters", name, options)
    learner.model = adapter.wrap(learner.model)
    return replace(settings, learning_rate=rate), adapter


def corpus_reward(
    corpus: Corpus, grades: TimedGrades, *, token_limit: int | None = None, end_tokens: Collection[int] = ()
) -> Reward:
    """A TRL reward function: the grade of each completion by the grader of its example's task, 0..1, under a time limit.

    A completion of `token_limit` tokens that ends in none of `end_tokens` was cut, and is graded as measuring grades one.
    """
    row_index_by_id = {example.id: row for row, example in enumerate(corpus)}

    def correct(
        completions: list[Any], id: list[str], completion_ids: Sequence[Sequence[int]] | None = None, **_: Any
    ) -> list[float]:
        """Graded against the corpus's answer."""
        scores = []
        for place, (name, completion) in enumerate(zip(id, completions, strict=True)):
            tokens = [] if completion_ids is None else completion_ids[place]
            was_cut = token_limit is not None and len(tokens) >= token_limit and tokens[-1] not in end_tokens
            scores.append(grades.grade(corpus[row_index_by_id[name]], text_of(completion), cut=was_cut))
        return scores

    return correct
