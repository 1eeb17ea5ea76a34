"""Conversion of records to JSON-ready values and back: the only way in and out."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from mixwright.errors import InputError, unknown_name

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import TypeAdapter

T = TypeVar("T")
_LABEL = re.compile(r"[\[<(].*\.|\..*[\[<(]")
"""How pydantic names a validator or a member of a union in the path to an error; names of our fields hold no bracket."""


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
        error = errors.errors()[0]
        place = [part for part in error["loc"] if isinstance(part, int) or not _LABEL.search(part)]
        name = ".".join(str(part) for part in place) or cls.__name__
        if error["type"] == "unexpected_keyword_argument":
            problem = unknown_name(f"field ({name})", str(place[-1]), _siblings(cls, place[:-1]))
        else:
            expected = error["msg"].lower().removeprefix("value error, ")
            problem = InputError(f"{name}: {expected}", repr(error["input"])[:80], "Correct that field.")
        raise placed(problem, place) from None
    wrong = [(place, "a number or a text", "true or false") for place in find_misread(data, record, bool)]
    if not texts_are_numbers:
        wrong += [(place, "a number", "a text") for place in find_misread(data, record, str, int | float)]
    wrong = wrong or [(place, "a finite number", repr(value)) for place, value in _not_finite(data)]
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


def _not_finite(given: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], float]]:
    """Where NaN or infinity was given: no file of ours is written with them, and no range check sees the first."""
    if isinstance(given, float) and not math.isfinite(given):
        yield place, given
    elif isinstance(given, Mapping | list | tuple):
        for key, value in given.items() if isinstance(given, Mapping) else enumerate(given):
            yield from _not_finite(value, (*place, key if isinstance(key, int) else str(key)))


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
