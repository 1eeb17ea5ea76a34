"""Gate on a checkpoint: it passes when it is shown not to have lost what was protected, not when no loss was shown.

Non-inferiority: the lower end of the protected cells' mean change lies above `MEAN_LOSS_MARGIN`, of success and of
dependence on the prompt, each. What the page calls damaged is damaged here: the same items, the same correction, success or
dependence of a cell or of a whole task. Every cell has to exclude a loss by itself, under any margin: of 20 points where
cells are large enough for an unharmed checkpoint to do so, else of the least that it can (`estimates/exclusion.py`). Else
something is damaged, or the items are too few to tell. Where nobody said what matters, a cell that was not protected and is
shown to be damaged stops it, too.

Where the user names nothing, every task and level with a right answer before is protected, all of them as one group; those
that improved do not count in its mean, so that what was learned cannot pay for what was lost. A task of which less than the
margin was right before blocks only where the user named it: it cannot lose that much.

Groups of tasks can have a bound each (`check_rings`). One mean over all of them would let kinds that are replayed in
training pay for kinds that are not.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mixwright.estimates.crossed import Estimate
from mixwright.estimates.exclusion import (
    CELL_INTERVAL_LEVEL,
    CHURN_SHARE,
    LOSS_STEP,
    MAX_CHURN_SHARE,
    MEAN_LOSS_MARGIN,
    Z_CELL,
    cell_loss_limits,
    churn_for_error,
    estimate_churn_of_others,
    excludes_cell_loss,
    items_excluding_cell_loss,
    items_to_exclude,
)
from mixwright.estimates.intervals import Z, t_quantile
from mixwright.estimates.items import Items, TaskLevel
from mixwright.estimates.looks import Look
from mixwright.estimates.outcome import SWAPPED_SUFFIX, Change, Sides, estimate_change, shared_items
from mixwright.estimates.protected import (
    READABLE_SHARE,
    SideScores,
    cells_with_right_answers,
    find_readable_items,
    find_unreadable_cells,
    named_cells,
)
from mixwright.estimates.readings import READINGS, Decoding
from mixwright.records import ChangeWord, GateOutcome, Interval, Ring
from mixwright.suite.family import FORMS
from mixwright.verdict.rules.cells import CellChange, compare_cells, split_by_task, to_interval
from mixwright.verdict.rules.gate_question import GateQuestion

HARM_CONFIDENCE = 0.999
"""Level by which harm is shown at any look before the last one: the interval of a mean that lies below the margin, or the
loss of a cell (Haybittle 1971, Peto 1976). Sixteen such looks at a loss as large as the margin stop in less than 1 % of
cases."""
SAME_MARGIN = 0.02
"""Mean change in either direction that one model is not to show, a share."""
CHANGE_WORDS: tuple[ChangeWord, ...] = ("improves", "worsens", "less dependent", "commonest")
"""Words of a cell that one model is not to show."""
_ORDER: tuple[GateOutcome, ...] = ("damaged", "inconclusive", "passed")
"""Outcomes, the worst first."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """What the gate says, and why."""

    outcome: GateOutcome
    """passed, damaged or inconclusive."""
    mean: Estimate | None
    """Mean change over the protected cells that could be compared, each counted once."""
    cells: tuple[CellChange, ...]
    """The protected cells."""
    cell_loss_limit: float | None
    """Least loss of one cell that had to be excluded; None where a significant loss alone decides."""
    dependence: Estimate | None = None
    """Mean change of D over the same cells and items."""
    damaged_tasks: tuple[CellChange, ...] = ()
    """Whole tasks of several levels, all of them protected, that are damaged."""
    unprotected_losses: tuple[CellChange, ...] = ()
    """What is damaged and was not protected."""
    named_by_user: bool = False
    """The user said what matters: other cells are reported, and do not fail."""
    items_needed: int | None = None
    """Items per cell that would pass an unharmed checkpoint in about nine of ten cases; None where items cannot help."""
    margin: float = MEAN_LOSS_MARGIN
    """Mean loss that had to be excluded, a share."""
    unseen_loss: float | None = None
    """Largest loss of one cell that such a gate would pass in more than one of twenty cases; None where it would none."""
    lacks_right_answers: bool = False
    """Whether too little was right before to see a loss, and nothing is damaged."""
    graded: bool = True
    """Whether answers of any task were graded; else damage is found by what they say, and nothing passes."""
    look: Look | None = None
    """Which of the planned looks this is; None where all items were measured at once."""
    lost_answers: Mapping[str, str] = field(default_factory=dict)
    """Task that no grader judges -> what its answers are now, where they are lost; protected or not."""
    rings: tuple[Ring, ...] = ()
    """Groups that were judged each, of which the worst is told here; empty where all cells are one."""
    request_forms: Mapping[str, Interval] = field(default_factory=dict)
    """Form of general requests -> their mean change, which decides nothing."""
    behaviours: tuple[str, ...] = ()
    """Behaviours that the user protects."""
    decided_by_behaviours: bool = False
    """Whether tasks alone would have had another outcome."""
    averaged: int = 0
    """Protected cells in the mean; those that were not compared are not, nor those that rose where none was named."""
    same: bool = False
    """Whether a change in either direction was judged."""
    undecided: frozenset[TaskLevel] = frozenset()
    """Protected cells that the next look has to ask more before anything passes."""

    @property
    def tasks(self) -> set[str]:
        """Protected tasks."""
        return {cell.task for cell in self.cells}


def check_protected(
    before: SideScores,
    after: SideScores,
    protected: Collection[TaskLevel],
    *,
    decoding: Decoding = "greedy",
    each_cell: bool = False,
    named_by_user: bool = False,
    margin: float | None = None,
    look: Look | None = None,
    comparisons: Sequence[CellChange] | None = None,
) -> GateResult:
    """Compare the protected cells. Pure.

    Args:
        before: one per seed.
        after: one per seed, in the same order.
        protected: cells that must not be damaged.
        decoding: what success is read from.
        each_cell: every cell must exclude a loss of `MEAN_LOSS_MARGIN`.
        named_by_user: the user said what is protected.
        margin: mean loss over the cells that is to be excluded, a share; None asks for `MEAN_LOSS_MARGIN`.
        look: which of the planned looks it is. Intervals are those of the look, and a cell whose items will be enough has to
            exclude its loss already. Before the last one the page's words stop nothing that its boundary or
            `HARM_CONFIDENCE` would not.
        comparisons: those of `compare_cells`, if they are there already.
    """
    sides, mean_margin = (before, after), MEAN_LOSS_MARGIN if margin is None else margin
    comparisons = compare_cells(sides, decoding) if comparisons is None else comparisons
    unreadable = find_unreadable_cells(before, decoding)
    reading = _CellReading(split_by_task(before), split_by_task(after), decoding, look)
    cells, damaged_tasks, unprotected_losses = (
        tuple(map(reading.at_look, group)) for group in _group_cells(comparisons, protected)
    )
    item_counts = tuple(sorted(cell.judged.items for cell in cells if cell.judged is not None))
    churns = _estimate_churns(sides, protected, decoding)
    limits_by_churn = {churn: _find_loss_limits(item_counts, mean_margin, look, churn) for churn in {*churns.values()}}
    limits = {cell: limits_by_churn[churn] for cell, churn in churns.items()}
    if each_cell:
        limits = dict.fromkeys(limits, dict.fromkeys(item_counts, MEAN_LOSS_MARGIN))
    limits_of_cells = [
        None if (cell.task, cell.level) in unreadable else limits.get((cell.task, cell.level), {}) for cell in cells
    ]
    cells = tuple(map(reading.with_each_limit if each_cell else reading.with_limit, cells, limits_of_cells))
    cell_loss_limit = min((limit for own in limits.values() for limit in own.values()), default=None)
    compared = [cell for cell in cells if cell.judged is not None and (cell.readable or not named_by_user)]
    if not named_by_user:  # what was learned must not pay for what was lost
        compared = [cell for cell in compared if cell.judged is None or cell.judged.low <= 0] or compared
    compared_cells = {(cell.task, cell.level) for cell in compared}

    sizes = [cell.judged.items for cell in compared if cell.judged is not None]
    limits_of_mean = [1.0 if cell.loss_limit is None else cell.loss_limit for cell in compared]
    readable_items = None if named_by_user else find_readable_items(before, decoding)

    def counts_in_mean(items: Items) -> Items:
        compared = items.of_cells(compared_cells)
        return compared if readable_items is None else compared.common(readable_items)

    z = Z if look is None else look.z()
    change = estimate_change(before, after, outcome=decoding, weigh="cells", included=counts_in_mean, pseudo_quantile=z)
    cells_that_decide = (*cells, *damaged_tasks, *(() if named_by_user else unprotected_losses))
    is_damaged, is_safe = (
        any(_is_shown_damaged(cell, look) for cell in cells_that_decide),
        not any(cell.is_damaged for cell in cells_that_decide),
    )
    mean_change = dependence = items_needed = None
    is_mean_excluded = False
    judged_tasks = {comparison.task for comparison in comparisons if comparison.any_right}
    named_and_judged = [cell for cell in cells if cell.task in judged_tasks and named_by_user]
    lacks_right_answers = _is_any_below(before, named_and_judged, decoding, max(mean_margin, READABLE_SHARE)) or (
        not named_by_user and 2 * sum(cell.readable for cell in cells) < len(cells)
    )
    is_safe &= not lacks_right_answers
    if change is not None and math.isfinite(change.estimate.value):
        mean_change, mean_dependence = (
            estimate if look is None else look.with_look_interval(estimate)
            for estimate in (change.estimate, _estimate_dependence(change, (before, after), z))
        )
        dependence = mean_dependence if math.isfinite(mean_dependence.value) else None
        is_above_margin, all_measured = mean_change.low > -mean_margin, len(item_counts) == len(cells)
        is_mean_excluded = is_above_margin and (dependence is None or dependence.low > -mean_margin)
        is_safe &= is_mean_excluded and all_measured and all(cell.limit_excluded for cell in cells)
        is_damaged |= (dependence is not None and dependence.high < -mean_margin) or (
            mean_change.high < 0 and not is_above_margin
        )
        is_last = look is None or look.last  # else more items follow anyway
        if not is_safe and not is_damaged and all_measured and is_last and not lacks_right_answers:
            churn = min(max(CHURN_SHARE, churn_for_error(mean_change.error, sizes)), MAX_CHURN_SHARE)
            items_needed = items_to_measure(len(sizes), margin=mean_margin, churn=churn)
            items_needed = items_to_exclude(MEAN_LOSS_MARGIN, 1, churn) if each_cell else items_needed
    # all are asked at the last look: what was asked more only because it looked bad would leave the mean too high
    asks_all = not is_mean_excluded or look is None or look.number + 1 >= look.planned_looks
    return GateResult(
        outcome="damaged" if is_damaged else "passed" if is_safe and mean_change is not None else "inconclusive",
        mean=mean_change,
        cells=cells,
        cell_loss_limit=cell_loss_limit,
        dependence=dependence,
        damaged_tasks=damaged_tasks,
        unprotected_losses=unprotected_losses,
        named_by_user=named_by_user,
        items_needed=items_needed,
        margin=mean_margin,
        unseen_loss=None if each_cell or len(sizes) < 2 else round(max(limits_of_mean) - LOSS_STEP, 2),
        lacks_right_answers=lacks_right_answers and not is_damaged,
        look=look,
        averaged=sum(cell.readable for cell in compared),
        undecided=frozenset(
            (cell.task, cell.level) for cell in cells if cell.readable and (asks_all or not cell.limit_excluded)
        ),
    )


def _group_cells(comparisons: Sequence[CellChange], protected: Collection[TaskLevel]) -> tuple[list[CellChange], ...]:
    """The protected cells, damaged whole tasks of which all cells are protected, and everything else that is damaged."""
    by_level = {(cell.task, cell.level): cell for cell in comparisons if not cell.whole}
    named = set(protected)
    protected_tasks = {task for task, _ in named} - {task for task, level in by_level if (task, level) not in named}
    others = [cell for cell in comparisons if cell.is_damaged and cell.adjusted_p is not None]
    others = [cell for cell in others if cell.whole or (cell.task, cell.level) not in named]
    return (
        [by_level.get(cell) or CellChange(*cell, False, None) for cell in protected],
        [cell for cell in others if cell.whole and cell.task in protected_tasks],
        [cell for cell in others if not (cell.whole and cell.task in protected_tasks)],
    )


def _estimate_dependence(change: Change, sides: tuple[SideScores, SideScores], z: float) -> Estimate:
    """Mean change of D over the items of a change; where S is not known of all of them, as in logs, over the others."""
    if math.isfinite(change.dependence.value):
        return change.dependence
    column = READINGS[change.outcome].column + SWAPPED_SUFFIX
    known = functools.reduce(Items.common, (scores.having(column) for side in sides for scores in side), change.items)
    found = estimate_change(*sides, outcome=change.outcome, weigh="cells", included=known, pseudo_quantile=z)
    return change.dependence if found is None else found.dependence


@dataclass(frozen=True, slots=True)
class _CellReading:
    """Single cells, as the gate reads them at a look."""

    before: Mapping[str, SideScores]
    after: Mapping[str, SideScores]
    decoding: Decoding
    look: Look | None

    def at_look(self, cell: CellChange) -> CellChange:
        """The cell with an interval that holds at the look."""
        if self.look is None or cell.judged is None or (change := self._estimate(cell, self.look.z())) is None:
            return cell
        return replace(cell, change=replace(change, estimate=self.look.with_look_interval(change.estimate)))

    def with_each_limit(self, cell: CellChange, limits: Mapping[int, float] | None) -> CellChange:
        """The cell with its limit, which its own interval has to exclude; without limits it is not readable."""
        limit = limits.get(cell.judged.items) if limits is not None and cell.judged is not None else None
        if cell.judged is None or limit is None:
            return replace(cell, readable=limits is not None)
        return replace(cell, loss_limit=limit, limit_excluded=cell.judged.low > -limit)

    def with_limit(self, cell: CellChange, limits: Mapping[int, float] | None) -> CellChange:
        """The same, where changes of success and of D have to exclude it, each with the confidence of single cells."""
        cell = self.with_each_limit(cell, limits)
        if cell.loss_limit is None:
            return cell
        alpha, z, confidence = 1 - CELL_INTERVAL_LEVEL, Z_CELL, CELL_INTERVAL_LEVEL
        if self.look is not None:
            z, confidence = self.look.z(alpha, of_cell=True), self.look.confidence(alpha, of_cell=True)
        change = self._estimate(cell, z)
        known = [part for part in (change.estimate, change.dependence) if math.isfinite(part.value)] if change else []
        return replace(cell, limit_excluded=all(excludes_cell_loss(part, cell.loss_limit, confidence) for part in known))

    def _estimate(self, cell: CellChange, z: float) -> Change | None:
        if cell.task not in self.before or cell.task not in self.after:
            return None
        included = None if cell.whole else lambda items: items.of_cells([(cell.task, cell.level)])
        sides = self.before[cell.task], self.after[cell.task]
        return estimate_change(*sides, outcome=self.decoding, included=included, pseudo_quantile=z)


def _estimate_churns(sides: Sides, cells: Collection[TaskLevel], decoding: Decoding) -> dict[TaskLevel, float]:
    """Cell -> share of the items of the other tasks (of one task, of its other levels) that change for no reason."""
    items = shared_items(*sides, included=lambda items: items.of_cells(cells))
    if not len(items):
        return {}
    old, new = (np.mean([scores.column(READINGS[decoding].column, items) for scores in side], axis=0) for side in sides)
    group = items.task if len(items.tasks) > 1 else items.cell
    churns = estimate_churn_of_others(new - old, group)[group[items.starts]]
    return dict(zip(items.cells, churns.tolist(), strict=True))


def _find_loss_limits(item_counts: tuple[int, ...], margin: float, look: Look | None, churn: float) -> dict[int, float]:
    """Items of a cell -> loss that it has to exclude: that of the items at the last look."""
    looks_ratio = 1.0 if look is None else look.planned_looks / look.number
    last_counts = {item_count: round(looks_ratio * item_count) for item_count in item_counts}
    limits = cell_loss_limits(tuple(last_counts[item_count] for item_count in item_counts), margin, churn)
    return {now: limits[last] for now, last in last_counts.items() if last in limits}


def _is_any_below(before: SideScores, cells: Sequence[CellChange], decoding: Decoding, margin: float) -> bool:
    """Whether less than the margin of any task was right before, those that gained since left out."""
    compared_cells = {(cell.task, cell.level) for cell in cells if cell.judged is not None}
    gained = {cell.task for cell in cells if cell.judged is not None and cell.judged.low > 0}
    column, values_by_task = READINGS[decoding].column, defaultdict[str, list[float]](list)
    for scores in before:
        for task, own in scores.select({task for task, _ in compared_cells} - gained).by_task().items():
            true = own.true_column(column)
            values_by_task[task] += own.column(true, own.having(true).of_cells(compared_cells)).tolist()
    return any(sum(values) / len(values) < margin for values in values_by_task.values() if values)


def _is_shown_damaged(cell: CellChange, look: Look | None) -> bool:
    """Whether it is shown to be damaged; before the last look success alone shows it, beyond the boundary of that look."""
    if look is None or look.last:
        return cell.is_damaged
    return cell.word == "worsens" and (cell.adjusted_p or 0.0) < 1 - min(look.confidence(), HARM_CONFIDENCE)


def check_sides(
    sides: Sides, decoding: Decoding, question: GateQuestion, comparisons: Sequence[CellChange] | None = None
) -> GateResult:
    """The gate over two sides, and their cells if they are compared. Raises InputError for a name as `named_cells` does."""
    if question.same:
        return check_same(sides, decoding, question, comparisons)
    if question.rings:
        return check_rings(sides, decoding, question)
    named = bool(question.protect)
    cells = named_cells(list_cells(sides[0]), question.protect) if named else cells_with_right_answers(sides[0], decoding)
    check = functools.partial(
        check_protected,
        *sides,
        cells,
        decoding=decoding,
        each_cell=question.each,
        named_by_user=named,
        margin=question.margin,
        comparisons=comparisons,
    )
    result = check(look=question.look)
    if result.outcome != "inconclusive" or question.look is None or question.look.last:
        return result
    harm = check()
    if (mean := harm.mean) is not None and math.isfinite(mean.error):
        half = t_quantile(mean.df, HARM_CONFIDENCE) * mean.error
        if mean.value + half < -harm.margin:
            ends = replace(mean, low=max(mean.value - half, -1.0), high=mean.value + half)
            return replace(harm, outcome="damaged", mean=ends, look=question.look)
    return result


def check_same(
    sides: Sides, decoding: Decoding, question: GateQuestion, comparisons: Sequence[CellChange] | None = None
) -> GateResult:
    """Judge whether two sides can be one model: the mean change over all cells, and each cell's word after Holm."""
    margin, look = SAME_MARGIN if question.margin is None else question.margin, question.look
    cells = [cell for cell in comparisons or compare_cells(sides, decoding) if not cell.whole]
    change = estimate_change(*sides, outcome=decoding, weigh="cells", pseudo_quantile=Z if look is None else look.z())
    mean, outcome, items_needed = None, "inconclusive", None
    if change is not None and math.isfinite(change.estimate.error):
        mean = change.estimate if look is None else look.with_look_interval(change.estimate)
        is_within = -margin < mean.low and mean.high < margin
        changed = any(cell.word in CHANGE_WORDS and not _is_small(cell, margin) for cell in cells)
        differs = (changed and (look is None or look.last)) or (not is_within and (mean.low > 0 or mean.high < 0))
        outcome = "damaged" if differs else "passed" if is_within and not changed else "inconclusive"
        counts = tuple(cell.judged.items for cell in cells if cell.judged is not None)
        if outcome == "inconclusive" and counts:
            churn = min(max(CHURN_SHARE, churn_for_error(mean.error, counts)), MAX_CHURN_SHARE)
            items_needed = items_to_exclude(margin, len(counts), churn)
    return GateResult(
        outcome,
        mean,
        tuple(cells),
        None,
        named_by_user=True,
        items_needed=items_needed,
        margin=margin,
        look=look,
        averaged=len(cells),
        same=True,
    )


def _is_small(cell: CellChange, margin: float) -> bool:
    """Whether a change of success is shown to be within the margin."""
    success = cell.judged
    return cell.word in ("improves", "worsens") and success is not None and max(-success.low, success.high) < margin


def check_rings(sides: Sides, decoding: Decoding, question: GateQuestion) -> GateResult:
    """Judge groups of tasks, each by itself: the worst decides, of those in which something was right before."""
    others = {task for task, _ in list_cells(sides[0])}.difference(*(tasks for _, tasks in question.rings))
    results: dict[str, GateResult] = {}
    for name, tasks in question.rings:
        before, after = ([scores.select(tasks or others) for scores in side] for side in sides)
        results[name] = check_sides((before, after), decoding, replace(question, rings=()))
    with_something_to_lose = [result for result in results.values() if result.cells or result.outcome == "damaged"]
    worst = min(
        with_something_to_lose or results.values(),
        key=lambda result: (_ORDER.index(result.outcome), result.mean.low if result.mean else 0.0),
    )
    return replace(
        worst,
        cells=tuple(cell for result in results.values() for cell in result.cells),
        damaged_tasks=tuple(cell for result in results.values() for cell in result.damaged_tasks),
        unprotected_losses=tuple(cell for result in results.values() for cell in result.unprotected_losses),
        request_forms=_changes_by_form(sides, decoding),
        undecided=frozenset(
            (cell.task, cell.level) for result in results.values() for cell in result.cells if cell.readable
        ),
        rings=tuple(
            Ring(name, result.outcome, to_interval(result.mean) if result.mean else None) for name, result in results.items()
        ),
    )


def _changes_by_form(sides: Sides, decoding: Decoding) -> Mapping[str, Interval]:
    """Return the mean change of each form of request of the general suite, which the names of its items end with."""
    changes = {
        form: estimate_change(*sides, outcome=decoding, included=lambda items, form=form: items.ending(f" {form}"))
        for form in FORMS
    }
    return {form: change.estimate.interval for form, change in changes.items() if change is not None}


def list_cells(side: SideScores) -> list[TaskLevel]:
    """The cells that a side measured."""
    return list(dict.fromkeys(cell for scores in side for cell in scores.items.cells))


def items_to_measure(cell_count: int, *, margin: float | None = None, churn: float = CHURN_SHARE) -> int:
    """Items per cell that both sides have to answer, to pass an unharmed checkpoint in about nine of ten cases.

    Args:
        cell_count: how many may be protected.
        margin: mean loss over them that is to be excluded, a share; None asks for `MEAN_LOSS_MARGIN`.
        churn: share of the answers that change for no reason.
    """
    margin, cell_count = MEAN_LOSS_MARGIN if margin is None else margin, max(cell_count, 1)
    items = items_to_exclude(margin, cell_count, churn)
    # whoever accepts a larger loss asks fewer items, which have to exclude less by themselves
    return items if margin > MEAN_LOSS_MARGIN else max(items, items_excluding_cell_loss(cell_count, churn))
