"""Section of what the model could do before and after, per task and level.

Source: before and after of the leading arm, mean over items and seeds (claims.json).
Unit: success under the declared decoding in percent.
Cost: reads one small file.
Blind spot: held-out items of the same generator or corpus; says nothing of other tasks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Section
from mixwright.estimates.readings import Outcome
from mixwright.records import Claim
from mixwright.runs import RunFolder
from mixwright.verdict.blocks import Block, Claims, Fold, HeatCell, HeatMap, Paragraph, Terms
from mixwright.verdict.cells import CellSeen, cells_of
from mixwright.verdict.claims import claims_of, format_kind, format_not_judged, judge, too_few
from mixwright.verdict.evidence import arm_branches, decoding_of, headline_arm
from mixwright.verdict.text import count, format_share

ABOUT = (
    "Each field has success before and after ({}), its sign, the change in points with its 95 % interval, "
    "{}and the chance level with half of its 95 % interval."
)
WHY_ONE = (
    "The chance level of a cell is one number on this page: that of the held-out items its claim rests on. S is not the "
    "chance level: it uses this model's own answers, the chance level a fixed rule."
)


class Competence(Section):
    """A heat map of tasks x levels, and what the other arms did to the same cells."""

    ORDER: ClassVar[int] = 20
    TITLE: ClassVar[str] = "Competence before and after"

    def blocks(self, run: RunFolder) -> list[Block]:
        """The leading arm's heat map; other arms as counts with their claims folded."""
        every = cells_of(run)
        if not every:
            return []
        cells = [cell for cell in every if not too_few(cell.claim)]
        declared = decoding_of(run)
        levels = any(cell.chance is not None for cell in cells)
        words = ["no change" if cell.claim.kind == "unchanged" else format_kind(cell.claim.kind) for cell in cells]
        terms = ("cell", *(["chance level"] if levels else []), "[low, high]", *words)
        blocks: list[Block] = []
        other = "success under the other decoding, " if any(cell.greedy and cell.sampled for cell in cells) else ""
        if cells:
            blocks += [Paragraph(ABOUT.format(declared, other)), _heat_map(cells, declared), Terms(terms)]
        if levels:
            blocks.insert(2, Paragraph(WHY_ONE))
        left_out = format_not_judged(claims_of(run))
        blocks += [Paragraph(f"{left_out}.")] if left_out else []
        names = [arm for arm in arm_branches(run) if arm != headline_arm(run)]
        everything = judge(run) if names and not run.claims.is_file() else None
        for arm in names:
            own = [c for c in everything if c.arm == arm] if everything is not None else claims_of(run, arm)
            if own:
                blocks += _other(arm, own)
        return blocks


def _heat_map(found: Sequence[CellSeen], declared: Outcome) -> HeatMap:
    by_task: dict[str, dict[float | None, CellSeen]] = defaultdict(dict)
    for cell in found:
        by_task[cell.claim.task][cell.claim.level] = cell
    levels = sorted({c.claim.level for c in found if c.claim.level is not None})
    whole = any(None in cells for cells in by_task.values())
    columns: list[float | None] = [*levels, *([None] if whole else [])]
    names = [f"level {level:g}" if level is not None else ("all levels" if levels else "success") for level in columns]
    rows = []
    for task, cells in sorted(by_task.items()):
        rows.append((task, tuple(_cell(cells[level], declared) if level in cells else None for level in columns)))
    return HeatMap(f"Success before and after, {declared}, in percent", tuple(names), tuple(rows))


def _cell(cell: CellSeen, declared: Outcome) -> HeatCell:
    claim = cell.claim
    other, name = (cell.sampled, "sampled") if declared == "greedy" else (cell.greedy, "greedy")
    beside = [] if other is None else [f"{name} {round(100 * other[0])} → {round(100 * other[1])}"]
    if cell.chance is not None:
        beside.append(f"chance {format_share(cell.chance)}")
    if not claim.difference.n:
        return HeatCell(claim.before, None, claim.kind)
    return HeatCell(claim.before, claim.after, claim.kind, claim.difference, tuple(beside))


def _other(arm: str, claims: list[Claim]) -> list[Block]:
    moved = tuple(claim for claim in claims if claim.kind in ("learnt", "damaged"))
    learnt = sum(claim.kind == "learnt" for claim in moved)
    text = f"Arm {arm}: {learnt} learnt, {len(moved) - learnt} damaged, of {count(len(claims), 'claim')}"
    return [Fold(text, (Claims(f"Claims of arm {arm}", moved),))] if moved else [Paragraph(text + ".")]
