"""Over-hard problems on the bare loop: unguarded training loses what the model could do, guarded training keeps it."""

from __future__ import annotations

import copy
from collections import Counter

import pytest

from mixwright.records import Plan, Stage
from mixwright.trainers.steering import default_plan
from mixwright_lab.studies import overhard
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.grpo import Arena, Settings
from mixwright_lab.training.rules import EngineRule, pool_of, unique_examples
from mixwright_lab.worlds.chain import Chain, running_values

WORLD = Chain()
GUARDS = {
    "selector": "difficulty",
    "gates": ("too_hard",),
}


def kept(guards, model) -> tuple[float, float]:
    """Success on problems of one or two operations before and after 25 steps on 95 % problems of eight."""
    held_out = [WORLD.make(index, level, "eval") for level in (1, 2) for index in range(40)]
    made = [WORLD.make(index, 8, "train") for index in range(380)] + [WORLD.make(index, 2, "train") for index in range(20)]
    arena = Arena(unique_examples(made), copy.deepcopy(model), Settings(rate=2e-3), seed=0)
    stage = Stage("s", "grpo", 25, {"chain": 1.0}, **guards)
    rule = EngineRule(Plan("p", (stage,)), pool_of(arena.examples, lambda _: 1 / 16), seed=0)
    before = float(arena.look(held_out).rewards.mean())
    for _ in range(25):
        rule.step(arena)
    return before, float(arena.look(held_out).rewards.mean())


@pytest.mark.slow
def test_guards_keep_what_over_hard_problems_destroy():
    model = base_model(0, Recipe(levels=((1, 1.0), (2, 1.0)), steps=700))
    (before, unguarded), (_, guarded) = kept({}, model), kept(GUARDS, model)
    assert before > 0.75
    assert unguarded < before - 0.4
    assert guarded > unguarded + 0.2


def right(example) -> bool:
    return example.answer == str(running_values(str(example.prompt))[-1])


def test_pools_are_what_the_text_says():
    for name, world in overhard.POOLS.items():
        assert sum(world.shares.values()) == pytest.approx(1), name
        assert {"frozen", "uniform"} <= set(world.arms) <= set(overhard.ARMS), name
    hard = overhard.examples_of("hard", 3)
    assert sum(example.level == 8 for example in hard) / len(hard) == pytest.approx(0.98, abs=0.001)
    assert overhard.chances(hard)[8.0] == pytest.approx(1 / 16, abs=0.02)
    assert {example.level for example in overhard.examples_of("unlabelled", 3)} == {None}


def test_answers_of_the_blind_rows_say_nothing_of_their_prompts():
    pool = overhard.examples_of("blind", 3)
    blind = [example for example in pool if example.task == "blind"]
    assert len(blind) / len(pool) == pytest.approx(0.5, abs=0.01)
    given = Counter(example.answer for example in blind)
    assert given["0"] / len(blind) == pytest.approx(0.45 + 0.55 / 16, abs=0.03)
    assert sum(map(right, blind)) / len(blind) == pytest.approx(1 / 16, abs=0.02)
    assert all(right(example) for example in pool if example.task != "blind")
    assert {example.task for example in overhard.held_out("blind") if example.level == 8} == {"blind"}


@pytest.mark.slow
def test_answers_of_partial_skill_are_right_and_half_of_them_are_0():
    pool = overhard.examples_of("partial", 3)
    assert all(map(right, pool))
    assert sum(example.answer == "0" for example in pool) / len(pool) == pytest.approx(0.5 + 0.5 / 16, abs=0.03)


def test_the_default_arm_is_the_plan_that_a_trainer_makes():
    pool = pool_of(overhard.examples_of("blind", 3)[::20], lambda _: 1 / 16)
    (own,) = default_plan(pool, "grpo", overhard.STEPS, kl_penalty=False).stages
    (made,) = overhard.plan_of(overhard.DEFAULT, pool).stages
    for name in ("selector", "gates", "controllers", "monitors", "engine"):
        assert getattr(made, name) == getattr(own, name), name
    assert made.weights == pytest.approx(own.weights)


def test_options_reach_only_plug_ins_that_the_arm_has():
    pool = pool_of(overhard.examples_of("blind", 3)[::20], lambda _: 1 / 16)
    for arm, guards in overhard.ARMS.items():
        (stage,) = overhard.plan_of(guards, pool, equal=arm == "equal shares").stages
        for name in stage.options:
            assert name == "engine" or name.partition(".")[2] in (*stage.gates, stage.selector), arm
    (equal,) = overhard.plan_of(overhard.ARMS["equal shares"], pool, equal=True).stages
    assert equal.weights == {"blind": 0.5, "chain": 0.5}


def test_pairs_and_goals_by_hand():
    assert overhard.pairs_of(["frozen", "uniform", "default", "no gate"]) == [
        ("uniform", "frozen"),
        ("uniform", "equal shares"),
        ("default", "frozen"),
        ("default", "uniform"),
        ("default", "equal shares"),
        ("no gate", "frozen"),
        ("no gate", "uniform"),
        ("no gate", "equal shares"),
        ("default", "no gate"),
    ]
    shown = {"success": [0.0, -0.01, 0.01], "seeds": 8}
    figures = {pool: {"outcome": {"default - no gate": shown}} for pool in overhard.POOLS}
    reached = {goal.name.partition(":")[0] for goal in overhard.goals_of(figures) if goal.reached}
    assert reached == {"partial", "medium"}  # there it must only not cost 2 points


def test_shares_of_groups_are_means_over_runs():
    rows = [{"arm": "default", "groups": {"groups": 10, "teach": teach, "refused": 2}} for teach in (4, 6)]
    rows += [{"arm": "frozen"}]
    assert overhard.mechanism(rows) == {
        "default": {"teach": pytest.approx(0.5), "refused": pytest.approx(0.2), "skipped": 0.0}
    }
