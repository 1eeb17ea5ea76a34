"""End of a command: the first screen of the page, and the exit code where something was found."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from mixwright.cli import output

if TYPE_CHECKING:
    from mixwright.runs import RunFolder

EXIT_FOUND = 3
"""Exit code where damage, or what was asked for, was found."""


def conclude(run: RunFolder, page: Path, *, full: bool = False, without: Collection[str] = ()) -> None:
    """Print the page's first screen (or all of it) except for some sections, and say where the page is."""
    from mixwright.verdict.stage import summarise

    summarise(run, output.console(), full=full, without=without)
    output.out(f"verdict: {page}")
