"""Seed rows of a finished branch, read from its files: one `SeedRow` per number. Needs no torch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from mixwright.answers.score import scores_of_items
from mixwright.answers.table import Answers
from mixwright.estimates.outcome import (
    MEASUREMENT_BY_DECODING,
    SWAPPED_SUFFIX,
    Item,
    ItemScores,
    keep_probe_columns,
    mean_score,
)
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
        training = max(int(line.get("rollouts", 0)) for line in (self.proof, *self.steps))
        evaluating = int(self.progress[-1]["evaluated"]) if self.progress else 0
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
    """All of a branch's numbers. Raises InputError when a file is missing or broken."""
    info = read_json(folder / "branch.json", BranchInfo)
    return BranchFiles(
        info,
        Answers.read(answers_file(folder / "before.parquet")),
        Answers.read(answers_file(folder / "after.parquet")),
        list(read_json_lines(folder / "steps.jsonl", check=_check_line, remedy=REMEDY)),
        list(
            read_json_lines(
                folder / "progress.jsonl", check=partial(_check_line, required_fields=PROGRESS_FIELDS), remedy=REMEDY
            )
        ),
        read_json(folder / "proof.json", dict[str, Any]) if info.trained else {},
    )


def _check_line(line: Mapping[str, Any], required_fields: Sequence[str] = ()) -> None:
    """Raise ValueError unless its counts are whole and not negative, its success a share, and all that is needed there."""
    if missing_fields := [name for name in required_fields if name not in line]:
        raise ValueError(f"a result without {missing_fields[0]}")
    mixed = line.get("mixed", {})
    counts = {name: line[name] for name in COUNT_FIELDS if name in line} | (
        mixed if isinstance(mixed, dict) else {"mixed": mixed}
    )
    for name, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise ValueError(f"a result with {name} {count!r:.40}, which is not a count")
    success = line["success"] if "success" in required_fields else 0.0  # in steps.jsonl it is one per cell
    if not isinstance(success, int | float) or not 0 <= success <= 1:
        raise ValueError(f"a result with success {success!r:.40}, which is not a share")


def measuring_rollouts(answers: Answers) -> int:
    """Completions that were graded, greedy and sampled ones of each item."""
    return len(answers.table) - answers.table["right"].null_count


def find_target(progress: Sequence[Mapping[str, Any]], gain: float) -> tuple[int | None, float | None]:
    """(rollouts charged when the target was reached or None, the target); None twice without evaluations.

    The target is the success of the starting model on the same fixed items plus `gain`, at most 1. It counts as reached
    at the first of two evaluations in a row at or above it: one alone is often luck, more so for a noisy run.
    """
    success_by_rollouts = [(int(row["rollouts"]), float(row["success"])) for row in progress]
    if not success_by_rollouts:
        return None, None
    target = min(1.0, success_by_rollouts[0][1] + gain)
    for (rollouts, success), (_, following) in itertools.pairwise(success_by_rollouts[1:]):
        if min(success, following) >= target:
            return rollouts, target
    return None, target


def target_horizon(branch: BranchFiles) -> dict[str, int]:
    """Up to which rollouts a run was watched for its target, by how they are counted; empty without evaluations."""
    if not branch.progress:
        return {}
    training_rollouts = int(branch.progress[-1]["rollouts"])
    measuring_rollouts = branch.rollouts_before if branch.info.planned else 0
    return {"rollouts_to_target": training_rollouts + measuring_rollouts, "training_rollouts_to_target": training_rollouts}


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


def branch_rows(branch: BranchFiles, outcome: Outcome, gain: float, protected: Collection[Item] = ()) -> list[SeedRow]:
    """The numbers of one branch: success with its parts over all held-out items, what was drawn, and rollouts.

    Args:
        branch: as read.
        outcome: what the primary outcome is read from.
        gain: of the target.
        protected: items that retention is read from.
    """
    values = _outcome_numbers(branch, outcome) | _secondary_numbers(branch, outcome) | _group_numbers(branch)
    if protected:
        protected_of_branch = [item for item in branch.scores.items if item in protected]
        retention = (
            mean_score(branch.scores, READINGS[outcome].column, protected_of_branch, by="cells")
            if protected_of_branch
            else math.nan
        )
        values["retention"] = (retention if math.isfinite(retention) else None, READINGS[outcome].unit)
    if branch.info.objective == "grpo":
        count, target = find_target(branch.progress, gain)
        if target is not None:
            measuring = branch.rollouts_before if branch.info.planned else 0
            values["training_rollouts_to_target"] = (count, "rollouts")
            values["rollouts_to_target"] = (None if count is None else count + measuring, "rollouts")
    if (tokens := target_tokens(branch)) is not None:
        values["target_tokens"] = (tokens, "tokens")
    values["rollouts"] = (branch.charged_rollouts + branch.rollouts_before, "rollouts")
    info = branch.info
    return [SeedRow(info.arm, info.seed, name, value, unit) for name, (value, unit) in sorted(values.items())]


def _outcome_numbers(branch: BranchFiles, outcome: Outcome) -> dict[str, tuple[float | None, str]]:
    """Success under the declared decoding as a mean over tasks, its parts, and the other means beside it."""
    after, before = branch.scores, branch.start_scores
    items, items_before = after.items, before.items
    if not items:
        return {}
    if outcome not in GRADED_OUTCOMES:
        return _ungraded_numbers(after, before, outcome)
    name = MEASUREMENT_BY_DECODING[outcome]
    success, swapped = mean_score(after, name, items), mean_score(after, name + SWAPPED_SUFFIX, items)
    values = {
        "success": success,
        "swapped": swapped,
        "dependence": success - swapped,
        "success.sampled": mean_score(after, MEASUREMENT_BY_DECODING["sampled"], items),
        "success.items": mean_score(after, name, items, by="items"),
        "start.success": mean_score(before, name, items_before) if items_before else math.nan,
    }
    return {key: (value if math.isfinite(value) else None, "share") for key, value in values.items()}


def _ungraded_numbers(after: ItemScores, before: ItemScores, outcome: Outcome) -> dict[str, tuple[float | None, str]]:
    """Held-out loss, or preference accuracy and margin: means over tasks, over items, and of the starting model."""
    values: dict[str, tuple[float | None, str]] = {}
    further_outcomes: tuple[Outcome, ...] = ("margin",) if outcome == "preference" else ()
    for reading in (READINGS[name] for name in (outcome, *further_outcomes)):
        for key, side in {"": after, ".items": after, "start.": before}.items():
            by = "items" if key == ".items" else "tasks"
            value = mean_score(side, reading.column, side.items, by=by) if side.items else math.nan
            number_name = key + reading.name if key == "start." else reading.name + key
            values[number_name] = (value if math.isfinite(value) else None, reading.unit)
    return values


def _secondary_numbers(branch: BranchFiles, outcome: Outcome) -> dict[str, tuple[float | None, str]]:
    """Losses and preferences that were read beside graded answers, or beside each other."""
    values: dict[str, tuple[float | None, str]] = {}
    other_outcomes: tuple[Outcome, ...] = ("preference", "loss")
    for name in other_outcomes:
        after, before = (keep_probe_columns(side, name) for side in (branch.scores, branch.start_scores))
        if name != outcome and after.items:
            values |= _ungraded_numbers(after, before, name)
    return values


def _group_numbers(branch: BranchFiles) -> dict[str, tuple[float | None, str]]:
    """What was drawn and how much of it was informative, as shares of all groups of all cells: no outcome."""
    groups = sum(line.get("groups", 0) for line in branch.steps)
    if not groups or branch.info.objective != "grpo":
        return {}
    zero_signal, refused = (sum(line.get(name, 0) for line in branch.steps) for name in ("zero_signal", "refused"))
    informative = sum(sum(line.get("mixed", {}).values()) for line in branch.steps)
    shares = {"zero_signal_share": zero_signal, "refused_share": refused, "teaching_share": informative}
    return {name: (count / groups, "share") for name, count in shares.items()}
