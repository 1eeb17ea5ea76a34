"""What reward functions return is checked before it can teach, and a call that does not come back is named and ended."""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from trainers_tiny import UNIFORM, grpo_config, make, model, parameters, read, rows, script, tokenizer, vowels

from mixwright import SteeredGRPOTrainer, SteeringConfig
from mixwright.errors import InputError
from mixwright.time_limit import TooSlow, call_with_timeout

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
    "scalar": (whole(1.0), r"a list of 8 rewards from judge, one per completion, got 1.0\. Return a list"),
    "string": (whole("1.0"), r"8 rewards from judge.*got '1.0'"),
    "mapping": (whole({}), r"8 rewards from judge.*got \{\}"),
    "one tensor": (whole(torch.tensor(1.0)), r"8 rewards from judge.*got tensor\(1.\)"),
    "too few": (whole([1.0] * 7), r"8 rewards from judge.*got 7"),
    "string inside": (first("1.0"), r"a number or None from judge for each completion, got '1.0' for completion 0"),
    "list inside": (first([1.0]), r"a number or None from judge for each completion, got \[1.0\] for completion 0"),
    "complex inside": (first(np.complex64(1)), r"a number or None from judge for each completion, got .*1\+0j"),
    "bytes inside": (first(bytearray(b"1")), r"a number or None from judge for each completion, got bytearray"),
    "complex": (whole(lambda c: np.ones(len(c)) + 0j), r"a number or None from judge for each completion, got \(1\+0j\)"),
    "set": (whole(lambda c: set(range(len(c)))), r"8 rewards from judge.*got \{0,"),
    "bytes": (whole(lambda c: bytes(len(c))), r"8 rewards from judge.*got b'"),
    "memory": (whole(lambda c: memoryview(bytes(len(c)))), r"8 rewards from judge.*got <memory"),
    "table": (whole(lambda c: pandas.DataFrame([[1.0] * len(c)])), r"8 rewards from judge.*got "),
    "no end": (whole(lambda c: itertools.repeat(1.0)), r"8 rewards from judge.*got more than 8"),
    "large": (first(1e13), r"at most 1e\+12 in size.*got 1e\+13 from judge for example 'row-\d+'.*Return at most 1"),
    "large below": (first(-1e13), r"at most 1e\+12 in size.*got -1e\+13 from judge for example.*Return 0 for"),
    "async": (judge_async, r"8 rewards from judge_async.*got 1.0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_list_of_finite_numbers_stops_before_it_teaches(case: str, tmp_path: Path) -> None:
    reward, told = WRONG[case]
    trainer = make(SteeredGRPOTrainer, tmp_path, steering=SteeringConfig(UNIFORM), reward_funcs=reward)
    before = parameters(trainer).clone()
    with pytest.raises(InputError, match=told):
        trainer.train()
    assert torch.equal(parameters(trainer), before)
    assert trainer.steered.batches == 0


@pytest.mark.parametrize(
    "made", [tuple, torch.tensor, iter, pandas.Series, lambda rewards: torch.tensor(rewards).double().numpy()]
)
def test_any_list_of_numbers_is_one(made: Any, tmp_path: Path) -> None:
    found = []
    for name, reward in {"a": vowels, "b": whole(lambda completions: made(vowels(completions)))}.items():
        trainer = make(SteeredGRPOTrainer, tmp_path / name, steering=SteeringConfig(UNIFORM), reward_funcs=reward)
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
        SteeredGRPOTrainer, tmp_path, {"max_steps": 7}, steering=SteeringConfig(UNIFORM, **setting), reward_funcs=reward
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


def lazy(completions: list[str], **kwargs: Any) -> Iterator[float]:
    for _ in completions:
        time.sleep(3600)
        yield 1.0


class Endless:
    def __float__(self) -> float:
        while True:
            pass


def endless(completions: list[str], **kwargs: Any) -> list[Any]:
    return [Endless()] * len(completions)


@pytest.mark.parametrize("reward", [spin, sleep, match, wait, lazy, endless])
def test_a_reward_function_that_hangs_ends_the_run_by_name(reward: Any, tmp_path: Path) -> None:
    steering = SteeringConfig(UNIFORM, reward_seconds=0.1)
    trainer = make(SteeredGRPOTrainer, tmp_path, steering=steering, reward_funcs=[vowels, reward])
    told = rf"rewards within 0.1 s, got none \(reward function {reward.__name__}, step 0, tasks? [a-z, ]*(letters|sums)\)"
    with pytest.raises(InputError, match=told):
        trainer.train()


@pytest.mark.parametrize("reward", [sleep, wait])
def test_or_counts_as_wrong_and_is_written_down(reward: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    steering = SteeringConfig(UNIFORM, reward_seconds=0.1, slow_rewards="wrong")
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
    monkeypatch.setattr("mixwright.time_limit.NAMED_AFTER_SECONDS", 0.05)

    def slow(completions: list[str], **kwargs: Any) -> list[float]:
        time.sleep(0.3)
        return vowels(completions)

    trainer = make(SteeredGRPOTrainer, tmp_path, {"max_steps": 1}, steering=SteeringConfig(UNIFORM), reward_funcs=slow)
    trainer.train()
    assert caplog.text.count("Still running") == 1
    assert "reward function slow, step 0" in caplog.text


def test_what_swallows_the_interrupt_is_named_where_the_limit_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mixwright.time_limit.INTERRUPT_EVERY_SECONDS", 0.1)
    told: list[int] = []

    def stubborn() -> None:
        try:
            time.sleep(3600)
        except BaseException:
            time.sleep(3600)

    with pytest.raises(TooSlow):
        call_with_timeout(0.1, stubborn, lambda: told.append(1))
    assert told == [1]


def give(value: float, name: str) -> Any:
    """A reward function of that name that gives `value` to the first completion."""
    judge = first(value)
    judge.__name__ = name
    return judge


@pytest.mark.parametrize("weights", [[1.0, 1.0], [1e9, 1.0]])
def test_a_sum_that_overflows_is_refused(weights: list[float], tmp_path: Path) -> None:
    functions = [give(9e11, "one"), give(9e11, "two")]
    trainer = make(
        SteeredGRPOTrainer, tmp_path, {"reward_weights": weights}, steering=SteeringConfig(UNIFORM), reward_funcs=functions
    )
    before = parameters(trainer).clone()
    with pytest.raises(InputError, match=r"from the weighted sum of one, two for example 'row-\d+'.*smaller reward_weights"):
        trainer.train()
    assert torch.equal(parameters(trainer), before)


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), 1e13])
def test_weights_that_are_no_numbers_are_refused_at_once(weight: float, tmp_path: Path) -> None:
    settings = {"reward_weights": [1.0, weight], "shuffle_dataset": False}
    functions = [give(1.0, "one"), give(1.0, "two")]
    args, steering = grpo_config(tmp_path, **settings), SteeringConfig(UNIFORM)
    with pytest.raises(InputError, match=r"finite reward_weights of at most 1e\+12, got .* for two"):
        SteeredGRPOTrainer(model(), functions, args, rows(), processing_class=tokenizer(), steering=steering)


CHANGES: dict[str, Any] = {
    "clear": lambda completions, ids: completions.clear(),
    "grow": lambda completions, ids: completions.append("x"),
    "other": lambda completions, ids: completions.__setitem__(slice(None), ["x"] * len(completions)),
    "ids": lambda completions, ids: ids.clear(),
    "longer": lambda completions, ids: [each.append(5) for each in ids],
    "mode": None,
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_reward_functions_change_leaves_the_evidence_alone(case: str, tmp_path: Path) -> None:
    found = []
    for change in (False, True):
        live: list[Any] = []

        def judge(completions: list[str], completion_ids: list[list[int]], **kwargs: Any) -> list[float]:
            rewards = vowels(completions)
            if change and case == "mode":  # noqa: B023 - called inside this round
                live[0].model.eval()  # noqa: B023
            elif change:  # noqa: B023
                CHANGES[case](completions, completion_ids)
            return rewards

        trainer = make(
            SteeredGRPOTrainer,
            tmp_path / str(change),
            {"max_steps": 1},
            steering=SteeringConfig(UNIFORM),
            reward_funcs=judge,
        )
        live.append(trainer)
        seen = script(trainer, lambda groups: [])
        trainer.train()
        found.append(seen)
    assert len(found[0]) == 1
    assert found[0] == found[1]


def test_names_carry_no_control_characters_into_messages(tmp_path: Path) -> None:
    data = rows().remove_columns("task").add_column("task", ["a\x1b[31m\nb"] * 24)  # type: ignore[call-arg]
    for reward in (give(float("inf"), "red\x1b[0m\n"), give("x", "red\x1b[0m\n")):  # type: ignore[arg-type]
        trainer = make(SteeredGRPOTrainer, tmp_path, steering=True, train_dataset=data, reward_funcs=reward)
        with pytest.raises(InputError, match="from red") as caught:
            trainer.train()
        assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("spread", "told"),
    [
        ((1.0, 0.0), None),
        ((0.7, 0.3 + 1e-8), None),
        ((1.0, 1.0), r"\d+ of 8 scored .* reward_range 0 to 1, weighted sums of always, always \(lowest"),
        (
            (-1.0, 0.0),
            r"\d+ of 8 scored .* reward_range 0 to 1, weighted sums .* \(lowest -\S+, highest -\S+\)",
        ),
    ],
)
def test_sums_outside_the_range_that_was_asked_for_are_told(
    spread: tuple[float, float], told: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def always(completions: list[str], **kwargs: Any) -> list[float]:
        return [1.0 if place else 0.5 for place in range(len(completions))]

    trainer = make(
        SteeredGRPOTrainer,
        tmp_path,
        {"reward_weights": list(spread)},
        steering=SteeringConfig(UNIFORM, reward_range=(0.0, 1.0)),
        reward_funcs=[always, always],
    )
    with caplog.at_level(logging.WARNING, "mixwright"):
        trainer.train()
    lines = [line for line in read(tmp_path, "decisions.jsonl") if line["what"] == "lint.reward_range"]
    assert [line["step"] for line in lines][:2] == ([] if told is None else [0])
    assert caplog.text.count("scored completions in this batch have a reward outside") == min(len(lines), 1)
    assert told is None or re.search(told + r".*options: \{engine: \{reward_range:", caplog.text)
