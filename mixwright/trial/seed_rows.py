"""Seed rows of a finished branch, read from its files: one `SeedRow` per number. Needs no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mixwright.answers.score import scores_of_items
from mixwright.answers.table import Answers
from mixwright.estimates.items import Items
from mixwright.estimates.outcome import SWAPPED_SUFFIX, ItemScores, Weighing, keep_probe_columns, mean_score
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome
from mixwright.records import SeedRow
from mixwright.run.folder import answers_file, read_json, read_json_lines

COUNT_FIELDS = ("step", "rollouts", "groups", "zero_signal", "refused", "tokens")
"""Counts of a line of steps.jsonl."""
REMEDY = "Remove the branch folder and run `mixwright run --only trial` again."


@dataclass(frozen=True, slots=True)
class BranchInfo:
    """branch.json: what a finished branch is, so that an interrupted trial can go on."""

    arm: str
    """Name of the arm."""
    seed: int
    """Training seed, 0-based."""
    base: str
    """Name of the starting model."""
    objective: str
    """grpo, sft or dpo."""
    trained: bool
    """False for an arm that only measures its starting model."""
    digest: str
    """Of everything that decides the outcome; another digest, and the branch is run again."""


@dataclass(frozen=True)
class BranchFiles:
    """One finished branch, read."""

    info: BranchInfo
    """Its branch.json."""
    before: Answers
    """Of its starting model."""
    after: Answers
    """After training."""
    steps: Sequence[Mapping[str, Any]]
    """Lines of steps.jsonl; none without training."""
    proof: Mapping[str, Any]
    """proof.json; empty without training."""

    @property
    def rollouts_before(self) -> int:
        """Rollouts of the measuring before the run."""
        return measuring_rollouts(self.before)

    @property
    def charged_rollouts(self) -> int:
        """Rollouts of this branch alone: training, measuring after."""
        return max(line.get("rollouts", 0) for line in (self.proof, *self.steps)) + measuring_rollouts(self.after)

    @cached_property
    def scores(self) -> ItemScores:
        """Of the model after training."""
        return scores_of_items(self.after)

    @cached_property
    def start_scores(self) -> ItemScores:
        """Of its starting model."""
        return scores_of_items(self.before)


def read_branch(folder: Path) -> BranchFiles:
    """Read all of a branch's numbers. Raises InputError when a file is missing or broken."""
    info = read_json(folder / "branch.json", BranchInfo)
    return BranchFiles(
        info,
        before=Answers.read(answers_file(folder / "before.parquet")),
        after=Answers.read(answers_file(folder / "after.parquet")),
        steps=list(read_json_lines(folder / "steps.jsonl", check=_check_line, remedy=REMEDY)),
        proof=read_json(folder / "proof.json", dict[str, Any]) if info.trained else {},
    )


def _check_line(line: Mapping[str, Any]) -> None:
    """Raise ValueError for counts that are none."""
    counts = {name: line[name] for name in COUNT_FIELDS if name in line}
    mixed = line.get("mixed", {})
    counts |= mixed if isinstance(mixed, dict) else {"mixed": mixed}
    for name, count in counts.items():
        if type(count) is not int or count < 0:
            raise ValueError(f"a result with {name} {count!r:.40}, which is not a count")


def measuring_rollouts(answers: Answers) -> int:
    """Completions that were graded, greedy and sampled ones of each item."""
    return len(answers.table) - answers.table["right"].null_count


def target_tokens(branch: BranchFiles) -> int | None:
    """Target tokens that the branch was trained on, end tokens included; of DPO those of both answers.

    Stages of any objective count: those of SFT and DPO their targets, those of GRPO nothing. None where no target was read.
    """
    counts = [
        sum(tokens for _, tokens in line["losses"].values()) if "losses" in line else line["tokens"]
        for line in branch.steps
        if "losses" in line or "tokens" in line
    ]
    return sum(counts) if counts else None


def branch_rows(branch: BranchFiles, outcome: Outcome, protected: Items | None = None) -> list[SeedRow]:
    """Return the numbers of one branch: success with its parts over all held-out items, what was drawn, and rollouts.

    Args:
        branch: as read.
        outcome: what the primary outcome is read from.
        protected: items that retention is read from.
    """
    after, before, info = branch.scores, branch.start_scores, branch.info
    values = _outcome_numbers(after, before, outcome)
    secondary_outcomes: tuple[Outcome, ...] = ("preference", "loss")
    for name in secondary_outcomes:
        if name != outcome:
            values |= _outcome_numbers(keep_probe_columns(after, name), keep_probe_columns(before, name), name)
    values |= _group_numbers(branch)
    if protected is not None and len(protected):
        protected_of_branch = after.items.common(protected)
        reading = READINGS[outcome]
        values["retention"] = (_mean(after, reading.column, protected_of_branch, by="cells"), reading.unit)
    tokens = target_tokens(branch)
    if tokens is not None:
        values["target_tokens"] = (tokens, "tokens")
    values["rollouts"] = (branch.charged_rollouts + branch.rollouts_before, "rollouts")
    return [SeedRow(info.arm, info.seed, name, value, unit) for name, (value, unit) in sorted(values.items())]


def _outcome_numbers(after: ItemScores, before: ItemScores, outcome: Outcome) -> dict[str, tuple[float | None, str]]:
    """Return an outcome as a mean over tasks, over items, and of the starting model, with its parts; {} without items."""
    reading, items = READINGS[outcome], after.items
    if not len(items):
        return {}
    means = {
        reading.name: _mean(after, reading.column, items),
        f"{reading.name}.items": _mean(after, reading.column, items, by="items"),
        f"start.{reading.name}": _mean(before, reading.column, before.items),
    }
    if outcome in GRADED_OUTCOMES:
        success, swapped = means[reading.name], _mean(after, reading.column + SWAPPED_SUFFIX, items)
        means["swapped"] = swapped
        means["dependence"] = None if success is None or swapped is None else success - swapped
        means["success.sampled"] = _mean(after, READINGS["sampled"].column, items)
    numbers = {name: (value, reading.unit) for name, value in means.items()}
    return numbers | _outcome_numbers(after, before, "margin") if outcome == "preference" else numbers


def _mean(scores: ItemScores, column: str, items: Items, *, by: Weighing = "tasks") -> float | None:
    """Return the mean of a measurement over items; None where some item lacks it, or there is none."""
    value = mean_score(scores, column, items, by=by) if len(items) else math.nan
    return value if math.isfinite(value) else None


def _group_numbers(branch: BranchFiles) -> dict[str, tuple[float | None, str]]:
    """Return what was drawn and how much of it was informative, as shares of all groups of all cells: no outcome."""
    groups = sum(line.get("groups", 0) for line in branch.steps)
    if not groups or branch.info.objective != "grpo":
        return {}
    counts = {
        "zero_signal_share": sum(line.get("zero_signal", 0) for line in branch.steps),
        "refused_share": sum(line.get("refused", 0) for line in branch.steps),
        "teaching_share": sum(sum(line.get("mixed", {}).values()) for line in branch.steps),
    }
    return {name: (count / groups, "share") for name, count in counts.items()}
