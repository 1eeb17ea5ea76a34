"""Exception for what the user can fix: printed without a traceback, exit code 1."""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

MAX_NAMES_LISTED = 8
"""Names listed when none is near."""
REMEDY_DISK_FULL = "Free some space and give the same command again: it resumes."
REMEDY_NO_ACCESS = "Change the permissions, or choose another place."
REFUSALS_BY_ERRNO: dict[int, tuple[str, str]] = {
    errno.ENOSPC: ("space, and inodes, on the disk", REMEDY_DISK_FULL),
    errno.EDQUOT: ("space within the disk quota", REMEDY_DISK_FULL),
    errno.EFBIG: ("a file within the size limit", "Raise the limit (ulimit -f) and give the same command again."),
    errno.EROFS: ("a writable file system", "Choose a folder on another one, or mount it for writing."),
    errno.EACCES: ("a place that this user may read and write", REMEDY_NO_ACCESS),
    errno.EPERM: ("a place that this user may read and write", REMEDY_NO_ACCESS),
    errno.ELOOP: ("a path without a loop of symbolic links", "Correct the link."),
    errno.ENOMEM: ("enough memory", "Free some, or use less: a smaller model, fewer workers, or a smaller --batch-size."),
    errno.EMFILE: ("fewer open files than the limit", "Raise the limit (ulimit -n), or use fewer workers."),
    errno.ENOENT: (
        "a file that stays where it is",
        "The file or its folder was removed or moved. Put it back, or start again.",
    ),
}
"""What the system refused: what would have been needed, and what to do."""
INTACT_SENTENCE = "Finished work is intact, and no half-written file is left. "
DISK_FULL_MESSAGES = {
    errno.ELOOP: ("Symlink loop from",),
    errno.ENOMEM: ("failed to map segment", "allocate memory", "Unable to allocate", "out of memory"),
    errno.ENOSPC: ("No space left on device", f"os error {errno.ENOSPC})", "file write failed"),
    errno.EDQUOT: ("Disk quota exceeded", f"os error {errno.EDQUOT})"),
    errno.EFBIG: ("File too large", f"os error {errno.EFBIG})"),
}
"""What the system refuses, mostly space or memory, and how libraries that raise no OSError say so."""
INNER_PACKAGES = {"mixwright", "mixwright_lab", "trl", "transformers", "accelerate", "datasets"}
"""Packages whose lines are not the user's."""


class InputError(Exception):
    """Something the user gave cannot be used.

    Attributes:
        exit_code: with which the command line ends.

    Args:
        expected: what would have been accepted.
        got: what came instead.
        remedy: what to do about it.
        file: the file it stands in, if any.
        line: its line (1-based), if known.
    """

    exit_code = 1

    def __init__(
        self, expected: str, got: str, remedy: str, *, file: str | Path | None = None, line: int | None = None
    ) -> None:
        self.expected = expected
        self.got = got
        self.remedy = remedy
        self.file = str(file) if file is not None else None
        self.line = line
        super().__init__(str(self))
        if sys.excepthook is sys.__excepthook__:  # Python's own, which is replaced now and not by an import
            sys.excepthook = _print_error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.expected, self.got, self.remedy), {"file": self.file, "line": self.line}

    def __str__(self) -> str:
        location = ""
        if self.file is not None:
            location = self.file + (f", line {self.line}" if self.line is not None else "") + ": "
        return f"{location}expected {self.expected}, got {self.got}. {self.remedy}"

    def with_place(self, file: str | Path, line: int | None = None) -> InputError:
        """The same error with the place added by an outer layer that knows it."""
        return InputError(self.expected, self.got, self.remedy, file=self.file or file, line=self.line or line)


class InconclusiveError(InputError):
    """Nothing can be told with what the user gave, and nothing is wrong with it."""

    exit_code = 4


def system_error(error: OSError, file: str | Path | None = None) -> InputError:
    """An `InputError` for what the system refused: which file, what the system said, what is intact, what to do.

    Args:
        error: as the system raised it.
        file: named in place of the one in the error.
    """
    unknown = ("a file that the system can read and write", "Choose another place.")
    expected, remedy = REFUSALS_BY_ERRNO.get(error.errno or 0, unknown)
    reason = error.strerror or os.strerror(error.errno or errno.EIO)
    if "usable temporary directory" in reason:
        expected, remedy = "a folder for temporary files", "Set TMPDIR to one that you may write to."
    return InputError(expected, reason, INTACT_SENTENCE + remedy, file=file or error.filename or "standard output")


def disk_full_error(error: BaseException, file: str | Path | None = None) -> InputError | None:
    """The `InputError` for a library's own way to say that the system refuses space or memory; None for any other error."""
    current: BaseException | None = error
    visited: set[int] = set()
    while current is not None and id(current) not in visited:  # a chain may lead back to itself
        visited.add(id(current))
        if isinstance(current, OSError) and current.errno in DISK_FULL_MESSAGES:
            return system_error(current, file)
        for error_number, messages in DISK_FULL_MESSAGES.items():
            if any(message in str(current) for message in messages):
                return system_error(OSError(error_number, str(current).splitlines()[0][:200]), file or "the system")
        if isinstance(current, MemoryError):
            return system_error(OSError(errno.ENOMEM, "MemoryError"), file or "the system")
        current = current.__cause__ or current.__context__
    return None


def reason_of(error: Exception) -> str:
    """What a library's exception says, on one line and bounded."""
    message = " ".join(str(error).split())[:200]
    return (
        message if type(error) in (OSError, ValueError, RuntimeError) and message else f"{type(error).__name__}: {message}"
    )


@contextlib.contextmanager
def told_as(expected: str, remedy: str, *, file: str | Path | None = None) -> Iterator[None]:
    """Whatever a library raises inside the block, which may be of any kind, is raised as an `InputError` of these words."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if (full := disk_full_error(error)) is not None:
            raise full from error
        raise InputError(expected, reason_of(error), remedy, file=file) from error


def one_line(value: object, limit: int | None = None) -> str:
    """`value` on one line without control characters: text from data must not move the cursor or colour the terminal.

    Args:
        value: of any length.
        limit: characters that are shown, and then how many more there are; None shows all.
    """
    text = str(value)
    more = "" if limit is None or len(text) <= limit else f"… ({len(text) - limit:,} more characters)"
    shown = text[:limit]
    return (shown if shown.isprintable() else "".join(letter if letter.isprintable() else " " for letter in shown)) + more


def join_some(texts: Sequence[str], most: int = MAX_NAMES_LISTED) -> str:
    """The first few, and how many more there are: `a, b and 4,998 more`."""
    more_count = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more_count:,} more" if more_count > 0 else "")


def check_range(owner: str, options: Mapping[str, Any], **limits: tuple[float, float]) -> None:
    """Raises InputError unless these options of a plug-in lie between their limits, both included; NaN lies nowhere."""
    for name, (low, high) in limits.items():
        if not low <= options[name] <= high:
            expected = f"{name} of {owner} between {low:g} and {high:g}"
            raise InputError(expected, repr(options[name]), "Correct that option.")


def unknown_name(kind: str, name: str, known_names: Iterable[str]) -> InputError:
    """An `InputError` for a name nobody defines; it lists near names (or some) and how many there are."""
    names = sorted(known_names)
    near_names = difflib.get_close_matches(name, names, n=3)
    title = "Nearest" if near_names else "Known" if len(names) <= MAX_NAMES_LISTED else "Some of them"
    remedy = f"{title}: {', '.join(near_names or names[:MAX_NAMES_LISTED]) or 'none'}."
    article = "an" if kind[:1] in "aeio" else "a"
    return InputError(f"the name of {article} {kind} ({len(names)} known)", repr(name), remedy)


def missing_extra(name: str, missing: Iterable[str], extra: str) -> InputError:
    """An `InputError` for a plug-in whose packages are not installed, with the pip command that installs them."""
    remedy = f"Run: pip install 'mixwright[{extra}]'"
    return InputError(f"the packages that {name} needs", f"no {', '.join(missing)}", remedy)


def _print_error(error_type: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an uncaught `InputError` as one line; it keeps its traceback, and whoever catches it sees no difference."""
    if isinstance(error, InputError) and sys.stderr is not None:
        sys.stderr.write(f"{_format_with_location(error, trace)}\n")
    else:
        sys.__excepthook__(error_type, error, trace)


def _format_with_location(error: InputError, trace: TracebackType | None) -> str:
    """The error as one line, behind the last line of the user's own that led to it."""
    location = ""
    while trace is not None:
        frame = trace.tb_frame
        if str(frame.f_globals.get("__name__")).partition(".")[0] in INNER_PACKAGES:
            break
        location = f"{frame.f_code.co_filename}, line {trace.tb_lineno}: "
        trace = trace.tb_next
    return one_line(f"{location}{type(error).__name__}: {' '.join(str(error).split())}")
