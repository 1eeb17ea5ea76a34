"""Functions of a user that read a row for a check: they cannot soil the output or end the audit."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from mixwright.errors import InputError

Function = Callable[[dict[str, Any]], Any]
"""A row as a mapping -> what a check wants to know of it."""
Result = TypeVar("Result")


class WrongResultError(Exception):
    """A function gave something else than it should."""


def call_function(
    function: Function, row: dict[str, Any], read: Callable[[Any], Result], option: tuple[str, str], row_source: str
) -> Result:
    """Return what `read` makes of a function's result; `read` may raise `WrongResultError`.

    Args:
        function: a user's.
        row: its argument.
        read: reads the result, which may be a generator that runs the user's code.
        option: flag that names the function, and the result that is expected.
        row_source: file and line of the row, for a refusal.

    Raises:
        InputError: the function raises, or gives something else.
    """
    flag, expected = option
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return read(function(row))
    except WrongResultError as error:
        got = str(error)
    except (Exception, SystemExit, GeneratorExit) as error:  # a user's function may raise anything
        got = f"{type(error).__name__}: {error}"[:160]
    raise InputError(expected, got, f"Correct the function of {flag}.", file=row_source)
