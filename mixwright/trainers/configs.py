"""Configs of TRL made from ours: the fields that run.yaml sets, others passed through, and those that may not be."""

from __future__ import annotations

import importlib
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
from mixwright.trainers.checks import refuse_settings

OBJECTIVES = ("grpo", "sft", "dpo")
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
OUTSIDE_PREFIXES = ("output_dir", "logging_dir", "project", "trackio_", "push_to_hub", "hub_", "log_completions_hub_repo")
"""Beginnings of fields of which TRL or transformers make files outside the run folder, or uploads."""
CHECKED_TYPES = (int, float, bool)
"""Types of fields that can be checked before TRL sees them."""
UNUSED_FIELD_REMEDIES = {
    "resume_from_checkpoint": "Leave it out: a run resumes by itself when it is started again.",
    "eval_strategy": "Leave it out: a run measures before and after training.",
    "eval_on_start": "Leave it out: a run measures before and after training.",
    "enable_jit_checkpoint": "Leave it out: an interrupted branch is trained again.",
    "model_init_kwargs": "Leave it out: a run loads its model itself, from the section `model`.",
}
"""Fields that need what a run does not have."""


@dataclass(frozen=True, slots=True)
class SettingsJob:
    """Settings to try before anything is written."""

    config: RunConfig
    """Settings of the run."""
    chats: bool
    """Whether prompts are chat messages."""


def resolve_settings(job: SettingsJob) -> dict[str, Any]:
    """The settings that matter as the trainer resolves them, defaults included. Runs in a worker; nothing is written.

    Raises:
        InputError: an objective without a trainer, a field that TRL's config does not know, a value it refuses, a field that
            has its own setting or writes outside the run folder, one under which nothing can be steered, or chats for a
            tokenizer without a chat template.
    """
    from mixwright.learner.load import check_checkpoint

    config, train = job.config, job.config.train
    shared = {"output_dir": tempfile.gettempdir(), "learning_rate": train.learning_rate, **cheap_settings(find_device())}
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # TRL sets names of its own that are to go
        resolved = make_config(train.objective, train, shared)
        refuse_settings(resolved, train.objective)
    if config.model.path != TINY_PREFIX:
        check_checkpoint(config.model.path, config.model.adapter, chats=job.chats)
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


def make_config(objective: str, train: TrainConfig, shared: Mapping[str, Any]) -> Any:
    """Return TRL's config for an objective: `shared`, overridden by the fields of `train`, then by `train.settings`.

    Where a run has another objective, settings that this one does not have are left out. DPO's beta, the temperature of the
    loss, is TRL's or that of `train.settings`.

    Raises:
        InputError: an objective without a trainer, a field that TRL does not know or that may not be set there, or a value
            it refuses.
    """
    if objective not in OBJECTIVES:
        raise InputError(f"train.objective: {', '.join(OBJECTIVES)}", repr(objective), "Correct it.")
    cls = getattr(importlib.import_module(f"trl.trainer.{objective}_config"), f"{objective.upper()}Config")
    fields_given, own_remedies = {**shared, "per_device_train_batch_size": train.prompts}, OWN_SETTING_REMEDIES
    if objective == "grpo":
        own_remedies = OWN_SETTING_REMEDIES | OWN_GRPO_SETTING_REMEDIES
        fields_given |= {
            "per_device_train_batch_size": train.prompts * train.generations,
            "num_generations": train.generations,
            "max_completion_length": train.max_new_tokens,
            "temperature": train.temperature,
            "beta": train.beta,
        }
    settings = to_data(train.settings)  # copies: TRL may change what it is given
    known_fields = [field.name for field in fields(cls) if field.init]
    if train.objective != objective:
        settings = {name: value for name, value in settings.items() if name in known_fields}
    for name, value in settings.items():
        is_outside = name.startswith(OUTSIDE_PREFIXES) or (name == "report_to" and value not in ("none", ["none"], []))
        remedy = INSIDE_REMEDY if is_outside else (own_remedies | UNUSED_FIELD_REMEDIES).get(name)
        if remedy is not None:
            raise InputError(f"train.settings without {name}", f"{name}: {value!r:.80}", remedy)
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
