"""A verb's answer on a terminal: the headline, a table or findings, examples and the next command, in at most 25 lines."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from mixwright.audit.findings import two_sides
from mixwright.errors import one_line
from mixwright.records import Observation
from mixwright.verbs.output import command_line, exit_code_of, out, out_json
from mixwright.verdict.page.text import format_count, join_words

MAX_LINES, MAX_ROWS, MAX_EXAMPLES = 25, 10, 3
"""Lines of a report, rows of a table or findings, and examples, without `--full`."""
MAX_CELL, MAX_NAMES = 40, 3
"""Columns of a cell of a table, and checks named in a line."""
PROSE_WIDTH = 80
"""Columns of a line where stdout is no terminal."""
WORDS = {"error": "FIX", "warning": "look", "info": "note"}
"""Severity -> its word in a report."""
INDENT = " " * 8


def line_width() -> int:
    """Return the columns of the terminal, or `PROSE_WIDTH` without one."""
    return max(shutil.get_terminal_size().columns, 40) if sys.stdout.isatty() else PROSE_WIDTH


def cut(text: object, room: int) -> str:
    """Return `text` on one line of at most `room` columns, without control characters."""
    from rich.cells import cell_len, set_cell_size

    line = " ".join(one_line(text).split())
    return line if cell_len(line) <= room else f"{set_cell_size(line, room - 2).rstrip()} …"


def wrap(text: object, *, lines: int | None = 2, first: str = "", indent: str = "") -> list[str]:
    """Return `text` broken at the width of the terminal; `lines` cuts it, None shows all."""
    line = " ".join(one_line(text).split())
    width, first = line_width(), first or indent
    return textwrap.wrap(line, width, initial_indent=first, subsequent_indent=indent, max_lines=lines, placeholder=" …")


def table(header: Sequence[str], rows: Sequence[Sequence[object]], *, full: bool = False, more: str = "--full") -> list[str]:
    """Return aligned lines of a table, numbers on the right, without its empty columns.

    Args:
        header: names of the columns.
        rows: the worst first; those beyond `MAX_ROWS` are counted.
        full: whether all rows are shown.
        more: where the other rows are.
    """
    from rich.cells import cell_len

    shown = rows if full else rows[:MAX_ROWS]
    lines = [""] * (len(shown) + 1)
    for column in zip(header, *shown, strict=True):
        cells = [cut(cell, MAX_CELL) for cell in column]
        width = max(map(cell_len, cells[1:]), default=0) and max(map(cell_len, cells))
        is_number = all(cell[:1] in "0123456789+-" for cell in cells[1:])
        for place, cell in enumerate(cells if width else ()):
            space = " " * (width - cell_len(cell))
            lines[place] += f"  {space}{cell}" if is_number else f"  {cell}{space}"
    hidden = len(rows) - len(shown)
    return [line.rstrip() for line in lines] + ([f"  and {hidden:,} more: {more}"] if hidden else [])


def count_findings(observations: Sequence[Observation]) -> str:
    """Return the number of errors and warnings in words, such as `2 to fix and 1 to look at`; empty without any."""
    severities = [one.severity for one in observations]
    counts = {"to fix": severities.count("error"), "to look at": severities.count("warning")}
    return join_words([f"{count:,} {words}" for words, count in counts.items() if count])


def findings(
    observations: Sequence[Observation], checks: Collection[str] = (), *, other_lines: int = 6, full: bool = False
) -> list[str]:
    """Return the lines of findings; the first three come with an example and a remedy.

    Args:
        observations: errors, warnings and notes, worst first; notes are counted where not all are shown.
        checks: names of the checks that ran; those that looked at something and found nothing are named as fine.
        other_lines: lines of the report around these.
        full: whether all findings are shown whole.
    """
    has_tasks = len({one.task for one in observations} - {None}) > 1
    faults = [one for one in observations if full or one.severity != "info"]
    room = MAX_LINES - other_lines - 2  # for findings that are counted, and checks that are fine
    lines: list[str] = []
    shown = 0
    for one in faults if full else faults[:MAX_ROWS]:
        name = f"{one.check} ({one.task})" if has_tasks and one.task is not None else one.check
        text, first = f"{name}: {one.message}", f"  {WORDS[one.severity]:<6}"
        whole = wrap(text, lines=None if full else 2, first=first, indent=INDENT)
        examples = [example for row in one.evidence[: MAX_EXAMPLES if full else 1] if (example := describe_example(row))]
        for example in examples:
            whole += wrap(example, lines=2, indent=INDENT)
        whole += [] if shown and one.remedy == faults[shown - 1].remedy else wrap(one.remedy, indent=INDENT)
        is_whole = full or (shown < MAX_EXAMPLES and len(lines) + len(whole) <= room)
        added = whole if is_whole else wrap(text, lines=1, first=first, indent=INDENT)
        if not full and len(lines) + len(added) > room:
            break
        lines += added
        shown += 1
    if hidden := faults[shown:]:
        lines.append(f"  and {count_findings(hidden)}: --full")
    fine = sorted(set(checks) - {one.check for one in observations if one.severity != "info" or one.count or not one.total})
    others = fine[MAX_NAMES:] if len(fine) <= MAX_NAMES + 1 else [f"{len(fine) - MAX_NAMES} other checks"]
    names = join_words([*fine[:MAX_NAMES], *others])
    notes = len(observations) - len(faults)
    if fine or notes:
        count = f"{format_count(notes, 'note')}: --full" if notes else ""
        lines.append(f"  fine  {names}{f' ({count})' if count else ''}" if fine else f"  {count}")
    return lines


def describe_example(evidence: Mapping[str, Any]) -> str:
    """Return one piece of evidence on a line: its places and text, or a completion and its reward; empty without any."""
    if "reward" in evidence:
        return f"reward {evidence['reward']:g}, right answer {evidence['answer']}: {evidence['completion']}"
    sides = [side for _, side in two_sides(evidence)]
    places = (" ~ " if evidence.get("near") else " = ").join(PurePath(str(side.get("source", ""))).name for side in sides)
    text = next((side["prompt"] for side in sides if side.get("prompt")), "")
    return f'{places} "{text}"' if text else places


def show_findings(
    name: str, read: str, observations: Sequence[Observation], *, full: bool, as_json: bool, fail_on: str, **more: Any
) -> int:
    """Print the number of findings, a line on the input, the findings, and the command to repeat; return the exit code.

    Args:
        name: of the input.
        read: what was read of it, in one line.
        observations: the findings.
        full: whether all findings are shown whole.
        as_json: print JSON instead.
        fail_on: severity with which the command fails.
        more: further fields of the JSON.
    """
    if as_json:
        out_json({"read": read, **more, "observations": observations})
        return exit_code_of(observations, fail_on)
    faults = count_findings(observations)
    lines = [*wrap(f"{faults or 'Nothing to fix'}: {name}"), *wrap(read), "", *findings(observations, full=full)]
    if faults:
        lines += ["", f"Next: fix the first, then  {command_line()}"]
    out("\n".join(lines))
    return exit_code_of(observations, fail_on)
