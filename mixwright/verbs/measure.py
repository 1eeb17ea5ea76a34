"""Verb `measure`: how much a model gets right, task by task, lowest first."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mixwright.config import CorpusConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.logs.reading import find_reader, refuse_unknown_file
from mixwright.measure.bases import measure_start
from mixwright.measure.probes.composition import LOST, PROMISED, TOGETHER, read_compositions, word_composition
from mixwright.records import Measurement
from mixwright.run.opening import open_with_workers
from mixwright.suite.draw import FAMILIES, SEALED_FAMILIES, choose_rungs, draw_items
from mixwright.verbs import options, output
from mixwright.verbs.direct import comparing_command, measure_checkpoint, take_rows
from mixwright.verbs.general import with_suite
from mixwright.verbs.logs import measure_log
from mixwright.verbs.options import MEASURING, PLACING, Full, Json, Measuring, Placing
from mixwright.verbs.report import table, wrap
from mixwright.verbs.serving import measure_server
from mixwright.verdict.page.text import format_count

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner
else:
    Learner = Any  # it would import torch

COLUMN_BY_NAME = {"greedy": "right [95% CI]", "pass@1": "right, sampled", "chance": "chance"}
"""Names of measurements -> columns of the table."""


def measure(
    model: Annotated[str | Path | Learner, typer.Argument(metavar="MODEL|URL|LOG|RUN.YAML")],
    held_out: Annotated[list[str] | str | Path | Corpus | CorpusConfig | None, typer.Option("--eval")] = None,
    *,
    measuring: Measuring = MEASURING,
    placing: Placing = PLACING,
    fresh: options.Rows = None,
    start: Annotated[str | None, typer.Option(metavar="MODEL")] = None,
    suite_seed: options.SuiteSeed = 0,
    folder: Path | None = None,
) -> list[Measurement]:
    """Measure what a model gets right, task by task. Without --eval it answers general requests that ship with Mixwright.

    From Python, the model can also be loaded already; it is left as it was. Rows can also be a `Corpus`, whose held-out rows
    are measured (all of them if there are none), or a `CorpusConfig`.

    Examples:
        >>> rows = measure("checkpoint", "train.jsonl", measuring=Measuring(items=8, samples=2))
        >>> [(row.task, row.n) for row in rows if row.name == "pass@1"]
        [('sum', 16)]

    Args:
        model: Checkpoint, server, evaluation log, or settings.
        held_out: Held-out items to measure on; formats as for audit. Repeatable.
        measuring: Rows, and how the model is measured.
        placing: Cluster and engine of the workers, over those of the settings.
        fresh: With --eval: unseen rows of the same tasks, to see whether the model was trained on the held-out items.
        start: With --fresh: the model before training, for a more sensitive check.
        suite_seed: Seed of the general requests.
        folder: Run folder; default: runs/<name of RUN.YAML>. For a checkpoint: a new folder for results; default: none.

    Raises:
        InputError: no such model, nothing to grade, or an option that means nothing here.
    """
    rows = take_rows(held_out) if isinstance(held_out, Corpus | CorpusConfig) else None
    if not isinstance(held_out, Corpus | CorpusConfig | None):
        measuring = replace(measuring, held_out=options.join_sources(held_out))
    kind = _find_kind(model, has_rows=rows is not None or measuring.held_out is not None)
    if fresh is not None and kind != "rows":
        remedy = "Name a checkpoint; a RUN.YAML names fresh rows in measure.options.familiarity.fresh."
        raise InputError("a checkpoint and --eval with --fresh", str(model), remedy)
    if start is not None and fresh is None:
        raise InputError("--fresh FILE with --start", start, "Add --fresh: only its items are compared with the start.")
    if kind != "settings":
        placing.check_not_given()
    source = str(model)
    if kind == "server":
        return measure_log(measure_server(source, measuring, folder), MEASURING)
    if kind == "log":
        if folder is not None:
            raise InputError("an evaluation log without --folder", "--folder", "Leave it out: a log is only read.")
        return measure_log(source, measuring)
    if kind == "settings":
        measuring.measures_checkpoint(source, "measure MODEL --eval")
        with open_with_workers(*options.open_settings(source, folder, placing)) as (workers, checked_run):
            output.say_notes(checked_run.corpus.notes)
            return measure_start(checked_run, workers, say=output.say)
    checkpoint = source if isinstance(model, Path) else model
    if kind == "suite":
        measuring = with_suite(checkpoint, measuring, draw_items(seed=suite_seed))
    if rows is None and isinstance(checkpoint, str):
        measuring.measures_checkpoint(checkpoint)
    if rows is not None:  # their graders stay, whatever the first answers look like
        measuring = replace(measuring, grader=[f"{task}={grader}" for task, grader in rows.config.graders.items()])
    probes = {} if fresh is None else {"familiarity": {"fresh": fresh, "start": start or ""}}
    given = {"rows": rows, "probes": probes, "with_notes": kind != "suite"}
    return list(measure_checkpoint(checkpoint, measuring, folder, **given)[1].measurements)


def show(
    found: Sequence[Measurement],
    *,
    model: str | Path | Learner,
    held_out: Sequence[str] | str | None,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Print the tasks, lowest first, and the next command."""
    files = options.join_sources(held_out)
    kind, source = _find_kind(model, has_rows=files is not None), str(model)
    if as_json:
        output.out_json({"measurements": found})
        return
    lines = profile_lines(source, found) if kind == "suite" and not full else measured_lines(source, found, full=full)
    following = comparing_command(source, files, "LOG_AFTER" if kind == "log" else "YOUR_MODEL")
    next_line = "mixwright plan" if kind == "settings" else f"train, then  {following}"
    output.out("\n".join([*lines, "", f"Next: {next_line}"]))


def _find_kind(model: str | Path | Learner, *, has_rows: bool) -> Literal["server", "log", "settings", "suite", "rows"]:
    """Find out what is measured: a server, a log, a run, or a checkpoint on general requests or on rows."""
    if isinstance(model, str | Path):
        source = str(model)
        if options.is_server(source):
            return "server"
        if not has_rows:
            refuse_unknown_file(source)
        if find_reader(source) is not None:
            return "log"
        if not has_rows and options.is_settings(source):
            return "settings"
    return "rows" if has_rows else "suite"


def measured_lines(source: str, rows: Sequence[Measurement], *, full: bool = False) -> list[str]:
    """Return the headline and the table of tasks and levels.

    Args:
        source: model, server or log.
        rows: measurements of tasks and levels.
        full: whether all tasks and numbers are shown.
    """
    cells: dict[tuple[str, float | None], dict[str, Measurement]] = {}
    for row in rows:
        if row.name in COLUMN_BY_NAME and row.probe == "competence":
            cells.setdefault((row.task, row.level), {})[row.name] = row
    names = [name for name in COLUMN_BY_NAME if any(name in found for found in cells.values())]
    success = names[0] if names else ""
    whole = {task: found[success] for (task, _), found in cells.items() if success in found}
    whole |= {task: found[success] for (task, level), found in cells.items() if level is None and success in found}
    items = sum(row.n for row in whole.values())
    if not items:
        return wrap(f"{source}: no answer was graded; --json prints the measurements.")
    sizes = defaultdict[str, list[int]](list)
    for (task, level), found in cells.items():
        if level is not None:
            sizes[task].append(found[success].n)
    shown = []
    for task, level in sorted(cells, key=lambda cell: (whole[cell[0]].value, cell[0], cell[1] or -math.inf)):
        found = cells[task, level]
        if level is None and sizes[task] == [found[success].n]:
            continue  # the same items again
        place = f"{level:.3g}" if level is not None else "all" if sizes[task] else ""
        values = [_format(found[name]) if name in found else "" for name in names]
        shown.append((task, place, *values, found[success].n, _note(found[success], found.get("chance"))))
    share = sum(row.value * row.n for row in whole.values()) / items
    headline = (
        f"{source} answers {share:.1%} of {format_count(items, 'item')} correctly ({format_count(len(whole), 'task')})."
    )
    header = ("task", "level", *(COLUMN_BY_NAME[name] for name in names), "items", "")
    lines = [*wrap(headline), "", *table(header, shown, full=full), *_composition_lines(rows)]
    if full:
        others = [row for row in rows if row.name not in COLUMN_BY_NAME]
        numbers = [(row.task, row.level or "", f"{row.probe} {row.name}", f"{row.value:.3g}", row.n) for row in others]
        lines += ["", *table(("task", "level", "number", "value", "n"), numbers, full=True)]
    return lines


def _composition_lines(rows: Sequence[Measurement]) -> list[str]:
    """The table of combinations of skills, those that lose most first; nothing where no rows name any."""
    found = sorted(read_compositions(rows).items(), key=lambda one: -one[1][LOST].value)
    shown = [
        (name, *(_format(of[what]) for what in (TOGETHER, PROMISED)), of[LOST].n, word_composition(of)) for name, of in found
    ]
    header = ("skills in one row", "right [95% CI]", "as the skills alone promise, if independent", "items", "")
    return ["", *table(header, shown, full=True)] if shown else []


def profile_lines(source: str, rows: Sequence[Measurement]) -> list[str]:
    """Return the headline and the profile of a model on general requests: of each kind, the share right on each rung.

    Args:
        source: the model.
        rows: measurements of families and rungs.
    """
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
    note += "are neither too easy nor too hard to compare models on; their levels are marked *."
    shown, most = [], max(family.rungs for family in FAMILIES)
    for family in FAMILIES:
        found = {rung: right[family.name, rung] for rung in range(1, family.rungs + 1) if (family.name, rung) in right}
        marked = [f"{100 * row.value:.0f}{'*' * (rung in suitable.get(family.name, ()))}" for rung, row in found.items()]
        shown.append((family.name, *marked, *[""] * (most - len(marked)), family.about))
    header = ("% right, by level", *map(str, range(1, most + 1)), "what is asked")
    return [*wrap(headline), *wrap(note), "", *table(header, shown, full=True)]


def _format(row: Measurement) -> str:
    return f"{row.value:.1%}" if row.name == "chance" else f"{row.value:.1%} [{100 * row.low:.0f}, {100 * row.high:.0f}]"


def _note(success: Measurement, chance: Measurement | None) -> str:
    if not success.value:
        return "no right answer"
    return "not clearly above chance" if chance is not None and success.low <= chance.value else ""
