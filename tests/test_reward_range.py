"""Rewards outside 0 to 1: the range is asked for, or learnt while steering waits, and nothing is clipped in silence."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from trainers_tiny import UNIFORM, make, read, vowels

from mixwright import SteeredGRPOTrainer, SteeringConfig
from mixwright.errors import InputError
from mixwright.records import GroupOutcome, Plan, Stage
from mixwright.steer.beside.reward_range import BATCHES_TO_LEARN_RANGE, RewardRange

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets the older name


def batch(*rewards: float) -> list[GroupOutcome]:
    return [GroupOutcome("i", "t", None, 0, rewards)]


def given(found: Any) -> list[tuple[float, ...]]:
    """Successes, one for each reward."""
    return [group.successes for group in found]


def test_rewards_of_0_to_1_are_handed_on_as_they_are() -> None:
    scale = RewardRange(0.0, 1.0, was_set=False)
    groups = batch(0.0, 0.3, 1.0 + 1e-7)
    read, told = scale.read_batch(0, groups)
    assert (given(read), told) == ([(0.0, 0.3, 1.0)], [])
    assert scale.read_batch(1, []) == ([], [])
    assert scale.outside == 0


def test_a_range_is_learnt_while_steering_waits_and_widened_later() -> None:
    scale = RewardRange(0.0, 1.0, was_set=False, names=["judge"])
    scale.read_batch(0, batch(0.0, 1.0))
    assert scale.success_now_and_first("canary", 1.0) == (1.0, 1.0)
    _, told = scale.read_batch(1, batch(-1.0, 1.0, 0.5))
    assert scale.is_learning
    assert [(line.step, line.what) for line in told] == [(1, "reward_range held")]
    assert told[0].because.startswith(
        "1 of 3 completions in this batch have a reward outside 0 to 1, weighted sums of judge:"
    )
    for step in range(2, BATCHES_TO_LEARN_RANGE):
        assert (scale.read_batch(step, batch(-1.0, 3.0))[1], scale.is_learning) == ([], True)
    found, (line,) = scale.read_batch(BATCHES_TO_LEARN_RANGE, batch(1.0, -1.0, 3.0))
    assert (line.what, line.old, line.new) == ("reward_range", [0.0, 1.0], [-1.0, 3.0])
    assert "from 12 completions, 7 of them outside 0 to 1" in line.because
    assert given(found) == [(0.5, 0.0, 1.0)], "1 is half the way from -1 to 3"
    assert not scale.is_learning
    assert (scale.success(0.0), scale.success(5.0)) == (0.25, 1.0)
    assert scale.success_now_and_first("canary", -1.0) == (0.0, 0.5), (
        "by 0 to 1 it fell from 1 to 0; its first reward is half the way"
    )
    found, (line,) = scale.read_batch(9, batch(7.0, -1.0))
    assert (line.old, line.new, given(found)) == ([-1.0, 3.0], [-1.0, 7.0], [(1.0, 0.0)])
    assert line.because.startswith("widened: 1 of 2 completions in this batch lay outside -1 to 3")
    assert scale.success_now_and_first("canary", 3.0) == (0.5, 0.25), "it rose, and no widened range makes that a fall"
    assert scale.outside == 1 + 2 + 2 + 2 + 1


def test_a_range_needs_two_different_rewards() -> None:
    scale = RewardRange(0.0, 1.0, was_set=False)
    for step in range(3 * BATCHES_TO_LEARN_RANGE):
        scale.read_batch(step, batch(-1.0, -1.0))
        assert scale.is_learning
    found, (line,) = scale.read_batch(99, batch(-1.0, 0.0))
    assert (line.new, given(found)) == ([-1.0, 0.0], [(0.0, 1.0)])


def test_a_range_that_was_asked_for_never_moves_and_counts_what_lies_outside() -> None:
    scale = RewardRange(-1.0, 1.0, was_set=True, names=["judge"])
    groups = batch(-1.0, 2.0)
    told = [scale.read_batch(step, groups) for step in range(9)]
    assert all(given(found) == [(0.0, 1.0)] for found, _ in told)
    assert [step for step, (_, lines) in enumerate(told) if lines] == [0], "once"
    assert (scale.low, scale.high, scale.outside) == (-1.0, 1.0, 9)


@pytest.mark.parametrize("stop", range(BATCHES_TO_LEARN_RANGE + 2))
def test_the_state_round_trips_at_every_batch(stop: int) -> None:
    rewards = [batch(0.0, 1.0), batch(2.0, 0.0), batch(0.0), batch(1.0), batch(-3.0), batch(5.0, 1.0), batch(0.5)]
    whole, first = RewardRange(0.0, 1.0, was_set=False), RewardRange(0.0, 1.0, was_set=False)
    assert whole.success_now_and_first("canary", 2.0) == first.success_now_and_first("canary", 2.0)
    outcomes = [whole.read_batch(step, groups) for step, groups in enumerate(rewards)]
    for step, groups in enumerate(rewards[:stop]):
        first.read_batch(step, groups)
    second = RewardRange(0.0, 1.0, was_set=False)
    second.restore(json.loads(json.dumps(first.state())))
    assert [second.read_batch(step, rewards[step]) for step in range(stop, len(rewards))] == outcomes[stop:]
    assert second.state() == whole.state()
    assert second.success_now_and_first("canary", 1.0) == (0.5, 0.625), "of -3 to 5, with its first reward 2"


def lines(folder: Path, what: str) -> list[dict[str, Any]]:
    return [line for line in read(folder, "decisions.jsonl") if line["what"] == what]


def signs(completions: list[str], **kwargs: Any) -> list[float]:
    return [1.0 if value > 0.3 else -1.0 for value in vowels(completions)]


def test_a_drop_in_learns_the_range_and_goes_on_after_a_stop_as_if_it_had_not_stopped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"max_steps": 8, "save_strategy": "steps", "save_steps": 1, "lr_scheduler_type": "constant"}

    def trainer(name: str, **more: Any) -> Any:
        return make(SteeredGRPOTrainer, tmp_path / name, settings | more, steering=True, reward_funcs=signs)

    whole = trainer("whole")
    with caplog.at_level(logging.WARNING, "mixwright"):
        whole.train()
    steps = read(tmp_path / "whole", "steps.jsonl")
    assert [line.get("held", False) for line in steps[: BATCHES_TO_LEARN_RANGE + 1]] == [True] * (
        BATCHES_TO_LEARN_RANGE - 1
    ) + [False] * 2
    assert [line["new"] for line in lines(tmp_path / "whole", "reward_range")] == [[-1.0, 1.0]]
    assert caplog.text.count("steering pauses for") == 1
    assert "weighted sums of signs" in caplog.text
    proof = json.loads((tmp_path / "whole" / "steering" / "proof.json").read_text())
    assert proof["rewards_outside"] > 0
    cut = trainer("cut")
    cut.args.max_steps = 2
    cut.train()
    again = trainer("cut")
    again.train(resume_from_checkpoint=True)
    assert again.steered.reward_range.state() == whole.steered.reward_range.state()
    assert [line.get("held", False) for line in read(tmp_path / "cut", "steps.jsonl")] == [
        line.get("held", False) for line in steps
    ]


def falling(completions: list[str], trainer_state: Any, **_: Any) -> list[float]:
    """10 or 8 at the start and 4 or 2 later: all of it is right by 0 to 1."""
    late = 6.0 * (trainer_state.global_step >= 5)
    return [(10.0 if value > 0.3 else 8.0) - late for value in vowels(completions)]


def test_a_fall_in_a_learnt_range_reaches_the_canaries(tmp_path: Path) -> None:
    """Rewards of 2 to 10 are all at least 1: by the range of the start no canary could ever fall."""
    stage = Stage("t", "grpo", 8, {"letters": 0.5, "sums": 0.5}, monitors=("canary",))
    steering = SteeringConfig(Plan("by hand", (stage,)), canary_every=2)
    trainer = make(SteeredGRPOTrainer, tmp_path, {"max_steps": 8}, steering=steering, reward_funcs=falling)
    trainer.train()
    alarms = lines(tmp_path, "alarm.canary")
    assert alarms
    assert min(line["step"] for line in alarms) >= 5
    assert lines(tmp_path, "reward_range")[0]["because"].count("canaries") == 1


def test_a_range_asked_of_the_drop_in_is_used_from_the_first_batch(tmp_path: Path) -> None:
    trainer = make(SteeredGRPOTrainer, tmp_path, steering=SteeringConfig(UNIFORM, reward_range=(-1, 1)), reward_funcs=signs)
    trainer.train()
    assert not lines(tmp_path, "reward_range held")
    assert not lines(tmp_path, "lint.reward_range")
    assert (trainer.steered.reward_range.low, trainer.steered.reward_range.high) == (-1.0, 1.0)
    assert trainer.steered.engine.options.reward_range == (-1.0, 1.0)


WRONG = [("0", "1"), (False, True), (0, float("nan")), (0, float("inf")), (None, 1), (0, 1, 2), (), (1, 1), ((0,), (1,))]


@pytest.mark.parametrize(
    ("asked", "told"),
    [((1, 0), "low < high"), ((0,), "reward_range"), ("01", "reward_range"), ((0, "x"), "reward_range")]
    + [(asked, "two finite numbers, low < high") for asked in WRONG],
)
def test_a_range_that_is_none_is_refused(asked: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told):
        make(SteeredGRPOTrainer, tmp_path, steering=SteeringConfig(UNIFORM, reward_range=asked), reward_funcs=signs)
