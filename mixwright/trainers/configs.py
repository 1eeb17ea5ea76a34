"""Configs of TRL made from ours: the fields that run.yaml sets, others passed through, and those that may not be."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, get_args, get_type_hints

from mixwright.config import RunConfig, TrainConfig
from mixwright.errors import InputError, unknown_name
from mixwright.learner.bases import TINY_PREFIX
from mixwright.learner.settings import cheap_settings, find_device
from mixwright.records import to_data
from mixwright.trainers.checks.refusals import refuse_settings

OWN_SETTING_REMEDIES = {
    "learning_rate": "Set train.learning_rate.",
    "per_device_train_batch_size": "Set train.prompts.",
    "max_steps": "Set train.steps.",
    "num_train_epochs": "Set train.steps: a run has a fixed number of steps, however many rows there are.",
    "seed": "Set seed: the seeds of a trial are derived from it.",
    "data_seed": "Set seed: the seeds of a trial are derived from it.",
}
"""Fields with a setting of their own, which would be at odds with them: each -> what to do."""
OWN_GRPO_SETTING_REMEDIES = {
    "num_generations": "Set train.generations.",
    "max_completion_length": "Set train.max_new_tokens.",
    "temperature": "Set train.temperature.",
    "beta": "Set train.beta.",
}
"""The same in GRPO alone."""
INSIDE_REMEDY = "Leave it out: a run writes only into its own folder, and uploads nothing."
OUTSIDE_FIELDS = (
    "output_dir",
    "logging_dir",
    "project",
    "trackio_space_id",
    "trackio_bucket_id",
    "trackio_static_space_id",
    "push_to_hub",
    "hub_model_id",
    "hub_strategy",
    "hub_token",
    "hub_private_repo",
    "hub_always_push",
    "hub_revision",
    "log_completions_hub_repo",
    "push_to_hub_model_id",
    "push_to_hub_organization",
    "push_to_hub_token",
)
"""Fields of which TRL or transformers make files outside the run folder, or uploads."""
CHECKED_TYPES = (int, float, bool)
"""Types of fields that can be checked before TRL sees them."""
UNUSED_FIELD_REMEDIES = {
    "resume_from_checkpoint": "Leave it out: a run resumes by itself when it is started again.",
    "eval_strategy": "Leave it out: trial.progress_every evaluates during training.",
    "eval_on_start": "Leave it out: trial.progress_every evaluates during training.",
    "enable_jit_checkpoint": "Leave it out: an interrupted branch is trained again.",
    "model_init_kwargs": "Leave it out: a run loads its model itself, from the section `model`.",
}
"""Fields that need what a run does not have."""


def check_train_settings(train: TrainConfig) -> Any:
    """TRL's config of a run, of which nothing is written; its `output_dir` means nothing.

    Raises:
        InputError: an objective without a trainer, a field that TRL's config does not know, a value it refuses, a field that
            has its own setting or writes outside the run folder, or one under which nothing can be steered.
    """
    makers = {"grpo": grpo_config, "sft": sft_config, "dpo": dpo_config}
    if train.objective not in makers:
        raise InputError(f"train.objective: {', '.join(makers)}", repr(train.objective), "Correct it.")
    shared = {"output_dir": tempfile.gettempdir(), "learning_rate": train.learning_rate}
    shared |= cheap_settings(find_device())
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # TRL sets names of its own that are to go
        trl_config = makers[train.objective](train, shared)
        refuse_settings(trl_config, train.objective)
    return trl_config


@dataclass(frozen=True, slots=True)
class SettingsJob:
    """Settings to try before anything is written."""

    config: RunConfig
    """Settings of the run."""
    chats: bool
    """Whether prompts are chat messages."""


def resolve_settings(job: SettingsJob) -> dict[str, Any]:
    """The settings that matter as the trainer resolves them, defaults included. Runs in a worker.

    Raises:
        InputError: as `check_train_settings`, or chats for a tokenizer without a chat template.
    """
    from mixwright.learner.load import check_checkpoint

    config = job.config
    resolved = check_train_settings(config.train)
    if config.model.path != TINY_PREFIX:
        check_checkpoint(config.model.path, config.model.adapter, chats=job.chats)
    if config.train.objective != "grpo":
        return {name: getattr(resolved, name) for name in ("learning_rate", "bf16", "use_cpu")}
    names = (
        "loss_type",
        "scale_rewards",
        "epsilon",
        "num_iterations",
        "beta",
        "learning_rate",
        "bf16",
        "use_cpu",
        "mask_truncated_completions",
    )
    return {name: getattr(resolved, name) for name in names if hasattr(resolved, name)}


def grpo_config(train: TrainConfig, shared: Mapping[str, Any]) -> Any:
    """TRL's `GRPOConfig`: `shared`, overridden by the fields of `train`, then by `train.settings`.

    Raises:
        InputError: a field that TRL does not know or that may not be set there, or a value it refuses.
    """
    from trl.trainer.grpo_config import GRPOConfig

    own_fields = {
        "per_device_train_batch_size": train.prompts * train.generations,
        "num_generations": train.generations,
        "max_completion_length": train.max_new_tokens,
        "temperature": train.temperature,
        "beta": train.beta,
    }
    remedies = OWN_SETTING_REMEDIES | OWN_GRPO_SETTING_REMEDIES
    return _make_checked_config(GRPOConfig, {**shared, **own_fields}, train.settings, remedies)


def sft_config(train: TrainConfig, shared: Mapping[str, Any]) -> Any:
    """TRL's `SFTConfig`, as `grpo_config`; where a run has another objective, without fields that SFT does not have."""
    from trl.trainer.sft_config import SFTConfig

    settings = train.settings
    if train.objective != "sft":
        settings = {name: value for name, value in settings.items() if name in SFTConfig.__dataclass_fields__}
    return _make_checked_config(
        SFTConfig, {**shared, "per_device_train_batch_size": train.prompts}, settings, OWN_SETTING_REMEDIES
    )


def dpo_config(train: TrainConfig, shared: Mapping[str, Any]) -> Any:
    """TRL's `DPOConfig`, as `grpo_config`; beta, the temperature of the loss, is TRL's or that of `train.settings`."""
    from trl.trainer.dpo_config import DPOConfig

    own_fields = {"per_device_train_batch_size": train.prompts}
    return _make_checked_config(DPOConfig, {**shared, **own_fields}, train.settings, OWN_SETTING_REMEDIES)


def _make_checked_config(
    cls: type[Any], fields_given: Mapping[str, Any], train_settings: Mapping[str, Any], own_remedies: dict[str, str]
) -> Any:
    """TRL's config of `fields_given` and `train.settings`; fields that may not stand there, or that TRL refuses, as
    InputErrors.
    """
    settings = to_data(train_settings)  # copies: TRL may change what it is given
    known_fields = [field.name for field in fields(cls) if field.init]
    remedy_by_field = own_remedies | UNUSED_FIELD_REMEDIES | dict.fromkeys(OUTSIDE_FIELDS, INSIDE_REMEDY)
    for name, value in settings.items():
        sends_reports = name == "report_to" and value not in ("none", ["none"], [])
        if name in remedy_by_field or sends_reports:
            raise InputError(
                f"train.settings without {name}", f"{name}: {value!r:.80}", remedy_by_field.get(name, INSIDE_REMEDY)
            )
        if name not in known_fields:
            raise unknown_name(f"field of {cls.__name__} (train.settings)", name, known_fields)
    try:
        return cls(**{**fields_given, **_with_numbers(cls, settings)})
    except (TypeError, ValueError, ImportError, OSError) as error:
        raise InputError(
            f"train settings that {cls.__name__} accepts", str(error).splitlines()[0][:200], "Correct train.settings."
        ) from error


def _with_numbers(cls: type[Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with numbers where the config declares nothing else, so that `5e-4`, a text in YAML, is one.

    Raises:
        InputError: a value that is none.
    """
    from pydantic import TypeAdapter, ValidationError

    hints, typed_settings = get_type_hints(cls), dict(settings)
    for name, value in settings.items():
        hint = hints.get(name, Any)
        if hint in CHECKED_TYPES or (get_args(hint) and set(get_args(hint)) <= {*CHECKED_TYPES, type(None)}):
            try:
                typed_settings[name] = TypeAdapter(hint).validate_python(value)
            except ValidationError as error:
                got = f"{name}: {value!r:.60} ({error.errors()[0]['msg'].lower()})"
                raise InputError(
                    f"train settings of the types that {cls.__name__} declares", got, "Correct train.settings."
                ) from None
    return typed_settings
