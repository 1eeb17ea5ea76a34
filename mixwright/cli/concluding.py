"""End of a command: the first screen of the page, and the exit code of the gate."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mixwright.cli import output
from mixwright.errors import one_line

if TYPE_CHECKING:
    from mixwright.records import Claim
    from mixwright.runs import RunFolder
    from mixwright.verdict.gate import GateResult

FOUND = 3
"""Exit code where damage, or what was asked for, was found."""


def conclude(run: RunFolder, page: Path, *, full: bool = False, without: Collection[str] = ()) -> None:
    """Print the page's first screen (or all of it) except for some sections, and say where the page is."""
    from mixwright.verdict.stage import summarise

    summarise(run, output.console(), full=full, without=without)
    output.out(f"verdict: {page}")


def stricter(run: RunFolder, result: GateResult, cannot_tell: Literal["fail", "warn"]) -> int:
    """Exit code of the gate; never 0 where the page says not to ship, unless the user named what matters.

    Of a named group that is judged by a margin the page speaks, too; then only a loss of what was not named is passed over.
    """
    from mixwright.verdict.basis import recommended
    from mixwright.verdict.recommendation import PairSeen

    (found, seen), code = recommended(run), result.code(cannot_tell)
    if code or found is None or found.advice != "do not ship":
        return code
    damaged = seen.damaged if isinstance(seen, PairSeen) else ()
    if result.named and (result.margin is None or _elsewhere(damaged, result)):
        return code
    output.out(f"gate: damaged, though no protected cell is: {one_line(found.sentence)}")
    return FOUND


def _elsewhere(damaged: Collection[Claim], result: GateResult) -> bool:
    """Whether there is damage, and all of it of cells that the user did not name."""
    cells, tasks = {(cell.task, cell.level) for cell in result.cells}, {cell.task for cell in result.cells}
    own = [claim for claim in damaged if (claim.task, claim.level) in cells or (claim.whole and claim.task in tasks)]
    return bool(damaged) and not own
