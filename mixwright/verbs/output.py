"""Output of the command line: results and JSON to stdout, everything else to stderr."""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixwright.errors import one_line
from mixwright.records import Effect, Observation, Verdict, to_data
from mixwright.run.folder import RunFolder
from mixwright.run.progress import describe_work, is_quiet

if TYPE_CHECKING:
    from rich.console import Console

EXIT_FOUND = 3
"""Exit code of a verb that found damage, or findings that `--fail-on` names."""
FAILING_SEVERITIES = {"error": ("error",), "warning": ("error", "warning"), "never": ()}
"""Value of `--fail-on` -> severities with which a verb exits with `EXIT_FOUND`."""


_arguments: list[str] = []


class _Heedless(io.FileIO):
    """A file that claims to have written what the system refuses."""

    def write(self, data: Any, /) -> int:
        """Return the length of `data`, written or not."""
        try:
            return super().write(data) or 0
        except OSError:
            return len(data)


def accept_any_text() -> None:
    """Make stdout and stderr accept any text: escape characters that they cannot encode, discard text for a closed one.

    What stderr refuses (a full disk, a reader that left) is discarded, too: progress ends no gate.
    """
    if sys.stderr is not None and sys.stderr is sys.__stderr__:
        raw = io.BufferedWriter(_Heedless(sys.stderr.fileno(), "w", closefd=False))
        sys.stderr = io.TextIOWrapper(raw, sys.stderr.encoding, line_buffering=True)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def command_line(*more: str) -> str:
    """Return the command that runs, with further options."""
    given = [argument for argument in _arguments if argument != "--full"]
    return one_line(shlex.join(["mixwright", *given, *more]))


def remember_arguments(arguments: Sequence[str]) -> None:
    """Keep the arguments of the command for `command_line`."""
    _arguments[:] = arguments


def out(text: str) -> None:
    """Write a result to stdout. A reader that has seen enough, such as `head`, does not change the exit code."""
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()  # a full disk is noticed here, not while the program exits
    except BrokenPipeError:
        discard_output()


def discard_output() -> None:
    """Send what is still written to stdout nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str) -> None:
    """Write progress, a note or a warning to stderr, on one line; `--quiet` drops all but warnings."""
    if is_quiet() and not text.startswith("warning"):
        return
    describe_work(text, written=True)
    sys.stderr.write(one_line(text) + "\n")
    sys.stderr.flush()


def exit_code_of(observations: Iterable[Observation], fail_on: str) -> int:
    """Return the exit code of a verb that found these, as `--fail-on` has it."""
    return EXIT_FOUND if any(seen.severity in FAILING_SEVERITIES[fail_on] for seen in observations) else 0


def say_notes(notes: Iterable[str], about: str = "corpus") -> None:
    """Say notes, such as how the columns of a corpus were read."""
    for note in notes:
        say(f"{about}: {note}")


def out_json(data: Any) -> None:
    """Write records to stdout as JSON; a path, or a run folder, as text."""
    out(json.dumps(to_data(data), indent=1, allow_nan=False, default=lambda value: str(getattr(value, "path", value))))


def out_rows(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table to stdout, with cells folded at the width of the terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in header:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(escape(one_line(value)) for value in row))
    console().print(table)


def console() -> Console:
    """Return a console on stdout: as wide as the terminal, or 160 columns without one."""
    from rich.console import Console

    terminal = Console(highlight=False)
    made = terminal if terminal.is_terminal else Console(highlight=False, width=160)
    made.on_broken_pipe = discard_output  # as `out` does; rich would end the program with 1
    return made


def out_effects(effects: Iterable[Effect]) -> None:
    """Write the effects of a trial to stdout as a table."""
    rows = []
    for effect in effects:
        difference = effect.difference
        size, ends = f"{difference.value:+.3g}", f"{difference.low:+.3g} .. {difference.high:+.3g}"
        rows.append((effect.arm, effect.against, effect.name, size, ends, f"{effect.p:.2g}", effect.word or ""))
    out_rows(("arm", "against", "number", "difference", "95 % interval", "p", "word"), rows)


def conclude(run: RunFolder, verdict: Verdict, *, full: bool = False, certainty: bool = False) -> None:
    """Print the report of a verdict."""
    from mixwright.verdict.report import show_report

    show_report(console(), verdict, str(run.page), full=full, certainty=certainty)
