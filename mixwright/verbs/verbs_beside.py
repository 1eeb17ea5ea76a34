"""Verbs that stand alone, and verbs about plug-ins; `__main__.py` has the stages of the flow."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from mixwright.errors import InputError
from mixwright.records import Observation
from mixwright.verbs import options, output
from mixwright.verbs.options import Json, Measuring, parse_columns
from mixwright.verbs.output import EXIT_FOUND, FAILING_SEVERITIES

EXAMPLE = Path(__file__).parent.parent / "example"
"""Files that ship with the package, to try the commands on."""
Full = Annotated[bool, typer.Option("--full", help="Print every finding.")]
FailOn = Annotated[Literal["error", "warning", "never"], typer.Option(help=options.FAIL_HELP)]


def init(folder: Annotated[Path, typer.Argument(help="Folder, new or empty.")] = Path("example")) -> None:
    """Write example files to try the commands on. Rows, test items, requests, two logs, and a README."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("a new or empty folder", "something else", "Name another.", file=folder)
    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted(EXAMPLE.iterdir()):
        shutil.copy(source, folder)
        output.out(str(folder / source.name))
    output.out(f"\nNext: mixwright verdict {folder / 'before.jsonl'} {folder / 'tuned.jsonl'}")


def diagnose(
    rollouts: Annotated[
        str, typer.Argument(help="Rollouts of an RL run: a file or folder of TRL, verl, verifiers or NeMo Gym, or JSONL.")
    ],
    fail_on: FailOn = "never",
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Find why an RL run does not learn. Reads its rollouts; needs no model."""
    from mixwright.logs.diagnosis import diagnose as diagnose_log
    from mixwright.logs.diagnosis import summarise
    from mixwright.logs.rollouts import read_rollouts

    log = read_rollouts(rollouts)
    observations = diagnose_log(log)
    if as_json:
        output.out_json({"read": summarise(log), "observations": observations})
    else:
        _show(rollouts, summarise(log), observations, full=full)
    if any(o.severity in FAILING_SEVERITIES[fail_on] for o in observations):
        raise typer.Exit(EXIT_FOUND)


def _show(name: str, read: str, observations: Sequence[Observation], *, full: bool) -> None:
    """Print the number of findings, a line on the input, the findings, and the command to repeat."""
    from mixwright.verbs.report import count_findings, findings, wrap

    faults = count_findings(observations)
    lines = [*wrap(f"{faults or 'Nothing to fix'}: {name}"), *wrap(read), "", *findings(observations, full=full)]
    if faults:
        lines += ["", f"Next: fix the first, then  {output.command_line()}"]
    output.out("\n".join(lines))


def rewards(
    functions: Annotated[list[str], typer.Argument(help="Reward functions (package.module:function) or graders.")],
    held_out: Annotated[str, typer.Option("--eval", help="Rows with answers to test them on; formats as for audit.")],
    weight: Annotated[
        list[float] | None, typer.Option(help="Weight of each function, in the same order. Default: 1 each.")
    ] = None,
    column: Annotated[list[str] | None, typer.Option(metavar="OURS=THEIRS", help=options.COLUMNS_HELP)] = None,
    items: Annotated[int, typer.Option(min=4, help="Rows to test.")] = 40,
    completion: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column with completions of the model; edited copies are tested, too."),
    ] = None,
    fail_on: FailOn = "never",
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Find wrong answers that a reward pays. And right ones that it does not; needs no model."""
    from mixwright.config import CorpusConfig
    from mixwright.rewards.stage import run_reward_audit

    config = CorpusConfig(held_out, eval_share=0.0, columns=parse_columns(column))
    found = run_reward_audit(functions, config, weights=weight or (), items=items, completion_column=completion)
    calls = ", ".join(f"{name} ({kind})" for name, kind in zip(functions, found.kinds, strict=True))
    milliseconds = 1000 * found.seconds_per_completion
    read = f"{found.completions:,} completions scored, {milliseconds:.2g} ms each; called as {calls}"
    if as_json:
        output.out_json({"read": read, "best_paid_form": found.best_paid_form, "observations": list(found.observations)})
    else:
        _show(", ".join(functions), read, found.observations, full=full)
    if any(o.severity in FAILING_SEVERITIES[fail_on] for o in found.observations):
        raise typer.Exit(EXIT_FOUND)


def dial(
    base: Annotated[str, typer.Argument(help="Checkpoint before fine-tuning.")],
    tuned: Annotated[str, typer.Argument(help="Checkpoint or adapter folder after fine-tuning.")],
    measuring: Measuring,
    keep: Annotated[list[str] | None, typer.Option(help=options.DIAL_KEEP_HELP)] = None,
    alpha: Annotated[list[float] | None, typer.Option(help=options.ALPHA_HELP)] = None,
    max_loss: Annotated[float, typer.Option(min=0.0, max=1.0, help=options.LOSS_HELP)] = 0.02,
    as_json: Json = False,
) -> None:
    """Mix a base and a tuned model. Finds the largest strength that keeps the other tasks."""
    from mixwright.verbs.dialling import show_sweep

    show_sweep(base, tuned, measuring, keep or (), alpha or (), max_loss, as_json=as_json)


def replicates(
    scores: Annotated[str, typer.Argument(metavar="RUN|SCORES", help=options.SCORES_HELP)],
    target: Annotated[float, typer.Option(min=0.01, max=0.99, help="Reliability to reach.")] = 0.8,
    as_json: Json = False,
) -> None:
    """Check whether a ranking of candidates is noise. Says how many runs of each would make it reliable."""
    from mixwright.estimates.replicates import format_ranking
    from mixwright.verbs.replicates import rank_source

    ranking = rank_source(scores, target)
    if as_json:
        output.out_json({"ranking": ranking, "word": ranking.word})
        return
    for line in format_ranking(ranking):
        output.out(line)


def list_plugins(
    kind: Annotated[str | None, typer.Argument(help="checks, probes, planners ...; default: all kinds.")] = None,
    as_json: Json = False,
) -> None:
    """List every plug-in."""
    from mixwright.verbs.plugins import show_list

    show_list(kind, as_json=as_json)


def explain(name: Annotated[str, typer.Argument(help="A name from `mixwright list`, for example formats.")]) -> None:
    """Explain a plug-in. Every one of that name, in the order of the flow."""
    from mixwright.verbs.plugins import show_entries

    show_entries(name)
