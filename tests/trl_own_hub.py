"""Stand-ins for what TRL's own tests fetch from the hub: tiny models and tokenizers in a cache folder, small data sets.

Models have the architecture that their name says and random weights; tokenizers are byte-level and carry the chat template
that the installed TRL has for that family. Vision models have no stand-in: their tests are skipped, and the reason says so.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import torch
import transformers
import trl
from datasets import Dataset, DatasetDict, IterableDataset, IterableDatasetDict
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

# Name after `tiny-` -> chat template of TRL, begin, end and padding token.
QWEN = ("qwen2_5", None, "<|im_end|>", "<|endoftext|>")
QWEN3 = ("qwen3", None, "<|im_end|>", "<|endoftext|>")
LLAMA = (None, "<|begin_of_text|>", "<|eot_id|>", None)
PLAIN = ("", "<s>", "</s>", "<unk>")
MODELS: dict[str, tuple[str | None, str | None, str, str | None]] = {
    "Qwen2ForCausalLM-2.5": QWEN,
    "Qwen2ForSequenceClassification-2.5": QWEN,
    "Qwen3ForCausalLM": QWEN3,
    "Qwen3ForSequenceClassification": QWEN3,
    "Qwen3MoeForCausalLM": QWEN3,
    "LlamaForCausalLM-3": ("llama3", *LLAMA[1:]),
    "LlamaForCausalLM-3.1": ("llama3_1", *LLAMA[1:]),
    "LlamaForCausalLM-3.2": ("llama3_2", *LLAMA[1:]),
    "LlamaForSequenceClassification-3.2": ("llama3_2", *LLAMA[1:]),
    "GptOssForCausalLM": ("gptoss", "<|startoftext|>", "<|return|>", "<|endoftext|>"),
    "Glm4MoeForCausalLM": ("glm4moe", None, "<|endoftext|>", "<|endoftext|>"),
    "CohereForCausalLM": ("cohere", "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "<PAD>"),
    "Cohere2ForCausalLM": ("cohere2", "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "<PAD>"),
    "GemmaForCausalLM": ("gemma", "<bos>", "<eos>", "<pad>"),
    "Gemma2ForCausalLM": ("gemma", "<bos>", "<eos>", "<pad>"),
    "Phi3ForCausalLM": ("phi3", "<s>", "<|endoftext|>", "<|endoftext|>"),
    "Phi3ForCausalLM-3": ("phi3", "<s>", "<|endoftext|>", "<|endoftext|>"),
    "Phi3ForCausalLM-3.5": ("phi3_5", "<s>", "<|endoftext|>", "<|endoftext|>"),
    "DeepseekV3ForCausalLM": ("deepseekv3", "<s>", "</s>", "<pad>"),
    "DeepseekV3ForCausalLM-0528": ("deepseekv3", "<s>", "</s>", "<pad>"),
    "Olmo3ForCausalLM": PLAIN,
    "GPTNeoXForCausalLM": PLAIN,
    "OPTForCausalLM": PLAIN,
    "GPT2LMHeadModel": PLAIN,
    "MistralForCausalLM-0.1": PLAIN,
    "MistralForCausalLM-0.2": PLAIN,
}
SIMPLE = (
    "{% for m in messages %}{{ '[' + m['role'] + '] ' + m['content'] + ' ' }}{% if m['role'] == 'assistant' %}"
    "{{ eos_token }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '[assistant] ' }}{% endif %}"
)
SHAPES = {
    "hidden_size": 8,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    "head_dim": 8,
    "num_labels": 1,
}
EXPERTS = {
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 4,
    "q_lora_rank": 4,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 4,
    "v_head_dim": 8,
}
THINGS = ["kites", "lakes", "roads", "ships", "trees", "birds", "stones", "clouds", "lamps", "doors"]
COLOURS = ["red", "blue", "green", "white", "black", "grey", "brown", "pale", "dark", "old"]


def sentences() -> list[tuple[str, str]]:
    """19 sentences, cut in two: the first 17 are the training rows."""
    draw = random.Random(0)
    first = [(draw.choice(COLOURS), draw.choice(THINGS)) for _ in range(19)]
    return [(f"The {a} {b} are better than", f" the {draw.choice(COLOURS)} {draw.choice(THINGS)}.") for a, b in first]


def fill_cache(home: Path) -> None:
    """Write all models into a hub cache, as if they had been downloaded. Those that this transformers lacks are left out."""
    for name, (template, begin, end, pad) in MODELS.items():
        kind = getattr(transformers, name.split("-")[0], None)
        if kind is None:
            continue
        repository = home / "hub" / f"models--trl-internal-testing--tiny-{name}"
        folder = repository / "snapshots" / ("0" * 40)
        folder.mkdir(parents=True)
        (repository / "refs").mkdir()
        (repository / "refs" / "main").write_text("0" * 40)
        words = tokenizer(_template(template), begin, end, pad)
        words.save_pretrained(folder)
        ends = {"bos_token_id": words.bos_token_id, "eos_token_id": words.eos_token_id, "pad_token_id": words.pad_token_id}
        torch.manual_seed(0)
        built = _build(kind, {"vocab_size": len(words), **ends})
        built.save_pretrained(folder)


def _template(name: str | None) -> str | None:
    if name is None:
        return None
    if name == "":
        return SIMPLE
    return (Path(trl.__file__).parent / "chat_templates" / f"{name}.jinja").read_text(encoding="utf-8")


def tokenizer(template: str | None, begin: str | None, end: str, pad: str | None) -> Any:
    """A byte-level tokenizer trained on the sentences; what looks like a special token in the template is one."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    found = set(re.findall(r"<\|\w+\|>|</?(?:think|tool_call|tool_response|start_of_turn|end_of_turn)>", template or ""))
    named = {token for token in (begin, end, pad) if token}
    special = sorted(found | named)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    settings = {"vocab_size": 1000, "special_tokens": special, "show_progress": False, "initial_alphabet": alphabet}
    core.train_from_iterator([*(a + b for a, b in sentences()), template or ""], trainers.BpeTrainer(**settings))
    words = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token=begin, eos_token=end, pad_token=pad, chat_template=template
    )
    words.model_max_length = 4096
    return words


def _build(kind: Any, more: dict[str, Any]) -> Any:
    config = kind.config_class()
    known = {name: value for name, value in {**SHAPES, **EXPERTS}.items() if hasattr(config, name)}
    if kind.config_class.__name__ == "GPT2Config":
        known = {"n_embd": 8, "n_layer": 2, "n_head": 4, "n_positions": 4096}
    known |= {"tie_word_embeddings": False, **more}
    built = kind(kind.config_class(**known))
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return built


def rows(config: str) -> list[dict[str, Any]]:
    """The rows of a configuration such as `standard_prompt_only`, 17 for training and 2 for tests."""
    style, kind = config.split("_", 1)
    chat = style == "conversational"

    def said(role: str, text: str) -> Any:
        return [{"role": role, "content": text.strip()}] if chat else text

    found = []
    for place, (start, rest) in enumerate(sentences()):
        wrong = rest.replace("the", "no")
        prompt, chosen, rejected = said("user", start), said("assistant", rest), said("assistant", wrong)
        found.append(
            {
                "language_modeling": {"messages" if chat else "text": prompt + chosen},
                "prompt_only": {"prompt": prompt},
                "prompt_completion": {"prompt": prompt, "completion": chosen},
                "preference": {"prompt": prompt, "chosen": chosen, "rejected": rejected},
                "implicit_prompt_preference": {"chosen": prompt + chosen, "rejected": prompt + rejected},
                "unpaired_preference": {"prompt": prompt, "completion": chosen, "label": place % 2 == 0},
            }[kind]
        )
    return found


def tool_rows(config: str) -> list[dict[str, Any]]:
    """Rows with a call of a tool, its answer and the tools' JSON schema."""
    function = {"name": "look", "description": "Look at a thing.", "parameters": {"type": "object", "properties": {}}}
    tools = json.dumps([{"type": "function", "function": function}])
    call = [{"type": "function", "function": {"name": "look", "arguments": {"thing": "kite"}}}]
    start = [{"role": "user", "content": "Look at the kite."}, {"role": "assistant", "tool_calls": call}]
    told = [*start, {"role": "tool", "name": "look", "content": "red"}]
    good, bad = ([{"role": "assistant", "content": f"It is {colour}."}] for colour in ("red", "blue"))
    row = {"messages": told + good} if config == "language_modeling" else {"prompt": told, "chosen": good, "rejected": bad}
    return [{**row, "tools": tools} for _ in range(19)]


def load_dataset(path: str, name: str | None = None, split: str | None = None, streaming: bool = False, **_: Any) -> Any:
    """In the place of `datasets.load_dataset`; a data set without stand-in skips the test that asks for it."""
    import pytest

    made = {"trl-internal-testing/zen": rows, "trl-internal-testing/toolcall": tool_rows}.get(path)
    if made is None or name is None:
        pytest.skip(f"no stand-in for the data set {path}")
    found = made(name)
    parts = {"train": Dataset.from_list(found[:17]), "test": Dataset.from_list(found[17:])}
    if split is not None:
        base, _, end = split.partition("[:")
        part = parts[base].select(range(int(end.rstrip("]")))) if end else parts[base]
        return part.to_iterable_dataset() if streaming else part
    if streaming:
        streams: dict[Any, IterableDataset] = {key: part.to_iterable_dataset() for key, part in parts.items()}
        return IterableDatasetDict(streams)
    return DatasetDict(parts)
