"""Checkpoints and adapters that are not whole or not what they seem: one line before anything is measured."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import trainers_tiny as tiny
from cli_call import Call, sums, write
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import ElectraConfig, ElectraForCausalLM, MambaConfig, MambaForCausalLM

from mixwright.catalog import create
from mixwright.config import ModelConfig
from mixwright.errors import InputError
from mixwright.learner.load import check_checkpoint, load_learner, load_without_weights
from mixwright.run.preflight import check_model

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")  # of libraries
Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the checkpoint `model`, the same in several files (`parts`) and two adapters of it."""
    folder = tmp_path_factory.mktemp("whole")
    model = tiny.model()
    model.save_pretrained(folder / "model")
    model.save_pretrained(folder / "parts", max_shard_size="20KB")
    for name in ("model", "parts"):
        tiny.tokenizer().save_pretrained(folder / name)
    settings = LoraConfig(r=2, target_modules=["q_proj", "down_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
    get_peft_model(tiny.model(), settings).save_pretrained(str(folder / "lora"))
    expert = create("adapters", "svf")
    expert.save(expert.wrap(tiny.model()), folder / "svf")
    return folder


@pytest.fixture
def copied(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "copy")


def changed(name: str, **values: Any) -> Damage:
    """Other values in a JSON file."""

    def damage(folder: Path) -> None:
        path = folder / name
        found = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(found | values))

    return damage


def text(name: str, value: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).write_text(value)

    return damage


def weights(change: Callable[[dict[str, torch.Tensor]], Any], name: str = "adapter_model.safetensors") -> Damage:
    def damage(folder: Path) -> None:
        found = load_file(folder / name)
        change(found)
        save_file(found, folder / name, metadata={"format": "pt"})

    return damage


def vocabulary(change: Callable[[dict[str, int]], Any]) -> Damage:
    def damage(folder: Path) -> None:
        path = folder / "tokenizer.json"
        found = json.loads(path.read_text())
        change(found["model"]["vocab"])
        path.write_text(json.dumps(found))

    return damage


def added(token: str, *, special: bool, **named: str) -> Damage:
    def damage(folder: Path) -> None:
        tokenizer = tiny.tokenizer()
        tokenizer.add_tokens([token], special_tokens=special)
        tokenizer.add_special_tokens(named)
        tokenizer.save_pretrained(folder)

    return damage


def electra(folder: Path) -> None:
    sizes: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    ElectraForCausalLM(ElectraConfig(vocab_size=64, embedding_size=16, **sizes)).save_pretrained(folder)


CONFIG = "config.json"
BROKEN_MODELS: dict[str, tuple[Damage, str]] = {
    "one layer of two": (changed(CONFIG, num_hidden_layers=1), r"without model\.layers\.1\."),
    "a billion layers": (changed(CONFIG, num_hidden_layers=10**9), "config.json: expected a model of 1 to 9,999 layers"),
    "no layer": (changed(CONFIG, num_hidden_layers=0), "config.json: expected a model of 1 to 9,999 layers"),
    "an encoder": (electra, "a causal language model"),
    "no key-value heads": (changed(CONFIG, num_key_value_heads=0), "by zero|num_key_value_heads"),
    "text for a width": (changed(CONFIG, intermediate_size="wide"), "'intermediate_size'|intermediate_size"),
    "a fraction for a number of heads": (changed(CONFIG, num_attention_heads=2.5), "num_attention_heads"),
    "an odd head": (changed(CONFIG, head_dim=15), "head_dim|even rotary|the settings of a model at"),
    "a text for a mapping": (changed(CONFIG, rope_parameters="default"), "rope_parameters|the settings of a model at"),
    "an unknown activation": (changed(CONFIG, hidden_act="wave"), "wave"),
    "an unknown dtype": (changed(CONFIG, dtype="float7"), "float7"),
    "a tokenizer with a word more": (added("hello", special=False), "vocabulary of 42"),
    "padding beyond the vocabulary": (added("x", special=True, pad_token="<padding>"), "vocabulary of 42"),
    "an empty vocabulary": (vocabulary(dict.clear), "a tokenizer that reads text"),
    "a number far beyond the vocabulary": (vocabulary(lambda found: found.update({"a": 900_000})), "900,000|tokenizer"),
    "no vocabulary in the tokenizer": (text("tokenizer.json", "{}"), "a tokenizer"),
    "a list for the tokenizer's settings": (text("tokenizer_config.json", "[]"), "tokenizer"),
    "NaN among the weights": (
        weights(lambda found: found["model.norm.weight"].fill_(float("nan")), "model.safetensors"),
        "finite weights",
    ),
}
BROKEN_ADAPTERS: dict[str, tuple[Damage, str]] = {
    "infinity": (weights(lambda found: next(iter(found.values())).fill_(float("inf"))), "finite weights of an adapter"),
    "a weight less": (weights(dict.popitem), "missing adapter keys"),
    "a layer more": (
        weights(lambda found: found.update({key.replace("layers.0", "layers.7"): found[key] + 0 for key in list(found)})),
        "lacks: .*layers.7",
    ),
    "another matrix": (
        weights(lambda found: found.update({key.replace("q_proj", "o_proj"): found[key] + 0 for key in list(found)})),
        "lacks: .*o_proj",
    ),
    "another rank": (changed("adapter_config.json", r=3), "an adapter that fits the model"),
    "no rank": (changed("adapter_config.json", r=0), "an adapter that fits the model"),
    "a text for the rank": (changed("adapter_config.json", r="two"), "adapter"),
    "infinity for alpha": (changed("adapter_config.json", lora_alpha=float("inf")), "finite logits"),
    "matrices that the model lacks": (changed("adapter_config.json", target_modules=["nowhere"]), "adapter"),
    "an unknown kind": (changed("adapter_config.json", peft_type="WISH"), "adapter"),
}
BROKEN_EXPERTS: dict[str, tuple[Damage, str]] = {
    "NaN": (
        weights(lambda found: next(iter(found.values())).fill_(float("nan")), "adapter.safetensors"),
        "finite weights of an adapter",
    ),
    "a matrix less": (weights(dict.popitem, "adapter.safetensors"), "an expert of the same matrices"),
    "sums that are a list": (changed("adapter.json", sums=[1.0]), "adapter"),
}


@pytest.mark.parametrize("case", BROKEN_MODELS)
def test_a_broken_checkpoint_is_refused_in_one_line(case: str, copied: Path) -> None:
    damage, told = BROKEN_MODELS[case]
    damage(copied / "model")
    with pytest.raises(InputError, match=told) as refused:
        load_learner(str(copied / "model"))
    assert str(refused.value).count("\n") == 0
    assert "model" in str(refused.value)


@pytest.mark.parametrize("case", BROKEN_ADAPTERS)
def test_a_broken_adapter_is_refused_in_one_line(case: str, copied: Path) -> None:
    damage, told = BROKEN_ADAPTERS[case]
    damage(copied / "lora")
    with pytest.raises(InputError, match=told) as refused:
        load_learner(str(copied / "model"), adapter=str(copied / "lora"))
    assert str(refused.value).count("\n") == 0
    assert "lora" in str(refused.value)


@pytest.mark.parametrize("case", BROKEN_EXPERTS)
def test_a_broken_expert_is_refused_in_one_line(case: str, copied: Path) -> None:
    damage, told = BROKEN_EXPERTS[case]
    damage(copied / "svf")
    with pytest.raises(InputError, match=told):
        load_learner(str(copied / "model"), adapter=str(copied / "svf"))


def mamba(folder: Path) -> None:
    sizes: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 1, "state_size": 4, "vocab_size": 42}
    (folder / "model.safetensors").unlink()
    MambaForCausalLM(MambaConfig(**sizes)).save_pretrained(folder)


GOOD: dict[str, Damage] = {
    "as it was": lambda folder: None,
    "a list of files that is not used": text("model.safetensors.index.json", '{"weight_map": {"a": "lost.safetensors"}}'),
    "a mark for images beyond the vocabulary": added("<image>", special=True),
    "a setting without a limit": changed(CONFIG, time_step_limit=[0.0, float("inf")]),
    "weights of another head": weights(lambda found: found.update(v_head=torch.ones(3)), "model.safetensors"),
    "half precision": lambda folder: tiny.model().bfloat16().save_pretrained(folder),
    "a model without attention": mamba,
}


@pytest.mark.parametrize("case", GOOD)
def test_a_good_checkpoint_is_read(case: str, copied: Path) -> None:
    GOOD[case](copied / "model")
    path = str(copied / "model")
    check_model(ModelConfig(path))
    check_checkpoint(path)
    learner = load_learner(path)
    assert learner.encode("sum 1+2=") == load_without_weights(path).encode("sum 1+2=")
    assert len(learner.sample(["1+2="], count=1, temperature=0, max_new_tokens=2, seed=0)[0]) == 1


@pytest.mark.parametrize("more", [{}, {"bias": "all"}, {"modules_to_save": ["lm_head"]}, {"use_dora": True}])
def test_a_good_adapter_is_read(more: dict[str, Any], copied: Path) -> None:
    settings = LoraConfig(r=2, target_modules=["v_proj"], init_lora_weights=False, task_type="CAUSAL_LM", **more)
    made = get_peft_model(tiny.model(), settings)
    made.save_pretrained(str(copied / "other"))
    state = torch.random.get_rng_state()
    loaded = load_learner(str(copied / "parts"), adapter=str(copied / "other"))
    assert torch.equal(torch.random.get_rng_state(), state)
    ids = torch.tensor([[3, 4, 5]])
    assert torch.equal(loaded.model(ids).logits, made.eval()(ids).logits)


def test_a_prompt_with_a_token_that_the_model_lacks_is_refused(copied: Path) -> None:
    added("<image>", special=True)(copied / "model")
    learner = load_learner(str(copied / "model"))
    with pytest.raises(InputError, match="'<image>', which it does not have"):
        learner.encode("see <image> here")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(name: str, copied: Path) -> None:
    (copied / "model" / name).unlink(missing_ok=True)
    os.mkfifo(copied / "model" / name)
    with pytest.raises(InputError, match=f"{name}: expected a file, got a pipe"):
        check_model(ModelConfig(str(copied / "model")))
    with pytest.raises(InputError, match=r"got a pipe|without config\.json"):
        load_learner(str(copied / "model"))
    os.mkfifo(copied / "svf" / name)
    with pytest.raises(InputError, match=f"{name}: expected a file, got a pipe"):
        load_learner(str(copied / "parts"), adapter=str(copied / "svf"))


def test_a_chat_template_that_fails_is_refused(copied: Path) -> None:
    (copied / "model" / "chat_template.jinja").write_text("{{ messages[0]['content'] / 2 }}")
    with pytest.raises(InputError, match=r"a chat template of .*TypeError"):
        load_learner(str(copied / "model")).encode(({"role": "user", "content": "1+2="},))


def test_a_long_conversation_is_read(copied: Path) -> None:
    template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    (copied / "model" / "chat_template.jinja").write_text(template)
    learner = load_learner(str(copied / "model"))
    assert len(learner.encode(({"role": "user", "content": "ab" * 10_000},))) == 20_000


def test_nothing_is_measured_of_a_broken_adapter(whole: Path, call: Call) -> None:
    for name in ("model", "lora"):
        shutil.copytree(whole / name, name)
    weights(lambda found: next(iter(found.values())).fill_(float("nan")))(Path("lora"))
    code, _, err = call("measure", "./model", "--adapter", "./lora", "--eval", write("a.jsonl", sums(8)))
    assert code == 1
    assert err.splitlines()[-1].startswith("error: lora: expected finite weights of an adapter")
    assert not Path("runs").exists()


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/model", "tiny:9M"])
def test_a_path_of_the_command_line_is_not_called_by_the_name_of_a_setting(name: str, call: Call) -> None:
    code, _, err = call("measure", name, "--eval", write("a.jsonl", sums(8)))
    assert code == 1
    assert err.splitlines()[-1].endswith("Correct the name of the model.")
