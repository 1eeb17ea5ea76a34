"""Languages and the tiny GPT over them: tokens, the sampler with its cache, temperature, streams and added vectors."""

import pickle

import pytest
import torch

from mixwright.errors import InputError
from mixwright_lab.training.bases import CHAIN
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import SIGNS, Language
from mixwright_lab.worlds.chain import Chain, respond

SMALL = Language((*SIGNS, "a", "b"), prompt_tokens=3, response_tokens=4)


@pytest.fixture
def model() -> GPT:
    torch.manual_seed(0)
    return GPT(CHAIN, 16, 2, 2)


def test_tokens_go_there_and_back():
    texts = [respond("7 +3 *5", style) for style in ("full", "verbose", "direct")]
    assert [CHAIN.decode(row) for row in CHAIN.encode_responses(texts).tolist()] == texts
    assert CHAIN.encode_prompts(["7 +3"]).tolist() == [
        [CHAIN.index["7"], CHAIN.index["+3"], *[CHAIN.index["_"]] * 7, CHAIN.index["="]]
    ]


def test_the_sampler_with_its_cache_agrees_with_whole_forward_passes(model):
    prompts = CHAIN.encode_prompts(
        [str(example.prompt) for example in [Chain().make(index, 2.0, "train") for index in range(5)]]
    )
    made = model.sample(prompts, 2, 6, greedy=True, generator=torch.Generator())
    for prompt, responses in zip(prompts, made, strict=True):
        assert torch.equal(responses[0], responses[1])
        tokens = prompt
        for token in responses[0].tolist():
            if token == CHAIN.index["_"] and tokens[-1] == CHAIN.index["."]:
                break
            logits, _ = model(tokens[None])
            assert int(logits[0, -1].argmax()) == token
            tokens = torch.cat((tokens, torch.tensor([token])))


def test_logits_of_are_those_of_each_response_token(model):
    prompts, responses = CHAIN.encode_prompts(["7 +3", "1 *5"]), CHAIN.encode_responses(["10 # 10", "# 5"])[:, :4]
    whole, _ = model(torch.cat((prompts, responses), 1))
    assert torch.allclose(model.logits_of(prompts, responses), whole[:, CHAIN.prompt_tokens - 1 : -1], atol=1e-6)


def test_a_word_that_there_is_not_and_a_text_that_is_too_long_are_refused():
    assert SMALL.encode_responses(["a # b"]).tolist() == [[5, 3, 6, 2]]
    with pytest.raises(InputError, match=r"words of _, =, ., #, :, a, b, got c"):
        SMALL.encode_prompts(["a", "c"])
    with pytest.raises(InputError, match="2 words or fewer, got 3: a b a"):
        SMALL.encode_prompts(["a b a"])
    with pytest.raises(InputError, match="4 words or fewer, got 5"):
        SMALL.encode_responses(["a # b a"])


@pytest.mark.parametrize("words", [("a", "b"), (*SIGNS, "a", "a"), (*SIGNS, "a b"), (*SIGNS, "")])
def test_a_language_needs_its_signs_and_each_word_once(words: tuple[str, ...]):
    with pytest.raises(InputError, match="words without spaces, each once"):
        Language(words, 3, 4)


def test_a_language_goes_to_other_processes():
    assert pickle.loads(pickle.dumps(CHAIN)) == CHAIN
    assert CHAIN.style_of(": 1 # 1") == "verbose"


def test_temperature_divides_the_logits():
    torch.manual_seed(0)
    model, prompts = GPT(SMALL, 8, 1, 2), SMALL.encode_prompts(["a"])
    logits = model(prompts)[0][0, -1].detach()
    for temperature in (0.5, 1.0, 2.0):
        made = model.sample(
            prompts, 20_000, 1, greedy=False, generator=torch.Generator().manual_seed(1), temperature=temperature
        )
        shares = torch.bincount(made.flatten(), minlength=len(SMALL.words)) / 20_000
        assert torch.allclose(shares, (logits / temperature).softmax(0), atol=0.015)  # four standard errors
    with pytest.raises(InputError, match="1 to 4 tokens, got 5"):
        model.sample(prompts, 1, 5, greedy=True, generator=torch.Generator())


def test_the_last_stream_gives_the_logits_and_a_vector_is_added_behind_its_block(model: GPT):
    tokens = CHAIN.encode_prompts(["7 +3"])
    logits, _ = model(tokens)
    streams = model.hidden(tokens)
    assert len(streams) == 2
    assert torch.allclose(model.head(torch.nn.functional.rms_norm(streams[-1], (16,))), logits, atol=1e-6)
    vector = torch.randn(16)
    after, _ = model.blocks[1](streams[0] + vector, None)
    expected = model.head(torch.nn.functional.rms_norm(after, (16,)))
    assert torch.allclose(model(tokens, add=(0, vector))[0], expected, atol=1e-5)
    last = model.head(torch.nn.functional.rms_norm(streams[1] + vector, (16,)))
    assert torch.allclose(model(tokens, add=(1, vector))[0], last, atol=1e-5)


def test_what_is_added_is_added_while_sampling(model: GPT):
    prompts, vector = CHAIN.encode_prompts(["7 +3"]), 3 * torch.randn(16, generator=torch.Generator().manual_seed(0))
    made = model.sample(prompts, 1, 4, greedy=True, generator=torch.Generator(), add=(0, vector))[0, 0]
    tokens = prompts
    for token in made.tolist():
        assert int(model(tokens, add=(0, vector))[0][0, -1].argmax()) == token
        tokens = torch.cat((tokens, torch.tensor([[token]])), 1)
        if token == CHAIN.index["."]:
            break
    assert not torch.equal(made, model.sample(prompts, 1, 4, greedy=True, generator=torch.Generator())[0, 0])
