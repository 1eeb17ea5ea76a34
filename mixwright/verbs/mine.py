"""Verb `mine`: the chosen or made rows, their share of each task, and a trial of them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from mixwright.config import RunConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError, one_line
from mixwright.mine.job import mine_in_run, options_of
from mixwright.mine.stage import make_miner
from mixwright.plan.mined_rows import export_rows
from mixwright.records import MiningSummary, TrialResult, Verdict
from mixwright.run import pipeline
from mixwright.run.folder import RunFolder, check_own_folder, read_json, write_json
from mixwright.run.opening import open_with_workers
from mixwright.trial.selection import format_selection
from mixwright.verbs import output
from mixwright.verbs.export import read_text_handling
from mixwright.verbs.options import PLACING, Folder, Placing, Time, open_settings, with_budget
from mixwright.verbs.report import table, wrap

MINED_FILE = "mined.json"
"""File that marks a folder as an export, which a newer one may replace."""


@dataclass(frozen=True, slots=True)
class Mined:
    """Rows that were chosen or made."""

    path: Path
    """Table of the rows."""
    lines: tuple[str, ...]
    """Report for people."""
    run: RunFolder
    """Run folder that was mined."""
    verdict: Verdict | None = None
    """Verdict of the trial, with `tried`."""


def mine(
    source: Annotated[str | Path | RunConfig, typer.Argument(metavar="RUN.YAML")],
    *,
    placing: Placing = PLACING,
    miner: Annotated[str, typer.Option(metavar="NAME")],
    keep: Annotated[float | None, typer.Option(min=0.0, max=1.0)] = None,
    export_to: Path | None = None,
    tried: Annotated[bool, typer.Option("--try")] = False,
    budget: Time = None,
    folder: Folder = None,
) -> Mined:
    """Choose training rows, or create new ones. With --try it trains on them and compares.

    Examples:
        >>> mine("run.yaml", miner="influence").path.as_posix()
        'runs/run/mine/influence.parquet'

    Args:
        source: Settings.
        placing: Cluster and engine of the workers, over those of the settings.
        miner: Method to choose or create rows (mixwright list miners).
        keep: Share of the rows to keep, 0 to 1.
        export_to: Folder for the rows, as JSONL.
        tried: Also train on them and compare: measure, plan, trial, verdict.
        budget: With --try: time for the whole command, such as 90s, 20m or 1h30m; as many seeds are trained as fit.
        folder: Run folder; default: runs/<name of RUN.YAML>.

    Raises:
        InputError: an unknown miner or option, or data that the miner refuses.
    """
    settings, run, relative_to = open_settings(source, folder, placing)
    if budget is not None and not tried:
        raise InputError("--try with --budget", "no --try", "Add it, or leave --budget out.")
    settings, deadline = with_budget(settings, budget)
    make_miner(miner, options_of(settings.mine, miner, keep))
    if export_to is not None:
        check_own_folder(export_to, MINED_FILE, option="--export-to")
    if tried:  # settings without a possible trial are refused before anything is scanned
        settings = replace(settings, trial=replace(settings.trial, data=miner))
    with open_with_workers(settings, run, relative_to=relative_to, for_trial=tried) as (workers, checked_run):
        if tried:  # before mining, which may take hours: measuring may refuse the model
            pipeline.audit_and_measure(checked_run, workers, say=output.say)
        else:
            output.say_notes(checked_run.corpus.notes)
        path = mine_in_run(checked_run, workers, miner, keep=keep, say=output.say, take_over=tried)
    summary = read_json(path.with_suffix(".json"), MiningSummary)
    tasks = sorted(summary.tasks.items(), key=lambda item: item[1].mined_rows)
    rows = [(task, f"{counts.training_rows:,}", f"{counts.mined_rows:,}") for task, counts in tasks]
    of_rows = f" of {summary.training_rows:,}" if summary.kind == "chosen rows" else ""
    lines = [*wrap(f"{summary.rows:,}{of_rows} {summary.kind}: {path} ({summary.price})."), ""]
    lines += table(("task", "training rows", "mined rows"), rows, more="in the table")
    output.say_notes(summary.notes, "mine")
    if export_to is not None:
        if export_to.exists():
            shutil.rmtree(export_to)
        text_handling = read_text_handling(settings.model, settings.train.max_new_tokens)
        lines.append(export_rows(path, Corpus.load(run.corpus), export_to, text_handling.form))
        write_json(export_to / MINED_FILE, summary)
    if summary.kind == "chosen rows" and summary.rows == summary.training_rows:
        return Mined(path, (*lines, "All rows are kept, so there is nothing to try."), run)
    if not tried:
        return Mined(path, (*lines, f"Next: compare with as many random rows:  {output.command_line('--try')}"), run)
    # the other stages, with a trial of the mined rows against all and as many random ones
    verdict = pipeline.run(settings, run, relative_to=relative_to, say=output.say, deadline=deadline)
    lines += [one_line(line) for line in format_selection(read_json(run.result, TrialResult))]
    return Mined(path, tuple(lines), run, verdict)


def show(found: Mined) -> None:
    """Print the report, and that of the trial."""
    output.out("\n".join(found.lines))
    if found.verdict is not None:
        output.conclude(found.run, found.verdict)
