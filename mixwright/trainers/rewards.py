"""Rewards of a group: checked when the user's functions return, summed, read, refused, and permuted.

TRL makes a tensor of whatever comes back. A number in place of a list ends in an error of Python's, and an infinite reward
makes advantages, and by them weights, that are no numbers; so what functions return is checked, and their time is limited.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import math
import reprlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from mixwright.errors import InputError, one_line
from mixwright.final_answer import final_answer
from mixwright.records import GroupOutcome
from mixwright.steer.pool import Pool
from mixwright.time_limit import NAMED_AFTER_SECONDS, TooSlow, call_with_timeout, tell_when_slow

if TYPE_CHECKING:
    from mixwright.steer.beside.run import RunSteering
    from mixwright.trainers.steering import SteeringConfig


def weighted_sum(
    rewards: Float[Tensor, "completions functions"], weights: Float[Tensor, " functions"]
) -> Float[Tensor, " completions"]:
    """Reward per completion; functions that gave None (NaN) are left out; NaN where all of them did."""
    total = (rewards * weights.to(rewards.device)).nansum(dim=1)
    total[torch.isnan(rewards).all(dim=1)] = torch.nan
    return total


def permute_in_groups(
    rewards: Float[Tensor, "completions functions"], size: int, seed: Sequence[int]
) -> Float[Tensor, "completions functions"]:
    """Rows shuffled inside each group of `size`, each group with its own generator seeded (*seed, group).

    Whole rows move, so the multiset of reward vectors of each group, hence its mean and spread, stays exactly the same.
    """
    order = np.arange(len(rewards)).reshape(-1, size)
    for group in range(len(order)):
        order[group] = np.random.default_rng([*seed, group]).permutation(order[group])
    return rewards[torch.from_numpy(order.reshape(-1)).to(rewards.device)]


class ReadCompletion(NamedTuple):
    """What steering reads of one completion, apart from what it earned."""

    row: int
    """Pool index of its example."""
    answer: str
    """Final answer."""


def read_completions(rows: Sequence[int], completions: Sequence[Any]) -> list[ReadCompletion]:
    """What is read of each completion, plain or conversational, of the example of this pool index."""
    return [ReadCompletion(row, final_answer(text_of(text))) for row, text in zip(rows, completions, strict=True)]


def group_outcomes(
    pool: Pool, completions: Sequence[ReadCompletion], totals: Sequence[float], size: int, step: int
) -> list[GroupOutcome]:
    """One outcome per group; completions without a finite reward are left out, and so are groups of only such ones.

    Args:
        pool: what the rows belong to.
        completions: groups one after another.
        totals: reward of each completion.
        size: completions of a group.
        step: optimiser steps done.

    Raises:
        RuntimeError: a group mixes rows, so its rewards cannot be compared; nothing of ours may go on then.
    """
    if len(completions) % size:
        raise RuntimeError(f"{len(completions)} completions are no whole number of groups of {size}")
    outcomes = []
    for start in range(0, len(totals), size):
        group, row = completions[start : start + size], completions[start].row
        if rows := {completion.row for completion in group} - {row}:
            raise RuntimeError(f"group {start // size} of the generation batch mixes rows {sorted({row, *rows})}")
        scored = [
            (completion, total)
            for completion, total in zip(group, totals[start : start + size], strict=True)
            if math.isfinite(total)
        ]
        if not scored:
            continue
        cell = pool.cells[pool.cell_of[row]]
        outcomes.append(
            GroupOutcome(
                example=pool.ids[row],
                task=cell.task,
                level=cell.level,
                step=step,
                rewards=tuple(total for _, total in scored),
                answers=tuple(completion.answer for completion, _ in scored),
            )
        )
    return outcomes


def text_of(completion: Any) -> str:
    """The text of a completion, plain or as chat messages (the last one)."""
    if isinstance(completion, str):
        return completion
    return str(completion[-1].get("content") or "") if completion else ""


REMEDY = "Return a list with one number per completion, or None for a completion that cannot be judged."
LARGEST_REWARD = 1e12
"""Largest size of a reward, of a weighted sum of them and of a weight: squares of more overflow in a group's statistics."""
SHORT_REPR = reprlib.Repr()
SHORT_REPR.maxother = SHORT_REPR.maxstring = 80


def reward_name(function: Any) -> str:
    """The name TRL logs a reward function under, on one line; for a partial that of the function inside."""
    while isinstance(function, functools.partial):
        function = function.func
    return one_line(getattr(function, "__name__", type(function).__name__))


def is_async(function: Any) -> bool:
    """Whether calling it gives a coroutine: an async function, an object whose call is one, or a partial of either."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def limit_and_check(
    function: Any, steering: SteeringConfig, run: RunSteering, step: int, tasks: Sequence[str], count: int
) -> Any:
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
    name, seconds = reward_name(function), steering.reward_seconds
    call_text = one_line(f"reward function {name}, step {step}, {'task' if len(tasks) == 1 else 'tasks'} {', '.join(tasks)}")

    def warn_slow() -> None:
        logging.getLogger("mixwright").warning("Still running after %g s: %s.", min(seconds, NAMED_AFTER_SECONDS), call_text)

    def handle_timeout() -> list[float | None]:
        if steering.slow_rewards == "stop":
            remedy = "Correct the function, raise reward_seconds, or count such answers as wrong: slow_rewards='wrong'."
            raise InputError(f"rewards within {seconds:g} s", f"none ({call_text})", remedy)
        sentence = f"no rewards within {seconds:g} s ({call_text}): {count} completions count as wrong"
        run.note(step, "rewards too slow", sentence)
        logging.getLogger("mixwright").warning(sentence)
        return [run.reward_range[0]] * count

    def call(**arguments: Any) -> list[float | None]:
        try:
            return call_with_timeout(seconds, lambda: check_rewards(name, function(**arguments), count), warn_slow)
        except TooSlow:
            return handle_timeout()

    async def call_async(**arguments: Any) -> list[float | None]:
        limit = asyncio.timeout(seconds or None)
        try:
            with tell_when_slow(seconds, warn_slow):
                async with limit:
                    return check_rewards(name, await function(**arguments), count)
        except TimeoutError:
            if not limit.expired():
                raise  # its own
            return handle_timeout()

    return call_async if is_async(function) else call


def check_rewards(name: str, returned: Any, count: int) -> list[float | None]:
    """What a reward function returned, as TRL can use it: a list, tuple, array, tensor, series or iterator of numbers.

    Args:
        name: of the function.
        returned: by it; of an iterator no more is read than shows that it is too long.
        count: completions that it judged.

    Raises:
        InputError: something else (a set or a dict has no order of completions), another length, or an entry that is
            neither a real number nor None.
    """
    expected = f"a list of {count} rewards from {name}, one per completion"
    entries: Any = list(islice(returned, count + 1)) if isinstance(returned, Iterator) else returned
    if hasattr(entries, "tolist") and not isinstance(entries, memoryview):  # of numpy, torch and pandas
        entries = entries.tolist()
    if not isinstance(entries, list | tuple):
        raise InputError(expected, one_line(SHORT_REPR.repr(returned)), REMEDY)
    if len(entries) != count:
        raise InputError(expected, f"more than {count}" if len(entries) > count else str(len(entries)), REMEDY)
    return [None if entry is None else _read_number(entry, name, entry_index) for entry_index, entry in enumerate(entries)]


def _read_number(entry: Any, name: str, entry_index: int) -> float:
    try:
        # of numpy and torch, whose complex numbers float() would cut to their real part
        number = entry.item() if hasattr(entry, "item") else entry
        if not isinstance(number, str | bytes | bytearray | memoryview):
            return float(number)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        pass
    got = f"{one_line(SHORT_REPR.repr(entry))} for completion {entry_index} (counted from 0)"
    raise InputError(f"a number or None from {name} for each completion", got, REMEDY)


def refuse_weights(weights: Float[Tensor, " functions"], functions: Sequence[Any]) -> None:
    """Raises InputError for a weight of a reward function that is no finite number, or too large to sum with."""
    for weight, name in zip(weights.tolist(), map(reward_name, functions), strict=True):
        if not abs(weight) <= LARGEST_REWARD:
            raise InputError(
                f"finite reward_weights of at most {LARGEST_REWARD:g}", f"{weight:g} for {name}", "Correct them."
            )


def sum_checked(
    rewards: Float[Tensor, "completions functions"],
    weights: Float[Tensor, " functions"],
    run: RunSteering,
    rows: Sequence[int],
) -> list[float]:
    """The weighted sum of each completion's rewards; NaN where no function judged it.

    Args:
        rewards: gathered over processes.
        weights: one per function.
        run: names the rows and the functions, and knows what rewards mean.
        rows: pool index of each completion.

    Raises:
        InputError: a reward, or a sum, that is infinite or larger than `LARGEST_REWARD`: advantages of its group, and by
            them the weights, would be no numbers, or all 0.
    """
    totals = weighted_sum(rewards, weights)
    for values, names in ((rewards, run.reward_names), (totals[:, None], [])):
        too_large = (values.abs() > LARGEST_REWARD).nonzero().tolist()
        if not too_large:
            continue
        row_position, column = too_large[0]
        row, value = rows[row_position], float(values[row_position, column])
        source = names[column] if names else f"the weighted sum of {', '.join(run.reward_names)}"
        low, high = run.reward_range
        remedy = f"Return {low:g} for a wrong answer." if value < 0 else f"Return at most {high:g}."
        raise InputError(
            f"finite rewards of at most {LARGEST_REWARD:g} in size, or None for a completion that cannot be judged",
            f"{value:g} from {source} for example {run.pool.ids[row]!r} "
            f"(task {one_line(run.pool.tasks[run.pool.task_of[row]])}), {len(too_large)} in this batch",
            remedy if names else "Use smaller reward_weights, or smaller rewards.",
        )
    return totals.tolist()
