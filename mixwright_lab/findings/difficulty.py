"""Finding on difficulty: which prompts teach depends on the policy of now, so that a band fixed at the start goes stale.

Source: no single paper: Bae et al. 2504.03380, MoPPS 2507.04632, LILO 2502.12272, on filtering by difficulty in a run.
Unit: success, sampled, every level counted once.
Cost: about 90 CPU seconds per seed.
Blind spot: one skill with known levels; one pass over the data and less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mixwright.records import Example, Plan, Stage
from mixwright_lab.contracts import Curve, Expectation, Finding, Plot, difference
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.grpo import Arena
from mixwright_lab.training.grpo import Settings as Grpo
from mixwright_lab.training.oracle import Oracle
from mixwright_lab.training.rules import EngineRule, Rule, UniformRule, drive, pool_of, unique_examples
from mixwright_lab.training.static_band import StaticBand
from mixwright_lab.worlds.chain import MODULUS, MOST_OPERATIONS, Chain

SHARES = {1: 0.05, 2: 0.2, 3: 0.2, 4: 0.035, 5: 0.035, 6: 0.03, 7: 0.225, 8: 0.225}
"""Of the pool by level: up to 3 operations are mastered, 4 to 6 within reach, 7 and 8 out of it."""
BAND, REACHABLE = (0.2, 0.8), (4, 5, 6)
SELECTORS = {"tracker": "difficulty", "equal shares": "equal_levels"}
READ_AGAIN = "start, read again"
BASE, GRPO_SETTINGS = Recipe(plain=3, steps=600, styles=(("full", 0.3), ("direct", 0.7))), Grpo()


@dataclass(frozen=True)
class Settings:
    """Of a run."""

    base: Recipe = BASE
    problems: int = 2400
    rollouts: int = 5760
    held_out: int = 24
    """Problems per level that are read."""
    samples: int = 32
    """Of each of them."""
    grpo: Grpo = GRPO_SETTINGS


class Difficulty(Finding):
    """The engine's selector against a band fixed at the start, uniform draws, equal shares of levels, and the truth."""

    CLAIM = "Prompts leave the band of useful success while the policy learns, so choosing by success now beats a fixed band"
    SOURCE = "Bae et al., Online Difficulty Filtering, 2504.03380; Qu et al., MoPPS, 2507.04632; LILO, 2502.12272"
    WHAT_IT_SHOWS = (
        "Each reports fewer rollouts to a target when prompts near one half of success are chosen during the run. Matched "
        "studies of selection methods find no gain in the end (DataFlex-RL, 12 seeds)."
    )
    POPULAR_READING = (
        "It is said that difficulty drifts: what drifts is who is in the band; the order of prompts hardly changes."
    )
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "selectors/difficulty": (
            "choosing by success now - uniform, levels in reach",
            "choosing by success now - a band fixed at the start, levels in reach",
        ),
        "selectors/equal_levels": (),
    }
    REMARKS = (
        "Success drifts, as claimed, although this is not certain (32 points [0, 64]), and choosing by it beats uniform "
        "draws. On levels 4 to 6 a band fixed at the start does as well to within 2 points; on mastered levels it loses "
        "9, and the tracker is 6.9 [0.4, 13.4] above it. An oracle is level with the fixed band, so that this world "
        "cannot show the claim."
    )
    REAL = (
        "Dynamic sampling ended 5.9 points [1.6, 10.3] above all prompts with 2.8 times the completions, a plan by "
        "success now 3.1 [-2.8, 8.9]; of 12 comparisons this is within noise (study real_grpo)."
    )
    RUN_TWICE = ("uniform",)
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(Recipe(plain=3, steps=20), 60, 96, 4, 4, Grpo(4, 4)),
        "laptop": Settings(),
    }
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 6}
    PRIMARY = "choosing by success now - uniform, levels in reach"
    CONTROL = "oracle - a band fixed at the start, levels in reach"
    PUBLISHED = ("left the band of the start: after uniform training - read again without training",)
    EXPECT = (
        Expectation(
            "left the band of the start: after uniform training - read again without training",
            difference("uniform", READ_AGAIN, "left the band"),
            0.2,
            "No more problems leave the band than a second reading of the same policy moves.",
        ),
        Expectation(
            "choosing by success now - uniform, levels in reach",
            difference("tracker", "uniform", "reachable"),
            0.03,
            "Choosing gains nothing on what could be learnt.",
        ),
        Expectation(
            "choosing by success now - a band fixed at the start, levels in reach",
            difference("tracker", "fixed band", "reachable"),
            0.02,
            "A band that is measured once does as well.",
        ),
        Expectation(
            CONTROL,
            difference("oracle", "fixed band", "reachable"),
            0.02,
            "Who knows what can be learnt does no better than the fixed band.",
        ),
    )
    PLOTS = (
        Plot(
            "Success by level after training",
            "operations",
            "success, sampled",
            tuple(
                Curve(arm, tuple((float(level), arm, f"level {level}") for level in range(1, MOST_OPERATIONS + 1)))
                for arm in ("start", "uniform", "fixed band", "tracker")
            ),
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Two readings of the start, the rules, the truth."""
        return ("start", READ_AGAIN, "uniform", "fixed band", "tracker", "equal shares", "oracle")

    def prepare(self, seed: int, settings: Settings) -> None:
        """The model that all arms of the seed start from."""
        base_model(seed, settings.base)

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Success by level, and what became of the problems that were in the band at the start."""
        pool, read = _pool(seed, settings), _held_out(settings)
        train_seed = seed + 10_000 * again
        arena = Arena(pool, base_model(seed, settings.base), settings.grpo, train_seed)
        both = arena.look(read, 2 * settings.samples).rewards
        before, now = both[:, : settings.samples].mean(1), both[:, settings.samples :].mean(1)
        if arm == "start":
            now = before
        elif arm != READ_AGAIN:
            drive(arena, _rule(arm, pool, train_seed), settings.rollouts, settings.rollouts, lambda _: {})
            now = arena.look(read, settings.samples).rewards.mean(1)
        return _readings(read, before, now, arena)


def _rule(arm: str, pool: list[Example], seed: int) -> Rule:
    """What draws the prompts of an arm; labels are known to all."""
    labelled = pool_of(pool, lambda _: 1 / MODULUS)
    if arm == "uniform":
        return UniformRule(len(pool), seed)
    if arm in ("fixed band", "oracle"):
        return {"fixed band": StaticBand, "oracle": Oracle}[arm](labelled, BAND, seed)
    stage = Stage("training", "grpo", 1000, {"chain": 1.0}, BAND, selector=SELECTORS[arm])
    return EngineRule(Plan("difficulty", (stage,)), labelled, seed)


def _pool(seed: int, settings: Settings) -> list[Example]:
    rng, world, found = np.random.default_rng((seed, 0xD1F)), Chain(), []
    for level, share in SHARES.items():
        start = int(rng.integers(2**30))
        found += [world.make(start + index, level, "train") for index in range(max(round(share * settings.problems), 1))]
    found = unique_examples(found)
    return [found[index] for index in rng.permutation(len(found))]


def _held_out(settings: Settings) -> list[Example]:
    world, found = Chain(), []
    for level in range(1, MOST_OPERATIONS + 1):
        made = unique_examples([world.make(index, level, "eval") for index in range(8 * settings.held_out)])
        found += made[: settings.held_out]
    return found


def _readings(read: list[Example], before: np.ndarray, now: np.ndarray, arena: Arena) -> dict[str, float]:
    """Numbers of an arm."""
    levels = np.array([example.level for example in read])
    found: dict[str, Any] = {f"level {level}": now[levels == level].mean() for level in range(1, MOST_OPERATIONS + 1)}
    found["all levels"] = np.mean([found[f"level {level}"] for level in range(1, MOST_OPERATIONS + 1)])
    found["reachable"] = np.mean([found[f"level {level}"] for level in REACHABLE])
    greedy = arena.look(read, greedy=True).rewards[:, 0]
    found["greedy, all levels"] = np.mean([greedy[levels == level].mean() for level in range(1, MOST_OPERATIONS + 1)])
    inside, still = ((BAND[0] <= success) & (success <= BAND[1]) for success in (before, now))
    found["left the band"] = float((inside & ~still).sum() / max(inside.sum(), 1))
    orders = [np.argsort(np.argsort(values, kind="stable"), kind="stable") for values in (before, now)]
    found["rank correlation"] = float(np.corrcoef(orders[0], orders[1])[0, 1])
    return {name: float(value) for name, value in found.items()}
