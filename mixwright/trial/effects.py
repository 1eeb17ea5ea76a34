"""Effects from measured items and seed rows: one arm against another, paired by seed and item. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mixwright.estimates.crossed import Estimate
from mixwright.estimates.intervals import holm, jackknife
from mixwright.estimates.items import Items
from mixwright.estimates.judgement import MIN_SEEDS, change_word, change_words
from mixwright.estimates.outcome import Change, Included, ItemScores, estimate_change, keep_probe_columns
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome, as_measured
from mixwright.records import ChangeWord, Effect, Interval, SeedRow

SAMPLED_SUCCESS = "success.sampled"
SECONDARY_OUTCOMES: tuple[Outcome, ...] = ("preference", "margin", "loss")
"""Outcomes that are compared besides the primary one, where they were measured."""
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
    protected: Items = field(default_factory=Items)
    """Items that retention is read from."""

    def changes(
        self, arm: str, against: str, *, outcome: Outcome, by_items: bool = False, only: Included | None = None
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
        """Return it as a record; a lever that helps beat every reference, each at its own 5 %, and its words say so."""
        name = READINGS[self.change.outcome].name
        if helps:
            return _effect(self.arm, self.against, name, self.change, self.uncorrected_word)
        effect = _effect(self.arm, self.against, name, self.change, self.word, self.family_size)
        return replace(effect, p=self.adjusted_p)


def contrasts(findings: Findings, pairs: Sequence[tuple[str, str]], *, levers: int = 1) -> list[Contrast]:
    """Compare these pairs on the primary outcome, one family for Holm; pairs without a common item are left out."""
    change_by_pair = {pair: findings.changes(*pair, outcome=findings.outcome) for pair in pairs}
    compared = {pair: change for pair, change in change_by_pair.items() if change is not None}
    margin, changes = findings.margin, list(compared.values())
    words, adjusted = change_words(changes, margin=margin), holm([change.estimate.p for change in changes])
    contrasts_made = []
    for ((arm, against), change), word, p in zip(compared.items(), words, adjusted, strict=True):
        uncorrected = change_word(change, margin=margin, times=levers)
        if change.estimate.seeds < MIN_SEEDS:  # one seed of a trial is no before and after
            word = uncorrected = "cannot tell"
        contrasts_made.append(Contrast(arm, against, change, margin, word, uncorrected, p, len(compared)))
    return contrasts_made


def effects_of(findings: Findings, contrast: Contrast, *, helps: bool = False) -> list[Effect]:
    """Return every effect of a pair: the primary outcome, other outcomes and retention, and rollouts to the target."""
    arm, against, primary = contrast.arm, contrast.against, findings.outcome
    outcomes: dict[str, Outcome] = {SAMPLED_SUCCESS: "sampled"} if primary == "greedy" else {}
    outcomes |= {READINGS[outcome].name: outcome for outcome in SECONDARY_OUTCOMES if outcome != primary}
    changes = {name: findings.changes(arm, against, outcome=outcome) for name, outcome in outcomes.items()}
    changes[READINGS[primary].name + ITEMS_SUFFIX] = findings.changes(arm, against, outcome=primary, by_items=True)
    changes[RETENTION_OUTCOME] = findings.changes(arm, against, outcome=primary, only=findings.protected)
    effects = [contrast.effect(helps=helps)]
    for name, change in changes.items():
        if change is not None and math.isfinite(change.estimate.value):  # nothing is sampled where measure.samples is 0
            effects.append(_effect(arm, against, name, change))
    for name in TO_TARGET_NAMES:
        effect = compare_rollouts_to_target(findings, contrast, name)
        if effect is not None:
            effects.append(effect)
    return effects


def effects_by_task(findings: Findings, contrast: Contrast) -> list[Effect]:
    """Return a pair in each task, on the primary outcome and on other losses or preferences; empty for a single task."""
    arm, against, effects = contrast.arm, contrast.against, []
    further_outcomes: tuple[Outcome, ...] = ("preference", "loss")
    for outcome in dict.fromkeys((findings.outcome, *further_outcomes)):
        change_of_all = findings.changes(arm, against, outcome=outcome)
        tasks = () if change_of_all is None else change_of_all.items.tasks
        for task in tasks if len(tasks) > 1 else ():
            change = findings.changes(arm, against, outcome=outcome, only=lambda items, task=task: items.of_tasks([task]))
            if change is not None:
                effects.append(replace(_effect(arm, against, READINGS[outcome].name, change), task=task))
    return effects


def compare_rollouts_to_target(findings: Findings, contrast: Contrast, name: str) -> Effect | None:
    """Return the ratio of restricted mean rollouts to the target; None where one side has none, or nobody arrived.

    The budget is the smallest number of rollouts that any run of the two was watched for. It carries no word: a target can
    be reached by the commonest answer.
    """
    pair = (contrast.arm, contrast.against)
    columns = [findings.column(arm, name) for arm in pair]
    seeds = sorted(columns[0].keys() & columns[1].keys())
    watched_rollouts = [count for arm in pair for count in findings.watched_rollouts.get((arm, name), ())]
    if not seeds or not watched_rollouts:
        return None
    arm_counts, reference_counts = ([column[seed] for seed in seeds] for column in columns)
    ratio = restricted_ratio(arm_counts, reference_counts, budget=min(watched_rollouts))
    if ratio is None:
        return None
    return Effect(*pair, name + RATIO_SUFFIX, ratio, None, censored=[*arm_counts, *reference_counts].count(None))


def _effect(arm: str, against: str, name: str, change: Change, word: ChangeWord | None = None, family: int = 1) -> Effect:
    return Effect(
        arm,
        against,
        name,
        as_measured(change.estimate, change.outcome),
        word,
        change.estimate.p,
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
    if log_ratio is None:
        return None
    return Interval(math.exp(log_ratio.value), math.exp(log_ratio.low), math.exp(log_ratio.high), log_ratio.n)
