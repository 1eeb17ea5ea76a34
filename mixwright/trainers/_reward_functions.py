"""The user's reward functions, watched: what they return is checked before it can teach, and how long they take is limited.

TRL makes a tensor of whatever comes back. A number in place of a list ends in an error of Python's, and an infinite reward
makes advantages, and by them weights, that are no numbers.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mixwright._time_limit import TOLD_AFTER, TooSlow, named, within
from mixwright.errors import InputError

if TYPE_CHECKING:
    from mixwright.trainers._run import RunSteering
    from mixwright.trainers._steering import Steering

REMEDY = "Return a list with a number for each completion; None for one that cannot be judged."


def name_of(function: Any) -> str:
    """The name TRL logs a reward function under; for a partial that of the function inside."""
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


def is_async(function: Any) -> bool:
    """Whether calling it gives a coroutine: an async function, an object whose call is one, or a partial of either."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def watched(function: Any, steering: Steering, run: RunSteering, step: int, tasks: Sequence[str], count: int) -> Any:
    """`function` with its result checked and its time limited; a reward model as it is.

    Args:
        function: as TRL takes it: a function, an async one, or a model.
        steering: limit, and what a call is that takes longer.
        run: where a call that took too long is noted.
        step: optimiser steps done.
        tasks: of the completions, named beside a function that is slow.
        count: completions that it is called on.
    """
    if isinstance(function, nn.Module | str):
        return function
    name, seconds = name_of(function), steering.reward_seconds
    where = f"reward function {name}, step {step}, {'task' if len(tasks) == 1 else 'tasks'} {', '.join(tasks)}"

    def tell() -> None:
        logging.getLogger("mixwright").warning("Still running after %g s: %s.", min(seconds, TOLD_AFTER), where)

    def late() -> list[float | None]:
        if steering.slow_rewards == "stop":
            remedy = "Correct it, raise Steering(reward_seconds=...), or count such answers as wrong: slow_rewards='wrong'."
            raise InputError(f"rewards within {seconds:g} s", f"none ({where})", remedy)
        sentence = f"no rewards within {seconds:g} s ({where}): {count} completions count as wrong"
        run.note(step, "rewards too slow", sentence)
        logging.getLogger("mixwright").warning(sentence)
        return [run.low] * count

    def call(**given: Any) -> list[float | None]:
        try:
            return checked(name, within(seconds, lambda: function(**given), tell), count)
        except TooSlow:
            return late()

    async def call_async(**given: Any) -> list[float | None]:
        limit = asyncio.timeout(seconds or None)
        try:
            with named(seconds, tell):
                async with limit:
                    return checked(name, await function(**given), count)
        except TimeoutError:
            if not limit.expired():
                raise  # its own
            return late()

    return call_async if is_async(function) else call


def checked(name: str, returned: Any, count: int) -> list[float | None]:
    """What a reward function returned, as TRL can use it.

    Args:
        name: of the function.
        returned: by it.
        count: completions that it judged.

    Raises:
        InputError: no list, another length, or an entry that is neither a number nor None.
    """
    expected = f"{count} rewards from {name}, a list with one for each completion"
    if isinstance(returned, str | bytes | Mapping) or getattr(returned, "ndim", 1) == 0:
        raise InputError(expected, f"{returned!r:.80}", REMEDY)
    try:
        entries = list(returned)
    except TypeError:
        raise InputError(expected, f"{returned!r:.80}", REMEDY) from None
    if len(entries) != count:
        raise InputError(expected, str(len(entries)), REMEDY)
    return [None if entry is None else _number(entry, name, place) for place, entry in enumerate(entries)]


def _number(entry: Any, name: str, place: int) -> float:
    try:
        if not isinstance(entry, str | bytes):
            return float(entry)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        pass
    expected = f"a number or None from {name} for each completion"
    raise InputError(expected, f"{entry!r:.80} for completion {place} (counted from 0)", REMEDY)


def refuse_infinite(
    rewards: Float[Tensor, "completions functions"], functions: Sequence[Any], run: RunSteering, rows: Sequence[int]
) -> None:
    """Raises InputError for an infinite reward: every advantage of its group would be no number, and the weights after it.

    Args:
        rewards: gathered over processes.
        functions: as TRL takes them.
        run: names the rows, and knows the reward of a wrong answer.
        rows: pool index of each completion.
    """
    found = torch.isinf(rewards).nonzero().tolist()
    if found:
        place, column = found[0]
        row, value = rows[place], float(rewards[place, column])
        raise InputError(
            "finite rewards, or None for a completion that cannot be judged",
            f"{value:g} from {name_of(functions[column])} for example {run.pool.ids[row]!r} "
            f"(task {run.pool.tasks[run.pool.task_of[row]]}), {len(found)} in this batch",
            f"Return {run.low:g} for a wrong answer." if value < 0 else f"Return at most {run.high:g}.",
        )
