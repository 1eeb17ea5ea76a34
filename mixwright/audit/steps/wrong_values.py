"""Wrong values of the steps of a task: whether they follow a rule, are the same again and again, or come by chance.

An equation, a value that is stated for code, or a number of a tool's result in an answer: each is a `Step`, and wrong ones
are looked at in the same way.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from mixwright.audit.steps.equations import MIXED, Equation
from mixwright.corpus.masks import MASK_COLUMN
from mixwright.estimates.intervals import binomial_tail, wilson
from mixwright.records import Observation

MIN_STEPS, MIN_WRONG = 20, 6
"""Steps of an operation, and wrong ones, below which nothing is said."""
CHANCE_OF_RULE = 0.25
"""Share of random slips that one rule explains by chance, at most: off by one is the commonest."""
RULE_COUNT, MIN_FACTS = 20, 4
"""Rules that are tried, by which the probability of chance is multiplied; different wrong steps that one has to give."""
LEAST_BY_RULE, LEAST_SHARE = 0.5, 0.02
"""Share of an operation's different wrong values that one rule gives, and of its steps, from which on it warns."""
ALPHA = 0.01
SAME_BY_CHANCE = 0.4
"""Share of a fact's slips that give the same value by chance, at most: two digits exchanged is a common one."""
MIN_SAME_FACT, LEAST_SAME_FACT = 5, 0.6
"""Solutions in which one fact has the same wrong value, and their share of those with the fact, from which on it warns."""
MOST_SLIPS = 0.03
"""Share of wrong steps above which it warns."""
MAX_WRONG_KEPT, MAX_FACTS_KEPT, MAX_OPERATIONS = 50_000, 200_000, 5_000
"""Of one task: wrong steps of an operation, after which its further ones are left out; different facts; operations."""
OPERATIONS_SHOWN = 3
LARGEST = 1e30
"""Bound of stated numbers."""
NULL = "slips at random: at most a quarter of them follow one rule"


class Step(NamedTuple):
    """One stated value of a solution."""

    operation: str
    """What gives the value, in words."""
    fact: Hashable
    """Operation and operands: two steps with the same fact should state the same value."""
    stated: Hashable
    """The value that the text states."""
    is_right: bool
    text: str
    """As it stands there."""
    span: tuple[int, int] | None
    """Characters of the completion from its begin to its end; None where it stands in the prompt."""
    right_value: str
    """In words."""
    rules: tuple[str, ...]
    """Rules that give the wrong value; none of a right one."""


Wrong = tuple[Step, dict[str, Any]]
"""A wrong step with its row."""
Facts = dict[tuple[Hashable, Hashable], tuple[int, int]]
"""Fact and its wrong value -> solutions with both, solutions with the fact."""


@dataclass
class Values:
    """Stated values of one task and one kind."""

    noun: str = "equations"
    """What they are called, in the plural."""
    steps: Counter[str] = field(default_factory=Counter)
    """Operation -> steps."""
    wrong: dict[str, list[Wrong]] = field(default_factory=lambda: defaultdict(list))
    """Operation -> wrong steps with their rows."""
    facts: dict[Hashable, Counter[Hashable]] = field(default_factory=lambda: defaultdict(Counter))
    """Fact -> stated values, once for each solution."""

    def add(self, one: Step, row: dict[str, Any]) -> None:
        """Counts a step of a row."""
        is_new = one.operation not in self.steps
        if len(self.wrong[one.operation]) == MAX_WRONG_KEPT or (is_new and len(self.steps) == MAX_OPERATIONS):
            return
        self.steps[one.operation] += 1
        if not one.is_right:
            self.wrong[one.operation].append((one, row))
        if one.fact in self.facts or len(self.facts) < MAX_FACTS_KEPT:
            self.facts[one.fact][one.stated] += 1

    def count(self) -> tuple[int, int]:
        """Steps, and wrong ones."""
        return sum(self.steps.values()), sum(map(len, self.wrong.values()))


def observe_values(task: str, values: Values) -> list[Observation]:
    """Warnings of one task and kind: rules, facts that are always wrong, and slips."""
    common = {operation: _common_rule(values.steps[operation], wrong) for operation, wrong in sorted(values.wrong.items())}
    rules = {operation: rule for operation, rule in common.items() if rule is not None}
    observations = [_observe_rule(task, operation, rule, values) for operation, rule in rules.items()]
    left = [
        (one, row)
        for operation, wrong in values.wrong.items()
        for one, row in wrong
        if operation not in rules or rules[operation] not in one.rules
    ]
    facts = _same_wrong_facts(left, values)
    if facts:
        observations.append(_observe_facts(task, facts, left, values))
    slips = [pair for pair in left if (pair[0].fact, pair[0].stated) not in facts]
    total = values.count()[0]
    low, high = wilson(len(slips), total)
    if total >= MIN_STEPS and low > MOST_SLIPS:
        text = f"{len(slips) / total:.1%} of {total} {values.noun} are wrong "
        text += f"({low:.1%} to {high:.1%}), without a pattern. Greedy answers may hide the effect; sampled answers show it."
        text += f" By operation: {_by_operation(slips, values.steps)}."
        remedy = "Correct or drop these rows (--out lists them), and look at sampled answers before RL begins."
        observations.append(warning(task, len(slips), total, text, remedy, evidence(slips)))
    return observations


def _by_operation(slips: Sequence[Wrong], steps: Mapping[str, int]) -> str:
    """The operations with the largest shares of wrong steps."""
    counts = Counter(one.operation for one, _ in slips)
    worst = sorted(counts, key=lambda operation: (-wilson(counts[operation], steps[operation])[0], operation))
    shown = ", ".join(f"{operation} {counts[operation]} of {steps[operation]}" for operation in worst[:OPERATIONS_SHOWN])
    return shown + (" and others" if len(worst) > OPERATIONS_SHOWN else "")


def _common_rule(total: int, wrong: Sequence[Wrong]) -> str | None:
    """The rule that gives most wrong values of an operation; none where chance may explain it, or two facts alone."""
    facts = {(one.fact, one.stated): one for one, _ in wrong}
    if total < MIN_STEPS or len(wrong) < MIN_WRONG:
        return None
    counts = Counter(rule for one in facts.values() for rule in one.rules)
    if not counts:
        return None
    rule, fact_count = counts.most_common(1)[0]
    count = sum(rule in one.rules for one, _ in wrong)
    by_chance = RULE_COUNT * binomial_tail(fact_count, len(facts), CHANCE_OF_RULE)
    is_common = fact_count >= max(MIN_FACTS, LEAST_BY_RULE * len(facts)) and count >= LEAST_SHARE * total
    return rule if is_common and by_chance < ALPHA else None


def _observe_rule(task: str, operation: str, rule: str, values: Values) -> Observation:
    total, wrong = values.steps[operation], values.wrong[operation]
    by_rule = [(one, row) for one, row in wrong if rule in one.rules]
    count, example = len(by_rule), by_rule[0][0].text
    text = f"{operation}: {len(wrong)} of {total} values are wrong, "
    text += f"and one rule explains {count} of them ({rule}), as in {example!r}. "
    text += "A model may learn this rule as well as the right one."
    remedy = "Correct or drop these rows (--out lists them with the place in the text)."
    return warning(task, count, total, text, remedy, evidence(by_rule))


def _same_wrong_facts(wrong: Sequence[Wrong], values: Values) -> Facts:
    """Facts that mostly have the same wrong value."""
    chance, found = SAME_BY_CHANCE * len(wrong) / max(1, values.count()[0]), Facts()
    for fact, value in sorted({(one.fact, one.stated) for one, _ in wrong}, key=repr):
        count, total = values.facts[fact][value], sum(values.facts[fact].values())
        by_chance = len(values.facts) * binomial_tail(count, total, min(chance, 0.99))
        if count >= MIN_SAME_FACT and count >= LEAST_SAME_FACT * total and by_chance < ALPHA:
            found[fact, value] = count, total
    return found


def _observe_facts(task: str, facts: Facts, wrong: Sequence[Wrong], values: Values) -> Observation:
    rows = [pair for pair in wrong if (pair[0].fact, pair[0].stated) in facts]
    examples = {one.fact: one.text for one, _ in reversed(rows)}
    shown = ", ".join(f"{examples[fact]!r} ({count} of {total})" for (fact, _), (count, total) in [*facts.items()][:3])
    shown += " and others" if len(facts) > 3 else ""
    text = f"The same wrong value occurs again and again: {shown}. A model may learn it."
    remedy = "Correct these rows (--out lists them with the place in the text)."
    return warning(task, len(rows), values.count()[0], text, remedy, evidence(rows))


def warning(
    task: str, count: int, total: int, text: str, remedy: str, rows: Sequence[dict[str, Any]], null: str = NULL
) -> Observation:
    """A warning of the check `traces`."""
    return Observation("traces", task, "warning", count, total, text, remedy, null, tuple(rows))


def evidence(rows: Sequence[Wrong]) -> list[dict[str, Any]]:
    """Rows with the wrong step, its right value, and its place in the completion."""
    return [
        row
        | {"step": one.text, "right value": one.right_value, **placed(one.span)}
        | ({} if one.span is None else {MASK_COLUMN: [list(one.span)]})
        for one, row in rows
    ]


def placed(span: tuple[int, int] | None) -> dict[str, int]:
    """Begin and end of a place in the completion; nothing for one in the prompt."""
    return {} if span is None else {"start": span[0], "end": span[1]}


def step_of(one: Equation) -> Step:
    """An equation as a step."""
    rules = () if one.is_right else tuple(dict.fromkeys(rules_of(one)))
    ordered = one.operands if one.operation in ("minus", "divide", MIXED) else tuple(sorted(one.operands))
    fact = one.operation if one.operation != MIXED else one.text.partition("=")[0], ordered
    return Step(one.operation, fact, one.stated, one.is_right, one.text, one.span, shown_number(one.true), rules)


def rules_of(one: Equation) -> Iterator[str]:
    """Rules that give the wrong value of an equation, in words.

    Examples:
        >>> from mixwright.audit.steps.equations import read_equations
        >>> sorted(rules_of(read_equations("27 + 15 = 43")[0]))
        ['off by +1']
    """
    yield from number_rules(one.true, one.stated)
    if len(one.operands) == 2:
        yield from _rules_of_two(one, *one.operands)
    yield from digit_rules(one.true, one.stated)


def number_rules(true: Fraction, stated: Fraction) -> Iterator[str]:
    """Offset, factor and sign between the right number and the stated one."""
    offset = stated - true
    yield f"off by {'+' if offset > 0 else ''}{shown_number(offset)}"
    if true and stated:
        for factor in (10, 100, 2):
            if stated == true * factor:
                yield f"{factor} times too large"
            if stated * factor == true:
                yield f"{factor} times too small"
        if stated == -true:
            yield "the other sign"


def digit_rules(true: Fraction, stated: Fraction) -> Iterator[str]:
    """What the digits of two whole numbers have to do with each other."""
    right, wrong = (str(abs(value.numerator)) if value.denominator == 1 else "" for value in (true, stated))
    if right and wrong and len(right) > 1:
        if wrong == right[::-1].lstrip("0"):
            yield "digits reversed"
        if wrong.zfill(len(right)) == right[:-2] + right[-1] + right[-2]:
            yield "the last two digits exchanged"
        if wrong == right[:-1]:
            yield "the last digit dropped"


def _rules_of_two(one: Equation, first: Fraction, second: Fraction) -> Iterator[str]:
    others = {"plus": first + second, "minus": first - second, "times": first * second}
    others |= {"divide": first / second} if second else {}
    for name, value in others.items():
        if name != one.operation and one.stated == value:
            yield f"{name} in its place"
    if one.operation == "minus" and one.stated == second - first:
        yield "the other way round"
    for name, value in (("first", first), ("second", second)):
        if one.stated == value:
            yield f"the {name} number copied"
    whole = first.denominator == second.denominator == 1 and one.operation in ("plus", "minus")
    if whole and one.stated == _without_carry(int(first), int(second), one.operation):
        yield "carries forgotten"


def _without_carry(first: int, second: int, operation: str) -> int:
    """Digit by digit: the last digit of each sum, or the difference of each pair."""
    digits = zip(str(abs(first)).zfill(20), str(abs(second)).zfill(20), strict=False)
    made = ((int(a) + int(b)) % 10 if operation == "plus" else abs(int(a) - int(b)) for a, b in digits)
    return int("".join(map(str, made)))


def shown_number(value: Fraction) -> str:
    """As a whole number, or with up to six digits."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):g}"


def read_mask(extra: str) -> list[list[int]]:
    """Return the spans of the completion outside the loss, from the further columns of a row as JSON."""
    return json.loads(extra).get(MASK_COLUMN) or [] if f'"{MASK_COLUMN}"' in extra else []


def is_masked(span: tuple[int, int] | None, mask: Sequence[Sequence[int]]) -> bool:
    """Return whether a part of a completion overlaps one that is outside the loss."""
    return span is not None and any(start < span[1] and span[0] < end for start, end in mask)
