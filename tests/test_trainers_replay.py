"""A finished run served again: the same draws, refusals, factors and skipped steps, and nothing of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from datasets import Dataset
from trainers_tiny import UNIFORM, grpo_config, parameters, read, rows, saved_model, script, sft_config, tokenizer, vowels

from mixwright import SteeredGRPOTrainer, SteeredSFTTrainer, SteeringConfig
from mixwright.errors import InputError
from mixwright.records import Action, Plan, Stage
from mixwright.steer.beside.replay import count_steps_made, read_recorded_run
from mixwright.trainers.steering import make_dataset_pool, with_row_numbers

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")
STEPS = 5
OTHER = Plan("other", (Stage("grpo", "grpo", 10, {"letters": 0.25, "sums": 0.75}),))
"""Would draw otherwise."""


def trainer_of(folder: Path, steering: SteeringConfig, **settings: Any) -> Any:
    """With a reference model, so that beta can move."""
    config = grpo_config(folder, **({"max_steps": STEPS, "beta": 0.04} | settings))
    model, words = saved_model(folder / "base"), tokenizer()
    return SteeredGRPOTrainer(model, vowels, config, train_dataset=rows(), processing_class=words, steering=steering)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A run that refuses a group of every batch, halves its learning rate, moves beta, and skips its third step."""
    folder = tmp_path_factory.mktemp("source")
    trainer = trainer_of(folder, SteeringConfig(UNIFORM))
    batches: list[Any] = []

    def actions(groups: Any) -> list[Action]:
        batches.append(groups)
        found = [Action("refuse", groups[0].example, None, "scripted")]
        if len(batches) == 2:
            found += [Action("lr_factor", "lr", 0.5, "scripted"), Action("coefficient", "beta", 0.1, "scripted")]
        if len(batches) == 3:
            found.append(Action("skip_step", "step", None, "scripted"))
        return found

    script(trainer, actions)
    trainer.train()
    return folder / "steering", trainer


def again(folder: Path, source: Path, **settings: Any) -> Any:
    trainer = trainer_of(folder, SteeringConfig(OTHER, replay=source), **settings)
    trainer.train()
    return trainer


def test_draws_say_which_were_refused_and_in_which_batch(source: tuple[Path, Any]) -> None:
    table = pq.read_table(source[0] / "draws.parquet").to_pylist()
    lines = [json.loads(line) for line in (source[0] / "steps.jsonl").read_text().splitlines()]
    for number, line in enumerate(lines):
        drawn = [row for row in table if row["batch"] == number]
        assert len(drawn) == 2
        assert drawn[0]["refused"]
        assert [row["step"] for row in drawn] == [line["step"]] * 2
        assert sum(row["refused"] for row in drawn) == line["refused"]
    assert not any(row["refused"] for row in table if row["batch"] is None)
    assert [line["skip_step"] for line in lines] == [False, False, True, False, False]
    assert [line["lr_factor"] for line in lines] == [1.0, 0.5, 0.5, 0.5, 0.5]


def test_the_same_seed_replayed_ends_in_the_same_weights(source: tuple[Path, Any], tmp_path: Path) -> None:
    trainer = again(tmp_path, source[0])
    assert torch.equal(parameters(trainer), parameters(source[1]))
    assert read(tmp_path, "steps.jsonl")[2]["beta"] == 0.1


def test_another_seed_gets_exactly_the_same_draws_and_refusals(source: tuple[Path, Any], tmp_path: Path) -> None:
    trainer = again(tmp_path, source[0], seed=11)
    assert not torch.equal(parameters(trainer), parameters(source[1]))
    tables = [pq.read_table(folder / "draws.parquet") for folder in (source[0], tmp_path / "steering")]
    assert tables[0].drop_columns("success").equals(tables[1].drop_columns("success")), "what came is another seed's own"
    lines = [json.loads(line) for line in (source[0] / "steps.jsonl").read_text().splitlines()]
    for mine, theirs in zip(read(tmp_path, "steps.jsonl"), lines, strict=True):
        assert [mine[name] for name in ("refused", "lr_factor", "beta", "skip_step")] == [
            theirs[name] for name in ("refused", "lr_factor", "beta", "skip_step")
        ]
    proof = json.loads((tmp_path / "steering" / "proof.json").read_text())
    assert proof["skipped_steps"] == 1
    assert proof["wanted"] == pytest.approx(proof["drawn"])
    assert proof["wanted"]["letters"] > 0.5, "the plan given would have drawn sums"


def test_a_tape_knows_its_steps_and_refuses_what_it_cannot_serve(source: tuple[Path, Any], tmp_path: Path) -> None:
    assert count_steps_made(source[0]) == STEPS
    steering = SteeringConfig(UNIFORM)
    pool = make_dataset_pool(with_row_numbers(rows(), "x"), steering)
    recorded_run = read_recorded_run(source[0], pool)
    assert [pool.ids[row] for row in recorded_run.rows] == pq.read_table(source[0] / "draws.parquet")["example"].to_pylist()
    assert recorded_run.actions(STEPS, 0.04, 1.0) == []
    assert [action.kind for action in recorded_run.actions(2, 0.04, 1.0)] == [
        "refuse",
        "skip_step",
        "coefficient",
        "lr_factor",
    ]
    assert [action.kind for action in recorded_run.actions(3, 0.1, 0.5)] == ["refuse"], (
        "what holds already is not said again"
    )
    with pytest.raises(InputError, match="examples of this run"):
        read_recorded_run(source[0], make_dataset_pool(with_row_numbers(rows(2), "x"), steering))
    with pytest.raises(InputError, match=r"steps.jsonl of a finished run"):
        count_steps_made(tmp_path)
    (tmp_path / "steps.jsonl").write_text('{"step": 0, "lr_factor": 1.0}\n', encoding="utf-8")
    with pytest.raises(InputError, match="whether a step was skipped"):
        read_recorded_run(tmp_path, pool)


def test_a_run_of_sft_is_served_again_too(tmp_path: Path) -> None:
    data = Dataset.from_dict({"id": [f"r{i}" for i in range(12)], "prompt": [f"{i}=" for i in range(12)]})
    data = data.add_column("completion", [f"{i}" for i in range(12)])  # type: ignore[call-arg]
    plan = Plan("all", (Stage("sft", "sft", 3, {"all": 1.0}),))
    ends = []
    for name, steering, seed in (
        ("one", SteeringConfig(plan), 0),
        ("two", SteeringConfig(plan, draw_seed=5, replay=tmp_path / "one" / "steering"), 3),
    ):
        config = sft_config(tmp_path / name, seed=seed)
        trainer = SteeredSFTTrainer(
            saved_model(tmp_path / "base"), config, train_dataset=data, processing_class=tokenizer(), steering=steering
        )
        if name == "one":
            script(trainer, lambda _: [Action("lr_factor", "lr", 0.25, "scripted")])
        trainer.train()
        ends.append((parameters(trainer), [line["lr_factor"] for line in read(tmp_path / name, "steps.jsonl")]))
    assert ends[0][1] == ends[1][1] == [0.25] * 3
    assert torch.equal(ends[0][0], ends[1][0]), "SFT has no chance beside the draws"
