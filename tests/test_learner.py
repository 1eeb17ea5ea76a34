import json
import math
import random
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    Gemma4TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    MambaConfig,
    MambaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    TrainingArguments,
)

from mixwright.config import ModelConfig, WarmupConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.learner import batches as batches
from mixwright.learner.batches import token_batches
from mixwright.learner.learner import Learner
from mixwright.learner.load import load_learner
from mixwright.learner.settings import cheap_settings, find_device, float32_settings, slow_settings
from mixwright.learner.training_rows import row_tokens
from mixwright.records import Example
from mixwright_extras.tiny.model import build_tiny
from mixwright_extras.tiny.warmup import warm_up

TEXTS = ["reverse 12 =21", "sum of 3 and 45 =48", "the cat sat on the mat", "Grüße, Welt"]
PROMPTS = ["reverse 12 =", "sum of 3 and 45 =", "the cat", "a"]
CHAT = ({"role": "user", "content": "sum of 3 and 4"},)


@pytest.fixture(scope="module")
def tiny() -> Learner:
    return build_tiny(TEXTS, ModelConfig(width=32, depth=2, heads=2), seed=0)


def random_model(kind: str, tokenizer) -> Learner:
    """A model with random, well separated weights and the tiny tokenizer."""
    wide = {"initializer_range": 0.3}
    special = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "vocab_size": len(tokenizer)}
    with torch.random.fork_rng():
        torch.manual_seed(3)
        if kind == "gpt2":
            model = GPT2LMHeadModel(GPT2Config(n_embd=32, n_layer=2, n_head=2, n_positions=64, **wide, **special))
        elif kind == "qwen2":
            size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
            model = Qwen2ForCausalLM(Qwen2Config(num_key_value_heads=2, **size, **wide, **special))
        else:
            model = MambaForCausalLM(
                MambaConfig(hidden_size=32, num_hidden_layers=2, state_size=4, initializer_range=0.3, **special)
            )
    return Learner(model.eval(), tokenizer, kind)


def forward_logprobs(learner: Learner, prompt: str, ids, temperature: float = 1.0) -> torch.Tensor:
    """Log-probabilities by one plain forward pass of one row: no padding, no cache."""
    start = learner.encode(prompt)
    with torch.no_grad():
        logits = learner.model(input_ids=torch.tensor([start + list(ids)])).logits[0, len(start) - 1 : -1]
    return torch.log_softmax(logits / temperature, -1)


def test_round_trip_keeps_logits_and_tokens(tiny, tmp_path):
    tiny.save(tmp_path / "model")
    again = load_learner(str(tmp_path / "model"))
    ids = torch.tensor([tiny.encode("reverse 90 =")])
    assert torch.equal(tiny.model(ids).logits, again.model(ids).logits)
    assert [again.encode(text) for text in TEXTS] == [tiny.encode(text) for text in TEXTS]
    assert [again.tokenizer.decode(again.encode(text)) for text in TEXTS] == TEXTS
    assert again.model.config._name_or_path == str(tmp_path / "model")
    for owner in (again.tokenizer, again.model.config, again.model.generation_config):
        assert (owner.pad_token_id, owner.bos_token_id, owner.eos_token_id) == (0, 1, 2)
    assert again.model.dtype == torch.float32
    assert not list((tmp_path / "model").glob("*.bin"))


def test_digits_are_single_and_prompts_get_no_start_token(tiny):
    words = [tiny.tokenizer.decode([token]) for token in tiny.encode("12345")]
    assert words == ["1", "2", "3", "4", "5"]


def test_weights_depend_on_the_seed_alone_and_the_global_state_stays():
    config = ModelConfig(width=16, depth=1, heads=2)
    state = torch.random.get_rng_state()
    one, two, other = (build_tiny(TEXTS, config, seed).model.lm_head.weight for seed in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize("kind", ["tiny", "gpt2", "qwen2", "mamba"])
def test_greedy_agrees_with_generate(kind, tiny):
    learner = tiny if kind == "tiny" else random_model(kind, tiny.tokenizer)
    found = learner.sample(PROMPTS, count=1, temperature=0, max_new_tokens=6, seed=0)
    for prompt, (best,) in zip(PROMPTS, found, strict=True):
        ids = torch.tensor([learner.encode(prompt)])
        expected = learner.model.generate(ids, do_sample=False, max_new_tokens=6, attention_mask=torch.ones_like(ids))
        assert list(best.token_ids) == expected[0, ids.shape[1] :].tolist()


@pytest.mark.parametrize("kind", ["tiny", "gpt2", "qwen2", "mamba"])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_logprobs_equal_a_plain_forward(kind, temperature, tiny):
    learner = tiny if kind == "tiny" else random_model(kind, tiny.tokenizer)
    found = learner.sample(PROMPTS, count=3, temperature=temperature, max_new_tokens=5, seed=1)
    rows = [(prompt, sample) for prompt, samples in zip(PROMPTS, found, strict=True) for sample in samples]
    read = learner.logprobs([prompt for prompt, _ in rows], [sample.token_ids for _, sample in rows])
    for (prompt, sample), ours in zip(rows, read, strict=True):
        places = torch.arange(len(sample.token_ids)), torch.tensor(sample.token_ids)
        drawn = forward_logprobs(learner, prompt, sample.token_ids, temperature)[places]
        plain = forward_logprobs(learner, prompt, sample.token_ids)[places]
        torch.testing.assert_close(torch.tensor(sample.logprobs), drawn, atol=2e-4, rtol=1e-3)
        torch.testing.assert_close(torch.tensor(ours), plain, atol=2e-4, rtol=1e-3)


def test_tokens_are_drawn_as_often_as_their_probability(tiny):
    count, temperature = 6000, 0.5
    samples = tiny.sample(["the cat"], count=count, temperature=temperature, max_new_tokens=1, seed=4)[0]
    drawn = torch.bincount(torch.tensor([sample.token_ids[0] for sample in samples]), minlength=len(tiny.tokenizer))
    expected = forward_logprobs(tiny, "the cat", [0], temperature)[0].double().exp()
    chi_square = float(((drawn - count * expected) ** 2 / (count * expected)).sum())
    degrees = len(expected) - 1
    assert abs(chi_square - degrees) < 5 * (2 * degrees) ** 0.5
    assert expected.max() > 3 / len(expected)


def test_samples_depend_on_the_seed_and_not_on_the_batching(tiny, monkeypatch):
    options = {"count": 3, "temperature": 1.0, "max_new_tokens": 5}
    together = tiny.sample(PROMPTS, **options, seed=7)
    monkeypatch.setattr(batches, "MAX_TOKENS_PER_PASS", 40)
    apart = tiny.sample(PROMPTS, **options, seed=7)
    ids = [[sample.token_ids for sample in samples] for samples in together]
    assert ids == [[sample.token_ids for sample in samples] for samples in apart]
    assert ids != [[sample.token_ids for sample in samples] for samples in tiny.sample(PROMPTS, **options, seed=8)]


@pytest.mark.parametrize("temperature", [0, 1.0])
def test_a_completion_begun_with_its_own_tokens_is_itself(tiny, temperature):
    prompts, asked = ["1+2=", "12+34=", "7="], {"temperature": temperature, "max_new_tokens": 7, "seed": 5}
    plain = tiny.sample(prompts, count=1, **asked)
    for sizes in ((2, 0, 1), (3, 3, 3)):
        begun = [made.token_ids[:size] for (made,), size in zip(plain, sizes, strict=True)]
        again = tiny.sample(prompts, count=1, prefixes=begun, **asked)
        for (one,), (two,), tokens in zip(plain, again, begun, strict=True):
            assert (two.text, two.token_ids, two.finished) == (one.text, one.token_ids, one.finished)
            assert [math.isnan(value) for value in two.logprobs] == [True] * len(tokens) + [False] * (
                len(one.token_ids) - len(tokens)
            )
    many = [tiny.sample(prompts, count=3, prefixes=begun, **asked) for begun in (None, [[], [], []])]
    assert many[0] == many[1]
    forced = tiny.encode("9")
    (made,) = tiny.sample(["1+2="], count=1, prefixes=[forced], **asked)[0]
    assert made.text.startswith("9")
    assert len(made.token_ids) <= 7
    with pytest.raises(ValueError, match="as many tokens as it may have"):
        tiny.sample(["1+2="], count=1, prefixes=[[5] * 7], **asked)


def test_sampling_leaves_no_trace(tiny):
    tiny.model.train()
    tiny.model.model.layers[0].eval()
    state, weights = torch.random.get_rng_state(), [p.clone() for p in tiny.model.parameters()]
    tiny.sample(PROMPTS, count=2, temperature=1.0, max_new_tokens=3, seed=0)
    tiny.logprobs(PROMPTS, [[5, 6]] * 4)
    try:
        assert tiny.model.training
        assert not tiny.model.model.layers[0].training
        assert tiny.model.model.layers[1].training
        assert torch.equal(state, torch.random.get_rng_state())
        assert all(torch.equal(old, new) for old, new in zip(weights, tiny.model.parameters(), strict=True))
        assert all(p.grad is None for p in tiny.model.parameters())
    finally:
        tiny.model.eval()


def test_a_completion_ends_at_the_end_token_or_is_cut(tiny):
    found = tiny.sample(["a"], count=400, temperature=1.0, max_new_tokens=4, seed=2)[0]
    assert {sample.finished for sample in found} == {True, False}
    for sample in found:
        assert len(sample.token_ids) == len(sample.logprobs) <= 4
        assert 2 not in sample.token_ids[:-1]
        assert sample.finished == (sample.token_ids[-1] == 2)
        assert "<|eos|>" not in sample.text
        assert sample.finished or len(sample.token_ids) == 4


def test_chat_prompts_use_the_template_or_say_that_there_is_none(tiny):
    assert tiny.tokenizer.decode(tiny.encode(CHAT)) == "user: sum of 3 and 4\nassistant: "
    assert len(tiny.sample([CHAT], count=2, temperature=1.0, max_new_tokens=2, seed=0)[0]) == 2
    template, tiny.tokenizer.chat_template = tiny.tokenizer.chat_template, None
    try:
        with pytest.raises(InputError, match="chat template"):
            tiny.encode(CHAT)
    finally:
        tiny.tokenizer.chat_template = template


def test_too_long_and_empty_inputs(tiny):
    learner = random_model("gpt2", tiny.tokenizer)
    with pytest.raises(InputError, match="at most 64 tokens"):
        learner.sample(["1" * 60], count=1, temperature=0, max_new_tokens=8, seed=0)
    assert learner.sample([], count=1, temperature=0, max_new_tokens=8, seed=0) == []
    assert learner.encode("") == [1]
    assert learner.logprobs(["a", "b"], [[], [5]])[0] == []


@given(st.lists(st.integers(1, 50), max_size=30), st.integers(1, 120), st.none() | st.integers(1, 8))
def test_batches_hold_every_row_once_within_the_limit(sizes, limit, most_rows):
    found = list(token_batches(sizes, limit, most_rows))
    assert sorted(i for batch in found for i in batch) == list(range(len(sizes)))
    assert all(len(batch) == 1 or len(batch) * max(sizes[i] for i in batch) <= limit for batch in found)
    assert most_rows is None or all(len(batch) <= most_rows for batch in found)


def test_a_gpu_writes_as_many_tokens_together_as_a_share_of_it_holds():
    """SmolLM2: 30 layers, 3 heads of 64 kept, 4 bytes, keys and values: 46,080 bytes a token."""
    shape = {"num_hidden_layers": 30, "hidden_size": 576, "num_attention_heads": 9, "num_key_value_heads": 3}
    model = SimpleNamespace(config=LlamaConfig(**shape), dtype=torch.float32)
    assert batches.writing_token_limit(model, 80 * 2**30) == 5 * 2**30 // 46_080
    assert batches.writing_token_limit(model, 2**30) == batches.writing_token_limit(model, None) == 16_384
    unknown = SimpleNamespace(config=SimpleNamespace(get_text_config=SimpleNamespace), dtype=torch.float32)
    assert batches.writing_token_limit(unknown, 80 * 2**30) == 16_384
    by_layer = SimpleNamespace(config=Gemma4TextConfig(head_dim=16, global_head_dim=32), dtype=torch.float32)
    assert batches.writing_token_limit(by_layer, 80 * 2**30) == 16_384


@pytest.mark.parametrize("kind", ["gpt2", "qwen2"])
@pytest.mark.parametrize("shares_prompts", [True, False])
def test_each_token_is_read_once_while_writing(kind, shares_prompts, tiny):
    learner, widths = random_model(kind, tiny.tokenizer), []
    learner.shares_prompts = shares_prompts
    learner.model.register_forward_pre_hook(
        lambda _, given, options: widths.append(options["input_ids"].shape[1]), with_kwargs=True
    )
    learner.sample(["the cat"], count=2, temperature=1.0, max_new_tokens=6, seed=0)
    assert len(widths) > 2
    assert set(widths[1:]) == {1}


def test_a_batch_too_large_for_the_memory_is_written_in_halves(tiny, monkeypatch):
    asked = {"count": 2, "temperature": 1.0, "max_new_tokens": 5, "seed": 7}
    learner, sizes = Learner(tiny.model, tiny.tokenizer, "tiny"), []
    learner.shares_prompts = False
    expected, forward = learner.sample(PROMPTS, **asked), learner.forward

    def short_of_memory(ids, *given, **options):
        sizes.append(len(ids))
        if len(ids) > 2:
            raise torch.OutOfMemoryError
        return forward(ids, *given, **options)

    monkeypatch.setattr(learner, "forward", short_of_memory)
    written = learner.sample(PROMPTS, **asked)
    assert [[one.token_ids for one in rows] for rows in written] == [[one.token_ids for one in rows] for rows in expected]
    assert sum(size > 2 for size in sizes) == 2  # 4 prompts, then 2 with 2 answers each; afterwards nothing is tried in vain
    asked["count"] = 3
    with pytest.raises(torch.OutOfMemoryError):
        learner.sample(PROMPTS[:1], **asked)


@pytest.mark.parametrize("make", ["missing", "empty", "file", "pickle", "not json"])
def test_what_is_not_a_model_is_refused(make, tiny, tmp_path):
    folder = tmp_path / "model"
    if make == "file":
        folder.write_text("x")
    elif make != "missing":
        folder.mkdir()
    if make == "pickle":
        tiny.save(folder)
        weights = folder / "model.safetensors"
        weights.unlink()
        torch.save(tiny.model.state_dict(), folder / "pytorch_model.bin")
    if make == "not json":
        (folder / "config.json").write_text("{")
    with pytest.raises(InputError, match="model"):
        load_learner(str(folder))


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # peft still reads the old name
def test_adapters_are_loaded_on_top_or_refused(tiny, tmp_path):
    from peft import LoraConfig, get_peft_model

    base, adapter = tmp_path / "base", tmp_path / "adapter"
    tiny.save(base)
    lora = LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
    with torch.random.fork_rng():
        wrapped = get_peft_model(load_learner(str(base)).model, lora)
    Learner(wrapped, tiny.tokenizer, "wrapped").save(adapter)
    ids = torch.tensor([tiny.encode("the cat")])
    for learner in (load_learner(str(base), adapter=str(adapter)), load_learner(str(adapter))):
        assert torch.equal(learner.model(ids).logits, wrapped(ids).logits)
        assert not torch.equal(learner.model(ids).logits, tiny.model(ids).logits)
        assert len(learner.sample(["the cat"], count=2, temperature=1.0, max_new_tokens=3, seed=0)[0]) == 2
    with pytest.raises(InputError, match="no adapter_config"):
        load_learner(str(base), adapter=str(base))
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": 3}))
    with pytest.raises(InputError, match="base_model_name_or_path"):
        load_learner(str(adapter))


def reversals() -> Corpus:
    """All two-digit reversals, a fifth held out at random, and a task that is not taught."""
    held_out = set(random.Random(0).sample(range(100), 20))
    split = ["eval" if n in held_out else "train" for n in range(100)]
    rows = [Example(f"r{n}", "reverse", f"{n:02d}>", answer=f"{n:02d}"[::-1], level=1.0, split=split[n]) for n in range(100)]
    rows += [Example(f"s{n}", "say", f"say {n}:", target=f"{n}", answer="-", split="train") for n in range(20)]
    return Corpus.from_examples(rows)


def test_warm_up_teaches_held_out_items_well_above_luck():
    corpus = reversals()
    learner = build_tiny(TEXTS, ModelConfig(width=32, depth=2, heads=2, vocabulary=300), 0)
    losses = []
    config = WarmupConfig(steps=200, batch_size=32, learning_rate=1e-2, cells={"reverse@1": 1.0})
    warm_up(learner, corpus, config, seed=0, progress=lambda step, steps, loss: losses.append((step, steps, loss)))
    held_out = [example for example in corpus if example.split == "eval"]
    found = learner.sample([e.prompt for e in held_out], count=1, temperature=0, max_new_tokens=4, seed=0)
    right = [best.text == e.answer and best.finished for (best,), e in zip(found, held_out, strict=True)]
    assert sum(right) / len(right) >= 0.3  # luck is 1 in 100
    assert [step for step, _, _ in losses] == [50, 100, 150, 200]
    assert losses[-1][2] < losses[0][2]
    assert not learner.model.training


@pytest.mark.parametrize("cells", [{"reverse@9": 1.0}, {"reverse": -1.0}, {"reverse": 0.0}])
def test_warm_up_refuses_cells_it_cannot_teach(cells, tiny):
    with pytest.raises(InputError):
        warm_up(tiny, reversals(), WarmupConfig(steps=1, cells=cells), seed=0)


def test_warm_up_refuses_a_corpus_without_anything_to_teach(tiny):
    with pytest.raises(InputError, match="target or an answer"):
        warm_up(tiny, Corpus.from_examples([Example("1", "a", "b")]), WarmupConfig(steps=1), seed=0)


def test_prompt_and_completion_join_as_in_trl(tiny):
    for example in (Example("1", "a", "reverse 12 =", answer="21"), Example("2", "a", "say:\n", target="the cat")):
        text = f"{example.prompt}{example.target or example.answer}<|eos|>"
        prompt, completion = row_tokens(tiny, example)
        assert prompt + completion == tiny.tokenizer(text)["input_ids"]
        assert prompt == tiny.tokenizer(example.prompt)["input_ids"]
    taught = row_tokens(tiny, Example("3", "a", CHAT, target=({"role": "assistant", "content": "7"},)))
    assert tiny.tokenizer.decode(taught[0] + taught[1]) == "user: sum of 3 and 4\nassistant: 7<|eos|>"


def test_a_build_for_an_accelerator_on_a_machine_without_one_uses_the_cpu(monkeypatch: pytest.MonkeyPatch):
    """Such a build names its accelerator all the same."""
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda *_, **__: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert find_device() == torch.device("cpu")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    assert find_device() == torch.device("cuda")


def test_float32_settings_differ_in_the_device_alone():
    on_cpu, on_gpu = float32_settings("cpu"), float32_settings(torch.device("cuda:0"))
    assert {name for name in on_cpu if on_cpu[name] != on_gpu[name]} == {"use_cpu"}
    assert on_gpu["bf16"] is False


def test_cheap_settings_are_for_a_cpu():
    found = cheap_settings(torch.device("cpu"))
    assert found["bf16"] is False
    assert found.get("activation_checkpointing", found.get("gradient_checkpointing")) is False
    assert cheap_settings("cuda:0") == {}
    made = TrainingArguments(output_dir="unused", **found)
    assert made.gradient_checkpointing is False
    assert made.device.type == "cpu"
    assert slow_settings(made) == []
    default = TrainingArguments(output_dir="unused", **(found | {"bf16": True}))
    assert [sentence.split("=")[0] for sentence in slow_settings(default)] == ["bf16"]
