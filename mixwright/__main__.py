"""Command line of one verb per stage, in the order of the flow.

Results go to stdout, everything else to stderr. Exit code 0: fine; 1: something in your input; 2: a bug of ours;
3: `verdict` found damage, or `audit --fail-on` found what it should fail on; 4: the verdict is inconclusive.
Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from mixwright import __version__
from mixwright.errors import InputError, disk_full_error, one_line, system_error
from mixwright.run.progress import heartbeat, set_quiet
from mixwright.verbs import options, output, verbs_beside
from mixwright.verbs.budget import Budget, start_budget
from mixwright.verbs.help import Verb, Verbs
from mixwright.verbs.options import (
    Json,
    Measuring,
    Placing,
    choose_decoding,
    is_server,
    load_settings,
    parse_columns,
    with_measuring,
    with_placing,
)
from mixwright.verbs.output import EXIT_FOUND, FAILING_SEVERITIES

if TYPE_CHECKING:
    from mixwright.records import Verdict
    from mixwright.run.folder import RunFolder

EXIT_BAD_INPUT, EXIT_BUG = 1, 2
COMPARISON = Path("runs/comparison")
app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Decide what a language model trains on, and prove what that did to it. "
    "The journey: audit TRAIN, verdict BASE TUNED, plan BASE TRAIN, verdict BASE TUNED2.",
)

Config = Annotated[Path, typer.Argument(metavar="RUN.YAML", help="Settings; `mixwright run --init` writes them.")]
SuiteSeed = Annotated[int, typer.Option(min=0, help="Seed of the general requests.")]
Source = Annotated[str, typer.Argument(metavar="MODEL|RUN.YAML", help="Checkpoint; or settings.")]
Train = Annotated[str | None, typer.Argument(metavar="TRAIN", help="Training rows, with MODEL.")]
MeasureSource = Annotated[
    str,
    typer.Argument(metavar="MODEL|URL|LOG|RUN.YAML", help="Checkpoint, server, evaluation log, or settings."),
]
Folder = Annotated[Path | None, typer.Option(help="Run folder; default: runs/<name of RUN.YAML>.")]
MeasureFolder = Annotated[
    Path | None,
    typer.Option(help="Run folder; default: runs/<name of RUN.YAML>. For a checkpoint a new folder; default: keep nothing."),
]
Full = Annotated[bool, typer.Option("--full", help="Print every finding or number.")]
BudgetOption = Annotated[
    Budget | None, typer.Option("--budget", parser=start_budget, metavar="TIME", help=options.BUDGET_HELP)
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the steps; write nothing.")]


def _print_version(requested: bool) -> None:
    if requested:
        output.out(f"mixwright {__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print no progress or notes on stderr, only warnings; also after the verb.")
    ] = False,
) -> None:
    """Take the options of the program; its help text is above."""


@app.command(cls=Verb)
def audit(
    train: Annotated[
        list[str],
        typer.Argument(
            help="Training rows: JSONL, JSON, CSV, TSV, Parquet, folder, hub name or reasoning-gym:...; repeatable."
        ),
    ],
    held_out: Annotated[list[str] | None, typer.Option("--eval", help="Held-out items, same formats. Repeatable.")] = None,
    column: Annotated[list[str] | None, typer.Option(metavar="OURS=THEIRS", help=options.COLUMNS_HELP)] = None,
    task: Annotated[str, typer.Option(help="Task of rows without a task column.")] = "all",
    grader: Annotated[str, typer.Option(help="Grader of every task.")] = "exact",
    checks: Annotated[list[str] | None, typer.Option("--check", help="Run only this check; repeatable.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write a page, and a file of all rows for each check.")
    ] = None,
    fix: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a copy of TRAIN without exact repeats and copies of held-out items, and a manifest.",
        ),
    ] = None,
    mask: Annotated[
        bool,
        typer.Option("--mask", help="With --fix: leave wrong steps out of the loss (column mask, or train: false)."),
    ] = False,
    balance: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a copy of TRAIN with balanced preference pairs, and a manifest.",
        ),
    ] = None,
    top_up: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write rows to add to TRAIN: for gaps that held-out items show, and against cues."
        ),
    ] = None,
    skills: Annotated[
        str | None,
        typer.Option(
            metavar="FUNCTION", help="package.module:function that returns a row's skills, for the check coverage."
        ),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option(
            metavar="FUNCTION",
            help="package.module:function that returns the steps of a completion, for the check traces.",
        ),
    ] = None,
    cue: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column whose values may give the answer away, for the check cues. Repeatable."),
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column that the writer of the completions saw and the model does not, for the check unseen. Repeatable.",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=0, max=1024, help=options.AUDIT_WORKERS_HELP)] = 1,
    cluster: Annotated[str, typer.Option(metavar="ray|ray:HOST:PORT", help=options.CLUSTER_HELP)] = "",
    fail_on: Annotated[Literal["error", "warning", "never"], typer.Option(help=options.FAIL_HELP)] = "never",
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Find leaks, repeats and contradictions in training data. Needs no model."""
    from mixwright.config import CorpusConfig
    from mixwright.verbs.auditing import Files, audit_files

    sources = options.join_sources(train) or "", options.join_sources(held_out)
    config = CorpusConfig(*sources, eval_share=0.0, columns=parse_columns(column), task=task, grader=grader)
    workers = 0 if cluster and workers == 1 else workers
    files = Files(out, fix, mask, balance, top_up)
    read = (skills, cue or (), context or (), steps)
    observations = audit_files(config, checks, files, *read, workers, cluster, full=full, as_json=as_json)
    if any(o.severity in FAILING_SEVERITIES[fail_on] for o in observations):
        raise typer.Exit(EXIT_FOUND)


@app.command(cls=Verb)
@with_placing
@with_measuring
def measure(
    source: MeasureSource,
    measuring: Measuring,
    placing: Placing,
    fresh: Annotated[str | None, typer.Option(metavar="FILE", help=options.FRESH_HELP)] = None,
    start: Annotated[str | None, typer.Option(metavar="MODEL", help=options.START_HELP)] = None,
    suite_seed: SuiteSeed = 0,
    folder: MeasureFolder = None,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Measure what a model gets right, task by task. Without --eval it answers general requests that ship with Mixwright."""
    from mixwright.logs.reading import find_reader, refuse_unknown_file
    from mixwright.verbs import measured
    from mixwright.verbs.logs import measure_log

    asks_suite = False
    if measuring.held_out is None and not is_server(source):
        refuse_unknown_file(source)
        if asks_suite := not options.is_settings(source) and find_reader(source) is None:
            from mixwright.suite.draw import draw_items
            from mixwright.verbs.general import with_suite

            measuring = with_suite(source, measuring, draw_items(seed=suite_seed))
    if fresh is not None and (is_server(source) or asks_suite or measuring.held_out is None):
        remedy = "Name a checkpoint; a RUN.YAML names fresh rows in measure.options.familiarity.fresh."
        raise InputError("a checkpoint and --eval with --fresh", source, remedy)
    if start is not None and fresh is None:
        raise InputError("--fresh FILE with --start", start, "Add --fresh: only its items are compared with the start.")
    if measuring.held_out is not None or is_server(source) or find_reader(source) is not None:
        placing.check_not_given()
    if is_server(source):
        from mixwright.verbs.serving import measure_server

        measurements = measure_log(measure_server(source, measuring, folder), Measuring())
    elif find_reader(source) is not None:
        if folder is not None:
            raise InputError("an evaluation log without --folder", "--folder", "Leave it out: a log is only read.")
        measurements = measure_log(source, measuring)
    elif measuring.measures_checkpoint(source):
        from mixwright.verbs.direct import measure_checkpoint

        given = {"fresh": fresh, "start": start, "with_notes": not asks_suite}
        measurements = measure_checkpoint(source, measuring, folder, **given)[1].measurements
    else:
        from mixwright.measure.bases import measure_bases
        from mixwright.run.opening import open_with_workers

        config = Path(source)
        settings, run = load_settings(config, folder)
        settings = placing.applied_to(settings)
        with open_with_workers(settings, run, relative_to=config.parent) as (workers, checked_run):
            output.say_notes(checked_run.corpus.notes)
            measurements = measure_bases(checked_run, workers, say=output.say)
    rows = [row for row in measurements if row.example is None]
    if as_json:
        output.out_json({"measurements": rows})
        return
    if asks_suite and not full:
        output.out("\n".join([*measured.profile_lines(source, rows), ""]))
    else:
        output.out("\n".join([*measured.measured_lines(source, rows, full=full), ""]))
    is_run = measuring.held_out is None and source.endswith((".yaml", ".yml"))
    output.out(
        f"Next: train, then  {measured.comparing_command(source, measuring)}" if not is_run else "Next: mixwright plan"
    )


@app.command(cls=Verb)
@with_placing
def scan(
    config: Config,
    placing: Placing,
    columns: Annotated[str | None, typer.Option(metavar="A,B", help=options.SCANNED_HELP)] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Number of rows to scan, chosen by a hash of their ids.")] = None,
    folder: Folder = None,
) -> None:
    """Read every row with the starting model. Writes a table of losses, IFD, entropy, gradients and pass rates."""
    from mixwright import api
    from mixwright.scan.table import scan_folder

    column_names = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    results = api.scan(config, folder, columns=column_names, sample=sample, placing=placing, say=output.say)
    _, run = load_settings(config, folder)
    for result in results:
        for note in result.notes:
            output.say(one_line(f"  {note}"))
        progress = f"{result.made} of {result.shards} shards now" if result.made else "already complete"
        peaks = {"": result.peak_bytes, " of the accelerator": result.device_bytes}
        progress += "".join(
            f", at most {size / 2**30:.1f} GiB{device_note} per worker" for device_note, size in peaks.items() if size
        )
        output.out(f"{scan_folder(run, result.base_name)}: {result.rows:,} rows, {progress}")


@app.command(cls=Verb)
@with_placing
@with_measuring
def mine(
    source: Source,
    measuring: Measuring,
    placing: Placing,
    miner: Annotated[str, typer.Option(metavar="NAME", help="Method to choose or make rows (mixwright list miners).")],
    train: Train = None,
    keep: Annotated[float | None, typer.Option(min=0.0, max=1.0, help="Share of the rows to keep, 0 to 1.")] = None,
    export_to: Annotated[Path | None, typer.Option(help="Folder for the rows: JSONL, datasets, or --export.")] = None,
    export: Annotated[str | None, typer.Option(metavar="FORMAT", help="trl, axolotl, llama-factory or verl.")] = None,
    tried: Annotated[
        bool, typer.Option("--try", help="Also train on them and compare: measure, plan, trial, verdict.")
    ] = False,
    replay: Annotated[str | None, typer.Option(metavar="FILE", help=options.PROMPTS_HELP)] = None,
    folder: Folder = None,
) -> None:
    """Choose training rows, or make new ones. With --try it trains on them and compares."""
    from mixwright.verbs.mining import mine_checkpoint, mine_folder

    budget, measuring = measuring.budget, replace(measuring, train=train, budget=measuring.budget if train else None)
    if measuring.measures_checkpoint(source):
        if keep is not None or export or tried or folder:
            raise InputError("only --export-to with MODEL", "--keep, --export, --try or --folder", "Leave them out.")
        placing.check_not_given()
        mine_checkpoint(source, measuring, miner, replay, export_to)
        return
    if replay is not None:
        raise InputError("MODEL TRAIN with --replay", "RUN.YAML", "Set corpus.rehearse in it.")
    config = Path(source)
    mining_options = {
        "miner": miner,
        "keep": keep,
        "export_to": export_to,
        "with_trial": tried,
        "export": export,
        "budget": budget,
    }
    settings, run = load_settings(config, folder)
    mine_folder(placing.applied_to(settings), run, config.parent, **mining_options)


@app.command(cls=Verb)
@with_measuring
def plan(
    source: Source,
    measuring: Measuring,
    train: Annotated[
        str | None, typer.Argument(metavar="TRAIN", help="Training rows, or a folder of data sets, with MODEL.")
    ] = None,
    folder: Folder = None,
    dry_run: DryRun = False,
    planner: Annotated[str | None, typer.Option(help="Planner, with --eval. Default: that of the objective.")] = None,
    objective: Annotated[str | None, typer.Option(help="grpo, sft or dpo. Default: from the columns.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps to plan for. Default: one pass; 60 with --eval.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Rows per step. Default: 16; 8 with --eval.")] = None,
    replay: Annotated[str | None, typer.Option(metavar="FILE", help=options.REPLAY_HELP)] = None,
    only_replay: Annotated[bool, typer.Option("--only-replay", help="No general requests beside --replay.")] = False,
    keep: Annotated[list[str] | None, typer.Option(metavar="TASK", help=options.KEEP_HELP)] = None,
    share: Annotated[float | None, typer.Option(help=options.SHARE_HELP)] = None,
    output_file: Annotated[Path | None, typer.Option("--output", help=options.PLAN_OUTPUT_HELP)] = None,
    export: Annotated[str | None, typer.Option(metavar="FORMAT", help=options.EXPORT_HELP)] = None,
    export_to: Annotated[Path | None, typer.Option(help=options.EXPORT_TO_HELP)] = None,
) -> None:
    """Choose what to replay, and write one file to train on. With --eval, or for DPO and RL: the share of each task."""
    from mixwright.verbs.export import check_export
    from mixwright.verbs.planning import Planning, plan_checkpoint, plan_folder

    check_export(export, export_to, dry_run=dry_run)
    by_measured_tasks = any(value is not None for value in (measuring.held_out, planner, keep, objective))
    if train is not None and not options.is_settings(source) and not by_measured_tasks:
        from mixwright.verbs.replaying import BATCH, SHARE, Replaying, plan_training

        given = {"--output": output_file, "--dry-run": dry_run or None}
        if names := [name for name, value in given.items() if value is not None]:
            raise InputError("plan MODEL TRAIN --eval FILE with them", ", ".join(names), "Leave them out, or add --eval.")
        replaying = Replaying(SHARE if share is None else share, replay, only_replay, steps, batch or BATCH)
        plan_training(source, train, measuring, replaying, folder or Path("plan"), export, export_to)
        return
    planning = Planning(planner, objective, steps, batch, tuple(keep or ()), share, replay)
    measuring = replace(measuring, train=train)
    if measuring.measures_checkpoint(source):
        if folder is not None or dry_run or only_replay:
            got = "--folder, --dry-run or --only-replay"
            raise InputError("--output FILE with --eval, --objective, --planner or --keep", got, "Leave them out.")
        plan_checkpoint(source, measuring, planning, output_file, export, export_to)
        return
    options_by_name = {**asdict(planning), "output": output_file, "only-replay": only_replay or None}
    if given_options := [f"--{name}" for name, value in options_by_name.items() if value not in (None, ())]:
        raise InputError(f"MODEL TRAIN with {', '.join(given_options)}", "RUN.YAML", "Set this in it.")
    config = Path(source)
    settings, run = load_settings(config, folder)
    settings = Placing(engine=measuring.engine).applied_to(settings)
    plan_folder(settings, run, config.parent, export, export_to, dry_run=dry_run)


@app.command(cls=Verb)
@with_measuring
def verdict(
    measuring: Measuring,
    before: Annotated[
        str | None, typer.Argument(metavar="BEFORE|RUN", help="Checkpoint, log or server; or a run folder, without AFTER.")
    ] = None,
    after: Annotated[
        str | None, typer.Argument(metavar="AFTER", help="Checkpoint, log or server to compare with BEFORE.")
    ] = None,
    example: Annotated[bool, typer.Option("--example", help="Judge two logs that ship with Mixwright: no model.")] = False,
    decoding: Annotated[Literal["greedy", "sampled"] | None, typer.Option(help="--greedy or --sampled.")] = None,
    folder: Annotated[Path, typer.Option(help="Where a comparison is written.")] = COMPARISON,
    beside: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Earlier comparison of BEFORE on the same rows: BEFORE is reused, its AFTER is shown next to the new one.",
        ),
    ] = None,
    gate: Annotated[bool, typer.Option("--gate/--no-gate", help=options.GATE_HELP)] = True,
    protect: Annotated[list[str] | None, typer.Option(help=options.PROTECT_HELP)] = None,
    each: Annotated[bool, typer.Option("--each", help="Rule out a loss of 5 points for every protected task.")] = False,
    margin: Annotated[float | None, typer.Option(metavar="POINTS", help=options.MARGIN_HELP)] = None,
    cannot_tell: Annotated[Literal["fail", "warn"], typer.Option(help="Exit code of too few items: 4, or 0.")] = "fail",
    until_decided: Annotated[bool, typer.Option("--until-decided", help=options.UNTIL_HELP)] = False,
    max_items: Annotated[
        int | None,
        typer.Option(
            min=4,
            help="Most items at the last of them; of general requests 400 or more, default 1,600.",
        ),
    ] = None,
    suite: Annotated[bool, typer.Option("--suite/--no-suite", help=options.SUITE_HELP)] = True,
    trained_on: Annotated[str | None, typer.Option(metavar="FILE", help=options.TRAINED_ON_HELP)] = None,
    suite_seed: SuiteSeed = 0,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write Markdown, for a pull request.")] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write JUnit XML, for a CI server.")] = None,
    why: Annotated[bool, typer.Option("--why", help="Also print how sure the verdict is.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Print every task, level and example.")] = False,
    as_json: Json = False,
) -> None:
    """Say what a model learned and what it lost. Compares it with the model before, and writes a page."""
    from mixwright.verbs.gating import Gating
    from mixwright.verbs.judging import check_exports, judge, write_exports

    if example:
        before, after = (str(verbs_beside.EXAMPLE / f"{name}.jsonl") for name in ("before", "tuned"))
        folder = Path("runs/example") if folder == COMPARISON else folder
    if before is None:
        raise InputError("BEFORE and AFTER, or a run folder", "nothing", "To see a report: mixwright verdict --example")
    files = (measuring.held_out or "").splitlines()
    check_exports(markdown, junit, (before, after, *files))
    gate_options = (gate, tuple(protect or ()), each, margin, cannot_tell, until_decided, max_items)
    decoding = choose_decoding(measuring.greedy, decoding)
    gating = Gating(*gate_options, decoding, beside, trained_on, suite_seed, suite)

    def show(run: RunFolder, verdict: Verdict) -> None:
        write_exports(verdict, markdown, junit)
        if as_json:
            output.out(run.verdict_data.read_text(encoding="utf-8").rstrip())
        else:
            output.conclude(run, verdict, full=full, certainty=why)

    if code := judge(before, after, measuring, folder, gating, show).exit_code:
        raise typer.Exit(code)


@app.command(cls=Verb)
@with_placing
def run(
    placing: Placing,
    source: Annotated[
        Path | None, typer.Argument(metavar="RUN.YAML|TRAIN", help="Settings; with --init, training rows.")
    ] = None,
    init: Annotated[bool, typer.Option("--init", help="Write a commented run.yaml for TRAIN instead.")] = False,
    output_file: Annotated[Path, typer.Option("--output", help="File that --init writes.")] = Path("run.yaml"),
    held_out: Annotated[str | None, typer.Option("--eval", help="With --init: held-out items.")] = None,
    model: Annotated[str | None, typer.Option(help="With --init: checkpoint; default: a tiny model, built here.")] = None,
    objective: Annotated[str | None, typer.Option(help="With --init: grpo, sft or dpo; default: from the columns.")] = None,
    only: Annotated[Literal["steer", "trial"] | None, typer.Option(help=options.ONLY_HELP)] = None,
    data: Annotated[str | None, typer.Option(metavar="MINER|TABLE", help=options.DATA_HELP)] = None,
    folder: Folder = None,
    dry_run: DryRun = False,
    budget: BudgetOption = None,
) -> None:
    """Try a plan on your own model against simple rules. All stages, from data to verdict; goes on where it stopped."""
    from mixwright import api
    from mixwright.run.opening import validate_run
    from mixwright.trial.selection import format_selection
    from mixwright.verbs.dry_run import first_draws, outline

    if init:
        from mixwright.verbs.init import write_settings

        init_options = {"held_out": held_out, "model": model, "objective": objective}
        seconds = None if budget is None else budget.seconds
        for note in write_settings(str(source) if source else None, output_file, **init_options, budget_seconds=seconds):
            output.say(one_line(note))
        output.say(f"Check {output_file}, then run: mixwright run {output_file} --dry-run")
        return
    if held_out or model or objective:
        raise InputError("--init with --eval, --model and --objective", "no --init", "Add it, or set them in RUN.YAML.")
    if source is None:
        raise InputError("RUN.YAML", "nothing", "Write one with: mixwright run --init TRAIN.jsonl")
    if data is not None and only != "trial":
        raise InputError("--only trial with --data", str(only), "Add it, or leave --data out.")
    if dry_run:
        settings, run_folder = load_settings(source, folder)
        settings = placing.applied_to(settings)
        checked_run = validate_run(settings, run_folder, relative_to=source.parent, for_trial=True)
        if only == "steer":
            output.out_rows(("task", "planned share", "drawn", "of draws"), first_draws(checked_run))
            return
        output.say("dry run: settings and data are valid; checking the settings of the trainer")
        output.out_rows(("stage", "steps"), outline(checked_run))
        return
    if only == "steer":
        output.out(str(api.steer(source, folder, placing=placing, say=output.say)))
        return
    if only == "trial":
        result = api.trial(source, folder, data=data, budget=budget, placing=placing, say=output.say)
        output.out_effects(result.effects)
        for line in format_selection(result):
            output.out(one_line(line))
        return
    run_options = {"budget": budget, "placing": placing, "console": output.console()}
    api.run(source, folder, **run_options, say=lambda line: output.say(one_line(line)))


app.command(cls=Verb)(verbs_beside.init)
app.command(cls=Verb)(verbs_beside.diagnose)
app.command(cls=Verb)(verbs_beside.rewards)
app.command(cls=Verb)(with_measuring(verbs_beside.dial))
app.command(cls=Verb)(verbs_beside.replicates)
app.command("list")(verbs_beside.list_plugins)
app.command(cls=Verb)(verbs_beside.explain)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    output.accept_any_text()
    given = list(sys.argv[1:] if arguments is None else arguments)
    set_quiet("--quiet" in given)
    output.remember_arguments(given)
    try:
        with heartbeat():
            app([argument for argument in given if argument != "--quiet"], prog_name="mixwright")
    except InputError as error:
        _exit_with_error(error)
    except SystemExit as exit_error:  # the parser leaves with 2 when an argument is wrong; here 2 means a bug
        sys.exit(EXIT_BAD_INPUT if exit_error.code == 2 else exit_error.code)
    except BrokenPipeError:  # whoever read our output has seen enough
        _discard_output()
        sys.exit(EXIT_BAD_INPUT)
    except OSError as error:
        _exit_with_error(system_error(error))
    except Exception as error:
        if (disk_error := disk_full_error(error)) is not None:
            _exit_with_error(disk_error)
        set_quiet(False)
        for line in traceback.format_exc().splitlines():  # an error may repeat text from data
            output.say(one_line(line))
        output.say("This is a bug in Mixwright, not in your input. Please report it, with the lines above.")
        sys.exit(EXIT_BUG)


def _exit_with_error(error: InputError) -> NoReturn:
    set_quiet(False)
    output.say(f"error: {one_line(error)}")
    try:
        sys.stdout.flush()
    except OSError:  # what a full disk did not take would fail once more while Python leaves, with another exit code
        _discard_output()
    sys.exit(error.exit_code)


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
