"""Change of each cell and each whole task under the declared decoding: before against after, paired.

The words are those of `estimates/judgement.py`. *Improves* asks for more: success after must lie above the chance level,
like with like, since a rise up to what a rule without the skill earns is no skill. Every significant fall *worsens*, however
common an answer was. What was not measured, or only by a few items, is *cannot tell*, never *no change*. Each word with a
sign holds after Holm's correction over all that is compared.

Where no answer is graded a loss alone is no damage, however far it rose: what the models answered decides
(`verdict/rules/answers_kept.py`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.crossed import Estimate, estimate_crossed
from mixwright.estimates.intervals import holm, wilson_ends
from mixwright.estimates.items import Items, TaskLevel, cell_order
from mixwright.estimates.judgement import SIGN_ALPHA, change_words
from mixwright.estimates.outcome import CHANCE_MEASUREMENT, Change, ItemScores, Sides, estimate_change, shared_items
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome
from mixwright.records import ChangeWord, Interval

LOSS_WORDS: tuple[ChangeWord, ...] = ("worsens", "less dependent")
"""Words that are damage of a protected cell."""
MAX_SIGNS = 1000
"""Changed answers up to which their signs are tested; the interval of more items is as good."""
CellKey = tuple[str, float | None, bool]
"""Task, level, and whether a whole task of several levels is meant."""


@dataclass(frozen=True, slots=True)
class CellChange:
    """One cell, or a whole task of several levels, compared."""

    task: str
    """Task name."""
    level: float | None
    """Level of the cell; None for a task without levels, and for a whole task."""
    whole: bool
    """A whole task of several levels."""
    change: Change | None
    """Of success after minus before, and its parts; None where both sides share no item. At a planned look of the gate its
    intervals are the look's."""
    word: ChangeWord = "cannot tell"
    """What the change is called."""
    adjusted_p: float | None = None
    """Of success, after Holm's correction over all that is compared; None for fewer than `MIN_ITEMS` items, which are not
    judged."""
    above_chance: bool = False
    """Whether success after is shown to lie above the chance level."""
    family_size: int = 1
    """How many are judged together."""
    any_right: bool = True
    """Whether any answer to the task was right on either side, greedy or sampled; else the grader may be wrong."""
    loss_limit: float | None = None
    """Loss that it has to exclude by itself, a share; None where it is not protected, or its items can exclude none."""
    limit_excluded: bool = True
    """Whether that loss is excluded, where there was one."""
    readable: bool = True
    """Whether enough was right before for a loss to be seen."""

    @property
    def key(self) -> CellKey:
        """What is compared."""
        return self.task, self.level, self.whole

    @property
    def judged(self) -> Estimate | None:
        """Change of success; None where it was not judged."""
        return self.change.estimate if self.change is not None and self.adjusted_p is not None else None

    @property
    def is_damaged(self) -> bool:
        """Shown to be damaged."""
        return self.word in LOSS_WORDS


def compare_cells(sides: Sides, outcome: Outcome) -> list[CellChange]:
    """Every cell that both sides have, and every task of several levels, with its word."""
    candidates = list(_compare_parts(sides, outcome))
    judged = {
        place: cell.change
        for place, cell in enumerate(candidates)
        if cell.change is not None and len(cell.change.items) >= MIN_ITEMS
    }
    gains_over_chance = [_estimate_gain_over_chance(sides[1], change.items, outcome) for change in judged.values()]
    words = change_words(list(judged.values()), above=gains_over_chance)
    adjusted_p_values = holm([change.estimate.p for change in judged.values()])
    p_of_falls = _test_falls(sides, judged, outcome)
    judgements = dict(zip(judged, zip(words, adjusted_p_values, gains_over_chance, strict=True), strict=True))
    compared, tasks_with_any_right = [], _find_tasks_with_any_right(sides, outcome)
    for place, cell in enumerate(candidates):
        word, adjusted_p, gain = judgements.get(place, ("cannot tell", None, None))
        if (p_of_fall := p_of_falls.get(place, 1.0)) < SIGN_ALPHA and adjusted_p is not None:
            word, adjusted_p = "worsens", min(adjusted_p, p_of_fall)
        any_right = cell.task in tasks_with_any_right
        found = replace(
            cell,
            word=word if any_right else "cannot tell",
            adjusted_p=adjusted_p,
            above_chance=gain is not None and gain.low > 0,
            family_size=len(judged),
            any_right=any_right,
        )
        compared.append(found)
    return compared


def _test_falls(sides: Sides, changes: Mapping[int, Change], outcome: Outcome) -> dict[int, float]:
    """Test falls to half or less by the signs of the answers that changed, of one seed; two-sided p, adjusted by Hochberg.

    The interval of a few items leaves room for answers that were gained, also where all of them were lost. Where too few
    changed to reach significance, nothing is tested, so that the correction does not count it.
    """
    p_by_index, far_fallen = dict[int, float](), set[int]()
    for index, change in changes.items() if outcome == "greedy" and len(sides[0]) == 1 else ():
        column = sides[0][0].true_column(READINGS[outcome].column)
        before, after = (side[0].column(column, change.items) for side in sides)
        gained, changed = int(np.sum(after > before)), int(np.sum(after != before))
        is_testable = changed <= MAX_SIGNS and 0.5 ** (changed - 1) <= SIGN_ALPHA
        if is_testable and np.isin([before, after], (0, 1)).all():
            p_by_index[index] = min(1.0, 2 * sum(math.comb(changed, count) for count in range(gained + 1)) / 2**changed)
        if np.sum(after) <= np.sum(before) / 2:
            far_fallen.add(index)
    smallest = 1.0
    for rank, index in enumerate(sorted(p_by_index, key=lambda index: -p_by_index[index]), start=1):
        smallest = min(smallest, rank * p_by_index[index])
        p_by_index[index] = smallest
    return {index: p for index, p in p_by_index.items() if index in far_fallen}


def find_tasks_not_learned(
    cells: Sequence[CellChange], sides: Sides, outcome: Outcome, protected: Collection[str]
) -> tuple[str, ...]:
    """Tasks that are not protected and are not shown to be above chance after, each with what was right; none where
    anything improved.
    """
    judged = [cell for cell in cells if cell.adjusted_p is not None]
    if outcome not in GRADED_OUTCOMES or any(cell.word == "improves" for cell in judged):
        return ()
    known, right_by_task = set(protected), dict[str, str]()
    for cell in judged:  # the whole task comes last
        items = cell.change.items if cell.change is not None else Items()
        after = mean_outcome(sides[1], items, outcome)
        if cell.word == "worsens" or cell.above_chance or (after > 0 and chance_level(sides[1], items) is None):
            known.add(cell.task)
        right_by_task[cell.task] = f"{cell.task} ({after * len(items):.3g} of {len(items)} right after)"
    return tuple(text for task, text in right_by_task.items() if task not in known)


def find_any_right(comparisons: Iterable[Sides], outcome: Outcome) -> tuple[bool, bool]:
    """Whether any answer was right, and whether any was by the declared decoding; true where none is known."""
    checkpoints = [scores for sides in comparisons for side in sides for scores in side]
    if outcome not in GRADED_OUTCOMES or not checkpoints:
        return True, True
    right = {name: bool(_find_right_tasks(checkpoints, name)) for name in GRADED_OUTCOMES}
    return any(right.values()), right[outcome]


def _find_right_tasks(checkpoints: Sequence[ItemScores], decoding: Outcome) -> set[str]:
    """Tasks of which some answer was right under a decoding."""
    column = READINGS[decoding].column
    return {task for scores in checkpoints for task in scores.every.take(scores.column(column, scores.every) > 0).tasks}


def _find_tasks_with_any_right(sides: Sides, outcome: Outcome) -> set[str]:
    """Tasks of which some answer was right on either side; every task where answers are not graded."""
    checkpoints = [scores for side in sides for scores in side]
    if outcome not in GRADED_OUTCOMES:
        return _list_tasks(checkpoints)
    return {task for name in GRADED_OUTCOMES for task in _find_right_tasks(checkpoints, name)}


def find_unjudged_tasks(sides: Sides, outcome: Outcome) -> tuple[str, ...]:
    """Tasks that both sides have and of which no answer was right on either."""
    shared = set.intersection(*({task for scores in side for task in _list_tasks([scores])} for side in sides))
    return tuple(sorted(shared - _find_tasks_with_any_right(sides, outcome)))


def _compare_parts(sides: Sides, outcome: Outcome) -> Iterator[CellChange]:
    before, after = map(split_by_task, sides)
    for task in sorted(before.keys() & after.keys()):
        task_change = estimate_change(before[task], after[task], outcome=outcome)
        if task_change is None:
            continue
        if len(task_change.items.cells) == 1:  # the cell is the task
            yield CellChange(*task_change.items.cells[0], False, task_change)
            continue
        for items in task_change.items.split():
            cell_change = estimate_change(before[task], after[task], outcome=outcome, included=items)
            if cell_change is not None:
                yield CellChange(*items.cells[0], False, cell_change)
        yield CellChange(task, None, True, task_change)


def _list_tasks(side: Sequence[ItemScores]) -> set[str]:
    return {task for scores in side for task in scores.items.tasks}


def split_by_task(side: Sequence[ItemScores]) -> dict[str, list[ItemScores]]:
    """Task -> what each checkpoint of a side showed of it; empty where a checkpoint has none of it."""
    scores_by_task = [scores.by_task() for scores in side]
    return {task: [by_task.get(task, ItemScores()) for by_task in scores_by_task] for task in _list_tasks(side)}


def to_interval(estimate: Estimate, outcome: Outcome = "greedy") -> Interval:
    """As a record in the direction of the measurement; no difference of shares lies beyond -1 and 1."""
    return READINGS[outcome].turned(clip_interval(estimate, READINGS[outcome].unit))


def clip_interval(estimate: Estimate, unit: str) -> Interval:
    """As a record in the direction of the estimate, above 0 where it is better.

    Differences of shares end at -1 and 1. A change of success is cut before, at what is possible (`estimates/possible.py`).
    """
    if unit != "share":
        return estimate.interval
    value, low, high = (min(max(number, -1.0), 1.0) for number in (estimate.value, estimate.low, estimate.high))
    return Interval(value, low, high, estimate.interval.n)


def chance_level(side: Sequence[ItemScores], items: Items) -> Interval | None:
    """What the chance rule earns on these items, mean over checkpoints; None where it was not measured on all of them.

    The interval takes two items for one independent one, as where the items choose the rule for each other: scores of items
    do not say whether they did.
    """
    if not len(items) or not side:
        return None
    hit_shares = np.mean([scores.column(CHANCE_MEASUREMENT, items) for scores in side], axis=0)
    value, independent_items = float(hit_shares.mean()), len(items) / 2
    if not np.isfinite(value):
        return None
    return Interval(value, *wilson_ends(value * independent_items, independent_items), len(items))


def mean_outcome(side: Sequence[ItemScores], items: Items, outcome: Outcome) -> float:
    """Mean of the outcome over items and checkpoints."""
    return float(np.mean([scores.column(READINGS[outcome].column, items) for scores in side]))


def find_missing_cells(sides: Sides) -> list[TaskLevel]:
    """Cells that were measured before, but share no item with what was measured after."""
    shared = set(shared_items(*sides).cells)
    return sorted({cell for scores in sides[0] for cell in scores.items.cells} - shared, key=cell_order)


def _estimate_gain_over_chance(after: Sequence[ItemScores], items: Items, outcome: Outcome) -> Estimate | None:
    """Success after minus what the chance rule earns, of the same items and outcome; a loss has no chance level."""
    if READINGS[outcome].unit != "share":
        return None
    gains = np.array(
        [scores.column(READINGS[outcome].column, items) - scores.column(CHANCE_MEASUREMENT, items) for scores in after]
    )
    return estimate_crossed(gains, items.cell)
