"""Tool calls of chat messages (OpenAI's `tool_calls`, or `function_call`) as text, where rows are only looked at.

Left out on purpose: training on them. A chat template writes calls in a form of its own, which this one need not be.
"""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from typing import Any

from mixwright.records import Example, Text

RESULT_ROLES = ("tool", "function", "ipython")
"""Roles of what a tool gave back."""


def write_calls(row: Any) -> Any:
    r"""Return a raw row with the tool calls of its chat messages as JSON between `<tool_call>` tags, behind their content.

    Examples:
        >>> call = {"function": {"name": "add", "arguments": "{}"}}
        >>> write_calls({"messages": [{"role": "assistant", "tool_calls": [call]}]})["messages"][0]["content"]
        '<tool_call>\n{"name": "add", "arguments": {}}\n</tool_call>'
    """
    if not isinstance(row, dict):
        return row
    return {
        name: [_write_calls_of(one) for one in value] if isinstance(value, list) else _write_calls_of(value)
        for name, value in row.items()
    }


def _write_calls_of(message: Any) -> Any:
    """Return the message with its calls in its content; the message as it is where it has none, or broken ones."""
    calls = message.get("tool_calls") or message.get("function_call") if isinstance(message, dict) else None
    if not calls:
        return message
    calls = [calls] if isinstance(calls, dict) else calls
    content = message.get("content", message.get("value"))
    if not isinstance(calls, list) or not isinstance(content, str | None):
        return message
    parts = [content] if content else []
    for call in calls:
        inner = call.get("function", call) if isinstance(call, dict) else None
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
            return message
        arguments = inner.get("arguments", {})
        with suppress(ValueError, RecursionError):  # what is broken stays as it stands there
            arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
        shown = json.dumps({"name": inner["name"], "arguments": arguments}, ensure_ascii=False)
        parts.append(f"<tool_call>\n{shown}\n</tool_call>")
    without_calls = {name: value for name, value in message.items() if name not in ("tool_calls", "function_call")}
    return without_calls | {"content": "\n".join(parts)}


def has_calls(prompt: Text) -> bool:
    """Whether the assistant called a tool before the completion, which a tool's result shows."""
    turns = () if isinstance(prompt, str) else prompt
    return any(a["role"] == "assistant" and b["role"] in RESULT_ROLES for a, b in itertools.pairwise(turns))


def tools_of(example: Example) -> dict[str, str]:
    """The column of tools, as the JSON that trainers take from rows of any form; empty for a row that has none."""
    tools = example.extra.get("tools")
    return {"tools": tools if isinstance(tools, str) else json.dumps(tools, ensure_ascii=False)} if tools else {}
