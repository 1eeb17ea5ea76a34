"""Tool calls of chat messages (OpenAI's `tool_calls`, or `function_call`) as text, where rows are only looked at.

Left out on purpose: training on them. A chat template writes calls in a form of its own, which this one need not be.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from mixwright.records import Example, Text

RESULT_ROLES = ("tool", "function", "ipython")
"""Roles of what a tool gave back."""
_is_on = ContextVar("calls_as_text", default=False)


@contextmanager
def calls_as_text() -> Iterator[None]:
    """Inside it messages with tool calls are read, each call as JSON between `<tool_call>` tags behind the text."""
    token = _is_on.set(True)
    try:
        yield
    finally:
        _is_on.reset(token)


def text_with_calls(content: Any, calls: Any) -> str | None:
    r"""The content of a message and its calls as one text; None where calls are not to be read, or are none.

    Examples:
        >>> with calls_as_text():
        ...     text_with_calls(None, [{"function": {"name": "add", "arguments": "{}"}}])
        '<tool_call>\n{"name": "add", "arguments": {}}\n</tool_call>'
    """
    calls = [calls] if isinstance(calls, dict) else calls
    if not _is_on.get() or not isinstance(calls, list) or not isinstance(content, str | None):
        return None
    parts = [content] if content else []
    for call in calls:
        inner = call.get("function", call) if isinstance(call, dict) else None
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
            return None
        arguments = inner.get("arguments", {})
        with suppress(ValueError, RecursionError):  # what is broken stays as it stands there
            arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
        shown = json.dumps({"name": inner["name"], "arguments": arguments}, ensure_ascii=False)
        parts.append(f"<tool_call>\n{shown}\n</tool_call>")
    return "\n".join(parts)


def has_calls(prompt: Text) -> bool:
    """Whether the assistant called a tool before the completion, which a tool's result shows."""
    turns = () if isinstance(prompt, str) else prompt
    return any(a["role"] == "assistant" and b["role"] in RESULT_ROLES for a, b in itertools.pairwise(turns))


def tools_of(example: Example) -> dict[str, str]:
    """The column of tools, as the JSON that trainers take from rows of any form; empty for a row that has none."""
    tools = example.extra.get("tools")
    return {"tools": tools if isinstance(tools, str) else json.dumps(tools, ensure_ascii=False)} if tools else {}
