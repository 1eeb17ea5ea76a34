"""The world of four tasks by hand, and that orders are grown, added up and compared as their finding says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from mixwright_lab.findings.orders import additive_prediction, compared, success_by_order, success_of
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Settings, reward_accepted
from mixwright_lab.worlds import four_tasks
from mixwright_lab.worlds.four_tasks import TASKS, FourTasks


def test_answers_by_hand():
    world = FourTasks(seed=3)
    assert world.answers("add", [7, 5, 1, 1]) == ("2",)
    assert world.answers("sort", [5, 2, 9, 2]) == ("2 2 5 9",)
    assert world.answers("larger", [5, 9, 2, 7]) == ("7", "9")
    assert world.answers("larger", [9, 9, 2, 7]) == ()
    assert world.answers("recall", [1, 2, 0, 0]) == (str(world.table[1, 2]),)


@pytest.mark.parametrize("level", [1.0, 2.0, 3.0, 4.0])
def test_what_is_taught_is_accepted(level: float):
    world, rng = FourTasks(seed=1), np.random.default_rng(0)
    made = [world.make(index, level, "eval") for index in range(60)]
    assert all(reward_accepted(row, four_tasks.write_solution(row, "direct", 0.0, rng)) == 1.0 for row in made)
    assert {row.task for row in made} == {TASKS[int(level) - 1]}


def test_effects_are_added_as_the_source_adds_them():
    before, changes = np.array([0.5, 0.4]), np.array([[0.3, -0.2], [0.1, 0.4]])  # a run on 0 costs 1 two tenths
    effects = additive_prediction(before, changes)
    told = compared(effects, {(0, 1): 0.9, (1, 0): 0.6})
    assert effects.own_success.tolist() == pytest.approx([0.8, 0.8])
    # 0 then 1 is expected to end at (.8 + .1) and .8, 1 then 0 at .8 and (.8 - .2)
    assert (told["success"], told["of the reverse"], told["of the best"]) == (0.9, 0.6, 0.9)
    assert (told["mean of orders"], told["Spearman"], told["rank"]) == (0.75, pytest.approx(1.0), 1.0)
    assert compared(effects, {(0, 1): 0.6, (1, 0): 0.9})["rank"] == 2.0


def test_every_order_is_trained_and_a_beginning_only_once(monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(0)
    start, world, calls = GPT(four_tasks.language(), 16, 1), FourTasks(), []
    rows = [[world.make(index, level, "train") for index in range(4)] for level in (1.0, 2.0, 3.0)]

    def trained(model: GPT, own: object, steps: int, settings: Settings, key: int) -> GPT:
        calls.append(key)
        return model

    monkeypatch.setattr("mixwright_lab.findings.orders.trained", trained)
    found = success_by_order(start, rows, rows, 1, Settings(longest=6), 0)
    assert set(found) == set(itertools.permutations(range(3)))
    assert len(calls) == 3 + 6 + 6
    assert list(found.values()) == pytest.approx([float(success_of(start, rows, 0).mean())] * 6)
