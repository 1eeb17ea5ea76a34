"""Section of plans of several stages: success of every task after each stage, beside what the plan expected there.

Source: stages/ of every branch of the leading arm, and the stages of plan.yaml.
Unit: success under the declared decoding in percent, mean over seeds; in brackets what was expected.
Cost: reads a small file per stage and seed.
Blind spot: a mean over seeds and items without an interval; the effects of the trial judge the end alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import fmean
from typing import Any

from mixwright.contracts import Section
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS
from mixwright.run.folder import RunFolder, read_json, read_measurements
from mixwright.trial.plan_stages import success_of
from mixwright.verdict.page.blocks import Block, Paragraph, Table
from mixwright.verdict.page.text import percent
from mixwright.verdict.rules.evidence import headline_arm, leading_folders, plan_of, read_outcome

ABOUT = "Each stage starts from the model that the stage before left. In brackets: what the plan expected after that stage."


class Stages(Section):
    """A row per task, a column per stage."""

    ORDER = 43
    TITLE = "Success after each stage"

    def blocks(self, run: RunFolder) -> list[Block]:
        """A table; nothing for plans of one stage, or where nothing was graded."""
        plan, folders, declared = plan_of(run), leading_folders(run), read_outcome(run)
        if plan is None or len(plan.stages) < 2 or declared not in GRADED_OUTCOMES:
            return []
        success_by_stage: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        rehearsed = Counter[str]()
        for folder in folders:
            for number in range(len(plan.stages)):
                path = folder / "stages" / str(number + 1) / "measured.parquet"
                measured = read_measurements(path) if path.is_file() else []
                for task, (success, _) in success_of(measured, READINGS[declared].column).items():
                    success_by_stage[task][number].append(success)
            for path in (folder / "stages").glob("*/stage.json"):
                rehearsed.update(read_json(path, dict[str, Any]).get("rehearses", []))
        if not success_by_stage:
            return []
        rows = [
            (
                task,
                *(
                    _cell(by_stage.get(stage_number), stage.expected.get(task))
                    for stage_number, stage in enumerate(plan.stages)
                ),
            )
            for task, by_stage in sorted(success_by_stage.items())
        ]
        columns = ("task", *(f"{number} {stage.name}" for number, stage in enumerate(plan.stages, 1)))
        arm = headline_arm(run)
        caption = f"Success after each stage, {declared}, in percent, mean over {len(folders)} seeds (arm {arm})"
        rehearsed_text = ", ".join(f"{task} in {times} stages" for task, times in sorted(rehearsed.items()))
        text = f"Rehearsed because it was measured below what was expected: {rehearsed_text}." if rehearsed_text else ""
        return [Paragraph(ABOUT), Table(caption, columns, rows, tuple(range(1, len(columns)))), Paragraph(text)]


def _cell(values: list[float] | None, expected: float | None) -> str:
    mean_text = "" if values is None else percent(fmean(values))
    return mean_text if expected is None else f"{mean_text} ({percent(expected)})"
