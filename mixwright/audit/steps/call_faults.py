"""Faults of conversations with tools: identifiers that nothing gave, calls before the call that they need, other numbers.

Whether a field is copied from what stands before is seen from the data: where under a quarter of its values do, nothing is
said of it. Left out on purpose: whether the right tool is called, and values that somebody works out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from mixwright.audit.steps.call_schema import KINDS, Fault, find_faults
from mixwright.audit.steps.equations import is_close
from mixwright.audit.steps.order import read_numbers
from mixwright.audit.steps.tool_events import Event
from mixwright.audit.steps.worked import Step, digit_rules, number_rules, shown_number
from mixwright.audit.steps.wrong_values import (
    MAX_OPERATIONS,
    Values,
    find_rules,
    observe_rules,
    observe_values,
    placed,
    warning,
)
from mixwright.estimates.intervals import wilson
from mixwright.records import Observation, Severity

MIN_FAULTY, MOST_FAULTY = 5, 0.03
"""Conversations with a fault, below which nothing is said, and their share of those that cite, above which it warns."""
LEAST_COPIED = 0.25
"""Share of a field's values that stand before, from which on the others are faults."""
MAX_KEPT, MAX_LEAVES = 50_000, 30
"""Rows of one field; numbers of one conversation out of which others may be worked out."""
SMALL = 12
"""Whole numbers up to it may be counts, and are not looked for in answers."""
_IDENTIFIER = re.compile(r"(?=.{0,63}\d)[\w#:./-]{4,64}")
_NO_IDENTIFIER = re.compile(
    r"\d{4}-\d\d-\d\d.*|\d{1,2}[:/.]\d\d.*|-?\d{1,4}(?:\.\d+)?|-?\d+\.\d+|\d{1,3}[a-zA-Z]{1,3}|https?:.*|v?\d+(?:\.\d+)+"
)
_NUMBER = re.compile(
    r"(?<![\w.,:/-])[$\u20ac\u00a3]?(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\d:/-])\s?(%|[a-zA-Z]+)?"
)
_WORKED_OUT = re.compile(
    r"\b(?:me and|and (?:me|I)|plus|myself|us|another|extra|more|less|fewer|additional|each|per|double|twice|half|both|total"
    r"|sum|minus|add|from|until|between)\b",
    re.IGNORECASE,
)
"""Words beside which an argument may be worked out."""
_UNIT_WORDS = """second minute hour day week month year mm cm m km meter metre mile foot feet inch g gram kg pound lb oz
ounce k thousand million dozen percent % cent degree c f kb mb gb tb hr min sec s h"""
_UNITS = frozenset(_UNIT_WORDS.split())
Key = tuple[str, str]
"""Tool and field."""


class Citation(NamedTuple):
    """An identifier of a call: whether it stands before it, only after it, or nowhere."""

    key: Key
    state: str
    """known, early or dangling."""
    text: str
    span: tuple[int, int] | None


class Answered(NamedTuple):
    """A number of a result, and whether the answer states it."""

    key: Key
    step: Step


@dataclass
class CallFaults:
    """Conversations of one task."""

    conversations: int = 0
    known: dict[Key, int] = field(default_factory=lambda: defaultdict(int))
    """Field -> identifiers that stand before."""
    unknown: dict[Key, list[tuple[Citation, dict[str, Any]]]] = field(default_factory=lambda: defaultdict(list))
    """Field -> those that do not, with their rows."""
    answers: dict[Key, Values] = field(default_factory=lambda: defaultdict(Values))
    arguments: Values = field(default_factory=lambda: Values("arguments", "other than the request's"))
    calls: int = 0
    """Calls that were read."""
    unchecked: int = 0
    """Those of them whose row has no tools, or whose tool no schema."""
    without_tools: int = 0
    """Calls as structures in rows without tools, which a model learns without seeing them."""
    broken: dict[str, list[tuple[Fault, dict[str, Any]]]] = field(default_factory=lambda: defaultdict(list))
    """Kind of fault -> calls with it, each once, with their rows."""

    def add(
        self,
        events: Sequence[Event],
        row: dict[str, Any],
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        has_structures: bool = False,
    ) -> None:
        """Counts the conversation of a row, and checks its calls against its tools; they are structures, or text."""
        self.conversations += 1
        for call in (one for one in events if one.kind == "call"):
            self.calls += 1
            faults = find_faults(call.name, call.data, tools) if tools else None
            self.unchecked += faults is None
            self.without_tools += has_structures and not tools
            for kind in dict.fromkeys(fault.kind for fault in faults or ()):
                first = next(fault for fault in faults or () if fault.kind == kind)
                if len(self.broken[kind]) < MAX_KEPT:
                    self.broken[kind].append((first, row | {"step": call.text[:200], **placed(call.span)}))
        for one in citations(events):
            if one.key not in self.known and len(self.known) == MAX_OPERATIONS:
                continue
            self.known[one.key] += 0
            if one.state == "known":
                self.known[one.key] += 1
            elif len(self.unknown[one.key]) < MAX_KEPT:
                self.unknown[one.key].append((one, row))
        for key, step in answered(events):
            if key not in self.answers and len(self.answers) == MAX_OPERATIONS:
                continue
            self.answers[key].add(step, row)
        for step in argument_steps(events):
            self.arguments.add(step, row)

    def observe(self, task: str) -> list[Observation]:
        """Warnings."""
        found = []
        cited = {key for key in self.known if self.known[key] >= LEAST_COPIED * self._total(key)}
        total = sum(self._total(key) for key in cited)
        pairs = [pair for key in sorted(cited) for pair in self.unknown[key]]
        for state, words, remedy in (
            (
                "dangling",
                "cite an identifier that nothing before provides",
                "Correct or drop these rows, or the model learns to make things up",
            ),
            ("early", "cite an identifier before the call that returns it", "Restore the order of these rows or drop them"),
        ):
            rows = [(one, row) for one, row in pairs if one.state == state]
            if len(rows) >= MIN_FAULTY and wilson(len(rows), total)[0] > MOST_FAULTY:
                fields = ", ".join(sorted({f"{one.key[0]}.{one.key[1]}" for one, _ in rows})[:3])
                text = f"{len(rows)} of {total} arguments {words} ({fields}), such as "
                text += f"{rows[0][0].text!r}."
                listed = [row | {"step": one.text, **placed(one.span)} for one, row in rows]
                found.append(warning(task, len(rows), total, text, f"{remedy} (--out lists them).", listed, "none"))
        return self._observe_schemas(task) + found + self._observe_answers(task) + self._observe_arguments(task)

    def _observe_schemas(self, task: str) -> list[Observation]:
        """Calls that break the schemas of their tools, by kind, and how many were not checked."""
        found = []
        for kind, words in KINDS.items():
            broken = self.broken.get(kind, [])
            if not broken:
                continue
            places = Counter(fault.where for fault, _ in broken)
            shown = ", ".join(name for name, _ in places.most_common(3)) + (", ..." if len(places) > 3 else "")
            reason = f", such as {broken[0][0].why}" if broken[0][0].why else ""
            text = f"{len(broken)} of {self.calls} tool calls {words} ({shown}{reason})."
            listed = [row | {"fault": fault.where} for fault, row in broken]
            remedy = "Correct or drop these rows (--out lists them), or add the tool to the row."
            found.append(warning(task, len(broken), self.calls, text, remedy, listed, "the schemas in the row's tools"))
        if self.unchecked:
            text = f"{self.unchecked} of {self.calls} tool calls were not checked: their rows have no schema of the tool."
            severity: Severity = "warning" if self.without_tools else "info"
            remedy = "Add the column tools: the model has to see them, too."
            found.append(Observation("traces", task, severity, self.unchecked, self.calls, text, remedy))
        return found

    def _total(self, key: Key) -> int:
        return self.known[key] + len(self.unknown[key])

    def _observe_answers(self, task: str) -> list[Observation]:
        stated = Values("numbers in answers", "other than the result's")
        for values in self.answers.values():
            if _is_copied(values):
                stated.merge(values)
        return observe_values(task, stated)

    def _observe_arguments(self, task: str) -> list[Observation]:
        """Rules alone: a number that follows none may be worked out."""
        rules = {
            operation: rule
            for operation, rule in find_rules(self.arguments).items()
            if self.arguments.steps[operation] - len(self.arguments.wrong[operation])
            >= LEAST_COPIED * self.arguments.steps[operation]
        }
        return observe_rules(task, self.arguments, rules)


def _is_copied(values: Values) -> bool:
    count, wrong = values.count()
    return count - wrong >= LEAST_COPIED * count


def citations(events: Sequence[Event]) -> Iterator[Citation]:
    """Identifiers in the arguments of calls, each once: those of the assistant's own words do not count as given."""
    given = ""
    seen = set[str]()
    calls = 0
    results = [one.text.lower() for one in events if one.kind == "result"]
    for one in events:
        if one.kind in ("asked", "result"):
            given += one.text.lower() + "\n"
        if one.kind != "call":
            continue
        calls += 1
        for name, value in _scalars(one.data or {}):
            shown = str(value).lower()
            if not _is_identifier(name, value) or shown in seen:
                continue
            seen.add(shown)
            # the result of this call may repeat its arguments
            is_later = any(shown in text for text in results[calls:])
            state = "known" if shown in given else "early" if is_later else "dangling"
            yield Citation((one.name, name), state, f"{one.name}({name}={value})"[:120], one.span)


def _is_identifier(name: str, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return False
    if isinstance(value, int):
        return value >= 10_000 and bool(re.search(r"id$|number|code|ref|key|no$", name, re.IGNORECASE))
    return bool(_IDENTIFIER.fullmatch(value)) and not _NO_IDENTIFIER.fullmatch(value)


def _scalars(data: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Names and values of the leaves of a JSON value, down to some depth."""
    if isinstance(data, dict):
        for key, one in data.items():
            yield from _scalars(one, str(key)[:60], depth + 1) if depth < 6 else ()
    elif isinstance(data, list):
        for one in data[:50]:
            yield from _scalars(one, name, depth + 1) if depth < 6 else ()
    else:
        yield name, data


def answered(events: Sequence[Event]) -> Iterator[Answered]:
    """Numbers of results that the answer after the last result states, or states another one in place of.

    Another one is told where the answer has a single number that nothing before it explains, and only one of the results'
    numbers is not stated.
    """
    last = max((number for number, one in enumerate(events) if one.kind == "result"), default=-1)
    said = [one for one in events[last + 1 :] if one.kind == "said" and one.span is not None]
    if last < 0 or len(said) != 1 or any(one.kind == "call" for one in events[last + 1 :]):
        return
    answer = said[0]
    leaves: dict[Key, list[Fraction]] = defaultdict(list)
    for one in events:
        if one.kind == "result" and one.data is not None:
            for name, value in _scalars(one.data):
                if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15:
                    leaves[one.name, name].append(Fraction(str(value)))
    wanted = {key: values[0] for key, values in leaves.items() if len(values) == 1 and not _is_small(values[0])}
    if not wanted:
        return
    numbers = [(Fraction(match[1].replace(",", "")), match) for match in _NUMBER.finditer(answer.text)]
    stated = {key: [match for number, match in numbers if _states(value, number, match[1])] for key, value in wanted.items()}
    missing = [key for key in wanted if not stated[key]]
    odd: list[tuple[Fraction, re.Match[str]]] = []
    if missing and numbers:
        known = set[Fraction]().union(*(read_numbers(one.text) for one in events[: last + 1]))
        asked = set[Fraction]().union(*(read_numbers(one.text) for one in events[: last + 1] if one.kind == "asked"))
        all_leaves = [value for values in leaves.values() for value in values][:MAX_LEAVES]
        odd = [pair for pair in numbers if not _is_explained(pair[0], pair[1], known, asked, all_leaves)]
    for key, value in wanted.items():
        base = answer.span[0] if answer.span else 0
        if stated[key]:
            match = stated[key][0]
            yield Answered(key, _answer_step(key, value, value, match, base))
        elif len(odd) == 1:
            yield Answered(key, _answer_step(key, value, odd[0][0], odd[0][1], base))


def _answer_step(key: Key, true: Fraction, stated: Fraction, match: re.Match[str], base: int) -> Step:
    operation = f"answer: {key[0]}.{key[1]}"
    rules = () if true == stated else tuple(dict.fromkeys([*number_rules(true, stated), *digit_rules(true, stated)]))
    span = (base + match.start(1), base + match.end(1))
    return Step(operation, (*key, true), stated, true == stated, f"{key[1]}: {match[1]}", span, shown_number(true), rules)


def _is_small(value: Fraction) -> bool:
    return value.denominator == 1 and abs(value) <= SMALL


def _states(value: Fraction, number: Fraction, digits: str) -> bool:
    """Equal, rounded, cut, without its sign, or a percentage of it."""
    decimals = len(digits.partition(".")[2])
    return any(is_close(one, number, decimals) for one in (abs(value), abs(value) * 100, abs(value) / 1000))


def _is_explained(
    number: Fraction, match: re.Match[str], known: set[Fraction], asked: set[Fraction], leaves: Sequence[Fraction]
) -> bool:
    """Known, small, a year, or worked out from two numbers of the results, or one of them and one of the requests."""
    if _is_small(number) or number in known or (number.denominator == 1 and 1900 <= number <= 2100):
        return True
    decimals = len(match[1].partition(".")[2])
    if any(_states(value, number, match[1]) for value in leaves):
        return True
    large = [value for value in leaves if not _is_small(value)]
    made = [one for a in large for b in large for one in (a + b, a - b)]
    made += [one for a in large for b in sorted(asked)[:MAX_LEAVES] if b > 1 for one in (a + b, a - b, a * b, a / b)]
    return any(is_close(one, number, decimals) for one in made)


def argument_steps(events: Sequence[Event]) -> Iterator[Step]:
    """Numbers in arguments of calls beside the only number of the request that they can stand for."""
    request = ""
    for one in events:
        if one.kind == "asked":
            request = one.text
        if one.kind != "call":
            continue
        fields = [
            (name, Fraction(str(value)))
            for name, value in (one.data or {}).items()
            if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
        ]
        if not fields:
            continue
        given = [
            (Fraction(match[1].replace(",", "")), _unit(match[2])) for match in _NUMBER.finditer(request.rpartition("\n")[2])
        ]
        values = {value for _, value in fields}
        left = [pair for pair in given if pair[0] not in values]
        for name, value in fields:
            if _is_identifier(name, int(value)):
                continue
            same = next((pair for pair in given if pair[0] == value), None)
            if same is None and (len(left) != 1 or len(given) > 2 or _WORKED_OUT.search(request)):
                continue
            true, unit = same or left[0]
            operation = f"argument: {one.name}.{name}" + (f" in {unit}" if unit else "")
            rules = () if same else tuple(dict.fromkeys([*number_rules(true, value), *_larger(true, value)]))
            fact: Hashable = (one.name, name, true)
            shown = f"{one.name}({name}={shown_number(value)})"
            yield Step(operation, fact, value, same is not None, shown, one.span, shown_number(true), rules)


def _larger(true: Fraction, stated: Fraction) -> Iterator[str]:
    for factor in (1000, 60, 3600, 24, 7):
        if true and stated in (true * factor, true / factor):
            yield f"{factor} times too {'large' if stated > true else 'small'}"


def _unit(word: str | None) -> str:
    word = (word or "").lower()
    return next((one for one in (word, word.removesuffix("s")) if one in _UNITS), "")
