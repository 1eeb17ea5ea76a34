"""TRL's configs from ours: the fields that run.yaml sets, and any other passed through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mixwright.errors import InputError
from mixwright.records import to_data

if TYPE_CHECKING:
    from mixwright.config import RunConfig


def grpo_config(config: RunConfig, shared: Mapping[str, Any]) -> Any:
    """TRL's `GRPOConfig`: `shared`, overridden by the fields of `config.train`, then by `train.settings`.

    Raises:
        InputError: a field that TRL does not know, or a value it refuses.
    """
    from trl.trainer.grpo_config import GRPOConfig

    train = config.train
    own = {
        "per_device_train_batch_size": train.prompts * train.generations,
        "num_generations": train.generations,
        "max_completion_length": train.max_new_tokens,
        "temperature": train.temperature,
        "beta": train.beta,
    }
    return _checked(GRPOConfig, {**shared, **own, **to_data(train.settings)})


def sft_config(config: RunConfig, shared: Mapping[str, Any]) -> Any:
    """TRL's `SFTConfig`, as `grpo_config`."""
    from trl.trainer.sft_config import SFTConfig

    return _checked(
        SFTConfig, {**shared, "per_device_train_batch_size": config.train.prompts, **to_data(config.train.settings)}
    )


def dpo_config(config: RunConfig, shared: Mapping[str, Any]) -> Any:
    """TRL's `DPOConfig`, as `grpo_config`; beta, the temperature of the loss, is TRL's or that of `train.settings`."""
    from trl.trainer.dpo_config import DPOConfig

    return _checked(
        DPOConfig, {**shared, "per_device_train_batch_size": config.train.prompts, **to_data(config.train.settings)}
    )


CONFIGS = {"grpo": grpo_config, "sft": sft_config, "dpo": dpo_config}
"""Objective -> what makes its config."""


def _checked(cls: type[Any], settings: Mapping[str, Any]) -> Any:
    """TRL's config, its complaints about a field as an InputError."""
    try:
        return cls(**settings)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"train settings that {cls.__name__} accepts", str(error).splitlines()[0][:200], "Correct train.settings."
        ) from error
