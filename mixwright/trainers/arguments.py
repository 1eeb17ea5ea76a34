"""Section `steering:` of a script's YAML file, for TRL's `TrlParser` beside its own argument classes."""

# Not `from __future__ import annotations`: the parser reads the types of the fields.

import json
from dataclasses import dataclass, field
from typing import Any

from mixwright.errors import InputError
from mixwright.trainers.steering import steering_of

VALUE_BY_WORD = {"true": True, "false": None, "none": None, "": None}
"""What a string on the command line may stand for, beside a path and JSON."""


@dataclass
class SteeringArguments:
    """How a script's trainer is steered; hand `steering` to the trainer as it is.

    In YAML `steering:` is true, the path of a plan.yaml, or a mapping with the fields of `Steering` (plan, folder, seed,
    permute_rewards, canary_every, columns, replay, reward_seconds, slow_rewards, unscored_batches, reward_range, options).
    On the command line a mapping is written as JSON.

    Raises:
        InputError: a setting that does not exist, or a value of the wrong type.
    """

    steering: dict | str | None = field(
        default=None, metadata={"help": "true, the path of a plan.yaml, or a mapping of Mixwright's steering settings."}
    )
    """None without steering, True, a path, or a `Steering`."""

    def __post_init__(self) -> None:
        said: Any = self.steering
        if isinstance(said, str):
            said = _mapping(said) if said.lstrip().startswith("{") else VALUE_BY_WORD.get(said.strip().lower(), said)
        self.steering = steering_of(said) if isinstance(said, dict) else said  # type: ignore[assignment]


def _mapping(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError("--steering as JSON", f"{text[:80]!r} ({error})", "Quote the whole mapping in the shell.") from None
