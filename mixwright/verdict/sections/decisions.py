"""Section of what a steered run changed and of its alarms, grouped: how often, when, and why.

Source: decisions of every seed of the leading arm.
Unit: decisions.
Cost: none.
Blind spot: shows the first and the last reason of each group; all of them are in decisions.jsonl.
"""

from __future__ import annotations

from mixwright.contracts import Section
from mixwright.records import Verdict
from mixwright.verdict.page.blocks import Block, Table
from mixwright.verdict.page.text import NO_VALUE_SIGN


class Decisions(Section):
    """Alarms, and decisions by how often they were taken."""

    ORDER = 40
    TITLE = "Decisions and alarms"

    def blocks(self, verdict: Verdict) -> list[Block]:
        """Return a table of alarms and one of decisions."""
        columns = ("decision", "times", "seeds", "steps", "first → last", "reason of the last one")
        return [
            Table(
                caption,
                columns,
                [
                    (
                        group.name,
                        f"{group.times:,}",
                        f"{group.seeds:,}",
                        f"{group.first_step:g} to {group.last_step:g}",
                        f"{group.old or NO_VALUE_SIGN} → {group.new or NO_VALUE_SIGN}",
                        group.because,
                    )
                    for group in verdict.decisions
                    if group.is_alarm == is_alarm
                ],
                (1, 2, 3),
            )
            for caption, is_alarm in (("Alarms", True), ("Decisions; a refused group is not trained on", False))
        ]
