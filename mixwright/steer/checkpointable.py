"""Class `Checkpointable`: what goes on after a restart exactly as if it had not stopped, by the names of its attributes."""

from __future__ import annotations

import copy
from array import array
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np


class Checkpointable:
    """Parent of what has a state in checkpoints: the attributes that `STATE_FIELDS` names, there without their underscore.

    They are numbers, texts, arrays without NaN, lists or dictionaries of these, or `Checkpointable` themselves; keys are
    texts.
    """

    STATE_FIELDS: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes that change while a run goes on."""

    def state(self) -> dict[str, Any]:
        """JSON-ready; `restore(state())` on a fresh object continues exactly."""
        return {name.lstrip("_"): _as_json(getattr(self, name)) for name in self.STATE_FIELDS}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned."""
        for name in self.STATE_FIELDS:
            current, saved = getattr(self, name), state[name.lstrip("_")]
            if isinstance(current, Checkpointable):
                current.restore(saved)
            elif isinstance(current, np.ndarray):
                current[...] = saved  # in place: others may hold it
            elif isinstance(current, array):
                current[:] = array(current.typecode, saved)
            elif isinstance(current, dict):
                current.clear()
                current.update(copy.deepcopy(saved))
            else:
                setattr(self, name, copy.deepcopy(saved))


def _as_json(value: Any) -> Any:
    """Arrays as lists, parts by their own state; nothing of it changes with the run."""
    if isinstance(value, Checkpointable):
        return value.state()
    return value.tolist() if isinstance(value, np.ndarray | array) else copy.deepcopy(value)
