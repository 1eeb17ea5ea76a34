"""Rewards outside 0 to 1: the range is asked for, and nothing is clipped in silence."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from trainers_tiny import UNIFORM, make, read, vowels

from mixwright import SteeredGRPOTrainer, SteeringConfig
from mixwright.errors import InputError
from mixwright.records import GroupOutcome
from mixwright.steer.beside.reward_range import RewardRange

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets the older name


def batch(*rewards: float) -> list[GroupOutcome]:
    return [GroupOutcome("i", "t", None, 0, rewards)]


def given(found: Any) -> list[tuple[float, ...]]:
    """Successes, one for each reward."""
    return [group.successes for group in found]


def test_rewards_of_0_to_1_are_handed_on_as_they_are() -> None:
    scale = RewardRange(0.0, 1.0)
    groups = batch(0.0, 0.3, 1.0 + 1e-7)
    read, told = scale.read_batch(0, groups)
    assert (given(read), told) == ([(0.0, 0.3, 1.0)], [])
    assert scale.read_batch(1, []) == ([], [])
    assert scale.outside == 0


def test_rewards_outside_are_clipped_counted_and_told_once() -> None:
    scale = RewardRange(-1.0, 1.0, names=["judge"])
    told = [scale.read_batch(step, batch(-1.0, 0.0, 2.0)) for step in range(9)]
    assert all(given(found) == [(0.0, 0.5, 1.0)] for found, _ in told)
    (line,) = [line for _, said in told for line in said]
    assert (line.step, line.what) == (0, "lint.reward_range")
    assert "1 of 3 scored completions" in line.because
    assert "-1 to 1, weighted sums of judge (lowest -1, highest 2)" in line.because
    again = RewardRange(-1.0, 1.0)
    again.restore(json.loads(json.dumps(scale.state())))
    assert again.outside == scale.outside == 9
    assert again.read_batch(9, batch(2.0))[1] == []


def lines(folder: Path, what: str) -> list[dict[str, Any]]:
    return [line for line in read(folder, "decisions.jsonl") if line["what"] == what]


def signs(completions: list[str], **kwargs: Any) -> list[float]:
    return [1.0 if value > 0.3 else -1.0 for value in vowels(completions)]


def test_a_range_asked_of_the_drop_in_is_used_from_the_first_batch(tmp_path: Path) -> None:
    trainer = make(SteeredGRPOTrainer, tmp_path, steering=SteeringConfig(UNIFORM, reward_range=(-1, 1)), reward_funcs=signs)
    trainer.train()
    assert not lines(tmp_path, "lint.reward_range")
    assert (trainer.steered.reward_range.low, trainer.steered.reward_range.high) == (-1.0, 1.0)
    assert trainer.steered.engine.options.reward_range == (-1.0, 1.0)


def test_a_drop_in_with_other_rewards_warns_once_and_counts_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trainer = make(SteeredGRPOTrainer, tmp_path, {"max_steps": 4}, steering=True, reward_funcs=signs)
    with caplog.at_level(logging.WARNING, "mixwright"):
        trainer.train()
    assert caplog.text.count("steering clips them") == 1
    assert len(lines(tmp_path, "lint.reward_range")) == 1
    assert trainer.steered.proof()["rewards_outside"] > 0


WRONG = [("0", "1"), (False, True), (0, float("nan")), (0, float("inf")), (None, 1), (0, 1, 2), (), (1, 1), ((0,), (1,))]


@pytest.mark.parametrize(
    ("asked", "told"),
    [((1, 0), "low < high"), ((0,), "reward_range"), ("01", "reward_range"), ((0, "x"), "reward_range")]
    + [(asked, "two finite numbers, low < high") for asked in WRONG],
)
def test_a_range_that_is_none_is_refused(asked: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told):
        make(SteeredGRPOTrainer, tmp_path, steering=SteeringConfig(UNIFORM, reward_range=asked), reward_funcs=signs)
