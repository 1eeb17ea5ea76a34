"""Skills that a row needs: as its column `skills` names them, or read from tool calls.

Source: skills as units of coverage, Zhao et al. 2025 (arXiv 2508.01191); the parser is our own.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from mixwright.tool_calls import calls_of

MAX_JSON_CHARACTERS = 20_000


class Skills(NamedTuple):
    """What a row needs."""

    sequence: tuple[str, ...] = ()
    """Skills in the order in which they are used; two that follow each other are a pair."""
    others: tuple[str, ...] = ()
    """Further things it needs, in no order, such as the arguments of a tool."""
    parsed: bool = True
    """Read from texts, where nobody named them."""


def read_skills(named: tuple[str, ...], answer: str) -> Skills:
    """The skills that a row names; else those of the tool calls in its answer.

    Examples:
        >>> read_skills((), '{"tool": "alarm", "time": "7:00"}')[:2]
        (('tool alarm',), ('alarm(time)',))
    """
    if named:
        return Skills(named, parsed=False)
    is_json = answer[:1] in ("{", "[") and len(answer) <= MAX_JSON_CHARACTERS
    return (_read_calls(answer) if is_json else None) or Skills()


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
