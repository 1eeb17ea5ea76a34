"""Report of `mixwright measure`: how much the model gets right, task by task, lowest first."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from mixwright.cli.options import Measuring, is_server
from mixwright.cli.report import table, wrap
from mixwright.errors import one_line
from mixwright.records import Measurement
from mixwright.verdict.page.text import format_count

SHOWN = {"greedy": "right", "pass@1": "sampled", "chance": "chance", "gold": "gold answer"}
"""Names of measurements -> columns of the table; the second and the last one only where they were measured."""
Levels = Mapping[float | None, Mapping[str, Measurement]]


def measured_lines(model: str, rows: Sequence[Measurement], *, full: bool = False) -> list[str]:
    """Return the headline and the table of tasks and levels.

    Args:
        model: its name, as the user typed it.
        rows: measurements of tasks and levels.
        full: whether every number is shown.
    """
    tasks: dict[str, dict[float | None, dict[str, Measurement]]] = {}
    for row in rows:
        if row.probe == "competence" or row.name == "gold":
            tasks.setdefault(row.task, {}).setdefault(row.level, {})[row.name] = row
    totals = {task: found for task, levels in tasks.items() if (found := _total(levels)) is not None}
    lines = []
    if items := sum(total.n for total in totals.values()):
        share = sum(total.value * total.n for total in totals.values()) / items
        lowest = min(totals, key=lambda task: totals[task].value)
        of_tasks = f"; lowest: {lowest}, {totals[lowest].value:.1%}" if len(totals) > 1 else ""
        headline = f"{model} answers {share:.1%} of {format_count(items, 'item')} correctly"
        lines += [*wrap(f"{headline} ({format_count(len(totals), 'task')}{of_tasks})."), ""]
    if full or not items:
        return [*lines, *_every_number(rows)]
    names = [name for name in SHOWN if (name != "pass@1" and name != "gold") or any(row.name == name for row in rows)]
    has_levels = any(len(tasks[task]) > 1 or None not in tasks[task] for task in totals)
    shown = []
    for task in sorted(totals, key=lambda task: (totals[task].value, task)):
        for level, found in _own_levels(tasks[task]):
            whole = "all" if len(tasks[task]) > 1 else ""
            place = [whole if level is None else f"{level:.3g}"] if has_levels else []
            shown.append((task, *place, *(_format(found.get(name)) for name in names), found["greedy"].n, _note(found)))
    header = ("task", *(["level"] if has_levels else []), *(SHOWN[name] for name in names), "items", "")
    return [*lines, *table(header, shown)]


def next_lines(source: str, measuring: Measuring, folder: Path | None) -> list[str]:
    """Return the next command: the comparison with the trained model.

    Args:
        source: model, server, log or settings.
        measuring: the options of `measure`.
        folder: that keeps the measurement, if one was named.
    """
    if measuring.corpus is None and Path(source).suffix.lower() in (".yaml", ".yml"):
        return [f"Next: mixwright plan {one_line(shlex.quote(source))}"]
    words = ["mixwright", "verdict", source, "YOUR_MODEL" if measuring.corpus else "LOG_AFTER"]
    for option, files in (("--corpus", measuring.corpus), ("--eval", measuring.held_out)):
        words += [word for name in (files or "").split("\n") if name for word in (option, name)]
    words += ["--measured", str(folder)] if folder is not None and not is_server(source) else []
    return [f"Next: train, then  {one_line(shlex.join(words))}"]


def _total(levels: Levels) -> Measurement | None:
    """Return the success on a whole task, or on its only level."""
    found = levels.get(None) or next(iter(levels.values()))
    return found.get("greedy")


def _own_levels(levels: Levels) -> list[tuple[float | None, Mapping[str, Measurement]]]:
    """Return the whole task and its levels, with a task of one level shown once."""
    ordered = sorted(levels, key=lambda level: (level is not None, level or 0.0))
    found = [(level, levels[level]) for level in ordered if "greedy" in levels[level]]
    is_one = len(found) == 2 and found[0][0] is None and found[0][1]["greedy"].n == found[1][1]["greedy"].n
    return found[1:] if is_one else found


def _format(row: Measurement | None) -> str:
    if row is None:
        return ""
    return f"{row.value:.1%}" if row.name == "chance" else f"{row.value:.1%} [{100 * row.low:.0f}, {100 * row.high:.0f}]"


def _note(found: Mapping[str, Measurement]) -> str:
    """Return why a loss could go unnoticed here; empty where it could not."""
    success, chance = found["greedy"], found.get("chance")
    if not success.value:
        return "no right answer"
    return "not clearly above chance" if chance is not None and success.low <= chance.value else ""


def _every_number(rows: Sequence[Measurement]) -> list[str]:
    """Return a line per measurement."""
    header = ("task", "level", "probe", "number", "value", "95% CI", "by chance", "n", "unit")
    shown = []
    for row in rows:
        level, null = ("" if value is None else f"{value:.3g}" for value in (row.level, row.null))
        interval = f"[{row.low:.3g}, {row.high:.3g}]"
        shown.append((row.task, level, row.probe, row.name, f"{row.value:.3g}", interval, null, row.n, row.unit))
    return table(header, shown, full=True)
