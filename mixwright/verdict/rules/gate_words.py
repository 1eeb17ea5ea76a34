"""Words of the gate: its answer, what its items can exclude and cannot, and what became of every cell."""

from __future__ import annotations

from typing import Literal

from mixwright.estimates.cell_states import BAND, MIN_ITEMS
from mixwright.estimates.crossed import Estimate
from mixwright.estimates.exclusion import MEAN_LOSS_MARGIN, ROUND_MARGINS, smallest_excluded
from mixwright.records import cell_key
from mixwright.verdict.page.text import format_bounds, format_count, format_p, points
from mixwright.verdict.rules.gate import EXIT_PASSED, GateResult, JudgedCell


def gate_lines(result: GateResult, cannot_tell: Literal["fail", "warn"] = "fail") -> list[str]:
    """Why the gate answered as it did, for people; the first line is the answer."""
    lines = [result.reason] if result.reason else []
    lines += [*format_look(result), *excludable_lines(result), *format_cells(result)]
    if result.reading_lines:
        reason = result.damage_text or "no answer was graded, so that no loss can be excluded"
        return [f"{result.outcome}: {reason}", *lines]
    if result.dependence is not None and result.dependence.high < 0:
        lines.append(f"answers depend less on their prompts: D {_format_change(result.dependence)}")
    if result.outcome == "cannot tell" and result.mean is not None and result.exit_code(cannot_tell) == EXIT_PASSED:
        lines.append("warning: this is not a pass; the exit code is 0 only because of --cannot-tell warn")
    return [f"{result.outcome}: {_format_answer(result)}", *lines]


def _format_answer(result: GateResult) -> str:
    """What the answer rests on."""
    if not result.cells:
        no_cell = "No cell of enough items" if result.too_small else "No cell"
        return (
            f"nothing was protected. {no_cell} had {100 * BAND[1]:g} % before, and none was named: name tasks or cells with "
            "--protect, or measure more items"
        )
    if result.mean is None:
        return f"no protected cell was measured on {MIN_ITEMS} items both before and after"
    mean_text = f"mean over {format_count(len(result.cells), 'protected cell')} {_format_with_items(result.mean)}"
    if result.outcome == "passed":
        margin_text = f"a mean loss of {100 * result.mean_margin:g} points"
        if result.cell_loss_limit is None:
            return f"{mean_text}; {margin_text} is excluded, and no cell of them is shown to be damaged"
        largest_limit = max(cell.loss_limit or 0.0 for cell in result.cells)
        cells_text = "any cell"
        if largest_limit > result.cell_loss_limit:
            cells_text += f" of {result.cell_rule_items} items or more, {100 * largest_limit:g} in the smallest,"
        return f"{mean_text}; {margin_text} and a loss of {100 * result.cell_loss_limit:g} in {cells_text} are excluded"
    if result.outcome == "damaged" or result.items_needed is None:
        return mean_text
    option = "--items" if result.look is None else "--max-items, over all cells"
    return (
        f"{mean_text}; about {result.items_needed:,} items per cell would be enough to pass, if nothing was lost ({option})"
    )


def _format_change(estimate: Estimate) -> str:
    return f"{points(estimate.value)} points {format_bounds(estimate.low, estimate.high)}"


def _format_with_items(estimate: Estimate) -> str:
    return f"{_format_change(estimate)}, {format_count(estimate.items, 'item')}"


def format_look(result: GateResult) -> list[str]:
    """At which of the planned looks this was decided, and what its interval is; nothing where there were none."""
    if result.look is None:
        return []
    decided, look = "decided" if result.outcome != "cannot tell" else "not decided", result.look
    interval_text = f"the mean's interval is that of this look, {look.z():.2f} standard errors to each side"
    return [f"{decided} at {look.label}; {interval_text}"]


def excludable_lines(result: GateResult) -> list[str]:
    """What the items can exclude at all, and which loss of one cell would not be seen."""
    lines = _group_lines(result)
    if result.unseen_loss is not None:
        cells = "the cell" if len(result.cells) == 1 else f"one of the {len(result.cells)} cells"
        lines.append(
            f"a loss of up to {100 * result.unseen_loss:g} points in {cells} would pass in more than one of 20 cases"
        )
    return lines


def _group_lines(result: GateResult) -> list[str]:
    """What the items of a named group can exclude at all, and what they cannot; nothing without a group."""
    sizes = [cell.change.items for cell in result.cells if cell.change is not None]
    if result.margin is None or not sizes:
        return []
    smallest_margin, items = smallest_excluded(sizes), format_count(sum(sizes), "item")
    case = "in about nine of ten cases in which nothing was lost and a fifth of the answers changes"
    if result.outcome == "passed" and (smallest_margin is None or smallest_margin > result.margin):
        return []  # these items did exclude it, as they would have done in fewer cases
    if smallest_margin is None:
        return [f"{items} can exclude no mean loss of {100 * ROUND_MARGINS[-1]:g} points or less {case}"]
    refused_margins = sorted(
        {margin for margin in (result.margin, MEAN_LOSS_MARGIN) if margin < smallest_margin}, reverse=True
    )
    tail_text = f", not of {' or of '.join(f'{100 * margin:g}' for margin in refused_margins)}" if refused_margins else ""
    if smallest_margin < MEAN_LOSS_MARGIN:
        tail_text += ", so one of the default 5, too"
    elif smallest_margin == MEAN_LOSS_MARGIN:
        tail_text += ", which is the default"
    return [f"{items} can exclude a mean loss of {100 * smallest_margin:g} points{tail_text}, {case}"]


def format_damage(result: GateResult) -> str:
    """Which protected cells are damaged, or by how much their mean fell; empty where nothing is."""
    damaged_cells = [cell_key(cell.task, cell.level) for cell in (*result.cells, *result.damaged_tasks) if cell.is_damaged]
    if damaged_cells:
        return f"{', '.join(damaged_cells)} {'is' if len(damaged_cells) == 1 else 'are'} damaged"
    dependence, mean = result.dependence, result.mean
    if dependence is not None and dependence.high < -result.mean_margin:
        return f"answers depend less on their prompts, by {points(abs(dependence.value)).lstrip('+')} points"
    if result.outcome == "damaged" and mean is not None and mean.high < 0:
        protected_word = "named" if result.named_by_user else "mastered"
        return f"what was {protected_word} is worse by {points(abs(mean.value)).lstrip('+')} points"
    return ""


def format_cells(result: GateResult) -> list[str]:
    """What became of every protected cell, and of those that nobody protected and that fell."""
    if result.reading_lines:
        return list(result.reading_lines)
    other_note = "reported only, since others were named" if result.named_by_user else "not protected, and damaged"
    return [
        *map(_format_cell, (*result.cells, *result.damaged_tasks)),
        *(f"{_format_cell(cell)} ({other_note})" for cell in result.unprotected_losses),
    ]


def _format_cell(cell: JudgedCell) -> str:
    name = f"{cell.task}, all levels" if cell.is_whole_task else cell_key(cell.task, cell.level)
    if cell.change is None:
        return f"{name}: not measurable, fewer than {MIN_ITEMS} items both before and after"
    text = f"{name}: {_format_with_items(cell.change)}"
    if cell.word == "less dependent" and cell.dependence is not None:
        return f"{text}; damaged: D {_format_change(cell.dependence)}"
    if cell.is_damaged:
        return f"{text}; damaged ({format_p(cell.adjusted_p, 'p')} after Holm's correction)"
    return f"{text}; a loss of at most {points(max(-cell.change.low, 0.0)).lstrip('+')} points"
