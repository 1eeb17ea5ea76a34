"""Runs of one and of two processes, started by test_trainers_processes.py: `python tests/_processes_run.py FOLDER`.

One interpreter imports everything and forks the ranks, which meet in a file (gloo, loopback): no ports, one start-up.
Under `accelerate launch` it does one of the runs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "GLOO_SOCKET_IFNAME": "lo"}

import torch  # isort: skip
from accelerate.utils import gather_object
from datasets import Dataset
from tqdm.std import TqdmDefaultWriteLock
from trainers_tiny import CHEAP, grpo_config, model, rows, sft_config, tokenizer
from trl import DPOConfig, SFTTrainer

from mixwright import (
    GateCallback,
    SteeredDPOTrainer,
    SteeredGRPOTrainer,
    SteeredSFTTrainer,
    SteeringConfig,
)
from mixwright.corpus import Corpus
from mixwright.learner.learner import Learner
from mixwright.records import CellAssessment, Example, Plan, Stage

TqdmDefaultWriteLock.mp_lock = None  # shared with all forks: a killed one would keep it for ever
CELLS = (
    CellAssessment("letters", 1.0, "hopeless", 0.3, 0.0, 64, 12),
    CellAssessment("sums", 2.0, "mastered", 0.9, 0.0, 64, 12),
)
SHARES = {"letters": 0.75, "sums": 0.25}
LEVERS = {"selector": "difficulty", "gates": ("too_hard",), "controllers": ("drift",)}
STRICT = {"gates.too_hard": {"floor": 0.7}}
GRPO = Plan("test", (Stage("grpo", "grpo", 10, SHARES, options=STRICT, **LEVERS),), CELLS)  # type: ignore[arg-type]
SFT = Plan("test", (Stage("sft", "sft", 10, SHARES, controllers=("drift",)),), CELLS)
DPO = Plan("test", (Stage("dpo", "dpo", 10, SHARES),))
STEPS = 6


def world() -> int:
    return int(os.environ.get("WORLD_SIZE", 1))


def place_in_world() -> int:
    return int(os.environ.get("RANK", 0))


def tape(prompts: list[str], id: list[str], trainer_state: Any, **_: Any) -> list[float]:
    """Rewards fixed by row, step and place in the whole batch, whatever the completions are; best at the start."""
    right = 2 if trainer_state.global_step else 6
    first = place_in_world() * len(id)
    names = [f"{name} {trainer_state.global_step} {first + place}" for place, name in enumerate(id)]
    return [float(zlib.crc32(name.encode()) % 7 < right) for name in names]


def vowels(completions: list[str], **_: Any) -> list[float]:
    return [sum(c in "aeiou" for c in text) / max(1, len(text)) for text in completions]


def grpo(folder: Path, reward: Any = tape, dataset: Any = None, plan: Plan = GRPO, **settings: Any) -> Any:
    """A global batch of three groups of 4; with two processes the second group is split between them."""
    size = 12 // world()
    defaults = {"per_device_train_batch_size": size, "max_steps": STEPS, "learning_rate": 0.0}
    return SteeredGRPOTrainer(
        model(),
        reward,
        grpo_config(folder, **(defaults | settings)),
        train_dataset=dataset or rows(),
        processing_class=tokenizer(),
        steering=SteeringConfig(plan),
    )


def dpo_rows() -> Dataset:
    """The answer is preferred to an x."""
    given = rows()
    return given.rename_column("answer", "chosen").add_column("rejected", ["x"] * len(given))  # type: ignore[call-arg]


def tape_grpo(folder: Path) -> None:
    trainer = grpo(folder)
    trainer.train()
    told = gather_object([zlib.crc32(trainer.steered.draws.rows.tobytes())])
    assert len(set(told)) == 1, told


def tape_accumulated(folder: Path) -> None:
    """Generation batches of two micro-steps, used twice; saves wait for them."""
    size = 8 // world()
    settings = {"per_device_train_batch_size": size, "steps_per_generation": 2, "num_iterations": 2}
    grpo(folder, save_strategy="steps", save_steps=1, **settings).train()


def tape_sft(folder: Path) -> None:
    pairs = rows().rename_column("answer", "completion")
    settings = {"per_device_train_batch_size": 4 // world(), "gradient_accumulation_steps": 2}
    args = sft_config(folder, max_steps=STEPS, **settings)
    plan = Plan("test", (Stage("sft", "sft", 10, SHARES),))
    SteeredSFTTrainer(
        model(), args, train_dataset=pairs, processing_class=tokenizer(), steering=SteeringConfig(plan)
    ).train()


def tape_dpo(folder: Path) -> None:
    settings = {"per_device_train_batch_size": 4 // world(), "gradient_accumulation_steps": 2}
    args = DPOConfig(str(folder), **(CHEAP | {"max_steps": STEPS, "max_length": 32, "learning_rate": 1e-3} | settings))
    start, given = str(folder.parent / "start"), {"train_dataset": dpo_rows(), "processing_class": tokenizer()}
    SteeredDPOTrainer(start, args=args, steering=SteeringConfig(DPO), **given).train()


def learning(folder: Path, reward: Any = vowels) -> None:
    """Real rewards, real learning, a save at each step; resumed when there is something to resume."""
    settings = {"learning_rate": 1e-3, "save_strategy": "steps", "save_steps": 1, "save_total_limit": 2}
    grpo(folder, reward, **settings).train(resume_from_checkpoint=True)


def dying(folder: Path) -> None:
    """The second process dies while step 4 is scored; the first is left behind."""

    def reward(completions: list[str], trainer_state: Any, **_: Any) -> list[float]:
        if trainer_state.global_step == 3 and place_in_world() == 1 and len(completions) == 6:
            os.kill(os.getpid(), signal.SIGKILL)
        return vowels(completions)

    learning(folder, reward)


def dying_in_a_save(folder: Path) -> None:
    """The second process dies before it has written its part of checkpoint-3."""
    trainer = grpo(folder, vowels, learning_rate=1e-3, save_strategy="steps", save_steps=1, save_total_limit=2)
    save = trainer._save_rng_state

    def dies(output_dir: str) -> None:
        if place_in_world() == 1 and trainer.state.global_step == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        save(output_dir)

    trainer._save_rng_state = dies
    trainer.train(resume_from_checkpoint=True)


def diverging(folder: Path) -> None:
    """The second process draws other rows."""
    plan, whole_groups = Plan("test", (Stage("grpo", "grpo", 10, SHARES),)), {"per_device_train_batch_size": 8}
    trainer = grpo(folder, save_strategy="steps", save_steps=2, plan=plan, **whole_groups)
    draw = trainer.steered.engine.draw
    trainer.steered.draws._draw = lambda n: [row ^ place_in_world() for row in draw(n)]
    trainer.train()


def other_data(folder: Path) -> None:
    """The processes hold the rows in different orders."""
    data = rows()
    dataset: Dataset = data.select(range(len(data) - 1, -1, -1)) if place_in_world() else data
    grpo(folder, dataset=dataset).train()


def gated(folder: Path) -> None:
    """Letters are learnt, then sums, until the gate stops all processes; each notes its steps, and how often it answered."""
    settings = {"per_device_train_batch_size": 16 // world(), "learning_rate": 1e-2, "lr_scheduler_type": "constant"}
    letters = [Example(f"l{n}", "letters", f"say {letter}=", answer=letter) for n, letter in enumerate("abcdefghijkl")]
    gate = GateCallback(Corpus.from_examples(letters, {"letters": "exact"}), every=5, max_new_tokens=3)
    answered, read_scores = [], Learner.sample

    def sample(self: Learner, prompts: Any, **given: Any) -> Any:
        answered.append(len(prompts))
        return read_scores(self, prompts, **given)

    Learner.sample = sample  # type: ignore[method-assign]
    taught = [{"prompt": row.prompt, "completion": row.answer} for row in letters] * 4
    others = [{"prompt": f"say {n % 10}=", "completion": f"{n % 7}"} for n in range(48)]
    learner = model()
    for rows_of, steps, callbacks in ((taught, 150, []), (others, 100, [gate])):
        args = sft_config(folder, max_steps=steps, **settings)
        given = {"processing_class": tokenizer(), "callbacks": callbacks}
        trainer = SFTTrainer(learner, args, train_dataset=Dataset.from_list(rows_of), **given)
        trainer.train()
    noted = {"steps": trainer.state.global_step, "answered": answered, "looks": [look["outcome"] for look in gate.looks]}
    (folder / f"gate-{place_in_world()}.json").write_text(json.dumps(noted | {"before": sum(gate.before)}))


def rank(what: Callable[[Path], None], folder: Path, number: int, count: int) -> int:
    """Fork one rank; its output goes to a file. Returns its process id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        with (folder / f"rank{number}.txt").open("ab", buffering=0) as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            if count > 1:
                os.environ |= {"WORLD_SIZE": str(count), "RANK": str(number), "LOCAL_RANK": str(number)}
                os.environ |= {"LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "ACCELERATE_USE_CPU": "true"}
                meeting = f"file://{folder}/.meeting"
                torch.distributed.init_process_group("gloo", init_method=meeting, rank=number, world_size=count)
            what(folder)
            code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def launch(what: Callable[[Path], None], folder: Path, count: int, patience: float = 120.0) -> list[int]:
    """Exit codes of the ranks; when one dies the others get a few seconds, as a launcher gives them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".meeting").unlink(missing_ok=True)
    living = {rank(what, folder, number, count): number for number in range(count)}
    codes, deadline = [0] * count, time.monotonic() + patience
    while living:
        for child in list(living):
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                codes[living.pop(child)] = code = os.waitstatus_to_exitcode(status)
                deadline = min(deadline, time.monotonic() + (5.0 if code else patience))
        if time.monotonic() > deadline:
            for child in living:
                os.kill(child, signal.SIGKILL)
            deadline += 5.0
        time.sleep(0.01)
    return codes


def main(folder: Path) -> None:
    """All runs; exit codes as lines `name: codes`."""
    lines = []
    model().save_pretrained(folder / "start")  # DPO's reference comes from there

    def note(name: str, codes: list[int]) -> None:
        lines.append(f"{name}: {' '.join(map(str, codes))}")
        (folder / "codes.txt").write_text("\n".join(lines) + "\n")

    for what in (tape_grpo, tape_accumulated, tape_sft, tape_dpo):
        for count in (1, 2):
            note(f"{what.__name__}-{count}", launch(what, folder / f"{what.__name__}-{count}", count))
    note("learning", launch(learning, folder / "learning", 2))
    for what in (dying, dying_in_a_save):
        note(what.__name__, launch(what, folder / what.__name__, 2))
        note(f"{what.__name__} resumed", launch(learning, folder / what.__name__, 2))
    note("gated", launch(gated, folder / "gated", 2))
    note("diverging", launch(diverging, folder / "diverging", 2))
    note("other_data", launch(other_data, folder / "other_data", 2))


if __name__ == "__main__":
    if world() > 1:  # under a launcher
        learning(Path(sys.argv[1]).resolve())
    else:
        main(Path(sys.argv[1]).resolve())
