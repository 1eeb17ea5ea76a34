"""The one exception for "you can fix this": printed without a traceback, exit code 1."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from mixwright._uncaught import show_briefly

SOME = 8
"""Names listed when none is near."""


class InputError(Exception):
    """Something the user gave cannot be used.

    Args:
        expected: what would have been accepted.
        got: what came instead.
        remedy: what to do about it.
        file: the file it stands in, if any.
        line: its line (1-based), if known.
    """

    def __init__(
        self, expected: str, got: str, remedy: str, *, file: str | Path | None = None, line: int | None = None
    ) -> None:
        self.expected = expected
        self.got = got
        self.remedy = remedy
        self.file = str(file) if file is not None else None
        self.line = line
        super().__init__(str(self))
        show_briefly()

    def __str__(self) -> str:
        place = ""
        if self.file is not None:
            place = self.file + (f", line {self.line}" if self.line is not None else "") + ": "
        return f"{place}expected {self.expected}, got {self.got}. {self.remedy}"

    def at(self, file: str | Path, line: int | None = None) -> InputError:
        """The same error with the place added by an outer layer that knows it."""
        return InputError(self.expected, self.got, self.remedy, file=self.file or file, line=self.line or line)


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """An `InputError` for a name nobody defines; it lists near names (or some) and how many there are."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3)
    if near:
        remedy = f"Nearest: {', '.join(near)}."
    else:
        remedy = f"{'Known' if len(names) <= SOME else 'Some of them'}: {', '.join(names[:SOME]) or 'none'}."
    return InputError(f"the name of a {kind} ({len(names)} known)", repr(name), remedy)


def missing_extra(name: str, missing: Iterable[str], extra: str) -> InputError:
    """An `InputError` for a plug-in whose packages are not installed, with the pip command that installs them."""
    return InputError(
        f"the packages that {name} needs",
        f"no {', '.join(missing)}",
        f"Run: pip install 'mixwright[{extra}]'",
    )
