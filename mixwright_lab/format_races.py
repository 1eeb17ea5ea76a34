"""Races of answer formats in chain arithmetic: mixes of styles, what samples show, and which is foretold to win."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np

from mixwright.estimates.intervals import pass_at_k
from mixwright.records import Example
from mixwright_lab.format_forecast import forecast_formats, formats_of, predict_winner, steps_to_cross
from mixwright_lab.format_shares import measure_formats, normalised_entropy
from mixwright_lab.training.bases import Recipe
from mixwright_lab.training.grpo import Rollouts
from mixwright_lab.worlds.chain import STYLES, Chain

LEVELS = (1, 2, 3, 4)
"""Numbers of operations that are taught, trained on and measured."""
KS = (1, 2, 4, 8, 16)


def recipe_of(shares: Sequence[float], noise: Sequence[float], *, steps: int = 700) -> Recipe:
    """SFT with these shares and noises of `STYLES`."""
    own, wrong = (tuple(zip(STYLES, map(float, column), strict=True)) for column in (shares, noise))
    return Recipe(levels=tuple((level, 1.0) for level in LEVELS), styles=own, noise=wrong, steps=steps)


def examples(count: int, split: str, first: int = 0) -> list[Example]:
    """Problems of all levels in turn."""
    return [Chain().make(first + number, LEVELS[number % len(LEVELS)], split) for number in range(count)]


def summarise_styles(rollouts: Rollouts) -> dict[str, Any]:
    """Shares, accuracies and entropy of the styles."""
    styles, rewards = np.array(rollouts.formats), rollouts.rewards
    counts = {style: int((styles == style).sum()) for style in STYLES}
    rights = {style: float(rewards[styles == style].sum()) for style in STYLES}
    return {
        "shares": {style: counts[style] / styles.size for style in STYLES},
        "accuracies": {style: rights[style] / counts[style] if counts[style] else None for style in STYLES},
        "entropy": normalised_entropy(np.array(list(counts.values()), dtype=float)),
        "pass@1": float(rewards.mean()),
    }


def pass_at_ks(rollouts: Rollouts) -> dict[str, float]:
    """pass@k, unbiased."""
    right = rollouts.rewards.sum(1).astype(int)
    tries = rollouts.rewards.shape[1]
    return {f"pass@{k}": fmean(pass_at_k(tries, count, k) for count in right) for k in KS if k <= tries}


def foretell(rollouts: Rollouts, steps: int) -> dict[str, Any]:
    """The product's forecast for a run of these steps and its nulls, from the rows that its probe writes."""
    gold = Counter(["direct"])
    rows = measure_formats("chain", np.array(rollouts.formats, dtype=object), rollouts.rewards, gold, 5)
    choices = formats_of(rows).get("chain", [])
    if not choices:
        return {}
    said = forecast_formats("chain", choices, steps)
    most = choices[0]
    return {
        "race": said[0].name.partition(":")[2],
        "said": predict_winner(said),
        "share": most.form,
        "accuracy": max(choices, key=lambda r: r.accuracy).form,
        "share x accuracy": max(choices, key=lambda r: r.share * r.accuracy).form,
        "expected": {f.name.partition(":")[2]: [f.before, f.expected, f.low, f.high] for f in said},
        "crossing": {r.form: c if math.isfinite(c := steps_to_cross(r, most)) else None for r in choices[1:]},
    }
