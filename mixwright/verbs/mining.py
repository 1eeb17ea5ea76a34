"""Body of `mixwright mine`: the chosen or made rows, their share of each task, and how to try them."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import cast

from mixwright.config import RunConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError, one_line
from mixwright.mine.exports import export_rows
from mixwright.mine.job import REHEARSAL_MINER, mine_in_run, options_of
from mixwright.mine.own_answers import rehearsal_rows
from mixwright.mine.stage import make_miner
from mixwright.plan.mix import completion_like_prompt, messages
from mixwright.records import MiningSummary, Objective, TrialResult, plain
from mixwright.run import pipeline
from mixwright.run.checked import CheckedRun
from mixwright.run.folder import RunFolder, read_json, write_json, write_text
from mixwright.run.manifest import write_manifest
from mixwright.run.opening import open_with_workers
from mixwright.run.progress import describe_work
from mixwright.trial.selection import format_selection
from mixwright.verbs import direct, output
from mixwright.verbs.budget import Budget
from mixwright.verbs.export import build_mined_mix, read_text_handling, resolve_format, write_mix
from mixwright.verbs.options import Measuring, with_budget
from mixwright.verbs.output import conclude
from mixwright.verbs.report import MAX_EXAMPLES, cut, line_width, table, wrap

MINED_FILE = "mined.json"
"""File that marks a folder as an export, which a newer one may replace."""


def mine_folder(
    settings: RunConfig,
    run: RunFolder,
    relative_to: Path,
    *,
    miner: str,
    keep: float | None,
    export_to: Path | None,
    with_trial: bool,
    export: str | None = None,
    budget: Budget | None = None,
) -> None:
    """Mine a run's corpus and print a report.

    Args:
        settings: of the run.
        run: its folder.
        relative_to: folder that relative paths in the settings start from.
        miner: name of the plug-in.
        keep: share of the rows; None takes that of the settings.
        export_to: folder for the rows in a trainer's format.
        with_trial: measure first; then plan, train on the rows and write the verdict.
        budget: of mining, measuring and the trial together.
        export: trainer whose format the rows are written in, to `export_to`, or to export/<miner>-<format> in the run.

    Raises:
        InputError: an unknown miner, option or format, or data that the miner refuses.
    """
    if budget is not None and not with_trial:
        raise InputError("--try with --budget", "no --try", "Add it, or leave --budget out.")
    settings, deadline = with_budget(settings, run, budget)
    make_miner(miner, options_of(settings.mine, miner, keep))
    if export is not None:
        resolve_format(export)
    elif export_to is not None and export_to.exists() and not (export_to / MINED_FILE).is_file():
        raise InputError("a new folder for --export-to", "a folder with other files", "Name another.", file=export_to)
    if with_trial and miner == REHEARSAL_MINER:
        remedy = "Run `mixwright run`: it compares training with and without replay."
        raise InputError("--try with a miner of training rows", miner, remedy)
    if with_trial:  # settings without a possible trial are refused before anything is scanned
        settings = replace(settings, trial=replace(settings.trial, data=miner))
    with open_with_workers(settings, run, relative_to=relative_to, for_trial=with_trial) as (workers, checked_run):
        if with_trial:  # before mining, which may take hours: measuring may refuse the model
            pipeline.audit_and_measure(checked_run, workers, say=_say_line, deadline=deadline)
        else:
            output.say_notes(checked_run.corpus.notes)
        path = mine_in_run(checked_run, workers, miner, keep=keep, say=output.say, take_over=with_trial)
    summary = read_json(path.with_suffix(".json"), MiningSummary)
    tasks = sorted(summary.tasks.items(), key=lambda item: item[1].mined_rows)
    rows = [(task, f"{counts.training_rows:,}", f"{counts.mined_rows:,}") for task, counts in tasks]
    of_rows = f" of {summary.training_rows:,}" if summary.kind == "chosen rows" else ""
    lines = [*wrap(f"{summary.rows:,}{of_rows} {summary.kind}: {path} ({summary.price})."), ""]
    output.out("\n".join([*lines, *table(("task", "training rows", "mined rows"), rows, more="in the table")]))
    for note in summary.notes:
        output.say(one_line(f"mine: {note}"))
    if export is not None:
        _export_mix(checked_run, path, export, export_to)
    elif export_to is not None:
        if export_to.exists():
            shutil.rmtree(export_to)
        text_handling = read_text_handling(settings.model, settings.train.max_new_tokens)
        for line in export_rows(path, Corpus.load(run.corpus), export_to, text_handling.form):
            output.out(line)
        write_json(export_to / MINED_FILE, summary)
    if summary.kind == "chosen rows" and summary.rows == summary.training_rows:
        output.out("All rows are kept, so there is nothing to try.")
    elif with_trial:  # the other stages, with a trial of the mined rows against all and as many random ones
        deadline.save()
        verdict = pipeline.run(settings, run, relative_to=relative_to, say=_say_line, deadline=deadline)
        for line in format_selection(read_json(run.result, TrialResult)):
            output.out(one_line(line))
        conclude(run, verdict)
    else:
        output.out(f"Next: compare with as many random rows:  {output.command_line('--try')}")


def _say_line(line: str) -> None:
    output.say(one_line(line))


def _export_mix(run: CheckedRun, path: Path, export: str, export_to: Path | None) -> None:
    """Write the mined rows in a trainer's format, and say how to use them."""
    train, folder = run.config.train, run.folder
    export_folder = export_to or folder.path / "export" / f"{path.stem}-{resolve_format(export)}"
    mix_options = {"batch": train.prompts, "num_generations": train.generations, "seed": run.config.seed}
    objective, text_handling = cast("Objective", train.objective), read_text_handling(run.config.model, train.max_new_tokens)
    mix = build_mined_mix(path, Corpus.load(folder.corpus), objective=objective, **mix_options, text_handling=text_handling)
    for line in write_mix(mix, export, export_folder):
        output.say(one_line(f"  {line}"))
    output.out(f"Export: {export_folder} ({export})")


def mine_checkpoint(model: str, measuring: Measuring, miner: str, requests: str | None, export_to: Path | None) -> None:
    """Answer requests with a checkpoint before it is trained, and write the answers as rows to replay.

    Args:
        model: checkpoint.
        measuring: names the training rows, and the held-out items; requests in either are skipped.
        miner: name of the plug-in; all but `rehearsal` need a run.
        requests: file of the requests.
        export_to: folder for rehearsal.jsonl and manifest.json; by default `rehearsal`.

    Raises:
        InputError: another miner, no requests, or a model, data or folder that cannot be used.
    """
    if miner != REHEARSAL_MINER:
        remedy = "Write settings first: mixwright run --init FILE --model MODEL; then: mixwright mine run.yaml."
        raise InputError("RUN.YAML for this miner; for MODEL only `rehearsal` runs", miner, remedy)
    if measuring.budget is not None:
        raise InputError("--budget with --try", "--budget with MODEL", "Leave it out: every request is answered.")
    if requests is None:
        raise InputError("--replay FILE, with requests such as users send", "nothing", "Name the file.")
    folder = export_to or Path("rehearsal")
    if folder.exists() and not (folder / "manifest.json").is_file() and any(folder.iterdir()):
        raise InputError("a new folder for --export-to", "a folder with other files", "Name another.", file=folder)
    rows = direct.read_rows(measuring, ungraded=True, rehearse=requests, tell=describe_work)
    rehearsal = rehearsal_rows(rows.all_rows or rows.corpus, lambda: direct.load_models((model,), measuring)[0])
    if not rehearsal.rows:
        reason = " ".join(rehearsal.notes)[:300].rstrip(".") or "no request is left"
        remedy = "Give other requests, or more of them."
        raise InputError("requests that the model answers completely", reason, remedy, file=requests)
    for note in rehearsal.notes:
        output.say(one_line(note))
    lines = [
        {"id": row.id, "task": row.task, "prompt": messages(row.prompt), "completion": completion_like_prompt(row)}
        | {"provenance": row.extra["provenance"]}
        for row in rehearsal.rows
    ]
    path = folder / "rehearsal.jsonl"
    write_text(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    settings = {name: value for name, value in rehearsal.summary().items() if name != "notes"}
    write_manifest(RunFolder(folder), rows.corpus, rows.config, model, settings=settings, seeds={})
    counts = Counter(row.task for row in rehearsal.rows)
    report = [*wrap(f"{path}: {len(rehearsal.rows):,} rows to replay, answered by {model}."), ""]
    report += table(("task", "rows"), counts.most_common()[::-1])
    examples = rehearsal.rows[:: len(rehearsal.rows) // MAX_EXAMPLES + 1]
    report += [f"  {cut(f'{plain(row.prompt)} -> {plain(row.target)}', line_width() - 2)}" for row in examples]
    command = f"mixwright plan {model} {measuring.train or 'TRAIN'} --objective sft --replay {path}"
    output.out("\n".join([*report, "", one_line(f"Next: {command}")]))
