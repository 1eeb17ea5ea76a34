"""Verb `scan`: a table of every row as the starting model reads it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mixwright.extend import PLACING, Folder, Placing, RunConfig, open_settings, open_with_workers, output
from mixwright_extras.scan.table import column_groups, scan_folder

if TYPE_CHECKING:
    from mixwright_extras.scan.stage import ScanResult
else:
    ScanResult = Any  # it would import torch


def scan(
    config: Annotated[str | Path | RunConfig, typer.Argument(metavar="RUN.YAML")],
    folder: Folder = None,
    *,
    columns: Annotated[str | Sequence[str] | None, typer.Option(metavar="A,B")] = None,
    sample: Annotated[int | None, typer.Option(min=1)] = None,
    placing: Placing = PLACING,
) -> list[ScanResult]:
    """Score every training row with the starting model. Writes a table of losses, IFD, entropy, gradients and pass rates.

    Examples:
        >>> [(found.rows, found.made) for found in scan("run.yaml", columns=["likelihood"])]
        [(41, 1)]

    Args:
        config: Settings, as `mixwright run --init` writes them.
        folder: Run folder; default: runs/<name of RUN.YAML>.
        columns: Columns or groups of columns (`mixwright list columns`), or all. Default: those that need no rollouts,
            gradients or hidden states.
        sample: Number of rows to scan, chosen by a hash of their ids.
        placing: Cluster and engine of the workers, over those of the settings.

    Raises:
        InputError: an unknown column, or something in the settings, the data or the model.
    """
    from mixwright_extras.scan.stage import scan_bases

    if isinstance(columns, str):
        columns = [name.strip() for name in columns.split(",") if name.strip()]
    settings, run, relative_to = open_settings(config, folder, placing)
    column_groups(columns)  # first: an unknown one is refused before anything is opened
    with open_with_workers(settings, run, relative_to=relative_to) as (workers, checked_run):
        return scan_bases(checked_run, workers, columns=columns, sample=sample, say=output.say)


def show(found: Sequence[ScanResult], *, config: str, folder: Path | None) -> None:
    """Print the place of each table, and the rows in it."""
    _, run, _ = open_settings(config, folder)
    for result in found:
        for note in result.notes:
            output.say(f"  {note}")
        progress = f"{result.made} of {result.shards} shards now" if result.made else "already complete"
        output.out(f"{scan_folder(run, result.base_name)}: {result.rows:,} rows, {progress}")
