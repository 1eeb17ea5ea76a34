"""The bare GRPO loop of lab and studies: its update, its books, its engine, and that learning happens in it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from mixwright.records import Plan, Stage
from mixwright.steer.pool import answer_key
from mixwright_lab.training.bases import CHAIN, Recipe, teach
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Arena, Rollouts, Settings
from mixwright_lab.training.rules import EngineRule, UniformRule, drive, pool_of, unique_examples
from mixwright_lab.worlds.chain import Chain, respond

WORLD = Chain()


@pytest.fixture
def model() -> GPT:
    torch.manual_seed(0)
    return GPT(CHAIN, 16, 1, 2)


@pytest.fixture(scope="module")
def taught() -> GPT:
    """Taught to answer in the two forms; it knows hardly any answers yet."""
    torch.manual_seed(0)
    model = GPT(CHAIN, 24, 1, 2)
    teach(model, 0, Recipe(levels=((1, 1.0),), styles=(("full", 0.7), ("direct", 0.3)), steps=120, batch=32, rate=1e-2))
    return model


def problems(count: int, level: float = 2.0, split: str = "train") -> list:
    return unique_examples([WORLD.make(index, level, split) for index in range(count)])


def test_rewards_formats_answers_and_lengths_are_read_from_the_tokens():
    example = WORLD.make(0, 2.0, "train")
    right = respond(str(example.prompt), "full")
    tokens = CHAIN.encode_responses([right, "# x 3".replace("x ", ""), ": 1 :"])[None, :, :11]
    rolled = Rollouts([example], CHAIN.encode_prompts([str(example.prompt)]), tokens, CHAIN)
    assert rolled.rewards[0].tolist() == [1.0, float(example.answer == "3"), 0.0]
    assert rolled.formats[0] == ["full", "direct", "none"]
    assert rolled.answers[0] == [example.answer, "3", ""]
    assert rolled.lengths[0].tolist() == [5, 3, 4]
    outcome = rolled.outcomes(4)[0]
    assert (outcome.step, outcome.rewards, outcome.answers) == (4, tuple(rolled.rewards[0]), (example.answer, "3", ""))


def test_a_reward_of_ones_own_is_read_everywhere(model):
    """Half a point for a mark: rewards, outcomes and looks."""
    arena = Arena(problems(4), model, Settings(prompts=2, group=4, longest=5), 0, reward=lambda _, text: 0.5 * (":" in text))
    texts = [[": 1", "# 2"], ["# 3", "# 4"]]
    tokens = torch.stack([CHAIN.encode_responses(group) for group in texts])
    rolled = replace(arena.roll([0, 1], 2), tokens=tokens)
    assert rolled.rewards.tolist() == [[0.5, 0.0], [0.0, 0.0]]
    assert rolled.outcomes(0)[0].rewards == (0.5, 0.0)
    assert set(np.unique(arena.look(problems(3)).rewards)) <= {0.0, 0.5}


def test_refused_groups_and_skipped_steps_leave_the_weights_alone(model):
    arena = Arena(problems(4), model, Settings(prompts=2, group=4, longest=5), seed=0)
    rolled = arena.roll([0, 1], 4)
    weights = [parameter.detach().clone() for parameter in arena.model.parameters()]
    arena.learn(rolled, [False, False])
    arena.update(rolled, np.ones((2, 4)), lr_factor=0.0)
    assert all(torch.equal(now, before) for now, before in zip(arena.model.parameters(), weights, strict=True))
    assert (arena.charged, arena.steps) == (8, 1)


def test_looking_is_free_and_changes_nothing(model):
    arena, other = (Arena(problems(6), model, Settings(prompts=2, group=4, longest=5), seed=3) for _ in range(2))
    arena.look(problems(6, split="eval"))
    assert arena.charged == 0
    assert torch.equal(arena.roll([0, 1], 4).tokens, other.roll([0, 1], 4).tokens)


def test_permuted_rewards_keep_each_group_its_mean(taught):
    arena = Arena(problems(8, 1.0), taught, Settings(prompts=4, group=8, permute=True), seed=0)
    rolled = arena.roll(range(8), 8)
    true = rolled.rewards.copy()
    arena.learn(rolled)
    assert np.array_equal(rolled.rewards, true)
    assert 0 < true.mean() < 1


def test_grpo_teaches_and_permuted_rewards_do_not(taught):
    small = {"accepted": [str(number) for number in range(8)]}
    examples, held = ([replace(e, extra=small) for e in problems(150, 1.0, split)] for split in ("train", "eval"))
    gains = {}
    for permute in (False, True):
        arena = Arena(examples, taught, Settings(prompts=8, group=8, rate=2e-3, longest=6, permute=permute), seed=0)
        rule = UniformRule(len(examples), seed=0)
        seen = drive(arena, rule, 1600, 800, lambda arena: {"right": float(arena.look(held, 8).rewards.mean())})
        gains[permute] = seen[-1]["right"] - seen[0]["right"]
        assert [row["charged"] for row in seen] == [0, 832, 1600]
        assert rule.totals["groups"] == 200
    assert gains[False] > 0.25
    assert gains[True] < 0.15


def test_the_engine_drives_the_loop(taught):
    examples = problems(150, 1.0)
    stage = Stage("t", "grpo", 10, {"chain": 1.0}, selector="difficulty", gates=("too_hard",))
    arena = Arena(examples, taught, Settings(prompts=4, group=8), seed=0)
    rule = EngineRule(Plan("p", (stage,)), pool_of(examples, lambda _: 1 / 16), seed=0)
    for _ in range(6):
        rule.step(arena)
    assert arena.charged == 6 * 32
    assert rule.totals["groups"] == 24


def test_gold_answers_are_told_where_no_other_answer_is_right():
    examples = problems(4)
    pool = pool_of([*examples[:3], replace(examples[3], extra={"accepted": ["1", "2"]})], lambda _: 0.25)
    assert pool.golds is not None
    assert pool.golds[:3].tolist() == [answer_key(str(e.answer)) for e in examples[:3]]
    assert pool.golds[3] == 0
    assert pool.cells[0].chance == 0.25


def test_a_cell_out_of_reach_is_refused_in_the_loop(model):
    examples = problems(100)
    stage = Stage("t", "grpo", 10, {"chain": 1.0}, gates=("too_hard",))
    arena = Arena(examples, model, Settings(prompts=8, group=8, longest=5), seed=0)
    rule = EngineRule(Plan("p", (stage,)), pool_of(examples, lambda _: 1 / 16), seed=0)
    for _ in range(12):
        rule.step(arena)
    assert rule.totals["refused"] >= 24
    assert any(decision.what == "refuse.chain@2" and decision.new == "refused" for decision in rule.decisions)
