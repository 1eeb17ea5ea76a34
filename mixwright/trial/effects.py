"""Effects from measured items, one arm against another, paired by seed and item, and what they say of a lever. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mixwright.estimates.crossed import Estimate
from mixwright.estimates.intervals import holm
from mixwright.estimates.items import Items
from mixwright.estimates.judgement import MIN_SEEDS, change_word, change_words, format_word
from mixwright.estimates.outcome import Change, Included, ItemScores, estimate_change, keep_probe_columns
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome, as_measured, format_change, format_unit
from mixwright.records import ChangeWord, Effect, Interval, Judgement, LeverWord, Proof

SAMPLED_SUCCESS = "success.sampled"
SECONDARY_OUTCOMES: tuple[Outcome, ...] = ("preference", "margin", "loss")
"""Outcomes that are compared besides the primary one, where they were measured."""
RETENTION_OUTCOME = "retention"
"""The primary outcome on what was mastered before, or was named; cells count the same."""
ITEMS_SUFFIX = ".items"
"""After the name of a number: the mean over items, not over tasks."""


@dataclass(frozen=True)
class Findings:
    """What a trial measured, ready to be compared."""

    scores: Mapping[str, Mapping[int, ItemScores]]
    """Arm -> seed -> the model after training."""
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
    """Return every effect of a pair: the primary outcome, other outcomes and retention."""
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


def judge_lever(
    lever: str,
    reference_contrasts: Sequence[Contrast],
    required: Sequence[str],
    null_contrasts: Sequence[Contrast] = (),
) -> Judgement:
    """Judge one lever: it helps when it beats every reference, each (intersection-union).

    It must beat the references of `required` (not training, and the simple rules), and any other reference that runs, too.

    helps: improves the primary outcome against every reference, none missing; each contrast at its own 5 %, because all of
    them must hold. harms: worsens it against any, corrected by Holm over them. no change: the whole
    interval of success within the margin against all of them.

    Args:
        lever: name of the arm.
        reference_contrasts: its contrasts with the references that ran.
        required: references without which nothing helps.
        null_contrasts: its contrasts with its nulls; empty while they did not run.
    """
    references_run = {contrast.against for contrast in reference_contrasts}
    missing_references = tuple(name for name in required if name not in references_run)
    harming = [contrast for contrast in reference_contrasts if contrast.word == "worsens"]
    unbeaten_references = [contrast for contrast in reference_contrasts if contrast.uncorrected_word != "improves"]
    word: LeverWord = "cannot tell"
    deciding_contrast = min(
        unbeaten_references or reference_contrasts, key=lambda contrast: contrast.change.estimate.low, default=None
    )
    if harming:
        word, deciding_contrast = "harms", min(harming, key=lambda contrast: contrast.change.estimate.high)
    elif not missing_references and not unbeaten_references:
        word = "helps"
    elif not missing_references and all(contrast.word in ("no change", "sharper") for contrast in reference_contrasts):
        word = "no change"
    reasons = []
    if deciding_contrast is not None:
        deciding_word = deciding_contrast.uncorrected_word if word == "helps" else deciding_contrast.word
        reasons.append(contrast_sentence(deciding_contrast, deciding_word))
    if missing_references:
        reasons.append(f"did not run: {', '.join(missing_references)}")
    return Judgement(lever, word, "; ".join(reasons), missing_references, proof_of(null_contrasts))


def proof_of(null_contrasts: Sequence[Contrast]) -> Proof:
    """Whether a lever improves against each null that ran, each at its own 5 %."""
    if not null_contrasts:
        return "not tried"
    return (
        "beats its nulls"
        if all(contrast.uncorrected_word == "improves" for contrast in null_contrasts)
        else "does not beat its nulls"
    )


def contrast_sentence(contrast: Contrast, word: str) -> str:
    """A contrast with its numbers, success in points."""
    success, dependence, outcome = contrast.change.estimate, contrast.change.dependence, contrast.change.outcome
    reading = READINGS[outcome]
    change_texts = [f"{reading.title} {format_change(success, outcome)}"]
    if math.isfinite(dependence.value):
        change_texts.append(f"dependence on the prompt {format_change(dependence, outcome)}")
    verdict_text = format_word(word, contrast.margin, outcome)
    if word == "cannot tell":
        detectable = success.detectable(contrast.family_size)
        detectable_text = f"{100 * detectable:.1f}" if reading.unit == "share" else f"{detectable:.3g}"
        verdict_text += f" ({detectable_text} {format_unit(reading.unit)} would be detected in 4 of 5 such trials)"
    return f"against {contrast.against}: {', '.join(change_texts)}: {verdict_text}"
