"""Gate where no answer is graded: it never passes, and finds damage by what needs no grader.

Three things are damage of a protected task: its answers went over to the form of another task's; what the model answered
before became far less likely; the loss on the given targets rose as far. A task whose targets are shown to have become
likelier was learnt, so that what it answered before may be gone. A small rise of a loss is shown with few items, and is no
damage here.

Source: measurements of held-out loss, completions.parquet and former.json of a comparison.
Unit: nats a token, 95 % intervals over items.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mixwright.measure.former import FormerAnswers, former_file
from mixwright.records import Interval, cell_key
from mixwright.runs import RunFolder, read_list
from mixwright.verdict.answer_forms import form_changes_of, grouped
from mixwright.verdict.arm_words import listed
from mixwright.verdict.claims import Cell, Compared, compared, interval
from mixwright.verdict.evidence import comparisons, decoding_of, headline_arm
from mixwright.verdict.gate import CellLoss, GateResult, named, of_run
from mixwright.verdict.gate_asked import GateAsked
from mixwright.verdict.text import between, change

FAR = 1.0
"""Nats a token by which former answers, or targets, must be shown to have become less likely.

Tasks that were kept moved by 0.22 at most, tasks that were lost by 2.89 at least (`verdict/sections/answer_forms.py`).
"""


def gate_of(run: RunFolder, asked: GateAsked) -> GateResult:
    """What the gate finds in a run folder, graded or not. Raises InputError as `of_run` does."""
    sides = comparisons(run).get("") if not headline_arm(run) else None  # a trial is judged against its references
    if sides is None or decoding_of(run) != "loss":
        return of_run(run, asked)
    return _ungraded(run, compared(sides, "loss"), named(sides[0], asked.protect), bool(asked.protect))


def far_former(run: RunFolder, tasks: Collection[str]) -> list[FormerAnswers]:
    """Tasks whose former answers are shown to have become less likely by `FAR`, the furthest first."""
    path = former_file(run)
    found = read_list(path, FormerAnswers) if path.is_file() else []
    return sorted((one for one in found if one.task in tasks and one.high < -FAR), key=lambda one: one.change)


def format_unlikely(found: Sequence[FormerAnswers]) -> str:
    """`its own former answers to capitals and sums became far less likely, by 3.1 to 4.2 nats a token`; empty for none."""
    if not found:
        return ""
    most, least = (f"{-one.change:.2g}" for one in (found[0], found[-1]))
    by = most if most == least else f"{least} to {most}"
    return f"its own former answers to {listed([one.task for one in found])} became far less likely, by {by} nats a token"


@dataclass(frozen=True, slots=True)
class _Read:
    """One protected cell."""

    cell: Cell
    rose: Interval | None
    """Change of its held-out loss; None where too few items were read."""
    former: FormerAnswers | None
    lost: bool

    @property
    def told(self) -> str:
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


def _ungraded(run: RunFolder, parts: Sequence[Compared], protected: Sequence[Cell], chosen: bool) -> GateResult:
    """The result; without names every cell is protected."""
    known = {(part.task, part.level): part for part in parts if not part.whole}
    cells = list(protected) if chosen else list(known)
    path = former_file(run)
    former = {one.task: one for one in read_list(path, FormerAnswers)} if path.is_file() else {}
    read = [_read(cell, known.get(cell), former.get(cell[0])) for cell in cells]
    tasks = {task for task, _ in cells}
    forms = grouped(one for one in form_changes_of(run) if one.task in tasks)
    moved = format_unlikely(far_former(run, {one.cell[0] for one in read if one.lost}))
    worse = [f"{cell_key(*one.cell)} {one.rose.value:+.2g}" for one in read if one.lost and one.rose and one.rose.low > FAR]
    rose = f"held-out loss rose far, in nats per token: {listed(worse)}" if worse else ""
    why = "; ".join([*(form.told for form in forms), *filter(None, [moved or rose])])
    losses = tuple(CellLoss(*one.cell, None, word="worsens" if one.lost else "cannot tell") for one in read)
    return GateResult(
        "damaged" if why else "cannot tell", None, losses, None, named=chosen, read=tuple(one.told for one in read), why=why
    )


def _read(cell: Cell, part: Compared | None, former: FormerAnswers | None) -> _Read:
    judged = part is not None and part.adjusted_p is not None
    rose = interval(part.change.success, "loss") if part is not None and judged else None
    learnt = part is not None and part.word == "improves"
    gone = former is not None and former.high < -FAR and not learnt
    return _Read(cell, rose, former, gone or (rose is not None and rose.low > FAR))
