"""Body of `mixwright mine`: what was chosen, what it does to the mix, and how to try it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from mixwright.cli import output
from mixwright.cli.concluding import conclude
from mixwright.cli.export import plug_in
from mixwright.cli.mined_export import export_mined
from mixwright.errors import InputError, one_line
from mixwright.runs import write_text

if TYPE_CHECKING:
    from mixwright.config import RunConfig
    from mixwright.records import Objective
    from mixwright.runs import RunFolder

WHOLE = ("chosen rows", "Keep all rows: there is no choice to try.")
"""Kind of a table that may hold all training rows, and what is said then."""
MARK = "mined.json"
"""File by which a folder is known to hold an export, which a newer one may replace."""


def mine_folder(
    settings: RunConfig,
    run: RunFolder,
    base: Path,
    *,
    miner: str,
    keep: float | None,
    export_to: Path | None,
    tried: bool,
    export: str | None = None,
) -> None:
    """Mine a run's corpus and say what came of it.

    Args:
        settings: of the run.
        run: its folder.
        base: folder that relative paths in the settings start from.
        miner: name of the plug-in.
        keep: share of the rows; None takes the settings'.
        export_to: folder for the rows as trainers read them.
        tried: go on to measure, plan, try them and write the verdict.
        export: trainer whose format the rows are written in, to `export_to`, or to export/<miner>-<format> in the run.

    Raises:
        InputError: an unknown miner, option or format, or what it refuses.
    """
    from mixwright.mine.job import mine_run, options_of
    from mixwright.mine.stage import make_miner
    from mixwright.opening import opened, workers

    make_miner(miner, options_of(settings, miner, keep))
    _check_export(export, export_to)
    with workers(settings) as pool, opened(settings, run, base=base, pool=pool):
        path = mine_run(settings, run, pool, miner, keep=keep, base=base, say=output.say)
    told = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    rows = [(task, one["training rows"], one["mined rows"]) for task, one in told["tasks"].items()]
    output.out_rows(("task", "training rows", "mined rows"), rows)
    for note in told["notes"]:
        output.say(one_line(f"  {note}"))
    output.out(f"{path}: {told['rows']:,} {told['kind']}, {told['price']}")
    if export is not None or export_to is not None:
        _write(settings, run, path, told, export, export_to)
    if told["kind"] == WHOLE[0] and told["rows"] == told["training rows"]:
        output.out(WHOLE[1])
    elif tried:
        _try(settings, run, base, miner)
    else:
        output.say("  Worth more than as many random rows? Not known yet: give the command again with --try.")


def _check_export(export: str | None, folder: Path | None) -> None:
    """Refuse before anything is mined. Raises InputError for an unknown format, or a folder that holds other things."""
    if export is not None:
        plug_in(export)
    elif folder is not None and folder.exists() and not (folder / MARK).is_file():
        raise InputError("a new folder for --export-to", "one that holds other things", "Name another.", file=folder)


def _write(
    settings: RunConfig, run: RunFolder, path: Path, told: Mapping[str, Any], export: str | None, folder: Path | None
) -> None:
    """The rows as one trainer reads them, or as JSONL and as a datasets folder."""
    from mixwright.corpus import Corpus
    from mixwright.mine.exports import export_rows

    corpus, train = Corpus.load(run.corpus), settings.train
    if export is not None:
        place = folder or run.path / "export" / f"{path.stem}-{plug_in(export)}"
        sizes = {"batch": train.prompts, "group": train.generations, "seed": settings.seed}
        for line in export_mined(path, corpus, export, place, objective=cast("Objective", train.objective), **sizes):
            output.say(one_line(f"  {line}"))
        output.out(f"{place}: the rows as {export} reads them")
    elif folder is not None:
        if folder.exists():
            shutil.rmtree(folder)
        for line in export_rows(path, corpus, folder):
            output.out(line)
        write_text(folder / MARK, json.dumps(told, indent=1))


def _try(settings: RunConfig, run: RunFolder, base: Path, miner: str) -> None:
    """The rest of the line, with a trial of the mined rows against all and as many random ones."""
    from mixwright import pipeline
    from mixwright.records import TrialResult
    from mixwright.runs import read_json
    from mixwright.trial.selection import told

    settings = replace(settings, trial=replace(settings.trial, data=miner))
    page = pipeline.run(settings, run, base=base, say=lambda line: output.say(one_line(line)))
    for line in told(read_json(run.result, TrialResult)):
        output.out(one_line(line))
    conclude(run, page)
