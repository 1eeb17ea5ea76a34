"""Conversion of records to JSON-ready values and back: the only way in and out."""

from __future__ import annotations

import dataclasses
import functools
import math
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
_LABEL = re.compile(r"[\[<(].*\.|\..*[\[<(]")
"""How pydantic names a validator or a member of a union in the path to an error; names of our fields hold no bracket."""
_EXPECTED_BY_ERROR = {
    "string_type": "a text",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "dict_type": "names with their values",
    "tuple_type": "a list",
}
"""What pydantic's kinds of errors say in our words; other messages are taken over without their first words."""
_NUMBER_ERRORS = ("finite_number", "int_", "float_", "greater_than", "less_than")
"""Beginnings of the kinds of errors that a value in the place of a number leads to."""


def to_data(record: Any) -> Any:
    """A record (or list of them) as JSON-ready values; dataclasses become dicts, tuples lists."""
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return {f.name: to_data(getattr(record, f.name)) for f in dataclasses.fields(record)}
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

    def placed(problem: InputError, place: Sequence[str | int]) -> InputError:
        return problem if file is None else problem.with_place(file, line_of(place) if line_of else None)

    try:
        record: Any = _adapter(cls).validate_python(data)
    except ValidationError as errors:
        raise placed(*_describe_error(errors.errors()[0], cls)) from None
    wrong = [(place, "a number or a text", "true or false") for place in find_misread(data, record, bool)]
    if not texts_are_numbers:
        wrong += [(place, "a number", "a text") for place in find_misread(data, record, str, int | float)]
    wrong = wrong or [(place, "a finite number", repr(value)) for place, value in _not_finite(to_data(record))]
    for place, expected, got in wrong:
        raise placed(InputError(f"{'.'.join(map(str, place))}: {expected}", got, "Correct that field."), place)
    return record


def find_misread(
    given: Any, made: Any, kind: type, became: type | UnionType = object, place: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """Where a value of a kind was given and one of another kind was made of it: 1 step because of `steps: true`."""
    if isinstance(given, kind):
        if not isinstance(made, kind) and isinstance(made, became):
            yield place
    elif isinstance(given, Mapping):
        for key, value in given.items():
            inner = made.get(key, value) if isinstance(made, Mapping) else getattr(made, str(key), value)
            yield from find_misread(value, inner, kind, became, (*place, str(key)))
    elif isinstance(given, list | tuple) and isinstance(made, list | tuple):
        for number, (value, inner) in enumerate(zip(given, made, strict=True)):
            yield from find_misread(value, inner, kind, became, (*place, number))


def _describe_error(error: ErrorDetails, cls: Any) -> tuple[InputError, list[str | int]]:
    """What pydantic found, in our words, and the path of the field that is wrong."""
    place = [part for part in error["loc"] if isinstance(part, int) or not _LABEL.search(part)]
    kind, value, remedy = error["type"], error["input"], "Correct that field." if place else "Correct it."
    if kind == "unexpected_keyword_argument":
        name = ".".join(map(str, place))
        return unknown_name(f"field ({name})", str(place[-1]), _siblings(cls, place[:-1])), place
    if kind == "missing":
        expected, got, remedy = "a value", "nothing", "Add it."
    elif kind.startswith(_NUMBER_ERRORS) and not _is_finite(value):
        expected, got = "a finite number", _shown(value)
    elif kind == "value_error" and (inner := next(_not_finite(value), None)) is not None:
        place, expected, got = [*place, *inner[0]], "a finite number", _shown(inner[1])
    else:
        message, got = error["msg"].lower().removeprefix("value error, ").removeprefix("input should be "), _shown(value)
        expected = f"a number {message}" if message.startswith(("greater than", "less than")) else message
        expected = _EXPECTED_BY_ERROR.get(kind, expected)
        if kind == "dataclass_type":
            expected = f"a mapping with {join_some(_siblings(cls, place))}"
    return InputError(f"{'.'.join(map(str, place))}: {expected}" if place else expected, got, remedy), place


def _shown(value: object) -> str:
    """A value as it is told to the user."""
    try:
        return "nothing" if value is None else repr(value)[:80]
    except ValueError:  # Python writes no number of thousands of digits
        return "a number of thousands of digits"


def _is_finite(value: Any) -> bool:
    """Whether a number, or a text that reads as one, is finite; what is neither counts as finite."""
    try:
        return math.isfinite(float(value))
    except (OverflowError, TypeError, ValueError):  # the first: a whole number too large for a float
        return True


def _not_finite(given: Any) -> Iterator[tuple[tuple[str | int, ...], float]]:
    """Where NaN or infinity was given: no file of ours is written with them, and no range check sees the first."""
    pending: list[tuple[tuple[str | int, ...], Any]] = [((), given)]  # no recursion: what was refused may be of any depth
    while pending:
        place, value = pending.pop()
        if isinstance(value, float) and not math.isfinite(value):
            yield place, value
        elif isinstance(value, Mapping | list | tuple):
            items = list(value.items() if isinstance(value, Mapping) else enumerate(value))
            pending += [((*place, key if isinstance(key, int) else str(key)), inner) for key, inner in reversed(items)]


@functools.cache
def _adapter(cls: type[T]) -> TypeAdapter[T]:
    from pydantic import TypeAdapter

    for record in _closure(cls):
        setattr(record, "__pydantic_config__", {"extra": "forbid"})  # noqa: B010 - pydantic's name, unknown to the class
    return TypeAdapter(cls)


def _closure(cls: Any) -> set[Any]:
    """All record classes reachable from `cls`."""
    if dataclasses.is_dataclass(cls):
        return {cls}.union(*(_closure(hint) for hint in get_type_hints(cls).values()))
    return set().union(*(_closure(part) for part in get_args(cls)))


def _siblings(cls: Any, place: Sequence[str | int]) -> list[str]:
    """Field names of the record that `place` leads to, for the nearest-name hint."""
    hint: Any = cls
    for part in place:
        record = _record(hint)
        if isinstance(part, int) or record is None or part not in get_type_hints(record):
            hint = next((inner for inner in get_args(hint) if _record(inner)), None)  # item of a tuple, or of a mapping
        else:
            hint = get_type_hints(record)[part]
    record = _record(hint)
    return sorted(f.name for f in dataclasses.fields(record)) if record else []


def _record(hint: Any) -> Any:
    """The record class that `hint` is, or may be beside None."""
    if dataclasses.is_dataclass(hint):
        return hint
    return next((part for part in get_args(hint) if dataclasses.is_dataclass(part)), None)
