"""Command line of the laboratory: list findings, run them, write the page."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from mixwright import catalog
from mixwright.errors import InputError, one_line, system_error
from mixwright.run.workers import JobFailed
from mixwright.run.workers import Workers as RunningWorkers
from mixwright.verdict.page.text import to_line, to_visible
from mixwright_lab import result_files
from mixwright_lab.judging import decide
from mixwright_lab.result_files import Result
from mixwright_lab.running import run as run_finding

app = typer.Typer(
    help="Published claims, re-run on tiny models: what each expects is written before the run.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
Scale = Annotated[str, typer.Option(help="smoke: seconds, says nothing about the claim; laptop: minutes, kept.")]
SeedBase = Annotated[
    int | None,
    typer.Option(help=f"First seed; by default {result_files.FIRST_SEED}, for smoke 0. Give --out with others."),
]
Workers = Annotated[int, typer.Option(help="Processes of one thread; 0: one per core.")]
Out = Annotated[
    Path | None, typer.Option(help="Folder for results; default: that of the package, for smoke a temporary one.")
]


@app.command("list")
def list_findings(as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False) -> None:
    """List every finding with its claim and the word of its kept result."""
    shown = []
    for name in catalog.listing("findings"):
        finding = catalog.load("findings", name)
        kept = result_files.read(name)
        stale = kept is not None and kept.expectations != result_files.digest(finding)
        shown.append(
            {
                "name": name,
                "claim": finding.CLAIM,
                "source": finding.SOURCE,
                "word": decide(kept.contrasts, finding.PRIMARY, finding.CONTROL) if kept and not stale else None,
                "stale": stale,
                "cpu_minutes": round(kept.cpu_seconds / 60, 1) if kept else None,
                "features": list(finding.FEATURES),
            }
        )
    if as_json:
        typer.echo(json.dumps(shown, indent=1))
        return
    for one in shown:
        word = f"{one['word'] or 'not run'}{', stale: its expectations were edited since' if one['stale'] else ''}"
        typer.echo(f"{one['name']:<20} {word:<16} {to_line(one['claim'], limit=4000)}")


@app.command()
def run(
    names: list[str],
    scale: Scale = "laptop",
    seed_base: SeedBase = None,
    workers: Workers = 0,
    out: Out = None,
) -> None:
    """Run findings by name, or go on with an interrupted run; the last line of each is JSON."""
    if seed_base is None:  # a smoke run decides nothing, and takes none of the seeds that do
        seed_base = result_files.FIRST_SEED if scale == "laptop" else 0
    for name in names:
        catalog.find_entry("findings", name)
    folder = out or (
        result_files.RESULTS_FOLDER if scale == "laptop" else Path(tempfile.gettempdir()) / "mixwright-lab-smoke"
    )
    with RunningWorkers(workers) if len(names) > 1 else contextlib.nullcontext() as running:
        for name in names:
            result = run_finding(name, scale, seed_base=seed_base, worker_count=workers, workers=running)
            result_files.write(folder / f"{name}.json", result)
            _show(result)


@app.command("all")
def run_all(scale: Scale = "laptop", seed_base: SeedBase = None, workers: Workers = 0, out: Out = None) -> None:
    """Run every finding of the catalogue."""
    run(list(catalog.listing("findings")), scale, seed_base, workers, out)


@app.command()
def report(
    out: Annotated[Path | None, typer.Option(help="Folder for lab.html and README.md; default: mixwright_lab.")] = None,
    results: Annotated[Path, typer.Option(help="Folder of results.")] = result_files.RESULTS_FOLDER,
) -> None:
    """Write the page of all findings, and the parts of the README that are made from results."""
    from mixwright_lab.report import write

    for path in write(results, out):
        typer.echo(str(path))


def _show(result: Result) -> None:
    """Contrasts as a table, then one line of JSON."""
    for one in result.contrasts:
        scale, unit = (100, "points") if one.unit == "points" else (1, one.unit)
        noise = "" if one.noise is None else f", noise floor {scale * one.noise:.2g}"
        ends = f"{scale * one.value:+.3g} [{scale * one.low:.3g}, {scale * one.high:.3g}]"
        typer.echo(f"  {one.word:<15} {to_line(one.name)}: {ends} {to_line(unit)} (at least {scale * one.least:.3g}{noise})")
    told = {"name": result.finding, "word": result.word, "scale": result.scale, "seeds": list(result.seeds)}
    told |= {"cpu_seconds": round(result.cpu_seconds, 1), "goals": [dict(goal) for goal in result.goals]}
    typer.echo(json.dumps(told, allow_nan=False))


def main() -> int:
    """Run the command line; what the user can mend is said in one sentence. Ctrl-C leaves with 130."""
    try:
        app(prog_name="python -m mixwright_lab")
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 0
        return 1 if code == 2 else code  # the parser leaves with 2 when an argument is wrong; that is input like any other
    except InputError as error:
        typer.echo(one_line(error), err=True)
    except JobFailed as error:
        typer.echo(to_visible(str(error)), err=True)
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        typer.echo(one_line(system_error(error)), err=True)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
