"""Over-hard problems on the bare loop: unguarded training loses what the model could do, guarded training keeps it."""

from __future__ import annotations

import pytest

from benchmarks import overhard
from benchmarks.peers._arena import Arena, Settings
from benchmarks.peers._base import Recipe, base_model
from benchmarks.peers._rules import Engined, distinct, pool_of
from mixwright.records import Plan, Stage
from mixwright_lab.worlds.chain import Chain

WORLD = Chain()
GUARDS = {"gates": ("too_hard",), "options": {"engine": {"anchor": 0.25}}}


def kept(guards) -> tuple[float, float]:
    """Success on problems of one or two operations before and after 25 steps on 95 % problems of eight."""
    held_out = [WORLD.make(index, level, "eval") for level in (1, 2) for index in range(40)]
    made = [WORLD.make(index, 8, "train") for index in range(380)] + [WORLD.make(index, 2, "train") for index in range(20)]
    model = base_model(0, Recipe(levels=((1, 1.0), (2, 1.0)), steps=700))
    arena = Arena(distinct(made), model, Settings(rate=2e-3), seed=0)
    stage = Stage("s", "grpo", 25, {"chain": 1.0}, **guards)
    rule = Engined(Plan("p", (stage,)), pool_of(arena.examples, lambda _: 1 / 16), seed=0)
    before = float(arena.look(held_out).rewards.mean())
    for _ in range(25):
        rule.step(arena)
    return before, float(arena.look(held_out).rewards.mean())


def test_guards_keep_what_over_hard_problems_destroy():
    (before, unguarded), (_, guarded) = kept({}), kept(GUARDS)
    assert before > 0.75
    assert unguarded < before - 0.4
    assert guarded > before - 0.15


def test_the_hard_pool_is_what_the_text_says():
    shares = overhard.POOLS["hard"][0]
    assert shares[overhard.HARD] == 0.98
    assert sum(shares.values()) == pytest.approx(1)
    examples = overhard.examples_of("hard", 3)
    assert sum(example.level == overhard.HARD for example in examples) / len(examples) == pytest.approx(0.98, abs=0.001)
    assert overhard.chances(examples)[8.0] == pytest.approx(1 / 16, abs=0.02)
    biased = overhard.examples_of("biased", 3)
    assert overhard.chances(biased)[8.0] == pytest.approx(0.15 + 0.85 / 16, abs=0.02)
    assert {example.level for example in overhard.examples_of("unlabelled", 3)} == {None}


def row(seed, arm, before, after):
    seen = [{"easy": value, "medium": value, "kl per answer": 0.0} for value in (before, after)]
    groups = {"groups": 10, "teach": 5}
    return {
        "pool": "hard",
        "arm": arm,
        "seed": seed,
        "seen": seen,
        "groups": groups,
        "charged": 9,
        "measuring": 1,
        "canaries": 1,
    }


def test_kept_is_paired_by_seed():
    plain = [row(0, "unguarded", 0.9, 0.5), row(1, "unguarded", 0.8, 0.6)]
    told = overhard.told([row(0, "all", 0.9, 0.8), row(1, "all", 0.8, 0.8)], plain)
    assert told["kept"]["value"] == pytest.approx((0.75 + 1.0) / 2)
    assert told["success against unguarded"]["value"] == pytest.approx(0.25)
    assert told["loss"]["value"] == pytest.approx(0.05)
    assert overhard.told(plain, [row(0, "unguarded", 0.9, 0.9), row(1, "unguarded", 0.8, 0.6)])["kept"] is None
