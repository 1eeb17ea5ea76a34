"""Body of `mixwright scan`: the columns that are asked for, and a line per starting model on what was read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mixwright.cli import output
from mixwright.errors import one_line

if TYPE_CHECKING:
    from mixwright.config import RunConfig
    from mixwright.runs import RunFolder


def scan_folder(
    settings: RunConfig, run: RunFolder, base: Path, *, columns: str | None, sample: int | None, moments: Path | None
) -> None:
    """Scan a run's corpus with each starting model and say where the tables are.

    Args:
        settings: of the run.
        run: its folder.
        base: folder that relative paths in the settings start from.
        columns: groups or columns, with commas between them; None takes the cheap ones.
        sample: so many rows; None takes all.
        moments: second moments of a warm-up.

    Raises:
        InputError: an unknown column, or settings, data or a model that cannot be used.
    """
    from mixwright.measure.scan import column_groups
    from mixwright.measure.scan import scan_folder as place_of
    from mixwright.measure.scan_stage import scan_bases
    from mixwright.opening import open_run_folder, start_workers

    asked = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    column_groups(asked)
    with start_workers(settings) as workers, open_run_folder(settings, run, base=base, workers=workers):
        found = scan_bases(settings, run, workers, columns=asked, sample=sample, moments=moments, base=base, say=output.say)
    for result in found:
        for note in result.notes:
            output.say(one_line(f"  {note}"))
        now = f"{result.made} of {result.shards} shards now" if result.made else "nothing was left to do"
        output.out(f"{place_of(run, result.base)}: {result.rows:,} rows, {now}")
