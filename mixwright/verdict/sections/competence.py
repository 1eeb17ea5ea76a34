"""Section of what the model could do before and after, per task and level.

Source: before and after of the leading arm, mean over items and seeds (claims.json).
Unit: success under the declared decoding in percent.
Cost: reads one small file.
Blind spot: held-out items of the same generator or corpus; says nothing of other tasks.
"""

from __future__ import annotations

from collections import defaultdict
from typing import ClassVar

from mixwright.contracts import Section
from mixwright.records import Claim
from mixwright.runs import RunFolder
from mixwright.verdict.blocks import Block, Claims, Fold, HeatCell, HeatMap, Paragraph
from mixwright.verdict.claims import claims_of, judge
from mixwright.verdict.evidence import arms, lead
from mixwright.verdict.text import count


class Competence(Section):
    """A heat map of tasks x levels, and what the other arms did to the same cells."""

    ORDER: ClassVar[int] = 20
    TITLE: ClassVar[str] = "Competence before and after"

    def blocks(self, run: RunFolder) -> list[Block]:
        """The leading arm's heat map; other arms as counts with their claims folded."""
        claims = claims_of(run)
        if not claims:
            return []
        blocks: list[Block] = [_heat_map(claims)]
        names = [arm for arm in arms(run) if arm != lead(run)]
        everything = judge(run) if names and not run.claims.is_file() else None
        for arm in names:
            own = [c for c in everything if c.arm == arm] if everything is not None else claims_of(run, arm)
            if own:
                blocks += _other(arm, own)
        return blocks


def _heat_map(claims: list[Claim]) -> HeatMap:
    by_task: dict[str, dict[float | None, Claim]] = defaultdict(dict)
    for claim in claims:
        by_task[claim.task][claim.level] = claim
    levels = sorted({c.level for c in claims if c.level is not None})
    whole = any(None in cells for cells in by_task.values())
    columns: list[float | None] = [*levels, *([None] if whole else [])]
    names = [f"level {level:g}" if level is not None else ("all levels" if levels else "success") for level in columns]
    rows = []
    for task, cells in sorted(by_task.items()):
        rows.append((task, tuple(_cell(cells[level]) if level in cells else None for level in columns)))
    return HeatMap("Success before and after, in percent", tuple(names), tuple(rows))


def _cell(claim: Claim) -> HeatCell:
    return HeatCell(claim.before, claim.after if claim.difference.n else None, claim.kind)


def _other(arm: str, claims: list[Claim]) -> list[Block]:
    moved = tuple(claim for claim in claims if claim.kind in ("learnt", "damaged"))
    learnt = sum(claim.kind == "learnt" for claim in moved)
    text = f"Arm {arm}: {learnt} learnt, {len(moved) - learnt} damaged, of {count(len(claims), 'claim')}"
    return [Fold(text, (Claims(f"Claims of arm {arm}", moved),))] if moved else [Paragraph(text + ".")]
