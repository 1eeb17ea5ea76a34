"""Planner that trains tasks one after another, in the order that loses least by a transfer probe, or all together.

The order is the best of all (of a local search beyond eight tasks) by what short runs on one task did to the others, added
up (`mixwright/estimates/orders.py`). The plan has stages where two things are certain (`certain`) and worth it (`least`):
that this order is better than random ones, and that it is better than all tasks together, which the probe trained for as
many steps. Else the plan is one stage with all tasks. Each stage carries the success that is expected after it. A trial
compares with `joint`, with `uniform`, which has the same borders, and, where the plan helps, with the same stages in random
orders.

Source: backward-transfer order of 2507.14783 (not accepted at ICLR 2026; from short runs to long ones is an assumption).
Unit: share of steps; success, 0..1.
Cost: none beyond the transfer probe (`measure.probes` must name it; without it the planner refuses).
Blind spot: effects are taken as additive and as those of short supervised runs; a task is trained once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mixwright.contracts import Planner
from mixwright.errors import InputError, within
from mixwright.estimates.intervals import Z
from mixwright.estimates.orders import Choice, Effects, certainty_over, choose_order, expected_success
from mixwright.plan.baseline import shares, task_counts
from mixwright.records import Cell, Measurement, Plan, Stage, TrainingSetup

PROBE, TOGETHER = "transfer", "all tasks together"
SEED = 11
"""Of the draws of the test: a planner is pure."""


class TransferOrder(Planner):
    """Stages by transfer.

    Args:
        certain: certainty, 0..1, below which all tasks are trained together; of either comparison.
        least: mean success over that of a random order, and over all tasks together, below which they are, too.
        equal: whether stages have equal steps; else steps follow the rows of each task.
        rehearsal: share of a stage's draws for earlier tasks that were measured below what was expected, 0..0.5.
    """

    EVIDENCE = (PROBE,)

    def __init__(self, *, certain: float = 0.9, least: float = 0.02, equal: bool = True, rehearsal: float = 0.0) -> None:
        self.certain, self.least, self.equal, self.rehearsal = certain, least, equal, rehearsal
        within("plan.options", vars(self), certain=(0, 1), least=(0, 1), rehearsal=(0, 0.5))

    def plan(self, cells: Sequence[Cell], competence: Sequence[Measurement], training: TrainingSetup) -> Plan:
        """The plan. Raises InputError without measurements of the transfer probe on every task, or with too few steps."""
        counts = task_counts(cells)
        tasks = list(counts)
        if training.steps < len(tasks):
            raise InputError(f"at least a step for each of {len(tasks)} tasks", f"{training.steps}", "Raise train.steps.")
        effects = effects_of(competence, tasks)
        choice = choose_order(effects, np.random.default_rng(SEED))
        names = [tasks[place] for place in choice.order]
        told = (
            f"{' then '.join(names)}: {100 * choice.gain:+.1f} points of mean success over a random order by short runs; "
            f"certainty {choice.certainty:.0%} that this is no noise of the probe, better than half of the orders in "
            f"{choice.resampled:.0%} of resamples"
        )
        mean, error = _together(competence, tasks)
        expected, better = certainty_over(effects, choice, mean, error)
        beside = (
            f"{told}; success {expected:.2f} is expected after it, all tasks together had {mean:.2f} after as many steps "
            f"(certainty {better:.0%} that the order is better)"
        )
        if choice.certainty < self.certain or choice.gain < self.least:
            head = "all tasks together, because no order is shown to be better than others; the best would be"
        elif better < self.certain or expected - mean < self.least:
            head = "all tasks together, which are as good, as far as can be seen, though orders differ; the best is"
        else:
            return self._staged(counts, training, effects, choice, tasks, beside)
        return self._joint(counts, training, f"{head} {beside}")

    def _joint(self, counts: Mapping[str, int], training: TrainingSetup, told: str) -> Plan:
        share = dict.fromkeys(counts, 1.0) if self.equal else {task: float(count) for task, count in counts.items()}
        stage = Stage("training", training.objective, training.steps, shares(share))
        why = {f"stages.0.weights.{task}": "equal shares" if self.equal else "share of the rows" for task in counts}
        return Plan("transfer_order", (stage,), why=why | {"stages": told, "stages.0.steps": "asked for"})

    def _staged(
        self,
        counts: Mapping[str, int],
        training: TrainingSetup,
        effects: Effects,
        choice: Choice,
        tasks: Sequence[str],
        told: str,
    ) -> Plan:
        sizes = np.ones(len(tasks)) if self.equal else np.array([counts[task] for task in tasks], dtype=float)
        steps = 1 + _split(training.steps - len(tasks), sizes[list(choice.order)])
        stages, why = [], {"stages": told}
        for number, place in enumerate(choice.order):
            reached = expected_success(effects, choice.order[: number + 1])
            expected = {
                task: round(float(reached[other]), 4) for other, task in enumerate(tasks) if np.isfinite(reached[other])
            }
            border = {"expected": expected, "rehearsal": self.rehearsal if number else 0.0}
            stages.append(Stage(tasks[place], training.objective, int(steps[number]), {tasks[place]: 1.0}, **border))
            why[f"stages.{number}.weights.{tasks[place]}"] = f"stage {number + 1} of the order {told}"
            why[f"stages.{number}.steps"] = "equal steps per task" if self.equal else "steps by rows of the task"
        return Plan("transfer_order", tuple(stages), why=why)


def effects_of(measured: Sequence[Measurement], tasks: Sequence[str]) -> Effects:
    """What short runs did to tasks of the data. Without pairs, `later` is what a run changed from the start.

    Raises:
        InputError: a task was not measured after every run.
    """
    rows = {(row.task, row.name): row for row in measured if row.probe == PROBE}

    def read(task: str, name: str) -> Measurement:
        if (task, name) not in rows:
            remedy = "Name transfer in measure.probes, and measure again."
            raise InputError(f"the probe transfer for each of {', '.join(tasks)}", f"no {name} of {task}", remedy)
        return rows[task, name]

    count, pairs = len(tasks), any(name.startswith("change from ") for _, name in rows)
    own = np.array([read(task, f"success after {task}").value for task in tasks])
    later, earlier, errors = np.zeros((3, count, count))
    for i, first in enumerate(tasks):
        for j, second in enumerate(tasks):
            if i != j:
                used = [read(first, f"change by {second}" if pairs else f"change at the start by {second}")]
                used += [read(second, f"change from {first}")] if pairs else []
                later[i, j], earlier[i, j] = used[0].value, used[1].value if pairs else 0.0
                errors[i, j] = sum(((row.high - row.low) / (2 * Z)) ** 2 for row in used) ** 0.5
    return Effects(own, later, earlier, errors)


def _together(measured: Sequence[Measurement], tasks: Sequence[str]) -> tuple[float, float]:
    """Mean success after all tasks together, and the standard error of it and of the successes after own runs.

    Raises:
        InputError: the probe had no such run.
    """
    rows = {(row.task, row.name): row for row in measured if row.probe == PROBE}
    name = f"success after {TOGETHER}"
    if (tasks[0], name) not in rows:
        remedy = "Measure again: the probe of an earlier version had no such run."
        raise InputError(f"a run of the probe transfer on {TOGETHER}", "none", remedy)
    used = [(rows[task, name], rows[task, f"success after {task}"]) for task in tasks]
    squares = [((row.high - row.low) / (2 * Z)) ** 2 for pair in used for row in pair]
    return float(np.mean([joint.value for joint, _ in used])), float(np.sqrt(sum(squares))) / len(tasks)


def _split(steps: int, sizes: np.ndarray) -> np.ndarray:
    """Whole steps by size, summing to `steps`: the largest remainders are rounded up."""
    wanted = steps * sizes / sizes.sum()
    found = np.floor(wanted).astype(int)
    found[np.argsort(found - wanted, kind="stable")[: steps - found.sum()]] += 1
    return found
