"""Routing of prompts to experts: each prompt is answered with its own, the classifier, and the question, by hand."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from mixwright.catalog import create
from mixwright.config import ModelConfig
from mixwright.errors import InputError
from mixwright.learner.learner import Learner
from mixwright_extras.experts.routing import answer_with_experts, ask_for_experts, fit_classifier, hidden_states
from mixwright_extras.experts.singular import scales, set_scales
from mixwright_extras.tiny.model import build_tiny

DIGITS = [f"{number:03d} =" for number in range(100, 130)]
WORDS = [f"the {a} is {b}" for a in ("cat", "dog", "sun", "sea", "sky") for b in ("red", "big", "old")]


@pytest.fixture(scope="module")
def learner() -> Learner:
    """A tiny model with scales, all 0."""
    plain = build_tiny([*DIGITS, *WORDS], ModelConfig(width=32, depth=2, heads=2, vocabulary=300), seed=0)
    plain.model = create("adapters", "svf").wrap(plain.model).eval()
    return plain


def experts_of(learner: Learner, count: int) -> list[dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    zero = scales(learner.model)
    return [{name: torch.randn(z.shape, generator=generator) for name, z in zero.items()} for _ in range(count)]


def test_every_prompt_is_answered_with_its_expert_and_the_scales_come_back(learner: Learner) -> None:
    experts, prompts, routes = experts_of(learner, 2), [*DIGITS[:3], *WORDS[:3]], [1, -1, 0, 0, 1, -1]
    write = lambda own: learner.sample(own, count=1, temperature=0.0, max_new_tokens=6, seed=0)  # noqa: E731
    found = answer_with_experts(learner, experts, prompts, routes, write)
    alone = copy.copy(learner)
    for prompt, route, made in zip(prompts, routes, found, strict=True):
        alone.model = copy.deepcopy(learner.model)
        if route >= 0:
            set_scales(alone.model, experts[route])
        (own,) = alone.sample([prompt], count=1, temperature=0.0, max_new_tokens=6, seed=0)[0]
        assert made[0].token_ids == own.token_ids
    assert len({made[0].token_ids for made in found}) > 2, "experts differ, or nothing is shown"
    assert all(not z.any() for z in scales(learner.model).values())

    def fails(own: Any) -> Any:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        answer_with_experts(learner, experts, prompts, routes, fails)
    assert all(not z.any() for z in scales(learner.model).values())
    with pytest.raises(InputError, match="a route per prompt"):
        answer_with_experts(learner, experts, prompts, [2] * 6, write)


def test_the_classifier_tells_digits_from_words_and_not_digits_from_digits(learner: Learner) -> None:
    told = fit_classifier(learner, [DIGITS[:15], WORDS[:10]])
    assert told.accuracy.low > 0.6
    assert told.commonest_share == 0.6
    assert told.route(learner, [WORDS[12], DIGITS[20], WORDS[14]]) == [1, 0, 1]
    noise = fit_classifier(learner, [DIGITS[:30:2], DIGITS[1:30:2]])
    assert noise.accuracy.value < 0.85, "even and odd numbers are no different kinds of text"
    with pytest.raises(InputError, match="two prompts or more each"):
        fit_classifier(learner, [DIGITS[:1], WORDS])


def test_hidden_states_are_those_of_the_base_and_do_not_hang_on_the_batch(learner: Learner) -> None:
    before = hidden_states(learner, [*DIGITS[:2], *WORDS[:2]])
    set_scales(learner.model, experts_of(learner, 1)[0])
    try:
        assert np.allclose(hidden_states(learner, [WORDS[1]])[0], before[3], atol=1e-5)
    finally:
        set_scales(learner.model, {name: torch.zeros_like(z) for name, z in scales(learner.model).items()})


def test_the_likeliest_name_less_its_own_chance_is_chosen(learner: Learner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of " cat" and " dog": after the question alone -1 and -4; after a prompt -1 and -3. Dog gained, cat is likelier."""
    names = ["cat", "dog"]
    ids = [tuple(learner.tokenizer(f" {name}", add_special_tokens=False)["input_ids"]) for name in names]

    def logprobs(texts: list[str], completions: list[Any]) -> list[list[float]]:
        place = ids.index(tuple(completions[0]))
        return [[(-1.0, -3.0)[place] if text.startswith("x") else (-1.0, -4.0)[place]] for text in texts]

    monkeypatch.setattr(learner, "logprobs", logprobs)
    assert ask_for_experts(learner, ["x", "x"], names) == [1, 1]
    monkeypatch.undo()
    assert set(ask_for_experts(learner, DIGITS[:3], names)) <= {0, 1}
