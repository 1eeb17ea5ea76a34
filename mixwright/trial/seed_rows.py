"""Seed rows of a finished branch, read from its files: one `SeedRow` per number. Needs no torch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from mixwright.answers.score import scores_of_items
from mixwright.answers.table import Answers
from mixwright.estimates.items import Items
from mixwright.estimates.outcome import SWAPPED_SUFFIX, ItemScores, Weighing, keep_probe_columns, mean_score
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome
from mixwright.records import SeedRow
from mixwright.run.folder import answers_file, read_json, read_json_lines

COUNT_FIELDS = ("step", "rollouts", "evaluated", "groups", "zero_signal", "refused", "tokens")
"""Counts of a line of steps.jsonl or progress.jsonl."""
PROGRESS_FIELDS = ("rollouts", "evaluated", "success")
"""What every line of progress.jsonl has."""
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
    planned: bool
    """True when the arm rests on the measuring before it; references do not."""
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
    progress: Sequence[Mapping[str, Any]]
    """Lines of progress.jsonl."""
    proof: Mapping[str, Any]
    """proof.json, whose rollouts include canaries after the last step; empty without training."""

    @property
    def rollouts_before(self) -> int:
        """Rollouts of the measuring before the run."""
        return measuring_rollouts(self.before)

    @property
    def charged_rollouts(self) -> int:
        """Rollouts of this branch alone: training, canaries, evaluations on the way, measuring after."""
        training = max(line.get("rollouts", 0) for line in (self.proof, *self.steps))
        evaluating = self.progress[-1]["evaluated"] if self.progress else 0
        return training + evaluating + measuring_rollouts(self.after)

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
    check_progress = partial(_check_line, required_fields=PROGRESS_FIELDS)
    return BranchFiles(
        info,
        before=Answers.read(answers_file(folder / "before.parquet")),
        after=Answers.read(answers_file(folder / "after.parquet")),
        steps=list(read_json_lines(folder / "steps.jsonl", check=_check_line, remedy=REMEDY)),
        progress=list(read_json_lines(folder / "progress.jsonl", check=check_progress, remedy=REMEDY)),
        proof=read_json(folder / "proof.json", dict[str, Any]) if info.trained else {},
    )


def _check_line(line: Mapping[str, Any], required_fields: Sequence[str] = ()) -> None:
    """Raise ValueError for a line without a required field, and for counts and successes that are none."""
    for name in required_fields:
        if name not in line:
            raise ValueError(f"a result without {name}")
    counts = {name: line[name] for name in COUNT_FIELDS if name in line}
    mixed = line.get("mixed", {})
    counts |= mixed if isinstance(mixed, dict) else {"mixed": mixed}
    for name, count in counts.items():
        if type(count) is not int or count < 0:
            raise ValueError(f"a result with {name} {count!r:.40}, which is not a count")
    success = line["success"] if "success" in required_fields else 0.0  # in steps.jsonl it is one per cell
    if not isinstance(success, int | float) or not 0 <= success <= 1:
        raise ValueError(f"a result with success {success!r:.40}, which is not a share")


def measuring_rollouts(answers: Answers) -> int:
    """Completions that were graded, greedy and sampled ones of each item."""
    return len(answers.table) - answers.table["right"].null_count


def find_target(progress: Sequence[Mapping[str, Any]], gain: float) -> tuple[int | None, float | None]:
    """Return (rollouts charged when the target was reached or None, the target); None twice without evaluations.

    The target is the success of the starting model on the same fixed items plus `gain`, at most 1. It counts as reached
    at the first of two evaluations in a row at or above it: one alone is often luck, more so for a noisy run.
    """
    if not progress:
        return None, None
    target = min(1.0, progress[0]["success"] + gain)
    for row, following in itertools.pairwise(progress[1:]):
        if min(row["success"], following["success"]) >= target:
            return row["rollouts"], target
    return None, target


def target_horizon(branch: BranchFiles) -> dict[str, int]:
    """Return how far a run was watched for its target, by how rollouts are counted; empty without evaluations."""
    if not branch.progress:
        return {}
    training, measuring = branch.progress[-1]["rollouts"], branch.rollouts_before if branch.info.planned else 0
    return {"rollouts_to_target": training + measuring, "training_rollouts_to_target": training}


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


def branch_rows(branch: BranchFiles, outcome: Outcome, gain: float, protected: Items | None = None) -> list[SeedRow]:
    """Return the numbers of one branch: success with its parts over all held-out items, what was drawn, and rollouts.

    Args:
        branch: as read.
        outcome: what the primary outcome is read from.
        gain: of the target.
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
    if info.objective == "grpo":
        count, target = find_target(branch.progress, gain)
        if target is not None:
            measuring = branch.rollouts_before if info.planned else 0
            values["training_rollouts_to_target"] = (count, "rollouts")
            values["rollouts_to_target"] = (None if count is None else count + measuring, "rollouts")
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
