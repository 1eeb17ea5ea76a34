"""A verb's answer on a terminal: the headline, a table or findings, examples and the next command, in at most 25 lines."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mixwright.audit.findings import two_sides, worst_first
from mixwright.errors import one_line
from mixwright.records import Observation
from mixwright.verdict.page.text import format_count, join_words

MAX_ROWS, MAX_FINDINGS, MAX_EXAMPLES = 10, 8, 3
"""Rows of a table, findings, and findings shown with an example and a remedy, without `--full`."""
MAX_CELL, MAX_NAMES = 40, 4
"""Columns of a cell of a table, and checks named in a line."""
PROSE_WIDTH, TABLE_WIDTH = 80, 120
"""Columns of a line where stdout is no terminal."""
WORDS = {"error": "FIX", "warning": "look", "info": "note"}
"""Severity -> its word in a report."""
INDENT = " " * 8


def line_width(without_terminal: int = PROSE_WIDTH) -> int:
    """Return the columns of the terminal, or of a line where stdout is none."""
    return max(shutil.get_terminal_size().columns, 40) if sys.stdout.isatty() else without_terminal


def cut(text: object, room: int) -> str:
    """Return `text` on one line of at most `room` columns, without control characters."""
    from rich.cells import cell_len, set_cell_size

    line = " ".join(one_line(text).split())
    return line if cell_len(line) <= room else f"{set_cell_size(line, room - 2).rstrip()} …"


def wrap(text: object, *, lines: int | None = 2, first: str = "", indent: str = "") -> list[str]:
    """Return `text` broken at the width of the terminal; `lines` cuts it, None shows all."""
    line = " ".join(one_line(text).split())
    options: dict[str, Any] = {} if lines is None else {"max_lines": lines, "placeholder": " …"}
    return textwrap.wrap(line, line_width(), initial_indent=first or indent, subsequent_indent=indent, **options)


def table(header: Sequence[str], rows: Sequence[Sequence[object]], *, full: bool = False, more: str = "--full") -> list[str]:
    """Return aligned lines of a table, numbers on the right.

    Args:
        header: names of the columns.
        rows: the worst first; those beyond `MAX_ROWS` are counted.
        full: whether all rows are shown.
        more: where the other rows are.
    """
    from rich.cells import cell_len

    shown = rows if full else rows[:MAX_ROWS]
    cells = [[*(cut(cell, MAX_CELL) for cell in row[:-1]), cut(row[-1], TABLE_WIDTH)] for row in (header, *shown)]
    columns = list(zip(*cells, strict=True))
    widths = [max(map(cell_len, column)) for column in columns]
    are_numbers = [all(cell[:1] in "0123456789+-" for cell in column[1:]) for column in columns]
    lines = []
    for row in cells:
        line = ""
        for cell, width, is_number in zip(row, widths, are_numbers, strict=True):
            space = " " * (width - cell_len(cell))
            line += f"  {space}{cell}" if is_number else f"  {cell}{space}"
        lines.append(line.rstrip())
    hidden = len(rows) - len(shown)
    return [*lines, f"  and {hidden:,} more: {more}"] if hidden else lines


def count_findings(observations: Sequence[Observation]) -> str:
    """Return the number of errors and warnings in words, such as `2 to fix and 1 to look at`; empty without any."""
    severities = [one.severity for one in observations]
    counts = {"to fix": severities.count("error"), "to look at": severities.count("warning")}
    return join_words([f"{count:,} {words}" for words, count in counts.items() if count])


def findings(observations: Sequence[Observation], checks: Collection[str] = (), *, full: bool = False) -> list[str]:
    """Return the lines of findings, worst first.

    Args:
        observations: errors, warnings and notes; notes are counted where not all are shown.
        checks: names of the checks that ran; those without an error or a warning are named as fine.
        full: whether all findings are shown whole.
    """
    has_tasks = len({one.task for one in observations} - {None}) > 1
    ranked = worst_first(observations)
    faults = ranked if full else [one for one in ranked if one.severity != "info"]
    shown = faults if full else faults[:MAX_FINDINGS]
    lines = []
    for number, one in enumerate(shown):
        name = f"{one.check} ({one.task})" if has_tasks and one.task is not None else one.check
        is_whole = full or number < MAX_EXAMPLES
        room = None if full else 2 if is_whole else 1
        lines += wrap(f"{name}: {one.message}", lines=room, first=f"  {WORDS[one.severity]:<6}", indent=INDENT)
        if is_whole:
            examples = [text for row in one.evidence[: MAX_EXAMPLES if full else 1] if (text := describe_example(row))]
            lines += [INDENT + cut(text, line_width() - len(INDENT)) for text in examples]
            lines += wrap(one.remedy, lines=None if full else 1, indent=INDENT)
    if hidden := faults[len(shown) :]:
        lines.append(f"  and {count_findings(hidden)}: --full")
    notes = "" if full else f"  ({format_count(count, 'note')}: --full)" if (count := len(ranked) - len(faults)) else ""
    fine = sorted(set(checks) - {one.check for one in ranked if one.severity != "info"})
    if fine:
        others = [f"{len(fine) - MAX_NAMES} other checks"] if len(fine) > MAX_NAMES + 1 else fine[MAX_NAMES:]
        lines.append(f"  fine  {join_words([*fine[:MAX_NAMES], *others])}{notes}")
    elif notes:
        lines.append(notes)
    return lines


def describe_example(evidence: Mapping[str, Any]) -> str:
    """Return one piece of evidence on a line: its places and text, or a completion and its reward; empty without any."""
    if "reward" in evidence:
        return f"{evidence['reward']:g} for {evidence['completion']!r} (right: {evidence['answer']})"
    sides = [side for _, side in two_sides(evidence)]
    places = (" ~ " if evidence.get("near") else " = ").join(str(side.get("source", "")) for side in sides)
    text = next((side["prompt"] for side in sides if side.get("prompt")), "")
    return f"{places}  {text}".strip()
