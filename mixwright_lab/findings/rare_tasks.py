"""Finding on rare tasks: a wider model learns what is rare and complex because common tasks disturb it less.

The matched control sees the same rare rows in the same steps, and no others: what it knows more is what common tasks cost.

Source: Huang et al., Why Larger Models Learn More: Effects of Capacity, Interference, and Rare-Task Retention, 2605.29548.
Unit: share of a task's entries that is answered right, greedy, mean over the three tasks of a kind.
Cost: about 60 CPU seconds per seed.
Blind spot: random tables, in which nothing generalises; equal data, not compute; `bunched` also has fewer rare updates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mixwright import Engine
from mixwright.catalog import create
from mixwright.records import Plan, Stage, TrainingSetup
from mixwright_extras.orders.bursts import Burst
from mixwright_lab.contracts import Curve, Expectation, Finding, Plot, Term, difference
from mixwright_lab.training.tables import Data, Model, Training, accuracies, interference
from mixwright_lab.worlds.tables import Tables

TASKS = {
    "rare complex": (19, 21, 23),
    "rare simple": (18, 20, 22),
    "frequent complex": (1, 3, 5),
    "frequent simple": (0, 2, 4),
}
"""Three tasks of each kind by rank, from 0."""
RARE = TASKS["rare complex"]
"""2 % of the data together."""
RATES = {
    "mixture": {16: 6e-3, 32: 3e-3, 64: 1.5e-3, 128: 7.5e-4},
    "alone": {16: 6e-3, 32: 3e-3, 64: 1.5e-3, 128: 7.5e-4},
    "bunched": {32: 6e-3},
    "six times as often": {32: 6e-3},
    "equal shares": {16: 1.2e-2},
}
"""Learning rate of each arm: the best of a grid of factor 2 for the rare complex tasks, seeds from 100 on."""
GAP_STEPS = 40
"""Steps between two sightings in `bunched`: most rare rows that a batch can hold."""


@dataclass(frozen=True)
class Settings:
    """Of the corpus and the training."""

    rows: int = 20_480
    steps: int = 1600
    batch: int = 128
    burst: int = 30  # steps of the retention probe on a rare task


class RareTasks(Finding):
    """Tables of 24 tasks, frequency a power of rank, in models of four widths, each against its rare rows alone."""

    CLAIM = (
        "Wider models learn rare complex tasks that narrow ones could hold, because common tasks interfere less with them."
    )
    SOURCE = (
        "Huang et al., Why Larger Models Learn More: Effects of Capacity, Interference, and Rare-Task Retention, 2605.29548"
    )
    WHAT_IT_SHOWS = (
        "A linear model of tasks that share a narrow encoder keeps what is frequent and simple. In OLMo models of 4M to 4B "
        "parameters, injected rare tasks are learnt in order of frequency and only by larger models; the other tokens' "
        "gradient overlaps with the rare task's by 0.10 +- 0.09 at 20M, by 0.00 +- 0.02 at 1B; at equal count a longer gap "
        "between sightings means a higher loss."
    )
    POPULAR_READING = (
        "It is said that large models learn rare things because they have room for them. The source says that room is not "
        "the limit, interference is, and that showing the task more often may be cheaper than a larger model."
    )
    FEATURES = {  # noqa: RUF012
        "probes/retention": ("rare complex: alone - mixture, width 16",),
        "planners/rare_tasks": ("rare complex: six times as often at width 32 - mixture at width 128",),
    }
    REMARKS = "Cosines of gradients do not fall with width, only common norms do; `alone` lacks dilution, too."
    RUN_TWICE = ("mixture, width 32",)
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 8}
    SCALES: ClassVar[Mapping[str, Settings]] = {"smoke": Settings(4096, 80, 128, 6), "laptop": Settings()}
    PRIMARY = "width 64 - 16: rare complex beyond frequent complex"
    PUBLISHED = (
        "width 16: simple - complex, among rare beyond among frequent",
        "rare complex: alone - mixture, width 16 beyond width 64",
        "rare complex, width 32: spread evenly - bunched every 40 steps",
    )
    CONTROL = "rare complex: alone - mixture, width 16"
    EXPECT = (
        Expectation(
            "width 64 - 16: rare complex beyond frequent complex",
            (
                *difference("mixture, width 64", "mixture, width 16", "rare complex"),
                *difference("mixture, width 16", "mixture, width 64", "frequent complex"),
            ),
            0.2,
            "Width helps rare tasks no more than frequent ones of the same complexity.",
        ),
        Expectation(
            "width 16: simple - complex, among rare beyond among frequent",
            (
                Term("mixture, width 16", "rare simple"),
                Term("mixture, width 16", "rare complex", -1.0),
                Term("mixture, width 16", "frequent simple", -1.0),
                Term("mixture, width 16", "frequent complex"),
            ),
            0.2,
            "A narrow model fails on rare tasks whether they are simple or complex.",
        ),
        Expectation(
            "rare complex: alone - mixture, width 16",
            difference("alone, width 16", "mixture, width 16", "rare complex"),
            0.1,
            "Without the common rows the same rare rows teach no more: the width or their number is the limit.",
        ),
        Expectation(
            "rare complex: alone - mixture, width 16 beyond width 64",
            (
                *difference("alone, width 16", "mixture, width 16", "rare complex"),
                *difference("mixture, width 64", "alone, width 64", "rare complex"),
            ),
            0.1,
            "What common tasks cost does not shrink with width: a wider model merely learns faster.",
        ),
        Expectation(
            "rare complex, width 32: spread evenly - bunched every 40 steps",
            difference("mixture, width 32", "bunched, width 32", "rare complex"),
            0.05,
            "At an equal number of rows the gap between sightings does not matter.",
        ),
        Expectation(
            "rare complex: six times as often at width 32 - mixture at width 128",
            difference("six times as often, width 32", "mixture, width 128", "rare complex"),
            0.02,
            "Frequency replaces no width.",
        ),
    )
    PLOTS = (
        Plot(
            "Rare complex tasks, in the mixture and alone",
            "width of the model",
            "entries answered right",
            tuple(
                Curve(name, tuple((float(width), f"{kind}, width {width}", "rare complex") for width in widths))
                for name, kind, widths in (
                    ("mixture", "mixture", (16, 32, 64, 128)),
                    ("the same rare rows alone", "alone", (16, 32, 64, 128)),
                    ("rare rows six times as often", "six times as often", (32,)),
                )
            ),
        ),
        Plot(
            "Tasks of each kind in the mixture",
            "width of the model",
            "entries answered right",
            tuple(
                Curve(kind, tuple((float(width), f"mixture, width {width}", kind) for width in (16, 32, 64, 128)))
                for kind in TASKS
            ),
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Mixture and matched control at each width, and what is changed at one."""
        return tuple(f"{kind}, width {width}" for kind, rates in RATES.items() for width in rates)

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Accuracy by kind of task; in mixtures also the interference half way."""
        kind, width = arm.split(", width ")
        rate, world = RATES[kind][int(width)], Tables(seed=1000 + seed)
        data = Data(world, world.corpus(settings.rows))
        batches = iter(batches_of(kind, data, 2 * seed + again, settings))
        training = Training(Model(int(width), world.tasks, world.symbols, seed), rate, settings.steps)
        training.learn(data, lambda: next(batches), settings.steps // 2)
        sizes = Burst(settings.burst, settings.burst * 4 // 3, settings.batch // 2, rate)
        found = interference(training.model, data, RARE, sizes) if kind == "mixture" else {}
        training.learn(data, lambda: next(batches), settings.steps - settings.steps // 2)
        right = accuracies(training.model, world)
        means = {name: float(right[list(tasks)].mean()) for name, tasks in TASKS.items()}
        return means | {"all tasks": float(right.mean())} | found


def batches_of(kind: str, data: Data, seed: int, settings: Settings) -> list[np.ndarray]:
    """Rows of every step. `alone` and `bunched` have those of the mixture, the former without the common ones."""
    planner = "equal_shares" if kind == "equal shares" else "proportional"
    setup = TrainingSetup(settings.steps, "sft", settings.batch)
    rare = [data.world.name(task) for task in RARE]
    shares = dict(create("planners", planner).plan(data.pool.cells, [], setup).stages[0].weights)
    if kind == "six times as often":
        shares |= {name: 6 * shares[name] for name in rare}
    weights = {name: share / sum(shares.values()) for name, share in shares.items()}
    engine = Engine(Plan("tables", (Stage("training", "sft", settings.steps, weights),)), data.pool, seed=seed)
    batches = [np.asarray(engine.draw(settings.batch)) for _ in range(settings.steps)]
    is_rare = data.of_tasks(RARE)
    if kind == "alone":
        return [rows[is_rare[rows]] for rows in batches]
    if kind == "bunched":  # in the middle of a span, so that the mean learning rate stays
        spans = [np.concatenate(batches[place : place + GAP_STEPS]) for place in range(0, len(batches), GAP_STEPS)]
        middle = settings.batch * (GAP_STEPS // 2)
        parts = [(rows[~is_rare[rows]], rows[is_rare[rows]]) for rows in spans]
        ordered = [np.concatenate((common[:middle], own, common[middle:])) for common, own in parts]
        return np.split(np.concatenate(ordered), len(batches))
    return batches
