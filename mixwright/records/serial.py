"""Conversion of records to JSON-ready values and back: the only way in and out."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from mixwright.errors import InputError, join_some, unknown_name

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

T = TypeVar("T")
_VALIDATOR_LABEL = re.compile(r"[\[<(].*\.|\..*[\[<(]")
"""How pydantic names a validator or a member of a union in the path to an error; names of our fields hold no bracket."""
_EXPECTED_BY_ERROR = {
    "string_type": "a text",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "dict_type": "names with their values",
    "tuple_type": "a list",
    "finite_number": "a finite number",
}
"""What pydantic's kinds of errors say in our words; other messages are taken over without their first words."""


@functools.cache
def names_of_fields(record_class: type) -> tuple[str, ...]:
    """Of a record, in order."""
    return tuple(field.name for field in dataclasses.fields(record_class))


_PLAIN_TYPES = frozenset({str, float, int, bool, type(None)})


def to_data(record: Any) -> Any:
    """A record (or list of them) as JSON-ready values; dataclasses become dicts, tuples lists."""
    if type(record) in _PLAIN_TYPES:  # most values: there may be millions
        return record
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {name: to_data(getattr(record, name)) for name in names_of_fields(type(record))}
    if isinstance(record, Mapping):
        return {str(key): to_data(value) for key, value in record.items()}
    if isinstance(record, list | tuple):
        return [to_data(value) for value in record]
    return record


def from_data(
    cls: type[T],
    data: Any,
    *,
    file: str | Path | None = None,
    line_of: Callable[[Sequence[str | int]], int | None] | None = None,
    texts_are_numbers: bool = True,
) -> T:
    """Build `cls` from JSON-ready values, checking types and refusing unknown fields.

    Args:
        cls: a record class.
        data: what JSON or YAML gave.
        file: named in the error.
        line_of: path of a field -> its line in `file`, where the format knows lines.
        texts_are_numbers: whether "1" may stand for 1, as in YAML, where `1e-4` is a text.

    Raises:
        InputError: naming the field, what was expected and what came.
    """
    from pydantic import ValidationError

    def add_location(error: InputError, path: Sequence[str | int]) -> InputError:
        return error if file is None else error.with_place(file, line_of(path) if line_of else None)

    try:
        record: Any = _make_adapter(cls).validate_python(data)
    except ValidationError as errors:
        raise add_location(*_describe_error(errors.errors()[0], cls)) from None
    if repr(to_data(record)) == repr(data):  # nothing was read as what it is not
        return record
    problems = [(path, "a number or a text", "true or false") for path in find_misread(data, record, bool)]
    if not texts_are_numbers:
        problems += [(path, "a number", "a text") for path in find_misread(data, record, str, int | float)]
    for path, expected, got in problems:
        raise add_location(InputError(f"{'.'.join(map(str, path))}: {expected}", got, "Correct that field."), path)
    return record


def find_misread(
    given_data: Any, made_data: Any, given_type: type, made_type: type | UnionType = object, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """Where a value of a kind was given and one of another kind was made of it: 1 step because of `steps: true`."""
    if isinstance(given_data, given_type):
        if not isinstance(made_data, given_type) and isinstance(made_data, made_type):
            yield path
    elif isinstance(given_data, Mapping):
        for key, value in given_data.items():
            inner_made = made_data.get(key, value) if isinstance(made_data, Mapping) else getattr(made_data, str(key), value)
            yield from find_misread(value, inner_made, given_type, made_type, (*path, str(key)))
    elif isinstance(given_data, list | tuple) and isinstance(made_data, list | tuple):
        for index, (value, inner_made) in enumerate(zip(given_data, made_data, strict=True)):
            yield from find_misread(value, inner_made, given_type, made_type, (*path, index))


def _describe_error(error: ErrorDetails, cls: Any) -> tuple[InputError, list[str | int]]:
    """What pydantic found, in our words, and the path of the field that is wrong."""
    path = [path_part for path_part in error["loc"] if isinstance(path_part, int) or not _VALIDATOR_LABEL.search(path_part)]
    error_kind, value, remedy = error["type"], error["input"], "Correct that field." if path else "Correct it."
    if error_kind == "unexpected_keyword_argument":
        name = ".".join(map(str, path))
        return unknown_name(f"field ({name})", str(path[-1]), _field_names(cls, path[:-1])), path
    if error_kind == "missing":
        expected, got, remedy = "a value", "nothing", "Add it."
    else:
        message = error["msg"].lower().removeprefix("value error, ").removeprefix("input should be ")
        got = "nothing" if value is None else repr(value)[:80]
        expected = f"a number {message}" if message.startswith(("greater than", "less than")) else message
        expected = _EXPECTED_BY_ERROR.get(error_kind, expected)
        if error_kind == "dataclass_type":
            expected = f"a mapping with {join_some(_field_names(cls, path))}"
    return InputError(f"{'.'.join(map(str, path))}: {expected}" if path else expected, got, remedy), path


@functools.cache
def _make_adapter(cls: type[T]) -> TypeAdapter[T]:
    from pydantic import TypeAdapter

    for record in _record_classes(cls):
        setattr(record, "__pydantic_config__", {"extra": "forbid", "allow_inf_nan": False})  # noqa: B010 - pydantic's name, unknown to the class
    return TypeAdapter(cls)


def _record_classes(cls: Any) -> set[Any]:
    """All record classes reachable from `cls`."""
    if dataclasses.is_dataclass(cls):
        return {cls}.union(*(_record_classes(hint) for hint in get_type_hints(cls).values()))
    return set().union(*(_record_classes(part) for part in get_args(cls)))


def _field_names(cls: Any, path: Sequence[str | int]) -> list[str]:
    """Field names of the record that `path` leads to, for the nearest-name hint."""
    hint: Any = cls
    for path_part in path:
        record = _record_class(hint)
        if isinstance(path_part, int) or record is None or path_part not in get_type_hints(record):
            hint = next(
                (inner for inner in get_args(hint) if _record_class(inner)), None
            )  # item of a tuple, or of a mapping
        else:
            hint = get_type_hints(record)[path_part]
    record = _record_class(hint)
    return sorted(f.name for f in dataclasses.fields(record)) if record else []


def _record_class(hint: Any) -> Any:
    """The record class that `hint` is, or may be beside None."""
    if dataclasses.is_dataclass(hint):
        return hint
    return next((part for part in get_args(hint) if dataclasses.is_dataclass(part)), None)
