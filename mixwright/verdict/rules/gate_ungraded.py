"""Gate where no answer is graded: it never passes, and finds damage by what needs no grader.

Damage of a protected task is what `verdict/rules/claims.py` says, or that its answers went over to the form of another
task's.

Source: measurements of held-out loss, completions.parquet and former.json of a comparison.
Unit: nats a token, 95 % intervals over items.
"""

from __future__ import annotations

from mixwright.measure.former import FormerAnswers
from mixwright.records import Interval, cell_key
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.text import between, change, join_words
from mixwright.verdict.rules import claims
from mixwright.verdict.rules.answer_forms import form_changes_of, group_takeovers
from mixwright.verdict.rules.evidence import comparisons, decoding_of, headline_arm
from mixwright.verdict.rules.gate import CellLoss, GateResult, check_run, named_cells
from mixwright.verdict.rules.gate_asked import GateAsked


def check_gate(run: RunFolder, question: GateAsked) -> GateResult:
    """What the gate finds in a run folder, graded or not. Raises InputError as `check_run` does."""
    sides = comparisons(run).get("") if not headline_arm(run) else None  # a trial is judged against its references
    if sides is None or decoding_of(run) != "loss":
        return check_run(run, question)
    compared = {(part.task, part.level): part for part in claims.compare_cells(sides, "loss") if not part.whole}
    protected = named_cells(sides[0], question.protect) if question.protect else list(compared)  # without names every cell
    former_by_task = claims.read_former_answers(run)
    cells: list[CellLoss] = []
    others: list[CellLoss] = []
    readings, other_readings, far_rises = [], [], []
    protected_cells, protected_tasks = set(protected), {task for task, _ in protected}
    for cell in [*protected, *(cell for cell in compared if cell not in protected_cells)]:
        part, former_answers = compared.get(cell), former_by_task.get(cell[0])
        is_judged = part is not None and part.adjusted_p is not None
        loss_rise = claims.interval(part.change.success, "loss") if part is not None and is_judged else None
        is_damaged = claims.is_shown_damaged(loss_rise, former_answers, learnt=part is not None and part.word == "improves")
        cell_loss, reading = (
            CellLoss(*cell, None, word="worsens" if is_damaged else "cannot tell"),
            _format_reading(cell, loss_rise, former_answers, is_damaged=is_damaged),
        )
        if cell in protected_cells:
            cells.append(cell_loss)
            readings.append(reading)
            far_rises += (
                [f"{cell_key(*cell)} {loss_rise.value:+.2g}"]
                if loss_rise is not None and claims.has_risen_far(loss_rise)
                else []
            )
        elif is_damaged:
            others.append(cell_loss)
            other_readings.append(f"{reading} (reported only, since others were named)")
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
        others=tuple(others),
        named=bool(question.protect),
        readings=(*readings, *other_readings),
        damage_text=damage,
    )


def _format_reading(cell: claims.Cell, rise: Interval | None, former: FormerAnswers | None, *, is_damaged: bool) -> str:
    """What was read of a cell: the change of its held-out loss, None for too few items, and its former answers."""
    parts = []
    if rise is not None:
        parts.append(f"held-out loss {change(rise.value, 'nats')} nats per token {between(rise.low, rise.high, 'nats')}")
    if former is not None:
        change_text = f"{change(former.change, 'nats')} nats a token {between(former.low, former.high, 'nats')}"
        parts.append(f"likelihood of its former answers {change_text}")
    return f"{cell_key(*cell)}: {', '.join(parts) or 'not measurable, too few items'}{'; damaged' if is_damaged else ''}"
