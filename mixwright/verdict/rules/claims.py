"""Claims about each cell and each whole task under the declared decoding: before against after, paired.

The words are those of `estimates/judgement.py`. *Learnt* asks for more: success after must lie above the chance level, like
with like, since a rise up to what a rule without the skill earns is no skill. Every significant fall is *damaged*, however
common an answer was. What was not measured, or only by a few items, is *cannot tell*, never *unchanged*. Each word with a
sign holds after Holm's correction over all claims of the arm.

Where no answer is graded a loss alone is no damage, however far it rose: what the models answered decides
(`verdict/rules/answers_kept.py`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.crossed import Estimate, estimate_crossed
from mixwright.estimates.intervals import holm, wilson_ends
from mixwright.estimates.items import Items, TaskLevel, cell_order
from mixwright.estimates.judgement import MIN_SEEDS, SIGN_ALPHA, change_words
from mixwright.estimates.outcome import CHANCE_MEASUREMENT, Change, ItemScores, Sides, estimate_change, shared_items
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome
from mixwright.records import ChangeWord, Claim, ClaimKind, Interval
from mixwright.verdict.page.text import format_count, percent, points

FAR_NATS_PER_TOKEN = 1.0
"""Nats a token from which a report says that former answers became less likely: a hint, since style costs nearly as much."""
MAX_SIGNS = 1000
"""Changed answers up to which their signs are tested; the interval of more items is as good."""
NO_ANSWER = "no answer was right before or after; nothing was learned, or the grader misreads"
KIND_BY_WORD: dict[ChangeWord, ClaimKind] = {
    "improves": "learnt",
    "worsens": "damaged",
    "commonest": "commonest",
    "less dependent": "less dependent",
    "sharper": "sharper",
    "no change": "unchanged",
    "cannot tell": "cannot tell",
}


@dataclass(frozen=True, slots=True)
class CellComparison:
    """One cell or whole task, compared."""

    task: str
    """Task name."""
    level: float | None
    """Level of the cell; None for a task without levels, and where `is_whole_task` is true."""
    is_whole_task: bool
    """A whole task of several levels."""
    change: Change
    """Of success after minus before, and its parts."""
    swapped: Estimate | None
    """Change of S; None where it was not measured."""
    dependence: Estimate | None
    """Change of D; None where it was not measured."""
    word: ChangeWord
    """What the change is called."""
    adjusted_p: float | None
    """Of success, after Holm's correction over all that is compared; None for fewer than `MIN_ITEMS` items, which are not
    judged."""
    above_chance: bool
    """Whether success after is shown to lie above the chance level."""
    family_size: int
    """How many are judged together."""
    any_right: bool
    """Whether any answer to the task was right on either side, greedy or sampled; else the grader may be wrong."""


def compare_cells(sides: Sides, outcome: Outcome) -> list[CellComparison]:
    """Every cell that both sides have, and every task of several levels, with its word."""
    candidates = list(_compare_parts(sides, outcome))
    judged_changes = {
        candidate_index: candidate[3]
        for candidate_index, candidate in enumerate(candidates)
        if len(candidate[3].items) >= MIN_ITEMS
    }
    gains_over_chance = [_estimate_gain_over_chance(sides[1], change.items, outcome) for change in judged_changes.values()]
    words = change_words(list(judged_changes.values()), above=gains_over_chance)
    adjusted_p_values = holm([change.estimate.p for change in judged_changes.values()])
    p_of_falls = _test_falls(sides, judged_changes, outcome)
    judgements = dict(zip(judged_changes, zip(words, adjusted_p_values, gains_over_chance, strict=True), strict=True))
    compared, tasks_with_any_right = [], _find_tasks_with_any_right(sides, outcome)
    for candidate_index, (task, level, is_whole_task, change) in enumerate(candidates):
        word, adjusted_p, gain_over_chance = judgements.get(candidate_index, ("cannot tell", None, None))
        any_right, is_above_chance = task in tasks_with_any_right, gain_over_chance is not None and gain_over_chance.low > 0
        swapped, dependence = (
            estimate if math.isfinite(estimate.value) else None for estimate in (change.swapped, change.dependence)
        )
        if (p_of_fall := p_of_falls.get(candidate_index, 1.0)) < SIGN_ALPHA and adjusted_p is not None:
            word, adjusted_p = "worsens", min(adjusted_p, p_of_fall)
        word = word if any_right else "cannot tell"
        compared.append(
            CellComparison(
                task,
                level,
                is_whole_task,
                change,
                swapped,
                dependence,
                word,
                adjusted_p,
                is_above_chance,
                len(judged_changes),
                any_right,
            )
        )
    return compared


def _test_falls(sides: Sides, changes: Mapping[int, Change], outcome: Outcome) -> dict[int, float]:
    """Test falls to half or less by the signs of the answers that changed, of one seed; two-sided p, adjusted by Hochberg.

    The interval of a few items leaves room for answers that were gained, also where all of them were lost. Where too few
    changed to reach significance, nothing is tested, so that the correction does not count it.
    """
    p_by_index, far_fallen = dict[int, float](), set[int]()
    for index, change in changes.items() if outcome == "greedy" and len(sides[0]) == 1 else ():
        before, after = (side[0].column(READINGS[outcome].column, change.items) for side in sides)
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
    comparisons: Sequence[CellComparison], sides: Sides, outcome: Outcome, protected: Collection[str]
) -> tuple[str, ...]:
    """Tasks that are not protected and are not shown to be above chance after, each with what was right; none where
    anything improved.
    """
    compared = [comparison for comparison in comparisons if comparison.adjusted_p is not None]
    if outcome not in GRADED_OUTCOMES or any(comparison.word == "improves" for comparison in compared):
        return ()
    known, right_by_task = set(protected), dict[str, str]()
    for comparison in compared:  # the whole task comes last
        items = comparison.change.items
        after = float(np.mean([scores.column(READINGS[outcome].column, items) for scores in sides[1]]))
        if comparison.above_chance or (after > 0 and chance_level(sides[1], items) is None):
            known.add(comparison.task)
        right_by_task[comparison.task] = f"{comparison.task} ({after * len(items):.3g} of {len(items)} right after)"
    return tuple(text for task, text in right_by_task.items() if task not in known)


def _find_tasks_with_any_right(sides: Sides, outcome: Outcome) -> set[str]:
    """Tasks of which some answer was right on either side; every task where answers are not graded."""
    checkpoints = [scores for side in sides for scores in side]
    if outcome not in GRADED_OUTCOMES:
        return _list_tasks(checkpoints)
    columns = [READINGS[name].column for name in GRADED_OUTCOMES]
    return {
        task
        for scores in checkpoints
        for column in columns
        for task in scores.every.take(scores.column(column, scores.every) > 0).tasks
    }


def find_unjudged_tasks(sides: Sides, outcome: Outcome) -> tuple[str, ...]:
    """Tasks that both sides have and of which no answer was right on either."""
    shared = set.intersection(*({task for scores in side for task in _list_tasks([scores])} for side in sides))
    return tuple(sorted(shared - _find_tasks_with_any_right(sides, outcome)))


def _compare_parts(sides: Sides, outcome: Outcome) -> Iterator[tuple[str, float | None, bool, Change]]:
    before, after = map(split_by_task, sides)
    for task in sorted(before.keys() & after.keys()):
        task_change = estimate_change(before[task], after[task], outcome=outcome)
        if task_change is None:
            continue
        if len(task_change.items.cells) == 1:  # the cell is the task
            yield *task_change.items.cells[0], False, task_change
            continue
        for items in task_change.items.split():
            cell_change = estimate_change(before[task], after[task], outcome=outcome, included=items)
            if cell_change is not None:
                yield *items.cells[0], False, cell_change
        yield task, None, True, task_change


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


def claims_between(
    sides: Sides, outcome: Outcome, arm: str = "", comparisons: Sequence[CellComparison] | None = None
) -> list[Claim]:
    """Claims of one arm; `comparisons` are those of `compare_cells`, if they are there already."""
    compared = compare_cells(sides, outcome) if comparisons is None else comparisons
    claims = [_make_claim(comparison, sides, outcome, arm) for comparison in compared]
    return claims + _make_unmeasured_claims(find_missing_cells(sides), sides[0], outcome, arm)


def find_missing_cells(sides: Sides) -> list[TaskLevel]:
    """Cells that were measured before, but share no item with what was measured after."""
    shared = set(shared_items(*sides).cells)
    return sorted({cell for scores in sides[0] for cell in scores.items.cells} - shared, key=cell_order)


def _make_claim(comparison: CellComparison, sides: Sides, outcome: Outcome, arm: str) -> Claim:
    items, kind, seeds = comparison.change.items, KIND_BY_WORD[comparison.word], comparison.change.estimate.seeds
    before, after = (float(np.mean([scores.column(READINGS[outcome].column, items) for scores in side])) for side in sides)
    chance = chance_level(sides[1], items)
    evidence = f"{format_count(seeds, 'seed')} x " * (seeds > 1) + f"{format_count(len(items), 'item')}, paired"
    if len(items) < MIN_ITEMS:
        evidence += f"; fewer than {MIN_ITEMS} items"
    elif kind == "cannot tell":
        evidence += f"; {_explain_undecided(comparison, chance, before)}"
    return Claim(
        kind, comparison.task, comparison.level, before, after, to_interval(comparison.change.estimate, outcome), evidence,
        arm=arm,
        swapped=to_interval(comparison.swapped) if comparison.swapped is not None else None,
        dependence=to_interval(comparison.dependence) if comparison.dependence is not None else None,
        chance=chance.value if chance is not None else 0.0,
        detectable=comparison.change.estimate.detectable(comparison.family_size),
        adjusted_p=comparison.adjusted_p,
        whole=comparison.is_whole_task,
        items=len(items),
    )  # fmt: skip


def _explain_undecided(comparison: CellComparison, chance: Interval | None, before: float) -> str:
    """Why nothing is claimed about a part that was measured; success before bounds what could be seen."""
    success_change, reading = comparison.change.estimate, READINGS[comparison.change.outcome]
    if not comparison.any_right:
        return NO_ANSWER
    has_sign = success_change.low > 0 or success_change.high < 0
    is_rise = (success_change.value > 0) == (reading.sign > 0)
    movement = f"{reading.title} {'rose' if is_rise else 'fell'}"
    if 1 < success_change.seeds < MIN_SEEDS:
        return f"{f'{movement}, but ' if has_sign else ''}nothing is judged with fewer than {MIN_SEEDS} seeds"
    if success_change.low > 0 and not comparison.above_chance and reading.unit == "share":
        level = percent(chance.value) if chance is not None else "not measured"
        return f"{movement}, but is not shown to be above the chance level ({level})"
    significant = comparison.adjusted_p is not None and comparison.adjusted_p < SIGN_ALPHA
    if success_change.low > 0 and significant and comparison.change.outcome in GRADED_OUTCOMES:
        return f"{movement}, but perhaps only because it gives the most common answer more often"
    if has_sign:
        claims_text = format_count(comparison.family_size, "comparison")
        return f"{movement}, but this is not significant after correction over {claims_text}"
    detectable, unit = success_change.detectable(comparison.family_size), reading.unit
    if unit == "share" and detectable > max(before, 1 - before):
        return f"too few items to see any change from {percent(before)}"
    size_text = f"{points(detectable).lstrip('+')} points" if unit == "share" else f"{detectable:.3g} {unit}"
    return f"a change of {size_text} would be detected in 4 of 5 cases"


def _estimate_gain_over_chance(after: Sequence[ItemScores], items: Items, outcome: Outcome) -> Estimate | None:
    """Success after minus what the chance rule earns, of the same items and outcome; a loss has no chance level."""
    if READINGS[outcome].unit != "share":
        return None
    gains = np.array(
        [scores.column(READINGS[outcome].column, items) - scores.column(CHANCE_MEASUREMENT, items) for scores in after]
    )
    return estimate_crossed(gains, items.cell)


def _make_unmeasured_claims(
    cells: Sequence[TaskLevel], before: Sequence[ItemScores], outcome: Outcome, arm: str
) -> list[Claim]:
    column, means = READINGS[outcome].column, dict.fromkeys(cells, 0.0)
    for cell in cells:
        values = np.concatenate([scores.column(column, scores.every.of_cells([cell])) for scores in before])
        means[cell] = float(np.mean(values[~np.isnan(values)])) if not np.isnan(values).all() else 0.0
    evidence, unknown = "not measured after on the same items", Interval(0.0, -1.0, 1.0, 0)
    return [Claim("cannot tell", *cell, mean, mean, unknown, evidence, arm) for cell, mean in means.items()]
