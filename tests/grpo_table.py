"""The settings under which SteeredGRPOTrainer is compared with TRL's trainer and steered: one table, used by all its tests.

A setting is what its config says, what its trainer gets beside, and which rewards it has. Each is a test id.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpo_parts as parts
import trl.generation.vllm_generation as vllm
import trl.trainer.grpo_trainer as grpo
from torch import nn
from trainers_tiny import grpo_config, model, rows, tokenizer

from mixwright.trainers.rewards import is_async


@dataclass(frozen=True)
class Setting:
    """One line of the table."""

    config: dict[str, Any] = field(default_factory=dict)
    """Over `grpo_config`'s defaults."""
    rewards: Callable[[], list[Any]] = lambda: [parts.distinct]
    """Reward functions, fresh for every trainer."""
    kwargs: Callable[[Path], dict[str, Any]] = lambda folder: {}
    """What else the trainer gets, fresh for every trainer."""
    patch: Callable[[Any], None] = lambda monkeypatch: None
    """What is faked."""


def build(cls: type, folder: Path, setting: Setting, **more: Any) -> Any:
    """A trainer of `cls` under a setting: two steps, four groups of four completions per generation batch."""
    config = {"per_device_train_batch_size": 16, "max_steps": 2} | setting.config
    given = {"train_dataset": rows(), "processing_class": tokenizer()} | setting.kwargs(folder) | more
    base = given.pop("model", None)
    return cls(base or model(), setting.rewards(), grpo_config(folder, **config), **given)


def true_rewards(setting: Setting, prompts: list[Any], completions: list[Any], ids: list[Any], data: Any) -> list[float]:
    """Weighted sums of rewards, computed beside the trainer; `data`: the dataset's row of each completion."""
    functions = setting.rewards()
    weights = setting.config.get("reward_weights") or [1.0] * len(functions)
    columns = {name: [row[name] for row in data] for name in data[0] if name not in ("prompt", "completion")}
    columns |= {"bonus": [len(row) / 10 for row in ids]}  # what `parts.rollout` gives beside its answers
    totals = [0.0] * len(ids)
    for function, weight in zip(functions, weights, strict=True):
        if isinstance(function, nn.Module | str):
            scores = parts.model_scores(prompts, completions)
        elif function in (parts.bare, parts.noted):
            scores = parts.distinct(completions)
        elif is_async(function):
            scores = asyncio.run(function(completions=completions, **columns))
        else:
            scores = function(completions=completions, **columns)
        totals = [total + weight * (score or 0.0) for total, score in zip(totals, scores, strict=True)]
    return totals


def chat(folder: Path) -> dict[str, Any]:
    """Conversations and a template for them."""
    return {"train_dataset": parts.chat_rows(), "processing_class": parts.plain_chat_tokenizer()}


def tools(folder: Path) -> dict[str, Any]:
    """Conversations and a template that shows tools."""
    return {"train_dataset": parts.chat_rows(), "processing_class": parts.chat_tokenizer()}


def held_out(folder: Path) -> dict[str, Any]:
    """Rows to evaluate on, by task."""
    return {"eval_dataset": {task: rows(8).filter(lambda row: row["task"] == task) for task in ("letters", "sums")}}  # noqa: B023


def from_disk(folder: Path) -> dict[str, Any]:
    """A model that TRL can load a reference for."""
    return {"model": parts.on_disk(folder), "processing_class": None}


def fake_server(monkeypatch: Any) -> None:
    """TRL's own generation code, talking to a stand-in for the server's client."""
    monkeypatch.setattr(vllm, "is_vllm_available", lambda *args: True)
    monkeypatch.setattr(vllm, "VLLMClient", parts.Server)


def fake_engine(monkeypatch: Any) -> None:
    """A stand-in for TRL's generation code, because colocated vLLM needs its package and a GPU."""
    monkeypatch.setattr(grpo, "VLLMGeneration", parts.Colocated)


def parsed(tool: str) -> Callable[[Any], None]:
    """Answers are read as calls of a tool, and TRL's warnings of experimental features are off."""

    def patch(monkeypatch: Any) -> None:
        monkeypatch.setattr(grpo, "parse_response", parts.calling(tool))
        monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")

    return patch


def quiet(monkeypatch: Any) -> None:
    """TRL's warnings of experimental features are off."""
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")


LOSSES = {
    f"loss_type={name}": Setting({"loss_type": name} | more)
    for name, more in {
        "grpo": {},
        "dr_grpo": {},
        "dapo": {},
        "bnpo": {},
        "cispo": {"epsilon_high": 0.3},
        "sapo": {},
        "luspo": {"importance_sampling_level": "sequence"},
        "vespo": {},
    }.items()
}
TABLE: dict[str, Setting] = {
    "plain": Setting(),
    "gradient_accumulation": Setting({"gradient_accumulation_steps": 2, "per_device_train_batch_size": 8}),
    "steps_per_generation>1": Setting({"steps_per_generation": 2, "per_device_train_batch_size": 8}),
    "num_iterations>1": Setting({"num_iterations": 2, "max_steps": 4}),
    "steps_per_generation and num_iterations>1": Setting(
        {
            "steps_per_generation": 2,
            "num_iterations": 2,
            "gradient_accumulation_steps": 2,
            "per_device_train_batch_size": 8,
            "max_steps": 4,
        }
    ),
    "two generations per step": Setting({"steps_per_generation": 1, "gradient_accumulation_steps": 2}),
    "generation_batch_size": Setting({"generation_batch_size": 32}),
    "several epochs, last batch partial": Setting(
        {"num_train_epochs": 2, "max_steps": -1}, kwargs=lambda f: {"train_dataset": rows(10)}
    ),
    "dataloader workers": Setting({"dataloader_num_workers": 1}),
    "remove_unused_columns": Setting({"remove_unused_columns": True}, lambda: [parts.bare]),
    "several rewards, weighted, None": Setting(
        {"reward_weights": [0.5, 2.0, -1.0]}, lambda: [parts.first, parts.distinct, parts.correct]
    ),
    "async rewards": Setting(rewards=lambda: [parts.later, parts.distinct, parts.Scorer()]),
    "partial of a reward": Setting(rewards=lambda: [functools.partial(parts.distinct, unused=1)]),
    "reward model": Setting(
        {"reward_weights": [100.0, 1.0]},
        lambda: [parts.classifier(), parts.distinct],
        lambda folder: {"reward_processing_classes": [tokenizer(), None]},
    ),
    "scale_rewards=batch": Setting({"scale_rewards": "batch"}),
    "scale_rewards=none": Setting({"scale_rewards": "none"}),
    "normalize_then_sum": Setting(
        {"multi_objective_aggregation": "normalize_then_sum", "reward_weights": [0.5, 2.0]},
        lambda: [parts.first, parts.distinct],
    ),
    **LOSSES,
    "importance_sampling_level=sequence": Setting({"loss_type": "grpo", "importance_sampling_level": "sequence"}),
    "mask_truncated_completions": Setting({"mask_truncated_completions": True, "max_completion_length": 16}),
    "off-policy mask, two-sided clipping": Setting({"off_policy_mask_threshold": 0.5, "delta": 4.0, "num_iterations": 2}),
    "top_entropy_quantile": Setting({"top_entropy_quantile": 0.5}),
    "entropy bonus, adaptive": Setting({"use_adaptive_entropy": True, "entropy_target": 5.0, "entropy_coef": 0.01}),
    "beta, reference model": Setting({"beta": 0.1, "use_bias_correction_kl": True}, kwargs=from_disk),
    "sync_ref_model": Setting({"beta": 0.1, "sync_ref_model": True, "ref_model_sync_steps": 1}, kwargs=from_disk),
    "peft_config": Setting({"beta": 0.1}, kwargs=lambda folder: {"peft_config": parts.lora()}),
    "PeftModel": Setting(kwargs=parts.adapted),
    "PeftModel, beta": Setting({"beta": 0.1}, kwargs=parts.adapted),
    "gradient_checkpointing": Setting({"gradient_checkpointing": True}),
    "bf16": Setting({"bf16": True}),
    "eval_dataset by task": Setting(
        {"eval_strategy": "steps", "eval_steps": 1, "per_device_eval_batch_size": 4, "num_generations_eval": 2},
        kwargs=held_out,
    ),
    "chat": Setting(kwargs=chat),
    "chat_template_kwargs": Setting({"chat_template_kwargs": {"answer": "so"}}, kwargs=chat),
    "log_completions": Setting({"log_completions": True, "log_unique_prompts": True}, lambda: [parts.noted]),
    "liger kernel": Setting(
        {"use_liger_kernel": True}, patch=lambda m: m.setattr("transformers.trainer.apply_liger_kernel", print)
    ),
    "vllm server": Setting({"use_vllm": True, "vllm_mode": "server"}, patch=fake_server),
    "vllm colocate": Setting({"use_vllm": True, "vllm_mode": "colocate"}, patch=fake_engine),
    "continuous batching": Setting(
        {
            "use_transformers_continuous_batching": True,
            "transformers_continuous_batching_config": {"num_blocks": 32, "max_batch_tokens": 64},
        }
    ),
    "rollout_func": Setting(
        rewards=lambda: [parts.with_bonus], kwargs=lambda folder: {"rollout_func": parts.rollout}, patch=quiet
    ),
    "tools": Setting(
        {"max_completion_length": 24},
        kwargs=lambda folder: tools(folder) | {"tools": [parts.double]},
        patch=parsed("double"),
    ),
    "environment_factory": Setting(
        {"max_completion_length": 24},
        kwargs=lambda folder: tools(folder) | {"environment_factory": parts.Abacus},
        patch=parsed("count"),
    ),
}
