"""Output of the command line: results to stdout, everything else to stderr, data never as terminal codes."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixwright.errors import one_line
from mixwright.records import Effect, Measurement, Observation, to_data
from mixwright.run.folder import RunFolder, yaml_text

if TYPE_CHECKING:
    from rich.console import Console

EXIT_FOUND = 3
"""Exit code where damage, or what was asked for, was found."""
MOST_TASKS = 200
"""Tasks that a table of observations shows."""
MOST_ROWS = 30
"""Rows of a table of observations from which infos are counted instead of shown."""
MEASUREMENT_BY_HEAD = {
    "success, greedy": "greedy",
    "success, sampled": "pass@1",
    "chance level": "chance",
    "D, greedy": "greedy.dependence",
    "gold answer": "gold",
}
"""Columns of what was measured -> names of measurements; the last one only where it was read."""
MOST_PAIRS = 3
"""Pairs of rows shown as evidence in a table."""


def out(text: str) -> None:
    """A result, to stdout."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()  # a full disk shows here, and not while the program leaves


def say(text: str) -> None:
    """Anything that is not the result, to stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


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
    gold = any(row.name == MEASUREMENT_BY_HEAD["gold answer"] for row in rows)
    heads = {head: name for head, name in MEASUREMENT_BY_HEAD.items() if gold or head != "gold answer"}
    places: dict[tuple[str, float | None], dict[str, Measurement]] = {}
    for row in rows:
        if row.probe == "competence" or row.name == MEASUREMENT_BY_HEAD["gold answer"]:
            places.setdefault((row.task, row.level), {})[row.name] = row
    shown, lines = 0, []
    for (task, level), known in sorted(places.items(), key=lambda each: (each[0][0], each[0][1] or -math.inf)):
        if "greedy" in known:
            levels = [own for place, own in places.items() if place[0] == task and place[1] is not None]
            of_task = level is None and bool(levels)
            if of_task and len(levels) == 1 and "greedy" in levels[0] and levels[0]["greedy"].n == known["greedy"].n:
                continue  # the same items once more
            cells = [_share(known.get(name)) for name in heads.values()]
            shown += sum(map(bool, cells))
            lines.append((task, "all" if of_task else _number(level), *cells, known["greedy"].n))
    if lines and not full:
        out_rows(("task", "level", *heads, "items"), lines)
        if shown < len(rows):
            more = ", ".join(dict.fromkeys(row.probe for row in rows))
            out(f"{len(rows) - shown:,} more numbers of the probes {more}: --full")
        return
    header = ("task", "level", "probe", "number", "value", "95 % interval", "null", "n", "unit")
    parts = ((row, f"{row.low:.3g} .. {row.high:.3g}") for row in rows)
    out_rows(
        header,
        [(r.task, _number(r.level), r.probe, r.name, _number(r.value), e, _number(r.null), r.n, r.unit) for r, e in parts],
    )


def _share(row: Measurement | None) -> str:
    return "" if row is None else f"{row.value:.1%} [{100 * row.low:.1f}, {100 * row.high:.1f}]"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def console() -> Console:
    """A console on stdout: as wide as the terminal, or 160 columns when stdout is none."""
    from rich.console import Console

    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=160)


def format_pairs(seen: Observation) -> str:
    """The first few pairs of rows that show an observation, as ` held.jsonl:31 = mine.jsonl:1`, with `~` for near ones.

    Empty when it has none.
    """
    found = [
        (" ~ " if row.get("near") else " = ", [row[name] for name in row if name.endswith("_source")])
        for row in seen.evidence[:MOST_PAIRS]
    ]
    shown = [sign.join(map(str, places)) for sign, places in found if len(places) == 2 and all(places)]
    return f" {', '.join(shown)}{'; more: --json' if seen.count > len(shown) else ''}." if shown else ""


def first_tasks(observations: Sequence[Observation]) -> tuple[list[Observation], str]:
    """Observations about the first `MOST_TASKS` tasks and about no single one; and a line that counts the others, if any."""
    shown = set(list(dict.fromkeys(seen.task for seen in observations if seen.task is not None))[:MOST_TASKS])
    kept = [seen for seen in observations if seen.task is None or seen.task in shown]
    others = [seen for seen in observations if seen.task is not None and seen.task not in shown]
    if not others:
        return kept, ""
    counts = Counter(seen.severity for seen in others)
    words = ", ".join(f"{counts[word]:,} {word}" for word in ("error", "warning", "info") if counts[word])
    return kept, f"{len({seen.task for seen in others}):,} more tasks: {words}; all of them: --json"


def fold_infos(observations: Sequence[Observation]) -> tuple[list[Observation], str]:
    """All errors and warnings, and infos as far as `MOST_ROWS` rows have room; and a line that counts the others, if any."""
    told = [seen for seen in observations if seen.severity != "info"]
    infos = [seen for seen in observations if seen.severity == "info"]
    room = max(0, MOST_ROWS - len(told))
    more = len(infos) - room
    return [*told, *infos[:room]], f"and {more:,} more {'info' if more == 1 else 'infos'}: --full" if more > 0 else ""


def out_yaml(record: Any) -> None:
    """A record as YAML, to stdout."""
    out(yaml_text(to_data(record), width=120).rstrip())


def out_effects(effects: Iterable[Effect]) -> None:
    """Effects of a trial as a table."""
    rows = []
    for effect in effects:
        found = effect.difference
        size, ends = f"{found.value:+.3g}", f"{found.low:+.3g} .. {found.high:+.3g}"
        rows.append((effect.arm, effect.against, effect.name, size, ends, f"{effect.p:.2g}", effect.word or ""))
    out_rows(("arm", "against", "number", "difference", "95 % interval", "p", "word"), rows)


def conclude(run: RunFolder, page: Path, *, full: bool = False, without: Collection[str] = ()) -> None:
    """Print the page's first screen (or all of it) except for some sections, and say where the page is."""
    from mixwright.verdict.stage import summarise

    summarise(run, console(), full=full, without=without)
    out(f"verdict: {page}")
