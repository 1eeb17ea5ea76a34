"""Pieces of `gpu`: each is a process of its own on one accelerator, and prints one JSON object as its last line.

The model is SmolLM2-135M-Instruct (Q4_1 weights, dequantised), or with `--tiny` one that is made from nothing. Rows are
questions of the demo's tables with a right and a wrong answer; GRPO rewards answers that include the right one.
"""

from __future__ import annotations

import argparse
import copy
import gc
import hashlib
import importlib.util
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset

from mixwright import SteeringConfig
from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig
from mixwright.corpus import read_corpus
from mixwright.learner.adapters.lora import LoRA
from mixwright.learner.learner import Learner
from mixwright.learner.load import load_learner
from mixwright.learner.settings import float32_settings
from mixwright.learner.training_rows import read_training_rows
from mixwright.measure.stage import measure_learner
from mixwright.records import CellAssessment, Plan, Stage
from mixwright_extras.tiny.model import build_tiny
from mixwright_lab.studies.questions import OLD_TASKS, questions
from mixwright_lab.studies.scan_costs import scanned
from mixwright_lab.studies.trainer_runs import (
    BOOKKEEPING,
    LEVERS,
    OBJECTIVES,
    charge_owners,
)
from mixwright_lab.studies.turns import Meter, take_turns

OFF, NONE, ON = "TRL", "steering=None", "on"
ARMS: dict[str, dict[str, Any]] = {
    OFF: {},
    "TRL again": {},
    NONE: {},
    ON: {},
    "on, bf16": {"bf16": True},
    "on, checkpointing": {"checkpointing": True},
    "on, vLLM": {"use_vllm": True, "vllm_mode": "colocate", "vllm_gpu_memory_utilization": 0.3},
}
"""Run of one trainer -> its settings beside those of all."""
GROUP = 8
"""Completions per prompt."""
TURNED = (OFF, ON)


@dataclass(frozen=True, slots=True)
class Size:
    """How much is run."""

    prompts: int = 16
    """Rows per step."""
    tokens: int = 32
    """Longest completion."""
    steps: int = 12
    """Steps of each arm that are counted in turns."""
    warmup: int = 3
    alone: int = 6
    """Steps of a run by itself."""
    items: int = 400
    """Rows that are measured and scanned."""


TINY = Size(prompts=2, tokens=4, steps=2, warmup=1, alone=2, items=6)


def load(model: str) -> Learner:
    """The model, or a tiny one of the demo's words for an empty name."""
    return (
        load_learner(model) if model else build_tiny([p for task in OLD_TASKS for p, _ in questions(task)], ModelConfig(), 0)
    )


def rows(learner: Learner, seed: int) -> list[dict[str, Any]]:
    """Questions of the demo in an order of the seed, with a right and a wrong answer."""
    rng, made = random.Random(seed), []
    for task in OLD_TASKS:
        asked = questions(task)
        for place, (prompt, answer) in enumerate(asked):
            wrong = asked[(place + 1) % len(asked)][1]
            made.append(
                {"id": f"{task}-{place}", "task": task, "prompt": prompt, "answer": answer}
                | {"completion": answer, "chosen": answer, "rejected": wrong}
            )
    rng.shuffle(made)
    return [learner.form.row(row) for row in made]


def includes(completions: list[Any], answer: list[str], **_: Any) -> list[float]:
    """1 for a completion that holds the answer."""
    texts = [text if isinstance(text, str) else text[-1]["content"] for text in completions]
    return [float(wanted.lower() in text.lower()) for text, wanted in zip(texts, answer, strict=True)]


def trainer(
    learner: Learner, objective: str, arm: str, size: Size, steps: int, seed: int, folder: Path, *, lora: bool = False
) -> Any:
    """One arm's trainer, on a copy of the model: of all weights, or of an adapter on it."""
    theirs, ours, config, columns = OBJECTIVES[objective]
    dataset = Dataset.from_list(rows(learner, seed)).select_columns(["id", "task", *columns])
    settings: dict[str, Any] = {"output_dir": str(folder), "max_steps": steps, "save_strategy": "no", "seed": seed}
    settings |= {"per_device_train_batch_size": size.prompts, "learning_rate": 1e-5, "logging_steps": 1}
    if objective == "grpo":
        settings |= {"per_device_train_batch_size": size.prompts * GROUP, "num_generations": GROUP}
        settings |= {"max_completion_length": size.tokens}
    given: dict[str, Any] = {"train_dataset": dataset, "processing_class": learner.tokenizer}
    settings |= float32_settings(learner.device)
    own = dict(ARMS[arm])
    if own.pop("checkpointing", False):  # its name depends on the version of transformers
        own |= {name: True for name in settings if name.endswith("checkpointing")}
    given["args"] = config(**(settings | own))
    model = copy.deepcopy(learner.model)
    if lora:
        model = LoRA(rank=16).wrap(model)
    if objective == "grpo":
        given["reward_funcs"] = includes
    if objective == "dpo" and not lora:  # the base under an adapter is the reference
        given["ref_model"] = copy.deepcopy(learner.model)
    if arm.startswith(OFF):
        return theirs(model, **given)
    return ours(model, steering=None if arm == NONE else steering(objective, steps), **given)


def steering(objective: Any, steps: int) -> SteeringConfig:
    """Equal weights and every lever of the objective; two tasks are known to be mastered."""
    levers: dict[str, Any] = LEVERS[objective] | {"controllers": ()}  # the KL penalty is 0, as in TRL
    stage = Stage(objective, objective, steps, dict.fromkeys(OLD_TASKS, 1 / len(OLD_TASKS)), **levers)
    known = [CellAssessment(task, None, "mastered", 0.95, 0.0, 64, 64, 0.91, 0.97) for task in OLD_TASKS[:2]]
    return SteeringConfig(plan=Plan("benchmark", (stage,), tuple(known)))


def clock() -> float:
    """Seconds, after the device has done what it was told."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


@contextmanager
def metered(seconds: Callable[[], float] = clock) -> Iterator[Meter]:
    """A meter that charges our classes."""
    meter = Meter(seconds)
    charge_owners(meter)
    try:
        yield meter
    finally:
        meter.restore()


def turns(
    learner: Learner,
    objective: str,
    seed: int,
    size: Size,
    *,
    lora: bool = False,
    seconds: Callable[[], float] = clock,
) -> dict[str, Any]:
    """Seconds of each step of TRL's trainer and of the steered one, which take turns."""
    with metered(seconds) as meter, tempfile.TemporaryDirectory() as name:
        made = {
            arm: trainer(learner, objective, arm, size, size.warmup + size.steps, seed, Path(name) / str(place), lora=lora)
            for place, arm in enumerate(TURNED)
        }
        meter.own(meter.OTHERS, [type(made[OFF].data_collator)])
        found = take_turns(made, meter, warmup=size.warmup, steps=size.steps)
    counted = [row for row in found if row["step"] >= 0]
    taken = {
        arm: {
            part: [round(row.get(part, 0.0), 6) for row in counted if row["run"] == arm]
            for part in (Meter.OTHERS, BOOKKEEPING)
        }
        for arm in TURNED
    }
    return {"seconds": taken}


def alone(learner: Learner, objective: str, arm: str, seed: int, size: Size) -> dict[str, Any]:
    """One short run by itself: what was logged, tokens per second after the first step, peak memory, the weights' digest."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    with tempfile.TemporaryDirectory() as name:
        made = trainer(learner, objective, arm, size, size.alone, seed, Path(name))
        began = clock()
        made.train()
        seconds = clock() - began
        logged = [line for line in made.state.log_history if "loss" in line]
        digest = hashlib.blake2b(digest_size=12)
        for _, weights in sorted(made.model.named_parameters()):
            digest.update(weights.detach().float().cpu().numpy().tobytes())
    peak = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else None
    return {
        "arm": arm,
        "loss": [line["loss"] for line in logged],
        "reward": [line["reward"] for line in logged if "reward" in line],
        "tokens": next((line["num_tokens"] for line in reversed(logged) if "num_tokens" in line), None),
        "seconds": seconds,
        "peak bytes": peak,
        "weights": digest.hexdigest(),
    }


def throughput(learner: Learner, size: Size) -> dict[str, Any]:
    """Completions per second of `measure`, greedy and four samples an item, and rows per second of the scan."""
    asked = [{name: row[name] for name in ("task", "prompt", "answer")} for row in rows(learner, 0)][: size.items]
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "items.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
        corpus = read_corpus(CorpusConfig(str(path), eval_share=0.0))
        config = MeasureConfig(items=size.items, samples=4, max_new_tokens=size.tokens)
        began = clock()
        found = measure_learner(learner, corpus, config, seed=0)
        measured = clock() - began
        targets = [row for row in read_training_rows(learner, corpus) if row.target]
        began = clock()
        scanned(learner, targets, ("likelihood", "entropy"))
        read = clock() - began
    speeds = {"completions per second": len(found.answers) / measured, "scanned rows per second": len(targets) / read}
    return {"items": len(found.completions), "rows": len(targets)} | speeds


def machine() -> dict[str, Any]:
    """The accelerator, and whether vLLM is installed."""
    found: dict[str, Any] = {"vLLM": importlib.util.find_spec("vllm") is not None, "CUDA": torch.version.cuda}
    if torch.cuda.is_available():
        about = torch.cuda.get_device_properties(0)
        found |= {"device": about.name, "bytes": about.total_memory, "processors": about.multi_processor_count}
    return found


def launched(model: str, objective: str, seed: int, *, tiny: bool) -> dict[str, Any]:
    """The steered run by itself under `accelerate launch`, one process."""
    command = [sys.executable, "-m", "accelerate.commands.launch", "--num_processes", "1", "--num_machines", "1"]
    command += ["--mixed_precision", "no", "--dynamo_backend", "no", *(["--cpu"] if not torch.cuda.is_available() else [])]
    command += ["-m", "mixwright_lab.studies.gpu_pieces", f"alone-{objective}-{seed}", "--arm", ON, "--model", model]
    done = subprocess.run(command + (["--tiny"] if tiny else []), capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr[-2000:]}
    return json.loads(done.stdout.splitlines()[-1])


def piece(name: str, model: str, *, tiny: bool, arm: str = ON) -> dict[str, Any]:
    """What one piece found.

    Args:
        name: kind, objective and seed with dashes between.
        model: path or name; empty makes a tiny one.
        tiny: little of everything.
        arm: of `alone`.
    """
    kind, *rest = name.split("-")
    size = TINY if tiny else Size()
    if kind == "machine":
        return machine()
    if kind == "accelerate":
        return launched(model, rest[0], int(rest[1]), tiny=tiny)
    learner = load(model)
    if kind == "throughput":
        return throughput(learner, size)
    objective, seed = rest[0], int(rest[1])
    if kind == "turns":
        return turns(learner, objective, seed, size)
    if kind == "alone":
        return alone(learner, objective, arm, seed, size)
    if kind == "vllm":
        return alone(learner, objective, "on, vLLM", seed, size) if machine()["vLLM"] else {"missing": "vLLM"}
    arms = [name for name in ARMS if "vLLM" not in name]
    return {"runs": [alone(learner, objective, name, seed, size) for name in arms]}


PIECES: Mapping[str, float] = {
    "machine": 0.2,
    "turns-grpo-0": 1.5,
    "turns-sft-0": 0.8,
    "turns-dpo-0": 0.8,
    "throughput": 0.8,
    "arms-grpo-0": 2.0,
    "arms-sft-0": 1.0,
    "arms-dpo-0": 1.2,
    "accelerate-grpo-0": 1.0,
    "vllm-grpo-0": 1.0,
}
"""Piece -> minutes that are set aside for it."""


def main(done: Callable[[str], object] = print) -> None:
    """One piece, as the command line names it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("piece")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--arm", default=ON, choices=ARMS)
    parser.add_argument("--tiny", action="store_true")
    given = parser.parse_args()
    began = time.perf_counter()
    found = piece(given.piece, "" if given.tiny else given.model, tiny=given.tiny, arm=given.arm)
    about = {"piece": given.piece, "size": asdict(TINY if given.tiny else Size()), "wall": time.perf_counter() - began}
    done(json.dumps(found | about))


if __name__ == "__main__":
    main()
