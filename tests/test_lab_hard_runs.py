"""Runs on problems out of reach: pools, commonest answers by hand, permuted rewards, what the gate refuses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

pytest.importorskip("torch")

from mixwright_lab.findings.shortcuts import WAYS as SHORTCUTS
from mixwright_lab.findings.too_hard import MIX, WAYS
from mixwright_lab.hard_runs import FROZEN, OUT_OF_REACH, Settings, Way, arm_name, commonest, problems, readings
from mixwright_lab.training.grpo import Rollouts

TINY = Settings(base=5, steps=4, pool=60, items=2, samples=2)


def test_the_commonest_answer_counts_answers_of_all_problems() -> None:
    answers = [["1", "1", "2", ""], ["1", "", "", ""]]
    assert commonest(cast(Rollouts, SimpleNamespace(answers=answers))) == 3 / 8
    assert commonest(cast(Rollouts, SimpleNamespace(answers=[["", ""]]))) == 1


def test_pools_have_their_shares_and_arms_of_a_seed_share_them() -> None:
    found = problems(Way(MIX), 3, Settings(pool=400))
    levels = np.array([example.level for example in found])
    assert [(levels == level).sum() for level in (8, 5, 6)] == [300, 50, 50]
    assert len({example.id for example in found}) == len(found)
    assert {example.split for example in found} == {"train"}
    assert problems(WAYS["hard"], 3, TINY) == problems(WAYS["hard, random"], 3, TINY)
    zeros = [example.answer == "0" for example in problems(SHORTCUTS["guessable"], 3, Settings(pool=1500))]
    assert 0.15 < np.mean(zeros) < 0.26  # 15 %, and a sixteenth of the rest


def test_every_arm_measures_the_same_base_and_random_rewards_change_it_otherwise() -> None:
    ways = {"hard": Way(OUT_OF_REACH), "random": Way(OUT_OF_REACH, random=True)}
    arms = (arm_name("hard", "dapo"), arm_name("random", "dapo"), arm_name("hard", "grpo"))
    found = {arm: readings(arm, ways, 100, TINY, again=False) for arm in (FROZEN, *arms)}
    start = {round(found[arm]["known at 0/4"], 9) for arm in arms}
    assert len(start) == 1, "before training an arm knows what every other one knows"
    assert found[FROZEN]["drift"] == pytest.approx(0, abs=1e-6)
    assert found[FROZEN] == readings(FROZEN, ways, 100, TINY, again=False)
    assert all(np.isfinite(list(one.values())).all() for one in found.values())


def test_the_gate_refuses_what_is_never_solved() -> None:
    """A base of 5 steps never solves 8 operations: 24 rollouts of evidence are there after the first batch of 96."""
    steps = 12
    settings = Settings(base=5, steps=steps, pool=200, items=2, samples=2)
    gated = readings("hard, gate, dapo", WAYS, 100, settings, again=False)
    free = readings("hard, dapo", WAYS, 100, settings, again=False)
    assert free["groups: refused"] == 0
    assert gated["groups: refused"] > 0.5
