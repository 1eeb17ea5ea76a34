"""End of a command: the first screen of the page, and the exit code of the gate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mixwright.cli import output
from mixwright.errors import one_line

if TYPE_CHECKING:
    from mixwright.runs import RunFolder
    from mixwright.verdict.gate import GateResult

FOUND = 3
"""Exit code where damage, or what was asked for, was found."""


def conclude(run: RunFolder, page: Path, *, full: bool = False) -> None:
    """Print the page's first screen (or all of it), and say where the page is."""
    from mixwright.verdict.stage import summarise

    summarise(run, output.console(), full=full)
    output.out(f"verdict: {page}")


def stricter(run: RunFolder, result: GateResult, cannot_tell: Literal["fail", "warn"]) -> int:
    """Exit code of the gate; never 0 where the page says not to ship, unless the user named what matters."""
    from mixwright.verdict.basis import recommended

    found, code = recommended(run)[0], result.code(cannot_tell)
    if code or result.named or found is None or found.advice != "do not ship":
        return code
    output.out(f"gate: damaged, though no protected cell is: {one_line(found.sentence)}")
    return FOUND
