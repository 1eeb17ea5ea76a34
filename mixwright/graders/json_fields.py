"""Grader for JSON: a right answer is an object with the gold answer's fields and values.

Source: ours; exact match by field is how tool calls are scored (https://arxiv.org/abs/2305.15334).
Unit: 1.0 where all fields are right, 0.0 otherwise; each part (`valid JSON`, `same keys`, one per field) is right or wrong.
Cost: one parse of a completion of up to 20,000 characters.
Blind spot: a value that is worded otherwise; a text around the JSON, which makes it invalid; fields below the first level
are compared as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from mixwright.graders._grader import Grader
from mixwright.records import Example

MAX_CHARACTERS, MAX_FIELDS = 20_000, 20
"""Characters of a completion that is parsed, and fields that are parts of their own."""
_WRAPPED = re.compile(r"```(?:json)?\s(.*)```|<(tool_call|function_call|json|answer)>(.*)</\2>", re.DOTALL | re.IGNORECASE)
"""A block of JSON, or a call between tags."""
VALID, KEYS = "valid JSON", "same keys"
"""Parts that every object has."""


class JsonFields(Grader):
    """Order of keys, white space between them, and a fence or tags around the JSON do not count.

    Numbers are compared by value.
    """

    def grade(self, example: Example, completion: str) -> float:
        """1.0 when the completion is the answer as JSON, else 0.0; an answer that is no JSON is compared as text."""
        answer = example.answer or ""
        gold = parse(answer)
        if gold is None:
            return float(bool(answer.strip()) and completion.strip() == answer.strip())
        return float(write_canonical(parse(completion)) == write_canonical(gold))

    def parts(self, example: Example, completion: str) -> Mapping[str, bool]:
        """Whether the completion is JSON, whether it has the keys, and whether each field is right."""
        gold, given = parse(example.answer or ""), parse(completion)
        if not isinstance(gold, dict):
            return {}
        fields = given if isinstance(given, dict) else {}
        right = {
            str(name): name in fields and write_canonical(fields[name]) == write_canonical(value)
            for name, value in list(gold.items())[:MAX_FIELDS]
        }
        return {VALID: given is not None, KEYS: fields.keys() == gold.keys()} | right

    def reading(self, answer: str) -> str:
        """A gold answer in one way of writing it: keys in order, no white space."""
        gold = parse(answer)
        return answer if gold is None else write_canonical(gold)


def parse(text: str) -> Any:
    """Return the object or list that a text is as JSON, apart from a fence or tags around it; None for any other text."""
    if len(text) > MAX_CHARACTERS:
        return None
    text = text.strip().removeprefix("\ufeff")
    if wrapped := _WRAPPED.fullmatch(text):
        text = (wrapped[1] or wrapped[3] or "").strip()
    if text[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text, object_pairs_hook=read_object)
    except (ValueError, RecursionError):
        return None


def write_canonical(value: Any) -> str:
    """Return the one way in which equal values are written; nothing where they are nested too deeply."""
    try:
        return json.dumps(_with_whole_numbers(value), sort_keys=True, ensure_ascii=False)
    except RecursionError:
        return ""


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {str(name): _with_whole_numbers(one) for name, one in value.items()}
    return [_with_whole_numbers(one) for one in value] if isinstance(value, list | tuple) else value


def read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs. Raises ValueError for a key twice: its first value would be lost."""
    found, names = dict(pairs), [name for name, _ in pairs]
    if len(found) < len(pairs):
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r:.60} twice")
    return found
