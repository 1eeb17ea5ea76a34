"""Runs that `benchmarks.resume` kills: tiny, over several epochs, saving at each step, with every lever moving."""

from __future__ import annotations

import json
import os
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import _report  # noqa: F401 - before torch: it holds the arithmetic to one thread

from benchmarks._runs import checksum, rows  # isort: skip
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer

from mixwright import SteeringConfig
from mixwright.config import ModelConfig
from mixwright.learner.settings import cheap_settings
from mixwright.learner.tiny import build_tiny
from mixwright.records import CellPlan, Plan, Stage

TASKS = ("add", "copy", "gcd")
STATES = ("mastered", "unknown", "hopeless")
SIZE = ModelConfig(width=32, depth=2, heads=2, vocabulary=300)
PER_CELL = 8
TOKENS = 6
"""Of a completion."""
STEPS = 24
EPOCH, REUSED = 18, 4
"""Steps of an epoch of `grpo`; steps that a generation batch of `grpo_reused` feeds."""
COMPLETIONS = "completions.jsonl"


def data() -> Dataset:
    """72 rows: 3 tasks of 3 levels."""
    made, kept = rows(), []
    seen: dict[tuple[str, float], int] = {}
    for number, cell in enumerate(zip(made["task"], made["level"], strict=True)):
        seen[cell] = seen.get(cell, 0) + 1
        if cell[0] in TASKS and seen[cell] <= PER_CELL:
            kept.append(number)
    return made.select(kept)


def plan(objective: str) -> Plan:
    """Every lever, set so that gates refuse, coefficients move and alarms are raised within few steps."""
    weights = dict.fromkeys(TASKS, 1 / len(TASKS))
    levers: dict[str, Any] = {"controllers": ("drift",), "monitors": ("canary",)}
    nervous: dict[str, Any] = {
        "monitors.canary": {"standard_errors": 0.1, "min_fall": 0.0},
        "controllers.drift": {"target": 0.001, "steps_between_moves": 2},
    }
    if objective == "grpo":
        levers |= {"selector": "difficulty", "gates": ("too_hard",)}
    if objective == "dpo":
        levers["monitors"] = ("canary", "displacement")
        nervous["monitors.displacement"] = {
            "min_fall": 0.001,
            "standard_errors": 0.1,
            "min_pairs": 2,
            "steps_between_alarms": 2,
        }
    stage = Stage(objective, objective, STEPS, weights, options=nervous, **levers)  # type: ignore[arg-type]
    cells = [
        CellPlan(task, float(level), state, (0.95, 0.4, 0.03)[level], 0.0, 64, PER_CELL)  # type: ignore[arg-type]
        for task in TASKS
        for level, state in enumerate(STATES)
    ]
    return Plan("resume", (stage,), tuple(cells))


def make_model(folder: Path) -> None:
    """The starting model of all runs, on disk: TRL takes its reference from there. Attention drops out, so that it draws."""
    made = build_tiny(data()["prompt"], SIZE, 0)
    made.model.config.attention_dropout = 0.1
    made.model.save_pretrained(folder)
    made.tokenizer.save_pretrained(folder)


def common(folder: Path, **own: Any) -> dict[str, Any]:
    """What all three trainers share, and the settings that one of them has of its own."""
    return cheap_settings("cpu") | {
        "output_dir": str(folder),
        "max_steps": STEPS,
        "learning_rate": 3e-3,
        "save_strategy": "steps",
        "save_steps": 1,
        "save_total_limit": 1,
        "logging_steps": 1,
        **own,
    }


def recorded(folder: Path, attempt: int) -> Callable[..., list[float]]:
    """The reward; completions go to a file, one line per call, with the attempt that made them."""

    def reward(**given: Any) -> list[float]:
        line = {"attempt": attempt, "step": given["trainer_state"].global_step, "texts": given["completions"]}
        with (folder / COMPLETIONS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return checksum(**given)

    return reward


def grpo(model: Path, folder: Path, steered: bool, attempt: int, **settings: Any) -> Any:
    """GRPO with a KL penalty (beta > 0)."""
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    from mixwright import SteeredGRPOTrainer

    sizes = {"per_device_train_batch_size": 16, "num_generations": 4, "max_completion_length": TOKENS, "beta": 0.02}
    args = GRPOConfig(**(common(folder) | sizes | settings))
    given: dict[str, Any] = {
        "model": str(model),
        "reward_funcs": recorded(folder, attempt),
        "args": args,
        "train_dataset": data().select_columns(["id", "task", "level", "prompt"]),
        "processing_class": AutoTokenizer.from_pretrained(model, padding_side="left"),
    }
    if steered:
        return SteeredGRPOTrainer(**given, steering=SteeringConfig(plan("grpo"), canary_every=4))
    return GRPOTrainer(**given)


def grpo_reused(model: Path, folder: Path, steered: bool, attempt: int) -> Any:
    """GRPO whose generation batches feed four steps: most saves would fall into the middle of one."""
    return grpo(model, folder, steered, attempt, per_device_train_batch_size=8, steps_per_generation=2, num_iterations=2)


def sft(model: Path, folder: Path, steered: bool, attempt: int) -> Any:
    """SFT with dropout."""
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    from mixwright import SteeredSFTTrainer

    args = SFTConfig(**common(folder, per_device_train_batch_size=8, max_length=64))
    given: dict[str, Any] = {
        "model": AutoModelForCausalLM.from_pretrained(model),
        "args": args,
        "train_dataset": data().select_columns(["id", "task", "level", "prompt", "completion"]),
        "processing_class": AutoTokenizer.from_pretrained(model),
    }
    if steered:
        return SteeredSFTTrainer(**given, steering=SteeringConfig(plan("sft"), canary_every=4))
    return SFTTrainer(**given)


def dpo(model: Path, folder: Path, steered: bool, attempt: int) -> Any:
    """DPO with dropout."""
    from trl.trainer.dpo_config import DPOConfig
    from trl.trainer.dpo_trainer import DPOTrainer

    from mixwright import SteeredDPOTrainer

    args = DPOConfig(**common(folder, per_device_train_batch_size=8, max_length=64))
    given: dict[str, Any] = {
        "model": AutoModelForCausalLM.from_pretrained(model),
        "args": args,
        "train_dataset": data().select_columns(["id", "task", "level", "prompt", "chosen", "rejected"]),
        "processing_class": AutoTokenizer.from_pretrained(model),
    }
    if steered:
        return SteeredDPOTrainer(**given, steering=SteeringConfig(plan("dpo"), canary_every=4))
    return DPOTrainer(**given)


KINDS: dict[str, Callable[[Path, Path, bool, int], Any]] = {
    "grpo": grpo,
    "grpo_reused": grpo_reused,
    "sft": sft,
    "dpo": dpo,
}


def slow_saves(seconds: float = 0.03) -> None:
    """Stretch the moments that a kill would seldom hit, from now on in this process, by what Python tells of opened files.

    They are: before TRL's last file of a checkpoint (which is then half written), before our own there, and the middle of
    a line. Nothing of TRL or Mixwright is replaced.
    """
    inside = False

    def stretch(event: str, given: tuple[Any, ...]) -> None:
        nonlocal inside
        if inside or event != "open" or not isinstance(given[0], str | os.PathLike) or not isinstance(given[1], str):
            return
        path, mode, inside = Path(given[0]), given[1], True
        try:
            if path.name == "trainer_state.json" and "w" in mode:
                path.write_text("{")
                time.sleep(seconds)
            elif path.name == ".steering.npz" and "w" in mode:
                time.sleep(seconds)
            elif path.suffix == ".jsonl" and path.parent.name == "steering" and "a" in mode:
                whole = path.stat().st_size if path.exists() else 0
                with path.open("ab") as file:
                    file.write(b'{"step": ')
                time.sleep(seconds)
                os.truncate(path, whole)
        finally:
            inside = False

    sys.addaudithook(stretch)


def train(kind: str, model: Path, folder: Path, steered: bool, attempt: int) -> None:
    """One attempt: from the last whole checkpoint, or from the beginning."""
    folder.mkdir(parents=True, exist_ok=True)
    trainer = KINDS[kind](model, folder, steered, attempt)
    if steered:
        trainer.train(resume_from_checkpoint=True)
    else:
        whole = [path for path in checkpoints(folder) if whole_for_trl(path)]
        trainer.train(resume_from_checkpoint=str(whole[-1]) if whole else None)


def checkpoints(folder: Path) -> list[Path]:
    """Oldest first."""
    return sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.partition("-")[2]))


def whole_for_trl(checkpoint: Path) -> bool:
    """Whether TRL finished writing it. TRL does not look: `resume_from_checkpoint=True` takes the last folder."""
    try:
        json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return zipfile.is_zipfile(checkpoint / "rng_state.pth") and (checkpoint / "model.safetensors").exists()


if __name__ == "__main__":
    name, start, where, by, number = sys.argv[1:]
    train(name, Path(start), Path(where), by == "steered", int(number))
