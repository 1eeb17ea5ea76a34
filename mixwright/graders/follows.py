"""Grader for requests about form and behaviour: the gold answer is a set of rules, and a right completion keeps all of them.

Source: verifiable instructions, as in https://arxiv.org/abs/2311.07911; the rules are our own.
Unit: 1.0 where every rule holds, 0.0 otherwise.
Cost: a few regular expressions over the first 4,000 characters.
Blind spot: whether what is said is true, or answers anything; sentences are counted by their full stops.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from mixwright.graders._grader import Grader
from mixwright.graders.includes import is_data
from mixwright.records import Example
from mixwright.words import contains_words, folded, words_in

CHARACTERS_READ = 4000
_OUTER_MARKS = " \t\n*_`\"'.,;:!?()#-"


def _is_between(count: int, ends: list[int]) -> bool:
    return ends[0] <= count <= ends[1]


def _has_words(text: str, phrase: str) -> bool:
    return contains_words(words_in(text), words_in(phrase))


RULES: Mapping[str, Callable[[str, Any], bool]] = {
    "words": lambda text, ends: _is_between(len(words_in(text)), ends),
    "sentences": lambda text, ends: _is_between(len(re.findall(r"[^.!?\s][.!?]+(?=\s|$)", text)) or 1, ends),
    "lines": lambda text, ends: _is_between(sum(bool(line.strip()) for line in text.splitlines()), ends),
    "contains": lambda text, phrases: all(_has_words(text, phrase) for phrase in phrases),
    "any_of": lambda text, phrases: any(_has_words(text, phrase) for phrase in phrases),
    "excludes": lambda text, phrases: not any(_has_words(text, phrase) for phrase in phrases),
    "begins": lambda text, start: folded(text).strip(_OUTER_MARKS).startswith(folded(start).strip(_OUTER_MARKS)),
    "ends": lambda text, end: folded(text).strip(_OUTER_MARKS).endswith(folded(end).strip(_OUTER_MARKS)),
    "case": lambda text, case: {"lower": str.islower, "upper": str.isupper, "title": str.istitle}[case](text),
    "question": lambda text, wanted: ("?" in text) == wanted,
    "data": lambda text, wanted: is_data(text) == wanted,
    "letters": lambda text, letters: not set(letters.casefold()) & set(text.casefold()),
}
"""Rule -> whether a text keeps it."""
TYPES: Mapping[str, type] = {"begins": str, "ends": str, "letters": str, "question": bool, "data": bool}
"""Rule -> type of its value, where that is no list; data with a field `question` is no rule."""


def are_rules(answer: str) -> bool:
    """Whether a gold answer is a set of rules, and so no form that an answer should have."""
    try:
        rules = json.loads(answer) if answer.startswith("{") else None
    except ValueError:
        return False
    if not isinstance(rules, dict) or not rules or not rules.keys() <= RULES.keys():
        return False
    return all(_is_value_of(name, value) for name, value in rules.items())


def _is_value_of(name: str, value: Any) -> bool:
    if name in ("words", "sentences", "lines"):
        return isinstance(value, list) and [type(end) for end in value] == [int, int]
    if name == "case":
        return value in ("lower", "upper", "title")
    return isinstance(value, TYPES.get(name, list)) and (name in TYPES or all(isinstance(one, str) for one in value))


class Follows(Grader):
    """Right is a completion with words that keeps every rule of the gold answer, a JSON object of `RULES`.

    A gold answer that is no such object is right as it stands, and nothing else is.
    """

    def grade(self, example: Example, completion: str) -> float:
        """1.0 where every rule holds, else 0.0."""
        text, answer = completion.strip()[:CHARACTERS_READ], (example.answer or "").strip()
        if text == answer:
            return float(bool(answer))
        if not are_rules(answer) or not words_in(text):
            return 0.0
        return float(all(RULES[name](text, value) for name, value in json.loads(answer).items()))
