"""Judgement of one lever: it helps when it beats every reference, each (intersection-union). Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mixwright.estimates.judgement import format_word
from mixwright.estimates.readings import READINGS, format_change, format_unit
from mixwright.records import Judgement, LeverWord, Proof
from mixwright.trial.effects import Contrast


def judge_lever(
    lever: str,
    reference_contrasts: Sequence[Contrast],
    required: Sequence[str],
    null_contrasts: Sequence[Contrast] = (),
) -> Judgement:
    """Judge one lever.

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
