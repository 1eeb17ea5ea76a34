"""Section of plans of several stages: success of every task after each stage, beside what the plan expected there.

Source: stages/ of every branch of the leading arm, and the stages of plan.yaml.
Unit: success under the declared decoding in percent, mean over seeds; in brackets what was expected.
Cost: reads a small file per stage and seed.
Blind spot: a mean over seeds and items without an interval; the effects of the trial judge the end alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

from mixwright.contracts import Section
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS
from mixwright.runs import RunFolder, read_json, read_measurements
from mixwright.trial.stages import success_of
from mixwright.verdict.blocks import Block, Paragraph, Table
from mixwright.verdict.evidence import arm_branches, decoding_of, headline_arm, plan_of
from mixwright.verdict.text import percent

ABOUT = "Each stage starts from the model that the stage before left. In brackets: what the plan expected after that stage."


class Stages(Section):
    """A row per task, a column per stage."""

    ORDER: ClassVar[int] = 43
    TITLE: ClassVar[str] = "Success after each stage"

    def blocks(self, run: RunFolder) -> list[Block]:
        """A table; nothing for plans of one stage, or where nothing was graded."""
        plan, name, declared = plan_of(run), headline_arm(run), decoding_of(run)
        folders = [folder for _, folder in arm_branches(run).get(name, [])]
        if plan is None or len(plan.stages) < 2 or declared not in GRADED_OUTCOMES or not folders:
            return []
        column = READINGS[declared].column
        found: dict[str, dict[int, list[float]]] = {}
        for number in range(len(plan.stages)):
            for folder in folders:
                path = folder / "stages" / str(number + 1) / "measured.parquet"
                if path.is_file():
                    for task, (success, _) in success_of(read_measurements(path), column).items():
                        found.setdefault(task, {}).setdefault(number, []).append(success)
        if not found:
            return []
        rows = []
        for task, by_stage in sorted(found.items()):
            cells = [_cell(by_stage.get(number), stage.expected.get(task)) for number, stage in enumerate(plan.stages)]
            rows.append((task, *cells))
        columns = ("task", *(f"{number + 1} {stage.name}" for number, stage in enumerate(plan.stages)))
        caption = f"Success after each stage, {declared}, in percent, mean over {len(folders)} seeds (arm {name})"
        table = Table(caption, columns, rows, tuple(range(1, len(columns))))
        return [Paragraph(ABOUT), table, *_rehearsals(folders)]


def _cell(values: list[float] | None, expected: float | None) -> str:
    told = "" if values is None else percent(fmean(values))
    return told if expected is None else f"{told} ({percent(expected)})"


def _rehearsals(folders: Sequence[Path]) -> list[Block]:
    """How often a task was rehearsed because it was below what was expected."""
    count: dict[str, int] = {}
    for folder in folders:
        for path in sorted((folder / "stages").glob("*/stage.json")):
            for task in read_json(path, dict[str, Any]).get("rehearses", []):
                count[task] = count.get(task, 0) + 1
    if not count:
        return []
    told = ", ".join(f"{task} in {times} stages" for task, times in sorted(count.items()))
    return [Paragraph(f"Rehearsed because it was measured below what was expected: {told}.")]
