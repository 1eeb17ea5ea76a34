"""The finding on rare tasks: which rows its arms see, and its interference meter, by hand."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from mixwright_extras.orders.bursts import Burst
from mixwright_lab.findings.rare_tasks import GAP_STEPS, RARE, TASKS, Settings, batches_of
from mixwright_lab.training.tables import Data, Model, interference
from mixwright_lab.worlds.tables import Tables

SETTINGS = Settings(rows=2048, steps=2 * GAP_STEPS, batch=128)


@pytest.fixture(scope="module")
def data() -> Data:
    world = Tables(seed=3)
    return Data(world, world.corpus(SETTINGS.rows))


def test_the_tasks_are_crossed_by_frequency_and_complexity() -> None:
    world = Tables()
    shares = list(world.shares().values())
    for name, tasks in TASKS.items():
        assert {world.level(task) for task in tasks} == {1.0 if "simple" in name else 2.0}
        assert all(shares[task] < 0.01 if "rare" in name else shares[task] > 0.03 for task in tasks)


def test_alone_has_the_mixtures_rare_rows_step_by_step_and_never_none(data: Data) -> None:
    rare = data.of_tasks(RARE)
    for seed in range(3):
        pairs = zip(batches_of("mixture", data, seed, SETTINGS), batches_of("alone", data, seed, SETTINGS), strict=True)
        for both, own in pairs:
            assert len(both) == SETTINGS.batch
            assert own.tolist() == [row for row in both if rare[row]]
            assert 1 <= len(own) <= 5


def test_bunched_rows_are_the_mixtures_own_and_come_every_40_steps(data: Data) -> None:
    rare = data.of_tasks(RARE)
    mixed, bunched = (batches_of(kind, data, 1, SETTINGS) for kind in ("mixture", "bunched"))
    assert sorted(np.concatenate(bunched)) == sorted(np.concatenate(mixed))
    assert {len(rows) for rows in bunched} == {SETTINGS.batch}
    assert [step for step, rows in enumerate(bunched) if rare[rows].any()] == [GAP_STEPS // 2, GAP_STEPS + GAP_STEPS // 2]


def test_weights_of_the_other_arms(data: Data) -> None:
    rare = data.of_tasks(RARE)
    share = {kind: rare[np.concatenate(batches_of(kind, data, 0, SETTINGS))].mean() for kind in ("mixture", "equal shares")}
    share["six"] = rare[np.concatenate(batches_of("six times as often", data, 0, SETTINGS))].mean()
    natural = len(np.flatnonzero(rare)) / len(rare)
    assert share["mixture"] == pytest.approx(natural, abs=0.002)
    assert share["six"] == pytest.approx(6 * natural / (1 + 5 * natural), abs=0.003)
    assert share["equal shares"] == pytest.approx(3 / 24, abs=0.002)


def test_the_interference_meter_splits_the_gradient_of_the_mean_loss_and_changes_nothing(data: Data) -> None:
    model = Model(8, 24, 8, seed=0)
    before = copy.deepcopy(model.state_dict())
    told = interference(model, data, RARE, Burst(2, 4, 16, 1e-3))
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    rare = torch.from_numpy(data.of_tasks(RARE))
    total = copy.deepcopy(model)
    pulls = {"rare": 0.0, "common": 0.0}
    for name, chosen in (("rare", rare), ("common", ~rare)):
        total.zero_grad()
        (data.losses(total, np.arange(len(rare)))[chosen].sum() / len(rare)).backward()
        pulls[name] = sum(float(p.grad.square().sum()) for p in total.parameters() if p.grad is not None) ** 0.5
    assert told["common / rare gradient"] == pytest.approx(pulls["common"] / pulls["rare"], rel=1e-4)
    assert -1 <= told["cosine of gradients"] <= 1
