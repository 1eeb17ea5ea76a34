"""SFT settings under steering: each is exact, supported or refused.

Exact: with the rows that TRL would have drawn, the steered run has TRL's losses and parameters to the bit, and the losses of
its examples add up to TRL's. Supported: the same, but what is trained is not the examples' plain log-likelihood. Refused: an
InputError with the reason. Every setting is bit-equal to TRL with `steering=None`.
"""

from __future__ import annotations

from array import array
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from peft import LoraConfig, PromptTuningConfig
from trainers_tiny import experts, losses, model, parameters, read, rows, sft_config, tokenizer
from transformers import TrainingArguments
from trl import SFTConfig, SFTTrainer
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

from mixwright import SteeredSFTTrainer
from mixwright.errors import InputError

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning"),  # TRL still sets the older name
    pytest.mark.filterwarnings("ignore:.*(label_smoothing_factor|compute_loss_func).*deprecated.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*(keep_end|pad_token).*:FutureWarning"),
    pytest.mark.filterwarnings(
        "ignore:.*grad attribute of a Tensor that is not a leaf.*:UserWarning"
    ),  # torch.compile, in TRL
]

CHAT = (
    "{% for m in messages %}{{ m.role }} {% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}"
    "{% else %}{{ m.content }} {% endif %}{% endfor %}{% if add_generation_prompt %}assistant {% endif %}"
)
PLAIN = rows(12).rename_column("answer", "completion")


def said(role: str, text: str) -> list[dict[str, str]]:
    return [{"role": role, "content": text}]


def mapped(function: Any, drop: list[str]) -> Dataset:
    return PLAIN.map(function, remove_columns=drop)


TURNS = mapped(lambda r: {"prompt": said("user", r["prompt"]), "completion": said("assistant", r["completion"])}, [])
MESSAGES = mapped(
    lambda r: {"messages": said("user", r["prompt"]) + said("assistant", r["completion"])}, ["prompt", "completion"]
)
TEXT = mapped(lambda r: {"text": r["prompt"] + r["completion"]}, ["prompt", "completion"])
TOKENS = mapped(lambda r: {"input_ids": tokenizer()(r["prompt"] + r["completion"])["input_ids"]}, ["prompt", "completion"])
LORA = LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM", lora_dropout=0.1)
VIRTUAL = PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)


def own_loss(outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
    return outputs.logits.float().pow(2).mean() / 10


def written_template(folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "chat.jinja").write_text(CHAT, encoding="utf-8")
    return str(folder / "chat.jinja")


def written_model(folder: Path) -> str:
    model().save_pretrained(folder / "model")
    return str(folder / "model")


EXACT: dict[str, dict[str, Any]] = {
    "defaults": {},
    "gradient-accumulation": {"settings": {"gradient_accumulation_steps": 2, "max_steps": 2}},
    "several-epochs-partial-batch": {"settings": {"max_steps": -1, "num_train_epochs": 2, "per_device_train_batch_size": 5}},
    "accumulation-over-a-partial-batch": {
        "settings": {
            "max_steps": -1,
            "num_train_epochs": 2,
            "per_device_train_batch_size": 5,
            "gradient_accumulation_steps": 2,
        }
    },
    "drop-last": {
        "settings": {
            "max_steps": -1,
            "num_train_epochs": 2,
            "per_device_train_batch_size": 5,
            "dataloader_drop_last": True,
        }
    },
    "shuffle-dataset": {"settings": {"shuffle_dataset": True}},
    "conversational-prompt-completion": {"train_dataset": TURNS},
    "messages": {"train_dataset": MESSAGES},
    "text": {"train_dataset": TEXT},
    "tokenised": {"train_dataset": TOKENS},
    "formatting-func": {
        "train_dataset": PLAIN.rename_columns({"prompt": "q", "completion": "a"}),
        "formatting_func": lambda row: row["q"] + row["a"],
    },
    "completion-only-loss-off": {"settings": {"completion_only_loss": False}},
    "assistant-only-loss": {"train_dataset": MESSAGES, "settings": {"assistant_only_loss": True}},
    "truncation-keep-end": {"settings": {"max_length": 5, "truncation_mode": "keep_end"}},
    "truncation-drops-rows": {"settings": {"max_length": 5}},
    "pad-to-multiple": {"settings": {"pad_to_multiple_of": 8}},
    "gradient-checkpointing": {"settings": {"gradient_checkpointing": True}},
    "bf16": {"settings": {"bf16": True, "max_steps": 1}},
    "neftune": {"settings": {"neftune_noise_alpha": 5.0}},
    "lora-dropout": {"peft_config": LORA},
    "prompt-tuning": {"peft_config": VIRTUAL},
    "eval-dict": {
        "settings": {"eval_strategy": "steps", "eval_steps": 1},
        "eval_dataset": {"sums": PLAIN.select([1, 3]), "letters": PLAIN.select([0, 2])},
    },
    "columns-kept": {"settings": {"remove_unused_columns": False}},
    "own-collator": {"data_collator": DataCollatorForLanguageModeling(pad_token_id=0, pad_to_multiple_of=4)},
    "torch-compile": {"settings": {"torch_compile": True, "torch_compile_backend": "eager"}},
    "text-of-another-column": {
        "train_dataset": TEXT.rename_column("text", "note"),
        "settings": {"dataset_text_field": "note"},
    },
    "end-and-pad-token": {"settings": {"eos_token": "<unk>", "pad_token": "<eos>"}},
    "template-from-a-file": {"train_dataset": MESSAGES, "settings": {"chat_template_path": written_template}},
    "prepared-by-a-process": {"settings": {"dataset_num_proc": 1}},
    "packed-evaluation": {
        "settings": {"eval_packing": True, "eval_strategy": "steps", "eval_steps": 1},
        "eval_dataset": PLAIN.select([1, 3]),
    },
    "model-from-a-folder": {
        "model": written_model,
        "settings": {"model_init_kwargs": {"dtype": "float32"}, "trust_remote_code": False},
    },
}
SUPPORTED: dict[str, dict[str, Any]] = {
    "loss-dft": {"settings": {"loss_type": "dft"}},
    "label-smoothing": {"settings": {"label_smoothing_factor": 0.1}},
    "compute-loss-func": {"compute_loss_func": own_loss},
    "mixture-of-experts": {"model": lambda folder: experts(), "settings": {"router_aux_loss_coef": 0.01}},
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "packing": ({"settings": {"packing": True, "packing_strategy": "wrapped"}}, "Rows are drawn one by one"),
    "packing-whole-rows": ({"settings": {"packing": True}}, "Rows are drawn one by one"),
    "padding-free": ({"settings": {"padding_free": True, "max_length": None}}, "Rows are drawn one by one"),
    "group-by-length": ({"settings": {"train_sampling_strategy": "group_by_length"}}, "order of rows"),
    "skip-prepare": ({"settings": {"dataset_kwargs": {"skip_prepare_dataset": True}}}, "got skip_prepare_dataset"),
    "images": ({"train_dataset": PLAIN.add_column("image", [None] * 12)}, "images with steering=None"),
    "stream": ({"train_dataset": PLAIN.to_iterable_dataset()}, "IterableDataset"),
    "dispatch-batches": ({"settings": {"accelerator_config": {"dispatch_batches": True}}}, "sample by itself"),
    "split-batches": ({"settings": {"accelerator_config": {"split_batches": True}}}, "as TRL lays them out"),
}


def make(cls: type, folder: Path, setting: dict[str, Any], **kwargs: Any) -> Any:
    given = dict(setting)
    settings = {"max_steps": 2, "train_sampling_strategy": "sequential"} | given.pop("settings", {})
    settings = {key: value(folder) if callable(value) else value for key, value in settings.items()}
    words = tokenizer()
    words.chat_template = CHAT
    given = {"train_dataset": PLAIN, "processing_class": words} | given | kwargs
    trained = given.pop("model")(folder) if "model" in given else model()
    return cls(trained, args=sft_config(folder, **settings), **given)


def replayed(trainer: Any) -> Any:
    """The rows that TRL draws with the strategy `sequential`, as if the engine had drawn them."""
    size = len(trainer.train_dataset)
    if trainer.args.dataloader_drop_last:
        size -= size % trainer.args.per_device_train_batch_size
    trainer.steered.draws.rows = array("i", list(range(size)) * 3)
    return trainer


@pytest.mark.parametrize("name", [*EXACT, *SUPPORTED])
def test_setting(name: str, tmp_path: Path) -> None:
    setting = (EXACT | SUPPORTED)[name]
    theirs = make(SFTTrainer, tmp_path / "a", setting)
    theirs.train()
    plain = make(SteeredSFTTrainer, tmp_path / "b", setting)
    plain.train()
    ours = replayed(make(SteeredSFTTrainer, tmp_path / "c", setting, steering=True))
    ours.train()
    for trainer in (plain, ours):
        assert losses(trainer) == losses(theirs)
        assert len(losses(trainer)) == theirs.state.global_step > 0
        assert torch.equal(parameters(trainer), parameters(theirs))
    assert not (tmp_path / "b" / "steering").exists()
    lines = read(tmp_path / "c", "steps.jsonl")
    told = [line["loss"] for line in lines]
    assert sum(line["examples"] for line in lines) == ours.steered.proof()["examples"] > 0
    if name in SUPPORTED:
        assert all(abs(one - other) > 1e-3 for one, other in zip(told, losses(theirs), strict=True))
        assert told[0] == pytest.approx(3.7, abs=0.3)  # plain log-likelihood: about log(42) on an untrained model
    else:
        assert told == pytest.approx(losses(theirs), rel=2e-3 if name == "bf16" else 1e-4)


@pytest.mark.parametrize("name", list(REFUSED))
def test_refused(name: str, tmp_path: Path) -> None:
    setting, word = REFUSED[name]
    with pytest.raises(InputError, match=word):
        make(SteeredSFTTrainer, tmp_path, setting, steering=True)
    assert not (tmp_path / "steering").exists()


NEEDS_ACCELERATOR = {"activation_offloading"}
"""Fields with which TRL itself ends in an error on a CPU."""


def test_every_field_that_trl_adds_is_tried() -> None:
    """A new field of SFTConfig has to be looked at: exact, supported or refused."""
    added = {field.name for field in fields(SFTConfig)} - {field.name for field in fields(TrainingArguments)}
    tried = {name for case in (EXACT | SUPPORTED | REFUSED).values() for name in settings_of(case)}
    assert added <= tried | NEEDS_ACCELERATOR


def settings_of(case: Any) -> dict[str, Any]:
    return (case[0] if isinstance(case, tuple) else case).get("settings", {})
