"""Skills that a row needs: as its column `skills` names them, or read from tool calls.

Source: skills as units of coverage, Zhao et al. 2025 (arXiv 2508.01191); the parser is our own.
"""

from __future__ import annotations

from typing import NamedTuple

from mixwright.tool_calls import decode, find_calls

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
        >>> read_skills((), '<tool_call>{"name": "find", "arguments": {"a": 1}}</tool_call>')[:2]
        (('tool find',), ('find(a)',))
    """
    if named:
        return Skills(named, parsed=False)
    calls = find_calls(answer)
    if not calls:
        return _read_keys(answer)
    used = [f"{call.name}({key})" for call in calls if isinstance(call.arguments, dict) for key in call.arguments]
    return Skills(tuple(f"tool {call.name}" for call in calls), tuple(dict.fromkeys(used)))


def _read_keys(answer: str) -> Skills:
    """Return the keys of an answer that is a JSON object, or a list of some."""
    value = decode(answer) if len(answer) <= MAX_JSON_CHARACTERS else None
    objects = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]
    return Skills((), tuple(dict.fromkeys(f"key {key}" for one in objects for key in one)))
