"""Rule that says before a GRPO run which tasks plain training, and the plan, will starve and put at risk of damage.

A cell's informative groups are its draws under an arm times the chance that a group of G completions has both right and
wrong ones, estimated without bias from the measured samples of each of its items (of as many as were measured, where that
is less than G). A cell is *noise* where its answers are not shown to depend on their prompts: lucky, or hopeless or unknown
without a permutation test under `ALPHA`. Its rewards differ, and teach nothing about the prompt.

- starved: the task has a cell that is shown to depend on its prompts and has room, and the gain that `plan/forecast.py`
  expects from the arm's draws is under 2 points and under a quarter of what it expects from the plan's, which is at least 1.
- at risk: over half of the arm's informative groups come from noise, and the task has skill to lose (kappa of one of its
  cells, or of the whole task, is shown to lie above 0). The range then begins at 0: nothing known says how far it falls.
- as forecast: neither. The range is that of `plan/forecast.py` under the arm's draws.

Blind spot: learning rate, KL penalty and steps are not in the rule; a small rate damages less, and a run with few
informative groups may damage nothing. It knows the model at the start only. Cells without measured items count as without
informative groups, and partial rewards, which differ more often than right and wrong do, are not read. Items measured on
several starting models are pooled: groups look informative a little too often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from mixwright.estimates.cell_states import ALPHA
from mixwright.estimates.intervals import pass_at_k
from mixwright.plan.cells import SUCCESS, plan_cells
from mixwright.plan.forecast import MARGIN, expected, room, spent_by_room
from mixwright.records import Cell, CellPlan, Forecast, Foreseen, Measurement, Plan, Stage, TrainingSetup

LEVER, UNIFORM, EQUAL = "steered", "uniform", "equal_shares"
"""Names of the arms, as a trial has them."""
STARVED = 0.25
"""Share of the plan's expected gain under which a task is starved."""
WORTH = 0.01
"""Gain that the plan's draws must be expected to bring before another arm can be said to starve a task."""
MOSTLY = 0.5
"""Share of noise among the informative groups over which skill is at risk."""
NAMED = 0.1
"""Share of an arm's noise from which on a task is named as its source."""


@dataclass(frozen=True, slots=True)
class _Arm:
    """What one arm does to the cells, by their keys."""

    name: str
    spent: Mapping[str, float]
    """Steps' worth of draws."""
    groups: Mapping[str, float]
    """Informative groups that may teach."""


def with_foreseen(plan: Plan, cells: Sequence[Cell], competence: Sequence[Measurement], training: TrainingSetup) -> Plan:
    """The plan with what is foreseen for itself and for the simple rules beside it. Pure.

    A plan without GRPO, or for tasks that were not all measured item by item, stays as it is.

    Args:
        plan: finished.
        cells: of the training data.
        competence: what was measured before the run.
        training: what the plan is for.
    """
    stages = [stage for stage in plan.stages if stage.objective == "grpo"]
    mixed = mixed_chances(competence, training.generations)
    if not stages or not mixed or not {cell.task for cell in cells} <= {task for task, _ in mixed}:
        return plan
    known = plan.cells or plan_cells(cells, competence, stages[0].band)
    differs = {cell.key: mixed.get((cell.task, cell.level), 0.0) for cell in known}
    steps = sum(stage.steps for stage in stages)
    shares = {UNIFORM: _by_rows(known), EQUAL: _by_levels(known)}
    draws = {arm: {key: steps * share for key, share in own.items()} for arm, own in shares.items()}
    teaching = {LEVER: dict.fromkeys(_refused(stages, known), 0.0)}
    draws[LEVER] = _planned(stages, known)
    arms = []
    for arm, spent in draws.items():
        chances = differs | teaching.get(arm, {})
        arms.append(_Arm(arm, spent, {key: count * training.batch * chances[key] for key, count in spent.items()}))
    return replace(plan, foreseen=_foreseen(arms, known, competence))


def mixed_chances(competence: Sequence[Measurement], generations: int) -> dict[tuple[str, float | None], float]:
    """(task, level) -> chance that a group of a cell has right and wrong completions, from its items; see the module."""
    found: dict[tuple[str, float | None], list[float]] = {}
    for row in competence:
        if row.probe == "competence" and row.name == SUCCESS and row.example is not None and row.n > 1:
            right, size = round(row.value * row.n), min(generations, row.n)
            chance = pass_at_k(row.n, right, size) + pass_at_k(row.n, row.n - right, size) - 1
            found.setdefault((row.task, row.level), []).append(chance)
    return {cell: fmean(chances) for cell, chances in found.items()}


def depends(cell: CellPlan) -> bool:
    """Whether the cell's answers are shown to depend on their prompts, or it is mastered: its rewards are no noise."""
    if cell.state in ("mastered", "reachable"):
        return True
    return cell.state != "lucky" and cell.p is not None and cell.p < ALPHA


def lines_of(plan: Plan) -> list[str]:
    """One sentence per arm that is expected to starve tasks or to put them at risk."""
    lines = []
    for arm in dict.fromkeys(said.arm for said in plan.foreseen):
        own = [said for said in plan.foreseen if said.arm == arm]
        starved, risky = ([said for said in own if said.word == word] for word in ("starved", "at risk"))
        hungry, named = (_listed([said.task for said in part]) for part in (starved, risky))
        parts = [f"starve {hungry}"] if starved else []
        parts += [f"put {'them' if named == hungry else named} at risk of damage: {risky[0].because}"] if risky else []
        if parts:
            lines.append(f"{arm} would {' and '.join(parts)}")
    return lines


def _by_rows(cells: Sequence[CellPlan]) -> dict[str, float]:
    """Share of each cell when every row is drawn equally often."""
    total = sum(cell.examples for cell in cells)
    return {cell.key: cell.examples / total for cell in cells}


def _by_levels(cells: Sequence[CellPlan]) -> dict[str, float]:
    """Share of each cell when tasks, and the levels of a task, are drawn equally often."""
    full = [cell for cell in cells if cell.examples]
    tasks = {cell.task for cell in full}
    return {
        cell.key: 1 / len(tasks) / sum(other.task == cell.task for other in full) if cell.examples else 0.0 for cell in cells
    }


def _planned(stages: Sequence[Stage], cells: Sequence[CellPlan]) -> dict[str, float]:
    """The plan's own draws: within a task by its selector, an adaptive one by room, as the forecast has it."""
    spent = dict.fromkeys((cell.key for cell in cells), 0.0)
    for stage in stages:
        by_room = spent_by_room(cells, stage.weights, stage.steps)
        for task, weight in stage.weights.items():
            own = [cell for cell in cells if cell.task == task]
            adapts = stage.selector not in ("uniform", "equal_levels") and any(by_room[cell.key] for cell in own)
            shares = (_by_levels if stage.selector == "equal_levels" else _by_rows)(own)
            for cell in own:
                spent[cell.key] += by_room[cell.key] if adapts else stage.steps * weight * shares[cell.key]
    return spent


def _refused(stages: Sequence[Stage], cells: Sequence[CellPlan]) -> list[str]:
    """Keys of the cells whose groups the gate `too_hard` keeps from teaching, but for a few."""
    gated = all("too_hard" in stage.gates for stage in stages)
    return [cell.key for cell in cells if gated and cell.state in ("hopeless", "lucky")]


def _foreseen(arms: Sequence[_Arm], cells: Sequence[CellPlan], competence: Sequence[Measurement]) -> tuple[Foreseen, ...]:
    """Words for every arm and task; `arms` ends with the plan."""
    by_arm = [{said.task: said for said in expected(cells, competence, arm.spent)} for arm in arms]
    rich = {cell.task for cell in cells if room(cell) and depends(cell)}
    skilled = {row.task for row in competence if row.name == f"{SUCCESS}.kappa" and row.example is None and row.low > 0}
    found = []
    for arm, forecasts in zip(arms, by_arm, strict=True):
        noise, whence = _noise(arm, cells)
        for task, said in forecasts.items():
            planned, keys = by_arm[-1][task], [cell.key for cell in cells if cell.task == task]
            groups = round(sum(arm.groups[key] for key in keys), 1)
            rest = (groups, round(noise, 4))
            words = []
            if task in rich and is_starved(said.expected - said.before, planned.expected - planned.before):
                because = _why_starved(arm, arms[-1], keys, (said, planned))
                words.append(Foreseen(arm.name, task, "starved", said.before, said.low, said.high, *rest, because))
            if task in skilled and noise > MOSTLY:
                words.append(Foreseen(arm.name, task, "at risk", said.before, 0.0, said.high, *rest, whence))
            because = f"{_steps(arm, keys)}: {_points(said)} points expected"
            found += words or [Foreseen(arm.name, task, "as forecast", said.before, said.low, said.high, *rest, because)]
    return tuple(found)


def is_starved(gain: float, planned: float) -> bool:
    """Whether an expected gain is under 2 points and under a quarter of the plan's, which is at least 1 point."""
    return planned >= WORTH and gain < min(MARGIN, STARVED * planned)


def _noise(arm: _Arm, cells: Sequence[CellPlan]) -> tuple[float, str]:
    """Share of noise among an arm's informative groups, 0 without any, and the sentence that says where it comes from."""
    total = sum(arm.groups.values())
    sources: dict[str, float] = {}
    for cell in cells:
        if not depends(cell) and arm.groups[cell.key]:
            sources[cell.task] = sources.get(cell.task, 0.0) + arm.groups[cell.key]
    noise = sum(sources.values())
    if not noise:
        return 0.0, ""
    tasks = [
        task for task, groups in sorted(sources.items(), key=lambda item: (-item[1], item[0])) if groups >= NAMED * noise
    ]
    because = (
        f"{noise / total:.0%} of the groups that carry a reward difference ({noise:.0f} of {total:.0f}) would come from "
        f"cells whose answers are not shown to depend on their prompts, mostly {_listed(tasks)}"
    )
    return noise / total, because


def _why_starved(arm: _Arm, plan: _Arm, keys: Sequence[str], said: tuple[Forecast, Forecast]) -> str:
    return (
        f"{_steps(arm, keys)}, under the plan {_steps(plan, keys)}: {_points(said[0])} points expected, under the plan "
        f"{_points(said[1])}"
    )


def _steps(arm: _Arm, keys: Sequence[str]) -> str:
    groups = sum(arm.groups[key] for key in keys)
    return f"{sum(arm.spent[key] for key in keys):.1f} steps' worth of draws, {groups:.0f} informative groups"


def _points(said: Forecast) -> str:
    return f"{100 * (said.expected - said.before):+.1f}"


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
