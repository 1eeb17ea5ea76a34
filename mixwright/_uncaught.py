"""How an `InputError` that nobody catches leaves a user's script: one line with its place there, no traceback of ours.

The exception keeps its traceback, and whoever catches it sees no difference. Python prints uncaught exceptions through
`sys.excepthook`, so that is where it is shortened: in place of Python's own hook, when the first `InputError` is made, not
by an import. A hook that somebody else set, before or later, is left alone and gets every exception.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mixwright.errors import InputError

INNER = {"mixwright", "mixwright_lab", "trl", "transformers", "accelerate", "datasets"}
"""Packages whose lines are not the user's."""


def show_briefly() -> None:
    """Have uncaught `InputError`s printed as one line, from now on; a hook that somebody else set stays as it is."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    from mixwright.errors import InputError

    if isinstance(error, InputError) and sys.stderr is not None:
        sys.stderr.write(f"{_line(error, trace)}\n")
    else:
        sys.__excepthook__(kind, error, trace)


def _line(error: InputError, trace: TracebackType | None) -> str:
    """The error as one line, behind the last line of the user's own that led to it."""
    place = ""
    while trace is not None:
        frame = trace.tb_frame
        if str(frame.f_globals.get("__name__")).partition(".")[0] in INNER:
            break
        place = f"{frame.f_code.co_filename}, line {trace.tb_lineno}: "
        trace = trace.tb_next
    text = f"{place}{type(error).__name__}: {' '.join(str(error).split())}"
    return "".join(mark if mark.isprintable() else " " for mark in text)  # data must not move the cursor
