"""Range of rewards that steering reads as wrong (0) to right (1): the plan's, or 0 to 1. Rewards outside are clipped.

A warning says so once, and proof.json counts them. Training sees rewards unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

from mixwright.records import Decision, GroupOutcome
from mixwright.steer.checkpointable import Checkpointable
from mixwright.steer.ledger import read_rewards, success_of


class RewardRange(Checkpointable):
    """What rewards mean to steering.

    Args:
        low: reward of a wrong answer.
        high: reward of a right one.
        names: of the reward functions, for what is said.
    """

    STATE_FIELDS = ("outside",)

    def __init__(self, low: float, high: float, *, names: Sequence[str] = ()) -> None:
        self.low, self.high, self.names = low, high, names
        self.outside = 0
        """Completions of the run whose reward lay outside."""

    def success(self, reward: float) -> float:
        """Return a reward as success, 0..1."""
        return success_of(reward, self.low, self.high)

    def read_batch(self, step: int, groups: Sequence[GroupOutcome]) -> tuple[list[GroupOutcome], list[Decision]]:
        """Return the groups with their rewards as successes, and what is to be said of the first rewards outside."""
        rewards = [reward for group in groups for reward in group.rewards]
        rounding = 1e-5 * (self.high - self.low)  # of sums in float32
        outside = sum(not self.low - rounding <= reward <= self.high + rounding for reward in rewards)
        is_first, self.outside = bool(outside) and not self.outside, self.outside + outside
        decisions = [Decision(step, "lint.reward_range", None, None, self._describe(outside, rewards))] if is_first else []
        return read_rewards(groups, (self.low, self.high)), decisions

    def _describe(self, outside: int, rewards: Sequence[float]) -> str:
        names_text = f", weighted sums of {', '.join(self.names)}" if self.names else ""
        return (
            f"{outside} of {len(rewards)} scored completions in this batch have a reward outside the reward_range "
            f"{self.low:g} to {self.high:g}{names_text} (lowest {min(rewards):g}, highest {max(rewards):g}). "
            "Training uses them unchanged; steering clips them. Set SteeringConfig(reward_range=(wrong, right)), or "
            "options: {engine: {reward_range: [wrong, right]}} in the plan's stage"
        )
