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
from mixwright.records import GroupOutcome, Plan, Stage
from mixwright.steer.beside.files import SteeringFiles
from mixwright.steer.beside.run import RunSteering
from mixwright.steer.engine import Engine
from mixwright.steer.pool import make_pool

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets the older name


def test_rewards_outside_are_clipped_counted_and_told_once(tmp_path: Path) -> None:
    pool = make_pool(["i"], ["t"])
    plan = Plan("p", (Stage("s", "grpo", 9, {"t": 1.0}, options={"engine": {"reward_range": [-1, 1]}}),))

    def start() -> RunSteering:
        run = RunSteering(Engine(plan, pool, seed=0), pool, SteeringFiles(tmp_path), beta=0.0)
        run.reward_names = ["judge"]
        return run

    def observe(run: RunSteering, step: int, *rewards: float) -> None:
        run.draws.read_or_draw(step, 1)
        run.observe(step, [GroupOutcome("i", "t", None, step, rewards)], rows=1, completions=len(rewards), kl=None)

    run = start()
    run.files.clear()
    observe(run, 0, -1.0, 0.0, 1.0 + 1e-6)
    assert "rewards_outside" not in run.proof()
    for step in range(1, 10):
        observe(run, step, -1.0, 0.0, 2.0)
    assert run.proof()["rewards_outside"] == 9
    assert run.draws.success.tolist() == pytest.approx([0.5] * 10)
    again = start()
    again.restore(json.loads(json.dumps(run.state())))
    again.files.truncate_to(run.files.sizes_and_checksums())
    observe(again, 10, 2.0)
    assert again.proof()["rewards_outside"] == 10
    (line,) = [json.loads(text) for text in (tmp_path / "decisions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert (line["step"], line["what"]) == (1, "lint.reward_range")
    assert "1 of 3 scored completions" in line["because"]
    assert "-1 to 1, weighted sums of judge (lowest -1, highest 2)" in line["because"]


def lines(folder: Path, what: str) -> list[dict[str, Any]]:
    return [line for line in read(folder, "decisions.jsonl") if line["what"] == what]


def signs(completions: list[str], **kwargs: Any) -> list[float]:
    return [1.0 if value > 0.3 else -1.0 for value in vowels(completions)]


def test_a_range_asked_of_the_drop_in_is_used_from_the_first_batch(tmp_path: Path) -> None:
    trainer = make(SteeredGRPOTrainer, tmp_path, steering=SteeringConfig(UNIFORM, reward_range=(-1, 1)), reward_funcs=signs)
    trainer.train()
    assert not lines(tmp_path, "lint.reward_range")
    assert trainer.steered.reward_range == (-1.0, 1.0)
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
    + [(asked, "reward_range") for asked in WRONG],
)
def test_a_range_that_is_none_is_refused(asked: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told):
        make(SteeredGRPOTrainer, tmp_path, steering=SteeringConfig(UNIFORM, reward_range=asked), reward_funcs=signs)
