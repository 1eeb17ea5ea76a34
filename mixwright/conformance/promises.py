"""Promises that every kind of plug-in makes, and the tools to say which promise was broken."""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from mixwright.records import Plan, from_data, to_data

DOCSTRING_LINES = ("Source:", "Unit:", "Cost:", "Blind spot:")


def require(is_kept: bool, promise: str) -> None:
    """Raise AssertionError with `promise` unless it was kept; works under `python -O` too."""
    if not is_kept:
        raise AssertionError(promise)


def docstring_lines(cls: type[Any]) -> list[str]:
    """Lines of the docstring that says Source, Unit, Cost and Blind spot: the plug-in's own, else that of its module."""
    own_lines = ((cls.__doc__ and inspect.getdoc(cls)) or "").splitlines()
    has_sources = any(line.startswith(DOCSTRING_LINES[0]) for line in own_lines)
    return own_lines if has_sources else (inspect.getdoc(sys.modules[cls.__module__]) or "").splitlines()


def check_plugin(cls: type[Any]) -> Any:
    """What every kind promises: a documented module, options that are keywords with defaults. Returns an instance."""
    class_name = f"{cls.__module__}.{cls.__name__}"
    lines = docstring_lines(cls)
    require(bool(lines and lines[0]), f"{class_name}: the docstring of the class or its module starts with a summary")
    for start in DOCSTRING_LINES:
        require(
            any(line.startswith(start) and line != start for line in lines),
            f"{class_name}: the docstring of the class or its module has '{start} ...'",
        )
    require(bool(cls.__doc__), f"{class_name}: the class has a docstring")
    require(not inspect.isabstract(cls), f"{class_name}: every abstract method is written")
    for option in inspect.signature(cls).parameters.values():
        is_keyword = option.kind in (option.KEYWORD_ONLY, option.POSITIONAL_OR_KEYWORD)
        require(
            is_keyword and option.default is not option.empty,
            f"{class_name}: option {option.name} is a keyword with a default",
        )
    return cls()


@contextlib.contextmanager
def same_randomness() -> Iterator[None]:
    """The global random states of Python, numpy and torch (if loaded) are the same after the block."""
    torch = sys.modules.get("torch")

    def states() -> str:
        return repr((random.getstate(), np.random.get_state(), torch.get_rng_state().tolist() if torch else None))

    with np.printoptions(threshold=sys.maxsize):
        states_before = states()
        yield
        require(states() == states_before, "only the rng handed in is drawn from; global random states stay as they were")


def require_valid_plan(plan: Plan, tasks: set[str]) -> None:
    """Weights are shares of `tasks` that sum to 1; the plan comes back from YAML unchanged."""
    import yaml

    require(bool(plan.stages), "a plan has a stage")
    for stage in plan.stages:
        require(set(stage.weights) <= tasks, "weights are about known tasks")
        require(all(weight >= 0 for weight in stage.weights.values()), "weights are not negative")
        require(math.isclose(sum(stage.weights.values()), 1, abs_tol=1e-3), "weights sum to 1")
    require(
        from_data(Plan, yaml.safe_load(yaml.safe_dump(to_data(plan)))) == plan, "the plan comes back from YAML unchanged"
    )


def require_round_trip(record: Any) -> None:
    """The record comes back from JSON unchanged."""
    data = json.loads(json.dumps(to_data(record), allow_nan=False))
    require(to_data(from_data(type(record), data)) == data, f"{type(record).__name__} comes back from JSON unchanged")


def model_state(model: Any) -> list[Any]:
    """Of a model what a plug-in must leave as it was: train mode, sums of parameters and of gradients."""
    state: list[Any] = [model.training]
    for name, parameter in model.named_parameters():
        gradient = None if parameter.grad is None else float(parameter.grad.double().sum())
        state.append((name, float(parameter.detach().double().sum()), parameter.requires_grad, gradient))
    return state
