"""Which checkpoint a run resumes from, and when it saves: at the end of a generation batch, whoever asked for it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from test_trainers_resume import PLAN
from trainers_tiny import grpo_config, model, read, rows, script, sft_config, tokenizer, vowels
from transformers import TrainerCallback

from mixwright import SteeredGRPOTrainer, SteeredSFTTrainer, SteeringConfig
from mixwright.errors import InputError
from mixwright.records import Action

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*gradient_checkpointing.*:FutureWarning"  # TRL 1.16 still sets transformers' older name
)
REUSED = {"steps_per_generation": 2, "num_iterations": 2}
"""Every generation batch feeds four steps."""


def make(folder: Path, callbacks: Any = None, reward: Any = vowels, **settings: Any) -> Any:
    defaults = {"save_strategy": "steps", "save_steps": 2, "max_steps": 6}
    return SteeredGRPOTrainer(
        model(),
        reward,
        grpo_config(folder, **(defaults | settings)),
        train_dataset=rows(),
        eval_dataset=rows(4),
        processing_class=tokenizer(),
        steering=SteeringConfig(PLAN),
        callbacks=callbacks,
    )


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("checkpoint-*"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of six steps with checkpoints 2, 4 and 6."""
    folder = tmp_path_factory.mktemp("whole")
    make(folder).train()
    return folder


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def chosen(folder: Path, resume: Any = True) -> str | None:
    found = make(folder).hooks.checkpoints.choose(resume)
    return None if found is None else found.name


def test_the_last_whole_checkpoint_is_taken(copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert chosen(copy) == "checkpoint-6"
    assert not caplog.messages
    (copy / "checkpoint-6" / "trainer_state.json").write_text('{"global_')
    (copy / "checkpoint-4" / "optimizer.pt").unlink()
    assert chosen(copy) == "checkpoint-2"
    assert "Resuming from checkpoint-2; skipped: checkpoint-6 (trainer_state.json is missing" in caplog.text
    assert "checkpoint-4 (optimizer.pt is missing" in caplog.text


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda folder: (folder / "trainer_state.json").unlink(), "trainer_state.json is missing"),
        (lambda folder: (folder / "rng_state.pth").write_bytes(b"PK"), "rng_state.pth is missing or has changed"),
        (lambda folder: (folder / "steering.json").unlink(), "steering.json is missing"),
        (lambda folder: (folder / "steering.npz").write_bytes(b""), "steering.npz is missing or has changed"),
        (lambda folder: (folder / "steering.json").write_text("[]"), "broken steering state"),
        (shutil.rmtree, "no such folder"),
    ],
)
def test_a_named_checkpoint_must_be_whole(copy: Path, spoil: Any, told: str) -> None:
    spoil(copy / "checkpoint-4")
    with pytest.raises(InputError, match=told):
        chosen(copy, str(copy / "checkpoint-4"))
    assert chosen(copy, copy / "checkpoint-2") == "checkpoint-2"


def test_a_run_killed_before_its_first_save_starts_from_the_beginning(
    whole: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert chosen(tmp_path / "nothing") is None
    (tmp_path / "checkpoint-2").mkdir()
    trainer = make(tmp_path)
    trainer.train(resume_from_checkpoint=True)
    assert "checkpoint-2 (trainer_state.json is missing" in caplog.text
    assert "training starts from the beginning" in caplog.text
    assert read(tmp_path, "steps.jsonl") == read(whole, "steps.jsonl")


def test_checkpoints_that_cannot_be_resumed_are_not_thrown_away(copy: Path) -> None:
    """Starting anew would empty the log of a long run because somebody deleted its optimiser states."""
    for path in copy.glob("checkpoint-*/optimizer.pt"):
        path.unlink()
    with pytest.raises(InputError, match=r"checkpoint-6 \(optimizer.pt is missing"):
        chosen(copy)
    for path in copy.glob("checkpoint-*/steering.json"):
        path.unlink()
    with pytest.raises(InputError, match="made without steering"):
        chosen(copy)


def test_checkpoints_of_a_course_that_was_taken_back_are_passed_over(copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    trainer = make(copy)
    trainer.hooks.resume(copy / "checkpoint-2")
    assert chosen(copy) == "checkpoint-2"
    assert re.search(r"checkpoint-6 \((steps|decisions)\.jsonl has changed", caplog.text)


def test_resuming_an_ended_run_trains_nothing(copy: Path, whole: Path) -> None:
    trainer = make(copy)
    result = trainer.train(resume_from_checkpoint=True)
    assert result.global_step == trainer.state.global_step == 6
    assert names(copy) == names(whole)
    for name in ("steps.jsonl", "decisions.jsonl", "draws.parquet", "proof.json"):
        assert (copy / "steering" / name).read_bytes() == (whole / "steering" / name).read_bytes(), name
    trainer.save_model(str(copy / "kept"))
    kept, last = ((copy / place / "model.safetensors").read_bytes() for place in ("kept", "checkpoint-6"))
    assert kept == last


def test_a_longer_run_goes_on_from_the_end(copy: Path) -> None:
    trainer = make(copy, max_steps=8)
    trainer.train(resume_from_checkpoint=True)
    assert [line["step"] for line in read(copy, "steps.jsonl")] == list(range(8))


def test_a_stop_holds_until_somebody_names_the_checkpoint(tmp_path: Path) -> None:
    trainer = make(tmp_path, save_steps=1)
    script(trainer, lambda groups: [Action("stop", "run", None, "enough")] if groups[0].step == 2 else [])
    trainer.train()
    assert names(tmp_path) == ["checkpoint-1", "checkpoint-2", "checkpoint-3"]
    assert make(tmp_path, save_steps=1).train(resume_from_checkpoint=True).global_step == 3
    make(tmp_path, save_steps=1).train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert names(tmp_path)[-1] == "checkpoint-6"
    assert "stop lifted" in [line["what"] for line in read(tmp_path, "decisions.jsonl")]


def test_saves_at_epochs_ends_are_aligned_and_resume(tmp_path: Path) -> None:
    settings = {"save_strategy": "epoch", "max_steps": -1, "num_train_epochs": 2, **REUSED, "gradient_accumulation_steps": 3}
    make(tmp_path / "whole", **settings).train()
    found = names(tmp_path / "whole")
    assert len(found) == 2
    shutil.copytree(tmp_path / "whole", tmp_path / "resumed")
    first = sorted(found, key=lambda name: int(name.partition("-")[2]))[0]
    state = json.loads((tmp_path / "whole" / first / "steering.json").read_text())
    assert state["extra"]["whole"]
    make(tmp_path / "resumed", **settings).train(resume_from_checkpoint=str(tmp_path / "resumed" / first))
    for name in ("steps.jsonl", "decisions.jsonl", "draws.parquet"):
        one, two = (tmp_path / side / "steering" / name for side in ("whole", "resumed"))
        assert one.read_bytes() == two.read_bytes(), name


@pytest.mark.parametrize("strategy", ["steps", "best"])
def test_the_best_checkpoint_is_one_that_was_evaluated(tmp_path: Path, strategy: str) -> None:
    """Evaluations wait with the saves: TRL looks for the checkpoint of the best evaluation's own step."""
    settings = {"eval_strategy": "steps", "eval_steps": 1, "metric_for_best_model": "loss", "per_device_eval_batch_size": 4}
    trainer = make(
        tmp_path,
        save_strategy=strategy,
        save_steps=1,
        max_steps=8,
        load_best_model_at_end=True,
        **REUSED,
        **settings,
    )
    trainer.train()
    evaluated = [line["step"] for line in trainer.state.log_history if "eval_loss" in line]
    assert evaluated == [4, 8]
    assert trainer.state.best_model_checkpoint is not None
    assert Path(trainer.state.best_model_checkpoint).name in names(tmp_path)
    assert all((tmp_path / name / "steering.json").exists() for name in names(tmp_path))
    assert set(names(tmp_path)) <= {"checkpoint-4", "checkpoint-8"}


class StopAt(TrainerCallback):
    """A user's own callback that ends training."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        control.should_training_stop |= state.global_step == self.step


def test_a_save_where_the_run_ends_inside_a_batch_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make(tmp_path, [StopAt(6)], save_steps=2, max_steps=8, **REUSED).train()
    assert names(tmp_path) == ["checkpoint-4", "checkpoint-6"]
    make(tmp_path, max_steps=8, **REUSED).train(resume_from_checkpoint=str(tmp_path / "checkpoint-6"))
    assert "saved in the middle of a generation batch" in caplog.text


def test_settings_that_would_draw_again_or_save_twice_are_refused(tmp_path: Path) -> None:
    for name in ("ignore_data_skip", "save_on_each_node", "enable_jit_checkpoint"):
        with pytest.raises(InputError, match=f"{name}=False"):
            make(tmp_path, **{name: True})
    given = {"train_dataset": rows().rename_column("answer", "completion"), "processing_class": tokenizer()}
    with pytest.raises(InputError, match="auto_find_batch_size=False"):
        SteeredSFTTrainer(model(), sft_config(tmp_path, auto_find_batch_size=True), **given, steering=True)
