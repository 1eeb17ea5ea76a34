"""Decide what a language model trains on, and prove what that did to it.

The trainers' names are looked up on first use, so that importing this package imports no torch.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixwright.trainers.arguments import SteeringArguments
    from mixwright.trainers.callback import SteeringCallback
    from mixwright.trainers.dpo import SteeredDPOTrainer
    from mixwright.trainers.grpo import SteeredGRPOTrainer
    from mixwright.trainers.sft import SteeredSFTTrainer
    from mixwright.trainers.steering import Steering

__all__ = [
    "SteeredDPOTrainer",
    "SteeredGRPOTrainer",
    "SteeredSFTTrainer",
    "Steering",
    "SteeringArguments",
    "SteeringCallback",
]
__version__ = "0.1.0"

_PLACES = {
    "SteeredDPOTrainer": "mixwright.trainers.dpo",
    "SteeredGRPOTrainer": "mixwright.trainers.grpo",
    "SteeredSFTTrainer": "mixwright.trainers.sft",
    "Steering": "mixwright.trainers.steering",
    "SteeringArguments": "mixwright.trainers.arguments",
    "SteeringCallback": "mixwright.trainers.callback",
}


def __getattr__(name: str) -> Any:
    """A trainer's name, imported now. Raises InputError when the packages it needs are not installed."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in ("Steering", "SteeringArguments"):
        from mixwright.errors import missing_extra

        missing = [need for need in ("torch", "transformers", "trl") if importlib.util.find_spec(need) is None]
        if missing:
            raise missing_extra(name, missing, "train")
    try:
        return getattr(importlib.import_module(_PLACES[name]), name)
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("trl", "transformers"):
            raise
        from importlib.metadata import version

        from mixwright.errors import InputError

        raise InputError(
            "TRL and transformers of the ranges in Mixwright's pyproject.toml",
            f"TRL {version('trl')} and transformers {version('transformers')}: {error}",
            "Install versions of these ranges.",
        ) from error
