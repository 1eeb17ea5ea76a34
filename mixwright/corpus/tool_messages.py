"""Tools and tool calls of rows: a prompt carries the tools of its row; exports and data sets have them as a column."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

from mixwright.records import Example, Text
from mixwright.tool_calls import RESULT_ROLES, calls_of, decode, structure


def with_tools(prompt: Text, tools: Sequence[Any]) -> Text:
    """Return a prompt that carries tools on its first message; a text becomes the user's message."""
    if not tools or not prompt:
        return prompt
    first, *rest = ({"role": "user", "content": prompt},) if isinstance(prompt, str) else prompt
    return ({**first, "tools": list(tools)}, *rest)


def structure_answer(text: str) -> Text:
    """Return an answer that is the JSON of calls and nothing else as the assistant's message; any other as it is."""
    value = decode(text)
    if value is None or not list(calls_of(value, is_marked=False)):
        return text
    return (structure({"role": "assistant", "content": "", "tool_calls": value if isinstance(value, list) else [value]}),)


def has_calls(prompt: Text) -> bool:
    """Whether the assistant called a tool before the completion."""
    turns = () if isinstance(prompt, str) else prompt
    is_followed = (a["role"] == "assistant" and b["role"] in RESULT_ROLES for a, b in itertools.pairwise(turns))
    return any(turn.get("tool_calls") for turn in turns) or any(is_followed)


def has_structures(example: Example) -> bool:
    """Whether a row has tools, or calls as structures, whose keys differ from row to row."""
    texts = (example.prompt, example.target, example.chosen, example.rejected)
    turns = (turn for text in texts if isinstance(text, tuple) for turn in text)
    return bool(example.tools) or any(turn.get("tool_calls") for turn in turns)


def tools_of(example: Example) -> dict[str, str]:
    """The column of tools, as the JSON that trainers take from rows of any form; empty for a row that has none."""
    return {"tools": json.dumps(example.tools, ensure_ascii=False)} if example.tools else {}
