"""The gate: a checkpoint passes when it is shown not to have lost what was protected, not when no loss was shown.

Non-inferiority: the lower end of the protected cells' mean change lies above `MARGIN`, no protected cell has a significant
loss (Holm over them), and no cell's lower end lies under `CELL_MARGIN`. Else something is damaged, or the items are too few
to tell. Which cells are protected by default is decided on other items than those compared: a cell chosen for its success
on some items falls back to its mean on the same items, and that is no damage.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mixwright.errors import InputError, unknown_name
from mixwright.estimates.cell_states import BAND, FEWEST_ITEMS, side
from mixwright.estimates.crossed import POWER, Estimate
from mixwright.estimates.intervals import holm, t_quantile
from mixwright.estimates.outcome import NAMES, Decoding, Item, ItemScores, change
from mixwright.records import cell_key
from mixwright.runs import RunFolder
from mixwright.verdict._claims import ALPHA, Cell
from mixwright.verdict._evidence import comparisons, decoding_of, lead
from mixwright.verdict._text import between, count, points

MARGIN = 0.05
"""Mean loss over the protected cells that must be excluded, a share; with `each`, of every cell."""
CELL_MARGIN = 0.15
"""Loss of any one protected cell that must be excluded."""
CELL_ITEMS = 200
"""Items compared per protected cell, unless the user says otherwise."""
ALL_ITEMS = 800
"""Items compared over all protected cells, at least: with a fifth of them changing for no reason, these exclude `MARGIN` in
about nine of ten cases, and 200 do not."""
DECIDING = 5
"""One of so many items decides what is protected; the others are compared."""
PASSED, DAMAGED, CANNOT_TELL = 0, 3, 4
"""Exit codes; 1 is wrong input, 2 our bug."""

Outcome = Literal["passed", "damaged", "cannot tell"]
Side = Sequence[ItemScores]


@dataclass(frozen=True, slots=True)
class CellLoss:
    """One protected cell."""

    task: str
    level: float | None
    change: Estimate | None
    """Of success, after minus before; None where fewer than `FEWEST_ITEMS` items were measured on both sides."""
    adjusted_p: float = 1.0
    """After Holm's correction over the protected cells."""

    @property
    def lost(self) -> bool:
        """A significant loss."""
        return self.change is not None and self.change.high < 0 and self.adjusted_p < ALPHA


@dataclass(frozen=True, slots=True)
class GateResult:
    """What the gate says, and why."""

    outcome: Outcome
    mean: Estimate | None
    """Mean change over the protected cells that could be compared, each counted once."""
    cells: tuple[CellLoss, ...]
    """The protected cells."""
    limit: float
    """Loss of one cell that had to be excluded."""
    needed: int | None = None
    """Items per cell that would pass an unharmed checkpoint in `POWER` of cases; None where items cannot help."""

    def code(self, cannot_tell: Literal["fail", "warn"] = "fail") -> int:
        """Exit code; with `warn`, what cannot be told does not fail."""
        if self.outcome == "cannot tell":
            return CANNOT_TELL if cannot_tell == "fail" else PASSED
        return PASSED if self.outcome == "passed" else DAMAGED


def check(
    before: Side,
    after: Side,
    protected: Collection[Cell],
    *,
    decoding: Decoding = "greedy",
    each: bool = False,
    items: Collection[Item] | None = None,
) -> GateResult:
    """Compare the protected cells. Pure.

    Args:
        before: one per seed.
        after: one per seed, in the same order.
        protected: cells that must not be damaged.
        decoding: what success is read from.
        each: every cell must exclude a loss of `MARGIN`, not of `CELL_MARGIN`.
        items: those to compare; None takes all.
    """
    limit = MARGIN if each else CELL_MARGIN
    wanted = None if items is None else set(items)

    def moved(cells: Collection[Cell]) -> tuple[Estimate, int] | None:
        found = change(
            before,
            after,
            decoding=decoding,
            weigh="cells",
            only=lambda item: item[:2] in cells and (wanted is None or item in wanted),
        )
        return (found.success, len(found.items)) if found is not None and math.isfinite(found.success.value) else None

    every = {cell: moved([cell]) for cell in protected}
    known = {cell: found for cell, found in every.items() if found is not None and found[1] >= FEWEST_ITEMS}
    adjusted = dict(zip(known, holm([found.p for found, _ in known.values()]), strict=True))
    cells = tuple(CellLoss(*cell, known[cell][0] if cell in known else None, adjusted.get(cell, 1.0)) for cell in every)
    whole = moved(list(known)) if known else None
    if whole is None:
        return GateResult("cannot tell", None, cells, limit)
    mean = whole[0]
    safe = mean.low > -MARGIN and all(cell.change is not None and cell.change.low > -limit for cell in cells)
    lost = any(cell.lost for cell in cells)
    if safe and not lost:
        return GateResult("passed", mean, cells, limit)
    if lost or mean.high < 0:
        return GateResult("damaged", mean, cells, limit)
    needed = None if len(known) < len(every) else _needed(mean, whole[1], list(known.values()), limit)
    return GateResult("cannot tell", mean, cells, limit, needed)


def _needed(mean: Estimate, items: int, cells: Sequence[tuple[Estimate, int]], limit: float) -> int:
    """Items per cell, from the standard errors seen."""

    def times(estimate: Estimate, margin: float) -> float:
        width = (t_quantile(estimate.freedom) + t_quantile(estimate.freedom, 2 * POWER - 1)) * estimate.error
        return (width / margin) ** 2

    wanted = [times(mean, MARGIN) * items / len(cells), *(times(own, limit) * number for own, number in cells)]
    return math.ceil(max(wanted))


def decides(item: Item) -> bool:
    """Whether this item decides what is protected: one of `DECIDING`, by a hash of its id that nothing else uses."""
    return hashlib.sha256(f"protect {item[2]}".encode("utf-8", "replace")).digest()[0] % DECIDING == 0


def mastered(before: Side, decoding: Decoding) -> list[Cell]:
    """Cells shown, on the deciding items, to lie over the band: greedy or sampled, whichever shows it; items as the unit."""
    found = set()
    for name in {NAMES[decoding], NAMES["sampled"]}:
        values: dict[Cell, dict[Item, list[float]]] = {}
        for scores in before:
            for item, value in scores.scores.get(name, {}).items():
                if decides(item):
                    values.setdefault(item[:2], {}).setdefault(item, []).append(value)
        for cell, items in values.items():
            wins = sum(float(np.mean(own)) for own in items.values())
            if len(items) >= FEWEST_ITEMS and side(wins, float(len(items)), *BAND) > 0:
                found.add(cell)
    return sorted(found, key=lambda cell: (cell[0], -math.inf if cell[1] is None else cell[1]))


def check_mastered(before: Side, after: Side, *, decoding: Decoding = "greedy", each: bool = False) -> GateResult:
    """The gate over what was mastered before, on the items that did not decide it."""
    rest = {item for scores in before for item in scores.items if not decides(item)}
    return check(before, after, mastered(before, decoding), decoding=decoding, each=each, items=rest)


def of_run(run: RunFolder, names: Sequence[str] = (), *, each: bool = False) -> GateResult:
    """The gate over what a run folder holds, of its leading arm where there was a trial.

    Args:
        run: the folder.
        names: tasks and cells to protect; empty protects what was mastered before.
        each: as for `check`.

    Raises:
        InputError: nothing was measured before and after, or a name was not measured before.
    """
    sides, decoding = comparisons(run).get(lead(run)), decoding_of(run)
    if sides is None:
        got, remedy = "none", "Run the trial, or compare two checkpoints, first."
        raise InputError("measurements before and after", got, remedy, file=run.path)
    if not names:
        return check_mastered(*sides, decoding=decoding, each=each)
    return check(*sides, named(sides[0], names), decoding=decoding, each=each)


def named(before: Side, names: Sequence[str]) -> list[Cell]:
    """The measured cells of the tasks and cells that a user wants protected.

    Raises:
        InputError: one was not measured before: a slip of the pen must not open the gate.
    """
    cells = list(dict.fromkeys(item[:2] for scores in before for item in scores.items))
    known = {name for cell in cells for name in (cell[0], cell_key(*cell))}
    for name in names:
        if name not in known:
            raise unknown_name("task or cell that was measured (--protect)", name, known)
    return [cell for cell in cells if cell[0] in names or cell_key(*cell) in names]


def items_for(cells: int, *, chosen: bool) -> int:
    """Items to measure per cell, so that `cells` protected ones have enough to compare.

    Args:
        cells: how many may be protected.
        chosen: the user names them, so that no items are needed to decide.
    """
    wanted = max(CELL_ITEMS, math.ceil(ALL_ITEMS / max(cells, 1)))
    return wanted if chosen else math.ceil(wanted * DECIDING / (DECIDING - 1))


def lines(result: GateResult, cannot_tell: Literal["fail", "warn"] = "fail") -> list[str]:
    """Why the gate answered as it did, for people; the first line is the answer."""
    told = [_cell(cell) for cell in result.cells]
    if not result.cells:
        return [
            "cannot tell: nothing was protected. No cell was shown to be mastered before, and none was named: "
            "name tasks or cells with --protect, or measure more items",
            *_warned(result, cannot_tell),
        ]
    if result.mean is None:
        head = f"cannot tell: no protected cell was measured on {FEWEST_ITEMS} items both before and after"
        return [head, *told, *_warned(result, cannot_tell)]
    mean = result.mean
    about = (
        f"mean over {count(len(result.cells), 'protected cell')} {points(mean.value)} points "
        f"{between(mean.low, mean.high)}, {count(mean.items, 'item')}"
    )
    if result.outcome == "passed":
        asked = f"a mean loss of {100 * MARGIN:g} points and a loss of {100 * result.limit:g} in any cell are excluded"
        return [f"passed: {about}; {asked}", *told]
    if result.outcome == "damaged":
        return [f"damaged: {about}", *told]
    more = ""
    if result.needed is not None:
        more = f"; about {result.needed:,} items per cell would tell, if nothing was lost (--items)"
    return [f"cannot tell: {about}{more}", *told, *_warned(result, cannot_tell)]


def _cell(cell: CellLoss) -> str:
    name = cell_key(cell.task, cell.level)
    if cell.change is None:
        return f"{name}: not measurable, fewer than {FEWEST_ITEMS} items both before and after"
    found = cell.change
    text = f"{name}: {points(found.value)} points {between(found.low, found.high)}, {count(found.items, 'item')}"
    if cell.lost:
        return f"{text}; damaged (p = {cell.adjusted_p:.2g} after Holm's correction)"
    if found.low < 0:
        return f"{text}; a loss of {points(-found.low).lstrip('+')} points is not excluded"
    return f"{text}; no loss"


def _warned(result: GateResult, cannot_tell: str) -> list[str]:
    if cannot_tell == "fail":
        return []
    return ["warning: this is no pass; --cannot-tell warn leaves with 0 all the same"]
