"""What reward functions return is checked before it can teach, and a call that does not come back is named and ended."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from trainers_tiny import UNIFORM, grpo_config, make, model, parameters, read, rows, tokenizer, vowels
from trl import GRPOTrainer

from mixwright import SteeredGRPOTrainer, Steering, SteeringCallback
from mixwright.errors import InputError

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning"),  # TRL sets the older name
    pytest.mark.filterwarnings("ignore:.*All reward functions returned None.*"),
]


def first(value: Any) -> Any:
    """A reward function whose first entry is `value`."""

    def judge(completions: list[str], **kwargs: Any) -> list[Any]:
        return [value, *vowels(completions)[1:]]

    return judge


def whole(value: Any) -> Any:
    """A reward function that returns `value`."""

    def judge(completions: list[str], **kwargs: Any) -> Any:
        return value(completions) if callable(value) else value

    return judge


async def judge_async(completions: list[str], **kwargs: Any) -> Any:
    await asyncio.sleep(0)
    return 1.0


WRONG = {
    "-inf": (first(float("-inf")), r"got -inf from judge for example 'row-\d+' \(task \w+\), 1 in this batch. Return 0 for"),
    "inf": (first(float("inf")), r"got inf from judge for example.*Return at most 1"),
    "overflow": (first(1e39), r"got inf from judge"),
    "scalar": (whole(1.0), r"8 rewards from judge, a list with one for each completion, got 1.0\. Return a list"),
    "string": (whole("1.0"), r"8 rewards from judge.*got '1.0'"),
    "nothing": (whole(None), r"8 rewards from judge.*got None"),
    "mapping": (whole({}), r"8 rewards from judge.*got \{\}"),
    "one tensor": (whole(torch.tensor(1.0)), r"8 rewards from judge.*got tensor\(1.\)"),
    "too few": (whole([1.0] * 7), r"8 rewards from judge.*got 7"),
    "string inside": (first("1.0"), r"a number or None from judge for each completion, got '1.0' for completion 0"),
    "list inside": (first([1.0]), r"a number or None from judge for each completion, got \[1.0\] for completion 0"),
    "async": (judge_async, r"8 rewards from judge_async.*got 1.0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_list_of_finite_numbers_stops_before_it_teaches(case: str, tmp_path: Path) -> None:
    reward, told = WRONG[case]
    trainer = make(SteeredGRPOTrainer, tmp_path, steering=Steering(UNIFORM), reward_funcs=reward)
    before = parameters(trainer).clone()
    with pytest.raises(InputError, match=told):
        trainer.train()
    assert torch.equal(parameters(trainer), before)
    assert trainer.steered.batches == 0


@pytest.mark.parametrize("case", ["-inf", "scalar", "string inside", "too few"])
def test_a_callback_checks_them_too(case: str, tmp_path: Path) -> None:
    reward, told = WRONG[case]
    args = grpo_config(tmp_path, shuffle_dataset=False)
    steering = SteeringCallback(Steering(UNIFORM), rows(), reward, args)
    given = {"processing_class": tokenizer(), "callbacks": [steering]}
    trainer = GRPOTrainer(model(), steering.reward_funcs, args, steering.train_dataset, **given)
    with pytest.raises(InputError, match=told):
        trainer.train()


@pytest.mark.parametrize("made", [tuple, torch.tensor, iter, lambda rewards: torch.tensor(rewards).double().numpy()])
def test_any_list_of_numbers_is_one(made: Any, tmp_path: Path) -> None:
    found = []
    for name, reward in {"a": vowels, "b": whole(lambda completions: made(vowels(completions)))}.items():
        trainer = make(SteeredGRPOTrainer, tmp_path / name, steering=Steering(UNIFORM), reward_funcs=reward)
        trainer.train()
        found.append(parameters(trainer))
    assert torch.equal(*found)


def test_without_steering_nothing_is_checked(tmp_path: Path) -> None:
    trainer = make(SteeredGRPOTrainer, tmp_path, {"max_steps": 1}, steering=None, reward_funcs=first(float("-inf")))
    trainer.train()
    with pytest.raises(TypeError):
        make(SteeredGRPOTrainer, tmp_path, {"max_steps": 1}, steering=None, reward_funcs=whole(1.0)).train()


def scored_at(calls: set[int]) -> Any:
    """Judges only in the calls with these numbers."""
    asked: list[int] = []

    def judge(completions: list[str], **kwargs: Any) -> list[float | None]:
        asked.append(1)
        return [*vowels(completions)] if len(asked) in calls else [None] * len(completions)

    return judge


@pytest.mark.parametrize(
    ("calls", "setting", "steps"), [(set(), {}, 2), ({1}, {}, 3), ({3, 6}, {}, None), (set(), {"unscored_batches": 0}, None)]
)
def test_batches_in_a_row_without_a_score_end_the_run(
    calls: set[int], setting: dict[str, Any], steps: int | None, tmp_path: Path
) -> None:
    reward = scored_at(calls)
    trainer = make(
        SteeredGRPOTrainer, tmp_path, {"max_steps": 7}, steering=Steering(UNIFORM, **setting), reward_funcs=reward
    )
    if steps is None:
        trainer.train()
        assert trainer.state.global_step == 7
        return
    with pytest.raises(
        InputError, match=rf"3 generation batches in a row, got none, up to step {steps}: no reward function"
    ):
        trainer.train()
    assert trainer.state.global_step == steps


def spin(completions: list[str], **kwargs: Any) -> list[float]:
    while True:
        try:
            time.sleep(0.001)
        except Exception:  # what judges untrusted text often takes every exception for a wrong answer
            return [1.0] * len(completions)


def sleep(completions: list[str], **kwargs: Any) -> list[float]:
    time.sleep(3600)
    return [1.0] * len(completions)


def match(completions: list[str], **kwargs: Any) -> list[float]:
    return [float(bool(re.fullmatch("(a|aa)+", "a" * 200 + "b"))) for _ in completions]


async def wait(completions: list[str], **kwargs: Any) -> list[float]:
    await asyncio.sleep(3600)
    return [1.0] * len(completions)


@pytest.mark.parametrize("reward", [spin, sleep, match, wait])
def test_a_reward_function_that_hangs_ends_the_run_by_name(reward: Any, tmp_path: Path) -> None:
    steering = Steering(UNIFORM, reward_seconds=0.3)
    trainer = make(SteeredGRPOTrainer, tmp_path, steering=steering, reward_funcs=[vowels, reward])
    told = rf"rewards within 0.3 s, got none \(reward function {reward.__name__}, step 0, tasks? [a-z, ]*(letters|sums)\)"
    with pytest.raises(InputError, match=told):
        trainer.train()


@pytest.mark.parametrize("reward", [sleep, wait])
def test_or_counts_as_wrong_and_is_written_down(reward: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    steering = Steering(UNIFORM, reward_seconds=0.3, slow_rewards="wrong")
    trainer = make(SteeredGRPOTrainer, tmp_path, {"max_steps": 2}, steering=steering, reward_funcs=[reward])
    trainer.train()
    lines = read(tmp_path, "steps.jsonl")
    assert [sum(right for right, _ in line["success"].values()) for line in lines] == [0, 0]
    said = [line for line in read(tmp_path, "decisions.jsonl") if line["what"] == "rewards too slow"]
    assert [line["step"] for line in said] == [0, 1]
    assert f"reward function {reward.__name__}" in said[0]["because"]
    assert "8 completions count as wrong" in caplog.text


def test_what_is_slow_is_named_while_it_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mixwright._time_limit.TOLD_AFTER", 0.05)

    def slow(completions: list[str], **kwargs: Any) -> list[float]:
        time.sleep(0.3)
        return vowels(completions)

    trainer = make(SteeredGRPOTrainer, tmp_path, {"max_steps": 1}, steering=Steering(UNIFORM), reward_funcs=slow)
    trainer.train()
    assert caplog.text.count("Still running") == 1
    assert "reward function slow, step 0" in caplog.text


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"reward_seconds": -1.0}, "reward_seconds of 0 or more"),
        ({"reward_seconds": float("nan")}, "reward_seconds of 0 or more"),
        ({"reward_seconds": "600"}, "reward_seconds as float"),
        ({"slow_rewards": "skip"}, "slow_rewards: stop or wrong"),
        ({"unscored_batches": True}, "unscored_batches as int"),
    ],
)
def test_settings_of_the_wrong_kind(settings: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told):
        make(SteeredGRPOTrainer, tmp_path, steering=Steering(**settings))
