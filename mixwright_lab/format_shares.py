"""Shares and accuracies of answer formats, from what a model sampled: `share:<form>`, `accuracy:<form>`, `format_entropy`.

Source: concentration of answer formats under reinforcement learning (2504.07912).
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.intervals import clustered_share, jackknife, wilson
from mixwright.records import Interval, Measurement

FORM_SHARE_NAME_PREFIX, FORM_ACCURACY_NAME_PREFIX = "share:", "accuracy:"
"""Prefixes of the measurements of a form, which follows."""
OTHER_FORMS = "(other forms)"
"""Their row of all forms beyond the commonest."""
IN_USE_SHARE = 0.02
"""Share from which a format is in use: rarer ones are hardly ever sampled, so they are hardly ever rewarded."""


def measure_formats(
    task: str, forms: NDArray[np.object_], correct: NDArray[np.float64], gold: Counter[str], top: int
) -> list[Measurement]:
    """The rows of one task.

    Args:
        task: its name.
        forms: of each sample, shape (items, samples).
        correct: 1 or 0 of each sample, the same shape.
        gold: how many gold answers have each form; the commonest is reported even if no sample has it, if half of them do.
        top: how many forms get rows of their own.
    """
    counts = Counter(forms.ravel().tolist())
    ranked = sorted(counts, key=lambda form: (-counts[form], form))
    measurements = []
    table = np.array([[float((row == form).sum()) for form in ranked] for row in forms])
    if (entropy := jackknife(table, normalised_entropy)) is not None:
        low, high = max(0.0, entropy.low), min(1.0, entropy.high)
        null = normalised_entropy(np.array(list(gold.values()), dtype=float))
        estimate = Interval(entropy.value, low, high, forms.size)
        measurements.append(_make_row(task, "format_entropy", estimate, null, "gold answers"))
    reported_forms = ranked[:top]
    for gold_form, times in gold.most_common(1):
        if gold_form not in reported_forms and 2 * times >= gold.total():
            reported_forms.append(gold_form)
    for form in [*reported_forms, OTHER_FORMS] if len(ranked) > top else reported_forms:
        is_rest = form == OTHER_FORMS
        has_form = ~np.isin(forms, reported_forms) if is_rest else forms == form
        expected = sum(n for one, n in gold.items() if (one not in reported_forms if is_rest else one == form))
        share = clustered_share(has_form.mean(1), has_form.shape[1])
        measurements.append(_make_row(task, FORM_SHARE_NAME_PREFIX + form, share, expected / gold.total(), "gold answers"))
        if has_form.any():
            right = float(correct[has_form].mean())
            items = int(has_form.any(1).sum())  # items are the unit: samples of one are not independent
            low, high = wilson(right * items, items)
            accuracy, null = Interval(right, float(low), float(high), n=int(has_form.sum())), float(correct.mean())
            name = FORM_ACCURACY_NAME_PREFIX + form
            measurements.append(_make_row(task, name, accuracy, null, "accuracy over all forms"))
    return measurements


def normalised_entropy(counts: NDArray[np.float64]) -> float:
    """Entropy of the shares over the logarithm of how many kinds there are; 0 for one kind."""
    shares = counts[counts > 0] / counts.sum()
    return min(1.0, float(-(shares * np.log(shares)).sum() / np.log(len(counts)))) if len(counts) > 1 else 0.0


def _make_row(task: str, name: str, estimate: Interval, null: float, null_of: str) -> Measurement:
    interval = (estimate.value, estimate.low, estimate.high, estimate.n)
    return Measurement("formats", task, name, *interval, "share", None, null, null_of)
