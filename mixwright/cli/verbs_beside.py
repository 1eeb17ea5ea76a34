"""Verbs beside the flow, and those about plug-ins; `__main__.py` has the flow's."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from mixwright.cli import options, output
from mixwright.cli.options import Json, Measuring, parse_columns
from mixwright.cli.output import EXIT_FOUND, FAILING_SEVERITIES
from mixwright.errors import one_line


def diagnose(
    rollouts: Annotated[
        str, typer.Argument(help="Rollouts of an RL run: a file or folder of TRL, verl, verifiers, NeMo Gym, or JSONL.")
    ],
    fail_on: Annotated[Literal["error", "warning", "never"], typer.Option(help=options.FAIL_HELP)] = "never",
    as_json: Json = False,
) -> None:
    """Find what an RL run did not learn from, what decided its rewards, and when it went wrong. No model needed."""
    from mixwright.logs.diagnosis import diagnose as diagnose_log
    from mixwright.logs.diagnosis import summarise
    from mixwright.logs.rollouts import read_rollouts

    log = read_rollouts(rollouts)
    observations = diagnose_log(log)
    if as_json:
        output.out_json({"read": summarise(log), "observations": observations})
    else:
        output.out(summarise(log))
        output.out_observations(observations)
    if any(o.severity in FAILING_SEVERITIES[fail_on] for o in observations):
        raise typer.Exit(EXIT_FOUND)


def rewards(
    functions: Annotated[list[str], typer.Argument(help="Reward functions, package.module:function; or graders.")],
    corpus: Annotated[str, typer.Option(help="Rows with answers, on which they are tried; forms as for audit.")],
    weight: Annotated[list[float] | None, typer.Option(help="Of each function, in their order. Default: 1 each.")] = None,
    column: Annotated[list[str] | None, typer.Option(metavar="OURS=THEIRS", help=options.COLUMNS_HELP)] = None,
    items: Annotated[int, typer.Option(min=4, help="Rows that are tried.")] = 40,
    completion: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of the file with what the model wrote; it is edited and tried, too."),
    ] = None,
    fail_on: Annotated[Literal["error", "warning", "never"], typer.Option(help=options.FAIL_HELP)] = "never",
    as_json: Json = False,
) -> None:
    """Find what reward functions pay that they should not, and what they do not pay, before anyone trains on them."""
    from mixwright.config import CorpusConfig
    from mixwright.rewards.stage import run_reward_audit

    config = CorpusConfig(corpus, eval_share=0.0, columns=parse_columns(column))
    found = run_reward_audit(functions, config, weights=weight or (), items=items, completion_column=completion)
    said = f"{found.completions:,} completions scored, {1000 * found.seconds_per_completion:.2g} ms each; called as "
    said += ", ".join(f"{name} ({kind})" for name, kind in zip(functions, found.kinds, strict=True))
    if as_json:
        output.out_json({"read": said, "best_paid_form": found.best_paid_form, "observations": list(found.observations)})
    else:
        output.out(one_line(said))
        output.out_observations(list(found.observations))
    if any(o.severity in FAILING_SEVERITIES[fail_on] for o in found.observations):
        raise typer.Exit(EXIT_FOUND)


def dial(
    base: Annotated[str, typer.Argument(help="Checkpoint before it was tuned.")],
    tuned: Annotated[str, typer.Argument(help="Checkpoint or adapter folder after it.")],
    measuring: Measuring,
    keep: Annotated[list[str] | None, typer.Option(help=options.DIAL_KEEP_HELP)] = None,
    alpha: Annotated[list[float] | None, typer.Option(help=options.ALPHA_HELP)] = None,
    max_loss: Annotated[float, typer.Option(min=0.0, max=1.0, help=options.LOSS_HELP)] = 0.02,
    as_json: Json = False,
) -> None:
    """Mix base and tuned model while they write: skill and loss by strength, and the largest strength within a budget."""
    from mixwright.cli.dialling import show_sweep

    show_sweep(base, tuned, measuring, keep or (), alpha or (), max_loss, as_json=as_json)


def replicates(
    scores: Annotated[str, typer.Argument(metavar="RUN|SCORES", help=options.SCORES_HELP)],
    target: Annotated[float, typer.Option(min=0.01, max=0.99, help="Reliability that is wanted.")] = 0.8,
    as_json: Json = False,
) -> None:
    """Say whether a ranking of candidates is one of noise, and how many runs of each a reliable one takes."""
    from mixwright.cli.replicates import rank_source
    from mixwright.estimates.replicates import format_ranking

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
    """List every plug-in; imports none of them."""
    from mixwright.cli.plugins import show_list

    show_list(kind, as_json=as_json)


def explain(name: Annotated[str, typer.Argument(help="A name from `mixwright list`, for example formats.")]) -> None:
    """Explain a phenomenon: every plug-in of that name, in the order of the flow."""
    from mixwright.cli.plugins import show_entries

    show_entries(name)
