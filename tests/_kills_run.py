"""Trainings killed at chosen points and resumed, started by test_trainers_kills.py: `python tests/_kills_run.py FOLDER`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _processes_run import DPO, GRPO, SFT, dpo_rows, launch, vowels
from trainers_tiny import CHEAP, grpo_config, model, rows, sft_config, tokenizer
from transformers import TrainerState
from transformers import trainer as theirs
from trl import DPOConfig

from mixwright import SteeredDPOTrainer, SteeredGRPOTrainer, SteeredSFTTrainer, SteeringConfig
from mixwright.steer.beside import files, state_file
from mixwright.trainers import resume

STEPS = 6
INTERRUPTED_STEP = 4
"""Step whose save is interrupted; checkpoint-2 is whole by then, and the only one (`save_total_limit=1`)."""
SAVES = {"max_steps": STEPS, "save_strategy": "steps", "save_steps": 2, "save_total_limit": 1}


def train(kind: str, folder: Path) -> None:
    """One attempt of the run."""
    given: dict[str, Any] = {"processing_class": tokenizer()}
    if kind == "grpo":
        args = grpo_config(folder, **SAVES)
        trainer: Any = SteeredGRPOTrainer(
            model(), vowels, args, train_dataset=rows(), steering=SteeringConfig(GRPO), **given
        )
    elif kind == "sft":
        data = rows().rename_column("answer", "completion")
        steering = SteeringConfig(SFT)
        trainer = SteeredSFTTrainer(model(), sft_config(folder, **SAVES), train_dataset=data, steering=steering, **given)
    else:
        config = DPOConfig(str(folder), **(CHEAP | {"max_length": 32, "learning_rate": 1e-3} | SAVES))
        start = str(folder.parent / "start")
        trainer = SteeredDPOTrainer(start, args=config, train_dataset=dpo_rows(), steering=SteeringConfig(DPO), **given)
    trainer.train(resume_from_checkpoint=True)


def die(*_: Any) -> None:
    """As `kill -9` does it: nothing is flushed, closed or cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_before(owner: Any, name: str, when: Callable[..., bool]) -> None:
    """Die when `owner.name` is called and `when` says so."""
    method = getattr(owner, name)

    def dying(*given: Any, **named: Any) -> Any:
        if when(*given, **named):
            die()
        return method(*given, **named)

    setattr(owner, name, dying)


def write_half(path: str) -> bool:
    """Leave the beginning of trainer_state.json behind."""
    if f"checkpoint-{INTERRUPTED_STEP}" not in path:
        return False
    Path(path).write_text('{"global_step": ')
    return True


def write_half_a_line(files: Any, name: str, lines: Any) -> bool:
    """Leave the beginning of the line of step 5 behind."""
    if not lines or lines[0].get("step") != INTERRUPTED_STEP + 1 or name != "steps.jsonl":
        return False
    with (files.folder / name).open("a") as file:
        file.write('{"step": 5, "dra')
    return True


def in_save(*given: Any, **_: Any) -> bool:
    return any(f"checkpoint-{INTERRUPTED_STEP}" in str(part) for part in given)


POINTS: dict[str, Callable[[], None]] = {
    "before our state": lambda: die_before(
        resume.Checkpoints, "stage_state", lambda _, step, extra: step == INTERRUPTED_STEP
    ),
    "inside our state": lambda: die_before(
        state_file, "write_text", lambda path, text: f"saving/{INTERRUPTED_STEP}/" in str(path)
    ),
    "before TRL's first file": lambda: die_before(theirs.Trainer, "save_model", in_save),
    "inside TRL's files": lambda: die_before(theirs.Trainer, "_save_rng_state", in_save),
    "inside TRL's last file": lambda: die_before(TrainerState, "save_to_json", lambda _, path: write_half(path)),
    "before the older one goes": lambda: die_before(
        theirs, "rotate_checkpoints", lambda output_dir, **_: (Path(output_dir) / f"checkpoint-{INTERRUPTED_STEP}").exists()
    ),
    "before our move": lambda: die_before(resume.Checkpoints, "move_state_in", lambda _, step: step == INTERRUPTED_STEP),
    "inside our move": lambda: die_before(
        resume, "write_text", lambda path, text: f"checkpoint-{INTERRUPTED_STEP}/" in str(path)
    ),
    "inside a line": lambda: die_before(files.SteeringFiles, "append", write_half_a_line),
    "after the last save": lambda: die_before(files.SteeringFiles, "replace", ended),
}


FIVE = ("inside our state", "inside TRL's files", "before our move", "inside a line", "after the last save")


def ended(files: Any, draws: Any, proof: Any) -> bool:
    """Whether the last checkpoint stands."""
    return (files.folder.parent / f"checkpoint-{STEPS}" / "steering.json").exists()


def main(folder: Path) -> None:
    """Every trainer undisturbed; GRPO with every point, the others with five; exit codes as lines."""
    model().save_pretrained(folder / "start")
    lines = []
    for kind, points in {"grpo": tuple(POINTS), "sft": FIVE, "dpo": FIVE}.items():
        lines.append(f"{kind}: {launch(lambda where, kind=kind: train(kind, where), folder / kind, 1)[0]}")
        for point in points:
            where = folder / f"{kind} {point}"

            def killed(place: Path, kind: str = kind, point: str = point) -> None:
                POINTS[point]()
                train(kind, place)

            codes = [launch(killed, where, 1)[0], launch(lambda place, kind=kind: train(kind, place), where, 1)[0]]
            lines.append(f"{where.name}: {codes[0]} {codes[1]}")
    (folder / "codes.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
