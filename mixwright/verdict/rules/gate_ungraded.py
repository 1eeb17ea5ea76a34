"""Gate where no answer is graded: it never passes, and finds damage by what needs no grader.

Damage of a protected task is what `verdict/rules/claims.py` says, or that its answers went over to the form of another
task's.

Source: measurements of held-out loss, completions.parquet and former.json of a comparison.
Unit: nats a token, 95 % intervals over items.
"""

from __future__ import annotations

from mixwright.estimates.outcome import TaskLevel
from mixwright.records import FormerAnswers, Interval, cell_key
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.text import format_bounds, format_signed, join_words
from mixwright.verdict.rules import claims
from mixwright.verdict.rules.answer_forms import form_changes_of, group_takeovers
from mixwright.verdict.rules.evidence import Sides
from mixwright.verdict.rules.gate import GateResult, JudgedCell, named_cells
from mixwright.verdict.rules.gate_question import GateQuestion


def check_ungraded(run: RunFolder, sides: Sides, question: GateQuestion) -> GateResult:
    """What the gate finds in a comparison of two checkpoints without graded answers.

    Args:
        run: the folder.
        sides: what was measured before and after.
        question: what is protected.

    Raises:
        InputError: a name was not measured before, or a file is broken.
    """
    comparison_by_cell = {
        (comparison.task, comparison.level): comparison
        for comparison in claims.compare_cells(sides, "loss")
        if not comparison.is_whole_task
    }
    protected = (
        named_cells(sides[0], question.protect) if question.protect else list(comparison_by_cell)
    )  # without names every cell
    former_by_task = claims.read_former_answers(run)
    cells: list[JudgedCell] = []
    unprotected_losses: list[JudgedCell] = []
    reading_lines, unprotected_lines, far_rises = [], [], []
    protected_cells, protected_tasks = set(protected), {task for task, _ in protected}
    for cell in [*protected, *(cell for cell in comparison_by_cell if cell not in protected_cells)]:
        comparison, former_answers = comparison_by_cell.get(cell), former_by_task.get(cell[0])
        is_judged = comparison is not None and comparison.adjusted_p is not None
        loss_rise = claims.to_interval(comparison.change.estimate, "loss") if comparison is not None and is_judged else None
        is_damaged = claims.is_shown_damaged(
            loss_rise, former_answers, learnt=comparison is not None and comparison.word == "improves"
        )
        judged_cell, reading = (
            JudgedCell(*cell, None, word="worsens" if is_damaged else "cannot tell"),
            _format_reading(cell, loss_rise, former_answers, is_damaged=is_damaged),
        )
        if cell in protected_cells:
            cells.append(judged_cell)
            reading_lines.append(reading)
            far_rises += (
                [f"{cell_key(*cell)} {loss_rise.value:+.2g}"]
                if loss_rise is not None and claims.has_risen_far(loss_rise)
                else []
            )
        elif is_damaged:
            unprotected_losses.append(judged_cell)
            unprotected_lines.append(f"{reading} (reported only, since others were named)")
    takeovers = group_takeovers(form_change for form_change in form_changes_of(run) if form_change.task in protected_tasks)
    former_text = claims.format_unlikely(
        claims.find_far_former_answers(run, {cell.task for cell in cells if cell.is_damaged})
    )
    rise_text = f"held-out loss rose far, in nats per token: {join_words(far_rises)}" if far_rises else ""
    damage = "; ".join([*(form.sentence for form in takeovers), *filter(None, [former_text or rise_text])])
    return GateResult(
        "damaged" if damage else "cannot tell",
        None,
        tuple(cells),
        None,
        unprotected_losses=tuple(unprotected_losses),
        named_by_user=bool(question.protect),
        reading_lines=(*reading_lines, *unprotected_lines),
        damage_text=damage,
    )


def _format_reading(cell: TaskLevel, loss_rise: Interval | None, former: FormerAnswers | None, *, is_damaged: bool) -> str:
    """What was read of a cell: the change of its held-out loss, None for too few items, and its former answers."""
    readings = []
    if loss_rise is not None:
        rise_text = (
            f"{format_signed(loss_rise.value, 'nats')} nats per token {format_bounds(loss_rise.low, loss_rise.high, 'nats')}"
        )
        readings.append(f"held-out loss {rise_text}")
    if former is not None:
        change_text = f"{format_signed(former.change, 'nats')} nats a token {format_bounds(former.low, former.high, 'nats')}"
        readings.append(f"likelihood of its former answers {change_text}")
    return f"{cell_key(*cell)}: {', '.join(readings) or 'not measurable, too few items'}{'; damaged' if is_damaged else ''}"
