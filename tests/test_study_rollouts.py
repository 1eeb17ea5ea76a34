"""Rules of the rollouts study: what they charge, what they keep, and how runs are judged."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from mixwright.records import Example
from mixwright_lab.studies import rollouts
from mixwright_lab.studies.peers.coin import Coin
from mixwright_lab.studies.peers.spread import Spread
from mixwright_lab.studies.peers.target import Target
from mixwright_lab.training.bases import CHAIN
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Arena, Learnt, Rollouts, Settings
from mixwright_lab.training.oracle import Oracle
from mixwright_lab.training.rules import pool_of
from mixwright_lab.training.static_band import PROBLEMS_PER_LEVEL, ROLLOUTS_PER_PROBLEM, StaticBand


def examples(count=40):
    return [Example(f"e{i}", "chain", "3 +1", answer="4", level=float(1 + i % 2)) for i in range(count)]


class Told(Arena):
    """Keeps what it was to learn from, and learns nothing."""

    def learn(self, rollouts, admitted=None, **given):
        self.learnt, self.given = rollouts, given
        self.steps += 1
        return Learnt(0.0, 0.0)


def arena(**given):
    torch.manual_seed(0)
    return Told(examples(), GPT(CHAIN, 16), Settings(prompts=4, group=8, longest=3, **given), 0)


@pytest.fixture(autouse=True)
def told(monkeypatch):
    """Rollouts are right half the time at level 1, and never at level 2."""

    def rewards(self):
        return np.array([[float(e.level == 1 and p % 2 == 0) for p in range(self.tokens.shape[1])] for e in self.examples])

    monkeypatch.setattr(Rollouts, "rewards", property(rewards))


def test_the_oracle_draws_the_band_by_truth_and_pays_for_its_draws_only():
    where = arena()
    rule = Oracle(pool_of(where.examples, lambda example: 0.0), (0.1, 0.9), 0)
    for step in range(1, 4):
        rule.step(where)
        assert {example.level for example in where.learnt.examples} == {1.0}
        assert where.charged == step * 32


def test_spread_follows_the_raw_variance_of_rewards():
    where = arena()
    rule, seen = Spread(pool_of(where.examples, lambda example: 0.5 if example.level == 1 else 0.0), 0), []
    for _ in range(30):
        rule.step(where)
        seen += [example.level for example in where.learnt.examples]
    assert np.mean(np.array(seen[60:]) == 1) > 0.85  # a guess that is right half the time: the largest p(1 - p) of all


def test_target_follows_the_published_rule_by_hand(monkeypatch):
    where = arena()
    rule = Target(pool_of(where.examples, lambda example: 0.0), 0)
    mean = 0.75
    monkeypatch.setattr(Rollouts, "rewards", property(lambda self: np.full(self.tokens.shape[:2], mean)))
    rule.step(where)
    assert {example.level for example in where.learnt.examples} == {1.0}  # begins with the lowest of two
    first = 0.5 * math.tanh(2 * 0.25)
    assert rule.target == pytest.approx(first) == pytest.approx(0.23106, abs=1e-5)
    mean = 1.0
    rule.step(where)
    assert rule.target == pytest.approx(first + 0.5 * math.tanh(1.0))  # 0.612: nearer to the highest, but for noise
    for _ in range(9):
        rule.step(where)
    assert rule.target == 1.0  # clipped
    assert {example.level for example in where.learnt.examples} == {2.0}
    mean = 0.0
    rule.step(where)
    assert rule.target == pytest.approx(1 - 0.5 * math.tanh(1.0))


def test_static_band_is_chosen_once_by_a_charged_measurement_edges_included(monkeypatch):
    where = arena()
    rule = StaticBand(pool_of(where.examples, lambda example: 0.0), (0.5, 0.9), 0)  # half right at level 1, none at 2
    rule.step(where)
    assert where.charged == 2 * PROBLEMS_PER_LEVEL * ROLLOUTS_PER_PROBLEM + 4 * 8
    drawn = [example.id for example in where.learnt.examples]
    monkeypatch.setattr(Rollouts, "rewards", property(lambda self: np.zeros(self.tokens.shape[:2])))
    for _ in range(4):
        rule.step(where)
        drawn += [example.id for example in where.learnt.examples]
    assert sorted(drawn) == sorted(e.id for e in where.examples if e.level == 1)  # one pass; it never changes its mind
    assert rule.totals["groups"] == 20
    none = StaticBand(pool_of(where.examples, lambda example: 0.0), (0.9, 1.0), 0)
    none.step(where)
    assert len({example.level for example in where.learnt.examples}) == 1  # never empty


def test_a_coin_refuses_its_share_and_steps_follow_the_informative_groups():
    where = arena()
    rule = Coin(40, 0, 0.5)
    for _ in range(50):
        rule.step(where)
    assert 0.35 < rule.totals["refused"] / rule.totals["groups"] < 0.65
    assert rule.totals["groups"] == 200
    assert where.charged == 200 * 8  # refused groups have cost their rollouts
    assert rule.totals["skipped"] > 0
    plain = Coin(40, 0, 0.0)
    plain.step(where)
    assert plain.totals["refused"] == 0
    assert where.given == {"lr_factor": 1.0}  # two of four groups are informative: over the quarter that a full step needs


def row(arm, seed, accuracies):
    seen = [{"charged": 960 * place, "accuracy": value} for place, value in enumerate(accuracies)]
    seen.append({"charged": 7680, "accuracy": 0.0})  # after the watched rollouts: nothing of it counts
    return {"arm": arm, "seed": seed, "seen": seen, "teach": 0.5, "trap_share": 0.0, "refused": 0.0}


def test_runs_are_judged_as_the_page_says():
    rows = [{"arm": "frozen", "seed": seed} for seed in (0, 1)]
    for seed in (0, 1):
        rows += [
            row("oracle", seed, [0.2, 0.9, 0.9, 0.9, 1.0, 1.0, 1.0]),  # final 1.0, target 0.9: mean of two looks at 1,920
            row("ours", seed, [0.2, 0.3, 0.9, 0.9, 0.9, 0.9, 0.9]),  # at 2,880
            row("uniform", seed, [0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2]),  # never: counts with 5,760
        ]
    figures = rollouts.mechanism(rows)
    assert [r["to_target"] for r in rows[2:5]] == [1920.0, 2880.0, None]
    over = figures["uniform"]["rollouts over ours"]
    assert (over["value"], over["low"], over["high"]) == pytest.approx((2.0, 2.0, 2.0))
    assert over["lower bound"]
    assert over["censored"] == {"uniform": 2, "ours": 0}
    assert figures["uniform"]["rollouts to target, geometric mean"] == pytest.approx(5760)
    assert figures["oracle"]["rollouts over ours"]["value"] == pytest.approx(2 / 3)


def test_without_an_oracle_there_is_no_target():
    figures = rollouts.mechanism([row("ours", 0, [0.2] * 7)])
    assert figures == {"ours": {"teach": 0.5, "refused": 0.0, "trap_share": 0.0}}


def test_goals_need_the_whole_interval_above_zero():
    shown = {"success": [0.02, -0.01, 0.05], "seeds": 5}
    better = {"success": [0.02, 0.01, 0.03], "seeds": 5}
    figures = {
        kind: {reading: dict.fromkeys(map(" - ".join, rollouts.pairs_of(kind)), shown) for reading in ("outcome", "early")}
        for kind in rollouts.POOLS
    }
    figures["wide"]["outcome"]["ours - uniform"] = better
    goals = rollouts.goals_of(figures)
    assert [goal.name for goal in goals if goal.reached] == ["wide, at the end: ours - uniform, greedy success, all levels"]


def test_labels_are_moved_and_nothing_else():
    pool = rollouts.problems("wide", 0)
    shuffled, noisy, absent = (rollouts.labelled(pool, labels, 0) for labels in ("shuffled", "noisy", "absent"))
    assert sorted(e.level for e in shuffled) == sorted(e.level for e in pool)
    assert 0.6 < np.mean([a.level != b.level for a, b in zip(shuffled, pool, strict=True)]) < 0.95
    moved = np.array([a.level - b.level for a, b in zip(noisy, pool, strict=True)])
    assert 0.3 < np.mean(moved == 0) < 0.6  # P(|normal| < 1/2) = 0.38, and more at both ends
    assert {e.level for e in absent} == {None}
    assert [e.id for e in shuffled] == [e.id for e in noisy] == [e.id for e in absent] == [e.id for e in pool]


def test_pools_are_as_said():
    pool = rollouts.problems("trap", 0)
    share = np.mean([example.level == rollouts.TRAP_LEVEL for example in pool])
    assert share == pytest.approx(0.4, abs=0.02)
    accepted = [len(example.extra["accepted"]) for example in pool if example.level == rollouts.TRAP_LEVEL]
    assert set(accepted) == {7, 8, 9}
    assert np.mean(accepted) == pytest.approx(8, abs=0.1)
    wide = rollouts.problems("wide", 0)
    inside = np.mean([example.level in rollouts.SCORED for example in wide])
    assert 0.09 < inside < 0.12
    assert len({example.id for example in wide}) == len(wide)
    held_out = rollouts.held_out("trap")
    assert not {example.id for example in wide} & {example.id for example in held_out}
    levels = [example.level for example in held_out]
    assert set(levels) == set(range(1, 10))
    assert all(levels.count(level) == rollouts.HELD_OUT_PER_LEVEL for level in range(2, 10))
