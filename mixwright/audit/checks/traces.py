"""Check of worked solutions: wrong values that follow a rule, wrong values at random, and steps in the wrong order.

Source: Li et al. 2025 (arXiv 2502.07374): a large model learns from solutions with random wrong digits, and not from
    shuffled ones. In the finding `traces` of the laboratory tiny models lost 55 points [45, 64] more by one rule than by as
    many random digits, and more by many random digits than by shuffled steps.
Unit: equations between numbers in the completions of a task, by operation; solutions, for the order of steps.
Cost: one pass over training rows with completions; some 20 us per character with equations.
Blind spot: algebra with letters, words for numbers, code; whether a step follows from the ones before.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from mixwright.audit.equations import MIXED, Equation, read_equations
from mixwright.audit.rows import max_pairs_listed, note_unlisted
from mixwright.audit.steps import unknown_operands, values_used_too_early, wrong_mentions
from mixwright.contracts import Check
from mixwright.corpus import Corpus, texts
from mixwright.corpus.masks import MASK_COLUMN
from mixwright.estimates.intervals import binomial_tail, wilson
from mixwright.records import Observation

MIN_EQUATIONS, MIN_WRONG, MIN_FAULTY_SOLUTIONS = 20, 6, 5
"""Equations of an operation, wrong ones, and solutions with a fault of order or mention, below which nothing is said."""
CHANCE_OF_RULE = 0.25
"""Share of random slips that one rule explains by chance, at most: off by one is the commonest."""
RULE_COUNT, MIN_FACTS = 20, 4
"""Rules that are tried, by which the probability of chance is multiplied; different wrong equations that one has to give."""
LEAST_BY_RULE, LEAST_SHARE = 0.5, 0.02
"""Share of an operation's different wrong values that one rule gives, and of its equations, from which on it warns."""
ALPHA = 0.01
SAME_BY_CHANCE = 0.4
"""Share of a fact's slips that give the same value by chance, at most: two digits exchanged is a common one."""
MIN_SAME_FACT, LEAST_SAME_FACT = 5, 0.6
"""Solutions in which one fact has the same wrong value, and their share of those with the fact, from which on it warns."""
MOST_SLIPS, MOST_DISORDER, MOST_MENTIONS = 0.03, 0.03, 0.03
"""Shares of wrong equations, of solutions out of order, and of solutions with a wrong mention, above which it warns."""
MAX_WRONG_KEPT, MAX_FACTS_KEPT = 50_000, 200_000
"""Wrong equations of a task and operation, after which its further equations are left out; different facts of a task."""
NULL = "slips at random: at most a quarter of them follow one rule"


@dataclass
class Solutions:
    """Solutions of one task."""

    equations: Counter[str] = field(default_factory=Counter)
    """Operation -> equations."""
    wrong: dict[str, list[tuple[Equation, dict[str, Any]]]] = field(default_factory=lambda: defaultdict(list))
    """Operation -> wrong equations with their rows."""
    facts: dict[tuple[str, tuple[Fraction, ...]], Counter[Fraction]] = field(default_factory=lambda: defaultdict(Counter))
    """Operation and operands -> stated values, once for each solution."""
    with_steps: int = 0
    """Solutions with at least two equations."""
    disordered_count: int = 0
    """Those in which a step uses what only a later one makes."""
    disordered: list[dict[str, Any]] = field(default_factory=list)
    """The first of them."""
    disordered_by_chance: int = 0
    """Those of which the same is true of another solution's values in place of the later ones."""
    last_values: frozenset[Fraction] = frozenset()
    """Values of the solution before."""
    mentioning: int = 0
    """Solutions that mention a numbered step."""
    wrong_mention_count: int = 0
    """Those that mention one that is not there."""
    wrong_mentions: list[dict[str, Any]] = field(default_factory=list)
    """The first of them."""


class Traces(Check):
    """Looks at the completions of training rows."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Warnings by task and operation; one info where equations were read and nothing was wrong."""
        by_task: dict[str, Solutions] = defaultdict(Solutions)
        for batch in corpus.batches():
            plain = (batch.column(name).to_pylist() for name in ("id", "task", "source", "split"))
            sides = (texts(batch, name) for name in ("prompt", "target"))
            masks = map(_read_mask, batch.column("extra").to_pylist())
            for name, task, source, split, prompt, target, mask in zip(*plain, *sides, masks, strict=True):
                if split != "eval" and target:
                    _add(by_task[task], {"id": name, "source": source}, prompt or "", target, mask)
        observations = [one for task, solutions in sorted(by_task.items()) for one in _observe_task(task, solutions)]
        count = sum(sum(solutions.equations.values()) for solutions in by_task.values())
        if count and not observations:
            wrong = sum(len(rows) for solutions in by_task.values() for rows in solutions.wrong.values())
            text = f"{count} equations were worked out, {wrong} of them are wrong, and no rule or order stands out."
            observations.append(Observation("traces", None, "info", wrong, count, text, "", NULL))
        return observations


def _read_mask(extra: str) -> list[list[int]]:
    """Spans of the completion that are not trained on."""
    return json.loads(extra).get(MASK_COLUMN) or [] if f'"{MASK_COLUMN}"' in extra else []


def _add(
    solutions: Solutions, row: dict[str, Any], prompt: str, completion: str, mask: Sequence[Sequence[int]] = ()
) -> None:
    equations = read_equations(completion)
    for one in equations:
        if any(start < one.span[1] and one.span[0] < end for start, end in mask):
            continue
        if len(solutions.wrong[one.operation]) == MAX_WRONG_KEPT:
            continue
        solutions.equations[one.operation] += 1
        if not one.is_right:
            solutions.wrong[one.operation].append((one, row))
        fact = _fact(one)
        if fact in solutions.facts or len(solutions.facts) < MAX_FACTS_KEPT:
            solutions.facts[fact][one.stated] += 1
    if len(equations) > 1:
        solutions.with_steps += 1
        early = values_used_too_early(prompt, completion, equations)
        if early:
            solutions.disordered_count += 1
            first, later = (equations[index] for index in early[0])
            if len(solutions.disordered) < max_pairs_listed():
                solutions.disordered.append(row | {"equation": first.text, "made by": later.text, "span": list(first.span)})
        operands = {value for _, value in unknown_operands(prompt, completion, equations[:-1])}
        solutions.disordered_by_chance += bool(operands & solutions.last_values)
        solutions.last_values = frozenset(one.stated for one in equations[1:])
    mentions, wrong = wrong_mentions(prompt, completion)
    if mentions:
        solutions.mentioning += 1
        if wrong:
            solutions.wrong_mention_count += 1
            if len(solutions.wrong_mentions) < max_pairs_listed():
                solutions.wrong_mentions.append(row | {"mention": wrong[0].text, "span": list(wrong[0].span)})


def _fact(one: Equation) -> tuple[str, tuple[Fraction, ...]]:
    ordered = one.operands if one.operation in ("minus", "divide", MIXED) else tuple(sorted(one.operands))
    return (one.operation if one.operation != MIXED else one.text.partition("=")[0], ordered)


def rules_of(one: Equation) -> Iterator[str]:
    """Rules that give the wrong value of an equation, in words.

    Examples:
        >>> from mixwright.audit.equations import read_equations
        >>> sorted(rules_of(read_equations("27 + 15 = 43")[0]))
        ['off by +1']
    """
    offset = one.stated - one.true
    yield f"off by {'+' if offset > 0 else ''}{_shown(offset)}"
    if one.true and one.stated:
        for factor in (10, 100, 2):
            if one.stated == one.true * factor:
                yield f"{factor} times too large"
            if one.stated * factor == one.true:
                yield f"{factor} times too small"
        if one.stated == -one.true:
            yield "the other sign"
    if len(one.operands) == 2:
        yield from _rules_of_two(one, *one.operands)
    digits, stated = (str(abs(value.numerator)) if value.denominator == 1 else "" for value in (one.true, one.stated))
    if digits and stated and len(digits) > 1:
        if stated == digits[::-1].lstrip("0"):
            yield "digits reversed"
        if stated.zfill(len(digits)) == digits[:-2] + digits[-1] + digits[-2]:
            yield "the last two digits exchanged"
        if stated == digits[:-1]:
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


def _observe_task(task: str, solutions: Solutions) -> list[Observation]:
    rules = {
        operation: rule
        for operation, wrong in sorted(solutions.wrong.items())
        if (rule := _common_rule(solutions.equations[operation], wrong)) is not None
    }
    observations = [
        _observe_rule(task, operation, rule, solutions.equations[operation], solutions.wrong[operation])
        for operation, rule in rules.items()
    ]
    left = [
        (one, row)
        for operation, wrong in solutions.wrong.items()
        for one, row in wrong
        if operation not in rules or rules[operation] not in rules_of(one)
    ]
    facts = _same_wrong_facts(left, solutions)
    if facts:
        observations.append(_observe_facts(task, facts, left, solutions))
    slips = [pair for pair in left if (_fact(pair[0]), pair[0].stated) not in {fact[:2] for fact in facts}]
    total = sum(solutions.equations.values())
    low, high = wilson(len(slips), total)
    if total >= MIN_EQUATIONS and low > MOST_SLIPS:
        text = f"{len(slips) / total:.1%} of {total} equations are wrong ({low:.1%} to {high:.1%}), in no regular way. "
        text += f"Greedy answers may hide what that teaches; sampled ones show it.{note_unlisted(len(slips))}"
        remedy = "Correct or drop these rows (--out lists them), and look at sampled answers before RL begins."
        observations.append(_warning(task, len(slips), total, text, remedy, _evidence(slips)))
    observations += _observe_order(task, solutions)
    return observations


def _common_rule(total: int, wrong: Sequence[tuple[Equation, dict[str, Any]]]) -> str | None:
    """The rule that gives most wrong values of an operation; none where chance may explain it, or two facts alone."""
    facts = {(_fact(one), one.stated): one for one, _ in wrong}
    if total < MIN_EQUATIONS or len(wrong) < MIN_WRONG:
        return None
    counts = Counter(rule for one in facts.values() for rule in set(rules_of(one)))
    rule, fact_count = counts.most_common(1)[0]
    count = sum(rule in rules_of(one) for one, _ in wrong)
    by_chance = RULE_COUNT * binomial_tail(fact_count, len(facts), CHANCE_OF_RULE)
    is_common = fact_count >= max(MIN_FACTS, LEAST_BY_RULE * len(facts)) and count >= LEAST_SHARE * total
    return rule if is_common and by_chance < ALPHA else None


def _observe_rule(
    task: str, operation: str, rule: str, total: int, wrong: Sequence[tuple[Equation, dict[str, Any]]]
) -> Observation:
    by_rule = [(one, row) for one, row in wrong if rule in rules_of(one)]
    count, example = len(by_rule), by_rule[0][0].text
    text = f"{operation}: {len(wrong)} of {total} values are wrong, and one rule explains {count} of them ({rule}), as in "
    text += f"{example!r}. A model may learn the rule beside the right one.{note_unlisted(count)}"
    remedy = "Correct or drop these rows (--out lists them with the place in the text)."
    return _warning(task, count, total, text, remedy, _evidence(by_rule))


def _same_wrong_facts(
    wrong: Sequence[tuple[Equation, dict[str, Any]]], solutions: Solutions
) -> list[tuple[Any, Fraction, int, int]]:
    """Facts that mostly have the same wrong value: fact, value, solutions with it, solutions with the fact."""
    chance = SAME_BY_CHANCE * len(wrong) / max(1, sum(solutions.equations.values()))
    found = []
    for fact, value in sorted({(_fact(one), one.stated) for one, _ in wrong}, key=repr):
        count, total = solutions.facts[fact][value], sum(solutions.facts[fact].values())
        by_chance = len(solutions.facts) * binomial_tail(count, total, min(chance, 0.99))
        if count >= MIN_SAME_FACT and count >= LEAST_SAME_FACT * total and by_chance < ALPHA:
            found.append((fact, value, count, total))
    return found


def _observe_facts(
    task: str,
    facts: Sequence[tuple[Any, Fraction, int, int]],
    wrong: Sequence[tuple[Equation, dict[str, Any]]],
    solutions: Solutions,
) -> Observation:
    values = {(fact, value) for fact, value, *_ in facts}
    rows = [pair for pair in wrong if (_fact(pair[0]), pair[0].stated) in values]
    examples = {_fact(one): one.text for one, _ in reversed(rows)}
    shown = ", ".join(f"{examples[fact]!r} ({count} of {total})" for fact, _, count, total in facts[:3])
    shown += " and others" if len(facts) > 3 else ""
    text = f"The same wrong value stands again and again: {shown}. A model may learn it.{note_unlisted(len(rows))}"
    remedy = "Correct these rows (--out lists them with the place in the text)."
    return _warning(task, len(rows), sum(solutions.equations.values()), text, remedy, _evidence(rows))


def _observe_order(task: str, solutions: Solutions) -> list[Observation]:
    """Solutions that use what only a later step makes, and that mention steps which are not there."""
    found = []
    count, total = solutions.disordered_count, solutions.with_steps
    if count >= MIN_FAULTY_SOLUTIONS and wilson(count, total)[0] > MOST_DISORDER + solutions.disordered_by_chance / total:
        text = f"{count} of {total} solutions use a value before the step that makes it, as in "
        text += f"{solutions.disordered[0]['equation']!r}.{note_unlisted(count)}"
        null = f"values of another solution in their place: {solutions.disordered_by_chance} of {total}"
        remedy = "Restore the order of these rows or drop them (--out lists them)."
        found.append(_warning(task, count, total, text, remedy, solutions.disordered, null))
    count, total = solutions.wrong_mention_count, solutions.mentioning
    if count >= MIN_FAULTY_SOLUTIONS and wilson(count, total)[0] > MOST_MENTIONS:
        text = f"{count} of {total} solutions that mention a numbered step refer to one that is not there or comes later, "
        text += f"such as {solutions.wrong_mentions[0]['mention']!r}.{note_unlisted(count)}"
        remedy = "Correct or drop these rows (--out lists them): parts of them are missing or moved."
        found.append(_warning(task, count, total, text, remedy, solutions.wrong_mentions, "none"))
    return found


def _warning(
    task: str, count: int, total: int, text: str, remedy: str, evidence: Sequence[dict[str, Any]], null: str = NULL
) -> Observation:
    return Observation("traces", task, "warning", count, total, text, remedy, null, tuple(evidence[: max_pairs_listed()]))


def _evidence(rows: Sequence[tuple[Equation, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Rows with the equation, its right value, its place in the completion, and the mask that leaves it out of the loss."""
    return [
        row | {"equation": one.text, "right value": _shown(one.true), "span": list(one.span), "mask": [list(one.span)]}
        for one, row in rows
    ]


def _shown(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{float(value):g}"
