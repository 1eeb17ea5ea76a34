"""Calls against the JSON schemas of their tools: what of a schema a call breaks, in words.

Types are those of JSON schema, and the names that Python and older files use for them; other names are not checked.
Left out on purpose: `pattern` and `format`, since an expression out of a data file may never end, and `not`, `if`.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

KINDS = {
    "unreadable": "cannot be read",
    "function": "name a function that is not in the row's tools",
    "missing": "lack a required argument",
    "unknown": "give an argument that their function does not have",
    "null": "give null for an argument that their function does not have or that may not be null",
    "value": "give a value that the schema does not allow",
}
"""Kind of fault -> what such calls do."""
TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("string", "str"), (str,)),
    **dict.fromkeys(("integer", "int"), (int,)),
    **dict.fromkeys(("number", "float"), (int, float)),
    **dict.fromkeys(("boolean", "bool"), (bool,)),
    **dict.fromkeys(("array", "list", "tuple"), (list,)),
    **dict.fromkeys(("object", "dict"), (dict,)),
    "null": (type(None),),
}


def _is_multiple(value: float, limit: float) -> bool:
    """Return whether it is by its decimals: 19.99 is a multiple of .01."""
    if limit == 0 or not (math.isfinite(value) and math.isfinite(limit)):
        return True
    return Fraction(str(value)) % Fraction(str(limit)) == 0


LIMITS: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
    "multipleOf": _is_multiple,
}
SIZES: dict[type, str] = {str: "Length", list: "Items", dict: "Properties"}
MAX_DEPTH = 12


class Fault(NamedTuple):
    """One thing that a call breaks."""

    kind: str
    """Key of `KINDS`."""
    where: str
    """Function, and argument with its path, such as `book.guests`."""
    why: str = ""
    """Words behind it."""


def find_faults(name: str, arguments: Any, tools: Sequence[Mapping[str, Any]]) -> list[Fault] | None:
    """Return the faults of a call; None where its tool says nothing about its arguments.

    Args:
        name: of the function; empty for a call that cannot be read.
        arguments: of the call.
        tools: of its row, as `{"type": "function", "function": ...}`.
    """
    if not name or not isinstance(arguments, Mapping):
        return [Fault("unreadable", name or "a call", f"{arguments!r:.60}")]
    own = [tool["function"] for tool in tools if tool["function"]["name"] == name]
    if not own:
        return [Fault("function", name)]
    schema = own[0].get("parameters", own[0].get("input_schema", {}))
    if not isinstance(schema, Mapping) or not (schema or not arguments):
        return None
    if not {"properties", "type", "$ref", "anyOf", "oneOf", "allOf"} & schema.keys():  # names of arguments without a frame
        schema = {"properties": schema}
    return list(_check(arguments, schema, name, schema, 0, is_call=True))


def _check(
    value: Any, schema: Any, where: str, root: Mapping[str, Any], depth: int, *, is_call: bool = False
) -> Iterator[Fault]:
    """Yield what a value breaks of its schema; `root` holds what `$ref` names."""
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        if schema is False:
            yield Fault("value", where, "nothing is allowed there")
        return
    if isinstance(name := schema.get("$ref"), str):
        found: Any = root
        for part in name.removeprefix("#/").split("/"):
            found = found.get(part) if isinstance(found, Mapping) else None
        yield from _check(value, found, where, root, depth + 1, is_call=is_call)
    for part in _list_under(schema, "allOf"):
        yield from _check(value, part, where, root, depth + 1)
    for key in ("anyOf", "oneOf"):
        found = [list(_check(value, part, where, root, depth + 1, is_call=is_call)) for part in _list_under(schema, key)]
        if found and all(found):
            yield min(found, key=len)[0]
    if value is None and schema.get("nullable"):
        return
    kinds = _types_of(schema.get("type"))
    if kinds and not any(_is_of(value, kind) for kind in kinds):
        what = " or ".join(kinds)
        yield Fault("null" if value is None else "value", where, f"{json.dumps(value, default=str):.40} is not {what}")
        return
    enum = [schema["const"]] if "const" in schema else _list_under(schema, "enum")
    if enum and not any(_canonical(value) == _canonical(one) for one in enum):
        yield Fault("value", where, f"{json.dumps(value, default=str):.40} is not among {json.dumps(enum, default=str):.60}")
    yield from _check_limits(value, schema, where)
    if isinstance(value, Mapping):
        yield from _check_object(value, schema, where, root, depth, is_call=is_call)
    elif isinstance(value, list):
        prefix = _list_under(schema, "prefixItems")
        for place, one in enumerate(value):
            inner = prefix[place] if place < len(prefix) else schema.get("items")
            yield from _check(one, inner, f"{where}[{place}]", root, depth + 1)


def _list_under(schema: Mapping[str, Any], key: str) -> list[Any]:
    """Return the list under a key; an empty one where a faulty schema has something else there."""
    return found if isinstance(found := schema.get(key), list) else []


def _check_object(
    value: Mapping[str, Any], schema: Mapping[str, Any], where: str, root: Mapping[str, Any], depth: int, *, is_call: bool
) -> Iterator[Fault]:
    properties = schema.get("properties") if isinstance(schema.get("properties"), Mapping) else {}
    known = {name: inner for name, inner in (properties or {}).items() if inner is not None}
    for name in _list_under(schema, "required"):
        if name not in value:
            yield Fault("missing", f"{where}.{name}")
    others = schema.get("additionalProperties")
    for name, one in value.items():
        if name in known:
            yield from _check(one, known[name], f"{where}.{name}", root, depth + 1)
        elif isinstance(others, Mapping):
            yield from _check(one, others, f"{where}.{name}", root, depth + 1)
        elif "properties" in schema and others is not True and not schema.get("patternProperties"):
            is_fault = is_call or others is False or one is None  # a function takes no more than it lists
            if is_fault:
                yield Fault("null" if one is None else "unknown", f"{where}.{name}")


def _check_limits(value: Any, schema: Mapping[str, Any], where: str) -> Iterator[Fault]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        for name, holds in LIMITS.items():
            limit = schema.get(name)
            if isinstance(limit, int | float) and not isinstance(limit, bool) and not holds(value, limit):
                yield Fault("value", where, f"{value} breaks {name} {limit}")
    if isinstance(value, str | list | dict):
        name = SIZES[type(value)]
        low, high = schema.get(f"min{name}"), schema.get(f"max{name}")
        if (isinstance(low, int) and len(value) < low) or (isinstance(high, int) and len(value) > high):
            yield Fault("value", where, f"{len(value)} {name.lower()}, not {low or 0} to {high}")
    if schema.get("uniqueItems") is True and isinstance(value, list) and len(set(map(_canonical, value))) < len(value):
        yield Fault("value", where, "an item twice")


def _types_of(given: Any) -> list[str]:
    """Return the names of allowed types; none where one of them is not known, such as `any`."""
    names = given if isinstance(given, list) else [given] if isinstance(given, str) else []
    names = [part.strip().lower() for name in names if isinstance(name, str) for part in name.split(",")[:1]]
    return names if all(name in TYPES for name in names) else []


def _is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool) and kind not in ("boolean", "bool"):
        return False
    is_whole = isinstance(value, float) and value.is_integer() and kind in ("integer", "int")
    return is_whole or isinstance(value, TYPES[kind])


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
