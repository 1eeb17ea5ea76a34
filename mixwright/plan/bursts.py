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
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.measure.passes import Passes
from mixwright.plan.teaching import Part, Reading, judge_teaching
from mixwright.records import Example, Teaching, plain

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

Name = TypeVar("Name")
"""Of a part of the items."""
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


def split_groups(
    rows: Iterable[Example], sizes: BurstSizes, fits: Callable[[Example], bool] = lambda _: True
) -> tuple[dict[Part, Sequence[Example]], list[str]]:
    """Draw rows of each task to train on, and others; return also tasks with fewer than `MIN_ROWS` prompts.

    Tasks with most rows come first.

    Args:
        rows: with targets or answers; others are skipped.
        sizes: how many rows are taken.
        fits: whether a row is short enough; asked of no more rows than are needed.
    """
    by_task: dict[str, dict[str, Example]] = {}
    for row in rows:
        if row.target is not None or row.answer is not None:
            by_task.setdefault(row.task, {}).setdefault(plain(row.prompt).strip().casefold(), row)
    parts, left_out = dict[Part, Sequence[Example]](), list[str]()
    for task, found in sorted(by_task.items(), key=lambda item: (-len(item[1]), item[0])):
        shuffled = filter(fits, Random(0).sample(list(found.values()), len(found)))
        taken = list(itertools.islice(shuffled, 2 * max(sizes.rows, sizes.items)))
        count = min(sizes.rows, len(taken) // 2)
        if len(taken) < MIN_ROWS:
            left_out.append(task)
        else:
            parts |= {(task, "trained"): taken[:count], (task, "unseen"): taken[count : count + sizes.items]}
    return parts, left_out


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
    from mixwright.learner.training_rows import row_tokens

    sizes, others = sizes or BurstSizes(), others or {}
    read_only = {row.task for rows in others.values() for row in rows}

    def fits(row: Example) -> bool:
        return sum(map(len, row_tokens(learner, row))) <= min(learner.context or MAX_TOKENS, MAX_TOKENS)

    rows = itertools.chain(corpus.select(tasks=set(corpus.tasks) - read_only), ungraded or ())
    split, left_out = split_groups(rows, sizes, fits)
    trained = {task: rows for (task, part), rows in split.items() if part == "trained"}
    read: dict[Part, Sequence[Example]] = {**split, **{(name, "unseen"): rows for name, rows in others.items()}}
    parts = {part: rows for part, rows in read.items() if rows and rows[0].task in corpus.tasks}
    config, began, longest = replace(config, samples=0, decoding="greedy"), monotonic(), 0.0
    before = read_success(learner, learner.model, corpus, parts, config)
    runs: dict[tuple[str, bool], list[Reading]] = {(task, dealt): [] for task in trained for dealt in (False, True)}
    for seed, (task, own) in itertools.product(range(MAX_SEEDS), trained.items()):  # all once before the second seed
        started = monotonic()
        if longest and started - began + longest > seconds:
            break
        say(f"teaching: training {len(runs[task, False]) + 1} on {task}")
        read_after = {part: rows for part, rows in parts.items() if part[0] == task or part[1] == "unseen"}
        for dealt in (False, True):
            model = train_copy(learner, deal_out(own, np.random.default_rng(seed)) if dealt else own, sizes, seed)
            runs[task, dealt].append(read_success(learner, model, corpus, read_after, config))
            del model
        longest = max(longest, monotonic() - started)
    left_out += [task for task in trained if not runs[task, False]]
    rows_of = {task: len(rows) for task, rows in trained.items()}
    return judge_teaching(before, runs, rows_of, steps=sizes.steps, batch=sizes.batch, left_out=left_out)


def train_copy(learner: Learner, rows: Sequence[Example], sizes: BurstSizes, seed: int) -> Any:
    """Return a copy of the learner's model that was trained on the rows, each as often as any other."""
    from mixwright.measure.row_losses import RowLosses
    from mixwright.mine.short_trainings import copy_with_adapter, draw_batches, train_on

    model = copy_with_adapter(learner.model, sizes.rank, seed)
    batches = draw_batches(np.arange(len(rows)), sizes.steps, sizes.batch, np.random.default_rng(seed))
    train_on(model, RowLosses(learner, rows), batches, sizes.learning_rate)
    return model


def read_success(
    learner: Learner, model: Any, corpus: Corpus, parts: Mapping[Name, Sequence[Example]], config: MeasureConfig
) -> dict[Name, NDArray[np.float64]]:
    """Return the greedy success of each item under a model with the learner's tokenizer, shape (items,) of each part."""
    from mixwright.learner.learner import Learner

    branch = Learner(model, learner.tokenizer, learner.name, form=learner.form, batch_size=learner.batch_size)
    items = tuple(row for rows in parts.values() for row in rows)
    written = Passes(branch, config, corpus, chosen=items).rollouts
    return {part: np.array([written[row.id].success("greedy") for row in rows]) for part, rows in parts.items()}
