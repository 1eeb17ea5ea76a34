"""What a person may do to a steered run by mistake is told in one line, not trained on."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trainers_tiny import UNIFORM, make, read

from mixwright import SteeredGRPOTrainer, SteeringConfig
from mixwright.errors import InputError

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*gradient_checkpointing.*:FutureWarning"  # TRL 1.16 still sets transformers' older name
)
SAVES = {"save_strategy": "steps", "save_steps": 1, "max_steps": 2}


def steered(folder: Path, settings: dict[str, Any] | None = None, plan: Any = UNIFORM, **kwargs: Any) -> Any:
    return make(SteeredGRPOTrainer, folder, settings, steering=SteeringConfig(plan), **kwargs)


def test_other_batch_sizes_are_refused_on_resume(tmp_path: Path) -> None:
    steered(tmp_path, SAVES).train()
    wider = steered(tmp_path, SAVES | {"per_device_train_batch_size": 16, "max_steps": 4})
    with pytest.raises(InputError, match=r"batches of this run.*Resume with the same batch sizes"):
        wider.train(resume_from_checkpoint=True)


def test_another_plan_is_refused_on_resume(tmp_path: Path) -> None:
    steered(tmp_path, SAVES).train()
    edited = replace(UNIFORM, stages=(replace(UNIFORM.stages[0], weights={"letters": 0.5, "sums": 0.5}),))
    with pytest.raises(InputError, match="same seed, data and plan"):
        steered(tmp_path, SAVES | {"max_steps": 4}, edited).train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))


def test_a_second_writer_stops_the_first(tmp_path: Path) -> None:
    one, other = steered(tmp_path), steered(tmp_path)
    one.steered.files.clear()
    one.steered.note(0, "first", "of one run")
    other.steered.files.clear()
    other.steered.note(0, "second", "of another")
    with pytest.raises(RuntimeError, match="another run writes into"):
        one.steered.note(1, "third", "of the first again")
    assert [line["what"] for line in read(tmp_path, "decisions.jsonl")] == ["second"]


def test_training_again_is_refused(tmp_path: Path) -> None:
    trainer = steered(tmp_path, {"max_steps": 1})
    trainer.train()
    with pytest.raises(InputError, match="a steered trainer that has not trained yet"):
        trainer.train()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"plan": {"name": "x"}}, "steering.plan: "),
        ({"plan": 3}, "steering.plan: "),
        ({"permute_rewards": "false"}, "permute_rewards: .*boolean"),
        ({"draw_seed": -1}, "draw_seed: .*greater than or equal to 0"),
        ({"draw_seed": 1.5}, "draw_seed: .*integer"),
        ({"columns": None}, "columns: .*dictionary"),
        ({"folder": 3}, "folder: "),
        ({"reward_seconds": -1.0}, "reward_seconds: .*greater than or equal to 0"),
        ({"reward_seconds": float("nan")}, "reward_seconds: "),
        ({"reward_seconds": "600"}, "reward_seconds: .*number"),
        ({"slow_rewards": "skip"}, "slow_rewards: .*'stop' or 'wrong'"),
        ({"unscored_batches": True}, "unscored_batches: .*integer"),
    ],
)
def test_settings_of_the_wrong_type(tmp_path: Path, settings: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        SteeringConfig(**settings)
    calm = SteeringConfig()
    for name, value in settings.items():
        setattr(calm, name, value)  # what was changed after it was made is looked at again
    with pytest.raises(InputError, match=told):
        make(SteeredGRPOTrainer, tmp_path, steering=calm)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"options": {"engine": {"anchor": 0.25}}}, r"field \(anchor\)"),
        ({"options": {"selectors.difficulty": {"explor": 0.1}}}, "explor"),
        ({"options": {"selectors.target": {}}}, "Known: "),
        ({"options": {"difficulty": {"explore": 0.1}}}, "the name of a lever in steering.options.*got 'difficulty'"),
    ],
)
def test_an_option_that_there_is_not_is_refused_when_it_is_written(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        SteeringConfig(**settings)


def test_settings_that_there_are_survive_a_copy_and_a_pickle() -> None:
    options = {"selectors.difficulty": {"explore": 0.1}, "engine": {"on_alarm": "log"}}
    made = SteeringConfig(UNIFORM, draw_seed=2, reward_range=(-1, 1), options=options)
    assert copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == replace(made) == made


@pytest.mark.parametrize("broken", [{"step": 2}, {"step": 2, "random": 3}, {"step": 2, "inventory": []}])
def test_a_hand_edited_state_is_passed_over(tmp_path: Path, broken: dict[str, Any]) -> None:
    steered(tmp_path, SAVES).train()
    (tmp_path / "checkpoint-2" / "steering.json").write_text(json.dumps(broken))
    resumed = steered(tmp_path, SAVES | {"max_steps": 3})
    resumed.train(resume_from_checkpoint=True)
    assert resumed.state.global_step == 3
    assert len(read(tmp_path, "steps.jsonl")) == 3
