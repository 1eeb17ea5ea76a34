"""Finding on orders: tasks trained one after another, in the order that runs on single tasks expect to lose least.

Source: Li et al., Omni-Thinker, 2507.14783.
Unit: share of held-out problems solved by samples, mean over four tasks; rank correlation over all orders of a seed.
Cost: about 100 CPU seconds per seed.
Blind spot: four short tasks with rewards of right and wrong; no judge, no large model, one visit per task.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mixwright.records import Example
from mixwright_extras.orders.effects import Effects, expected_success
from mixwright_lab.changes import entropy_of, spearman
from mixwright_lab.contracts import Curve, Expectation, Finding, Plot, Term, difference
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Arena
from mixwright_lab.training.grpo import Settings as Grpo
from mixwright_lab.training.rules import UniformRule
from mixwright_lab.worlds.four_tasks import TASKS, FourTasks

RowsByTask = Sequence[Sequence[Example]]
"""Problems of each task."""
Order = tuple[int, ...]


def trained(model: GPT, rows: Sequence[Example], steps: int, settings: Grpo, seed: int) -> GPT:
    """A copy after so many steps with a new optimiser."""
    arena, rule = Arena(rows, model, settings, seed), UniformRule(len(rows), seed)
    for _ in range(steps):
        rule.step(arena)
    return arena.model


def success_of(model: GPT, held_out: RowsByTask, seed: int) -> np.ndarray:
    """Share of four samples per problem that are right, of each task, shape (tasks,)."""
    return np.array([Arena(rows, model, Grpo(), seed).look(rows, 4).rewards.mean() for rows in held_out])


def entropy_change(start: GPT, model: GPT, rows: Sequence[Example]) -> float:
    """Nats per token on own responses, less those of the start on its own."""
    before, after = (entropy_of(each, Arena(rows, each, Grpo(), 0).look(rows, 4)) for each in (start, model))
    return after - before


def success_by_order(
    start: GPT, train: RowsByTask, held_out: RowsByTask, steps: int, settings: Grpo, seed: int
) -> dict[Order, float]:
    """Mean success over tasks after every order of stages."""
    models: dict[Order, GPT] = {(): start}
    found: dict[Order, float] = {}
    while models:
        done, model = models.popitem()
        if len(done) == len(train):
            found[done] = float(success_of(model, held_out, seed).mean())
        for task in set(range(len(train))) - set(done):
            stage = seed + len(done) * len(train) + task
            models[*done, task] = trained(model, train[task], steps, settings, stage)
    return found


def additive_prediction(before: np.ndarray, changes: np.ndarray) -> Effects:
    """Effects as 2507.14783 adds them up: a later task changes an earlier one as it changes the start.

    Args:
        before: success of each task at the start, shape (tasks,).
        changes: [i, j] is what a run on i from the start changed in j, shape (tasks, tasks).
    """
    later, none = changes.T.copy(), np.zeros_like(changes)
    np.fill_diagonal(later, 0.0)
    return Effects(before + changes.diagonal(), later, none, none)


def compared(effects: Effects, actual: Mapping[Order, float]) -> dict[str, float]:
    """Success of the order that is expected to be best, of its reverse, of all, of the best; rank correlation and rank."""
    orders = list(itertools.permutations(range(len(effects.own_success))))
    expected = [float(expected_success(effects, order).mean()) for order in orders]
    order, values = orders[int(np.argmax(expected))], [actual[order] for order in orders]
    return {
        "success": actual[order],
        "of the reverse": actual[order[::-1]],
        "mean of orders": float(np.mean(values)),
        "of the best": max(values),
        "Spearman": spearman(expected, values),
        "rank": 1.0 + sum(value > actual[order] for value in values),
    }


ALL, JOINT, RESETS, BEFORE = "all orders", "joint", "joint, new optimisers", "before training"
CHOSEN, REVERSE, MEAN = "success", "of the reverse", "mean of orders"
"""Readings of `ALL`: success of the order that is expected to be best, of its reverse, and of all 24."""
PLACES = (
    *((BEFORE, CHOSEN), (ALL, REVERSE), (ALL, MEAN), (ALL, CHOSEN), (ALL, "of the best")),
    *((JOINT, CHOSEN), (RESETS, CHOSEN)),
)
"""Arm and reading at each place of the plot."""


@dataclass(frozen=True)
class Settings:
    """Of the base and of the stages."""

    base: int = 300
    """Steps of SFT of the base."""
    shares: tuple[float, ...] = (1.0, 0.5, 0.3, 1.0)
    """Of the tasks in it, so that each leaves room."""
    steps: int = 60
    """Of GRPO on each task."""
    short: int = 15
    """Of a short run on a single task."""
    known: int = 256
    """Problems of each task that are trained on."""
    tested: int = 96
    """Problems of each task that choose an order, and as many others that test it, with 4 samples."""
    grpo: Grpo = Grpo(rate=1e-3, longest=6)  # noqa: RUF009 - frozen


class Orders(Finding):
    """GRPO on four tasks in all 24 orders, orders that begin alike sharing their beginnings, and on all tasks at once."""

    CLAIM = (
        "What training on one task does to the others tells how good an order of tasks will be, and the order chosen by it "
        "ends above the mean of all orders and above joint training."
    )
    SOURCE = "Li et al., Omni-Thinker: Scaling Multi-Task RL in LLMs with Hybrid Reward and Task Scheduling, 2507.14783"
    WHAT_IT_SHOWS = (
        "Qwen2.5-7B on code, mathematics, question answering and creative writing: +6.2 % over joint training and +12.4 % "
        "over merging (+5.2 and +9.1 in the first version); output entropy falls on structured tasks and rises on open ones."
    )
    POPULAR_READING = (
        "It is said that the right curriculum of tasks beats mixing them. Stages begin with new optimisers, which joint "
        "training does not; no order was drawn at random, and the paper was not accepted at ICLR 2026."
    )
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "planners/transfer_order": (
            "the chosen order - the mean of all orders",
            "the chosen order - all tasks at once",
        ),
        "probes/transfer": ("all orders: rank correlation of expected and actual success",),
    }
    REMARKS = (
        "Single runs tell which orders are better, even runs of a quarter of the steps (rank correlation .60). The order "
        "that they choose ends 3 points above the start, the mean of orders 5 points below it. All tasks at once are as "
        "good or better. Entropy falls on every task; the open one has no judge here, and no reward for being different."
    )
    RUN_TWICE = (JOINT,)
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(20, steps=2, short=1, known=24, tested=8, grpo=Grpo(4, 4, 1e-3, longest=6)),
        "laptop": Settings(),
    }
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 8}
    PRIMARY = "the chosen order - all tasks at once"
    PUBLISHED = ("entropy after the own run: the open task - the structured ones",)
    CONTROL = "the chosen order - the mean of all orders"
    EXPECT = (
        Expectation(
            "all orders: rank correlation of expected and actual success",
            (Term(ALL, "Spearman"),),
            0.5,
            "What single runs do to other tasks does not tell which orders are better.",
            "rank correlation",
        ),
        Expectation(
            "the chosen order - the mean of all orders",
            (Term(ALL, CHOSEN), Term(ALL, MEAN, -1.0)),
            0.02,
            "An order drawn at random does as well.",
        ),
        Expectation(
            "the chosen order - all tasks at once",
            difference(ALL, JOINT, CHOSEN),
            0.02,
            "All tasks at once do as well for the same rollouts.",
        ),
        Expectation(
            "the chosen order - all tasks at once with new optimisers where stages have them",
            difference(ALL, RESETS, CHOSEN),
            0.02,
            "New optimisers explain it.",
        ),
        Expectation(
            "entropy after the own run: the open task - the structured ones",
            (Term(ALL, "entropy, larger"), Term(ALL, "entropy, add", -0.5), Term(ALL, "entropy, sort", -0.5)),
            0.05,
            "Entropy changes alike on structured and open tasks.",
            "nats per token",
        ),
    )
    PLOTS = (
        Plot(
            "Success over all tasks",
            "before; reverse, mean, chosen, best order; joint, reset",
            "success, sampled",
            (Curve("mean of four tasks", tuple((float(place), *one) for place, one in enumerate(PLACES))),),
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """All orders of a seed are one arm: what is read is how they compare."""
        return (ALL, JOINT, RESETS, BEFORE)

    def prepare(self, seed: int, settings: Settings) -> None:
        """The base."""
        _base(seed, settings)

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Train, and read other problems than those that chose the order."""
        start, train = _base(seed, settings), [_problems(seed, task, "train", settings.known) for task in TASKS]
        tested = [_problems(seed, task, "eval", 2 * settings.tested) for task in TASKS]
        choosing, testing = ([own[half::2] for own in tested] for half in (0, 1))
        key, everything = 1000 * seed + 500 * again, list(itertools.chain(*train))
        if arm == ALL:
            return _all_orders(start, train, (choosing, testing), settings, key)
        for part, steps in enumerate({JOINT: [len(TASKS) * settings.steps], RESETS: [settings.steps] * 4}.get(arm, [])):
            start = trained(start, everything, steps, settings.grpo, key + 100 + part)
        success = success_of(start, testing, seed)
        return {CHOSEN: float(success.mean())} | {task: float(own) for task, own in zip(TASKS, success, strict=True)}


def _base(seed: int, settings: Settings) -> GPT:
    levels = tuple((float(place), share) for place, share in enumerate(settings.shares, 1))
    options = (("seed", seed),)
    return base_model(seed, Recipe(levels, (("direct", 1.0),), steps=settings.base, world="four_tasks", options=options))


def _problems(seed: int, task: str, split: str, count: int) -> list[Example]:
    world = FourTasks(seed=seed)
    return [world.make(index, TASKS.index(task) + 1.0, split) for index in range(count)]


def _all_orders(
    start: GPT, train: RowsByTask, held_out: Sequence[RowsByTask], settings: Settings, key: int
) -> dict[str, float]:
    """Every order, and what long and short runs on single tasks expect of it; `held_out`: to choose by, and to test by."""
    choosing, testing = held_out
    before = success_of(start, choosing, key)
    actual = success_by_order(start, train, testing, settings.steps, settings.grpo, key + 20)
    found: dict[str, float] = {}
    for name, steps in (("", settings.steps), (", short runs", settings.short)):
        singles = [trained(start, rows, steps, settings.grpo, key + 10 + place) for place, rows in enumerate(train)]
        changes = np.stack([success_of(model, choosing, key) for model in singles]) - before
        for i, j in itertools.product(range(len(TASKS)), repeat=2):
            found[f"{TASKS[i]} changes {TASKS[j]}{name}"] = float(changes[i, j])
        for place, task in enumerate(TASKS):
            found[f"entropy, {task}{name}"] = entropy_change(start, singles[place], choosing[place])
        told = compared(additive_prediction(before, changes), actual)
        found |= {f"{reading}{name}": value for reading, value in told.items()}
    return found
