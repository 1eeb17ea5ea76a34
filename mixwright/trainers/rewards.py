"""Rewards of a group: read, refused, and permuted. Pure functions of reward tables and texts, no trainer."""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mixwright.records import GroupOutcome
from mixwright.skeleton import skeleton
from mixwright.steer.pool import Pool, read_answer


def weighted_sum(
    rewards: Float[Tensor, "completions functions"], weights: Float[Tensor, " functions"]
) -> Float[Tensor, " completions"]:
    """Reward per completion; functions that gave None (NaN) are left out; NaN where all of them did."""
    total = (rewards * weights.to(rewards.device)).nansum(dim=1)
    total[torch.isnan(rewards).all(dim=1)] = torch.nan
    return total


def group_rows(indices: Sequence[int], size: int) -> list[int]:
    """The row each group of `size` consecutive completions belongs to.

    Raises:
        RuntimeError: a group mixes rows, so its rewards cannot be compared; nothing of ours may go on then.
    """
    if len(indices) % size:
        raise RuntimeError(f"{len(indices)} completions are no whole number of groups of {size}")
    groups = [indices[start : start + size] for start in range(0, len(indices), size)]
    for position, group in enumerate(groups):
        if len(set(group)) != 1:
            raise RuntimeError(f"group {position} of the generation batch mixes rows {sorted(set(group))}")
    return [group[0] for group in groups]


def refuse(
    rewards: Float[Tensor, "completions functions"], groups: Collection[int], size: int
) -> Float[Tensor, "completions functions"]:
    """A copy in which the rows of `groups` are NaN: TRL leaves them out of every mean and gives them advantage 0."""
    rewards = rewards.clone()
    for group in groups:
        rewards[group * size : (group + 1) * size] = torch.nan
    return rewards


def permute(
    rewards: Float[Tensor, "completions functions"], size: int, seed: Sequence[int]
) -> Float[Tensor, "completions functions"]:
    """Rows shuffled inside each group of `size`, each group with its own generator seeded (*seed, group).

    Whole rows move, so the multiset of reward vectors of each group, hence its mean and spread, stays exactly the same.
    """
    order = np.arange(len(rewards)).reshape(-1, size)
    for group in range(len(order)):
        order[group] = np.random.default_rng([*seed, group]).permutation(order[group])
    return rewards[torch.from_numpy(order.reshape(-1)).to(rewards.device)]


def group_outcomes(
    pool: Pool,
    rows: Sequence[int],
    totals: Sequence[float],
    lengths: Sequence[int],
    seen: Sequence[tuple[str, str]],
    step: int,
) -> list[GroupOutcome]:
    """One outcome per group; completions without a finite reward are left out, and so are groups of only such ones.

    Args:
        pool: what the rows belong to.
        rows: pool index of each group.
        totals: reward of each completion, groups one after another.
        lengths: tokens of each completion; empty where the trainer did not say.
        seen: form and final answer of each completion.
        step: optimiser steps done.
    """
    size = len(totals) // len(rows)
    outcomes = []
    for place, row in enumerate(rows):
        scored = [i for i in range(place * size, (place + 1) * size) if math.isfinite(totals[i])]
        if not scored:
            continue
        cell = pool.cells[pool.cell_of[row]]
        outcomes.append(
            GroupOutcome(
                pool.ids[row],
                cell.task,
                cell.level,
                step,
                tuple(totals[i] for i in scored),
                tuple(lengths[i] for i in scored) if lengths else (),
                tuple(seen[i][0] for i in scored),
                tuple(seen[i][1] for i in scored),
            )
        )
    return outcomes


def run_options(pool: Pool, rows: Sequence[int]) -> list[Any]:
    """The options of the example behind each completion, None where rows have none."""
    return [None] * len(rows) if pool.options is None else [pool.options[row] for row in rows]


def shown(completions: Sequence[Any], options: Sequence[Any]) -> list[tuple[str, str]]:
    """Form and answer of each completion, plain or conversational; with options the place of the one that it names."""
    texts = map(text_of, completions)
    return [(skeleton(text), read_answer(text, own)) for text, own in zip(texts, options, strict=True)]


def text_of(completion: Any) -> str:
    """The text of a completion, plain or as chat messages (the last one)."""
    if isinstance(completion, str):
        return completion
    return str(completion[-1].get("content") or "") if completion else ""
