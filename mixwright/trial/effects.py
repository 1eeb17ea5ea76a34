"""Effects from measured items and seed rows: one arm against another, paired by seed and item. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mixwright.estimates.crossed import Estimate
from mixwright.estimates.intervals import holm, jackknife
from mixwright.estimates.judgement import MIN_SEEDS, change_word, change_words
from mixwright.estimates.outcome import Change, Item, ItemScores, estimate_change, keep_probe_columns
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome, as_measured
from mixwright.records import ChangeWord, Effect, Interval, SeedRow

SAMPLED_SUCCESS = "success.sampled"
RETENTION_OUTCOME = "retention"
"""The primary outcome on what was mastered before, or was named; cells count the same."""
ITEMS_SUFFIX = ".items"
"""After the name of a number: the mean over items, not over tasks."""
TO_TARGET_NAMES = ("rollouts_to_target", "training_rollouts_to_target")
"""All rollouts charged; without the measuring before the run, which may be worth more than the whole training."""
RATIO_SUFFIX = ".ratio"
"""After the name of a number: the difference is a ratio of restricted means, arm over reference; under 1 is sooner."""


@dataclass(frozen=True)
class Findings:
    """What a trial measured, ready to be compared."""

    scores: Mapping[str, Mapping[int, ItemScores]]
    """Arm -> seed -> the model after training."""
    rows: Sequence[SeedRow]
    """Numbers of all branches."""
    watched_rollouts: Mapping[tuple[str, str], Sequence[int]]
    """(arm, one of `TO_TARGET_NAMES`) -> up to which count of it each run was watched; empty where none was."""
    outcome: Outcome
    """The primary one: success under the declared decoding, or another where nothing is graded."""
    margin: float
    """Change that does not matter."""
    protected: frozenset[Item] = frozenset()
    """Items that retention is read from."""

    def changes(
        self, arm: str, against: str, *, outcome: Outcome, by_items: bool = False, only: Collection[Item] | None = None
    ) -> Change | None:
        """`arm` minus `against` over the seeds that both ran; None when they share no seed or item.

        Args:
            arm: after.
            against: before.
            outcome: what is compared; of one that stands beside the primary one all items that it was read from.
            by_items: whether items count the same, not tasks.
            only: the items that are meant, of which cells count the same; None takes all.
        """
        seeds = sorted(self.scores.get(arm, {}).keys() & self.scores.get(against, {}).keys())
        if not seeds:
            return None
        sides = [[self.scores[name][seed] for seed in seeds] for name in (against, arm)]
        if outcome not in GRADED_OUTCOMES:
            sides = [[keep_probe_columns(scores, outcome) for scores in side] for side in sides]
        weighing = "items" if by_items else "tasks" if only is None else "cells"
        return estimate_change(*sides, outcome=outcome, weigh=weighing, included=only)

    def column(self, arm: str, name: str) -> dict[int, float | None]:
        """Seed -> value of a number; empty when the arm does not have it."""
        return {row.seed: row.value for row in self.rows if (row.arm, row.name) == (arm, name)}


@dataclass(frozen=True)
class Contrast:
    """One arm against another on the primary outcome."""

    arm: str
    """Name of the arm."""
    against: str
    """Name of the arm it is compared with."""
    change: Change
    """Success of `arm` minus success of `against`, and its parts."""
    margin: float
    """Change of success that does not matter, 0..1."""
    word: ChangeWord
    """Corrected by Holm over the contrasts that are judged together."""
    uncorrected_word: ChangeWord
    """Not corrected over contrasts, which must hold all at once (intersection-union), but over the levers of the trial."""
    adjusted_p: float
    """Of the change of success, corrected by Holm over the contrasts that are judged together."""
    family_size: int
    """How many they are."""

    def effect(self, *, helps: bool) -> Effect:
        """As a record; a lever that helps beat every reference, each at its own 5 %, and its words say so."""
        word, p = (self.uncorrected_word, self.change.estimate.p) if helps else (self.word, self.adjusted_p)
        name = READINGS[self.change.outcome].name
        return _effect(self.arm, self.against, name, self.change, word, p, 1 if helps else self.family_size)


def contrasts(findings: Findings, pairs: Sequence[tuple[str, str]], *, levers: int = 1) -> list[Contrast]:
    """These pairs on the primary outcome, one family for Holm; pairs without a common item are left out."""
    changes_by_pair = []
    for pair in pairs:
        change = findings.changes(*pair, outcome=findings.outcome)
        if change is not None:
            changes_by_pair.append((pair, change))
    margin, changes = findings.margin, [change for _, change in changes_by_pair]
    words, adjusted = change_words(changes, margin=margin), holm([change.estimate.p for change in changes])
    contrasts_made = []
    for (pair, change), word, p in zip(changes_by_pair, words, adjusted, strict=True):
        uncorrected = change_word(change, margin=margin, times=levers)
        if change.estimate.seeds < MIN_SEEDS:  # one seed of a trial is no before and after
            word = uncorrected = "cannot tell"
        contrasts_made.append(Contrast(pair[0], pair[1], change, margin, word, uncorrected, p, len(changes_by_pair)))
    return contrasts_made


def effects_of(findings: Findings, contrast: Contrast, *, helps: bool = False) -> list[Effect]:
    """Every effect of a pair: the primary outcome, what stands beside it, and rollouts to the target."""
    arm, against, effects = contrast.arm, contrast.against, [contrast.effect(helps=helps)]
    numbers: list[tuple[str, Outcome, bool]] = [(READINGS[findings.outcome].name + ITEMS_SUFFIX, findings.outcome, True)]
    if findings.outcome == "greedy":
        numbers.insert(0, (SAMPLED_SUCCESS, "sampled", False))
    elif findings.outcome == "preference":
        numbers.insert(0, (READINGS["margin"].name, "margin", False))
    other_outcomes: tuple[Outcome, ...] = ("preference", "margin", "loss")
    known_names = {name for name, _, _ in numbers} | {READINGS[findings.outcome].name}
    for outcome in other_outcomes:
        if READINGS[outcome].name not in known_names:
            numbers.append((READINGS[outcome].name, outcome, False))
    for name, outcome, by_items in numbers:
        change = findings.changes(arm, against, outcome=outcome, by_items=by_items)
        if change is not None and math.isfinite(change.estimate.value):  # nothing is sampled where measure.samples is 0
            effects.append(_effect(arm, against, name, change, None, change.estimate.p, 1))
    retention = findings.changes(arm, against, outcome=findings.outcome, only=findings.protected)
    if retention is not None:  # None where nothing is protected
        effects.append(_effect(arm, against, RETENTION_OUTCOME, retention, None, retention.estimate.p, 1))
    target_effects = [compare_rollouts_to_target(findings, contrast, name) for name in TO_TARGET_NAMES]
    return [*effects, *(effect for effect in target_effects if effect is not None)]


def effects_by_task(findings: Findings, contrast: Contrast) -> list[Effect]:
    """A pair in each task, on the primary outcome and on the losses or preferences beside it; empty for a single task."""
    arm, against, effects = contrast.arm, contrast.against, []
    further_outcomes: tuple[Outcome, ...] = ("preference", "loss")
    for outcome in dict.fromkeys((findings.outcome, *further_outcomes)):
        change_of_all = findings.changes(arm, against, outcome=outcome)
        items = () if change_of_all is None else change_of_all.items
        tasks = sorted({item[0] for item in items})
        for task in tasks if len(tasks) > 1 else ():
            task_items = [item for item in items if item[0] == task]
            change = findings.changes(arm, against, outcome=outcome, only=task_items) if task_items else None
            if change is not None:
                effect = _effect(arm, against, READINGS[outcome].name, change, None, change.estimate.p, 1)
                effects.append(replace(effect, task=task))
    return effects


def compare_rollouts_to_target(findings: Findings, contrast: Contrast, name: str) -> Effect | None:
    """The ratio of restricted mean rollouts to the target; None where one side has none, or nobody arrived.

    The budget is the smallest number of rollouts that any run of the two was watched for. It carries no word: a target can
    be reached by the commonest answer.
    """
    arm, against = contrast.arm, contrast.against
    arm_counts, reference_counts = findings.column(arm, name), findings.column(against, name)
    seeds = sorted(arm_counts.keys() & reference_counts.keys())
    watched_rollouts = [*findings.watched_rollouts.get((arm, name), ()), *findings.watched_rollouts.get((against, name), ())]
    if not seeds or not watched_rollouts:
        return None
    sides = [[column[seed] for seed in seeds] for column in (arm_counts, reference_counts)]
    ratio = restricted_ratio(*sides, budget=min(watched_rollouts))
    if ratio is None:
        return None
    missed_count = sum(value is None for side in sides for value in side)
    return Effect(arm, against, name + RATIO_SUFFIX, ratio, None, censored=missed_count)


def _effect(arm: str, against: str, name: str, change: Change, word: ChangeWord | None, p: float, family: int) -> Effect:
    return Effect(
        arm,
        against,
        name,
        as_measured(change.estimate, change.outcome),
        word,
        p,
        len(change.items),
        change.estimate.detectable(family),
        _to_interval(change.swapped),
        _to_interval(change.dependence),
        _to_interval(change.sampled) if name != SAMPLED_SUCCESS else None,
    )


def _to_interval(estimate: Estimate | None) -> Interval | None:
    """As a record; None for what was not measured for some item."""
    return estimate.interval if estimate is not None and math.isfinite(estimate.value) else None


def restricted_ratio(arm: Sequence[float | None], reference: Sequence[float | None], budget: float) -> Interval | None:
    """Mean of min(T, budget) of the arm over that of the reference; below 1 the arm was sooner.

    A run that missed the target is no missing value: it took at least the whole budget. So every run counts as
    min(T, budget), which is known for all of them. The 95 % interval is a jackknife t interval over pairs on the logarithm
    of the ratio.

    Args:
        arm: T per seed, above 0; None for a run that missed the target.
        reference: of the same seeds, in the same order.
        budget: that every run was watched for.

    Returns:
        None for fewer than two seeds, and where no run of either side arrived within the budget: there is nothing to see.
    """
    times = np.array([[math.inf if t is None else t for t in side] for side in (arm, reference)], dtype=float).T
    if len(times) < 2 or (times >= budget).all():
        return None
    log_ratio = jackknife(np.minimum(times, budget), lambda total: math.log(total[0] / total[1]))
    return (
        Interval(math.exp(log_ratio.value), math.exp(log_ratio.low), math.exp(log_ratio.high), log_ratio.n)
        if log_ratio is not None
        else None
    )
