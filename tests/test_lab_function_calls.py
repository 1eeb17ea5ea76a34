"""The world of function calls by hand: chains, their values, what is wrong with wrong ones; and DPO's loss."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from mixwright_lab.findings.preference_pairs import logprob, read_pairs
from mixwright_lab.training.gpt import GPT
from mixwright_lab.worlds.function_calls import (
    KINDS,
    FunctionCalls,
    calls_of,
    grade,
    kind_of,
    language,
    parse_calls,
    spoiled,
    value_of,
)

PROMPT, CHAIN = "7 from 9 before 2", "sub ( 9 , 7 ) ; cat ( it , 2 )"


def test_the_word_says_which_number_comes_first_and_the_calls_give_the_answer():
    calls = calls_of(PROMPT)
    assert [tuple(call) for call in calls] == [("sub", "9", "7"), ("cat", "it", "2")]
    assert value_of(calls) == 22  # 9 - 7 = 2; 10 * 2 + 2
    assert value_of(calls_of("3 less 8 behind 4")) == 10 * 4 + (3 - 8)
    assert parse_calls(CHAIN) == calls
    assert grade("sub(9,7);cat(it,2)", "22") == 1.0
    assert grade("sub(9,7)", "22") == 0.0


@pytest.mark.parametrize(
    ("chain", "kind"),
    [
        (CHAIN, "right"),
        ("add ( 20 , 2 )", "right"),
        ("sub ( 9 , 7 ) ; cat ( 2 , it )", "right"),  # 22 either way
        ("sub ( 7 , 9 ) ; cat ( it , 2 )", "order"),
        ("sub ( 9 , 8 ) ; cat ( it , 2 )", "value"),
        ("add ( 9 , 7 ) ; cat ( it , 2 )", "function"),
        ("sub ( 9 , 7 )", "calls"),
        ("sub ( 9 , 7 ) ; cat ( it , 2 ) ; add ( it , 1 )", "no stop"),
        ("sub ( 9 7 ) ; cat ( it , 2 )", "format"),
        ("sub ( 9 ) ; cat ( it , 2 )", "format"),
        ("min ( 9 , 7 ) ; cat ( it , 2 )", "format"),
        ("sub ( it , 7 ) ; cat ( it , 2 )", "format"),
        ("", "format"),
    ],
)
def test_what_is_wrong_with_a_chain_is_read_from_its_calls(chain: str, kind: str):
    assert kind_of(PROMPT, chain) == kind
    assert kind_of(PROMPT, chain, stopped=False) == "no stop"


@pytest.mark.parametrize("kind", KINDS)
def test_a_spoiled_chain_is_wrong_in_the_way_that_was_asked_for(kind: str):
    rng = np.random.default_rng(0)
    found = [kind_of("7 from 9 before 3", spoiled("7 from 9 before 3", kind, rng)) for _ in range(40)]
    assert set(found) <= {kind, "right"}
    assert found.count(kind) > 30


def test_questions_are_of_one_length_and_have_a_right_target():
    world = FunctionCalls()
    assert all(len(str(world.make(n, 2.0, "train").prompt).split()) == 5 for n in range(200))
    example = world.make(1, 3.0, "train")
    assert kind_of(str(example.prompt), str(example.target)) == "right"


def test_the_loss_is_log_two_at_the_start_and_falls_as_chosen_rises_against_rejected():
    torch.manual_seed(0)
    model = GPT(language(), 8, 1, 2)
    pairs = read_pairs(
        model, [(PROMPT, CHAIN, "sub ( 7 , 9 ) ; cat ( it , 2 )"), ("1 plus 2", "add ( 1 , 2 )", "add ( 1 )")]
    )
    assert float(pairs.loss(model, [0, 1], 0.3).detach()) == pytest.approx(math.log(2))
    spoken, response = model.language, pairs.chosen[1]
    own = model.logits_of(pairs.prompts[1:], response[None]).log_softmax(-1)[0].detach()
    by_hand = sum(float(own[at, response[at]]) for at in range(7))  # six words and the end
    assert spoken.decode(response.tolist()) == "add ( 1 , 2 )"
    assert float(logprob(model, pairs.prompts[1:], response[None]).detach()) == pytest.approx(by_hand, abs=1e-4)
    step = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        loss = pairs.loss(model, [0, 1], 0.3)
        step.zero_grad()
        loss.backward()
        step.step()
    assert float(pairs.loss(model, [0, 1], 0.3).detach()) < math.log(2)
