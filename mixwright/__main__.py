"""Command line of one verb per stage, in the order of the flow.

Results go to stdout, everything else to stderr. Exit code 0: fine; 1: something in your input; 2: a bug of ours;
3: `verdict --gate` found damage, or `audit --fail-on` found what it is to fail on; 4: the gate cannot tell.
Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from mixwright import __version__
from mixwright.cli import output
from mixwright.errors import InputError, no_room, one_line, system_error

if TYPE_CHECKING:
    from mixwright.config import RunConfig
    from mixwright.runs import RunFolder

YOUR_INPUT, OUR_BUG, FOUND = 1, 2, 3
FAILING = {"error": ("error",), "warning": ("error", "warning"), "never": ()}
"""What `audit --fail-on` is given -> severities that make it leave with `FOUND`."""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Decide what a language model trains on, and prove what that did to it. "
    "Flow: audit -> measure -> plan -> steer -> trial -> verdict.",
)

Config = Annotated[Path, typer.Argument(metavar="RUN.YAML", help="Settings, as `mixwright run --init` writes them.")]
Folder = Annotated[Path | None, typer.Option(help="Run folder; default: runs/<name of RUN.YAML>.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]
COLUMNS_HELP = (
    "Our name for a column of the file; repeatable. Ours: id, task, prompt, target, answer, level, knobs, skills, chosen, "
    "rejected, messages, text, split."
)
ITEMS_HELP = "Items measured per task and level of --corpus; default: 200 to compare, and 800 over all protected ones."
GATE_HELP = (
    "Exit with 0 only when protected cells are shown to have lost less than 5 points on average and less than 15 each, with "
    "3 when something was damaged, and with 4 when the items cannot tell."
)
EXPORT_HELP = (
    "Also write the weights and the order for another trainer: trl, axolotl, llama-factory, verl. A plan.yaml that is there "
    "is exported as it stands."
)
FAIL_HELP = "Exit with 3 when anything this grave or graver was seen; never: 0 whatever was seen, for people who read."
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; write nothing.")]


def _version(wanted: bool) -> None:
    if wanted:
        output.out(f"mixwright {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Options of the program itself; its help text is the one above."""


@app.command()
def audit(
    train: Annotated[
        str, typer.Argument(help="Examples: JSONL, JSON, Parquet, datasets folder, hub name, reasoning-gym:...")
    ],
    held_out: Annotated[str | None, typer.Option("--eval", help="Held-out examples, same forms.")] = None,
    column: Annotated[list[str] | None, typer.Option(metavar="OURS=THEIRS", help=COLUMNS_HELP)] = None,
    task: Annotated[str, typer.Option(help="Task name of rows without a task column.")] = "all",
    grader: Annotated[str, typer.Option(help="Grader of every task.")] = "exact",
    check: Annotated[list[str] | None, typer.Option(help="Only this check; repeatable.")] = None,
    fail_on: Annotated[Literal["error", "warning", "never"], typer.Option(help=FAIL_HELP)] = "never",
    as_json: Json = False,
) -> None:
    """Look at the data: what is in it, and what should not be. No model needed."""
    from mixwright.audit.stage import run_audit
    from mixwright.config import CorpusConfig
    from mixwright.corpus import read_corpus

    pairs = [pair.partition("=") for pair in column or ()]
    for ours, equals, theirs in pairs:
        if not (ours and equals and theirs):
            raise InputError("--column OURS=THEIRS", ours or "nothing", "Write for example --column prompt=question.")
    columns = {ours: theirs for ours, _, theirs in pairs}
    config = CorpusConfig(train, held_out, eval_share=0.0, columns=columns, task=task, grader=grader)
    observations = run_audit(read_corpus(config), check)
    if as_json:
        output.out_json({"observations": observations})
    else:
        shown, others = output.first_tasks(observations)
        output.out_rows(
            ("severity", "check", "task", "count", "what was seen", "what to do"),
            [
                (o.severity, o.check, o.task or "*", f"{o.count} of {o.total}", o.message + output.pairs(o), o.remedy)
                for o in shown
            ],
        )
        if others:
            output.out(others)
    if any(o.severity in FAILING[fail_on] for o in observations):
        raise typer.Exit(FOUND)


@app.command()
def measure(config: Config, folder: Folder = None, as_json: Json = False) -> None:
    """Measure what the model can do now, per task and level, beside its chance level."""
    from mixwright.measure.bases import measure_bases
    from mixwright.opening import opened, workers

    settings, run = _load(config, folder)
    with workers(settings) as pool, opened(settings, run, base=config.parent, pool=pool):
        rows = [row for row in measure_bases(settings, run, pool, base=config.parent) if row.example is None]
    if as_json:
        output.out_json({"measurements": rows})
        return
    output.out_rows(
        ("task", "level", "probe", "number", "value", "95 % interval", "null", "n", "unit"),
        [
            (
                r.task,
                _number(r.level),
                r.probe,
                r.name,
                _number(r.value),
                f"{r.low:.3g} .. {r.high:.3g}",
                _number(r.null),
                r.n,
                r.unit,
            )
            for r in rows
        ],
    )


@app.command()
def plan(
    config: Config,
    folder: Folder = None,
    dry_run: DryRun = False,
    export: Annotated[str | None, typer.Option(metavar="FORMAT", help=EXPORT_HELP)] = None,
    export_to: Annotated[
        Path | None, typer.Option(help="Folder of --export; default: export/FORMAT in the run folder.")
    ] = None,
) -> None:
    """Decide weights, order, band and levers, with a reason for each number."""
    from mixwright.cli.export import check_export, export_plan
    from mixwright.opening import check_plan, known_corpus, opened
    from mixwright.plan.stage import make_plan, plan_run

    check_export(export, export_to, dry_run=dry_run)

    settings, run = _load(config, folder)
    if dry_run:
        output.out_yaml(make_plan(settings, run, known_corpus(settings, run, base=config.parent)))
        return
    with opened(settings, run, base=config.parent, after=run.measurements("before")) as corpus:
        if export is None or not run.plan.exists():  # what was edited by hand is exported as it stands
            plan_run(settings, run, corpus)
        output.out(str(run.plan))
        if export is not None:
            made, place = check_plan(settings, run, corpus), export_to or run.path / "export" / export
            for line in export_plan(made, corpus, export, place, batch=settings.train.prompts, seed=settings.seed):
                output.say(one_line(line))
            output.out(str(place))


@app.command()
def steer(config: Config, folder: Folder = None, dry_run: DryRun = False) -> None:
    """Train once under the plan; --dry-run shows what would be drawn."""
    from mixwright.cli.dry_run import rehearse
    from mixwright.opening import check_plan, opened, workers
    from mixwright.trial.stage import steer_once

    settings, run = _load(config, folder)
    if dry_run:
        output.out_rows(("task", "planned share", "drawn", "of draws"), rehearse(settings, run, base=config.parent))
        return
    with (
        workers(settings) as pool,
        opened(settings, run, base=config.parent, pool=pool, whole=True, after=run.plan) as corpus,
    ):
        check_plan(settings, run, corpus)
        output.out(str(steer_once(settings, run, pool, base=config.parent, say=output.say)))


@app.command()
def trial(config: Config, folder: Folder = None) -> None:
    """Try the plan against simpler choices, paired by seed; where it helps, against its nulls."""
    from mixwright.opening import check_plan, opened, workers
    from mixwright.trial.stage import try_plan

    settings, run = _load(config, folder)
    with (
        workers(settings) as pool,
        opened(settings, run, base=config.parent, pool=pool, whole=True, after=run.plan) as corpus,
    ):
        check_plan(settings, run, corpus)
        result = try_plan(settings, run, pool, base=config.parent, say=output.say)
    output.out_rows(
        ("arm", "against", "number", "difference", "95 % interval", "p", "word"),
        [
            (
                e.arm,
                e.against,
                e.name,
                f"{e.difference.value:+.3g}",
                f"{e.difference.low:+.3g} .. {e.difference.high:+.3g}",
                f"{e.p:.2g}",
                e.word,
            )
            for e in result.effects
        ],
    )


@app.command()
def verdict(
    before: Annotated[str, typer.Argument(metavar="RUN|BEFORE", help="Run folder; or, with AFTER, a checkpoint.")],
    after: Annotated[str | None, typer.Argument(metavar="AFTER", help="Checkpoint to compare with BEFORE.")] = None,
    corpus: Annotated[str | None, typer.Option(help="What both checkpoints are measured on.")] = None,
    grader: Annotated[str, typer.Option(help="Grader of every task of --corpus.")] = "exact",
    items: Annotated[int | None, typer.Option(min=1, help=ITEMS_HELP)] = None,
    decoding: Annotated[Literal["greedy", "sampled"], typer.Option(help="How the model will be used.")] = "greedy",
    folder: Annotated[Path, typer.Option(help="Where a comparison is written.")] = Path("runs/comparison"),
    gate: Annotated[bool, typer.Option("--gate", help=GATE_HELP)] = False,
    protect: Annotated[list[str] | None, typer.Option(help="Task or cell; default: what was mastered. Repeatable.")] = None,
    each: Annotated[bool, typer.Option("--each", help="Every protected cell must exclude a loss of 5 points.")] = False,
    cannot_tell: Annotated[
        Literal["fail", "warn"], typer.Option(help="Too few items: exit 4, or 0 and a warning. Not measured: 4.")
    ] = "fail",
    full: Annotated[bool, typer.Option("--full", help="Print all of the page, not only its first screen.")] = False,
) -> None:
    """Say what was learnt and what was damaged; write the page."""
    from mixwright.runs import RunFolder
    from mixwright.verdict.stage import render

    if not gate and (protect or each or cannot_tell != "fail"):
        raise InputError("--gate beside --protect, --each or --cannot-tell", "none", "Add it, or leave those out.")
    if corpus is not None and after is None:
        raise InputError("AFTER, the checkpoint to compare with BEFORE", "--corpus without it", "Name both checkpoints.")
    run = RunFolder(folder if after else before)
    if after:
        from mixwright.cli.compare import compare
        from mixwright.config import CorpusConfig

        if corpus is None:
            raise InputError("--corpus", "nothing", "Name the examples that both checkpoints are measured on.")
        rows = CorpusConfig(corpus, eval_share=0.0, grader=grader)
        compare(before, after, rows, run, items=items, protect=protect or (), decoding=decoding, say=output.say)
    if not gate:
        _conclude(run, render(run), full=full)
    else:
        from mixwright.verdict.gate import lines, of_run

        result = of_run(run, protect or (), each=each)  # first: a name that is not there is refused before the page
        _conclude(run, render(run), full=full)
        output.out("\n".join(f"gate: {one_line(line)}" for line in lines(result, cannot_tell)))
        raise typer.Exit(result.code(cannot_tell))


@app.command()
def run(
    source: Annotated[Path | None, typer.Argument(metavar="RUN.YAML|TRAIN", help="Settings; with --init, examples.")] = None,
    init: Annotated[bool, typer.Option("--init", help="Write a commented run.yaml for TRAIN instead.")] = False,
    output_file: Annotated[Path, typer.Option("--output", help="File that --init writes.")] = Path("run.yaml"),
    folder: Folder = None,
    dry_run: DryRun = False,
) -> None:
    """Do the whole line, corpus to verdict; continues where it stopped."""
    from mixwright import pipeline
    from mixwright.cli.dry_run import outline

    if init:
        from mixwright.cli.init import write_settings

        for note in write_settings(str(source) if source else None, output_file):
            output.say(one_line(note))
        output.say(f"Edit {output_file}, then: mixwright run {output_file}")
        return
    if source is None:
        raise InputError("RUN.YAML", "nothing", "Write one with: mixwright run --init TRAIN.jsonl")
    settings, place = _load(source, folder)
    if dry_run:
        output.out_rows(("stage", "what would be done"), outline(settings, place, base=source.parent))
        return
    page = pipeline.run(settings, place, base=source.parent, say=lambda line: output.say(one_line(line)))
    _conclude(place, page)


@app.command("list")
def list_(
    kind: Annotated[str | None, typer.Argument(help="checks, probes, planners ...; default: all kinds.")] = None,
    as_json: Json = False,
) -> None:
    """List every plug-in; imports none of them."""
    from mixwright.cli.plugins import show_list

    show_list(kind, as_json=as_json)


@app.command()
def explain(name: Annotated[str, typer.Argument(help="A name from `mixwright list`, for example formats.")]) -> None:
    """Explain a phenomenon: every plug-in of that name, in the order of the flow."""
    from mixwright.cli.plugins import show_row

    show_row(name)


def _conclude(run: RunFolder, page: Path, *, full: bool = False) -> None:
    """Print the page's first screen (or all of it), and say where the page is."""
    from mixwright.verdict.stage import summarise

    summarise(run, output.console(), full=full)
    output.out(f"verdict: {page}")


def _load(config: Path, folder: Path | None) -> tuple[RunConfig, RunFolder]:
    """The settings and the run folder that belongs to them; nothing is made."""
    from mixwright.config import RunConfig
    from mixwright.runs import RunFolder, read_yaml

    return read_yaml(config, RunConfig), RunFolder(folder or Path("runs") / config.stem)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    try:
        app(list(sys.argv[1:] if arguments is None else arguments), prog_name="mixwright")
    except InputError as error:
        _refuse(error)
    except SystemExit as leaving:  # the parser leaves with 2 when an argument is wrong; here 2 means a bug
        sys.exit(YOUR_INPUT if leaving.code == 2 else leaving.code)
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(YOUR_INPUT)
    except OSError as error:
        _refuse(system_error(error))
    except Exception as error:
        if (refused := no_room(error)) is not None:
            _refuse(refused)
        traceback.print_exc()
        output.say("This is a bug in Mixwright, not in your input. Please report it with the lines above.")
        sys.exit(OUR_BUG)


def _refuse(error: InputError) -> NoReturn:
    output.say(f"error: {one_line(error)}")
    sys.exit(YOUR_INPUT)


if __name__ == "__main__":
    main()
