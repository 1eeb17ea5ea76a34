"""Judgement of one lever: it helps when it beats every reference, each (intersection-union). Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mixwright.estimates.judgement import format_word
from mixwright.estimates.readings import READINGS, format_change, format_unit
from mixwright.records import Judgement, LeverWord, Proof
from mixwright.trial.arm_roles import required_references
from mixwright.trial.effects import Contrast


def judge(
    lever: str, against: Sequence[Contrast], nulls: Sequence[Contrast] = (), *, needed: Sequence[str] | None = None
) -> Judgement:
    """The judgement of one lever.

    It must beat the references of `needed` (not training, and the simple rules), and any other reference that runs, too.

    helps: improves the primary outcome against every reference, none missing; each contrast at its own 5 %, because all of
    them must hold. harms: worsens it against any, corrected by Holm over them. no change: the whole
    interval of success within the margin against all of them.

    Args:
        lever: name of the arm.
        against: its contrasts with the references that ran.
        nulls: its contrasts with its nulls; empty while they did not run.
        needed: references without which nothing helps; None takes those of a trial of a plan.
    """
    missing = tuple(
        name
        for name in (required_references() if needed is None else needed)
        if name not in {contrast.against for contrast in against}
    )
    worse = [contrast for contrast in against if contrast.word == "worsens"]
    unbeaten = [contrast for contrast in against if contrast.uncorrected_word != "improves"]
    word: LeverWord = "cannot tell"
    shown = min(unbeaten or against, key=lambda contrast: contrast.change.success.low, default=None)
    if worse:
        word, shown = "harms", min(worse, key=lambda contrast: contrast.change.success.high)
    elif not missing and not unbeaten:
        word = "helps"
    elif not missing and all(contrast.word in ("no change", "sharper") for contrast in against):
        word = "no change"
    parts = [] if shown is None else [contrast_sentence(shown, shown.uncorrected_word if word == "helps" else shown.word)]
    if missing:
        parts.append(f"did not run: {', '.join(missing)}")
    return Judgement(lever, word, "; ".join(parts), missing, proof_of(nulls))


def proof_of(nulls: Sequence[Contrast]) -> Proof:
    """Whether a lever improves against each null that ran, each at its own 5 %."""
    if not nulls:
        return "not tried"
    return "beats its nulls" if all(null.uncorrected_word == "improves" for null in nulls) else "does not beat its nulls"


def contrast_sentence(contrast: Contrast, word: str) -> str:
    """A contrast with its numbers, success in points."""
    success, dependence, outcome = contrast.change.success, contrast.change.dependence, contrast.change.outcome
    reading = READINGS[outcome]
    parts = [f"{reading.title} {format_change(success, outcome)}"]
    if math.isfinite(dependence.value):
        parts.append(f"dependence on the prompt {format_change(dependence, outcome)}")
    verdict = format_word(word, contrast.margin, outcome)
    if word == "cannot tell":
        detectable = success.detectable(contrast.family)
        difference = f"{100 * detectable:.1f}" if reading.unit == "share" else f"{detectable:.3g}"
        verdict += f" ({difference} {format_unit(reading.unit)} would be seen in 4 of 5 such trials)"
    return f"against {contrast.against}: {', '.join(parts)}: {verdict}"
