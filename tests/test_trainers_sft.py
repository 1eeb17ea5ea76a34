"""SteeredSFTTrainer against TRL's own trainer on a tiny Llama."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from trainers_tiny import losses, model, parameters, rows, sft_config, tokenizer
from trl import SFTTrainer

from mixwright import SteeredSFTTrainer, Steering
from mixwright.errors import InputError
from mixwright.records import Plan, Stage

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*gradient_checkpointing.*:FutureWarning"  # TRL 1.16 still sets transformers' older name
)

PLAN = Plan("test", (Stage("sft", "sft", 10, {"letters": 0.75, "sums": 0.25}),))


def data() -> Dataset:
    return rows().rename_column("answer", "completion")


def make(cls: type, folder: Path, settings: dict[str, Any] | None = None, **kwargs: Any) -> Any:
    kwargs = {"train_dataset": data(), "processing_class": tokenizer()} | kwargs
    return cls(model(), args=sft_config(folder, **(settings or {})), **kwargs)


def nats(trained: Any, example: dict[str, Any], words: Any) -> tuple[float, int]:
    """Independent: loss per target token of `prompt + completion + end`, from full logits."""
    prompt = words(example["prompt"])["input_ids"]
    ids = torch.tensor([[*prompt, *words(example["completion"])["input_ids"], words.eos_token_id]])
    with torch.no_grad():
        table = trained(input_ids=ids).logits.log_softmax(-1)[0]
    target = list(range(len(prompt), ids.shape[1]))
    return -sum(table[i - 1, ids[0, i]].item() for i in target) / len(target), len(target)


@pytest.mark.parametrize("settings", [{}, {"gradient_accumulation_steps": 2, "shuffle_dataset": True}])
def test_without_steering_it_is_trl_to_the_bit(tmp_path: Path, settings: dict[str, Any]) -> None:
    theirs = make(SFTTrainer, tmp_path / "a", settings)
    theirs.train()
    ours = make(SteeredSFTTrainer, tmp_path / "b", settings)
    ours.train()
    assert losses(ours) == losses(theirs)
    assert torch.equal(parameters(ours), parameters(theirs))
    assert not (tmp_path / "b" / "steering").exists()


def test_outcomes_are_each_examples_own_loss(tmp_path: Path) -> None:
    settings = {"max_steps": 1, "gradient_accumulation_steps": 2, "shuffle_dataset": True}
    trainer = make(SteeredSFTTrainer, tmp_path, settings, steering=Steering(PLAN))
    seen: list[Any] = []
    observe = trainer.steered.engine.observe
    trainer.steered.engine.observe = lambda outcomes, signals: (seen.extend(outcomes), observe(outcomes, signals))[1]
    trainer.train()
    assert [outcome.task for outcome in seen].count("letters") == 6
    assert len(seen) == 8
    examples = {row["id"]: row for row in data()}
    for outcome in seen:
        loss, tokens = nats(model(), examples[outcome.example], tokenizer())
        assert outcome.task == examples[outcome.example]["task"]
        assert outcome.tokens == tokens
        assert outcome.loss == pytest.approx(loss, rel=1e-4)
    line = json.loads((tmp_path / "steering" / "steps.jsonl").read_text().splitlines()[0])
    assert line["loss"] == pytest.approx(trainer.state.log_history[0]["loss"], rel=1e-3)
    assert line["drawn"] == {"letters": 6, "sums": 2}


def test_length_and_epochs_are_trls(tmp_path: Path) -> None:
    settings = {"max_steps": -1, "num_train_epochs": 2, "per_device_train_batch_size": 5}
    theirs, ours = (
        make(SFTTrainer, tmp_path / "a", settings),
        make(SteeredSFTTrainer, tmp_path / "b", settings, steering=True),
    )
    theirs.train()
    ours.train()
    assert ours.state.global_step == theirs.state.global_step == 10
    assert len(ours.steered.log) == 48
    # Default plan: weights by rows, each epoch of 24 draws takes 12 of each task.
    proof = json.loads((tmp_path / "b" / "steering" / "proof.json").read_text())
    assert proof["drawn"] == {"letters": 0.5, "sums": 0.5}


def test_a_resumed_run_draws_as_the_uninterrupted_one(tmp_path: Path) -> None:
    settings = {"max_steps": 9, "save_strategy": "steps", "save_steps": 1, "per_device_train_batch_size": 5}
    whole = make(SteeredSFTTrainer, tmp_path / "whole", settings, steering=Steering(PLAN))
    whole.train()
    shutil.copytree(tmp_path / "whole", tmp_path / "broken")
    resumed = make(SteeredSFTTrainer, tmp_path / "broken", settings, steering=Steering(PLAN))
    resumed.train(resume_from_checkpoint=str(tmp_path / "broken" / "checkpoint-6"))
    assert resumed.steered.state() == whole.steered.state()
    one, two = (tmp_path / side / "steering" / "steps.jsonl" for side in ("whole", "broken"))
    assert one.read_text() == two.read_text()
    assert torch.equal(parameters(resumed), parameters(whole))


def test_rows_that_trl_drops_are_not_drawn(tmp_path: Path) -> None:
    settings = {"max_length": 5, "truncation_mode": "keep_start"}  # `say a=` fills it; sums keep their answers
    trainer = make(SteeredSFTTrainer, tmp_path, settings, steering=True)
    trainer.train()
    assert trainer.steered.pool.tasks == ("sums",)
    assert json.loads((tmp_path / "steering" / "proof.json").read_text())["dropped_rows"] == 12


def test_evaluation_and_custom_names_work(tmp_path: Path) -> None:
    renamed = data().rename_column("task", "domain")
    trainer = make(
        SteeredSFTTrainer,
        tmp_path,
        {"eval_strategy": "steps", "eval_steps": 1},
        steering=Steering(PLAN, columns={"task": "domain"}),
        train_dataset=renamed,
        eval_dataset={"sums": renamed.select([1, 3]), "letters": renamed.select([0, 2])},
    )
    trainer.train()
    logged = set().union(*trainer.state.log_history)
    assert {"eval_sums_loss", "eval_letters_loss", "steering/share/letters"} <= logged


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"packing": True}, "Packed rows"),
        ({"padding_free": True, "max_length": None}, "Flattened"),
        ({"train_sampling_strategy": "group_by_length"}, "order of rows"),
        ({"dataset_kwargs": {"skip_prepare_dataset": True}}, "preparation"),
    ],
)
def test_settings_that_hide_a_rows_loss_are_refused(tmp_path: Path, settings: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        make(SteeredSFTTrainer, tmp_path, settings, steering=True)
