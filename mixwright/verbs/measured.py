"""Report of `mixwright measure`: how much the model gets right, task by task, lowest first."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path

from mixwright.errors import one_line
from mixwright.measure.kept_folder import find_store
from mixwright.records import Measurement
from mixwright.verbs.options import Measuring
from mixwright.verbs.report import table, wrap
from mixwright.verdict.page.text import format_count

COLUMN_BY_NAME = {"greedy": "right [95% CI]", "pass@1": "right, sampled", "chance": "chance", "gold": "gold answer"}
"""Names of measurements -> columns of the table."""


def measured_lines(source: str, rows: Sequence[Measurement], *, full: bool = False) -> list[str]:
    """Return the headline and the table of tasks and levels.

    Args:
        source: model, server or log.
        rows: measurements of tasks and levels.
        full: whether all tasks and numbers are shown.
    """
    cells: dict[tuple[str, float | None], dict[str, Measurement]] = {}
    for row in rows:
        if row.name in COLUMN_BY_NAME and (row.probe == "competence" or row.name == "gold"):
            cells.setdefault((row.task, row.level), {})[row.name] = row
    names = [name for name in COLUMN_BY_NAME if any(name in found for found in cells.values())]
    success = names[0] if names else ""
    whole = {task: found[success] for (task, _), found in cells.items() if success in found}
    whole |= {task: found[success] for (task, level), found in cells.items() if level is None and success in found}
    items = sum(row.n for row in whole.values())
    if not items:
        return wrap(f"{source}: no answer was graded; --json prints the measurements.")
    levels_of: dict[str, list[tuple[str, float | None]]] = {}
    for cell in cells:
        if cell[1] is not None:
            levels_of.setdefault(cell[0], []).append(cell)
    shown = []
    for task, level in sorted(cells, key=lambda cell: (whole[cell[0]].value, cell[0], cell[1] or -math.inf)):
        found = cells[task, level]
        levels = levels_of.get(task, [])
        if level is None and len(levels) == 1 and cells[levels[0]][success].n == found[success].n:
            continue  # the same items again
        place = f"{level:.3g}" if level is not None else "all" if levels else ""
        values = [_format(found[name]) if name in found else "" for name in names]
        shown.append((task, place, *values, found[success].n, _note(found[success], found.get("chance"))))
    share = sum(row.value * row.n for row in whole.values()) / items
    headline = (
        f"{source} answers {share:.1%} of {format_count(items, 'item')} correctly ({format_count(len(whole), 'task')})."
    )
    header = ("task", "level", *(COLUMN_BY_NAME[name] for name in names), "items", "")
    lines = [*wrap(headline), "", *table(header, shown, full=full)]
    if full:
        others = [row for row in rows if row.name not in COLUMN_BY_NAME]
        numbers = [(row.task, row.level or "", f"{row.probe} {row.name}", f"{row.value:.3g}", row.n) for row in others]
        lines += ["", *table(("task", "level", "number", "value", "n"), numbers, full=True)]
    return lines


def profile_lines(source: str, rows: Sequence[Measurement]) -> list[str]:
    """Return the headline and the profile of a model on general requests: of each kind, the share right on each rung.

    Args:
        source: the model.
        rows: measurements of families and rungs.
    """
    from mixwright.suite.draw import FAMILIES, SEALED_FAMILIES, choose_rungs

    right = {
        (row.task, int(row.level)): row
        for row in rows
        if (row.probe, row.name) == ("competence", "greedy") and row.level is not None
    }
    suitable = choose_rungs({place: row.value for place, row in right.items()})
    items = sum(row.n for row in right.values())
    share = sum(row.value * row.n for row in right.values()) / max(items, 1)
    sealed = [family.name for family in SEALED_FAMILIES if family.name in suitable]
    headline = f"{source} answers {share:.1%} of {format_count(items, 'general request')} correctly."
    note = f"{len(suitable)} of {len(FAMILIES)} kinds ({len(sealed)} of the {len(SEALED_FAMILIES)} that are never replayed) "
    note += "are neither too easy nor too hard to compare it on; their rungs are marked *."
    shown, most = [], max(family.rungs for family in FAMILIES)
    for family in FAMILIES:
        found = {rung: right[family.name, rung] for rung in range(1, family.rungs + 1) if (family.name, rung) in right}
        marked = [f"{100 * row.value:.0f}{'*' * (rung in suitable.get(family.name, ()))}" for rung, row in found.items()]
        shown.append((family.name, *marked, *[""] * (most - len(marked)), family.about))
    header = ("% right, by rung", *map(str, range(1, most + 1)), "what is asked")
    return [*wrap(headline), *wrap(note), "", *table(header, shown, full=True)]


def _format(row: Measurement) -> str:
    return f"{row.value:.1%}" if row.name == "chance" else f"{row.value:.1%} [{100 * row.low:.0f}, {100 * row.high:.0f}]"


def _note(success: Measurement, chance: Measurement | None) -> str:
    if not success.value:
        return "no right answer"
    return "not clearly above chance" if chance is not None and success.low <= chance.value else ""


def comparing_command(source: str, measuring: Measuring) -> str:
    """Return the command that compares the trained model with `source`."""
    words = ["mixwright", "verdict", source, "YOUR_MODEL" if measuring.held_out or measuring.train else "LOG_AFTER"]
    files = (measuring.held_out or "").splitlines()
    own_files = [name for name in files if Path(name).parent != find_store()]  # else general requests
    words += [word for name in own_files for word in ("--eval", name)]
    return one_line(shlex.join(words))
