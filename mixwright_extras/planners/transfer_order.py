"""Planner that trains tasks one after another, in the order that loses least by a transfer probe, or all together.

The order is the best of all (of a local search beyond eight tasks) by what short runs on one task did to the others, added
up (`orders/effects.py`). The plan has stages where two things are shown and worth it (`least`): by the effects,
with a certainty of `certain`, that this order is better than random ones; and that it ended better than all tasks together,
with an interval above 0, when the probe tried both for longer with rows drawn anew, as it does where orders differ. Else the
plan is one stage with all tasks. Each stage carries the success that is expected after it. A trial compares with `joint`,
with `uniform`, which has the same borders, and, where the plan helps, with the same stages in random orders.

Source: backward-transfer order of 2507.14783 (not accepted at ICLR 2026; from short runs to long ones is an assumption).
Unit: share of steps; success, 0..1.
Cost: none beyond the transfer probe (`measure.probes` must name it; without it the planner refuses).
Blind spot: effects are taken as additive, and those of short supervised runs as those of the run; a task is trained once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mixwright.extend import (
    Cell,
    InputError,
    Measurement,
    Plan,
    Planner,
    Stage,
    TrainingSetup,
    as_shares,
    check_range,
    task_counts,
)
from mixwright_extras.orders.effects import (
    GAIN_MEASUREMENT,
    MIN_CERTAINTY,
    MIN_GAIN_SHARE,
    PLACE_MEASUREMENT,
    TRANSFER_PROBE,
    Effects,
    choose_order,
    effects_of,
    expected_success,
)

ALL_TASKS = "*"
"""Task of measurements over all tasks."""


@dataclass(kw_only=True, eq=False)
class TransferOrder(Planner):
    """Stages by transfer.

    Args:
        certain: certainty, 0..1, that orders differ, below which all tasks are trained together; the probe tries from .9 on.
        least: mean success over that of a random order, and over all tasks together, below which they are, too.
        equal: whether stages have equal steps; else steps follow the rows of each task.
    """

    EVIDENCE = (TRANSFER_PROBE,)

    certain: float = MIN_CERTAINTY
    least: float = MIN_GAIN_SHARE
    equal: bool = True

    def __post_init__(self) -> None:
        check_range("plan.options", vars(self), certain=(0, 1), least=(0, 1))

    def plan(self, cells: Sequence[Cell], competence: Sequence[Measurement], training: TrainingSetup) -> Plan:
        """The plan. Raises InputError without measurements of the transfer probe on every task, or with too few steps."""
        counts = task_counts(cells)
        tasks = list(counts)
        if training.steps < len(tasks):
            raise InputError(f"at least a step for each of {len(tasks)} tasks", f"{training.steps}", "Raise train.steps.")
        effects = effects_of(competence, tasks)
        choice = choose_order(effects)
        task_order, gain_over_joint = _read_tried_order(competence, tasks)
        tried_text = "not compared with all tasks together"
        if gain_over_joint:
            low, high = 100 * gain_over_joint.low, 100 * gain_over_joint.high
            points = f"{100 * gain_over_joint.value:+.1f} points [{low:+.1f}, {high:+.1f}]"
            tried_text = f"with other rows it ended {points} from all tasks together after as many steps"
        evidence = (
            f"{' then '.join(task_order)}: {100 * choice.gain:+.1f} points of average success over a random order in short "
            f"runs; certainty {choice.certainty:.0%} that this is not noise of the probe, better than half of the orders in "
            f"{choice.resampled:.0%} of resamples; {tried_text}"
        )
        if choice.certainty < self.certain or choice.gain < self.least:
            decision = "all tasks together, because no order is shown to be better than the others; the best is"
        elif gain_over_joint is None or gain_over_joint.low <= 0 or gain_over_joint.value < self.least:
            decision = (
                "all tasks together, because orders differ but none is shown to be better than all tasks "
                "together; the best is"
            )
        else:
            return self._plan_stages(counts, training, effects, task_order, evidence)
        weights = dict.fromkeys(counts, 1.0) if self.equal else counts
        stage = Stage("training", training.objective, training.steps, as_shares(weights))
        why = {f"stages.0.weights.{task}": "equal shares" if self.equal else "share of the rows" for task in counts}
        why |= {"stages": f"{decision} {evidence}", "stages.0.steps": "from the settings"}
        return Plan("transfer_order", (stage,), why=why)

    def _plan_stages(
        self, counts: Mapping[str, int], training: TrainingSetup, effects: Effects, task_order: Sequence[str], evidence: str
    ) -> Plan:
        """A stage per task in the order of `task_order`; effects are those of the tasks in the order of `counts`."""
        tasks = list(counts)
        order = [tasks.index(name) for name in task_order]
        steps = 1 + _split_steps(
            training.steps - len(tasks), np.array([1 if self.equal else counts[n] for n in task_order], dtype=float)
        )
        stages, why = [], {"stages": evidence}
        for number, name in enumerate(task_order):
            reached = zip(tasks, expected_success(effects, order[: number + 1]).tolist(), strict=True)
            expected = {task: round(success, 4) for task, success in reached if np.isfinite(success)}
            stages.append(Stage(name, training.objective, int(steps[number]), {name: 1.0}, expected=expected))
            why[f"stages.{number}.weights.{name}"] = f"stage {number + 1} of the order {evidence}"
            why[f"stages.{number}.steps"] = "equal steps per task" if self.equal else "steps by rows of the task"
        return Plan("transfer_order", tuple(stages), why=why)


def _read_tried_order(measured: Sequence[Measurement], tasks: Sequence[str]) -> tuple[list[str], Measurement | None]:
    """The order that the probe found best, and what it was above all tasks together; None where it was not tried.

    Raises:
        InputError: the probe named no order of these tasks.
    """
    rows = {(row.task, row.name): row for row in measured if row.probe == TRANSFER_PROBE}
    if any((task, PLACE_MEASUREMENT) not in rows for task in tasks):
        remedy = "Measure again: this measurement is from an earlier version or of other tasks."
        raise InputError(f"the probe transfer with an order of {', '.join(tasks)}", f"no {PLACE_MEASUREMENT}", remedy)
    return sorted(tasks, key=lambda task: rows[task, PLACE_MEASUREMENT].value), rows.get((ALL_TASKS, GAIN_MEASUREMENT))


def _split_steps(steps: int, sizes: np.ndarray) -> np.ndarray:
    """Whole steps by size, summing to `steps`: the largest remainders are rounded up."""
    exact_steps = steps * sizes / sizes.sum()
    whole_steps = np.floor(exact_steps).astype(int)
    whole_steps[np.argsort(whole_steps - exact_steps, kind="stable")[: steps - whole_steps.sum()]] += 1
    return whole_steps
