"""Output of the command line: tables of measurements and findings, and JSON, to stdout, everything else to stderr."""

from __future__ import annotations

import io
import json
import math
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixwright.audit.findings import worst_first
from mixwright.errors import one_line
from mixwright.records import SEVERITIES, Effect, Measurement, Observation, Verdict, to_data
from mixwright.run.folder import RunFolder, yaml_text

if TYPE_CHECKING:
    from rich.console import Console

EXIT_FOUND = 3
"""Exit code where damage, or what was asked for, was found."""
FAILING_SEVERITIES = {"error": ("error",), "warning": ("error", "warning"), "never": ()}
"""What `--fail-on` is given -> severities that make a verb leave with `EXIT_FOUND`."""
MAX_TASKS = 200
"""Tasks that a table of observations shows."""
MAX_OBSERVATIONS = 8
"""Observations of a table that fits a screen."""
MEASUREMENT_BY_COLUMN = {
    "success, greedy": "greedy",
    "success, sampled": "pass@1",
    "chance level": "chance",
    "D, greedy": "greedy.dependence",
    "gold answer": "gold",
}
"""Columns of what was measured -> names of measurements; the last one only where it was read."""
MAX_PAIRS = 3
"""Pairs of rows shown as evidence in a table."""


def accept_any_text() -> None:
    """Let stdout and stderr take any text: characters that they cannot encode are escaped, and a closed one discards all."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def out(text: str) -> None:
    """A result, to stdout."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()  # a full disk shows here, and not while the program leaves


def say(text: str) -> None:
    """Anything that is not the result, to stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def say_notes(notes: Iterable[str]) -> None:
    """Say what was done with the columns of a corpus."""
    for note in notes:
        say(one_line(f"corpus: {note}"))


def out_json(data: Any) -> None:
    """Records as JSON, to stdout, and nothing else there."""
    out(json.dumps(to_data(data), indent=1, allow_nan=False))


def out_rows(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table to stdout: aligned columns, folded to the terminal's width; wide and unfolded when stdout is no terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in header:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(escape(one_line(value)) for value in row))
    console().print(table)


def out_measurements(rows: Sequence[Measurement], *, as_json: bool, full: bool = False) -> None:
    """What was measured of cells and tasks: a line for each, every number (`full`), or JSON."""
    if as_json:
        out_json({"measurements": rows})
        return
    has_gold = any(row.name == MEASUREMENT_BY_COLUMN["gold answer"] for row in rows)
    name_by_head = {head: name for head, name in MEASUREMENT_BY_COLUMN.items() if has_gold or head != "gold answer"}
    rows_by_cell: dict[tuple[str, float | None], dict[str, Measurement]] = {}
    for row in rows:
        if row.probe == "competence" or row.name == MEASUREMENT_BY_COLUMN["gold answer"]:
            rows_by_cell.setdefault((row.task, row.level), {})[row.name] = row
    levels_by_task: dict[str, list[dict[str, Measurement]]] = {}
    for (task, level), row_by_name in rows_by_cell.items():
        if level is not None:
            levels_by_task.setdefault(task, []).append(row_by_name)
    shown_count, table_rows = 0, []
    for (task, level), row_by_name in sorted(
        rows_by_cell.items(), key=lambda cell_and_rows: (cell_and_rows[0][0], cell_and_rows[0][1] or -math.inf)
    ):
        if "greedy" in row_by_name:
            levels = levels_by_task.get(task, [])
            is_whole_task = level is None and bool(levels)
            if (
                is_whole_task
                and len(levels) == 1
                and "greedy" in levels[0]
                and levels[0]["greedy"].n == row_by_name["greedy"].n
            ):
                continue  # the same items once more
            cells = [_format_share(row_by_name.get(name)) for name in name_by_head.values()]
            shown_count += sum(map(bool, cells))
            table_rows.append((task, "all" if is_whole_task else _format_number(level), *cells, row_by_name["greedy"].n))
    if table_rows and not full:
        out_rows(("task", "level", *name_by_head, "items"), table_rows)
        if shown_count < len(rows):
            probes = ", ".join(dict.fromkeys(row.probe for row in rows))
            out(f"{len(rows) - shown_count:,} more numbers of the probes {probes}: --full")
        return
    header = ("task", "level", "probe", "number", "value", "95 % interval", "null", "n", "unit")
    rows_with_intervals = ((row, f"{row.low:.3g} .. {row.high:.3g}") for row in rows)
    out_rows(
        header,
        [
            (
                measurement.task,
                _format_number(measurement.level),
                measurement.probe,
                measurement.name,
                _format_number(measurement.value),
                interval,
                _format_number(measurement.null),
                measurement.n,
                measurement.unit,
            )
            for measurement, interval in rows_with_intervals
        ],
    )


def _format_share(row: Measurement | None) -> str:
    return "" if row is None else f"{row.value:.1%} [{100 * row.low:.1f}, {100 * row.high:.1f}]"


def _format_number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def console() -> Console:
    """A console on stdout: as wide as the terminal, or 160 columns when stdout is none."""
    from rich.console import Console

    terminal = Console(highlight=False)
    return terminal if terminal.is_terminal else Console(highlight=False, width=160)


def out_observations(observations: Sequence[Observation]) -> None:
    """A table of what was seen, or a line where nothing was."""
    if not observations:
        out("Nothing was found.")
        return
    out_rows(
        ("severity", "check", "task", "count", "what was seen", "what to do"),
        [
            (o.severity, o.check, o.task or "*", f"{o.count} of {o.total}", o.message + format_pairs(o), o.remedy)
            for o in observations
        ],
    )


def format_pairs(observation: Observation) -> str:
    """The first few pairs of rows that show an observation, as ` held.jsonl:31 = mine.jsonl:1`, with `~` for near ones.

    Empty when it has none.
    """
    sign_and_sources = [
        (" ~ " if row.get("near") else " = ", [row[name] for name in row if name.endswith("_source")])
        for row in observation.evidence[:MAX_PAIRS]
    ]
    pairs_shown = [sign.join(map(str, sources)) for sign, sources in sign_and_sources if len(sources) == 2 and all(sources)]
    return (
        f" {', '.join(pairs_shown)}{'; more: --out FOLDER' if observation.count > len(pairs_shown) else ''}."
        if pairs_shown
        else ""
    )


def first_tasks(observations: Sequence[Observation]) -> tuple[list[Observation], str]:
    """Observations about the first `MAX_TASKS` tasks and about no single one; and a line that counts the others, if any."""
    shown_tasks = set(
        list(dict.fromkeys(observation.task for observation in observations if observation.task is not None))[:MAX_TASKS]
    )
    observations_shown = [
        observation for observation in observations if observation.task is None or observation.task in shown_tasks
    ]
    left_out = [
        observation for observation in observations if observation.task is not None and observation.task not in shown_tasks
    ]
    if not left_out:
        return observations_shown, ""
    counts = Counter(observation.severity for observation in left_out)
    counts_text = ", ".join(f"{counts[word]:,} {word}" for word in SEVERITIES if counts[word])
    return (
        observations_shown,
        f"{len({observation.task for observation in left_out}):,} more tasks: {counts_text}; all of them: --json",
    )


def worst_of(observations: Sequence[Observation]) -> tuple[list[Observation], str]:
    """The worst `MAX_OBSERVATIONS`, and a line that counts the others, if any."""
    shown = worst_first(observations)[:MAX_OBSERVATIONS]
    counts = Counter(one.severity for one in worst_first(observations)[MAX_OBSERVATIONS:])
    if not counts:
        return shown, ""
    counts_text = ", ".join(f"{counts[word]:,} {word}{'s' * (counts[word] > 1)}" for word in SEVERITIES if counts[word])
    return shown, f"and {counts_text} more: --full; as a page with all rows: --out FOLDER"


def out_yaml(record: Any) -> None:
    """A record as YAML, to stdout."""
    out(yaml_text(to_data(record), width=120).rstrip())


def out_effects(effects: Iterable[Effect]) -> None:
    """Effects of a trial as a table."""
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
