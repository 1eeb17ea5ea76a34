"""Words of the gate: its answer, what its items can exclude and cannot, and what became of every cell."""

from __future__ import annotations

from typing import Literal

from mixwright.estimates.cell_states import BAND, MIN_ITEMS
from mixwright.estimates.crossed import Estimate
from mixwright.estimates.exclusion import ROUND_MARGINS, smallest_excluded
from mixwright.estimates.protected import ONE_IN_DECIDES
from mixwright.records import cell_key
from mixwright.verdict.page.text import between, count, format_p, percent, points
from mixwright.verdict.rules.gate import EXIT_PASSED, MEAN_LOSS_MARGIN, CellLoss, GateResult


def gate_lines(result: GateResult, cannot_tell: Literal["fail", "warn"] = "fail") -> list[str]:
    """Why the gate answered as it did, for people; the first line is the answer."""
    told = [result.because] if result.because else []
    told += [*format_look(result), *excludable_lines(result), *format_cells(result), *_small(result)]
    if result.read:
        said = result.why or "no answer was graded, so that no loss can be excluded"
        return [f"{result.outcome}: {said}", *told]
    if result.dependence is not None and result.dependence.high < 0:
        told.append(f"answers depend less on their prompts: D {_moved(result.dependence)}")
    if result.outcome == "cannot tell" and result.mean is not None and result.code(cannot_tell) == EXIT_PASSED:
        told.append("warning: this is not a pass; the exit code is 0 only because of --cannot-tell warn")
    return [f"{result.outcome}: {_answer(result)}", *told]


def _answer(result: GateResult) -> str:
    """What the answer rests on."""
    if not result.cells:
        which = "No cell of enough items" if result.small else "No cell"
        return (
            f"nothing was protected. {which} had {100 * BAND[1]:g} % before, and none was named: name tasks or cells with "
            "--protect, or measure more items"
        )
    if result.mean is None:
        return f"no protected cell was measured on {MIN_ITEMS} items both before and after"
    about = f"mean over {count(len(result.cells), 'protected cell')} {_with_items(result.mean)}"
    if result.outcome == "passed":
        asked = f"a mean loss of {100 * result.asked:g} points"
        if result.limit is None:
            return f"{about}; {asked} is excluded, and no cell of them is shown to be damaged"
        some = any(cell.change is not None and cell.change.items < result.least for cell in result.cells)
        which = f" of {result.least} items or more" if some else ""
        return f"{about}; {asked} and a loss of {100 * result.limit:g} in any cell{which} are excluded"
    if result.outcome == "damaged" or result.needed is None:
        return about
    option = "--items" if result.look is None else "--max-items, over all cells"
    return f"{about}; about {result.needed:,} items per cell would be enough to pass, if nothing was lost ({option})"


def _moved(found: Estimate) -> str:
    return f"{points(found.value)} points {between(found.low, found.high)}"


def _with_items(found: Estimate) -> str:
    return f"{_moved(found)}, {count(found.items, 'item')}"


def format_look(result: GateResult) -> list[str]:
    """At which of the planned looks this was decided, and what its interval is; nothing where there were none."""
    if result.look is None:
        return []
    decided, look = "decided" if result.outcome != "cannot tell" else "not decided", result.look
    wide = f"the mean's interval is that of this look, {look.z():.2f} standard errors to each side"
    return [f"{decided} at {look.label}; {wide}"]


def excludable_lines(result: GateResult) -> list[str]:
    """What the items can exclude at all, and which loss of one cell would not be seen."""
    told = _group(result)
    if result.unseen is not None:
        cells = "the cell" if len(result.cells) == 1 else f"one of the {len(result.cells)} cells"
        told.append(f"a loss of up to {100 * result.unseen:g} points in {cells} would pass in more than one of 20 cases")
    return told


def _group(result: GateResult) -> list[str]:
    """What the items of a named group can exclude at all, and what they cannot; nothing without a group."""
    sizes = [cell.change.items for cell in result.cells if cell.change is not None]
    if result.margin is None or not sizes:
        return []
    able, items = smallest_excluded(sizes), count(sum(sizes), "item")
    case = "in about nine of ten cases in which nothing was lost and a fifth of the answers changes"
    if able is None:
        return [f"{items} can exclude no mean loss of {100 * ROUND_MARGINS[-1]:g} points or less {case}"]
    beyond = sorted({margin for margin in (result.margin, MEAN_LOSS_MARGIN) if margin < able}, reverse=True)
    refused = f", not of {' or of '.join(f'{100 * margin:g}' for margin in beyond)}" if beyond else ""
    if able < MEAN_LOSS_MARGIN:
        refused += ", so one of the default 5, too"
    elif able == MEAN_LOSS_MARGIN:
        refused += ", which is the default"
    return [f"{items} can exclude a mean loss of {100 * able:g} points{refused}, {case}"]


def format_damage(result: GateResult) -> str:
    """Which protected cells are damaged, or by how much their mean fell; empty where nothing is."""
    lost = [cell_key(cell.task, cell.level) for cell in (*result.cells, *result.whole) if cell.lost]
    if lost:
        return f"{', '.join(lost)} {'is' if len(lost) == 1 else 'are'} damaged"
    depends, mean = result.dependence, result.mean
    if depends is not None and depends.high < -result.asked:
        return f"answers depend less on their prompts, by {points(abs(depends.value)).lstrip('+')} points"
    if result.outcome == "damaged" and mean is not None and mean.high < 0:
        return f"what was {'named' if result.named else 'mastered'} is worse by {points(abs(mean.value)).lstrip('+')} points"
    return ""


def format_cells(result: GateResult) -> list[str]:
    """What became of every protected cell, and of those that nobody protected and that fell."""
    if result.read:
        return list(result.read)
    beside = "reported only, since others were named" if result.named else "not protected, and damaged"
    return [*map(_cell, (*result.cells, *result.whole)), *(f"{_cell(cell)} ({beside})" for cell in result.others)]


def _cell(cell: CellLoss) -> str:
    name = f"{cell.task}, all levels" if cell.whole else cell_key(cell.task, cell.level)
    if cell.change is None:
        return f"{name}: not measurable, fewer than {MIN_ITEMS} items both before and after"
    text = f"{name}: {_with_items(cell.change)}"
    if cell.word == "less dependent" and cell.dependence is not None:
        return f"{text}; damaged: D {_moved(cell.dependence)}"
    if cell.lost:
        return f"{text}; damaged ({format_p(cell.adjusted_p, 'p')} after Holm's correction)"
    return f"{text}; a loss of at most {points(max(-cell.change.low, 0.0)).lstrip('+')} points"


def _small(result: GateResult) -> list[str]:
    """Cells that could not be protected, and why."""
    return [
        f"{cell_key(*found.cell)}: {percent(found.before)} before, and not protected: one item in {ONE_IN_DECIDES} decides "
        f"what is, {found.deciding} of its {count(found.items, 'item')}, and fewer than {MIN_ITEMS} do not; measure "
        f"about {MIN_ITEMS * ONE_IN_DECIDES} items, or name it with --protect"
        for found in result.small
    ]
