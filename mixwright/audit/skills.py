"""Skills that a row needs: as its column `skills` names them, as a user's function says, or read from tool calls and sums.

Source: skills as units of coverage, Zhao et al. 2025 (arXiv 2508.01191); the two parsers are our own.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from mixwright.audit.user_functions import Function, WrongResultError, call_function
from mixwright.tool_calls import calls_of

MAX_JSON_CHARACTERS = 20_000
_TERM, _SIGN = r"\({0,9}\d{1,40}(?:\.\d{1,40})?\){0,9}", r"\s?[-+*/x\u00d7\u00f7]\s?"
_EXPRESSION = re.compile(rf"(?<![\w.-]){_TERM}(?:{_SIGN}{_TERM})+(?![\w-])")
_OPERATOR = re.compile(r"[-+*/x\u00d7\u00f7]")
_DATE_PHONE_OR_FRACTION = re.compile(r"\d{1,4}([-/])\d{1,2}\1\d{1,4}|\d{3}-\d{4}|\d{3}-\d{3}-\d{4}|\d{1,2}/\d{1,2}")
"""Numbers with signs between them that are no sum: dates, calls, fractions."""
_SAME_OPERATOR = {"\u00d7": "*", "\u00f7": "/", "x": "*"}


class Skills(NamedTuple):
    """What a row needs."""

    sequence: tuple[str, ...] = ()
    """Skills in the order in which they are used; two that follow each other are a pair."""
    others: tuple[str, ...] = ()
    """Further things it needs, in no order, such as the arguments of a tool."""
    parsed: bool = True
    """Read from texts, where nobody named them."""


def read_skills(named: tuple[str, ...], prompt: str, answer: str) -> Skills:
    """The skills that a row names; else those of the tool calls in its answer, else of the sums in its prompt.

    Sums are read where the answer holds a digit.

    Examples:
        >>> read_skills((), "What is 3 + 4 * 5?", "23").sequence
        ('+', '*')
        >>> read_skills((), "Wake me at 7.", '{"tool": "alarm", "time": "7:00"}')[:2]
        (('tool alarm',), ('alarm(time)',))
    """
    if named:
        return Skills(named, parsed=False)
    if answer[:1] in "{[" and len(answer) <= MAX_JSON_CHARACTERS and (found := _read_calls(answer)):
        return found
    return Skills(_read_operators(prompt) if any(character.isdigit() for character in answer) else ())


def read_named_skills(function: Function, row: dict[str, Any], row_source: str) -> Skills:
    """The skills that a user's function names for a row; `row_source` is the row's file and line, for a refusal.

    Raises:
        InputError: it raises, or returns something else than texts.
    """
    return call_function(function, row, _read_names, ("--skills", "a list of skills, each a text"), row_source)


def _read_names(found: Any) -> Skills:
    names = (found,) if isinstance(found, str) else tuple(found)
    if wrong := [type(name).__name__ for name in names if type(name) is not str or not name]:
        raise WrongResultError(f"one with {wrong[0]}")
    return Skills(names, parsed=False)


def _read_operators(prompt: str) -> tuple[str, ...]:
    """The operators of the sums in a prompt, in the order in which they stand there."""
    sums = (match[0] for match in _EXPRESSION.finditer(prompt) if not _DATE_PHONE_OR_FRACTION.fullmatch(match[0]))
    signs = (str(sign) for one in sums for sign in _OPERATOR.findall(one))
    return tuple(_SAME_OPERATOR.get(sign, sign) for sign in signs)


def _read_calls(answer: str) -> Skills | None:
    """Tools and their arguments; keys where an object calls none; None where it is no JSON."""
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        return None
    calls, others = list[str](), list[str]()
    for one in value if isinstance(value, list) else [value]:
        found = list(calls_of(one, is_marked=True))
        calls += [f"tool {name}" for name, _ in found]
        others += [f"{name}({key})" for name, arguments in found for key in arguments]
        if not found and isinstance(one, dict):
            others += [f"key {key}" for key in one]
    return Skills(tuple(calls), tuple(dict.fromkeys(others)))
