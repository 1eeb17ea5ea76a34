"""Lines of steps.jsonl about groups, losses or pairs, and the last loss of every example. Pure, no trainer.

Losses and margins are never written as success: a line of SFT has `losses` and `drop`, one of DPO log-ratios and margins.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from mixwright.records import GroupOutcome, Outcome, PairOutcome, cell_key
from mixwright.steer.pool import Pool

OVERFLOW = "no loss of the {rows} rows is a finite number; the run has overflowed"
UNSCORED = {
    "grpo": "no reward function gave a finite number for any completion of the {rows} rows: advantages are 0",
    "sft": OVERFLOW,
    "dpo": OVERFLOW,
}
"""What is said once when nothing of a batch can be used."""
PAIR_NUMBERS = ("chosen_logratio", "rejected_logratio", "margin")
"""What is written of pairs per task: means; nats, the margin times beta."""
PER_TASK = ("drop", *PAIR_NUMBERS)
"""Parts of a line that the trainer's own log gets per task."""


class LastLosses:
    """The last loss of every example in this run; 4 bytes each.

    Args:
        size: examples of the pool.
    """

    def __init__(self, size: int) -> None:
        self.nats = np.full(size, np.nan, dtype=np.float32)
        """Nats per target token; NaN: not seen yet."""

    def drop(self, index: int, loss: float) -> float | None:
        """By how much `loss` is under the last one, which it replaces; None at first sight."""
        last = float(self.nats[index])
        self.nats[index] = loss
        return None if last != last else last - loss

    def state(self) -> dict[str, Any]:
        """JSON-ready: examples seen, and their losses; exact, because every float32 is a float."""
        seen = np.flatnonzero(~np.isnan(self.nats))
        return {"index": seen.tolist(), "nats": self.nats[seen].tolist()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned."""
        self.nats[:] = np.nan
        self.nats[np.asarray(state["index"], dtype=np.int64)] = state["nats"]


def group_line(
    groups: Sequence[GroupOutcome], refused: Collection[str], success: Callable[[float], float]
) -> dict[str, Any]:
    """What groups of GRPO showed: zero signal, refused, mean reward, successes and informative groups per cell.

    Args:
        groups: with true rewards.
        refused: ids of examples whose groups were refused.
        success: reward -> 0..1.
    """
    rewards = [reward for group in groups for reward in group.rewards]
    successes: dict[str, list[float]] = {}
    for group in groups:
        entry = successes.setdefault(cell_key(group.task, group.level), [0.0, 0])
        entry[0] += sum(map(success, group.rewards))
        entry[1] += len(group.rewards)
    return {
        "groups": len(groups),
        "zero_signal": sum(group.no_signal for group in groups),
        "refused": sum(group.example in refused for group in groups),
        "reward": sum(rewards) / len(rewards) if rewards else None,
        "success": successes,
        "mixed": Counter(
            cell_key(group.task, group.level) for group in groups if not group.no_signal and group.example not in refused
        ),
    }


def finite(outcomes: Sequence[Any]) -> list[Any]:
    """Those of losses or pairs whose numbers are all finite: what overflowed says nothing that could be learnt from."""
    numbers = ("loss", "drop", "chosen_logratio", "rejected_logratio", "margin")
    kept = [[getattr(outcome, name, None) for name in numbers] for outcome in outcomes]
    return [
        outcome
        for outcome, values in zip(outcomes, kept, strict=True)
        if all(value is None or math.isfinite(value) for value in values)
    ]


def loss_line(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """What examples of SFT showed: nats per target token; nats and tokens per cell; mean drop per task, where known.

    Without any example (all overflowed) the loss is None.
    """
    losses: dict[str, list[float]] = {}
    drops: defaultdict[str, list[float]] = defaultdict(list)
    for outcome in outcomes:
        entry = losses.setdefault(cell_key(outcome.task, outcome.level), [0.0, 0])
        entry[0] += outcome.loss * outcome.tokens
        entry[1] += outcome.tokens
        if outcome.drop is not None:
            drops[outcome.task].append(outcome.drop)
    nats, tokens = (sum(entry[i] for entry in losses.values()) for i in (0, 1))
    drop = {task: sum(values) / len(values) for task, values in sorted(drops.items())}
    return {"examples": len(outcomes), "loss": nats / max(1, tokens) if outcomes else None, "losses": losses, "drop": drop}


def pair_line(pairs: Sequence[PairOutcome], loss: float) -> dict[str, Any]:
    """What pairs of DPO showed: the loss as the trainer made it, and means of log-ratios and margins per task.

    Args:
        pairs: of one optimiser step.
        loss: mean over its micro-steps, whatever the loss type.
    """
    by_task: defaultdict[str, list[PairOutcome]] = defaultdict(list)
    for pair in pairs:
        by_task[pair.task].append(pair)
    means = {
        name: {task: sum(getattr(p, name) for p in found) / len(found) for task, found in sorted(by_task.items())}
        for name in PAIR_NUMBERS
    }
    return {"pairs": len(pairs), "loss": loss, **means}


def drawn_shares(pool: Pool, rows: Sequence[int]) -> dict[str, float]:
    """Share of each task among draws of the pool's rows; 0 before the first draw."""
    counts = np.bincount(pool.task_of[np.asarray(rows, dtype=np.int64)], minlength=len(pool.tasks))
    return dict(zip(pool.tasks, (counts / max(1, len(rows))).tolist(), strict=True))


def counted(objective: str, counts: Mapping[str, int], rollouts: int) -> dict[str, Any]:
    """The part of proof.json that the objective decides: groups and rollouts, or examples or pairs and tokens read.

    Args:
        objective: grpo, sft or dpo.
        counts: of the whole run.
        rollouts: completions charged.
    """
    if objective != "grpo":
        seen = "examples" if objective == "sft" else "pairs"
        return {name: counts.get(name, 0) for name in (seen, "unscored", "canary_tokens")}
    groups, silent = counts.get("groups", 0), counts.get("zero_signal", 0)
    return {
        "groups": groups,
        "zero_signal": silent,
        "zero_signal_share": silent / max(1, groups),
        "refused": counts.get("refused", 0),
        "unscored": counts.get("unscored", 0),
        "rollouts": rollouts,
        "canary_rollouts": counts.get("canary_rollouts", 0),
    }
