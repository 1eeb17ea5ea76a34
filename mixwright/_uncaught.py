"""How an `InputError` that nobody catches leaves a user's script: one line with its place there, no traceback of ours.

The exception keeps its traceback, and whoever catches it sees no difference. Python prints uncaught exceptions through
`sys.excepthook`, so that is where it is shortened: the hook is put there when the first `InputError` is made, not by an
import, and hands everything else to the hook that was there before. A hook that somebody sets later takes its place.
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
    """Have uncaught `InputError`s printed as one line, from now on."""
    if getattr(sys.excepthook, "brief", False):
        return
    before = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        from mixwright.errors import InputError

        if isinstance(error, InputError):
            sys.stderr.write(f"{_line(error, trace)}\n")
        else:
            before(kind, error, trace)

    show.brief = True  # type: ignore[attr-defined]
    sys.excepthook = show


def _line(error: InputError, trace: TracebackType | None) -> str:
    """The error as one line, behind the last line of the user's own that led to it."""
    place = ""
    while trace is not None:
        frame = trace.tb_frame
        if str(frame.f_globals.get("__name__")).partition(".")[0] in INNER:
            break
        place = f"{frame.f_code.co_filename}, line {trace.tb_lineno}: "
        trace = trace.tb_next
    return f"{place}{type(error).__name__}: {' '.join(str(error).split())}"
