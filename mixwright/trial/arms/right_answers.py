"""Reference of a trial over new pairs: SFT on the chosen answers of the same pairs, on as many target tokens.

A pair is read twice in a step of DPO, once for each answer, so SFT takes twice the steps with the same batch. What DPO adds
to the right answers is what the wrong ones say.

Source: the arm without which a gain by DPO says nothing of the wrong answers (2410.18890 compares with no training alone).
Unit: one branch per seed.
Cost: one training run per seed, of twice the steps.
Blind spot: it has the learning rate of DPO, which for SFT may be low; longer wrong answers leave it fewer tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from mixwright.contracts import Arm, Branch, Role
from mixwright.records import Cell, Plan


class RightAnswers(Arm):
    """SFT on the targets of mined rows."""

    ROLE: ClassVar[Role] = "reference"
    OF_DATA: ClassVar[bool] = True

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """The plan with another objective and twice the steps; rows of `trial.data`."""
        stages = tuple(replace(stage, objective="sft", steps=2 * stage.steps) for stage in plan.stages)
        return Branch(replace(plan, stages=stages), rows="mined")
