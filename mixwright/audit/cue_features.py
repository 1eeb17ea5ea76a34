"""Surface features of a prompt that need no understanding: words, openings, signs, negation, numbers, length.

Left out on purpose: which of them go with an answer, which `cues.py` works out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mixwright.audit.text import to_visible
from mixwright.records import Example, plain

CHARACTERS_READ = 4000
"""Of a prompt; its length is that of all of it."""
MAX_VALUE = 1e300
MAX_VALUE_CHARACTERS = 40
"""Of a column's value in a message."""
SHARED_PART_SHARE = 0.2
"""A line in this share of the prompts is an instruction, and no part whose opening is read."""
LEAST_KEYED_SHARE = 0.3
"""Share of the prompts in which a word stands beside a number, from which on these numbers are compared."""
PARTS = (0.6, 0.5, 0.4, 1 / 3, 0.25, 0.2, 0.15)
"""Shares of the prompts, at either end of a quantity, that are compared with the rest."""
MIN_GROUP_SHARE, MAX_GROUP_SHARE = 0.1, 0.65
"""Share of the prompts at one end of a quantity; ties can make it larger or smaller."""
NEGATIONS = frozenset(["no", "not", "never", "none", "nothing", "nobody", "nowhere", "neither", "nor", "cannot", "without"])
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_NUMBER = re.compile(r"(?:(?<![\w.)])[-+])?(?<![\d.])(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?")
_WORD_BEFORE = re.compile(r"([^\W\d_]+)[^\w.!?;\n]{0,4}$")
_WORD_AFTER = re.compile(r"[^\w.!?;\n]{0,4}([^\W\d_]+)")
_OPENING = re.compile(r"\W*([^\W\d_]+(?:['\u2019][^\W\d_]+)?)")
_SIGN = re.compile(r"\.\.\.|\u2026|[^\w\s]")
_PART = re.compile(r"\n+|(?<=[.?!\"])\s+(?=[A-Z]\w*(?: \w+)?:)")
_LABEL = re.compile(r"^\W*(?:[^\W\d_]\w*(?: \w+){0,2})?:\s*(?=\S)")
_SAME_SIGN = {"\u2026": "...", "\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'"}


class Feature(NamedTuple):
    """Something that a prompt has or has not."""

    kind: str
    """word, opening, sign, negation, length, number, column; of rows with options position, longest, shares."""
    value: str
    """Which one, as `yesterday`; of quantities which number is meant."""
    column: str = ""
    """Name of the column, where `value` is one of its values."""
    bound: float | None = None
    """Of quantities: where those with it begin, or end."""
    is_upper: bool = False
    """Of quantities: those from `bound` on have it; else those up to it."""

    @property
    def subject(self) -> tuple[str, str]:
        """What it is one value, or one end, of: a word, a column, a quantity."""
        return self.kind, self.column or self.value


FORMS = ("opening", "sign", "negation", "length", "number", "column")
"""Kinds that say nothing of what a prompt is about."""


def find_shared_parts(prompts: Sequence[str]) -> frozenset[str]:
    """Lines that so many prompts share that they are instructions."""
    counts = Counter(part for prompt in prompts for part in set(_split(to_visible(prompt[:CHARACTERS_READ]))))
    most = max(SHARED_PART_SHARE * len(prompts), 2)
    return frozenset(part for part, count in counts.items() if count > most)


def read_features(
    rows: Sequence[Example], columns: Sequence[str], shared_parts: frozenset[str]
) -> dict[Feature, np.ndarray]:
    """Feature of a prompt, or value of a column -> the positions of the rows that have it, ascending (int64)."""
    prompts, visible, parts = _read(rows, shared_parts)
    positions: dict[Feature, list[int]] = defaultdict(list)
    for position, (prompt, own_parts) in enumerate(zip(visible, parts, strict=True)):
        for feature in dict.fromkeys(_features_of(prompt, own_parts)):
            positions[feature].append(position)
    found = {feature: np.array(rows, np.int64) for feature, rows in positions.items()}
    for (kind, key), value_by_position in _quantities(prompts, visible).items():
        found |= dict(_ends(kind, key, value_by_position, len(prompts)))
    for column in columns:
        values = _values_of(rows, column)
        for value in {*values} - {""}:
            found[Feature("column", value, column)] = np.flatnonzero([one == value for one in values])
    return found


def rows_with(feature: Feature, rows: Sequence[Example], shared_parts: frozenset[str]) -> list[int]:
    """Positions of the rows that have a feature, which was found in others with these shared parts."""
    if feature.kind == "column":
        return [n for n, value in enumerate(_values_of(rows, feature.column)) if value == feature.value]
    prompts, visible, parts = _read(rows, shared_parts)
    if feature.bound is None:
        return [
            n for n, (prompt, own) in enumerate(zip(visible, parts, strict=True)) if feature in _features_of(prompt, own)
        ]
    values = _quantities(prompts, visible).get((feature.kind, feature.value), {})
    return [n for n, value in values.items() if (value >= feature.bound if feature.is_upper else value <= feature.bound)]


def describe_feature(feature: Feature) -> str:
    """What a prompt with it does, `has the word 'yesterday'`; of rows with options which is meant, `the longest option`."""
    match feature.kind:
        case "word":
            return f"has the word '{feature.value}'"
        case "opening":
            return f"begins, or has a line that begins, with the word '{feature.value}'"
        case "sign":
            return f"has the sign {feature.value if feature.value.isprintable() else ascii(feature.value)}"
        case "negation":
            return "has a negation"
        case "length":
            return f"has {feature.bound:g} words or {'more' if feature.is_upper else 'fewer'}"
        case "number":
            bound = f"{feature.bound:.10g} or {'more' if feature.is_upper else 'less'}"
            by_word = " " in feature.value
            return f"has a number {feature.value} of {bound}" if by_word else f"has {bound} as its {feature.value} number"
        case "column":
            return f"comes with {feature.value[:MAX_VALUE_CHARACTERS]!r} in the column {feature.column}"
        case "longest":
            return "the longest option"
        case "shares":
            return "the option that shares most words with the question"
        case _:
            return f"option {feature.value}"


def _split(prompt: str) -> list[str]:
    """The lines of a prompt, without their names (`Premise:`)."""
    parts = (_LABEL.sub("", part).strip() for part in _PART.split(prompt) if part.strip())
    return [part for part in parts if part]


def _values_of(rows: Sequence[Example], column: str) -> list[str]:
    return [str(row.extra.get(column, "")) for row in rows]


def _read(rows: Sequence[Example], shared_parts: frozenset[str]) -> tuple[list[str], list[str], list[list[str]]]:
    """Each prompt, its visible beginning, and its lines without shared ones."""
    prompts = [plain(row.prompt) for row in rows]
    visible = [to_visible(prompt[:CHARACTERS_READ]) for prompt in prompts]
    return prompts, visible, [[part for part in _split(prompt) if part not in shared_parts] for prompt in visible]


def _features_of(prompt: str, parts: Iterable[str]) -> Iterator[Feature]:
    words = [word.casefold().replace("\u2019", "'") for word in _WORD.findall(prompt)]
    yield from (Feature("word", word) for word in words)
    yield from (Feature("sign", str(_SAME_SIGN.get(sign, sign))) for sign in _SIGN.findall(prompt))
    if any(word in NEGATIONS or word.endswith("n't") for word in words):
        yield Feature("negation", "")
    for part in parts:
        if first := _OPENING.match(part):
            yield Feature("opening", first[1].casefold())


Quantities = dict[tuple[str, str], dict[int, float]]
"""Kind and which one -> position of a prompt -> value."""


def _quantities(prompts: Sequence[str], visible: Sequence[str]) -> Quantities:
    """Length in words, the first number and the largest, and those that stand beside the same word."""
    found: Quantities = defaultdict(dict)
    for position, prompt in enumerate(visible):
        values = []
        for match in _NUMBER.finditer(prompt):
            value = max(-MAX_VALUE, min(float(match.group().replace(",", "")), MAX_VALUE))
            values.append(value)
            if before := _WORD_BEFORE.search(prompt, max(0, match.start() - 30), match.start()):
                found["number", f"after '{before[1].casefold()}'"].setdefault(position, value)
            if after := _WORD_AFTER.match(prompt, match.end()):
                found["number", f"before '{after[1].casefold()}'"].setdefault(position, value)
        if values:
            found["number", "first"][position] = values[0]
            found["number", "largest"][position] = max(values)
    found["length", ""] = {position: float(len(prompt.split())) for position, prompt in enumerate(prompts)}
    return found


def _ends(kind: str, key: str, value_by_position: Mapping[int, float], prompts: int) -> Iterator[tuple[Feature, np.ndarray]]:
    """Lower and upper parts of a quantity, where ties leave any; a part that is there already is left out."""
    if len(value_by_position) < max(LEAST_KEYED_SHARE * prompts, 1):
        return
    positions, values = np.array(list(value_by_position), np.int64), np.array(list(value_by_position.values()))
    seen = set[tuple[float, bool]]()
    for part in PARTS:
        upper, lower = (
            values[values >= np.quantile(values, 1 - part)].min(),
            values[values <= np.quantile(values, part)].max(),
        )
        for bound, is_upper in ((float(upper), True), (float(lower), False)):
            has_it = values >= bound if is_upper else values <= bound
            is_new = (bound, is_upper) not in seen
            seen.add((bound, is_upper))
            if is_new and MIN_GROUP_SHARE * prompts <= has_it.sum() <= MAX_GROUP_SHARE * prompts:
                yield Feature(kind, key, bound=bound, is_upper=is_upper), positions[has_it]
