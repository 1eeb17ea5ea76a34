"""What may stand in `train.settings`: whatever TRL knows, nothing that Mixwright sets or that writes outside the run."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any

import pytest
from trl import DPOConfig, GRPOConfig, SFTConfig

from mixwright.config import CorpusConfig, RunConfig, TrainConfig
from mixwright.errors import InputError
from mixwright.trainers.configs import (
    INSIDE_REMEDY,
    OUTSIDE_PREFIXES,
    OWN_GRPO_SETTING_REMEDIES,
    OWN_SETTING_REMEDIES,
    UNUSED_FIELD_REMEDIES,
    SettingsJob,
    resolve_settings,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets the older name
CONFIGS = {"grpo": GRPOConfig, "sft": SFTConfig, "dpo": DPOConfig}
KEPT = {
    "grpo": {"loss_type": "dr_grpo", "num_iterations": 2, "lr_scheduler_type": "linear", "logging_steps": 1},
    "sft": {"max_length": 64, "weight_decay": 0.1, "save_strategy": "no", "report_to": "none"},
    "dpo": {"beta": 0.2, "loss_type": "ipo", "warmup_steps": 2},
}
OUTSIDE = ["output_dir", "push_to_hub", "hub_model_id", "hub_token", "trackio_space_id"]
OWN = ["learning_rate", "per_device_train_batch_size", "max_steps", "num_train_epochs", "seed", "data_seed"]


def check(objective: str, settings: dict[str, Any]) -> None:
    config = RunConfig(CorpusConfig("rows.jsonl"), train=TrainConfig(objective=objective, settings=settings))
    resolve_settings(SettingsJob(config, chats=False))


@pytest.mark.parametrize("objective", CONFIGS)
def test_what_trl_knows_is_passed_through(objective: str) -> None:
    check(objective, KEPT[objective])


@pytest.mark.parametrize("objective", CONFIGS)
@pytest.mark.parametrize(
    ("name", "told"), [("foo_bar", "got 'foo_bar'"), ("learning_rte", "Nearest: learning_rate"), ("optm", "Nearest: optim")]
)
def test_what_trl_does_not_know_is_refused_with_the_nearest_names(objective: str, name: str, told: str) -> None:
    with pytest.raises(
        InputError, match=rf"the name of a field of {CONFIGS[objective].__name__} \(train.settings\).*{told}"
    ):
        check(objective, {name: 1})


@pytest.mark.parametrize("objective", CONFIGS)
def test_every_field_of_trls_config_passes_through_or_is_refused_with_what_to_do(objective: str) -> None:
    outside = [field.name for field in fields(CONFIGS[objective]) if field.name.startswith(OUTSIDE_PREFIXES)]
    remedies = OWN_SETTING_REMEDIES | UNUSED_FIELD_REMEDIES | dict.fromkeys(outside, INSIDE_REMEDY)
    remedies |= OWN_GRPO_SETTING_REMEDIES if objective == "grpo" else {}
    names = [field for field in fields(CONFIGS[objective]) if field.name != "report_to"]  # its own test is below
    told = {each.name: remedy_for(objective, {each.name: default_of(each)}) for each in names}
    assert {name: remedy for name, remedy in told.items() if remedy} == {n: r for n, r in remedies.items() if n in told}
    assert len(told) > 2 * len(remedies)


def remedy_for(objective: str, settings: dict[str, Any]) -> str | None:
    try:
        return check(objective, settings)
    except InputError as error:
        return error.remedy


def default_of(field: Field[Any]) -> Any:
    return field.default_factory() if field.default is MISSING else field.default  # type: ignore[misc]


@pytest.mark.parametrize("objective", CONFIGS)
@pytest.mark.parametrize("name", [*OUTSIDE, *OWN])
def test_what_writes_elsewhere_or_has_a_setting_of_its_own_is_refused(objective: str, name: str) -> None:
    told = r"writes only into its own folder" if name in OUTSIDE else "Set (train|seed)"
    with pytest.raises(InputError, match=rf"train.settings without {name}, got {name}: 3.*{told}"):
        check(objective, {name: 3})


@pytest.mark.parametrize("name", ["num_generations", "max_completion_length", "temperature", "beta"])
def test_grpos_own_settings_are_refused_there_alone(name: str) -> None:
    with pytest.raises(InputError, match=rf"without {name}.*Set train\."):
        check("grpo", {name: 0.5})


@pytest.mark.parametrize("value", ["wandb", "all", ["tensorboard"]])
def test_reports_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match="without report_to"):
        check("sft", {"report_to": value})


@pytest.mark.parametrize(
    ("objective", "settings", "told"),
    [
        ("sft", {"packing": True}, "packing=False under steering"),
        ("grpo", {"ignore_data_skip": True}, "ignore_data_skip=False"),
        ("dpo", {"accelerator_config": {"dispatch_batches": True}}, "dispatch_batches=None"),
        ("sft", {"eval_strategy": "steps"}, "without eval_strategy"),
        ("sft", {"lr_scheduler_type": "wobbly"}, "wobbly"),
        ("ppo", {}, "train.objective: grpo, sft, dpo, got 'ppo'"),
    ],
)
def test_what_cannot_be_steered_is_refused_before_a_run(objective: str, settings: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        check(objective, settings)


@pytest.mark.parametrize("objective", CONFIGS)
def test_every_field_that_names_a_place_or_a_service_is_known(objective: str) -> None:
    """A new one of TRL has to be looked at."""
    words = ("dir", "hub", "trackio", "_repo", "upload")
    found = {field.name for field in fields(CONFIGS[objective]) if any(word in field.name for word in words)}
    assert [name for name in sorted(found) if not name.startswith(OUTSIDE_PREFIXES)] == []
