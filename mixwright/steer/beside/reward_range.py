"""Range of rewards that steering reads as wrong (0) to right (1): asked for, or learnt from the first batches.

Rewards within 0 to 1 need nothing. The first batch with others, where nobody asked for a range, holds steering back: its
evidence would be wrong. After `BATCHES_TO_LEARN_RANGE` batches the least and the largest reward so far are the range; a
later reward outside widens it. Evidence stays as it was recorded; fixed items are compared with their first rewards, read by
the range of now. Pure: all processes see the same rewards and keep the same range.
"""

from __future__ import annotations

from collections.abc import Sequence

from mixwright.records import Decision, GroupOutcome
from mixwright.steer.checkpointable import Checkpointable
from mixwright.steer.ledger import read_rewards, success_of

BATCHES_TO_LEARN_RANGE = 4
"""Generation batches that a range is learnt from."""
HOW_TO_ASK = "To set the range: SteeringConfig(reward_range=(wrong, right))"


class RewardRange(Checkpointable):
    """What rewards mean to steering; training sees them unchanged.

    Args:
        low: reward of a wrong answer, by the plan.
        high: reward of a right one.
        was_set: whether somebody asked for this range; if so it never changes.
        names: of the reward functions, for what is said.
    """

    STATE_FIELDS = (
        "low",
        "high",
        "outside",
        "_batches_left",
        "_is_learnt",
        "_found",
        "_completions_seen",
        "_first_rewards",
    )

    def __init__(self, low: float, high: float, *, was_set: bool, names: Sequence[str] = ()) -> None:
        self.low, self.high, self.was_set, self.names = low, high, was_set, names
        self._batches_left = 0
        """Batches that are still held back; 0 where no range is being learnt."""
        self._is_learnt = False
        self._found: list[float] = []
        """Least and largest reward so far."""
        self._completions_seen = 0
        """Completions so far."""
        self.outside = 0
        """Completions of the run whose reward lay outside the range of that time."""
        self._first_rewards: dict[str, float] = {}
        """Reward of each watched item in its first pass."""

    def success(self, reward: float) -> float:
        """A reward as success, 0..1."""
        return success_of(reward, self.low, self.high)

    def success_now_and_first(self, example: str, reward: float) -> tuple[float, float]:
        """Success of a fixed item now and in its first pass, both by the range as it is now.

        So a fall is no smaller or larger because the range moved in between. The first reward of each item is kept.
        """
        first_reward = self._first_rewards.setdefault(example, reward)
        return self.success(reward), self.success(first_reward)

    @property
    def is_learning(self) -> bool:
        """Whether a range is being learnt, so that nobody knows what rewards mean."""
        return self._batches_left > 0

    def read_batch(self, step: int, groups: Sequence[GroupOutcome]) -> tuple[list[GroupOutcome], list[Decision]]:
        """The groups with their rewards as successes by the range as it is now; and what is to be said."""
        rewards = [reward for group in groups for reward in group.rewards]
        if not rewards:
            return [], []
        self._completions_seen += len(rewards)
        self._found = [min(self._found + rewards), max(self._found + rewards)]
        rounding = 1e-5 * (self.high - self.low)  # of sums in float32
        outside = sum(not self.low - rounding <= reward <= self.high + rounding for reward in rewards)
        self.outside += outside
        decisions = self._take_batch(step, outside, rewards)
        return read_rewards(groups, (self.low, self.high)), decisions

    def _take_batch(self, step: int, outside: int, rewards: Sequence[float]) -> list[Decision]:
        """Take in one more batch; what is to be said of it."""
        if self.was_set:
            if not outside or self.outside > outside:  # told once; proof.json counts them
                return []
            return [Decision(step, "lint.reward_range", None, None, self._format_outside(outside, rewards))]
        if self._batches_left:
            self._batches_left -= 1
            if not self._batches_left and self._found[0] == self._found[1]:
                self._batches_left = 1
            if self._batches_left:
                return []
            seen_text = f"{self._completions_seen:,} completions, {self.outside:,} of them outside"
            return [self._set_range(step, f"learned from {seen_text}")]
        if not outside:
            return []
        if self._is_learnt:
            return [self._set_range(step, f"widened: {outside} of {len(rewards)} completions in this batch lay outside")]
        self._batches_left = BATCHES_TO_LEARN_RANGE - 1
        outside_text = f"{outside} of {len(rewards)} completions in this batch have a reward outside {self._format_range()}"
        waiting_text = f"steering pauses for {BATCHES_TO_LEARN_RANGE} batches, this one included, to learn the range"
        return [Decision(step, "reward_range held", None, None, f"{outside_text}: {waiting_text}. {HOW_TO_ASK}")]

    def _set_range(self, step: int, why: str) -> Decision:
        old_range, self._is_learnt = [self.low, self.high], True
        self.low, self.high = self._found
        reason = f"{why} {old_range[0]:g} to {old_range[1]:g}; earlier evidence is not recomputed"
        reason += "; canaries are compared with their first rewards on the new scale" if self._first_rewards else ""
        return Decision(step, "reward_range", old_range, [self.low, self.high], f"{reason}. {HOW_TO_ASK}")

    def _format_outside(self, outside: int, rewards: Sequence[float]) -> str:
        return (
            f"{outside} of {len(rewards)} scored completions in this batch have a reward outside the reward_range "
            f"{self._format_range()} that you set (lowest {min(rewards):g}, highest {max(rewards):g}). "
            "Training uses them unchanged; steering clips them. Set "
            "SteeringConfig(reward_range=(wrong, right)), or options: {engine: {reward_range: [wrong, right]}} in the "
            "plan's stage, to the rewards of a wrong and of a right answer"
        )

    def _format_range(self) -> str:
        names_text = f", weighted sums of {', '.join(self.names)}" if self.names else ""
        return f"{self.low:g} to {self.high:g}{names_text}"
