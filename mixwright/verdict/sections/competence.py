"""Section of what the model could do before and after, per task and level.

Source: before and after of the leading arm, mean over items and seeds (claims.json).
Unit: success under the declared decoding in percent.
Cost: reads one small file.
Blind spot: held-out items of the same generator or corpus; says nothing of other tasks.
"""

from __future__ import annotations

from collections import defaultdict

from mixwright.contracts import Section
from mixwright.estimates.readings import Outcome
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.blocks import Block, Claims, Fold, HeatCell, HeatMap, Paragraph, Terms
from mixwright.verdict.page.text import format_count, format_level, format_share
from mixwright.verdict.rules.cells import PageCell, cells_of
from mixwright.verdict.rules.claims import format_kind, format_not_judged, has_too_few_items, leading_claims, read_claims
from mixwright.verdict.rules.evidence import arm_branches, headline_arm, read_outcome

ABOUT = (
    "Each field has success before and after ({}), its sign, the change in points with its 95 % interval, "
    "{}and the chance level with half of its 95 % interval."
)
WHY_ONE_CHANCE_LEVEL = (
    "The chance level of a cell is one number on this page: that of the held-out items its claim rests on. S is not the "
    "chance level: it uses this model's own answers, the chance level a fixed rule."
)


class Competence(Section):
    """A heat map of tasks x levels, and what the other arms did to the same cells."""

    ORDER = 20
    TITLE = "Competence before and after"

    def blocks(self, run: RunFolder) -> list[Block]:
        """The leading arm's heat map; other arms as counts with their claims folded."""
        all_cells, declared = cells_of(run), read_outcome(run)
        if not all_cells:
            return []
        blocks: list[Block] = []
        if cells := [cell for cell in all_cells if not has_too_few_items(cell.claim)]:
            has_chance_level = any(cell.chance is not None for cell in cells)
            words = ["no change" if cell.claim.kind == "unchanged" else format_kind(cell.claim.kind) for cell in cells]
            other_decoding = (
                "success under the other decoding, " if any(cell.greedy and cell.sampled for cell in cells) else ""
            )
            map_blocks = [Paragraph(ABOUT.format(declared, other_decoding)), _heat_map(cells, declared)]
            chance_note, terms = ([Paragraph(WHY_ONE_CHANCE_LEVEL)], ["chance level"]) if has_chance_level else ([], [])
            blocks += [*map_blocks, *chance_note, Terms(("cell", *terms, "[low, high]", *words))]
        if left_out := format_not_judged(leading_claims(run)):
            blocks.append(Paragraph(f"{left_out}."))
        all_claims = read_claims(run)
        for arm in (name for name in arm_branches(run) if name != headline_arm(run)):
            arm_claims = [claim for claim in all_claims if claim.arm == arm]
            changed_claims = tuple(claim for claim in arm_claims if claim.kind in ("learnt", "damaged"))
            learnt = sum(claim.kind == "learnt" for claim in changed_claims)
            text = (
                f"Arm {arm}: {learnt} learnt, {len(changed_claims) - learnt} damaged, of "
                f"{format_count(len(arm_claims), 'claim')}"
            )
            if arm_claims:
                blocks.append(
                    Fold(text, (Claims(f"Claims of arm {arm}", changed_claims),))
                    if changed_claims
                    else Paragraph(f"{text}.")
                )
        return blocks


def _heat_map(cells: list[PageCell], declared: Outcome) -> HeatMap:
    by_task: dict[str, dict[float | None, PageCell]] = defaultdict(dict)
    for cell in cells:
        by_task[cell.claim.task][cell.claim.level] = cell
    levels = sorted({page_cell.claim.level for page_cell in cells if page_cell.claim.level is not None})
    columns: list[float | None] = [
        *levels,
        *([None] if any(None in cell_by_level for cell_by_level in by_task.values()) else []),
    ]
    names = tuple(format_level(column) or ("all levels" if levels else "success") for column in columns)
    rows = [
        (task, tuple(_cell(cell_by_level[column], declared) if column in cell_by_level else None for column in columns))
        for task, cell_by_level in sorted(by_task.items())
    ]
    return HeatMap(f"Success before and after, {declared}, in percent", names, tuple(rows))


def _cell(cell: PageCell, declared: Outcome) -> HeatCell:
    claim = cell.claim
    if not claim.difference.n:
        return HeatCell(claim.before, None, claim.kind)
    other_success, name = (cell.sampled, "sampled") if declared == "greedy" else (cell.greedy, "greedy")
    notes = [] if other_success is None else [f"{name} {round(100 * other_success[0])} → {round(100 * other_success[1])}"]
    notes += [] if cell.chance is None else [f"chance {format_share(cell.chance)}"]
    return HeatCell(claim.before, claim.after, claim.kind, claim.difference, tuple(notes))
