"""Packed SFT: rows are drawn as ever, and each shows what it shows alone."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from peft import PromptTuningConfig
from trainers_tiny import losses, model, parameters, read, rows, sft_config, tokenizer

from mixwright import SteeredSFTTrainer
from mixwright.errors import InputError
from mixwright.trainers.packing import rows_that_fit, sum_by_row

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets the older name
DATA = rows(24).rename_column("answer", "completion")


def trainer_of(folder: Path, *, attention: str = "sdpa", peft: Any = None, **changed: Any) -> Any:
    changed = {"max_steps": 6, "per_device_train_batch_size": 2} | changed
    built = model()
    built.set_attn_implementation(attention)
    trainer = SteeredSFTTrainer(
        built,
        args=sft_config(folder, **changed),
        train_dataset=DATA,
        processing_class=tokenizer(),
        peft_config=peft,
        steering=True,
    )
    trainer.outcomes = []
    observe = trainer.steered.observe_rows

    def keep(step: int, outcomes: Any, *rest: Any) -> None:
        trainer.outcomes += [(one.example, one.tokens, one.loss) for one in outcomes]
        observe(step, outcomes, *rest)

    trainer.steered.observe_rows = keep
    return trainer


@given(st.lists(st.integers(1, 7), min_size=1, max_size=6), st.integers(0, 5))
def test_sums_are_those_of_each_row(lengths: list[int], padding: int) -> None:
    total = sum(lengths)
    values = torch.arange(1.0, total + padding)[None]
    starts = np.cumsum([0, *lengths])
    for place in starts[1:-1]:
        values[0, place - 1] = 0  # the first token of a row is not predicted
    values[0, total - 1 :] = 0
    expected = [
        sum(values[0, column - 1].item() for column in range(start, end) if column > 0)
        for start, end in itertools.pairwise(starts)
    ]
    assert sum_by_row(values, torch.tensor(lengths)).tolist() == pytest.approx(expected)


@settings(max_examples=30)
@given(
    st.lists(st.integers(1, 400), min_size=1, max_size=30),
    st.lists(st.integers(1, 400), min_size=1, max_size=30),
    st.floats(0.0, 1.0),
    st.integers(500, 8000),
    st.integers(0, 1000),
)
def test_as_many_rows_as_fit(short: list[int], long: list[int], share: float, room: int, seed: int) -> None:
    count = rows_that_fit({"a": short, "b": long}, {"a": share, "b": 1 - share}, room)
    mean = share * np.mean(short) + (1 - share) * np.mean(long)
    assert count == 1 or count * mean <= room
    rng = np.random.default_rng(seed)
    from_a = rng.random((400, count)) < share
    drawn = np.where(from_a, rng.choice(short, (400, count)), rng.choice(long, (400, count))).sum(1)
    assert count < 8 or (drawn > room).mean() <= 0.1  # sums of few rows are not normal


def test_what_has_no_spread_fills_the_packs() -> None:
    assert rows_that_fit({"a": [10, 10], "b": [500]}, {"a": 1.0, "b": 0.0}, 64) == 6
    assert rows_that_fit({"a": [100]}, {"a": 1.0}, 64) == 1


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_losses_are_those_of_the_unpacked_run(attention: str, tmp_path: Path) -> None:
    packed = trainer_of(tmp_path / "a", attention=attention, packing=True)
    size = packed.args.per_device_train_batch_size
    assert size > 4
    packed.train()
    unpacked = trainer_of(tmp_path / "b", attention=attention, per_device_train_batch_size=size)
    unpacked.train()
    assert list(packed.steered.draws.rows) == list(unpacked.steered.draws.rows)
    assert losses(packed) == pytest.approx(losses(unpacked), abs=1e-5)
    assert [one[:2] for one in packed.outcomes] == [one[:2] for one in unpacked.outcomes]
    assert len(packed.outcomes) == 6 * size
    assert [one[2] for one in packed.outcomes] == pytest.approx([one[2] for one in unpacked.outcomes], abs=1e-5)
    assert len({one[2] for one in packed.outcomes}) > size  # rows differ, and steps do


def test_packs_that_would_hold_more_rows_than_there_are(tmp_path: Path) -> None:
    """A batch larger than the data would be dropped whole."""
    trainer = trainer_of(tmp_path, packing=True, per_device_train_batch_size=40, dataloader_drop_last=True, max_steps=2)
    trainer.train()
    assert trainer.state.global_step == 2
    with pytest.raises(InputError, match="max_length under packing"):
        trainer_of(tmp_path, packing=True, max_length=None)


def test_the_users_settings_are_left_alone(tmp_path: Path) -> None:
    args = sft_config(tmp_path, packing=True, per_device_train_batch_size=2)
    trainer = SteeredSFTTrainer(model(), args=args, train_dataset=DATA, processing_class=tokenizer(), steering=True)
    assert args.per_device_train_batch_size == 2 < trainer.args.per_device_train_batch_size
    again = SteeredSFTTrainer(model(), args=args, train_dataset=DATA, processing_class=tokenizer(), steering=True)
    assert again.args.per_device_train_batch_size == trainer.args.per_device_train_batch_size


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5])
def test_it_goes_on_from_a_checkpoint(step: int, tmp_path: Path) -> None:
    saved = {"packing": True, "save_strategy": "steps", "save_steps": 1}
    whole = trainer_of(tmp_path / "a", **saved)
    whole.train()
    trainer_of(tmp_path / "b", **saved | {"max_steps": 6}).train()
    resumed = trainer_of(tmp_path / "b", **saved)
    resumed.train(resume_from_checkpoint=str(tmp_path / "b" / f"checkpoint-{step}"))
    assert list(resumed.steered.draws.rows) == list(whole.steered.draws.rows)
    assert torch.equal(parameters(resumed), parameters(whole))
    lines = (
        [{key: line[key] for key in ("step", "loss", "examples")} for line in read(tmp_path / name, "steps.jsonl")]
        for name in "ab"
    )
    assert next(lines) == next(lines)


@pytest.mark.filterwarnings("ignore:Position ids are not supported:UserWarning")
@pytest.mark.parametrize("setting", [{"packing": True}, {"padding_free": True, "max_length": None}])
def test_a_model_that_looks_across_rows_is_refused(setting: dict[str, Any], tmp_path: Path) -> None:
    """PEFT drops position ids under prompt tuning, so nothing tells the rows apart."""
    virtual = PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    trainer = trainer_of(tmp_path, peft=virtual, **setting)
    before = parameters(trainer)
    with pytest.raises(
        InputError, match=r"the same log-probabilities for a row in a pack as for the row alone, got .* rows see each other"
    ):
        trainer.train()
    assert torch.equal(parameters(trainer), before)
