"""Probe of answer formats: which there are, how often each is used, and how often each is right.

Source: concentration of answer formats under reinforcement learning (2504.07912).
Unit: share
Cost: reads the sampled completions; none of its own.
Blind spot: two ways of reasoning that end in one form are one form; forms beyond the commonest are one row;
where nearly every sample has a form of its own, the interval of the entropy is too narrow.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mixwright.contracts import Probe
from mixwright.corpus import Corpus
from mixwright.errors import check_range
from mixwright.estimates.intervals import clustered_share, jackknife, wilson
from mixwright.measure.passes import Passes
from mixwright.records import Example, Interval, Measurement
from mixwright.skeleton import FORM_ACCURACY_NAME_PREFIX, FORM_SHARE_NAME_PREFIX, OTHER_FORMS, skeleton

NEEDS = ("torch", "transformers")
IN_USE_SHARE = 0.02
"""Share from which a format is in use: rarer ones are hardly ever sampled, so they are hardly ever rewarded."""
LOW_ACCURACY = 0.1
"""Accuracy of a task below which an unused gold form is reported."""


class Formats(Probe):
    """Per task: `share:<form>` and `accuracy:<form>` of the commonest forms, and `format_entropy`.

    Forms are skeletons (`mixwright.skeleton`). Entropy is in shares of its largest value for the forms seen: 0 is one
    form only, 1 is all forms equally often. The nulls: a form's share among gold answers, the task's accuracy, and the
    entropy of the gold answers' forms.
    """

    def __init__(self, *, top: int = 5) -> None:
        """`top`: how many forms per task get rows of their own, at least 1."""
        self.top = top
        check_range("measure.options.formats", vars(self), top=(1, 1000))

    def measure(self, passes: Passes, corpus: Corpus, rng: np.random.Generator) -> list[Measurement]:
        """See the class. Nothing where no completion is sampled."""
        if not passes.config.samples:
            return []
        tasks: dict[str, list[Example]] = defaultdict(list)
        for item in passes.items:
            tasks[item.task].append(item)
        measurements = []
        for task, items in tasks.items():
            rollouts = [passes.rollouts[item.id] for item in items]
            forms = np.array([[skeleton(sample.text) for sample in rollout.samples] for rollout in rollouts], dtype=object)
            gold = Counter(skeleton(item.answer or "") for item in items)
            measurements += measure_formats(task, forms, np.array([rollout.correct for rollout in rollouts]), gold, self.top)
        return measurements


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


def warn_of_unused_forms(rows: Sequence[Measurement]) -> list[str]:
    """Return a sentence per gold form that the model hardly writes, in tasks in which hardly anything is right.

    Args:
        rows: measurements before the run.
    """
    task_rows = [row for row in rows if row.null is not None]
    accuracy_by_task = {row.task: row.null or 0.0 for row in task_rows if row.name.startswith(FORM_ACCURACY_NAME_PREFIX)}
    greedy = [row for row in task_rows if (row.probe, row.name) == ("competence", "greedy")]
    tasks_in_reach = {task for task, share in accuracy_by_task.items() if share >= LOW_ACCURACY}
    tasks_in_reach |= {row.task for row in greedy if row.value >= LOW_ACCURACY}
    warnings = []
    for row in task_rows:
        form = row.name.removeprefix(FORM_SHARE_NAME_PREFIX)
        if form in (row.name, OTHER_FORMS) or row.task in tasks_in_reach:
            continue
        if (row.null or 0.0) >= 0.5 and row.value < IN_USE_SHARE:
            accuracy = accuracy_by_task.get(row.task, 0.0)
            finding = f"{row.task}: {accuracy:.0%} of samples are right; gold answers look like {form!r}"
            remedy = "RL will hardly ever reward that format: train it by SFT first."
            warnings.append(f"{finding}, {row.value:.1%} of samples do. {remedy}")
    return warnings
