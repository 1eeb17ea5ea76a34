"""Elicitors without training, on a model whose head is set by hand; and how far models have moved."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from mixwright.records import Example
from mixwright_lab.changes import entropy_of, spearman, weight_change
from mixwright_lab.findings.latent import direction_of, most_certain, paths, steered_paths, trained_vector
from mixwright_lab.training.bases import CHAIN
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Arena, Settings
from mixwright_lab.training.sft import Batch, Schedule, fit
from mixwright_lab.worlds.chain import respond

PROBLEMS = ("7 +3", "2 *5", "9 +8", "1 *3")
ANSWERS = {"7 +3": "10", "2 *5": "10", "9 +8": "1", "1 *3": "3"}
EXAMPLES = [Example(prompt, "chain", prompt, answer=ANSWERS[prompt]) for prompt in PROBLEMS]


@pytest.fixture(scope="module")
def model() -> GPT:
    """Four problems by heart: worked out one time in four, else guessed between two answers, mostly the wrong one."""
    torch.manual_seed(0)
    model = GPT(CHAIN, 16, 2, 2)
    worked = [respond(prompt, "full") for prompt in PROBLEMS]
    wrong = [f"# {int(ANSWERS[prompt]) + 1}" for prompt in PROBLEMS]
    right = [f"# {ANSWERS[prompt]}" for prompt in PROBLEMS]
    prompts, texts = PROBLEMS * 4, [*worked, *wrong, *wrong, *right]
    fit(model, lambda _: Batch(prompts, texts), Schedule(250, 1e-2))
    return model


def test_a_path_goes_on_from_its_first_token(model: GPT) -> None:
    first = torch.tensor([[CHAIN.index["10"], CHAIN.index["#"], CHAIN.index["."]]])
    assert paths(model, EXAMPLES[:1], first).texts == [["10 # 10", "# 11", ""]]


def test_what_is_rare_and_certain_is_found_by_decoding(model: GPT) -> None:
    greedy = Arena(EXAMPLES, model, Settings(), 0).look(EXAMPLES, 1, greedy=True).rewards
    assert greedy.mean() == 0
    assert most_certain(model, EXAMPLES, 1).mean() == 0, "the likeliest path is the greedy response"
    assert most_certain(model, EXAMPLES, 2).mean() == 1


def test_steering_by_nothing_is_greedy_and_a_trained_vector_brings_the_rare_format_out(model: GPT) -> None:
    nothing = steered_paths(model, EXAMPLES, torch.zeros(16))
    assert nothing.texts == Arena(EXAMPLES, model, Settings(), 0).look(EXAMPLES, 1, greedy=True).texts
    vector = trained_vector(model, EXAMPLES, [respond(prompt, "full") for prompt in PROBLEMS])
    assert steered_paths(model, EXAMPLES, vector).rewards.mean() == 1


@pytest.fixture(scope="module")
def uneven_model() -> GPT:
    """Two problems are worked out three times in four and two once, so that the formats begin in different streams."""
    torch.manual_seed(0)
    model = GPT(CHAIN, 16, 2, 2)
    times_worked = (3, 3, 1, 1)
    prompts = [prompt for prompt in PROBLEMS for _ in range(4)]
    texts = [
        respond(prompt, "full") if number < times else f"# {ANSWERS[prompt]}"
        for prompt, times in zip(PROBLEMS, times_worked, strict=True)
        for number in range(4)
    ]
    fit(model, lambda _: Batch(prompts, texts), Schedule(250, 1e-2))
    return model


@torch.no_grad()
def test_the_mean_difference_is_that_of_many_samples(uneven_model: GPT) -> None:
    model = uneven_model
    vector, norm = direction_of(model, EXAMPLES)
    prompts = CHAIN.encode_prompts(PROBLEMS)
    stream = model.hidden(prompts)[0][:, -1]
    rolled = Arena(EXAMPLES, model, Settings(), 0).look(EXAMPLES, 4000)
    worked = torch.tensor([[style != "direct" for style in group] for group in rolled.formats]).double().mean(1)
    by_hand = torch.from_numpy(np.average(stream, axis=0, weights=worked) - np.average(stream, axis=0, weights=1 - worked))
    assert float(vector.norm()) == pytest.approx(1, abs=1e-5)
    assert float(vector.double() @ by_hand / by_hand.norm()) > 0.99
    assert norm == pytest.approx(float(stream.norm(dim=1).mean()), rel=1e-5)


def test_weight_change_and_entropy_by_hand() -> None:
    old, new = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    for layer, weight, bias in ((old, [3.0, 0.0], 4.0), (new, [3.0, 3.0], 8.0)):
        layer.load_state_dict({"weight": torch.tensor([weight]), "bias": torch.tensor([bias])})
    assert weight_change(old, new) == pytest.approx(1.0), "5 of 5"
    model = GPT(CHAIN, 8, 1, 1)
    torch.nn.init.zeros_(model.head.weight)
    torch.nn.init.zeros_(model.head.bias)
    rollouts = Arena(EXAMPLES, model, Settings(), 0).look(EXAMPLES, 2)
    assert entropy_of(model, rollouts) == pytest.approx(math.log(len(CHAIN.words)), rel=1e-5)


def test_rank_correlation_shares_ties_and_is_zero_without_spread() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        one, other = rng.integers(5, size=9).tolist(), rng.normal(size=9).tolist()
        assert spearman(one, other) == pytest.approx(stats.spearmanr(one, other).statistic)
    assert spearman([1, 1, 1], [1, 2, 3]) == 0
