"""Completions by the released vLLM, against those of transformers: tokens, log-probabilities, ends, lengths and draws."""

from __future__ import annotations

import importlib.util
import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from scipy import stats

from mixwright.config import ModelConfig
from mixwright.errors import InputError
from mixwright.learner.learner import Completion, Learner
from mixwright.learner.vllm_engine import VllmEngine, draw_seed, start_engines
from mixwright_extras.tiny.model import build_tiny

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="no vLLM (make vllm)"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # its own
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
PROMPTS = ["12+7=", "the cat", "a longer prompt than the others, of two parts: 1, 2", "x"]
LONGEST, DRAWS = 12, 4000


def make_learner() -> Learner:
    """Random weights, large enough for some tokens to be much likelier than others."""
    learner = build_tiny(PROMPTS * 20, ModelConfig("tiny:", width=64, depth=2, heads=2, vocabulary=270), seed=3)
    with torch.no_grad():
        for values in learner.model.parameters():
            values.mul_(4)
    return learner


@pytest.fixture(scope="module")
def both() -> tuple[Learner, Learner]:
    """The same model, written by transformers and by vLLM."""
    plain, served = make_learner(), make_learner()
    start_engines([served], [None])
    return plain, served


def tokens(rows: Sequence[Sequence[Completion]]) -> list[list[tuple[int, ...]]]:
    return [[completion.token_ids for completion in row] for row in rows]


def with_end(learner: Learner, token: int) -> Learner:
    """The same with another token that ends completions."""
    learner = learner.with_form(learner.form)
    learner.tokenizer.eos_token_id = token
    return learner


def test_greedy_completions_are_those_of_transformers(both: tuple[Learner, Learner]) -> None:
    how: dict[str, Any] = {"count": 2, "temperature": 0, "max_new_tokens": LONGEST, "seed": 1}
    state = torch.random.get_rng_state()
    ours, theirs = (learner.sample(PROMPTS, **how) for learner in both)
    assert torch.equal(state, torch.random.get_rng_state()), "the global random state is as before"
    assert tokens(ours) == tokens(theirs)
    for one, other in zip(chain(*ours), chain(*theirs), strict=True):
        assert other.logprobs == pytest.approx(one.logprobs, abs=1e-4)
        assert (other.text, other.finished) == (one.text, one.finished)


def test_prefixes_ends_and_lengths_are_those_of_transformers(both: tuple[Learner, Learner]) -> None:
    how: dict[str, Any] = {"count": 1, "temperature": 0, "seed": 1}
    whole = both[0].sample(PROMPTS[:1], max_new_tokens=LONGEST, **how)[0][0].token_ids
    end, known = whole[5], both[0].tokenizer.eos_token_id
    starts = [whole[:2], (), whole[:3], (7,)]
    try:
        ours, theirs = (
            with_end(learner, end).sample(PROMPTS, prefixes=starts, max_new_tokens=6, continue_up_to=LONGEST, **how)
            for learner in both
        )
    finally:
        for learner in both:
            learner.tokenizer.eos_token_id = known
    assert tokens(ours) == tokens(theirs)
    first = theirs[0][0]
    assert first.token_ids[-1] == end, "the end token belongs to the completion"
    assert first.finished
    assert end not in first.token_ids[:-1]
    for (one,), (other,), start in zip(ours, theirs, starts, strict=True):
        assert one.finished == other.finished
        assert [math.isnan(value) for value in other.logprobs] == [math.isnan(value) for value in one.logprobs]
        assert other.token_ids[: len(start)] == start


def test_next_tokens_are_drawn_as_often_as_they_are_probable(both: tuple[Learner, Learner]) -> None:
    temperature, prompt = 2.0, PROMPTS[0]
    (drawn,) = both[1].sample([prompt], count=DRAWS, temperature=temperature, max_new_tokens=1, seed=4)
    with torch.no_grad():
        logits = both[0].model(torch.tensor([both[0].encode(prompt)])).logits[0, -1].double()
    logprobs = torch.log_softmax(logits / temperature, -1)
    for completion in drawn[:50]:
        assert completion.logprobs[0] == pytest.approx(float(logprobs[completion.token_ids[0]]), abs=1e-4)
    counts, expected = Counter(completion.token_ids[0] for completion in drawn), (DRAWS * logprobs.exp()).tolist()
    often = [token for token, number in enumerate(expected) if number >= 5]
    rest = DRAWS - sum(expected[token] for token in often)
    assert len(often) > 5
    observed = [counts[token] for token in often]
    table = [*observed, DRAWS - sum(observed)], [*(expected[token] for token in often), rest]
    assert stats.chisquare(*table).pvalue > 1e-3


def test_draws_depend_on_seed_prompt_and_sample_alone(both: tuple[Learner, Learner]) -> None:
    how: dict[str, Any] = {"count": 3, "temperature": 1.0, "max_new_tokens": LONGEST}
    whole = both[1].sample(PROMPTS, seed=5, **how)
    alone = both[1].sample(PROMPTS[2:3], seed=5, draw_keys=[2], **how)
    assert tokens(alone) == tokens(whole[2:3])
    assert len(set(tokens(whole)[0])) == 3, "samples of a prompt differ"
    assert tokens(both[1].sample(PROMPTS, seed=6, **how)) != tokens(whole)
    assert len({draw_seed(seed, n, k) for seed in range(3) for n in range(9) for k in range(9)}) == 243
    assert 0 <= draw_seed(-1, 2**33, 7) < 2**63


def test_samples_of_more_prompts_than_are_read_at_once_are_drawn_too(both: tuple[Learner, Learner]) -> None:
    prompts = [str(7**number) for number in range(80, 280)]
    how: dict[str, Any] = {"count": 1, "temperature": 1.0, "max_new_tokens": 2, "seed": 1}
    assert sum(len(both[1].encode(prompt)) for prompt in prompts) > 20_000
    whole = both[1].sample(prompts, **how)
    assert tokens(both[1].sample(prompts[-1:], draw_keys=[199], **how)) == tokens(whole[-1:])


def test_progress_grows_to_the_whole(both: tuple[Learner, Learner]) -> None:
    shares: list[float] = []
    how: dict[str, Any] = {"count": 2, "temperature": 1.0, "max_new_tokens": LONGEST, "seed": 2}
    both[1].sample(PROMPTS, progress=shares.append, **how)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_caller_that_stops_leaves_nothing_behind(both: tuple[Learner, Learner]) -> None:
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    how: dict[str, Any] = {"count": 1, "temperature": 0, "max_new_tokens": LONGEST, "seed": 1}
    with pytest.raises(KeyboardInterrupt):
        both[1].sample(PROMPTS, progress=stop, **how)
    assert tokens(both[1].sample(PROMPTS, **how)) == tokens(both[0].sample(PROMPTS, **how))
    engine: Any = both[1].engine
    assert engine._llm.llm_engine.get_num_unfinished_requests() == 0


def test_weights_that_changed_are_refused() -> None:
    learner = make_learner()
    learner.engine = VllmEngine(learner)
    with torch.no_grad():
        next(learner.model.parameters()).mul_(1.01)
    with pytest.raises(InputError, match=r"the weights of tiny: as loaded into vLLM, got others"):
        learner.sample(PROMPTS, count=1, temperature=0, max_new_tokens=2, seed=0)


def test_what_vllm_does_not_take_is_refused(both: tuple[Learner, Learner]) -> None:
    how: dict[str, Any] = {"count": 1, "max_new_tokens": 3, "seed": 0}
    with pytest.raises(InputError, match="a temperature of at most 2"):
        both[1].sample(PROMPTS, temperature=2.5, **how)
    with pytest.raises(ValueError, match="as many tokens as it may have"):
        both[1].sample(PROMPTS[:1], temperature=0, prefixes=[(5, 6, 7)], **how)


def test_a_model_that_vllm_cannot_serve_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a model that vLLM can serve here \(tiny:\)"):
        VllmEngine(learner := make_learner(), str(tmp_path / "none")).start(learner)
