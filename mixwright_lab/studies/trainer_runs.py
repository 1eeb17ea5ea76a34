"""Training runs to measure on: made-up tasks whose rows all cost the same, two model sizes, TRL's trainers and ours.

Every prompt has the same number of tokens and every completion is as long as allowed, so that a step costs the same
whichever rows are drawn. Rewards come from a checksum of the text, right as often as the level says: the engine has
mastered, reachable and hopeless cells to tell apart although no model here knows anything.
"""

from __future__ import annotations

import copy
import inspect
import random
import zlib
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

from datasets import Dataset
from trl.trainer.dpo_config import DPOConfig
from trl.trainer.dpo_trainer import DPOTrainer
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

import mixwright
from mixwright import SteeredDPOTrainer, SteeredGRPOTrainer, SteeredSFTTrainer, SteeringConfig
from mixwright.config import ModelConfig
from mixwright.learner.settings import cheap_settings
from mixwright.records import CellAssessment, Plan, Stage
from mixwright_extras.tiny.model import build_tiny
from mixwright_lab.studies.turns import Meter

TASKS = ("add", "copy", "count", "gcd", "lcm", "reverse", "sort", "spell")
SUCCESS = {0.0: 0.95, 1.0: 0.4, 2.0: 0.03}
"""How often a completion is called right, by level."""
ROWS_PER_CELL = 200
SIZES = {
    "0.2M": ModelConfig(width=64, depth=4, heads=4, vocabulary=512),
    "15M": ModelConfig(width=384, depth=8, heads=6, vocabulary=2048),
}
GROUP = 8
"""Completions per prompt."""
BOOKKEEPING = "bookkeeping"
OWNED = ("mixwright.trainers.", "mixwright.steer.beside.")
"""Modules whose classes run beside a trainer; what is called from inside them is charged with them."""
OBJECTIVES: dict[str, tuple[type, type, type, tuple[str, ...]]] = {
    "grpo": (GRPOTrainer, SteeredGRPOTrainer, GRPOConfig, ("prompt", "answer")),
    "sft": (SFTTrainer, SteeredSFTTrainer, SFTConfig, ("prompt", "completion")),
    "dpo": (DPOTrainer, SteeredDPOTrainer, DPOConfig, ("prompt", "chosen", "rejected")),
}
"""TRL's trainer, the steered one, its config, and the columns it trains on."""
LEVERS: dict[str, dict[str, Any]] = {
    "grpo": {"selector": "difficulty", "gates": ("too_hard",), "controllers": ("drift",)},
    "sft": {},
    "dpo": {"monitors": ("displacement",)},
}
"""Every lever that an objective has."""


@dataclass(frozen=True)
class Case:
    """One comparison."""

    objective: str
    """grpo, sft or dpo."""
    size: str
    """Of the model, a key of `SIZES`."""
    prompts: int
    """Rows per step; GRPO makes `GROUP` completions of each."""
    tokens: int
    """Per completion that GRPO makes."""
    steps: int
    """Optimiser steps per run and seed that are counted."""
    seeds: int = 5
    """0, 1 and so on."""
    labelled: bool = True
    """Whether rows have levels."""

    @property
    def name(self) -> str:
        """As the table calls it."""
        return f"{self.objective} {self.size}" + ("" if self.labelled else ", no levels")


def rows(seed: int = 0) -> Dataset:
    """4,800 rows: 8 tasks of 3 levels, prompts of one form and length, an answer for SFT, a wrong one beside it for DPO."""
    rng = random.Random(seed)

    def digits(count: int) -> str:
        return " ".join(str(rng.randrange(10)) for _ in range(count))

    made = []
    for place, task in enumerate(TASKS):
        for level in SUCCESS:
            for number in range(ROWS_PER_CELL):
                prompt, right = f"{'bcdfghjk'[place]} {int(level)} {digits(10)} =", digits(12)
                answers = {"answer": right, "completion": right, "chosen": right, "rejected": digits(12)}
                made.append(
                    {"id": f"{task}-{int(level)}-{number}", "task": task, "level": level, "prompt": prompt} | answers
                )
    return Dataset.from_list(made)


def checksum(completions: list[str], prompts: list[str], **_: Any) -> list[float]:
    """Right as often as the level, the prompt's second word, says; the same for the same prompt and text."""
    shares = [zlib.crc32((prompt + text).encode()) / 2**32 for prompt, text in zip(prompts, completions, strict=True)]
    return [float(share < SUCCESS[float(prompt.split()[1])]) for share, prompt in zip(shares, prompts, strict=True)]


def steering(case: Case) -> SteeringConfig:
    """Uniform weights and every lever; half of the tasks are mastered at the easiest level, where rows have one."""
    stage: Any = Stage(case.objective, "grpo", case.steps, dict.fromkeys(TASKS, 1 / len(TASKS)), **LEVERS[case.objective])
    mastered = [CellAssessment(task, 0.0, "mastered", 0.95, 0.0, 256, ROWS_PER_CELL, 0.91, 0.97) for task in TASKS[::2]]
    plan = Plan("benchmark", (replace(stage, objective=case.objective),), tuple(mastered) if case.labelled else ())
    return SteeringConfig(plan=plan)


def make(case: Case, steer: SteeringConfig | None, folder: Path, *, warmup: int = 0, seed: int = 0, **more: Any) -> Any:
    """A trainer of `warmup + case.steps` steps; TRL's own class without steering. TRL's defaults wherever nothing is said.

    Raises:
        ValueError: prompts that differ in tokens, for then rows would differ in cost.
    """
    theirs, ours, config, columns = OBJECTIVES[case.objective]
    dataset = rows(seed).select_columns(["id", "task", *(["level"] if case.labelled else []), *columns])
    learner = build_tiny(dataset["prompt"], SIZES[case.size], seed)
    counts = {len(learner.encode(prompt)) for prompt in dataset["prompt"]}
    if len(counts) != 1:
        raise ValueError(f"prompts of {sorted(counts)} tokens")
    settings: dict[str, Any] = {"output_dir": str(folder), "max_steps": warmup + case.steps, "save_strategy": "no"}
    settings |= {"seed": seed, "per_device_train_batch_size": case.prompts, "learning_rate": 1e-5}
    if case.objective == "grpo":
        settings |= {"per_device_train_batch_size": case.prompts * GROUP, "num_generations": GROUP}
        settings |= {"max_completion_length": case.tokens, "generation_kwargs": {"min_new_tokens": case.tokens}}
    given: dict[str, Any] = {"train_dataset": dataset, "processing_class": learner.tokenizer}
    given["args"] = config(**(cheap_settings("cpu") | settings | more))
    if case.objective == "grpo":
        given["reward_funcs"] = checksum
    if case.objective == "dpo":
        given["ref_model"] = copy.deepcopy(learner.model)  # made in memory: TRL cannot load it again by name
    return ours(learner.model, steering=steer, **given) if steer is not None else theirs(learner.model, **given)


def charge_owners(meter: Meter) -> None:
    """Charge every class of the trainers and of the run beside them to bookkeeping."""
    kinds: list[type] = []
    for found in walk_packages(mixwright.__path__, "mixwright."):
        if found.name.startswith(OWNED):
            module = import_module(found.name)
            kinds += [kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == found.name]
    meter.own(BOOKKEEPING, kinds, leave=("train",))
