"""Races of answer formats in chain arithmetic: mixes of styles, what samples show, and which is foretold to win.

Rewards push each format up in proportion to its accuracy above the mean: replicator dynamics, as Zhao et al. 2025
(arXiv 2504.07912) show them under reinforcement learning. The log-odds of two formats then move in a line, by `PUSH_NATS`
x the difference of their accuracies per step: a rare format wins if it is right more often and the run is long enough. Left
out: accuracies that move, and lengths. Scored on 20 mixes of three formats (the study `formats`, results/INDEX.md): 17
winners foretold; chance is 1 in 3, share alone 13, accuracy alone 16, share x accuracy 17. So it is not shown to beat the
two simple rules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np

from mixwright.estimates.intervals import pass_at_k
from mixwright.records import Example
from mixwright_lab.training.bases import Recipe
from mixwright_lab.training.grpo import Rollouts
from mixwright_lab.worlds.chain import STYLES, Chain

LEVELS = (1, 2, 3, 4)
"""Numbers of operations that are taught, trained on and measured."""
KS = (1, 2, 4, 8, 16)
PUSH_NATS = 0.25
"""Nats by which the log-odds of two formats move per optimiser step and unit of difference in accuracy. It goes with the
learning rate; this one was fitted at 5e-4 with Adam on tiny models."""
IN_USE_SHARE, COVERED_SHARE = 0.02, 0.8
"""Share from which a format is in use; share that formats in use have to cover, else nothing is foretold."""


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


def normalised_entropy(counts: np.ndarray) -> float:
    """Entropy of the shares over the logarithm of how many kinds there are; 0 for one kind."""
    shares = counts[counts > 0] / counts.sum()
    return min(1.0, float(-(shares * np.log(shares)).sum() / np.log(len(counts)))) if len(counts) > 1 else 0.0


def pass_at_ks(rollouts: Rollouts) -> dict[str, float]:
    """pass@k, unbiased."""
    right = rollouts.rewards.sum(1).astype(int)
    tries = rollouts.rewards.shape[1]
    return {f"pass@{k}": fmean(pass_at_k(tries, count, k) for count in right) for k in KS if k <= tries}


def projected_shares(shares: Sequence[float], accuracies: Sequence[float], pushed: float) -> list[float]:
    """Shares after `pushed` (`PUSH_NATS` x steps) nats per unit of accuracy: share x exp(pushed x accuracy), scaled to 1."""
    weights = [math.log(s) + pushed * a if s > 0 else -math.inf for s, a in zip(shares, accuracies, strict=True)]
    max_weight = max(weights)
    weights_relative = [math.exp(weight - max_weight) for weight in weights]
    return [relative_weight / math.fsum(weights_relative) for relative_weight in weights_relative]


def foretell(rollouts: Rollouts, steps: int) -> dict[str, str]:
    """Return the style that each rule expects to win a run of these steps; nothing where there is no choice of styles."""
    styles, rewards = np.array(rollouts.formats), rollouts.rewards
    shares = {style: float((styles == style).mean(1).mean()) for style in np.unique(styles).tolist()}
    in_use = sorted((style for style in shares if shares[style] >= IN_USE_SHARE), key=lambda style: (-shares[style], style))
    if len(in_use) < 2 or sum(shares[style] for style in in_use) < COVERED_SHARE:
        return {}
    accuracies = {style: float(rewards[styles == style].mean()) for style in in_use}
    ends = projected_shares([shares[style] for style in in_use], list(accuracies.values()), PUSH_NATS * steps)
    return {
        "race": min(zip(in_use, ends, strict=True), key=lambda pair: (-round(pair[1], 4), pair[0]))[0],
        "share": in_use[0],
        "accuracy": max(in_use, key=lambda style: accuracies[style]),
        "share x accuracy": max(in_use, key=lambda style: shares[style] * accuracies[style]),
    }
