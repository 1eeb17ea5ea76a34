"""Chance level: the success, on the rows that are scored, of the best rule without the skill, chosen on other rows.

Rules: blind choice where the grader knows its rate; one constant answer; for rows with options a fixed place, or the
longest or shortest option; for others the first or last number of the prompt. A rule that was chosen on the rows it is
scored on looks better than it is (ten equally likely answers: 28 % at 10 rows instead of 10 %), so where there are no other
rows the rows are split in folds, and each is scored by the rule that the other folds chose. The result has an error of its
own.

What is chosen on some rows of a set is less common in the rest of it: a coin's two answers, 32 and 28 of 60, were called
40 % so. Hence the level is never below what needs no choice (`Rules.earnings_without_choice`): blind choice among the
options of a row, or, where the answers are a closed set, blind choice among them, or answers drawn as often as they stand in
the other rows.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.intervals import wilson_ends
from mixwright.records import Example, Interval

MAX_ROWS_TRIED = 500
"""Rows of a cell that rules are tried on; more are thinned evenly (standard error at most .022)."""
MAX_CONSTANT_ANSWERS = 3
"""How many of the commonest answers are tried as the one that is always given."""
FOLDS = 5
CLOSED_SET_MEAN_REPEATS = 4
"""Answers are a closed set where each stands this often on average: two answers from 8 rows on, five from 20."""
RIGHT_FROM_SCORE = 1.0 - 1e-6
"""A completion counts as right from this score on; partial credit is no success."""
BLIND_CHOICE_RULE = "blind choice"
NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,9})?")
CHARACTERS_READ = 4000
"""Characters of a prompt that are searched for numbers, at each end."""
Grade = Callable[[Example, str], float]


@dataclass(frozen=True, slots=True)
class Chance:
    """The chance level of some rows."""

    value: float
    """Mean of `hits`, 0..1."""
    low: float
    """Lower end of its 95 % interval, rows as the unit."""
    high: float
    """Upper end of it."""
    rule: str
    """The rule that most rows were scored by, or that needs no choice; `nothing known` where no rule could be chosen."""
    hits: NDArray[np.float64]
    """Shape (rows,): success of the rule on each row."""

    @property
    def interval(self) -> Interval:
        """As a record."""
        return Interval(self.value, self.low, self.high, len(self.hits))


class Rules:
    """Answers without the skill, and what they earn; every (rule, row) is graded once.

    Args:
        grade: judges a completion for an example.
        blind: success of blind choice over rows, None where it is not known; the grader's `luck`.
        options: texts of a row's options in order, empty where it has none.
        reading: what of an answer is compared: worked solutions that end in one number are one constant answer.
    """

    def __init__(
        self,
        grade: Grade,
        blind: Callable[[Sequence[Example]], float | None] = lambda _: None,
        options: Callable[[Example], Sequence[str]] = lambda _: (),
        reading: Callable[[str], str] = str,
    ) -> None:
        self._grade, self._blind, self._read_options, self._reading = grade, blind, options, reading
        self._known: dict[tuple[str, str], float] = {}
        self._known_options: dict[str, Sequence[str]] = {}

    def choose(self, rows: Sequence[Example]) -> str:
        """The rule that earns most on these rows, the first of equals; empty when there is none."""
        rows = thin_rows(rows)
        scores = {rule: float(self.hits(rule, rows).mean()) for rule in self._candidates(rows)} if rows else {}
        return max(scores, key=lambda rule: scores[rule]) if scores else ""

    def hits(self, rule: str, rows: Sequence[Example]) -> NDArray[np.float64]:
        """What a rule earns on each row, 0 or 1 (blind choice: its rate)."""
        return np.array([self._hit(rule, row) for row in rows])

    def earnings_without_choice(
        self, scored: Sequence[Example], other_rows: Sequence[Example] = ()
    ) -> dict[str, NDArray[np.float64]]:
        """What each rule that is not chosen on rows earns on each scored one; empty where answers are open."""
        earnings = {}
        if self._blind(scored) is not None:
            earnings[BLIND_CHOICE_RULE] = self.hits(BLIND_CHOICE_RULE, scored)
        readings = {row.id: self._reading(row.answer) for row in (*other_rows, *scored) if row.answer is not None}
        counts = Counter(readings.values())
        if counts.total() >= CLOSED_SET_MEAN_REPEATS * max(1, len(counts)):
            scored_readings = [(readings.get(row.id), row) for row in scored]
            right = np.array([0.0 if gold is None else self._hit(f"constant {gold}", row) for gold, row in scored_readings])
            alike = np.array([0 if gold is None else counts[gold] - 1 for gold, _ in scored_readings])
            earnings[f"{BLIND_CHOICE_RULE} among {len(counts)} answers"] = right / len(counts)
            earnings["answers drawn as often as they stand"] = right * alike / (counts.total() - 1)
        return earnings

    def _candidates(self, rows: Sequence[Example]) -> list[str]:
        counts = Counter(self._reading(row.answer) for row in rows if row.answer is not None)
        ranked = sorted(counts, key=lambda answer: (-counts[answer], answer))[:MAX_CONSTANT_ANSWERS]
        rules = [f"constant {answer}" for answer in ranked]
        options = [self._options(row) for row in rows]
        if all(options):
            option_positions = range(max(map(len, options)))
            rules += [*(f"position {position}" for position in option_positions), "longest option", "shortest option"]
        elif not any(options):
            rules += ["first number", "last number"]
        if self._blind(rows) is not None:
            rules.append(BLIND_CHOICE_RULE)
        return rules

    def _options(self, row: Example) -> Sequence[str]:
        if row.id not in self._known_options:
            self._known_options[row.id] = self._read_options(row)
        return self._known_options[row.id]

    def _hit(self, rule: str, row: Example) -> float:
        key = (rule, row.id)
        if key not in self._known:
            if rule == BLIND_CHOICE_RULE:
                self._known[key] = self._blind([row]) or 0.0
            else:
                answer = self._answer(rule, row)
                self._known[key] = float(answer is not None and self._grade(row, answer) >= RIGHT_FROM_SCORE)
        return self._known[key]

    def _answer(self, rule: str, row: Example) -> str | None:
        kind, _, value = rule.partition(" ")
        if kind == "constant":
            return value
        if kind == "position":
            options = self._options(row)
            return options[int(value)] if int(value) < len(options) else None
        if value == "option":
            order = sorted(self._options(row), key=len)
            return order[-1 if kind == "longest" else 0] if order else None
        text = row.prompt if isinstance(row.prompt, str) else "\n".join(str(message["content"]) for message in row.prompt)
        numbers = NUMBER.findall(text[:CHARACTERS_READ] if kind == "first" else text[-CHARACTERS_READ:])
        return numbers[0 if kind == "first" else -1] if numbers else None


def chance_level(rules: Rules, scored: Sequence[Example], other_rows: Sequence[Example] = ()) -> Chance:
    """What the best rule, chosen on `other_rows`, earns on the `scored` ones, or more where a rule without choice does.

    Args:
        rules: of the rows' task.
        scored: rows that the level is for; those among `other_rows` are not chosen on.
        other_rows: rows to choose on; where none are left, the scored rows are split in folds by a hash of their ids.
    """
    scored_ids = {row.id for row in scored}
    other_rows = [row for row in other_rows if row.id not in scored_ids]
    hits, rule = _choose_and_earn(rules, scored, other_rows)
    # folds that choose between rules of about the same worth err together: twice the variance of independent rows
    effective_rows = len(scored) / (1 if other_rows else 2)
    for name, earned in rules.earnings_without_choice(scored, other_rows).items() if scored else ():
        if earned.mean() > hits.mean():
            hits, rule, effective_rows = earned, name, len(scored)
    value = float(hits.mean()) if len(hits) else 0.0
    return Chance(value, *wilson_ends(value * effective_rows, effective_rows), rule or "nothing known", hits)


def _choose_and_earn(
    rules: Rules, scored: Sequence[Example], other_rows: Sequence[Example]
) -> tuple[NDArray[np.float64], str]:
    """What the rule that other rows chose earns on each scored row, and the rule of most of them."""
    if other_rows:
        rule = rules.choose(other_rows)
        return (rules.hits(rule, scored) if rule else np.zeros(len(scored))), rule
    # a hash of its own: items may have been picked by a plain hash of their ids, and would share a fold then
    fold = np.array([hashlib.sha256(b"fold:" + row.id.encode("utf-8", "replace")).digest()[0] % FOLDS for row in scored])
    rule_of_row, hits = [""] * len(scored), np.zeros(len(scored))
    for number in np.unique(fold):
        fold_places = np.flatnonzero(fold == number).tolist()
        rule = rules.choose([scored[row_index] for row_index in np.flatnonzero(fold != number).tolist()])
        if rule:
            hits[fold_places] = rules.hits(rule, [scored[row_index] for row_index in fold_places])
            for row_index in fold_places:
                rule_of_row[row_index] = rule
    return hits, Counter(rule_of_row).most_common(1)[0][0] if rule_of_row else ""


def thin_rows(rows: Sequence[Example]) -> Sequence[Example]:
    """At most `MAX_ROWS_TRIED` of them, evenly spread."""
    return rows[:: max(1, math.ceil(len(rows) / MAX_ROWS_TRIED))]
