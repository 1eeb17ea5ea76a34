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
from mixwright.verdict.page.evidence import comparisons, decoding_of, headline_arm
from mixwright.verdict.page.text import between, change, join_words
from mixwright.verdict.rules import claims
from mixwright.verdict.rules.answer_forms import form_changes_of, grouped
from mixwright.verdict.rules.gate import CellLoss, GateResult, check_run, named_cells
from mixwright.verdict.rules.gate_asked import GateAsked


def gate_of(run: RunFolder, asked: GateAsked) -> GateResult:
    """What the gate finds in a run folder, graded or not. Raises InputError as `check_run` does."""
    sides = comparisons(run).get("") if not headline_arm(run) else None  # a trial is judged against its references
    if sides is None or decoding_of(run) != "loss":
        return check_run(run, asked)
    known = {(part.task, part.level): part for part in claims.compare_cells(sides, "loss") if not part.whole}
    protected = named_cells(sides[0], asked.protect) if asked.protect else list(known)  # without names every cell
    former = claims.former_of(run)
    cells: list[CellLoss] = []
    others: list[CellLoss] = []
    read, beside, rose = [], [], []
    for cell in [*protected, *(cell for cell in known if cell not in protected)]:
        part, own = known.get(cell), former.get(cell[0])
        judged = part is not None and part.adjusted_p is not None
        moved = claims.interval(part.change.success, "loss") if part is not None and judged else None
        lost = claims.is_lost(moved, own, learnt=part is not None and part.word == "improves")
        found, told = (
            CellLoss(*cell, None, word="worsens" if lost else "cannot tell"),
            _sentence(cell, moved, own, lost=lost),
        )
        if cell in protected:
            cells.append(found)
            read.append(told)
            rose += [f"{cell_key(*cell)} {moved.value:+.2g}"] if moved is not None and claims.rose_far(moved) else []
        elif lost:
            others.append(found)
            beside.append(f"{told} (reported only, since others were named)")
    forms = grouped(one for one in form_changes_of(run) if one.task in {task for task, _ in protected})
    unlikely = claims.format_unlikely(claims.far_former_answers(run, {cell.task for cell in cells if cell.lost}))
    far = f"held-out loss rose far, in nats per token: {join_words(rose)}" if rose else ""
    why = "; ".join([*(form.sentence for form in forms), *filter(None, [unlikely or far])])
    return GateResult(
        "damaged" if why else "cannot tell",
        None,
        tuple(cells),
        None,
        others=tuple(others),
        named=bool(asked.protect),
        read=(*read, *beside),
        why=why,
    )


def _sentence(cell: claims.Cell, rose: Interval | None, former: FormerAnswers | None, *, lost: bool) -> str:
    """What was read of a cell: the change of its held-out loss, None for too few items, and its former answers."""
    parts = []
    if rose is not None:
        parts.append(f"held-out loss {change(rose.value, 'nats')} nats per token {between(rose.low, rose.high, 'nats')}")
    if former is not None:
        moved = f"{change(former.change, 'nats')} nats a token {between(former.low, former.high, 'nats')}"
        parts.append(f"likelihood of its former answers {moved}")
    return f"{cell_key(*cell)}: {', '.join(parts) or 'not measurable, too few items'}{'; damaged' if lost else ''}"
