"""Audit of rewards: right and wrong answers in many formats are scored; wrong ones that are paid come first.

Source: known ways of gaming a reward; each is compared with a right and a wrong answer to the same item in the same form.
Unit: *pay*, 0 where a completion earns what a wrong answer earns, 1 where it earns what a right one does.
Cost: some sixty completions per item, scored in one process, and eight rows of two kinds one at a time.
Blind spot: a reward that reads the quality of free text is tried with short answers alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from mixwright.records import SEVERITIES, Observation, Severity
from mixwright.rewards.behaviours import ASKING, BEHAVIOURS, FORMS, OWN_COMPLETION_EDITS, TAKEN_BACK, Behaviour, Item
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
CHECKS += ("unjudged", "punished", "ignored", "scale", "own completions", "forms", "not priced")
"""Order of the findings within a severity."""


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

    def failures(self) -> list[tuple[int, str]]:
        """(item, what was raised or returned in place of a number)."""
        return [(n, value) for part in self.parts for n, value in enumerate(part) if isinstance(value, str)]


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
        auditor = _Auditor(process, tuple(weights), items, columns)
        return auditor.audit()


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
        golds, others = [item.gold for item in self.items], [item.other for item in self.items]
        rights = {name: [form(gold) for gold in golds] for name, form in FORMS.items()}
        wrongs = {name: [form(other) for other in others] for name, form in FORMS.items()}
        scores_by_name = self.score(
            {f"{RIGHT} ({name})": texts for name, texts in rights.items()}
            | {f"{WRONG} ({name})": texts for name, texts in wrongs.items()}
        )
        right, wrong = ({name: scores_by_name[f"{kind} ({name})"] for name in FORMS} for kind in (RIGHT, WRONG))
        gaps = {
            name: float(np.nanmean(right[name].totals - wrong[name].totals))
            for name in FORMS
            if _are_comparable(right[name], wrong[name])
        }
        best_form = max(gaps, key=lambda name: (round(gaps[name], 6), np.nanmean(right[name].totals)), default="")
        changed = 0
        if gaps and gaps[best_form] > 1e-9:
            form = FORMS[best_form]
            texts = {one.name: [one.write(item, form) for item in self.items] for one in BEHAVIOURS}
            tried = self.score({**texts, RIGHT: rights[best_form], WRONG: wrongs[best_form]})
            scores_by_name |= tried
            changed = _count_differences(right[best_form].parts, tried[RIGHT].parts)
            again_right, again_wrong = tried[RIGHT], tried[WRONG]
            if _are_comparable(again_right, again_wrong) and (
                np.nanmean(again_right.totals) > np.nanmean(again_wrong.totals)
            ):
                self._tell_all_pays(tried, wrong, gaps, best_form)
        elif gaps:
            self._tell_useless(float(np.nanmean(wrong[best_form].totals)), float(np.nanmean(right[best_form].totals)))
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
        low, high = float(np.nanmean(tried[WRONG].totals)), float(np.nanmean(tried[RIGHT].totals))
        count = len(self.items)
        self.tell("info", "scale", count, count, f"right answers ({best_form}) earn {high:.3g}, wrong ones {low:.3g}", "")
        self._tell_form_pay(tried, wrong, high)
        self._tell_own(best_form, low, high)
        self._tell_pays(tried, low, high)
        self._tell_forms(gaps, best_form)

    def _tell_own(self, best_form: str, low: float, high: float) -> None:
        """Report how edits change the reward of the model's completions."""
        own = [item.own for item in self.items]
        count = sum(text is not None for text in own)
        if not count:
            return
        edited = {
            name: [None if text is None else edit(text) for text in own] for name, (_, edit) in OWN_COMPLETION_EDITS.items()
        }
        form = FORMS[best_form]
        edited[TAKEN_BACK] = [
            None if item.own is None else f"{item.own}\nNo, that is wrong.\n{form(item.other)}" for item in self.items
        ]
        scores = self.score({OWN: own, **edited})
        pays = {name: (one.totals - low) / (high - low) for name, one in scores.items()}
        paid = pays[OWN] >= PAID_FROM
        self.tell(
            "info", "own completions", int(paid.sum()), count, "completions of the model are paid like right answers", ""
        )
        for name in edited:
            kind = OWN_COMPLETION_EDITS[name][0] if name in OWN_COMPLETION_EDITS else "wrong"
            change = pays[name] - pays[OWN]
            more, less = change > SAME_WITHIN, change < -SAME_WITHIN
            remedy = "Pay nothing for length, format or repetition alone."
            if kind == "wrong":
                more, remedy = paid & (pays[name] >= PAID_FROM), "Read the last answer; do not pay for several answers."
            cases: tuple[tuple[str, np.ndarray, Severity], ...] = (
                ("more", more, "error"),
                ("less", less & (kind == "same"), "warning"),
            )
            for word, is_case, severity in cases:
                if int(is_case.sum()) >= max(RARE_SHARE * count, 1):
                    what = "is still paid" if kind == "wrong" else f"earns {word}"
                    message = (
                        f"a completion of the model {what} when it is {name}"
                        if kind == "wrong"
                        else (f"a completion of the model {what} {name} than as it is")
                    )
                    examples = self._examples(scores[name], is_case)
                    check = "overpaid" if word == "more" else "punished"
                    self.tell(severity, check, int(is_case.sum()), count, message, remedy, examples)

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
        remedy: str,
        examples: Sequence[Mapping[str, object]] = (),
    ) -> None:
        """Note a finding; among equals the one that concerns more items comes first."""
        rank = count / max(total, 1)
        self.found.append((rank, Observation(check, None, severity, count, total, message, remedy, "", tuple(examples))))

    def _tell_useless(self, low: float, high: float) -> None:
        """Report that right answers never earn more than wrong ones."""
        message = f"right answers earn {high:.3g} and wrong ones {low:.3g}, in all {len(FORMS)} formats"
        remedy = "Check the answer format that the function expects, and the column of the right answer."
        self.tell("error", "right and wrong alike", len(self.items), len(self.items), message, remedy)

    def _tell_form_pay(self, tried: Mapping[str, Scores], wrong: Mapping[str, Scores], high: float) -> None:
        """Report the pay of a wrong answer in some format, compared with an empty completion and a right answer."""
        floors = [np.nanmean(tried[name].totals) for name in NOTHING if not np.isnan(tried[name].totals).all()]
        paid = {name: float(np.nanmean(one.totals)) for name, one in wrong.items() if not np.isnan(one.totals).all()}
        if not floors or not paid:
            return
        floor, best_wrong_form = float(min(floors)), max(paid, key=lambda name: paid[name])
        part = (paid[best_wrong_form] - floor) / (high - floor) if high > floor else 0.0
        if part > SAME_WITHIN:
            count = len(self.items)
            message = (
                f"a wrong answer in the format {best_wrong_form} earns {part:.0%} of what a right one earns, both "
                "compared with an empty completion"
            )
            remedy = "Pay for the format only with a right answer, or make its part small."
            severity: Severity = "error" if part >= PAID_FROM - CANNOT_TELL_WITHIN else "warning"
            self.tell(severity, "overpaid", count, count, message + self._by(wrong[best_wrong_form]), remedy)

    def _tell_pays(self, tried: Mapping[str, Scores], low: float, high: float) -> None:
        """Report overpaid, ignored and punished behaviours, and those paid like a right answer."""
        alike: list[str] = []
        for behaviour in BEHAVIOURS:
            scores = tried[behaviour.name]
            pays = (scores.totals - low) / (high - low)
            known = ~np.isnan(pays)
            total = int(known.sum())
            if not total:
                continue
            mean = float(pays[known].mean())
            if abs(mean - 1) <= CANNOT_TELL_WITHIN and behaviour.kind != "wrong":
                alike.append(behaviour.name)
            if behaviour.kind == "wrong":
                self._tell_wrong(behaviour, scores, pays, mean)
            elif behaviour.name == ASKING and (pays[known] <= SAME_WITHIN).all():
                message = f"never paid for asking: {total} of {total} prompts that lack a value"
                remedy = "Pay a question back on these rows, or the policy learns to guess."
                self.tell("warning", "ignored", total, total, message, remedy, self._examples(scores, known))
            elif mean > 1 + SAME_WITHIN:
                count = int((pays[known] > 1 + SAME_WITHIN).sum())
                message = f"'{behaviour.name}' earns {mean:.2g} times the difference between a right and a wrong answer"
                remedy = "Pay nothing for length, format or repetition alone, or limit it."
                self.tell(
                    "error",
                    "overpaid",
                    count,
                    total,
                    message + self._by(scores),
                    remedy,
                    self._examples(scores, pays > 1 + SAME_WITHIN),
                )
            elif mean < -SAME_WITHIN:
                message = f"'{behaviour.name}' earns less than a wrong answer ({mean:.2g} of a right one)"
                remedy = "Limit the penalty for length or format, or the policy learns to say little."
                self.tell(
                    "warning",
                    "punished",
                    int((pays[known] < 0).sum()),
                    total,
                    message,
                    remedy,
                    self._examples(scores, pays < 0),
                )
            else:
                count = int((pays[known] < PAID_FROM).sum())
                if count >= max(RARE_SHARE * total, 1):
                    message = f"'{behaviour.name}' earns nothing"
                    remedy = "Accept this format, or state the expected format in the prompt."
                    severity: Severity = "warning" if behaviour.kind == "right" else "info"
                    self.tell(severity, "ignored", count, total, message, remedy, self._examples(scores, pays < PAID_FROM))
                elif behaviour.kind == "same" and mean < 1 - SAME_WITHIN:
                    message = f"'{behaviour.name}' earns {mean:.2g} of what a plain right answer earns"
                    count = int((pays[known] < 1 - SAME_WITHIN).sum())
                    self.tell("info", "punished", count, total, message, "", self._examples(scores, pays < 1 - SAME_WITHIN))
        if alike:
            message = f"the reward is the same as for a plain right answer: {', '.join(alike)}"
            if not any(item.lacks_value for item in self.items):
                message += f"; not tried: {ASKING} (no row has a true column 'ambiguous')"
            self.tell("info", "not priced", len(alike), len(BEHAVIOURS), message, "")

    def _tell_wrong(self, behaviour: Behaviour, scores: Scores, pays: np.ndarray, mean: float) -> None:
        """Report a completion that should earn nothing and is paid."""
        known = ~np.isnan(pays)
        total, count = int(known.sum()), int((pays[known] >= PAID_FROM).sum())
        if count >= max(RARE_SHARE * total, 1):
            message = f"'{behaviour.name}' earns {mean:.0%} of a right answer's reward on average"
            remedy = "Compare the whole last answer in one place; do not pay for several answers."
            examples = self._examples(scores, pays >= PAID_FROM)
            self.tell("error", "overpaid", count, total, message + self._by(scores), remedy, examples)
        elif mean > SAME_WITHIN:
            message = f"'{behaviour.name}' earns more than a wrong answer, {mean:.2g} of what a right one earns"
            remedy = "Pay for the format only with a right answer, or make its part small."
            self.tell(
                "warning",
                "overpaid",
                int((pays[known] > SAME_WITHIN).sum()),
                total,
                message + self._by(scores),
                remedy,
            )

    def _by(self, scores: Scores) -> str:
        """Return the function that pays most, if there are several."""
        if len(self.weights) < 2:
            return ""
        means = [
            weight * fmean([value for value in map(_number, part) if not np.isnan(value)] or [0.0])
            for weight, part in zip(self.weights, scores.parts, strict=True)
        ]
        return f", mostly by {self.process.names[int(np.argmax(means))]}"

    def _tell_forms(self, gaps: Mapping[str, float], best_form: str) -> None:
        paid = [name for name, gap in gaps.items() if gap >= PAID_FROM * gaps[best_form]]
        unpaid = [name for name in FORMS if name not in paid]
        if unpaid:
            message = f"right answers are paid in these formats: {', '.join(paid)}; not in: {', '.join(unpaid)}"
            self.tell("info", "forms", len(unpaid), len(FORMS), message, "")

    def _tell_failures(self, scores_by_name: Mapping[str, Scores]) -> None:
        """Report exceptions and values that are not numbers."""
        failed = {name: scores.failures() for name, scores in scores_by_name.items() if scores.failures()}
        if failed:
            count = sum(map(len, failed.values()))
            total = sum(sum(text is not None for text in scores.texts) for scores in scores_by_name.values())
            name, (first, *_) = next(iter(failed.items()))
            message = f"the function fails, first on {name}: {first[1]}"
            remedy = "Return a number for every text, including empty and very long ones."
            example = {"completion": (scores_by_name[name].texts[first[0]] or "")[:200], "answer": self.items[first[0]].gold}
            self.tell("error", "failures", count, total, message, remedy, (example,))

    def _tell_unjudged(self, scores_by_name: Mapping[str, Scores]) -> None:
        """Report completions without a reward."""
        by_name = {name: scores.unjudged() for name, scores in scores_by_name.items()}
        if count := sum(by_name.values()):
            total = sum(sum(text is not None for text in scores.texts) for scores in scores_by_name.values())
            worst = max(by_name, key=lambda name: by_name[name])
            message = f"no reward (None) is given, most often to {worst}; TRL counts it as 0"
            remedy = "Return a number for every completion of the task."
            self.tell("warning" if count > RARE_SHARE * total else "info", "unjudged", count, total, message, remedy)

    def _tell_other_rewards(self, count: int, total: int) -> None:
        message, remedy = "the same completions get different rewards in a second call", "Remove randomness and state."
        self.tell("error", "randomness", count, total, message, remedy)

    def _tell_dependence(self, form: str, changed: int) -> None:
        """Report scores that depend on chance, on earlier calls, on the order of a batch, or on its other completions.

        `changed` right answers had another reward in the second of the two large calls, whatever the cause.
        """
        rows = list(zip(self.items, self.columns, strict=True))
        with_own_rows = [Asked(item.example, columns, FORMS[form](item.gold)) for item, columns in rows]
        with_other_rows = [Asked(item.example, columns, FORMS[form](item.neighbour)) for item, columns in rows]
        asked = [*with_own_rows, *with_other_rows]
        first, again = self.process.score(asked), self.process.score(asked)
        turned = [part[::-1] for part in self.process.score(asked[::-1])]
        few_indices = (
            [*range(ALONE_ITEMS), *range(len(with_own_rows), len(with_own_rows) + ALONE_ITEMS)]
            if len(with_own_rows) >= ALONE_ITEMS
            else range(len(asked))
        )
        single = [self.process.score([asked[n]]) for n in few_indices]
        alone = [[one[part][0] for one in single] for part in range(len(first))]
        with RewardProcess(self.process.names) as fresh:
            anew = [
                [*part[len(with_own_rows) :], *part[: len(with_own_rows)]]
                for part in fresh.score([*with_other_rows, *with_own_rows])
            ]
        few_in_batch = [[part[n] for n in few_indices] for part in first]
        total = len(asked)
        if count := _count_differences(first, again):
            self._tell_other_rewards(count, total)
        elif count := _count_differences(first, turned):
            remedy = "Score each completion by itself, with its own row."
            self.tell("error", "order of the batch", count, total, "rewards depend on the order of the batch", remedy)
        elif count := _count_differences(few_in_batch, alone):
            remedy = "Score each completion by itself, because the trainer compares the completions of one prompt."
            message = "a completion gets a different reward alone than in a batch"
            self.tell("error", "batch", count, len(few_in_batch[0]), message, remedy)
        elif count := _count_differences(first, anew):
            message = "the same completions get different rewards in a new process, in another order"
            self.tell(
                "error",
                "earlier calls",
                count,
                total,
                message,
                "Keep no state between calls, or key it by prompt and answer.",
            )
        elif changed:
            self._tell_other_rewards(changed, len(self.items))

    def _examples(self, scores: Scores, chosen: np.ndarray) -> tuple[Mapping[str, object], ...]:
        """Return up to three completions with their answers and rewards."""
        places = [int(n) for n in np.flatnonzero(chosen) if scores.texts[int(n)] is not None][:3]
        return tuple(
            {
                "example": self.items[n].example.id,
                "completion": (scores.texts[n] or "")[-200:],
                "answer": self.items[n].gold,
                "reward": float(scores.totals[n]),
            }
            for n in places
        )


def _number(value: Score) -> float:
    return value if isinstance(value, float) else float("nan")


def _are_comparable(*scores: Scores) -> bool:
    return all(bool((~np.isnan(one.totals)).any()) for one in scores) and bool(
        (~np.isnan(scores[0].totals - scores[-1].totals)).any()
    )


def _count_differences(one: Sequence[Sequence[Score]], other: Sequence[Sequence[Score]]) -> int:
    """Return the number of completions that get another score from some function."""
    pairs = [[_alike(a, b) for a, b in zip(first, second, strict=True)] for first, second in zip(one, other, strict=True)]
    return sum(not all(column) for column in zip(*pairs, strict=True))


def _alike(one: Score, other: Score) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-6 * max(1.0, abs(one))
    return type(one) is type(other)
