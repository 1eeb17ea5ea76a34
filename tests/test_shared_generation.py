"""Generation with shared prompts: the same tokens as batch by batch, prompts that enter, models that it is not for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from trainers_tiny import model, tokenizer
from transformers import MistralConfig, MistralForCausalLM

from mixwright.learner import shared_generation
from mixwright.learner.generation import Decoding, GenerationJob, choose_tokens
from mixwright.learner.learner import Learner

PROMPTS = ["1+1=", "12+3=", "7", "99+1=", "5+5+5+5+5+5+5=", "3"]


def learner(**settings: Any) -> Learner:
    return Learner(model().eval(), tokenizer(), "chars", **settings)


def written(one: Learner, **how: Any) -> list[list[tuple[int, ...]]]:
    asked: dict[str, Any] = {"count": 3, "temperature": 1.0, "max_new_tokens": 9, "seed": 4}
    return [[made.token_ids for made in row] for row in one.sample(PROMPTS, **(asked | how))]


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("rows", [3, 6, 128])
def test_tokens_are_those_of_batches_however_many_prompts_are_side_by_side(
    monkeypatch: pytest.MonkeyPatch, temperature: float, rows: int
) -> None:
    monkeypatch.setattr(shared_generation, "MAX_ROWS", rows)
    one, other = learner(), learner()
    other.shares_prompts = False
    assert written(one, temperature=temperature) == written(other, temperature=temperature)
    assert one.shares_prompts, "the model was asked in this way"


def test_a_prompt_enters_when_another_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_generation, "MAX_ROWS", 2)
    one, widths = learner(), list[int]()
    jobs = [GenerationJob(one.encode(prompt), 1, (), (place, 1, 0)) for place, prompt in enumerate(PROMPTS[:4])]
    call = one.model.forward

    def counted(*asked: Any, **how: Any) -> Any:
        widths.append(len(how["input_ids"]))
        return call(*asked, **how)

    monkeypatch.setattr(one.model, "forward", counted)
    with torch.no_grad():
        ended = [list(made) for made in shared_generation.generate(one, jobs, Decoding(1.0, 9, 0))]
    assert sorted(place for places in ended for place in places) == [0, 1, 2, 3]
    assert max(widths) == 2, "never more side by side than asked for"
    assert len(ended) > 1, "those that ended first came back first"


def test_a_model_with_a_window_is_written_batch_by_batch() -> None:
    words = tokenizer()
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = MistralConfig(vocab_size=len(words), num_key_value_heads=1, sliding_window=4, **shape)
    torch.manual_seed(0)
    one = Learner(MistralForCausalLM(config).eval(), words, "window")
    found = written(one, count=1, temperature=0)
    assert not one.shares_prompts
    for prompt, (tokens,) in zip(PROMPTS, found, strict=True):
        ids = torch.tensor([one.encode(prompt)])
        made = one.model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=9)
        assert list(tokens) == made[0, ids.shape[1] :].tolist()[: len(tokens)]


@given(
    st.lists(st.one_of(st.floats(-20, 20), st.just(-float("inf"))), min_size=2, max_size=700).filter(
        lambda logits: max(logits) > -20
    ),
    st.floats(0, 1, exclude_max=True),
)
def test_a_token_is_drawn_by_its_probability_and_never_without_one(logits: list[float], uniform: float) -> None:
    table = torch.tensor([logits])
    token, logprob = choose_tokens(table, 1.0, torch.tensor([uniform], dtype=torch.float64))
    chances = torch.softmax(table[0].double(), 0)
    assert chances[token] > 0
    assert float(logprob) == pytest.approx(float(chances[token].log()), abs=1e-4)
    before = float(chances[: int(token)].sum())
    assert before - 1e-6 <= uniform <= before + float(chances[token]) + 1e-6
