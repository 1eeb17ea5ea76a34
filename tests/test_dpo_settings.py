"""DPO settings under steering: each is exact, supported or refused.

Exact: with the pairs that TRL would have drawn, the steered run has TRL's losses and parameters to the bit, its margins and
log-ratios are those TRL logs, and each pair's own loss is known. Supported: the same, but a pair's own loss is not told,
because the loss is not a plain sum over pairs. Refused: an InputError with the reason. Every setting is bit-equal to TRL
with `steering=None`, and beta never moves.
"""

from __future__ import annotations

from array import array
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from peft import LoraConfig, PromptTuningConfig, get_peft_model
from trainers_tiny import dpo_config, experts, losses, model, pairs, parameters, read, saved_model, tokenizer
from transformers import TrainingArguments, set_seed
from trl import DPOConfig, DPOTrainer
from trl.trainer.dpo_trainer import DataCollatorForPreference

from mixwright import SteeredDPOTrainer
from mixwright.errors import InputError

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning"),  # TRL still sets the older name
    pytest.mark.filterwarnings("ignore:.*(keep_end|pad_token).*:FutureWarning"),
    pytest.mark.filterwarnings(
        "ignore:.*grad attribute of a Tensor that is not a leaf.*:UserWarning"
    ),  # torch.compile, in TRL
]

CHAT = "{% for m in messages %}{{ m.role }} {{ m.content }} {% endfor %}{% if add_generation_prompt %}assistant {% endif %}"
PAIRS = pairs(12)
LORA = {"r": 2, "target_modules": ["q_proj"], "task_type": "CAUSAL_LM", "lora_dropout": 0.1}


def said(role: str, text: str) -> list[dict[str, str]]:
    return [{"role": role, "content": text}]


def turns(row: dict[str, Any]) -> dict[str, Any]:
    answers = {name: said("assistant", row[name]) for name in ("chosen", "rejected")}
    return {"prompt": said("user", row["prompt"]), **answers}


def whole(row: dict[str, Any]) -> dict[str, Any]:
    """Without a prompt of its own: TRL takes what both have in common."""
    return {name: row["prompt"] + row[name] for name in ("chosen", "rejected")}


TURNS: Dataset = PAIRS.map(turns)
IMPLICIT: Dataset = PAIRS.map(whole, remove_columns=["prompt"])


def trained_adapter(folder: Path) -> Any:
    """A PEFT model handed in ready: TRL keeps a copy of its adapter as the reference, under the name `ref`."""
    set_seed(1)
    wrapped = get_peft_model(saved_model(folder), LoraConfig(**LORA))
    for name, parameter in wrapped.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    return wrapped


EXACT: dict[str, dict[str, Any]] = {
    "defaults": {},
    "padding-free": {"padding_free": True},
    "gradient-accumulation": {"gradient_accumulation_steps": 2},
    "several-epochs-partial-batch": {"max_steps": -1, "num_train_epochs": 2, "per_device_train_batch_size": 5},
    "accumulation-over-a-partial-batch": {
        "max_steps": -1,
        "num_train_epochs": 2,
        "per_device_train_batch_size": 5,
        "gradient_accumulation_steps": 2,
    },
    "drop-last": {"max_steps": -1, "num_train_epochs": 2, "per_device_train_batch_size": 5, "dataloader_drop_last": True},
    "conversational": {"train_dataset": TURNS},
    "prompt-taken-out-by-trl": {"train_dataset": IMPLICIT},
    "given-reference-model": {"ref_model": 5},
    "precomputed-reference": {"precompute_ref_log_probs": True},
    "precomputed-reference-ld": {"precompute_ref_log_probs": True, "ld_alpha": 0.5},
    "ld-alpha": {"ld_alpha": 0.5},
    "synced-reference": {"sync_ref_model": True, "ref_model_sync_steps": 1, "max_steps": 3},
    "lora-base-as-reference": {"peft_config": LoraConfig(**LORA)},
    "lora-precomputed": {"peft_config": LoraConfig(**LORA), "precompute_ref_log_probs": True},
    "lora-adapter-as-reference": {"model": "adapter"},
    "prompt-tuning": {"peft_config": PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)},
    "truncation-keep-start": {"max_length": 8},
    "truncation-keep-end": {"max_length": 5, "truncation_mode": "keep_end"},
    "truncation-drops-pairs": {"max_length": 5},
    "pad-to-multiple": {"pad_to_multiple_of": 8},
    "dropout-left-on": {"disable_dropout": False, "peft_config": LoraConfig(**LORA)},
    "gradient-checkpointing": {"gradient_checkpointing": True},
    "eval-dict": {
        "eval_strategy": "steps",
        "eval_steps": 1,
        "eval_dataset": {"sums": PAIRS.select([1, 3]), "letters": PAIRS.select([0, 2])},
    },
    "columns-kept": {"remove_unused_columns": False},
    "own-collator": {"data_collator": DataCollatorForPreference(pad_token_id=0, pad_to_multiple_of=4)},
    "torch-compile": {"torch_compile": True, "torch_compile_backend": "eager"},
    "precomputed-in-batches": {"precompute_ref_log_probs": True, "precompute_ref_batch_size": 3},
    "reference-mixed-in": {
        "sync_ref_model": True,
        "ref_model_sync_steps": 1,
        "ref_model_mixup_alpha": 0.3,
        "max_steps": 3,
    },
    "prepared-by-a-process": {"dataset_num_proc": 1, "pad_token": "<eos>"},
    "model-from-a-folder": {
        "model": "folder",
        "model_init_kwargs": {"dtype": "float32"},
        "trust_remote_code": False,
    },
}
LOSSES = ["hinge", "ipo", "nca_pair", "robust", "bco_pair", "sppo_hard", "aot", "aot_unpaired", "apo_zero", "apo_down"]
LOSSES += ["discopop", "sft", "sigmoid_norm"]
SUPPORTED: dict[str, dict[str, Any]] = {f"loss-{name}": {"loss_type": [name], "max_steps": 1} for name in LOSSES} | {
    "loss-exo-pair": {"loss_type": ["exo_pair"], "label_smoothing": 1e-3, "max_steps": 1},
    "losses-mixed": {"loss_type": ["sigmoid", "sft"], "loss_weights": [1.0, 0.5]},
    "use-weighting": {"use_weighting": True},
    "label-smoothing": {"label_smoothing": 0.1},
    "f-divergence": {"f_divergence_type": "js_divergence"},
    "mixture-of-experts": {"model": "experts", "router_aux_loss_coef": 0.01},
    "alpha-divergence": {"f_divergence_type": "alpha_divergence", "f_alpha_divergence_coef": 0.3},
    "discopop-temperature": {"loss_type": ["discopop"], "discopop_tau": 0.2, "max_steps": 1},
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "group-by-length": ({"train_sampling_strategy": "group_by_length"}, "order of rows"),
    "images": ({"train_dataset": PAIRS.add_column("image", [None] * 12)}, "images with steering=None"),
    "stream": ({"train_dataset": PAIRS.to_iterable_dataset()}, "IterableDataset"),
    "dispatch-batches": ({"accelerator_config": {"dispatch_batches": True}}, "sample by itself"),
    "split-batches": ({"accelerator_config": {"split_batches": True}}, "as TRL lays them out"),
}
TRIED_EVERYWHERE, NEEDS_ACCELERATOR = {"beta"}, {"activation_offloading"}
"""Fields whose value every test below reads; fields with which TRL itself ends in an error on a CPU."""
ARGUMENTS = ("train_dataset", "eval_dataset", "peft_config", "data_collator")


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("base") / "model"


def make(cls: type, folder: Path, disk: Path, setting: dict[str, Any], **kwargs: Any) -> Any:
    given = {"max_steps": 2, "train_sampling_strategy": "sequential"} | setting
    words = tokenizer()
    words.chat_template = CHAT
    kind = given.pop("model", "")
    policy = trained_adapter(disk) if kind == "adapter" else saved_model(disk)
    if kind == "experts":
        experts().save_pretrained(folder / "model")
    policy = {"folder": str(disk), "experts": str(folder / "model")}.get(kind, policy)
    reference = model(seed) if (seed := given.pop("ref_model", None)) is not None else None
    arguments = {"train_dataset": PAIRS} | {name: given.pop(name) for name in ARGUMENTS if name in given} | kwargs
    args = dpo_config(folder, **given)
    return cls(policy, ref_model=reference, args=args, processing_class=words, **arguments)


def replayed(trainer: Any) -> Any:
    """The pairs that TRL draws with the strategy `sequential`, as if the engine had drawn them."""
    size = len(trainer.train_dataset)
    if trainer.args.dataloader_drop_last:
        size -= size % trainer.args.per_device_train_batch_size
    trainer.steered.draws.rows = array("i", list(range(size)) * 3)
    return trainer


def outcomes(trainer: Any) -> list[Any]:
    """What the engine is given, kept."""
    seen: list[Any] = []
    observe = trainer.steered.engine.observe
    trainer.steered.engine.observe = lambda pairs, signals: (seen.append(pairs), observe(pairs, signals))[1]
    return seen


@pytest.mark.parametrize("name", [*EXACT, *SUPPORTED])
def test_setting(name: str, tmp_path: Path, disk: Path) -> None:
    setting = (EXACT | SUPPORTED)[name]
    theirs = make(DPOTrainer, tmp_path / "a", disk, setting)
    theirs.train()
    plain = make(SteeredDPOTrainer, tmp_path / "b", disk, setting)
    plain.train()
    ours = replayed(make(SteeredDPOTrainer, tmp_path / "c", disk, setting, steering=True))
    seen = outcomes(ours)
    ours.train()
    for trainer in (plain, ours):
        assert losses(trainer) == losses(theirs)
        assert len(losses(trainer)) == theirs.state.global_step > 0
        assert torch.equal(parameters(trainer), parameters(theirs))
        assert trainer.beta == trainer.args.beta == 0.1
    assert not (tmp_path / "b" / "steering").exists()
    logged = [line for line in ours.state.log_history if "loss" in line]
    lines = read(tmp_path / "c", "steps.jsonl")
    assert len(logged) == len(lines) == len(seen)
    micro = ours.args.gradient_accumulation_steps == 1  # with more, TRL's metrics weigh a partial last batch as a whole one
    for theirs_line, line, found in zip(logged, lines, seen, strict=True):
        told = {"pairs": len(found), "margin": mean(found, "margin"), "logps": mean(found, "chosen_logprob")}
        assert line["pairs"] == told["pairs"] == sum(line["scored"].values())
        assert line["loss"] == pytest.approx(theirs_line["loss"], rel=1e-4)
        if micro:
            assert told["margin"] == pytest.approx(theirs_line["rewards/margins"], rel=1e-3, abs=1e-6)
            assert told["logps"] == pytest.approx(theirs_line["logps/chosen"], rel=1e-4)
            assert mean(found, "chosen_logratio") * 0.1 == pytest.approx(theirs_line["rewards/chosen"], rel=1e-3, abs=1e-6)


def mean(found: list[Any], name: str) -> float:
    return sum(getattr(pair, name) for pair in found) / len(found)


@pytest.mark.parametrize("name", list(REFUSED))
def test_refused(name: str, tmp_path: Path, disk: Path) -> None:
    setting, word = REFUSED[name]
    with pytest.raises(InputError, match=word):
        make(SteeredDPOTrainer, tmp_path, disk, setting, steering=True)
    assert not (tmp_path / "steering").exists()


def test_every_field_that_trl_adds_is_tried() -> None:
    """A new field of DPOConfig has to be looked at: exact, supported or refused."""
    added = {field.name for field in fields(DPOConfig)} - {field.name for field in fields(TrainingArguments)}
    cases = [*EXACT.values(), *SUPPORTED.values(), *(case[0] for case in REFUSED.values())]
    assert added <= {name for case in cases for name in case} | TRIED_EVERYWHERE | NEEDS_ACCELERATOR
