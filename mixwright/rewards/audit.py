"""Audit of rewards: right and wrong answers in many formats are scored; wrong ones that are paid come first.

Source: known ways of gaming a reward; each is compared with a right and a wrong answer to the same item in the same form.
Unit: *pay*, 0 where a completion earns what a wrong answer earns, 1 where it earns what a right one does.
Cost: some sixty completions per item, scored in one process, and eight rows of two kinds one at a time.
Blind spot: a reward that reads the quality of free text is tried with short answers alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

from mixwright.records import SEVERITIES, Observation, Severity
from mixwright.rewards.behaviours import (
    ASKING,
    BEHAVIOURS,
    COMMA_FORM,
    FORMS,
    OWN_COMPLETION_EDITS,
    SENTENCE_FORM,
    Behaviour,
    Item,
    write_behaviour,
)
from mixwright.rewards.process import Asked, RewardProcess, Score

PAID_FROM = 0.5
"""Pay from which a completion counts as paid."""
RARE_SHARE = 0.1
"""Share of the items below which a fault is not named: a wrong answer may be right by chance."""
SAME_WITHIN = 0.1
"""Difference of pay up to which two completions are paid alike."""
CANNOT_TELL_WITHIN = 0.02
"""The same, where it is said that a reward cannot tell them apart."""
ALONE_ITEMS = 8
"""Items that are scored one at a time, too."""
NOTHING = ("an empty completion", "a refusal")
"""Behaviours that should earn least."""
RIGHT, WRONG, OWN = "a right answer", "a wrong answer", "a completion of the model"
"""Names of the answers in the form that is paid, and of what the model wrote."""
CHECKS = ("failures", "randomness", "order of the batch", "batch", "earlier calls", "right and wrong alike", "overpaid")
CHECKS += ("unjudged", "never paid", "punished", "ignored", "scale", "own completions", "forms", "not priced")
"""Order of the findings within a severity."""
PAY_WHOLE_ANSWER = "Pay for the format only with a right answer, or make its part small."
PAY_NO_LENGTH = "Pay nothing for length, format or repetition alone"


@dataclass(frozen=True)
class Scores:
    """Rewards of one behaviour."""

    texts: tuple[str | None, ...]
    """Completion per item; None where an item has none."""
    parts: tuple[tuple[Score, ...], ...]
    """Per function: a score per item."""
    weights: tuple[float, ...]

    @property
    def totals(self) -> np.ndarray:
        """Return the weighted sum per item, None as 0 like TRL; NaN if a function failed or was not asked."""
        columns = np.array([[_number(value) for value in part] for part in self.parts])
        failed = np.array([[isinstance(value, str) for value in part] for part in self.parts]).any(axis=0)
        asked = np.array([text is not None for text in self.texts])
        sums = np.nansum(columns * np.array(self.weights)[:, None], axis=0)
        return np.where(asked & ~failed, sums, np.nan)

    def unjudged(self) -> int:
        """Return the number of completions without a reward."""
        texts = zip(self.texts, *self.parts, strict=True)
        return sum(text is not None and all(value is None for value in values) for text, *values in texts)

    @property
    def mean(self) -> float:
        """Return the mean total; NaN if there is none."""
        return _mean(self.totals)


@dataclass(frozen=True)
class RewardAudit:
    """Findings, and how the functions were called."""

    observations: tuple[Observation, ...]
    """The worst first."""
    kinds: tuple[str, ...]
    """Per function: TRL, verl, verifiers, or a grader."""
    best_paid_form: str
    """Form of right answers that is paid most above wrong ones in the same form; of several, the one that earns most."""
    seconds_per_completion: float
    completions: int


def audit_rewards(
    names: Sequence[str], weights: Sequence[float], items: Sequence[Item], columns: Sequence[Mapping[str, object]]
) -> RewardAudit:
    """Try the functions on every behaviour.

    Args:
        names: of the functions, `package.module:function`, or graders of the catalogue.
        weights: one per function, as the trainer has them.
        items: rows with right and wrong answers; at least two.
        columns: of each item the row's columns, as the function gets them.

    Raises:
        InputError: a function cannot be imported, or hangs.
    """
    with RewardProcess(names) as process:
        return _Auditor(process, tuple(weights), items, columns).audit()


class _Fault(NamedTuple):
    """What is wrong with what a behaviour earns."""

    severity: Severity
    check: str
    is_case: np.ndarray
    """Of each item, whether it shows the fault."""
    message: str
    remedy: str


class _Auditor:
    """Scores of the behaviours, each made once."""

    def __init__(
        self,
        process: RewardProcess,
        weights: tuple[float, ...],
        items: Sequence[Item],
        columns: Sequence[Mapping[str, object]],
    ) -> None:
        self.process, self.weights, self.items, self.columns = process, weights, items, columns
        self.found: list[tuple[float, Observation]] = []
        self.completions, self.seconds = 0, 0.0

    def audit(self) -> RewardAudit:
        """Return all findings, the worst first."""
        answers_by_kind = {RIGHT: [item.gold for item in self.items], WRONG: [item.other for item in self.items]}
        texts_by_name = {
            f"{kind} ({name})": [form(answer) for answer in answers]
            for kind, answers in answers_by_kind.items()
            for name, form in FORMS.items()
        }
        scores_by_name = self.score(texts_by_name)
        right, wrong = ({name: scores_by_name[f"{kind} ({name})"] for name in FORMS} for kind in (RIGHT, WRONG))
        all_gaps = {name: _mean(right[name].totals - wrong[name].totals) for name in FORMS}
        gaps = {name: gap for name, gap in all_gaps.items() if not math.isnan(gap)}
        best_form = max(gaps, key=lambda name: (round(gaps[name], 6), right[name].mean), default="")
        changed = 0
        if gaps and gaps[best_form] > 1e-9:
            texts = {one.name: [write_behaviour(one, item, best_form) for item in self.items] for one in BEHAVIOURS}
            tried = self.score(texts | {kind: texts_by_name[f"{kind} ({best_form})"] for kind in (RIGHT, WRONG)})
            scores_by_name |= tried
            changed = _count_differences(right[best_form].parts, tried[RIGHT].parts)
            if tried[RIGHT].mean > tried[WRONG].mean:
                self._tell_all_pays(tried, wrong, gaps, best_form)
        elif gaps:
            low, high, count = wrong[best_form].mean, right[best_form].mean, len(self.items)
            message = f"right answers earn {high:.3g} and wrong ones {low:.3g}, in all {len(FORMS)} formats"
            remedy = "Check the answer format that the function expects, and the column of the right answer."
            self.tell("error", "right and wrong alike", count, count, message, remedy)
        self._tell_failures(scores_by_name)
        self._tell_unjudged(scores_by_name)
        self._tell_dependence(best_form or "bare", changed)
        self.found.sort(key=lambda one: (SEVERITIES.index(one[1].severity), CHECKS.index(one[1].check), -one[0]))
        per_completion = self.seconds / max(self.completions, 1)
        observations = tuple(observation for _, observation in self.found)
        return RewardAudit(observations, tuple(self.process.kinds), best_form, per_completion, self.completions)

    def _tell_all_pays(
        self, tried: Mapping[str, Scores], wrong: Mapping[str, Scores], gaps: Mapping[str, float], best_form: str
    ) -> None:
        low, high = tried[WRONG].mean, tried[RIGHT].mean
        count = len(self.items)
        self.tell("info", "scale", count, count, f"right answers ({best_form}) earn {high:.3g}, wrong ones {low:.3g}")
        self._tell_form_pay(tried, wrong, high)
        self._tell_own(best_form, low, high)
        self._tell_pays(tried, low, high)
        paid = [name for name, gap in gaps.items() if gap >= PAID_FROM * gaps[best_form]]
        if unpaid := [name for name in FORMS if name not in paid]:
            message = f"right answers are paid in these formats: {', '.join(paid)}; not in: {', '.join(unpaid)}"
            self.tell("info", "forms", len(unpaid), len(FORMS), message)
        if COMMA_FORM in unpaid and SENTENCE_FORM in paid:
            message = f"a right answer earns nothing in a sentence that goes on: {FORMS[COMMA_FORM](self.items[0].gold)}"
            self.tell("warning", "ignored", count, count, message, "Stop reading a number at the comma behind it.")

    def _tell_own(self, best_form: str, low: float, high: float) -> None:
        """Report how edits change the reward of the model's completions."""
        own = [item.own for item in self.items]
        count = sum(text is not None for text in own)
        if not count:
            return
        form = FORMS[best_form]
        edited = {edit.name: [edit.write(item, form) for item in self.items] for edit in OWN_COMPLETION_EDITS}
        scores = self.score({OWN: own, **edited})
        pays = {name: (one.totals - low) / (high - low) for name, one in scores.items()}
        paid = pays[OWN] >= PAID_FROM
        self.tell("info", "own completions", int(paid.sum()), count, "completions of the model are paid like right answers")
        for name, part in zip(self.process.names, scores[OWN].parts, strict=True):
            if not any(_number(value) for value, text in zip(part, own, strict=True) if text is not None):
                remedy = "Compare what it expects with these completions: the chat template may write their start."
                self.tell("warning", "never paid", count, count, f"{name} earns 0 on all completions of the model", remedy)
        for edit in OWN_COMPLETION_EDITS:
            name, start, remedy = edit.name, "a completion of the model", f"{PAY_NO_LENGTH}."
            change = pays[name] - pays[OWN]
            faults = [_Fault("error", "overpaid", change > SAME_WITHIN, f"{start} earns more {name} than as it is", remedy)]
            if edit.kind == "wrong":
                is_case, remedy = paid & (pays[name] >= PAID_FROM), "Read the last answer; do not pay for several answers."
                faults = [_Fault("error", "overpaid", is_case, f"{start} is still paid when it is {name}", remedy)]
            elif edit.kind == "same":
                message = f"{start} earns less {name} than as it is"
                faults.append(_Fault("warning", "punished", change < -SAME_WITHIN, message, remedy))
            for fault in faults:
                if _is_frequent(fault.is_case, count):
                    self._tell_fault(scores[name], fault, count)

    def score(self, texts_by_name: Mapping[str, Sequence[str | None]]) -> dict[str, Scores]:
        """Score one completion per item and name, in one shuffled call, so that batches mix all kinds of text."""
        places = [(name, n) for name, texts in texts_by_name.items() for n, text in enumerate(texts) if text is not None]
        places = [places[int(n)] for n in np.random.default_rng(0).permutation(len(places))]
        asked = [Asked(self.items[n].example, self.columns[n], texts_by_name[name][n] or "") for name, n in places]
        began = time.monotonic()
        found = self.process.score(asked)
        self.seconds += time.monotonic() - began
        self.completions += len(asked)
        by_place = [dict(zip(places, part, strict=True)) for part in found]
        return {
            name: Scores(
                tuple(texts), tuple(tuple(part.get((name, n)) for n in range(len(texts))) for part in by_place), self.weights
            )
            for name, texts in texts_by_name.items()
        }

    def tell(
        self,
        severity: Severity,
        check: str,
        count: int,
        total: int,
        message: str,
        remedy: str = "",
        examples: Sequence[Mapping[str, object]] = (),
    ) -> None:
        """Note a finding; among equals the one that concerns more items comes first."""
        rank = count / max(total, 1)
        self.found.append((rank, Observation(check, None, severity, count, total, message, remedy, "", tuple(examples))))

    def _tell_fault(self, scores: Scores, fault: _Fault, total: int) -> None:
        """Report a fault of what completions earn, with up to three of them, and who pays if there are several."""
        places = [int(n) for n in np.flatnonzero(fault.is_case) if scores.texts[int(n)] is not None][:3]
        examples = [
            {
                "example": self.items[n].example.id,
                "completion": (scores.texts[n] or "")[-200:],
                "answer": self.items[n].gold,
                "reward": float(scores.totals[n]),
            }
            for n in places
        ]
        message = fault.message + (self._by(scores) if fault.check == "overpaid" else "")
        self.tell(fault.severity, fault.check, int(fault.is_case.sum()), total, message, fault.remedy, examples)

    def _tell_form_pay(self, tried: Mapping[str, Scores], wrong: Mapping[str, Scores], high: float) -> None:
        """Report the pay of a wrong answer in some format, compared with an empty completion and a right answer."""
        floors = [tried[name].mean for name in NOTHING if not math.isnan(tried[name].mean)]
        paid = {name: one.mean for name, one in wrong.items() if not math.isnan(one.mean)}
        if not floors or not paid:
            return
        floor, best_wrong_form = min(floors), max(paid, key=lambda name: paid[name])
        part = (paid[best_wrong_form] - floor) / (high - floor) if high > floor else 0.0
        if part > SAME_WITHIN:
            count = len(self.items)
            message = (
                f"a wrong answer in the format {best_wrong_form} earns {part:.0%} of what a right one earns, both "
                "compared with an empty completion"
            )
            severity: Severity = "error" if part >= PAID_FROM - CANNOT_TELL_WITHIN else "warning"
            message += self._by(wrong[best_wrong_form])
            self.tell(severity, "overpaid", count, count, message, PAY_WHOLE_ANSWER)

    def _tell_pays(self, tried: Mapping[str, Scores], low: float, high: float) -> None:
        """Report overpaid, ignored and punished behaviours, and those paid like a right answer."""
        alike: list[str] = []
        for behaviour in BEHAVIOURS:
            scores = tried[behaviour.name]
            pays = (scores.totals - low) / (high - low)
            total = int((~np.isnan(pays)).sum())
            if not total:
                continue
            if abs(_mean(pays) - 1) <= CANNOT_TELL_WITHIN and behaviour.kind != "wrong":
                alike.append(behaviour.name)
            if fault := _find_fault(behaviour, pays, total):
                self._tell_fault(scores, fault, total)
        if alike:
            message = f"the reward is the same as for a plain right answer: {', '.join(alike)}"
            if not any(item.lacks_value for item in self.items):
                message += f"; not tried: {ASKING} (no row has a true column 'ambiguous')"
            self.tell("info", "not priced", len(alike), len(BEHAVIOURS), message)

    def _by(self, scores: Scores) -> str:
        """Return the function that pays most, if there are several."""
        if len(self.weights) < 2:
            return ""
        means = [
            weight * fmean([value for value in map(_number, part) if not np.isnan(value)] or [0.0])
            for weight, part in zip(self.weights, scores.parts, strict=True)
        ]
        return f", mostly by {self.process.names[int(np.argmax(means))]}"

    def _tell_failures(self, scores_by_name: Mapping[str, Scores]) -> None:
        """Report exceptions and values that are not numbers."""
        scored = ((name, part) for name, scores in scores_by_name.items() for part in scores.parts)
        failed = [(name, n, value) for name, part in scored for n, value in enumerate(part) if isinstance(value, str)]
        if failed:
            name, n, raised = failed[0]
            message = f"the function fails, first on {name}: {raised}"
            remedy = "Return a number for every text, including empty and very long ones."
            example = {"completion": (scores_by_name[name].texts[n] or "")[:200], "answer": self.items[n].gold}
            self.tell("error", "failures", len(failed), _count_texts(scores_by_name), message, remedy, (example,))

    def _tell_unjudged(self, scores_by_name: Mapping[str, Scores]) -> None:
        """Report completions without a reward."""
        by_name = {name: scores.unjudged() for name, scores in scores_by_name.items()}
        if count := sum(by_name.values()):
            total = _count_texts(scores_by_name)
            worst = max(by_name, key=lambda name: by_name[name])
            message = f"no reward (None) is given, most often to {worst}; TRL counts it as 0"
            remedy = "Return a number for every completion of the task."
            self.tell("warning" if count > RARE_SHARE * total else "info", "unjudged", count, total, message, remedy)

    def _tell_dependence(self, form: str, changed: int) -> None:
        """Report scores that depend on chance, on earlier calls, on the order of a batch, or on its other completions.

        `changed` right answers had another reward in the second of the two large calls, whatever the cause.
        """
        rows = list(zip(self.items, self.columns, strict=True))
        with_own_rows = [Asked(item.example, columns, FORMS[form](item.gold)) for item, columns in rows]
        with_other_rows = [Asked(item.example, columns, FORMS[form](item.neighbour)) for item, columns in rows]
        asked, count, total = [*with_own_rows, *with_other_rows], len(rows), 2 * len(rows)
        first, again = self.process.score(asked), self.process.score(asked)
        turned = [part[::-1] for part in self.process.score(asked[::-1])]
        few = [n for n in range(total) if n % count < ALONE_ITEMS] if count >= ALONE_ITEMS else range(total)
        alone = list(zip(*([part[0] for part in self.process.score([asked[n]])] for n in few), strict=True))
        with RewardProcess(self.process.names) as fresh:
            anew = [[*part[count:], *part[:count]] for part in fresh.score([*with_other_rows, *with_own_rows])]
        few_in_batch = [[part[n] for n in few] for part in first]
        randomness = "the same completions get different rewards in a second call", "Remove randomness and state."
        by_itself = "Score each completion by itself, "
        faults = (
            ("randomness", _count_differences(first, again), total, *randomness),
            (
                "order of the batch",
                _count_differences(first, turned),
                total,
                "rewards depend on the order of the batch",
                f"{by_itself}with its own row.",
            ),
            (
                "batch",
                _count_differences(few_in_batch, alone),
                len(few),
                "a completion gets a different reward alone than in a batch",
                f"{by_itself}because the trainer compares the completions of one prompt.",
            ),
            (
                "earlier calls",
                _count_differences(first, anew),
                total,
                "the same completions get different rewards in a new process, in another order",
                "Keep no state between calls, or key it by prompt and answer.",
            ),
            ("randomness", changed, count, *randomness),
        )
        for check, differences, of, message, remedy in faults:
            if differences:
                self.tell("error", check, differences, of, message, remedy)
                return


def _find_fault(behaviour: Behaviour, pays: np.ndarray, total: int) -> _Fault | None:
    """Return what is wrong with the pay of a behaviour, or None.

    Args:
        behaviour: that was tried.
        pays: of each item; NaN where there is none.
        total: items with a pay.
    """
    mean, name, unpaid = _mean(pays), f"'{behaviour.name}'", pays < PAID_FROM
    if behaviour.kind == "wrong":
        paid = pays >= PAID_FROM
        if _is_frequent(paid, total):
            message = f"{name} earns {mean:.0%} of a right answer's reward on average"
            remedy = "Compare the whole last answer in one place; do not pay for several answers."
            return _Fault("error", "overpaid", paid, message, remedy)
        if mean > SAME_WITHIN:
            message = f"{name} earns more than a wrong answer, {mean:.2g} of what a right one earns"
            return _Fault("warning", "overpaid", pays > SAME_WITHIN, message, PAY_WHOLE_ANSWER)
        return None
    if behaviour.name == ASKING and not (pays > SAME_WITHIN).any():
        message = f"never paid for asking: {total} of {total} prompts that lack a value"
        remedy = "Pay a question back on these rows, or the policy learns to guess."
        return _Fault("warning", "ignored", ~np.isnan(pays), message, remedy)
    if mean > 1 + SAME_WITHIN:
        message = f"{name} earns {mean:.2g} times the difference between a right and a wrong answer"
        return _Fault("error", "overpaid", pays > 1 + SAME_WITHIN, message, f"{PAY_NO_LENGTH}, or limit it.")
    if mean < -SAME_WITHIN:
        message = f"{name} earns less than a wrong answer ({mean:.2g} of a right one)"
        remedy = "Limit the penalty for length or format, or the policy learns to say little."
        return _Fault("warning", "punished", pays < 0, message, remedy)
    if _is_frequent(unpaid, total):
        remedy = "Accept this format, or state the expected format in the prompt."
        severity: Severity = "warning" if behaviour.kind == "right" else "info"
        return _Fault(severity, "ignored", unpaid, f"{name} earns nothing", remedy)
    if behaviour.kind == "same" and mean < 1 - SAME_WITHIN:
        message = f"{name} earns {mean:.2g} of what a plain right answer earns"
        return _Fault("info", "punished", pays < 1 - SAME_WITHIN, message, "")
    return None


def _is_frequent(is_case: np.ndarray, total: int) -> bool:
    """Return whether a fault is named: a wrong answer may be right by chance."""
    return int(is_case.sum()) >= max(RARE_SHARE * total, 1)


def _mean(values: np.ndarray) -> float:
    """Return the mean of the numbers among the values; NaN if there is none."""
    return math.nan if np.isnan(values).all() else float(np.nanmean(values))


def _count_texts(scores_by_name: Mapping[str, Scores]) -> int:
    return sum(text is not None for scores in scores_by_name.values() for text in scores.texts)


def _number(value: Score) -> float:
    return value if isinstance(value, float) else float("nan")


def _count_differences(one: Sequence[Sequence[Score]], other: Sequence[Sequence[Score]]) -> int:
    """Return the number of completions that get another score from some function."""
    pairs = [[_alike(a, b) for a, b in zip(first, second, strict=True)] for first, second in zip(one, other, strict=True)]
    return sum(not all(column) for column in zip(*pairs, strict=True))


def _alike(one: Score, other: Score) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-6 * max(1.0, abs(one))
    return type(one) is type(other)
