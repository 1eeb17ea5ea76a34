"""Skills that a row needs: as its column `skills` names them, as a user's function says, or read from tool calls and sums.

Source: skills as units of coverage, Zhao et al. 2025 (arXiv 2508.01191); the two parsers are our own.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from mixwright.errors import InputError

Function = Callable[[dict[str, Any]], Any]
"""A row as a mapping (prompt, answer, task, level) -> its skills in order."""
TOOL_NAME_KEYS = ("tool", "name", "function", "action", "tool_name", "function_name")
"""Keys under which a tool call in JSON has the tool's name."""
ARGUMENT_KEYS = ("arguments", "args", "parameters", "input", "kwargs")
"""Keys under which it has its arguments, where they do not stand beside the name."""
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


def call_function(function: Function, row: dict[str, Any], row_source: str) -> Skills:
    """The skills that a user's function names for a row; `row_source` is the row's file and line, for a refusal.

    Raises:
        InputError: it raises, or returns something else than texts.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            found = function(row)
            names = (found,) if isinstance(found, str) else tuple(found)
    except (Exception, SystemExit, GeneratorExit) as error:  # a user's function may raise anything
        raise InputError(
            "a list of skills", _describe(error), "Correct the function of --skills.", file=row_source
        ) from None
    if wrong := [type(name).__name__ for name in names if type(name) is not str or not name]:
        raise InputError("a list of texts", f"one with {wrong[0]}", "Correct the function of --skills.", file=row_source)
    return Skills(names, parsed=False)


def _describe(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:160]
    except Exception:  # its own text may raise
        return type(error).__name__


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
    for one in _objects(value):
        name = next((one[key] for key in TOOL_NAME_KEYS if isinstance(one.get(key), str)), None)
        if name is None:
            others += [f"key {key}" for key in one]
            continue
        calls.append(f"tool {name}")
        nested = next((one[key] for key in ARGUMENT_KEYS if isinstance(one.get(key), dict)), None)
        arguments = one if nested is None else nested
        others += [f"{name}({key})" for key in arguments if nested is not None or key not in TOOL_NAME_KEYS]
    return Skills(tuple(calls), tuple(dict.fromkeys(others)))


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """The objects of a JSON value, those in lists too; in an object `{"function": {...}}` the inner one."""
    if isinstance(value, list):
        for one in value:
            yield from _objects(one)
    elif isinstance(value, dict):
        inner = next((value[key] for key in ("function", "tool_call") if isinstance(value.get(key), dict)), None)
        yield value if inner is None else inner
