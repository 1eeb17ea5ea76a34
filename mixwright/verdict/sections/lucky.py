"""Section of cells that the plan calls lucky: right now and then, and shown not to depend on the prompt.

Source: cells of plan.yaml; decisions.jsonl of every branch of the leading arm.
Unit: success, S and kappa of the measuring before the run; the chance level of the held-out items; seeds in which groups
    of the cell were refused as lucky.
Cost: reads one line per decision.
Blind spot: a guess by the form of the prompt depends on it, and is not lucky by this rule.
"""

from __future__ import annotations

from typing import ClassVar

from mixwright.contracts import Section
from mixwright.records import CellPlan, Interval
from mixwright.runs import RunFolder
from mixwright.verdict.blocks import Block, Paragraph, Table, Terms
from mixwright.verdict.chance_levels import chance_levels
from mixwright.verdict.evidence import arm_branches, headline_arm, json_lines, plan_of
from mixwright.verdict.text import NO_VALUE_SIGN, format_share, percent

REFUSED_PREFIX = "refuse."
"""First part of `Decision.what` where a gate changed its answer about a cell."""


class Lucky(Section):
    """One row per cell."""

    ORDER: ClassVar[int] = 26
    TITLE: ClassVar[str] = "Lucky cells"

    def blocks(self, run: RunFolder) -> list[Block]:
        """The table; nothing where the plan calls no cell lucky."""
        plan = plan_of(run)
        cells = [cell for cell in (plan.cells if plan else ()) if cell.state == "lucky"]
        if not cells:
            return []
        branches = arm_branches(run).get(headline_arm(run), [])
        refused: dict[str, set[int]] = {}
        for seed, folder in branches:
            for item in json_lines(folder / "decisions.jsonl"):
                what = str(item.get("what", ""))
                if what.startswith(REFUSED_PREFIX) and item.get("new") == "refused" and item.get("cause") == "lucky":
                    refused.setdefault(what.removeprefix(REFUSED_PREFIX), set()).add(seed)
        levels = chance_levels(run)
        seen = {cell.key: levels.get((cell.task, cell.level, False)) for cell in cells}
        rows = [_row(cell, seen[cell.key], len(refused.get(cell.key, ())), len(branches)) for cell in cells]
        text = "Right answers there do not depend on the prompt, so rewards would reinforce whatever answer is common."
        columns = ("cell", "success", "S", "kappa", "at most", "chance level", "refused as lucky in seeds")
        terms = Terms(("lucky", "S", "kappa", "chance level"))
        return [Paragraph(text), terms, Table("Cells called lucky before the run", columns, rows, (1, 2, 3, 4, 5, 6))]


def _row(cell: CellPlan, chance: Interval | None, refused: int, seeds: int) -> tuple[str, ...]:
    numbers = (NO_VALUE_SIGN if value is None else f"{value:.2f}" for value in (cell.kappa, cell.kappa_high))
    seen = f"{refused} of {seeds}" if seeds else NO_VALUE_SIGN
    return (cell.key, percent(cell.success), percent(cell.swapped), *numbers, format_share(chance), seen)
