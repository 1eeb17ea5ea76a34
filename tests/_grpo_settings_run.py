"""One of two processes that go through the table of GRPO settings, for test_grpo_settings_processes.py, under torchrun.

Each process holds six completions of a batch of twelve, so the second of three groups is split between them.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "GLOO_SOCKET_IFNAME": "lo"}

import grpo_parts as parts  # isort: skip
import pytest
import torch
from accelerate.utils import gather_object
from grpo_table import TABLE, Setting, build, true_rewards
from trainers_tiny import parameters, script

from mixwright import SteeredGRPOTrainer, SteeringConfig
from mixwright.records import Action, Plan, Stage

PLAN = Plan("test", (Stage("grpo", "grpo", 10, {"letters": 0.5, "sums": 0.5}),))


def divided(setting: Setting) -> Setting:
    """The setting with six completions per process."""
    config = setting.config | {"per_device_train_batch_size": 6, "ddp_find_unused_parameters": False}
    if "generation_batch_size" in config:
        config["generation_batch_size"] = 24
    if "eval_strategy" in config:
        config["per_device_eval_batch_size"] = 2
    return replace(setting, config=config)


def watch(trainer: Any) -> list[tuple[list[Any], list[Any], list[Any], torch.Tensor]]:
    """Prompts, completions, token ids and advantages of each generation batch, of all processes."""
    found, generated = [], []
    generate, score = trainer._generate, trainer._generate_and_score_completions

    def live() -> bool:
        return trainer.model.training

    def watched_generate(prompts: Any) -> Any:
        answer = generate(prompts)
        if live():
            generated.append((prompts, answer[3], answer[1]))
        return answer

    def watched_score(inputs: Any) -> Any:
        output = score(inputs)
        if live():
            gathered = [gather_object(list(part)) for part in generated[-1]]
            found.append((*gathered, trainer.accelerator.gather(output["advantages"])))
        return output

    trainer._generate, trainer._generate_and_score_completions = watched_generate, watched_score
    return found


def check(name: str, folder: Path) -> None:
    """Train under a setting on all processes; rewards true, refusals exactly 0, all processes alike."""
    setting = divided(TABLE[name])
    trainer = build(SteeredGRPOTrainer, folder, setting, steering=SteeringConfig(PLAN, reward_range=(-10, 10)))
    seen = script(trainer, lambda groups: [Action("refuse", groups[0].example, None, "test")])
    found = watch(trainer)
    trainer.train()
    data = {row["id"]: row for row in trainer.train_dataset}
    assert len(seen) == len(found) > 0
    for groups, (prompts, completions, ids, advantages) in zip(seen, found, strict=True):
        answered = [data[group.example] for group in groups for _ in range(4)]
        told = [reward for group in groups for reward in group.rewards]
        assert told == pytest.approx(true_rewards(setting, prompts, completions, ids, answered), abs=2e-3, rel=1e-4)
        silent = [not bool(advantages[4 * place : 4 * place + 4].any()) for place in range(len(groups))]
        assert silent == [group.example == groups[0].example or group.no_signal for group in groups]
    run = trainer.steered
    assert len(set(gather_object([json.dumps([run.draws.rows.tolist(), run.rollouts, run.engine.wanted_shares()])]))) == 1
    assert len(set(gather_object([float(parameters(trainer).double().sum())]))) == 1


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    base = parts.on_disk(Path(sys.argv[1]) / os.environ["RANK"])  # before the processes meet, or only one would write
    parts.on_disk = lambda folder: base
    for name in sys.argv[2:]:
        with pytest.MonkeyPatch.context() as patch:
            TABLE[name].patch(patch)
            check(name, Path(sys.argv[1]) / name.replace(" ", "_"))
        with (Path(sys.argv[1]) / f"right-{os.environ['RANK']}.txt").open("a") as file:
            file.write(f"{name}\n")
