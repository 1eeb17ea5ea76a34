"""Planner that sets weights, band and guards by how much dependence on the prompt each cell can still gain.

Each cell (task x level) is mastered, hopeless, lucky, reachable or unknown (`mixwright/estimates/cell_states.py`). A
task's worth is the room of its best reachable or unknown cell, softly weighed by kappa, less where the cell has few
examples, which would only be memorised. Every task keeps a floor, mastered tasks share `mastered_share`, the rest
follows worth. Within a task the selector finds the cells.

Source: learnability p(1 - p) per question of LILO 2502.12272, weighed by kappa; rehearsal from first runs
    (25 % solvable prompts kept easy skills that hard-only training lost).
Unit: share of draws; success and kappa.
Cost: none beyond the competence probe.
Blind spot: knows the model at the start only; the weights stay while the model moves (the selector follows it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mixwright.contracts import Planner
from mixwright.errors import InputError
from mixwright.estimates.cell_states import HALF_WEIGHT_EXAMPLES
from mixwright.plan.baseline import as_shares, task_counts
from mixwright.plan.cells import assess_cells, attainable_gain, reason_of
from mixwright.records import Cell, CellAssessment, Measurement, Plan, Stage, TrainingSetup

LEVER_REASONS = {
    "selector": "difficulty: prefers prompts whose success is inside the band, estimated from the run's own rewards "
    "without extra rollouts",
    "gates": "too_hard: refuses groups of tasks and levels whose success is shown to be below the band or "
    "independent of the prompt, because their rewards are mostly noise. On over-hard data without levels, at a high "
    "learning rate, success ended 29 points higher with this gate than without; refusing as many groups at random "
    "gained 24. If levels are known, the selector avoids such levels anyway",
    "controllers": "drift: adjusts beta to keep the model near its start. On uniformly sampled over-hard data, success "
    "fell by 2 points with it (beta 0.01 at the start), by 31 with a fixed beta of 0.01 and by 50 without a KL "
    "penalty. Together with the selector it made no difference. It needs a beta above 0",
}


@dataclass(kw_only=True, eq=False)
class Difficulty(Planner):
    """Weights by room.

    Args:
        band: success to aim for, (low, high).
        floor: least share of a task; lowered where the tasks are so many that floors would take over a fifth.
        mastered_share: rehearsal share, the share that mastered tasks get together, 0..0.8.
    """

    OBJECTIVES = ("grpo",)
    EVIDENCE = ("competence",)

    band: tuple[float, float] = (0.1, 0.9)
    floor: float = 0.02
    mastered_share: float = 0.1

    def __post_init__(self) -> None:
        low, high = self.band = (self.band[0], self.band[1])
        if not (0 <= low < high <= 1 and 0 <= self.floor <= 1 and 0 <= self.mastered_share <= 0.8):
            got = f"band {self.band}, floor {self.floor:g}, mastered_share {self.mastered_share:g}"
            expected = "0 <= low < high <= 1, a floor in 0..1, mastered_share in 0..0.8"
            raise InputError(expected, got, "Correct plan.options.")

    def plan(self, cells: Sequence[Cell], competence: Sequence[Measurement], training: TrainingSetup) -> Plan:
        """The plan; drift needs a KL penalty.

        Raises:
            InputError: a task was not measured, or there are no examples.
        """
        assessments = assess_cells(cells, competence, self.band)
        weights, reasons = self._weights(assessments, task_counts(cells))
        stage = Stage(
            "training",
            training.objective,
            training.steps,
            weights,
            self.band,
            selector="difficulty",
            gates=("too_hard",),
            controllers=("drift",) if training.kl_penalty else (),
        )
        why = {f"stages.0.weights.{task}": reason for task, reason in reasons.items()}
        why["stages.0.steps"] = "from the settings"
        why["stages.0.band"] = "range of success in which the rewards of a group differ most often; set in plan.options"
        chosen_levers = [name for name in LEVER_REASONS if getattr(stage, name)]
        why |= {f"stages.0.{name}": LEVER_REASONS[name] for name in chosen_levers}
        why |= {f"cells.{number}.state": reason_of(cell) for number, cell in enumerate(assessments)}
        return Plan("difficulty", (stage,), assessments, why)

    def _weights(self, cells: Sequence[CellAssessment], counts: dict[str, int]) -> tuple[dict[str, float], dict[str, str]]:
        """Share and reason per task."""
        floor = min(self.floor, 0.2 / len(counts))
        by_task = {task: [cell for cell in cells if cell.task == task] for task in counts}
        worth_by_task = {task: _task_worth(by_task[task]) for task in counts}
        mastered = {
            task for task in counts if not worth_by_task[task][0] and any(cell.state == "mastered" for cell in by_task[task])
        }
        total = sum(value for value, _ in worth_by_task.values())
        mastered_share = self.mastered_share if mastered else 0.0
        free_share = 1 - floor * len(counts) - mastered_share
        weights, reasons = {}, {}
        for task, count in counts.items():
            value, reason = worth_by_task[task]
            weights[task], reasons[task] = floor, f"floor {floor:g}; {reason}"
            if task in mastered:
                weights[task] += (mastered_share if total else mastered_share + free_share) / len(mastered)
                alone_note = "" if total else "; no other task is within reach, so only mastered tasks are trained"
                reasons[task] = f"replay share: {reason}{alone_note}"
            elif total:
                weights[task] += free_share * value / total
            elif not mastered:
                weights[task] += free_share * count / sum(counts.values())
                reasons[task] = f"share of examples; {reason}; no task is within reach, so rewards will change little"
        return as_shares(weights), reasons


def _cell_worth(cell: CellAssessment) -> float:
    """Room of a cell, 0..1, less where its examples are few."""
    return 4 * attainable_gain(cell) * cell.examples / (cell.examples + HALF_WEIGHT_EXAMPLES)


def _task_worth(cells: Sequence[CellAssessment]) -> tuple[float, str]:
    """Worth of a task in 0..1 and its reason: that of its best reachable or unknown cell."""
    best = max(cells, key=_cell_worth)
    worth, gain = _cell_worth(best), attainable_gain(best)
    if not gain:
        return 0.0, "worth 0: its cells are " + ", ".join(f"{cell.key} {cell.state}" for cell in cells)
    variance_note = (
        "" if best.learnability is None else f", rewards per prompt have {4 * gain:.0%} of the largest possible variance"
    )
    best_cell_text = f"its best cell {best.key} ({best.examples} examples{variance_note})"
    return worth, f"worth {worth:.2f} from {best_cell_text}: {reason_of(best)}"
