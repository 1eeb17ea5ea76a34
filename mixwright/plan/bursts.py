"""Short trainings on the rows of one group at a time, and the success of all groups after each.

Every training starts from a copy of the model with a new LoRA adapter and a fresh optimiser. A group is trained on twice per
seed: on its rows as they are, and with their answers dealt out among them.

Source: one-task trainings and their effect on other tasks, 2507.14783; dealt-out answers as the null are ours.
Unit: greedy success, a share of items.
Cost: `steps` times `batch` rows and one greedy answer to every item, twice per group and seed.
Blind spot: so few steps show what rows teach at once; a long training teaches facts that these do not, and does more damage.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.measure.passes import Passes
from mixwright.plan.teaching import Part, Reading, judge_teaching
from mixwright.records import Example, Teaching, plain

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

MIN_ROWS, MAX_SEEDS, MAX_TOKENS = 16, 5, 1024
"""Distinct rows below which a group is left out, trainings of a group at most, and tokens of a row at most."""


@dataclass(frozen=True, slots=True)
class BurstSizes:
    """Sizes of the experiment."""

    steps: int = 24
    """Optimiser steps of a training."""
    batch: int = 8
    """Rows of a step."""
    rows: int = 32
    """Distinct rows of a group to train on, at most; never more than half of them."""
    items: int = 48
    """Other items of a group that are read, at most."""
    rank: int = 16
    """Of the LoRA adapter; 0 trains all weights."""
    learning_rate: float = 1.5e-3
    """Reached after five steps."""


@dataclass(frozen=True, slots=True)
class Split:
    """Rows of one group."""

    trained: tuple[Example, ...]
    """To train on."""
    unseen: tuple[Example, ...]
    """Not trained on."""


def split_groups(
    rows: Iterable[Example], sizes: BurstSizes, fits: Callable[[Example], bool] = lambda _: True
) -> tuple[dict[str, Split], list[str]]:
    """Split the rows of each task, those with most rows first; return also tasks with fewer than `MIN_ROWS` prompts.

    Args:
        rows: with targets or answers; others are skipped.
        sizes: how many rows are taken.
        fits: whether a row is short enough; asked of no more rows than are needed.
    """
    by_task: dict[str, dict[str, Example]] = {}
    for row in rows:
        if row.target is not None or row.answer is not None:
            by_task.setdefault(row.task, {}).setdefault(plain(row.prompt).strip().casefold(), row)
    splits, left_out = dict[str, Split](), list[str]()
    for task, found in sorted(by_task.items(), key=lambda item: (-len(item[1]), item[0])):
        shuffled = filter(fits, Random(0).sample(list(found.values()), len(found)))
        taken = list(itertools.islice(shuffled, 2 * max(sizes.rows, sizes.items)))
        count = min(sizes.rows, len(taken) // 2)
        if len(taken) < MIN_ROWS:
            left_out.append(task)
        else:
            splits[task] = Split(tuple(taken[:count]), tuple(taken[count : count + sizes.items]))
    return splits, left_out


def deal_out(rows: Sequence[Example], rng: np.random.Generator) -> list[Example]:
    """Return the rows with each other's answers, drawn at random."""
    order = rng.permutation(len(rows)).tolist()
    return [
        replace(row, target=rows[other].target, answer=rows[other].answer) for row, other in zip(rows, order, strict=True)
    ]


def watch_bursts(
    learner: Learner,
    corpus: Corpus,
    config: MeasureConfig,
    *,
    others: Mapping[str, Sequence[Example]] | None = None,
    ungraded: Corpus | None = None,
    sizes: BurstSizes | None = None,
    seconds: float = math.inf,
    say: Callable[[str], None] = lambda _: None,
) -> Teaching:
    """Train on each task of a corpus in turn, and judge what its rows teach and what they cost other tasks.

    Args:
        learner: the model; it is copied, never changed.
        corpus: training rows, with a grader for each task.
        config: length of the answers.
        others: further groups that are read and not trained on; their tasks are in the corpus.
        ungraded: training rows of tasks without a grader; what they cost others is read.
        sizes: of the experiment.
        seconds: after which no further training begins; the first one always does.
        say: told what is done.
    """
    from mixwright.learner.warmup import warmup_tokens

    sizes, others = sizes or BurstSizes(), others or {}
    read_only = {row.task for rows in others.values() for row in rows}

    def fits(row: Example) -> bool:
        return sum(map(len, warmup_tokens(learner, row))) <= min(learner.context or MAX_TOKENS, MAX_TOKENS)

    rows = itertools.chain(corpus.select(tasks=set(corpus.tasks) - read_only), ungraded or ())
    splits, left_out = split_groups(rows, sizes, fits)
    parts = {part: rows for part, rows in list_parts(splits, others).items() if rows and rows[0].task in corpus.tasks}
    trained = {task: split.trained for task, split in splits.items()}
    before, runs = run_bursts(learner, corpus, trained, parts, config, sizes, seconds=seconds, say=say)
    left_out += [task for task in splits if not runs[task, False]]
    rows_of = {task: len(rows) for task, rows in trained.items()}
    return judge_teaching(before, runs, rows_of, steps=sizes.steps, batch=sizes.batch, left_out=left_out)


def run_bursts(
    learner: Learner,
    corpus: Corpus,
    trained: Mapping[str, Sequence[Example]],
    parts: Mapping[Part, Sequence[Example]],
    config: MeasureConfig,
    sizes: BurstSizes,
    *,
    seeds: Sequence[int] = range(MAX_SEEDS),
    seconds: float = math.inf,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[Reading, dict[tuple[str, bool], list[Reading]]]:
    """Return the reading before, and those after each training, of true and of dealt-out rows.

    Args:
        learner: the model.
        corpus: whose graders judge.
        trained: group -> rows to train on.
        parts: items to read.
        config: length of the answers.
        sizes: of a training.
        seeds: of the trainings; all groups are trained on once before the second begins.
        seconds: after which no further training begins.
        say: told what is done.
    """
    config, began, longest = replace(config, samples=0, decoding="greedy"), monotonic(), 0.0
    before = _read(learner, learner.model, corpus, parts, config)
    runs: dict[tuple[str, bool], list[Reading]] = {(group, dealt): [] for group in trained for dealt in (False, True)}
    for seed, (group, own) in itertools.product(seeds, trained.items()):
        started = monotonic()
        if longest and started - began + longest > seconds:
            break
        say(f"teaching: training {len(runs[group, False]) + 1} on {group}")
        read = {part: rows for part, rows in parts.items() if part[0] == group or part[1] == "unseen"}
        for dealt in (False, True):
            rows = deal_out(own, np.random.default_rng(seed)) if dealt else list(own)
            model = _train(learner, rows, sizes, seed)
            runs[group, dealt].append(_read(learner, model, corpus, read, config))
            del model
        longest = max(longest, monotonic() - started)
    return before, runs


def list_parts(splits: Mapping[str, Split], others: Mapping[str, Sequence[Example]]) -> dict[Part, Sequence[Example]]:
    """Return what is read after each training: trained and unseen items of each group, and all items of the others."""
    parts: dict[Part, Sequence[Example]] = {}
    for task, split in splits.items():
        parts |= {(task, "trained"): split.trained, (task, "unseen"): split.unseen}
    for name, rows in others.items():
        parts[name, "unseen"] = rows
    return parts


def _train(learner: Learner, rows: Sequence[Example], sizes: BurstSizes, seed: int) -> Any:
    from mixwright.measure.row_losses import RowLosses
    from mixwright.mine.short_trainings import copy_with_adapter, train_on

    rng, model = np.random.default_rng(seed), copy_with_adapter(learner.model, sizes.rank, seed)
    passes = -(-sizes.steps * sizes.batch // len(rows))  # every row is seen as often as any other, give or take one
    order = np.concatenate([rng.permutation(len(rows)) for _ in range(passes)])
    batches = order[: sizes.steps * sizes.batch].reshape(sizes.steps, sizes.batch)
    train_on(model, RowLosses(learner, rows), list(batches), sizes.learning_rate)
    return model


def _read(
    learner: Learner, model: Any, corpus: Corpus, parts: Mapping[Part, Sequence[Example]], config: MeasureConfig
) -> Reading:
    """Return the greedy success of each item under a model with the learner's tokenizer."""
    from mixwright.learner.learner import Learner

    branch = Learner(model, learner.tokenizer, learner.name, form=learner.form, batch_size=learner.batch_size)
    items = tuple(row for rows in parts.values() for row in rows)
    written = Passes(branch, None, config, corpus, chosen=items).rollouts
    return {part: np.array([written[row.id].success("greedy") for row in rows]) for part, rows in parts.items()}
