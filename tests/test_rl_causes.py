"""Causes of an RL run that teaches little: each is found where it was planted, and a run that learns has none."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mixwright.logs.diagnosis import diagnose
from mixwright.logs.rl_causes import find_causes
from mixwright.logs.rollouts import Rollout, RolloutLog, read_rollouts

STEPS, SIZE = 40, 8
WORK = "we add the two numbers digit by digit and carry what is over, so that after all of it the answer is"
Row = tuple[str, float]


def make(draw: Callable[[random.Random, int, int], Row], *, prompts: int = 40, kl: float | None = None) -> RolloutLog:
    """A run of one task, four prompts a step; `draw` gives a completion and its reward for a step and a prompt."""
    rng = random.Random(7)
    rollouts = []
    for step in range(1, STEPS + 1):
        for place in range(4):
            prompt = (4 * step + place) % prompts
            for _ in range(SIZE):
                completion, reward = draw(rng, step, prompt)
                rollouts.append(Rollout(step, f"{step} p{prompt}", "sums", completion, reward, {}))
    return RolloutLog("plain", tuple(rollouts), kl={step: kl * step for step in range(1, STEPS + 1)} if kl else {})


def learns(rng: random.Random, step: int, prompt: int) -> Row:
    """A skill that rises from .3 to .7, each prompt with an answer of its own."""
    right = rng.random() < 0.3 + 0.4 * step / STEPS
    return f"Try {rng.randrange(10**6)}: {WORK} {1000 + prompt if right else rng.randrange(10**5)}", float(right)


def guesses(rng: random.Random, step: int, prompt: int) -> Row:
    """Yes or no by a coin, right for half of the prompts each."""
    answer = rng.choice(["yes", "no"])
    return f"{WORK} {answer}", float(answer == ("yes", "no")[prompt % 2])


def leaps(rng: random.Random, step: int, prompt: int) -> Row:
    """One in ten is right, and does not show how."""
    right = rng.random() < 0.1
    return (f"{1000 + prompt}", 1.0) if right else (f"{WORK} {rng.randrange(10**5)}", 0.0)


def fails_on_half(rng: random.Random, step: int, prompt: int) -> Row:
    return learns(rng, step, prompt) if prompt % 2 else (f"{WORK} {rng.randrange(10**5)}", 0.0)


def settles(rng: random.Random, step: int, prompt: int) -> Row:
    """From the middle on every prompt is always right, or always wrong."""
    if step < STEPS / 2:
        return learns(rng, step, prompt)
    return f"{WORK} {1000 + prompt if prompt % 2 else rng.randrange(10**5)}", float(prompt % 2)


def test_a_run_that_learns_has_no_cause() -> None:
    assert diagnose(make(learns)) == []
    assert diagnose(make(learns, kl=0.01)) == []  # it moved away, and gained


@pytest.mark.parametrize(
    ("draw", "check"), [(guesses, "luck"), (leaps, "shortcut"), (fails_on_half, "too hard"), (settles, "stale prompts")]
)
def test_a_planted_cause_is_found_alone(draw: Callable[[random.Random, int, int], Row], check: str) -> None:
    assert [seen.check for seen in find_causes(make(draw))] == [check]


def test_luck_is_told_from_few_answers_that_are_known() -> None:
    """Yes or no, but read from the prompt: nine in ten are right."""

    def knows(rng: random.Random, step: int, prompt: int) -> Row:
        right = rng.random() < 0.8
        return f"{WORK} {('yes', 'no')[(prompt + (not right)) % 2]}", float(right)

    assert not [seen for seen in diagnose(make(knows)) if seen.check == "luck"]


def test_prompts_that_all_are_known_at_last_are_a_note() -> None:
    def masters(rng: random.Random, step: int, prompt: int) -> Row:
        return (f"{WORK} {1000 + prompt}", 1.0) if step > STEPS / 2 else learns(rng, step, prompt)

    assert [(seen.check, seen.severity) for seen in diagnose(make(masters)) if seen.check == "stale prompts"] == [
        ("stale prompts", "info")
    ]


def rows() -> Iterator[dict[str, object]]:
    rng = random.Random(3)
    for step in range(1, 31):
        for sample in range(8):
            yield {"step": step, "prompt": "a", "completion": f"it is {rng.randrange(10**6)}", "reward": float(sample % 2)}


@pytest.mark.parametrize("place", ["trainer_state.json", "checkpoint-30/trainer_state.json"])
def test_divergence_of_the_trainers_own_state_is_read(place: str, tmp_path: Path) -> None:
    """By hand: thirds of ten steps, means .055 and .255."""
    folder = tmp_path / "completions"
    folder.mkdir()
    (folder / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()), encoding="utf-8")
    state = tmp_path / place
    state.parent.mkdir(exist_ok=True)
    history = [{"step": step, "kl": step / 100} for step in range(1, 31)] + [{"step": 31, "kl": float("nan")}]
    state.write_text(json.dumps({"log_history": [*history, {"step": 30, "train_loss": 1.0}]}), encoding="utf-8")
    [seen] = [seen for seen in diagnose(read_rollouts(str(folder))) if seen.check == "drift"]
    assert "0.055 to 0.26 nats per token" in seen.message
    state.write_text("{", encoding="utf-8")
    assert read_rollouts(str(folder)).kl == {}
