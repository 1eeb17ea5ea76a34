"""Dry run of a run: a few items measured and a few steps trained, timed, in a scratch folder that is thrown away.

It refuses what only the model, the graders and TRL can refuse. It ends within two minutes for a model of 100 million
parameters on two cores: what is timed is cut to a few items and rows.
"""

from __future__ import annotations

import importlib
import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from mixwright.config import MeasureConfig, ModelConfig, RunConfig, TrainConfig
from mixwright.corpus.trainable import has_pairs
from mixwright.errors import InputError
from mixwright.learner.bases import TINY_PREFIX
from mixwright.measure.fitting import training_probes
from mixwright.measure.free_answers import spread_items
from mixwright.records import Plan, Stage
from mixwright.run.progress import report_share
from mixwright.trial.arm_roles import make_branch

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner

MAX_ITEMS_SECONDS, MAX_STEPS_SECONDS = 10.0, 20.0
"""Longest that items are measured, and that steps are trained, beyond the first."""
TIMED_STEPS, WARM_STEPS, TIMED_ITEMS, TIMED_SAMPLES = 4, 3, 16, 4
"""Training steps, warm-up steps, items and samples of each that are timed, at most."""
LARGE_PARAMETERS, PROMPTS_IF_LARGE = 20_000_000, 4
"""Parameters from which a step is timed on fewer prompts, and how many: its time grows with them, then."""
STEP_GENERATION_SECONDS = 5.0
"""Longest that completions of a timed step should take to write, where the model is large; a prompt at least is taken."""
PROMPTS_LOOKED_AT = 2000
"""Prompts whose length is looked at."""


@dataclass(frozen=True, slots=True)
class DryRunJob:
    """One run to time."""

    config: RunConfig
    """Settings of the run."""
    relative_to: str
    """Folder that relative paths in it start from."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one process, and what they were timed on."""

    greedy_seconds: float
    """Of measuring one item with all its probes, without samples."""
    sample_seconds: float
    """That each sampled completion of an item adds."""
    step_seconds: float
    """Of one training step, canaries left out."""
    warmup_step_seconds: float = 0.0
    """Of one warm-up step of a tiny model."""
    load_seconds: float = 0.0
    """Of loading the model."""
    engine_seconds: float = 0.0
    """Of starting what writes completions, where that is not transformers."""
    setup_seconds: float = 0.0
    """Of making a trainer, and saving what it trained."""
    start_seconds: float = 0.0
    """Of a worker's imports."""
    timed_items: int = 0
    """Items that were measured."""
    timed_steps: int = 0
    """Training steps that were made."""
    workers: int = 0
    """Jobs that run at a time; 0 where nobody asked."""

    def item_seconds(self, samples: int) -> float:
        """Seconds of measuring one item with so many samples."""
        return self.greedy_seconds + samples * self.sample_seconds


def mean_timing(timings: Sequence[Timing]) -> Timing:
    """The mean of what several processes timed side by side."""
    values = {field.name: [getattr(timing, field.name) for timing in timings] for field in fields(Timing)}
    return Timing(**{name: type(numbers[0])(sum(numbers) / len(numbers)) for name, numbers in values.items()})


def time_dry_run(job: DryRunJob) -> Timing:
    """Measure a few items and train a few steps of the uniform arm. Runs in a worker; keeps nothing.

    Raises:
        InputError: the model cannot be loaded, prompts too long, a grader that fails, or settings that TRL refuses late.
    """
    from mixwright.corpus import read_corpus
    from mixwright.learner.load import plain_source
    from mixwright.learner.vllm_engine import run_engine

    began = perf_counter()
    config = job.config
    importlib.import_module(f"mixwright.trainers.{config.train.objective}")
    corpus = read_corpus(config.corpus, relative_to=Path(job.relative_to))
    loading_began = perf_counter()
    report_share(0.1)
    with tempfile.TemporaryDirectory(prefix="mixwright-") as scratch:
        learner, warmup_step_seconds = _make_learner(config.model, config.seed, corpus, Path(scratch) / "base")
        load_seconds = perf_counter() - loading_began - warmup_step_seconds * WARM_STEPS
        report_share(0.3)
        _check_lengths(config.measure, config.train, corpus, learner)
        model_folder = str(Path(scratch) / "base") if config.model.path == TINY_PREFIX else config.model.path
        with run_engine(config, learner, None if config.model.adapter else plain_source(model_folder)):
            engine_began = perf_counter()
            if learner.engine is not None:
                learner.engine.start(learner)
            engine_seconds = perf_counter() - engine_began
            greedy_seconds, sample_seconds, items = _time_measuring(config.measure, config.seed, corpus, learner)
        report_share(0.6)
        step_seconds, setup_seconds, steps = _time_training(config, corpus, learner, Path(scratch), sample_seconds)
    return Timing(
        greedy_seconds,
        sample_seconds,
        step_seconds,
        warmup_step_seconds,
        load_seconds,
        engine_seconds,
        setup_seconds,
        loading_began - began,
        items,
        steps,
    )


def _make_learner(model: ModelConfig, seed: int, corpus: Corpus, scratch: Path) -> tuple[Learner, float]:
    """The model, a tiny one without most of its warm-up, and seconds of one warm-up step."""
    from mixwright.learner.load import load_base, load_learner

    if model.path != TINY_PREFIX:
        return load_base(model, model.path), 0.0
    from mixwright.learner.bases import tokenizer_texts
    from mixwright.learner.tiny import build_tiny
    from mixwright.learner.warmup import warm_up

    train = corpus.select(split="train")
    learner = build_tiny(tokenizer_texts(train), model, seed)
    step_seconds = 0.0
    if model.warmup is not None and model.warmup.steps and model.warmup.source is None:
        short_warmup = replace(model.warmup, steps=min(WARM_STEPS, model.warmup.steps), cells={})
        start = perf_counter()
        warm_up(learner, train, short_warmup, seed=seed)
        step_seconds = (perf_counter() - start) / short_warmup.steps
    learner.save(scratch)  # DPO reads its reference model from a folder
    return load_learner(str(scratch)), step_seconds


def _check_lengths(measure: MeasureConfig, training: TrainConfig, corpus: Corpus, learner: Learner) -> None:
    """Whether prompts and completions fit into the context where something is generated. Raises InputError."""
    generation_lengths = [measure.max_new_tokens] if "competence" in measure.probes else []
    generation_lengths += [training.max_new_tokens] if training.objective == "grpo" else []
    if learner.context is None or not generation_lengths:
        return
    rows = itertools.islice(corpus, PROMPTS_LOOKED_AT)
    length, row = max(((len(learner.encode(e.prompt)), e) for e in rows), key=lambda p: p[0])
    if length + max(generation_lengths) > learner.context:
        got = f"{length:,} tokens at {row.source or row.id} and max_new_tokens {max(generation_lengths):,}"
        remedy = "Shorten or leave out long prompts, or lower max_new_tokens (measure and train)."
        raise InputError(f"prompts and completions of at most {learner.context:,} tokens together", got, remedy)


def _time_measuring(measure: MeasureConfig, seed: int, corpus: Corpus, learner: Learner) -> tuple[float, float, int]:
    """Seconds per item measured greedily, seconds that a sample of it adds, and items that were measured."""
    from mixwright.measure.stage import measure_learner

    held_out = corpus.select(split="eval")
    probes = tuple(name for name in measure.probes if name not in training_probes(measure))
    ids = [example.id for example in spread_items(list(held_out), TIMED_ITEMS)]

    def time_items(count: int, samples: int) -> float:
        start = perf_counter()
        settings = replace(measure, probes=probes, samples=samples)
        measure_learner(learner, held_out.select(ids=ids[:count]), settings, start=learner, seed=seed)
        return perf_counter() - start

    count, seconds_spent = min(2, len(ids)), 0.0
    while True:
        seconds_without_samples = time_items(count, 0)
        seconds_spent += seconds_without_samples
        if count == len(ids) or seconds_spent + seconds_without_samples * len(ids) / count > MAX_ITEMS_SECONDS:
            break
        count = len(ids)
    if not measure.samples:
        return seconds_without_samples / count, 0.0, count
    samples = min(TIMED_SAMPLES, measure.samples)
    sampled_items = count if seconds_without_samples * samples <= MAX_ITEMS_SECONDS else min(2, count)
    seconds_with_samples = time_items(sampled_items, samples)
    return (
        seconds_without_samples / count,
        max(seconds_with_samples - seconds_without_samples * sampled_items / count, 0.0) / sampled_items / samples,
        count,
    )


def _time_training(
    config: RunConfig, corpus: Corpus, learner: Learner, scratch: Path, sample_seconds: float
) -> tuple[float, float, int]:
    """Seconds per training step, seconds around them, and steps that were made.

    Args:
        config: of the run.
        corpus: its training rows.
        learner: is trained.
        scratch: an empty folder.
        sample_seconds: of one sampled completion, by which GRPO's prompts are chosen; 0 where it is not known.

    Raises:
        InputError: settings that TRL refuses only now.
    """
    from transformers import TrainerCallback

    from mixwright.trial.branch import as_settings_error
    from mixwright.trial.training import add_adapter, make_trainer

    step_ends: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            step_ends.append(perf_counter())
            report_share(0.7 + 0.29 * len(step_ends) / steps)
            control.should_training_stop = step_ends[-1] - start > MAX_STEPS_SECONDS

    train = corpus.select(split="train")
    if config.train.objective == "dpo" and not has_pairs(corpus):  # they are to be mined
        train = _make_up_pairs(train)
    tasks = sorted({cell.task for cell in corpus.cells()})
    steps = min(TIMED_STEPS, config.train.steps)
    prompts = timed_prompts(config.train, sum(values.numel() for values in learner.model.parameters()), sample_seconds)
    timed_settings = replace(config.train, prompts=prompts)
    stage = Stage("training", config.train.objective, steps, {task: 1 / len(tasks) for task in tasks})  # type: ignore[arg-type]
    branch = make_branch("uniform", Plan("dry_run", (stage,)), corpus)
    began = start = perf_counter()
    try:
        if config.train.adapter:
            timed_settings, _ = add_adapter(learner, config.train.adapter, timed_settings, config.model.adapter)
        trainer = make_trainer(learner, train, branch, timed_settings, config.measure, seed=config.seed, folder=scratch)
        trainer.add_callback(Clock())
        start = perf_counter()
        trainer.train()
    except Exception as error:
        raise as_settings_error(error, config.train.settings) from error
    first_step_seconds = (step_ends[0] if step_ends else perf_counter()) - start
    step_seconds = (
        (step_ends[-1] - step_ends[0]) / (len(step_ends) - 1) if len(step_ends) > 1 else first_step_seconds
    )  # the first pays for what is made once
    setup_seconds = start - began + max(first_step_seconds - step_seconds, 0.0)
    start = perf_counter()
    learner.model.save_pretrained(str(scratch / "saved"))
    return step_seconds * config.train.prompts / prompts, setup_seconds + perf_counter() - start, len(step_ends)


def timed_prompts(training: TrainConfig, parameter_count: int, sample_seconds: float) -> int:
    """Prompts of a step that is timed: fewer than a step has where the model is large, and at least one.

    Args:
        training: of the run.
        parameter_count: of the model.
        sample_seconds: of one sampled completion; 0 where it is not known.
    """
    if parameter_count < LARGE_PARAMETERS:
        return training.prompts
    prompts = min(training.prompts, PROMPTS_IF_LARGE)
    if training.objective == "grpo" and sample_seconds:
        prompts = min(prompts, int(STEP_GENERATION_SECONDS / (training.generations * sample_seconds)))
    return max(1, prompts)


def _make_up_pairs(train: Corpus) -> Corpus:
    """Rows with their targets as chosen and that of another row as rejected answer, which have the length of pairs."""
    from mixwright.corpus import Corpus

    rows = [row for row in itertools.islice(train, PROMPTS_LOOKED_AT) if row.prompt and (row.target or row.answer)]
    answers = [row.target or row.answer for row in rows]
    pairs = [replace(row, chosen=answers[at], rejected=answers[at - 1]) for at, row in enumerate(rows)]
    return Corpus.from_examples(pairs)
