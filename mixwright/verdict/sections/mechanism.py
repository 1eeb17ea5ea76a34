"""Section of the lever's draws: informative groups, groups without signal, refused groups. Its mechanism, not its worth.

Source: rows of trial/result.json.
Unit: share of groups in percent; differences in points with 95 % t interval over seeds.
Cost: reads one small file.
Blind spot: a lever moves these numbers by construction, so they say nothing about what was learnt.
"""

from __future__ import annotations

from statistics import fmean
from typing import ClassVar

from mixwright.contracts import Section
from mixwright.runs import RunFolder
from mixwright.verdict.arm_words import OUTCOME_WORDS, differences, format_change, over_seeds
from mixwright.verdict.blocks import Block, Paragraph, Table, Terms
from mixwright.verdict.evidence import headline_arm, trial_of
from mixwright.verdict.text import NO_VALUE_SIGN, name_of, percent


class Mechanism(Section):
    """One table: the shares of the leading arm, of each reference, and their differences."""

    ORDER: ClassVar[int] = 33
    TITLE: ClassVar[str] = "How the lever works"

    def blocks(self, run: RunFolder) -> list[Block]:
        """The table; nothing without a trial of groups."""
        result = trial_of(run)
        if result is None:
            return []
        arm, rows = headline_arm(run), []
        names = dict.fromkeys(row.name for row in result.rows if row.unit == "share" and row.arm == arm)
        for name in (name for name in names if name.partition(".")[0] not in OUTCOME_WORDS):
            for other in (other for other in result.references if other != arm):
                values = [differences(result, name, arm, other)]
                if not values[0]:
                    continue
                means = [_mean(result.rows, name, one) for one in (arm, other)]
                rows.append((name_of(name), other, *means, format_change(over_seeds(values[0]))))
        if not rows:
            return []
        text = "A lever moves these shares by construction, so they are not judged; what was learnt stands above."
        columns = ("number", "against", arm, "reference", "difference")
        return [
            Paragraph(text),
            Terms(("informative group",)),
            Table("Shares over the run, mean over seeds", columns, rows, (2, 3, 4)),
        ]


def _mean(rows: tuple, name: str, arm: str) -> str:
    values = [row.value for row in rows if (row.name, row.arm) == (name, arm) and row.value is not None]
    return percent(fmean(values)) if values else NO_VALUE_SIGN
