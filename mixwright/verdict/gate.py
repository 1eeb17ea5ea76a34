"""Gate on a checkpoint: it passes when it is shown not to have lost what was protected, not when no loss was shown.

Non-inferiority: the lower end of the protected cells' mean change lies above `MARGIN`, no protected cell has a
significant loss (Holm over them), and no cell's lower end lies under `CELL_MARGIN`. Else something is damaged, or the
items are too few to tell. It does not pass either when success held but a loss of dependence on the prompt beyond
`MARGIN` is shown (skill gave way to the commonest answer), or, where nobody said what matters, when a cell that was not
protected is shown to be damaged. Which cells are protected by default is decided on other items than those compared: a
cell chosen for its success on some items falls back to its mean on the same items, and that is no damage.

With a margin of the user's own what was named is one group: its mean loss must be shown to be smaller than that margin, and
no cell of it may show a significant loss; no cell has to exclude a loss by itself, which few items cannot.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mixwright.errors import InputError, unknown_name
from mixwright.estimates.cell_states import BAND, FEWEST_ITEMS
from mixwright.estimates.crossed import POWER, Estimate
from mixwright.estimates.exclusion import ROUND, items_excluding, smallest_excluded
from mixwright.estimates.intervals import holm, t_quantile
from mixwright.estimates.judgement import ALPHA
from mixwright.estimates.outcome import Change, Item, change
from mixwright.estimates.protected import DECIDING, Side, cell_order, decides, mastered
from mixwright.estimates.readings import READINGS, Decoding
from mixwright.records import cell_key
from mixwright.runs import RunFolder
from mixwright.verdict.claims import Cell
from mixwright.verdict.evidence import comparisons, decoding_of, lead
from mixwright.verdict.text import between as ends_told
from mixwright.verdict.text import count, p_told, percent, points

MARGIN = 0.05
"""Mean loss over the protected cells that must be excluded, a share; with `each`, of every cell."""
CELL_MARGIN = 0.15
"""Loss of any one protected cell that must be excluded."""
CELL_ITEMS = 200
"""Items compared per protected cell, unless the user says otherwise."""
ALL_ITEMS = 800
"""Items compared over all protected cells, at least: with a fifth of them changing for no reason, these exclude `MARGIN` in
about nine of ten cases, and 200 do not."""
PASSED, DAMAGED, CANNOT_TELL = 0, 3, 4
"""Exit codes; 1 is wrong input, 2 our bug."""

Outcome = Literal["passed", "damaged", "cannot tell"]


@dataclass(frozen=True, slots=True)
class CellLoss:
    """One protected cell."""

    task: str
    """Task name."""
    level: float | None
    """Level; None for a task without levels."""
    change: Estimate | None
    """Of success, after minus before; None where fewer than `FEWEST_ITEMS` items were measured on both sides."""
    adjusted_p: float = 1.0
    """After Holm's correction over the cells that are judged together."""

    @property
    def lost(self) -> bool:
        """A significant loss."""
        return self.change is not None and self.change.high < 0 and self.adjusted_p < ALPHA


@dataclass(frozen=True, slots=True)
class TooSmall:
    """One cell that was mastered by all of its items, and of which too few decide what is protected."""

    cell: Cell
    """Task and level."""
    before: float
    """Success over all of its items, 0..1."""
    items: int
    """How many they are."""
    deciding: int
    """How many of them decide."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """What the gate says, and why."""

    outcome: Outcome
    """passed, damaged or cannot tell."""
    mean: Estimate | None
    """Mean change over the protected cells that could be compared, each counted once."""
    cells: tuple[CellLoss, ...]
    """The protected cells."""
    limit: float
    """Loss of one cell that had to be excluded."""
    dependence: Estimate | None = None
    """Mean change of D over the same cells."""
    others: tuple[CellLoss, ...] = ()
    """Cells that were not protected and fell significantly."""
    named: bool = False
    """The user said what matters: other cells are reported, and do not fail."""
    needed: int | None = None
    """Items per cell that would pass an unharmed checkpoint in `POWER` of cases; None where items cannot help."""
    small: tuple[TooSmall, ...] = ()
    """Cells that would be protected, were they not too small to decide it."""
    margin: float | None = None
    """Mean loss by which the named cells are judged as one group, a share; None asks `MARGIN`, and `limit` of each cell."""

    @property
    def asked(self) -> float:
        """Mean loss that had to be excluded, a share."""
        return MARGIN if self.margin is None else self.margin

    def code(self, cannot_tell: Literal["fail", "warn"] = "fail") -> int:
        """Exit code; with `warn`, too wide an interval does not fail. What was not measured at all always does."""
        if self.outcome == "cannot tell":
            measured = self.mean is not None and all(cell.change is not None for cell in self.cells)
            return PASSED if cannot_tell == "warn" and measured else CANNOT_TELL
        return PASSED if self.outcome == "passed" else DAMAGED


def check(
    before: Side,
    after: Side,
    protected: Collection[Cell],
    *,
    decoding: Decoding = "greedy",
    each: bool = False,
    items: Collection[Item] | None = None,
    named: bool = False,
    margin: float | None = None,
) -> GateResult:
    """Compare the protected cells. Pure.

    Args:
        before: one per seed.
        after: one per seed, in the same order.
        protected: cells that must not be damaged.
        decoding: what success is read from.
        each: every cell must exclude a loss of `MARGIN`, not of `CELL_MARGIN`.
        items: those to compare; None takes all.
        named: the user said what is protected.
        margin: mean loss, a share, by which the cells are judged as one group; none of them may be significantly worse,
            but none has to exclude a loss by itself. None asks for `MARGIN`, and for that of each cell.
    """
    limit = MARGIN if each else CELL_MARGIN
    wanted = None if items is None else set(items)

    def moved(cells: Collection[Cell], wanted: Collection[Item] | None = wanted) -> Change | None:
        def meant(item: Item) -> bool:
            return item[:2] in cells and (wanted is None or item in wanted)

        found = change(before, after, decoding=decoding, weigh="cells", only=meant)
        return found if found is not None and math.isfinite(found.success.value) else None

    every = {cell: moved([cell]) for cell in protected}
    known = {cell: found for cell, found in every.items() if found is not None and len(found.items) >= FEWEST_ITEMS}
    seen = {item[:2] for scores in before for item in scores.items}
    rest = {cell: moved([cell], None) for cell in sorted(seen - set(every), key=cell_order)}  # all items: none chose these
    cells = tuple(_losses({cell: known.get(cell) for cell in every}))
    others = tuple(cell for cell in _losses(rest) if cell.lost)
    bare = GateResult(
        "damaged" if others and not named else "cannot tell", None, cells, limit, None, others, named, margin=margin
    )
    whole = moved(list(known)) if known else None
    return bare if whole is None else _judged(bare, whole, known)


def _judged(bare: GateResult, whole: Change, known: Mapping[Cell, Change]) -> GateResult:
    """The result with the protected cells' mean change, where some could be compared."""
    cells, group = bare.cells, bare.margin is not None
    mean, depends = whole.success, whole.dependence if math.isfinite(whole.dependence.value) else None
    near = mean.low > -bare.asked
    safe = near and all(c.change is not None and (group or c.change.low > -bare.limit) for c in cells)
    lost = bare.outcome == "damaged" or any(cell.lost for cell in cells)
    lost |= depends is not None and depends.high < -bare.asked
    lost |= mean.high < 0 and not (near if group else safe)
    outcome: Outcome = "damaged" if lost else "passed" if safe else "cannot tell"
    needed = None
    if outcome == "cannot tell" and len(known) == len(cells):
        own = [] if group else [(found.success, len(found.items)) for found in known.values()]
        needed = math.ceil(_needed(mean, bare.asked, own, bare.limit, len(whole.items) / len(cells)))
    return replace(bare, outcome=outcome, mean=mean, dependence=depends, needed=needed)


def _losses(found: Mapping[Cell, Change | None]) -> list[CellLoss]:
    """These cells with Holm's correction over those that were measured."""
    known = {cell: moved for cell, moved in found.items() if moved is not None and len(moved.items) >= FEWEST_ITEMS}
    adjusted = dict(zip(known, holm([moved.success.p for moved in known.values()]), strict=True))
    return [CellLoss(*cell, known[cell].success if cell in known else None, adjusted.get(cell, 1.0)) for cell in found]


def _needed(mean: Estimate, margin: float, cells: Sequence[tuple[Estimate, int]], limit: float, items: float) -> float:
    """Items per cell, from the standard errors seen; `items`: how many there were per cell."""

    def times(estimate: Estimate, margin: float) -> float:
        width = (t_quantile(estimate.freedom) + t_quantile(estimate.freedom, 2 * POWER - 1)) * estimate.error
        return (width / margin) ** 2

    return max([times(mean, margin) * items, *(times(own, limit) * number for own, number in cells)])


def check_mastered(before: Side, after: Side, *, decoding: Decoding = "greedy", each: bool = False) -> GateResult:
    """The gate over what was mastered before, on the items that did not decide it."""
    rest = {item for scores in before for item in scores.items if not decides(item)}
    found = check(before, after, mastered(before, decoding), decoding=decoding, each=each, items=rest)
    return replace(found, small=too_small(before, decoding))


def too_small(before: Side, decoding: Decoding) -> tuple[TooSmall, ...]:
    """Cells over the band on all of their items, greedy or sampled, of which fewer than `FEWEST_ITEMS` decide."""
    found: dict[Cell, TooSmall] = {}
    for name in (READINGS[decoding].column, READINGS["sampled"].column):
        values: dict[Cell, dict[Item, list[float]]] = {}
        for scores in before:
            for item, value in scores.scores.get(name, {}).items():
                values.setdefault(item[:2], {}).setdefault(item, []).append(value)
        for cell, items in values.items():
            share, deciding = float(np.mean([np.mean(own) for own in items.values()])), sum(map(decides, items))
            if deciding < FEWEST_ITEMS and share >= BAND[1]:
                found.setdefault(cell, TooSmall(cell, share, len(items), deciding))
    return tuple(found[cell] for cell in sorted(found, key=cell_order))


def of_run(run: RunFolder, names: Sequence[str] = (), *, each: bool = False, margin: float | None = None) -> GateResult:
    """The gate over what a run folder holds, of its leading arm where there was a trial.

    Args:
        run: the folder.
        names: tasks and cells to protect; empty protects what was mastered before.
        each: as for `check`.
        margin: the same, of what `names` holds.

    Raises:
        InputError: nothing was measured before and after, or a name was not measured before.
    """
    sides, decoding = comparisons(run).get(lead(run)), decoding_of(run)
    if sides is None:
        got, remedy = "none", "Run the trial, or compare two checkpoints, first."
        raise InputError("measurements before and after", got, remedy, file=run.path)
    if decoding not in ("greedy", "sampled"):
        remedy = "Give the gate a corpus with answers that a grader can judge."
        raise InputError(
            "graded answers, by which the gate judges a loss", f"a run of {decoding} alone", remedy, file=run.path
        )
    return between(sides, decoding, names, each=each, margin=margin)


def between(
    sides: tuple[Side, Side], decoding: Decoding, names: Sequence[str], *, each: bool = False, margin: float | None = None
) -> GateResult:
    """The gate over two sides; the arguments as for `of_run`, and it raises the same for a name."""
    if not names:
        return check_mastered(*sides, decoding=decoding, each=each)
    return check(*sides, named(sides[0], names), decoding=decoding, each=each, named=True, margin=margin)


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


def items_for(cells: int, *, chosen: bool, margin: float | None = None) -> int:
    """Items to measure per cell, so that `cells` protected ones have enough to compare.

    Args:
        cells: how many may be protected.
        chosen: the user names them, so that no items are needed to decide.
        margin: the mean loss over them that is to be excluded, where the user says which; a share.
    """
    if margin is not None:
        return items_excluding(margin, max(cells, 1))
    wanted = max(CELL_ITEMS, math.ceil(ALL_ITEMS / max(cells, 1)))
    return wanted if chosen else math.ceil(wanted * DECIDING / (DECIDING - 1))


def lines(result: GateResult, cannot_tell: Literal["fail", "warn"] = "fail") -> list[str]:
    """Why the gate answered as it did, for people; the first line is the answer."""
    told = [*excludable(result), *cells_told(result), *_small(result)]
    if result.dependence is not None and result.dependence.high < 0:
        found = result.dependence
        told.append(
            f"answers depend less on their prompts: D {points(found.value)} points {ends_told(found.low, found.high)}"
        )
    if not result.cells:
        which = "No cell of enough items" if result.small else "No cell"
        return [
            f"{result.outcome}: nothing was protected. {which} had {100 * BAND[1]:g} % before, and none was named: "
            "name tasks or cells with --protect, or measure more items",
            *told,
        ]
    if result.mean is None:
        head = f"{result.outcome}: no protected cell was measured on {FEWEST_ITEMS} items both before and after"
        return [head, *told]
    mean = result.mean
    about = (
        f"mean over {count(len(result.cells), 'protected cell')} {points(mean.value)} points "
        f"{ends_told(mean.low, mean.high)}, {count(mean.items, 'item')}"
    )
    if result.outcome == "passed":
        asked = f"a mean loss of {100 * result.asked:g} points and a loss of {100 * result.limit:g} in any cell are excluded"
        if result.margin is not None:
            asked = f"a mean loss of {100 * result.asked:g} points is excluded, and no cell of them is shown to be damaged"
        return [f"passed: {about}; {asked}", *told]
    if result.outcome == "damaged":
        return [f"damaged: {about}", *told]
    more = ""
    if result.needed is not None:
        more = f"; about {result.needed:,} items per cell would be enough to pass, if nothing was lost (--items)"
    return [f"cannot tell: {about}{more}", *told, *_warned(result, cannot_tell)]


def excludable(result: GateResult) -> list[str]:
    """What the items of a named group can exclude at all, and what they cannot; nothing without a group."""
    sizes = [cell.change.items for cell in result.cells if cell.change is not None]
    if result.margin is None or not sizes:
        return []
    able, items = smallest_excluded(sizes), count(sum(sizes), "item")
    case = "in about nine of ten cases in which nothing was lost and a fifth of the answers changes"
    if able is None:
        return [f"{items} can exclude no mean loss of {100 * ROUND[-1]:g} points or less {case}"]
    beyond = sorted({margin for margin in (result.margin, MARGIN) if margin < able}, reverse=True)
    refused = f", not of {' or of '.join(f'{100 * margin:g}' for margin in beyond)}" if beyond else ""
    default = "" if able > MARGIN else ", so one of the default 5, too" if able < MARGIN else ", which is the default"
    return [f"{items} can exclude a mean loss of {100 * able:g} points{refused}{default}, {case}"]


def cells_told(result: GateResult) -> list[str]:
    """What became of every protected cell, and of those that nobody protected and that fell."""
    return [*(_cell(cell) for cell in result.cells), *_others(result)]


def _cell(cell: CellLoss) -> str:
    name = cell_key(cell.task, cell.level)
    if cell.change is None:
        return f"{name}: not measurable, fewer than {FEWEST_ITEMS} items both before and after"
    found = cell.change
    text = f"{name}: {points(found.value)} points {ends_told(found.low, found.high)}, {count(found.items, 'item')}"
    if cell.lost:
        return f"{text}; damaged ({p_told(cell.adjusted_p, 'p')} after Holm's correction)"
    return f"{text}; a loss of at most {points(max(-found.low, 0.0)).lstrip('+')} points"


def _others(result: GateResult) -> list[str]:
    """Cells that nobody protected and that fell."""
    told = "reported only, since others were named" if result.named else "not protected, and damaged"
    return [f"{_cell(cell)} ({told})" for cell in result.others]


def _small(result: GateResult) -> list[str]:
    """Cells that could not be protected, and why."""
    return [
        f"{cell_key(*found.cell)}: {percent(found.before)} before, and not protected: one item in {DECIDING} decides what "
        f"is, {found.deciding} of its {count(found.items, 'item')}, and fewer than {FEWEST_ITEMS} do not; measure about "
        f"{FEWEST_ITEMS * DECIDING} items, or name it with --protect"
        for found in result.small
    ]


def _warned(result: GateResult, cannot_tell: Literal["fail", "warn"]) -> list[str]:
    if result.code(cannot_tell) != PASSED:
        return []
    return ["warning: this is not a pass; the exit code is 0 only because of --cannot-tell warn"]
