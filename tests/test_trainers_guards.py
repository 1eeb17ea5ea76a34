"""What guards a steered GRPO run: settings refused at the start, and its default plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from trainers_tiny import grpo_config, make, rows, script
from trl.trainer.grpo_trainer import GRPOTrainer

from mixwright import SteeredGRPOTrainer, SteeringConfig
from mixwright.errors import InputError
from mixwright.records import Action, Plan, Stage
from mixwright.steer.pool import answer_key
from mixwright.trainers.steering import make_dataset_pool, make_run, with_row_numbers

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*gradient_checkpointing.*:FutureWarning"  # TRL 1.16 still sets transformers' older name
)


def test_the_default_plan_has_no_kl_penalty_where_there_is_no_coefficient_to_move(tmp_path: Path) -> None:
    for beta, controllers in ((0.0, []), (0.01, ["controllers.drift"])):
        pool = make_dataset_pool(with_row_numbers(rows(), "grpo"), SteeringConfig())
        args = grpo_config(tmp_path / str(beta))
        engine = make_run(SteeringConfig(), pool, objective="grpo", args=args, beta=beta).engine
        plugins = engine.state_dict()["made_of"]["plugins"]
        assert [name for name in plugins if name.startswith("controllers")] == controllers
        assert "gates.too_hard" in plugins


def test_options_are_laid_over_the_default_plan(tmp_path: Path) -> None:
    drawn = []
    for options in ({}, {"selectors.difficulty": {"candidates": 1}}):
        steering = SteeringConfig(options=options)
        pool = make_dataset_pool(with_row_numbers(rows(), "grpo"), steering)
        engine = make_run(steering, pool, objective="grpo", args=grpo_config(tmp_path), beta=0.0).engine
        drawn.append(engine.draw(64))
        assert "gates.too_hard" in engine.state_dict()["made_of"]["plugins"], "the rest of the plan stays"
    assert drawn[0] != drawn[1]
    with pytest.raises(InputError, match=r"steering\.options"):
        make(SteeredGRPOTrainer, tmp_path, steering=SteeringConfig(options={"engine": 3}))  # pyright: ignore[reportArgumentType]


def test_unusable_input_is_refused_before_training(tmp_path: Path) -> None:
    absent = Plan("test", (Stage("grpo", "grpo", 10, {"letters": 0.5, "poems": 0.5}),))
    with pytest.raises(InputError, match="poems"):
        make(SteeredGRPOTrainer, tmp_path, steering=SteeringConfig(absent))
    sft = Plan("test", (Stage("sft", "sft", 10, {"letters": 1.0}),))
    with pytest.raises(InputError, match="objective is grpo"):
        make(SteeredGRPOTrainer, tmp_path, steering=SteeringConfig(sft))
    with pytest.raises(InputError, match="nowhere"):
        make(SteeredGRPOTrainer, tmp_path, steering=SteeringConfig(columns={"task": "nowhere"}))
    levels = rows().remove_columns("level").add_column("level", ["Level 5"] * 24)
    with pytest.raises(InputError, match="level column"):
        make(SteeredGRPOTrainer, tmp_path, steering=True, train_dataset=levels)
    with pytest.raises(InputError, match="SteeringConfig"):
        make(SteeredGRPOTrainer, tmp_path, steering=3)
    with pytest.raises(InputError, match=r"plan\.yaml"):
        make(SteeredGRPOTrainer, tmp_path, steering=str(tmp_path / "plan.yaml"))
    assert not (tmp_path / "steering").exists()


def test_a_run_whose_refusals_do_not_hold_is_stopped_before_its_step(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def distinct(completions: list[str], **_: Any) -> list[float]:
        return [place / 8 for place in range(len(completions))]

    trainer = make(SteeredGRPOTrainer, tmp_path, steering=True, reward_funcs=distinct)
    script(trainer, lambda groups: [Action("refuse", groups[0].example, None, "test")])
    generate = GRPOTrainer._generate_and_score_completions

    def generate_with_advantages(*args: Any) -> Any:
        output = generate(*args)
        return output | {"advantages": output["advantages"].nan_to_num() + 1}

    monkeypatch.setattr(GRPOTrainer, "_generate_and_score_completions", generate_with_advantages)
    with pytest.raises(RuntimeError, match="a refused group has advantages other than 0"):
        trainer.train()
    assert trainer.state.global_step == 0


def test_data_without_tasks_are_one_task_and_a_warning_says_so(caplog: pytest.LogCaptureFixture) -> None:
    data = with_row_numbers(Dataset.from_dict({"prompt": ["a", "b"], "topic": ["x", "y"]}), "t")
    assert make_dataset_pool(data, SteeringConfig()).tasks == ("all",)
    (said,) = [record for record in caplog.records if record.name == "mixwright"]
    assert said.levelname == "WARNING"
    assert "(its columns: prompt, topic)" in said.getMessage()
    assert "'all'" in said.getMessage()
    caplog.clear()
    assert make_dataset_pool(data, SteeringConfig(columns={"task": "topic"})).tasks == ("x", "y")
    assert make_dataset_pool(data, SteeringConfig(columns={"task": ""})).tasks == ("all",)
    assert not caplog.records


def test_the_answers_of_the_rows_are_used(tmp_path: Path) -> None:
    pool = make(SteeredGRPOTrainer, tmp_path, steering=True).steered.pool
    assert pool.golds.tolist() == [answer_key(answer) for answer in rows()["answer"]]
