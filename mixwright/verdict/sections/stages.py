"""Section of plans of several stages: success of every task after each stage, and what the plan expected there.

Source: stages/ of every branch of the leading arm, and the stages of plan.yaml.
Unit: success under the declared decoding in percent, mean over seeds; in brackets the plan's expectation.
Cost: none.
Blind spot: a mean over seeds and items without an interval; the effects of the trial judge the end alone.
"""

from __future__ import annotations

from mixwright.contracts import Section
from mixwright.records import Verdict
from mixwright.verdict.page.blocks import Block, Table
from mixwright.verdict.page.text import percent


class Stages(Section):
    """A row per task, a column per stage."""

    ORDER = 43
    TITLE = "Success after each stage"

    def blocks(self, verdict: Verdict) -> list[Block]:
        """Return a table."""
        stages = verdict.plan.stages if verdict.plan else ()
        rows = []
        for task, shares in verdict.stages.items():
            expected = [stage.expected.get(task) for stage in stages] or [None] * len(shares)
            texts = [
                percent(share) + ("" if hope is None else f" ({percent(hope)})")
                for share, hope in zip(shares, expected, strict=False)
            ]
            rows.append((task, *texts))
        names = [f"{place} {stage.name}" for place, stage in enumerate(stages, 1)]
        names = names or [str(place) for place in range(1, len(rows[0]))] if rows else []
        caption = "In percent, mean over seeds; in brackets what the plan expected"
        return [Table(caption, ("task", *names), rows, tuple(range(1, len(names) + 1)))]
