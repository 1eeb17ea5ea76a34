"""Dry run of a run: a few items measured and a few steps trained, timed, in a scratch folder that is thrown away.

It refuses what only the model, the graders and TRL can refuse, and tells how many minutes each stage will take.
"""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from mixwright import catalog
from mixwright.config import RunConfig
from mixwright.corpus.trainable import has_pairs
from mixwright.errors import InputError, join_some
from mixwright.learner.bases import TINY_PREFIX
from mixwright.records import Plan, Stage, from_data
from mixwright.runs import RunFolder
from mixwright.trial.arm_roles import arms_in, arms_of, branch_of
from mixwright.workers.local import count_cores

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner

SECONDS = 6.0
"""Longest that items are measured, and that steps are trained, beyond the first."""
STEPS, WARM, ITEMS = 4, 3, 8
"""Training steps, warm-up steps and items that are timed, at most."""
PROMPTS = 2000
"""Prompts whose length is looked at."""
EVALUATED = 128
"""Completions of an evaluation on the way."""


@dataclass(frozen=True, slots=True)
class DryRunJob:
    """One run to time; plain data."""

    config: Mapping[str, Any]
    """A `RunConfig` as data."""
    base: str
    """Folder that relative paths in it start from."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one process, and what they were timed on."""

    item: float
    """Of measuring one item with all its probes."""
    step: float
    """Of one training step, canaries left out."""
    warm: float = 0.0
    """Of one warm-up step of a tiny model."""
    items: int = 0
    """Items that were measured."""
    steps: int = 0
    """Training steps that were made."""


def time_dry_run(job: DryRunJob) -> Timing:
    """Measure a few items and train a few steps of the uniform arm. Runs in a worker; keeps nothing.

    Raises:
        InputError: the model cannot be loaded, prompts too long, a grader that fails, or settings that TRL refuses late.
    """
    from mixwright.corpus import read_corpus

    config = from_data(RunConfig, dict(job.config))
    corpus = read_corpus(config.corpus, base=Path(job.base))
    with tempfile.TemporaryDirectory(prefix="mixwright-") as scratch:
        learner, warm = _learner(config, corpus, Path(scratch) / "base")
        _check_lengths(config, corpus, learner)
        item, items = _measuring(config, corpus, learner)
        step, steps = _training(config, corpus, learner, Path(scratch))
    return Timing(item, step, warm, items, steps)


def _learner(config: RunConfig, corpus: Corpus, scratch: Path) -> tuple[Learner, float]:
    """The model, a tiny one without most of its warm-up, and seconds of one warm-up step."""
    from mixwright.learner.load import load_base, load_learner

    if config.model.path != TINY_PREFIX:
        return load_base(config.model, config.model.path), 0.0
    from mixwright.learner.bases import tokenizer_texts
    from mixwright.learner.tiny import build_tiny
    from mixwright.learner.warmup import warm_up

    train = corpus.select(split="train")
    learner = build_tiny(tokenizer_texts(train), config.model, config.seed)
    each = 0.0
    if config.model.warmup is not None and config.model.warmup.steps and config.model.warmup.source is None:
        few = replace(config.model.warmup, steps=min(WARM, config.model.warmup.steps), cells={})
        start = perf_counter()
        warm_up(learner, train, few, seed=config.seed)
        each = (perf_counter() - start) / few.steps
    learner.save(scratch)  # DPO reads its reference model from a folder
    return load_learner(str(scratch)), each


def _check_lengths(config: RunConfig, corpus: Corpus, learner: Learner) -> None:
    """Whether prompts and completions fit into the context where something is generated. Raises InputError."""
    generated = [config.measure.max_new_tokens] if "competence" in config.measure.probes else []
    generated += [config.train.max_new_tokens] if config.train.objective == "grpo" else []
    if learner.context is None or not generated:
        return
    length, row = max(((len(learner.encode(e.prompt)), e) for e in itertools.islice(corpus, PROMPTS)), key=lambda p: p[0])
    if length + max(generated) > learner.context:
        got = f"{length:,} tokens at {row.source or row.id} and max_new_tokens {max(generated):,}"
        remedy = "Shorten or leave out long prompts, or lower max_new_tokens (measure and train)."
        raise InputError(f"prompts and completions of at most {learner.context:,} tokens together", got, remedy)


def _measuring(config: RunConfig, corpus: Corpus, learner: Learner) -> tuple[float, int]:
    """Seconds per item, and items that were measured."""
    from mixwright.measure.stage import measure_learner

    held_out = corpus.select(split="eval")
    probes = tuple(name for name in config.measure.probes if name not in _training_probes(config))
    ids, began, each = [example.id for example in held_out], perf_counter(), 0.0
    count = 2
    while True:
        own = held_out.select(ids=ids[:count])
        start = perf_counter()
        measure_learner(learner, own, replace(config.measure, probes=probes), start=learner, seed=config.seed)
        now = perf_counter()
        each = (now - start) / len(own)
        if count >= min(ITEMS, len(ids)) or now - began + each * ITEMS > SECONDS:
            return each, len(own)
        count = ITEMS


def _training_probes(config: RunConfig) -> tuple[str, ...]:
    """Probes that train copies of the model: what they cost, and need, does not follow from a few items."""
    return tuple(name for name in config.measure.probes if catalog.load("probes", name).TRAINS)


def _training(config: RunConfig, corpus: Corpus, learner: Learner, scratch: Path) -> tuple[float, int]:
    """Seconds per training step, and steps that were made. Raises InputError for settings that TRL refuses only now."""
    from transformers import TrainerCallback

    from mixwright.trial.branch import name_train_settings
    from mixwright.trial.training import make_trainer

    ends: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            ends.append(perf_counter())
            control.should_training_stop = ends[-1] - start > SECONDS

    train = corpus.select(split="train")
    if config.train.objective == "dpo" and not has_pairs(corpus):  # they are to be mined
        train = _any_pairs(train)
    tasks = sorted({cell.task for cell in corpus.cells()})
    steps = min(STEPS, config.train.steps)
    stage = Stage("training", config.train.objective, steps, {task: 1 / len(tasks) for task in tasks})  # type: ignore[arg-type]
    branch = branch_of("uniform", Plan("dry_run", (stage,)), corpus)
    start = perf_counter()
    try:
        trainer = make_trainer(learner, train, branch, config, seed=config.seed, folder=scratch)
        trainer.add_callback(Clock())
        start = perf_counter()
        trainer.train()
    except Exception as error:
        raise name_train_settings(error, config) from error
    if len(ends) > 1:  # the first step pays for what is made once
        return (ends[-1] - ends[0]) / (len(ends) - 1), len(ends)
    return (ends[0] if ends else perf_counter()) - start, len(ends)


def _any_pairs(train: Corpus) -> Corpus:
    """Rows with their targets as chosen and that of another row as rejected answer, which have the length of pairs."""
    from mixwright.corpus import Corpus

    rows = [row for row in itertools.islice(train, PROMPTS) if row.prompt and (row.target or row.answer)]
    said = [row.target or row.answer for row in rows]
    made = [replace(row, chosen=said[at], rejected=said[at - 1]) for at, row in enumerate(rows)]
    return Corpus.from_examples(made)


def foretold_minutes(config: RunConfig, corpus: Corpus, timing: Timing, folder: RunFolder) -> list[tuple[str, float]]:
    """(stage, minutes) of a run that begins now. Nulls, which run for a lever that helps, are left out."""
    from mixwright.learner.bases import bases_of

    measure, train, trial = config.measure, config.train, config.trial
    held_out = corpus.select(split="eval")
    items = sum(min(cell.count, measure.items) for cell in held_out.cells())
    bases, arms = len(bases_of(config, folder)), arms_in(config, corpus, folder)
    workers = trial.workers or count_cores()
    after = items * timing.item
    on_the_way = 0.0
    if train.objective == "grpo" and trial.progress_every:
        on_the_way = (1 + math.ceil(train.steps / trial.progress_every)) * EVALUATED * timing.item / (1 + measure.samples)
    trained = len(arms.first) - 1
    branches = trial.seeds * (after + trained * (train.steps * timing.step + on_the_way + after))
    warmup = config.model.warmup
    warm = warmup.steps * timing.warm if warmup is not None else 0.0
    parts = [
        ("warm-up", bases * warm / min(workers, bases)),
        ("measure", bases * after / min(workers, bases)),
        ("trial", branches / min(workers, trial.seeds * len(arms.first))),
    ]
    return [(name, seconds / 60) for name, seconds in parts if seconds]


def format_dry_run(parts: Sequence[tuple[str, float]], config: RunConfig, timing: Timing) -> str:
    """The minutes for people, and what was timed."""

    def about(value: float) -> str:
        return f"{value:.0f}" if value >= 10 else f"{max(value, 0.1):.1f}"

    arms = arms_of(config.trial)
    shown = [f"{name} {about(value)}" for name, value in parts]
    shape = f"({len(arms.first)} arms x {config.trial.seeds} seeds)"
    whole = about(sum(value for _, value in parts))
    probes = _training_probes(config)
    left_out = f"nulls and what the probe{'s' * (len(probes) > 1)} {join_some(probes)} will train" if probes else "nulls"
    return (
        f"about {whole} minutes: {', '.join(shown)} {shape}, without {left_out}. Timed here, in one process: {timing.items} "
        f"items at {timing.item:.2g} s each and {timing.steps} training steps at {timing.step:.2g} s each"
    )
