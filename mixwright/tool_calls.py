"""Tool calls in chat messages, as text, and read back from what a model wrote.

Messages hold them as OpenAI and TRL do: `tool_calls` of the assistant, their arguments as an object. The first message of a
prompt holds the row's `tools`, so that they reach the chat template with it. As text, calls are JSON between `<tool_call>`
tags. Forms whose marks are special tokens are read by the tokenizer's own `response_template` first, where it has one.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

TOOL_NAME_KEYS = ("tool", "name", "function", "action", "tool_name", "function_name")
"""Keys under which a tool call in JSON has the tool's name."""
ARGUMENT_KEYS = ("arguments", "args", "parameters", "input", "kwargs", "action_input", "tool_input")
"""Keys under which it has its arguments, where they do not stand beside the name."""
MAX_CHARACTERS, MAX_CALLS = 20_000, 100
"""Characters of an answer that are read, and calls of one."""
RESULT_ROLES = ("tool", "function", "ipython")
"""Roles of messages that hold a result."""
CALL_ROLES = ("function_call", "function-call", "tool_call")
"""Roles of messages that are the JSON of calls, in ShareGPT's form."""
TOOLS_HEADING = (
    "# Tools\n\nYou may call one or more of the functions whose signatures are between <tools></tools>:\n"
    "<tools>\n{}\n</tools>\n\n"
    "For each call, answer with a JSON object of its name and arguments between <tool_call></tool_call>:\n"
    '<tool_call>\n{{"name": <name>, "arguments": <object>}}\n</tool_call>'
)
"""Tools as a part of the system message, in the form that Hermes and Qwen use."""
_MARK = re.compile(
    r"(?:<tool_call>|\[TOOL_CALLS\]|<\uff5ctool▁call▁begin\uff5c>(?:function<\uff5ctool▁sep\uff5c>)?|\bAction:)"
    r"\s*(?P<tool>[\w.-]{1,80})\s*(?:\[ARGS\]|<\uff5ctool▁sep\uff5c>|Action Input:|```json)?\s*(?=\{)"
    r"|<(?:tool_call|function_?call)>|\[TOOL_CALLS\]|<\|python_tag\|>|<function=(?P<name>[\w.-]{1,80})>"
)
_END_MARK = re.compile(r"</\w|<\||```")
_PARAMETER = re.compile(r"<parameter=([\w.-]{1,80})>\n?(.*?)\n?</parameter>", re.DOTALL)
_FENCED = re.compile(r"```\w*\s(.*)```|<\|tool_call_start\|>(.*)<\|tool_call_end\|>", re.DOTALL)
_PARTS = re.compile(r"```\w*\n?|\n\s*\n")
_JSON_START = re.compile(r"\[\s*(?=\{)|\{(?=\s*\")")
MAX_JSON_STARTS = 1000
"""Places of a system message at which tools may begin."""
_DECODER = json.JSONDecoder(strict=False)


class Call(NamedTuple):
    """One call of a tool."""

    name: str
    """Of the tool; empty where a marked call cannot be read."""
    arguments: Any
    """By name; the text itself where it is not a JSON object."""


def decode_at(text: str, begin: int) -> tuple[Any, int]:
    """Return the JSON object or list that begins there, and its end; None where there is none."""
    if text[begin : begin + 1] not in ("{", "["):
        return None, begin
    try:
        return _DECODER.raw_decode(text[: begin + MAX_CHARACTERS], begin)
    except (ValueError, RecursionError):
        return None, begin


def decode(text: str) -> Any:
    """Return the JSON object or list that a text is; None for any other text."""
    stripped = text.strip()
    value, end = decode_at(stripped, 0)
    return value if end == len(stripped) else None


def calls_of(value: Any, *, is_marked: bool) -> Iterator[Call]:
    """Yield the calls that a JSON value is; one without a mark needs arguments or a key that says tool."""
    if isinstance(value, list):
        for one in value:
            yield from calls_of(one, is_marked=is_marked)
        return
    if not isinstance(value, dict):
        return
    if isinstance(value.get("tool_calls"), list):
        yield from calls_of(value["tool_calls"], is_marked=True)
        return
    inner = next(
        (value[key] for key in ("function", "tool_call", "function_call") if isinstance(value.get(key), dict)), value
    )
    name = next((inner[key] for key in TOOL_NAME_KEYS if isinstance(inner.get(key), str)), None)
    if name is None:
        return
    arguments = next((inner[key] for key in ARGUMENT_KEYS if inner.get(key) is not None), None)
    if isinstance(arguments, str):
        read = decode(arguments or "{}")
        arguments = read if isinstance(read, dict) or not is_marked else arguments
    if isinstance(arguments, dict) or (is_marked and arguments is not None):
        yield Call(name, arguments)
    elif arguments is None and (is_marked or "tool" in inner):
        yield Call(name, {key: one for key, one in inner.items() if key not in (*TOOL_NAME_KEYS, *ARGUMENT_KEYS)})


def find_calls(text: str, tools: Any = ()) -> list[Call]:
    r"""Return the calls of an answer: JSON behind a mark, or an answer that is nothing but JSON or `[f(x=1)]`.

    With the row's tools, a paragraph or block of an answer that is nothing but calls of them counts too, also as `f(x=1)`.

    Examples:
        >>> find_calls('I look. <tool_call>{"name": "find", "arguments": {"a": 1}}</tool_call>')
        [Call(name='find', arguments={'a': 1})]
        >>> find_calls("[find(a=1)]") == find_calls('[TOOL_CALLS][{"name": "find", "arguments": {"a": 1}}]')
        True
        >>> find_calls("I found 3."), find_calls('{"name": "Ann", "age": 3}')
        ([], [])
        >>> find_calls("I look it up.\n\nfind(a=1)", [{"name": "find"}])
        [Call(name='find', arguments={'a': 1})]
    """
    text, at, found = text[:MAX_CHARACTERS].strip(), 0, list[Call]()
    for match in _MARK.finditer(text):
        if match.start() < at or len(found) >= MAX_CALLS:
            continue
        at = match.end()
        if match["name"]:
            end = text.find("</function>", at)
            body = text[at : end if end >= 0 else None]
            pairs = {name: read_value(value) for name, value in _PARAMETER.findall(body)}
            found.append(Call(match["name"], pairs or (decode(body) if body.strip() else {})))
            continue
        if match["tool"]:
            value, at = decode_at(text, at)
            found.append(Call(match["tool"], value) if value is not None else Call("", text[at : at + 80]))
            continue
        calls, at = _read_run(text, at, is_marked=True)
        if not calls and not _MARK.match(text, _skip(text, at)):
            calls = [Call("", text[at : at + 80])]
        found += calls
    if found or at:
        return found
    fenced = _FENCED.fullmatch(text)
    body = ((fenced[1] or fenced[2] or "") if fenced else text).strip()
    calls, end = _read_run(body, 0, is_marked=False)
    if calls and end == len(body):
        return calls
    names = {tool["function"]["name"] for tool in read_tools(list(tools))}
    for part in map(str.strip, _PARTS.split(text) if names else ()):
        calls, end = _read_run(part, 0, is_marked=True)
        if end == len(part) and all(call.name in names for call in calls):
            found += calls
    return found


def _skip(text: str, at: int, extra: str = "") -> int:
    """Return the next place that is no white space and none of these characters."""
    return len(text) - len(text[at:].lstrip(" \t\r\n" + extra))


def _read_run(text: str, at: int, *, is_marked: bool) -> tuple[list[Call], int]:
    """Return the calls that follow each other from a place on, parted by nothing but `;`, and where they end."""
    found, begin = list[Call](), _skip(text, at)
    while (value := decode_at(text, begin))[0] is not None:
        calls = list(calls_of(value[0], is_marked=is_marked))
        if not calls:
            break
        found, at = found + calls, value[1]
        begin = _skip(text, at, ";")
    if not found and (is_marked or text[begin : begin + 1] in ("[", "{")):
        mark = _END_MARK.search(text, begin)
        for end in (len(text), mark.start() if mark else len(text)):
            if found := _read_python(text[begin:end], is_marked=is_marked):
                at = end
                break
    return found, len(text) if not text[at:].strip(" \n;") else at


def _read_python(text: str, *, is_marked: bool) -> list[Call]:
    """Return the calls of `[f(x=1), g()]`, `f(x=1); g()` or of dicts; none where it is anything else. Nothing is run."""
    try:
        values = [getattr(one, "value", one) for one in _Constants().visit(ast.parse(text.strip())).body]
        parts = [part for value in values for part in getattr(value, "elts", (value,))]
        return [call for part in parts for call in _calls_of_node(part, is_marked=is_marked)]
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return []


def _calls_of_node(node: ast.AST, *, is_marked: bool) -> list[Call]:
    """Return the calls that one expression is; ValueError where it is something else."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and ast.unparse(node.func) == "print":
        node = node.args[0]
    if isinstance(node, ast.Call) and not node.args:
        arguments = {word.arg: ast.literal_eval(word.value) for word in node.keywords}
        return [Call(ast.unparse(node.func).removesuffix(".call"), arguments)]
    found = list(calls_of(ast.literal_eval(node), is_marked=is_marked)) if isinstance(node, ast.Dict) else []
    if not found:
        raise ValueError("no call")
    return found


class _Constants(ast.NodeTransformer):
    """Reads the names of JSON's constants as Python's."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        constants = {"true": True, "false": False, "null": None}
        return ast.Constant(constants[node.id]) if node.id in constants else node


def read_value(text: str) -> Any:
    """Return what a text is as JSON; the text itself where it is none."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    return text


def write_calls(calls: Iterable[Call]) -> str:
    r"""Return calls as text.

    Examples:
        >>> write_calls([Call("add", {"a": 1})])
        '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    """
    shown = (json.dumps(call._asdict(), ensure_ascii=False) for call in calls)
    return "\n".join(f"<tool_call>\n{one}\n</tool_call>" for one in shown)


def calls_in(message: Mapping[str, Any]) -> list[Call]:
    """Return the calls that a message holds as structures."""
    return list(calls_of(list(message.get("tool_calls") or ()), is_marked=True))


def text_of(message: Mapping[str, Any]) -> str:
    """Return the content of a message, and its calls as text behind it."""
    calls = calls_in(message)
    return "\n".join(filter(None, (message["content"], write_calls(calls)))) if calls else message["content"]


def with_json_arguments(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with the arguments of its calls as JSON text, as servers, and tables of structs, have them."""
    calls = list[dict[str, Any]]()
    for call in message.get("tool_calls") or ():
        text = json.dumps(call["function"]["arguments"], ensure_ascii=False)
        calls.append({**call, "function": {**call["function"], "arguments": text}})
    return {**message, "tool_calls": calls} if calls else dict(message)


def structure(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with role, content and, where the assistant calls tools, `tool_calls` with arguments as objects.

    Read are `tool_calls`, OpenAI's older `function_call`, and ShareGPT's roles of calls, whose value is JSON.
    """
    role, content = message.get("role", message.get("from")), message.get("content", message.get("value"))
    given = message.get("tool_calls") or message.get("function_call")
    if role in CALL_ROLES and isinstance(content, str):
        given, content = (decode(content), "") if list(calls_of(decode(content), is_marked=True)) else (None, content)
    made = {name: value for name, value in message.items() if value is not None and name not in _READ}
    entries = [given] if isinstance(given, dict) else given if isinstance(given, list) else []
    calls = []
    for entry in entries:
        for call in calls_of(entry, is_marked=True):
            number = {"id": entry["id"]} if isinstance(entry, dict) and isinstance(entry.get("id"), str) else {}
            calls.append({**number, "type": "function", "function": call._asdict()})
    held = {"tool_calls": calls} if calls else {}
    return {"role": role, "content": "" if calls and content is None else content, **made, **held}


_READ = ("role", "from", "content", "value", "tool_calls", "function_call", "tools")


def read_tools(value: Any) -> list[dict[str, Any]]:
    """Return the tools of a column, a list or JSON, each as `{"type": "function", "function": ...}`; none where it has none.

    Examples:
        >>> read_tools('[{"name": "find"}]')
        [{'type': 'function', 'function': {'name': 'find'}}]
    """
    value = decode(value) if isinstance(value, str) else value
    listed = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
    found = [one for one in (decode(one) if isinstance(one, str) else one for one in listed) if isinstance(one, dict)]
    wrapped = [one if isinstance(one.get("function"), dict) else {"type": "function", "function": one} for one in found]
    return [one for one in wrapped if isinstance(one["function"].get("name"), str)]


def find_tools(text: str) -> list[dict[str, Any]]:
    """Return the tools whose schemas a system message lists as JSON, in the form of `read_tools`.

    Examples:
        >>> [tool["function"]["name"] for tool in find_tools('Use [{"name": "find", "parameters": {}}] if you must.')]
        ['find']
    """
    found, at = list[dict[str, Any]](), 0
    for begin in (match.start() for match in islice(_JSON_START.finditer(text), MAX_JSON_STARTS)):
        value, end = decode_at(text, begin) if begin >= at else (None, begin)
        tools = [tool for tool in read_tools(value) if {"parameters", "input_schema"} & tool["function"].keys()]
        found, at = found + tools, end if tools else at
    return found


def write_as_text(messages: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return messages without structures, for a chat template that shows none: tools stand in the system message, calls in
    the assistant's texts, and results between `<tool_response>` tags in the user's.
    """
    found = list[dict[str, Any]]()
    tools = messages[0].get("tools") if messages else None
    if tools:
        heading = TOOLS_HEADING.format("\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools))
        is_first = messages[0]["role"] == "system"
        found.append({"role": "system", "content": f"{messages[0]['content']}\n\n{heading}" if is_first else heading})
        messages = messages[1:] if is_first else messages
    for message in messages:
        is_result = message["role"] in RESULT_ROLES
        text = f"<tool_response>\n{message['content']}\n</tool_response>" if is_result else text_of(message)
        if is_result and found and found[-1]["content"].endswith("</tool_response>") and found[-1]["role"] == "user":
            found[-1] = {**found[-1], "content": f"{found[-1]['content']}\n{text}"}
        else:
            kept = {name: value for name, value in message.items() if name not in ("tools", "tool_calls", "tool_call_id")}
            found.append({**kept, "role": "user" if is_result else message["role"], "content": text})
    return tuple(found)
