"""Warnings at the start of a GRPO run about settings that are known to harm; they never refuse anything.

Each is a pure function of plain facts and says its source and what was measured here. Two need the plan and the settings,
two the first generation batch. They go to decisions.jsonl and to the logger, once per run.
"""

from __future__ import annotations

import functools
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mixwright.errors import one_line
from mixwright.records import GroupOutcome, Plan
from mixwright.steer.monitors.formats import formats_in_use
from mixwright.steer.pool import Pool

if TYPE_CHECKING:
    from mixwright.steer.beside.run import RunSteering

EVIDENCE_BY_LINT = {
    "formats": "on chain arithmetic (3 mixes of formats, 5 seeds) the commonest of three formats went from 41 to 61 % of "
    "answers to 81 to 99 % in 60 steps; beta 0.1 left 73 to 95 % and cost 0 to 3 points of success",
    "novelty": "on chain arithmetic (5 seeds) a penalty of 0.2 for alike answers moved success on unseen problems by -3 "
    "points (95 %: -10 to +4) in the reward, by -0.3 (-3 to +2) after normalisation; failed groups kept 3.6 and 1.1 more "
    "different answers",
    "lengths": "not seen on chain arithmetic (5 seeds): over-hard prompts raised the share of direct answers from some 20 % "
    "to 58 % under this normalisation, and to 60 % under that by tokens of the batch",
    "too_hard": "on chain arithmetic (8 seeds) 80 steps at a high learning rate on a pool of which 98 % were such problems "
    "took 50 points (46 to 54) of greedy success over everything held out; a pool in reach took none (-1 to 1)",
}
"""What was measured in this project, by lint."""
PER_SEQUENCE_LOSSES = ("grpo", "sapo")
"""Loss types of TRL that divide each completion's loss by its own length."""
NOVELTY_NAMES = re.compile(r"novel|divers|distinct|uniq|explor|curios|intrinsic|collision|entropy", re.IGNORECASE)
"""Names of reward functions that are taken for ones about variety."""
FORMAT_SHARE, MIN_FORMAT_COMPLETIONS, COVERED_SHARE = 0.1, 4, 0.8
"""An answer format is in use from this share of a task's completions and this many; forms that together cover less than that
share of them are content and no choice of formats."""
LENGTH_RATIO = 1.5
"""Ratio of mean lengths from which two formats differ clearly."""


@dataclass(frozen=True)
class Reward:
    """What is known of a reward function."""

    name: str
    """As TRL logs it."""
    weight: float
    """In the sum of rewards."""
    marked_novelty: bool
    """Whether the function has a true attribute `novelty`."""


@dataclass(frozen=True)
class Settings:
    """What the lints read of a trainer; each falls back to TRL's default where a version has no such setting."""

    beta: float
    """Coefficient of the KL to the reference model."""
    loss_type: str
    """How token losses are averaged."""
    aggregation: str
    """`multi_objective_aggregation`."""
    scale_rewards: str
    """`scale_rewards`: group, batch or none."""
    rewards: tuple[Reward, ...]
    """In order."""


class Lint(NamedTuple):
    """One warning."""

    name: str
    """Key of `EVIDENCE_BY_LINT`."""
    sentence: str
    """What was seen, why it matters, what to do."""


def read_settings(args: Any, functions: Sequence[Any], weights: Sequence[float]) -> Settings:
    """The settings of a trainer.

    Args:
        args: a GRPOConfig.
        functions: reward functions or models.
        weights: one per function.
    """
    scale_rewards = str(getattr(args, "scale_rewards", "group"))
    return Settings(
        float(getattr(args, "beta", 0.0)),
        str(getattr(args, "loss_type", "dapo")),
        str(getattr(args, "multi_objective_aggregation", "sum_then_normalize")),
        {"True": "group", "False": "none"}.get(scale_rewards, scale_rewards),
        tuple(_reward(function, float(weight)) for function, weight in zip(functions, weights, strict=True)),
    )


def warn_at_start(run: RunSteering, settings: Settings, plan: Any) -> None:
    """Lints that need no completion; nothing where a run goes on, nothing of the plan where none was given."""
    if not run.batches:
        _warn(run, 0, [lint_novelty(settings), lint_too_hard(plan, run.pool) if isinstance(plan, Plan) else None])


def warn_at_first_batch(run: RunSteering, settings: Settings, groups: Sequence[GroupOutcome], step: int) -> None:
    """Lints that read the first completions; nothing after the first batch."""
    if run.batches == 1:
        _warn(run, step, [lint_formats(settings, groups), lint_lengths(settings, groups)])


def lint_novelty(settings: Settings) -> Lint | None:
    """A reward for variety that is summed with the others before the sum is scaled by its spread in the group."""
    if (settings.aggregation, settings.scale_rewards) != ("sum_then_normalize", "group"):
        return None
    weighted_rewards = [reward for reward in settings.rewards if reward.weight]
    for reward in weighted_rewards if len(weighted_rewards) > 1 else []:
        match = NOVELTY_NAMES.search(reward.name)
        if not (reward.marked_novelty or match):
            continue
        marker = "its attribute novelty" if reward.marked_novelty or match is None else f"{match.group()!r} in its name"
        return _lint(
            "novelty",
            f"{reward.name} looks like a reward for variety (by {marker}), and scale_rewards='group' divides the sum of "
            "rewards by its spread in the group: where all completions fail, that reward alone is scaled up to full "
            "advantages, however small its weight. Add it after normalisation, or use "
            "multi_objective_aggregation='normalize_then_sum'",
            "arXiv 2509.06941 adds such bonuses after normalisation",
        )
    return None


def lint_too_hard(plan: Plan, pool: Pool) -> Lint | None:
    """Most rows are of cells that were measured as hopeless or lucky."""
    states = {cell.key: cell.state for cell in plan.cells}
    row_count, is_hard_cell = len(pool.cell_of), [states.get(cell.key) in ("hopeless", "lucky") for cell in pool.cells]
    hard_rows = int(np.array(is_hard_cell, dtype=bool)[pool.cell_of].sum())
    if 2 * hard_rows <= row_count:
        return None
    return _lint(
        "too_hard",
        f"{hard_rows} of {row_count} rows ({hard_rows / row_count:.0%}) are of cells that the plan calls hopeless or lucky: "
        "what succeeds there is mostly chance, and the rare success gets the largest advantage. Keep the gate too_hard, "
        "start with beta above 0, and add rows that the model can solve now and then",
        "arXiv 2605.28388",
    )


def lint_formats(settings: Settings, groups: Sequence[GroupOutcome]) -> Lint | None:
    """No KL to the start while a task is answered in several formats."""
    if settings.beta:
        return None
    for task, shares in _format_shares(groups).items():
        if len(shares) > 1:
            shown = ", ".join(f"{name!r:.40} {share:.0%}" for name, share in list(shares.items())[:3])
            return _lint(
                "formats",
                f"beta is 0, so nothing ties the model to its start, and {task} is answered in {len(shares)} formats "
                f"({shown}): one may take over, not always the better one. Ask for one format in the prompt, watch them "
                "with the monitor formats, or start with a small beta",
                "arXiv 2504.07912",
            )
    return None


def lint_lengths(settings: Settings, groups: Sequence[GroupOutcome]) -> Lint | None:
    """Each completion's loss is divided by its own length while a task's formats differ clearly in length."""
    if settings.loss_type not in PER_SEQUENCE_LOSSES:
        return None
    for task, shares in _format_shares(groups).items():
        lengths_by_format: dict[str, list[int]] = defaultdict(list)
        for group in groups:
            if group.task == task and group.lengths:
                for name, length in zip(group.formats, group.lengths, strict=True):
                    lengths_by_format[name].append(length)
        means = sorted((fmean(lengths_by_format[name]), name) for name in shares if lengths_by_format[name])
        for (short_tokens, short_format), (long_tokens, long_format) in combinations(means, 2):
            if long_tokens >= LENGTH_RATIO * short_tokens:
                return _lint(
                    "lengths",
                    f"loss_type={settings.loss_type!r} divides each completion's loss by its own length, and the formats of "
                    f"{task} differ in it ({short_format!r:.40} {short_tokens:.0f} tokens, {long_format!r:.40} "
                    f"{long_tokens:.0f}): a token of a short right answer counts for more, of a long wrong one for "
                    "less. Use loss_type='dapo' or 'dr_grpo'",
                    "arXiv 2503.20783",
                )
    return None


def _warn(run: RunSteering, step: int, lints: Sequence[Lint | None]) -> None:
    """Write lints down and say them."""
    for lint in filter(None, lints):
        run.note(step, f"lint.{lint.name}", lint.sentence)
        if run.files.write:
            logging.getLogger("mixwright").warning("%s", one_line(lint.sentence))  # names of tasks come from the data


def _format_shares(groups: Sequence[GroupOutcome]) -> dict[str, dict[str, float]]:
    """Task -> format -> share, where a task is answered in a few formats."""
    answer_counts: Counter[str] = Counter()
    for group in groups:
        answer_counts[group.task] += len(group.formats)
    shares_by_task = {}
    for task, shares in formats_in_use(groups, FORMAT_SHARE).items():
        if sum(shares.values()) >= COVERED_SHARE:
            shares_by_task[task] = {
                name: share for name, share in shares.items() if share * answer_counts[task] >= MIN_FORMAT_COMPLETIONS
            }
    return shares_by_task


def _lint(name: str, sentence: str, source: str) -> Lint:
    return Lint(name, f"{sentence}. Source: {source}; here: {EVIDENCE_BY_LINT[name]}.")


def _reward(function: Any, weight: float) -> Reward:
    while isinstance(function, functools.partial):
        function = function.func
    name = function if isinstance(function, str) else getattr(function, "__name__", type(function).__name__)
    return Reward(str(name), weight, bool(getattr(function, "novelty", False)))
