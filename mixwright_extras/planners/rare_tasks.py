"""Planner that gives each task the rows that learning it takes, by a retention probe, or says that more do not help.

Rows needed by a probed task: rows of its burst x loss / gain of the burst, divided by the share of the gain that was left in
the last two readings. Other tasks: their loss at the median rows per nat of the probed ones (those whose burst did not learn
everything). Shares needed are those rows over the rows of the run, and never so small that a task waits longer than its
largest safe gap (half-life / 2 ln 2: by then two fifths of a gain are lost). The rest, a tenth at least, goes by the data's
own shares. Needs of more than the run are scaled down, and the plan says so; over twice the run the plan names capacity as
the limit.

Source: frequency against capacity and the gap between sightings, 2605.29548; the rule is ours.
Unit: share of draws; rows; steps.
Cost: none beyond the retention probe (`measure.probes` must name it; without it the planner refuses).
Blind spot: rows per nat are taken as constant, loss as something that can reach `left`; needs are right to a factor of 2.
    On tables capacity was named in 5 of 10 runs that no mixture could have saved and in 4 of 15 that learnt (nearly) all: a
    hint. Equal weights did as well (the study `rare_task`: rare accuracy 1.00, natural 0.60) for a sixth less compute.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from mixwright.extend import Cell, InputError, Measurement, Plan, Planner, Stage, TrainingSetup, as_shares, task_counts

NO_MIXTURE_HELPS = "rows for one task are taken from another, so no mixture helps, only a wider model or more steps"
KEPT_SHARE_LIMITS = (0.1, 1.0)
"""Between these a share that was kept is believed; ratios of small gains go beyond."""
MIN_NATURAL_SHARE = 0.1
"""Share of the run, at least, that goes by the data's own shares, so that what is known stays known."""
BLAME_CAPACITY_FROM_RUNS = 2.0
"""Runs that the needs must amount to before capacity is named."""
LEARNT_LOSS_SHARE = 0.9
"""Share of the loss that a burst must gain to count as having learnt everything there is."""
MeasurementByName = Mapping[tuple[str, str], Measurement]


class RareTasks(Planner):
    """Weights by need.

    Args:
        left: loss that will remain whatever is done (the entropy of the answers), nats per token.
    """

    EVIDENCE = ("retention",)

    def __init__(self, *, left: float = 0.0) -> None:
        if not 0 <= left < math.inf:
            raise InputError("a finite left of at least 0", f"{left:g}", "Correct plan.options.")
        self.left = left

    def plan(self, cells: Sequence[Cell], competence: Sequence[Measurement], training: TrainingSetup) -> Plan:
        """The plan. Raises InputError without measurements of the retention probe, or without examples."""
        counts = task_counts(cells)
        natural = {task: count / sum(counts.values()) for task, count in counts.items()}
        measurements = {(row.task, row.name): row for row in competence if row.probe == "retention"}
        probed = [task for task in natural if (task, "burst_gain") in measurements]
        if not probed:
            remedy = "Add retention to measure.probes (it needs a rare task among others), or use the planner temperature."
            raise InputError("measurements of the probe retention", "none of these tasks", remedy)
        needs, reasons = self._needs(natural, probed, measurements, training)
        total = sum(needs.values())
        scale = min(1.0, (1 - MIN_NATURAL_SHARE) / max(total, 1e-9))
        weights = {task: scale * needs[task] + (1 - scale * total) * share for task, share in natural.items()}
        needed_text = f"learning every task needs {total:.0%} of the {training.steps * training.batch} rows of the run"
        summary = f"{needed_text}; the rest follows the shares of the data"
        if total > 1:
            doubt = "this estimate may be twice too high, but the tasks may not fit into the run"
            summary = f"{needed_text}, {doubt}; {NO_MIXTURE_HELPS}"
        if total > BLAME_CAPACITY_FROM_RUNS:
            summary = f"capacity, not frequency, seems to be the limit: {needed_text}; {NO_MIXTURE_HELPS}"
        stage = Stage("training", training.objective, training.steps, as_shares(weights))
        why = {f"stages.0.weights.{task}": f"{reasons[task]}; {_format_gap(task, measurements)}" for task in weights}
        return Plan("rare_tasks", (stage,), why=why | {"stages.0.weights": summary, "stages.0.steps": "from the settings"})

    def _needs(
        self, natural: Mapping[str, float], probed: Sequence[str], measurements: MeasurementByName, training: TrainingSetup
    ) -> tuple[dict[str, float], dict[str, str]]:
        """Share of the run's rows that each task needs, and why."""
        run_rows, rows_per_nat = training.steps * training.batch, self._rows_per_nat(probed, measurements)
        needs, reasons = {}, {}
        for task, share in natural.items():
            loss = max(measurements[task, "loss"].value - self.left, 0.0) if (task, "loss") in measurements else None
            share_text = f"{share:.2%} of the data"
            if loss is None:
                needs[task], reasons[task] = share, f"{share_text}; its loss was not measured, so it keeps this share"
            elif task not in probed:
                needs[task] = loss * rows_per_nat / run_rows
                reasons[task] = (
                    f"{share_text}; needs about {needs[task]:.2%}: {loss:.2f} nats at {rows_per_nat:.0f} rows per nat, the "
                    "median of the probed tasks"
                )
            elif measurements[task, "burst_gain"].low <= 0:
                gain, burst_rows = measurements[task, "burst_gain"], measurements[task, "burst_rows"].value
                needs[task] = share
                reasons[task] = (
                    f"{share_text}, which it keeps: a short run of {burst_rows:.0f} rows on it alone gained "
                    f"{gain.value:.2g} nats [{gain.low:.2g}, {gain.high:.2g}], so frequency is not the limit"
                )
            else:
                rows_needed, gap = _rows_needed(task, measurements, loss), safe_gap(task, measurements)
                needs[task] = max(rows_needed / run_rows, 1 / (training.batch * gap))
                gain, burst_rows = (measurements[task, name].value for name in ("burst_gain", "burst_rows"))
                kept_share = _kept_share(task, measurements)
                reasons[task] = (
                    f"{share_text}; needs {needs[task]:.2%}: {burst_rows:.0f} rows gained {gain:.2f} of "
                    f"{loss:.2f} nats, of which {kept_share:.0%} was left at the end of the probe"
                )
        return needs, reasons

    def _rows_per_nat(self, probed: Sequence[str], measurements: MeasurementByName) -> float:
        """Rows per nat, median of the probed tasks that learnt something but not everything (else of those that learnt)."""
        rows_per_nat_by_learnt_all: dict[bool, list[float]] = {True: [], False: []}
        for task in probed:
            gain, loss = measurements[task, "burst_gain"], max(measurements[task, "loss"].value - self.left, 1e-6)
            if gain.low > 0:
                rows_per_nat_by_learnt_all[gain.value >= LEARNT_LOSS_SHARE * loss].append(
                    _rows_needed(task, measurements, loss) / loss
                )
        return median(rows_per_nat_by_learnt_all[False] or rows_per_nat_by_learnt_all[True] or [0.0])


def safe_gap(task: str, measurements: MeasurementByName) -> float:
    """Largest safe gap between two sightings of a task, in steps; infinite where no half-life was measured."""
    return measurements[task, "half_life"].value / (2 * math.log(2)) if (task, "half_life") in measurements else math.inf


def _rows_needed(task: str, measurements: MeasurementByName, loss: float) -> float:
    """Rows that learning the task takes. A burst that learnt everything may have needed fewer than it had."""
    gain = min(measurements[task, "burst_gain"].value, max(loss, 1e-9))
    return measurements[task, "burst_rows"].value * loss / gain / _kept_share(task, measurements)


def _kept_share(task: str, measurements: MeasurementByName) -> float:
    """Share of the burst's gain that was left, mean of the last two readings; 1 where it was not measured."""
    readings = {
        int(name.partition("@")[2]): row
        for (row_task, name), row in measurements.items()
        if row_task == task and "retained@" in name
    }
    last_readings = [readings[steps].value for steps in sorted(readings)[-2:]]
    return (
        min(max(sum(last_readings) / len(last_readings), KEPT_SHARE_LIMITS[0]), KEPT_SHARE_LIMITS[1])
        if last_readings
        else KEPT_SHARE_LIMITS[1]
    )


def _format_gap(task: str, measurements: MeasurementByName) -> str:
    """The largest safe gap in words."""
    if (task, "half_life") not in measurements:
        return "largest safe gap unknown"
    half_life = measurements[task, "half_life"]
    numbers = f"half of a gain lasts {half_life.value:.0f} steps [{half_life.low:.0f}, {half_life.high:.0f}]"
    return f"largest safe gap {safe_gap(task, measurements):.0f} steps: {numbers}"
