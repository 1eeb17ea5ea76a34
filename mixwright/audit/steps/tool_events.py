"""Conversations with tools as events in their order: what was asked, calls, and results.

Calls are read from chat messages and from texts: JSON with a tool's name and arguments, between tags (`<tool_call>`), after
`<functioncall>`, as `Action:` and `Action Input:`, and as OpenAI's `tool_calls`. Results are messages of a tool, or JSON
between `<tool_response>` tags, after `Observation:`, `FUNCTION RESPONSE:` or `Result:`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

from mixwright.tool_calls import MAX_CHARACTERS, RESULT_ROLES, calls_of, decode_at, text_of

MAX_EVENTS = 1000
"""Events of one conversation that are kept."""
Kind = Literal["asked", "call", "result"]
_MARK = re.compile(
    r"(?P<call><(?:tool_call|function_?call)>)|(?P<result><tool_response>|\bFUNCTION RESPONSE:|^[ \t]*Observation:"
    r"|^[ \t]*(?:(?:Tool|Function) )?(?:Result|Response|Output):(?=\s*[\[{]))"
    r"|^[ \t]*Action:[ \t]*(?P<action>[\w.-]{1,80})[ \t]*\n"
    r"[ \t]*Action Input:|^[ \t]*(?P<bare>(?=[\[{]))",
    re.MULTILINE,
)
_CLOSING = re.compile(r"\s*</(?:tool_call|function_?call|tool_response)>")
_HINTS = ('"arguments"', '"parameters"', '"args"', '"tool"', '"function"', "Action Input:", "tool_call", "functioncall")


class Event(NamedTuple):
    """One thing that was asked, done or returned."""

    kind: Kind
    text: str
    """As it stands there."""
    span: tuple[int, int] | None
    """Characters of the completion; None where it stands in the prompt."""
    name: str = ""
    """Of the tool of a call."""
    data: Any = None
    """Arguments of a call (a mapping)."""


def has_calls(text: str) -> bool:
    """Whether a text may hold a call: a look at a few words.

    Examples:
        >>> has_calls("a b"), has_calls('<tool_call>{"name": "find", "arguments": {}}</tool_call>')
        (False, True)
    """
    return "{" in text and any(hint in text for hint in _HINTS)


def read_events(prompt: str | Sequence[Mapping[str, Any]], completion: str | Sequence[Mapping[str, Any]]) -> list[Event]:
    r"""The events of a row, whose sides are texts or chat messages.

    Spans are places in the completion's messages joined by newlines.

    Examples:
        >>> text = 'Action: add\nAction Input: {"a": 3}\nObservation: {"sum": 3}\nIt is 3.'
        >>> [(one.kind, one.name, one.data) for one in read_events("Add 3.", text)]
        [('asked', '', None), ('call', 'add', {'a': 3}), ('result', '', None)]
    """
    found: list[Event] = []
    for role, side, at in (("user", prompt, None), ("assistant", completion, 0)):
        for message in [{"role": role, "content": side}] if isinstance(side, str) else side:
            found += _events(message["role"], text_of(message), at)
            at = None if at is None else at + len(text_of(message)) + 1
    return found[:MAX_EVENTS]


def _events(role: str, text: str, start: int | None) -> Iterator[Event]:
    def placed(kind: Kind, begin: int, end: int, name: str = "", data: Any = None) -> Event:
        return Event(kind, text[begin:end], None if start is None else (start + begin, start + end), name, data)

    if role in RESULT_ROLES:
        yield placed("result", 0, len(text))
        return
    is_said, at = role == "assistant", 0
    for match in islice(_MARK.finditer(text, 0, MAX_CHARACTERS), MAX_EVENTS):
        if match.start() < at:
            continue
        kind = match.lastgroup
        begin = match.end() + len(text[match.end() : match.end() + 20]) - len(text[match.end() : match.end() + 20].lstrip())
        value, end = decode_at(text, begin)
        if kind == "result":
            if value is None:
                end = (text.find("\n", match.end()) + 1 or len(text) + 1) - 1
            made = [placed("result", match.start(), end)]
        elif kind == "action":
            made = [placed("call", match.start(), end, match["action"], value)] if isinstance(value, dict) else []
        else:
            calls = list(calls_of(value, is_marked=kind == "call")) if is_said else []
            made = [placed("call", match.start(), end, name, arguments) for name, arguments in calls]
            if kind == "call" and is_said and value is None and text[begin : begin + 1] in ("{", "["):
                made = [placed("call", match.start(), begin + 80)]  # broken JSON
        if not made:
            continue
        if not is_said and text[at : match.start()].strip():
            yield placed("asked", at, match.start())
        yield from made
        closing = _CLOSING.match(text, end)
        at = closing.end() if closing else end
    if not is_said and text[at:].strip():
        yield placed("asked", at, len(text))
