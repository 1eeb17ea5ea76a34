"""Gate where no answer is graded: it never passes, and finds damage by what needs no grader.

Damage of a protected task is what `verdict/claims.py` says, or that its answers went over to the form of another
task's.

Source: measurements of held-out loss, completions.parquet and former.json of a comparison.
Unit: nats a token, 95 % intervals over items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mixwright.measure.former import FormerAnswers
from mixwright.records import Interval, cell_key
from mixwright.runs import RunFolder
from mixwright.verdict.answer_forms import form_changes_of, grouped
from mixwright.verdict.claims import (
    Cell,
    Compared,
    compare_cells,
    far_former_answers,
    format_unlikely,
    former_of,
    interval,
    is_lost,
    rose_far,
)
from mixwright.verdict.evidence import comparisons, decoding_of, headline_arm
from mixwright.verdict.gate import CellLoss, GateResult, check_run, named_cells
from mixwright.verdict.gate_asked import GateAsked
from mixwright.verdict.text import between, change, join_words


def gate_of(run: RunFolder, asked: GateAsked) -> GateResult:
    """What the gate finds in a run folder, graded or not. Raises InputError as `check_run` does."""
    sides = comparisons(run).get("") if not headline_arm(run) else None  # a trial is judged against its references
    if sides is None or decoding_of(run) != "loss":
        return check_run(run, asked)
    return _ungraded(run, compare_cells(sides, "loss"), named_cells(sides[0], asked.protect), bool(asked.protect))


@dataclass(frozen=True, slots=True)
class _ProtectedCell:
    """One protected cell."""

    cell: Cell
    rose: Interval | None
    """Change of its held-out loss; None where too few items were read."""
    former: FormerAnswers | None
    lost: bool

    @property
    def sentence(self) -> str:
        """A line for people."""
        parts = []
        if self.rose is not None:
            ends = between(self.rose.low, self.rose.high, "nats")
            parts.append(f"held-out loss {change(self.rose.value, 'nats')} nats per token {ends}")
        if self.former is not None:
            ends = between(self.former.low, self.former.high, "nats")
            parts.append(f"likelihood of its former answers {change(self.former.change, 'nats')} nats a token {ends}")
        said = "; damaged" if self.lost else ""
        return f"{cell_key(*self.cell)}: {', '.join(parts) or 'not measurable, too few items'}{said}"


def _ungraded(run: RunFolder, parts: Sequence[Compared], protected: Sequence[Cell], names_given: bool) -> GateResult:
    """The result; without names every cell is protected."""
    known = {(part.task, part.level): part for part in parts if not part.whole}
    cells = list(protected) if names_given else list(known)
    former = former_of(run)
    read = _reads(cells, known, former)
    others = [one for one in _reads([cell for cell in known if cell not in cells], known, former) if one.lost]
    tasks = {task for task, _ in cells}
    forms = grouped(one for one in form_changes_of(run) if one.task in tasks)
    moved = format_unlikely(far_former_answers(run, {one.cell[0] for one in read if one.lost}))
    worse = [f"{cell_key(*one.cell)} {one.rose.value:+.2g}" for one in read if one.rose and rose_far(one.rose)]
    rose = f"held-out loss rose far, in nats per token: {join_words(worse)}" if worse else ""
    why = "; ".join([*(form.sentence for form in forms), *filter(None, [moved or rose])])
    told = [one.sentence for one in read] + [f"{one.sentence} (reported only, since others were named)" for one in others]
    losses, beside = (tuple(map(_loss, part)) for part in (read, others))
    outcome = "damaged" if why else "cannot tell"
    return GateResult(outcome, None, losses, None, others=beside, named=names_given, read=tuple(told), why=why)


def _loss(one: _ProtectedCell) -> CellLoss:
    return CellLoss(*one.cell, None, word="worsens" if one.lost else "cannot tell")


def _reads(
    cells: Sequence[Cell], known: Mapping[Cell, Compared], former: Mapping[str, FormerAnswers]
) -> list[_ProtectedCell]:
    return [_read(cell, known.get(cell), former.get(cell[0])) for cell in cells]


def _read(cell: Cell, part: Compared | None, former: FormerAnswers | None) -> _ProtectedCell:
    judged = part is not None and part.adjusted_p is not None
    rose = interval(part.change.success, "loss") if part is not None and judged else None
    learnt = part is not None and part.word == "improves"
    return _ProtectedCell(cell, rose, former, is_lost(rose, former, learnt=learnt))
