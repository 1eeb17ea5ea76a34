"""Runs of GRPO on chain problems out of reach, with guards or random rewards, and what each leaves of skills."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from mixwright.records import Example, Plan, Stage
from mixwright_lab.contracts import Curve, Finding
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.grpo import Arena, Rollouts
from mixwright_lab.training.grpo import Settings as Grpo
from mixwright_lab.training.rules import EngineRule, pool_of, unique_examples
from mixwright_lab.worlds.chain import MODULUS, MOST_OPERATIONS, Chain

LOSSES: tuple[Literal["dapo"], Literal["grpo"]] = ("dapo", "grpo")
"""Token normalisations: over the batch, or per response."""
FROZEN = "before training"
MEDIUM, OUT_OF_REACH = {5: 0.5, 6: 0.5}, {MOST_OPERATIONS: 1.0}
KNOWN_OPERATION_COUNTS = (1, 2, 3, 4, 5, 6)
"""Numbers of operations that the base was taught."""
ZERO_ANSWER_SHARE = 0.15
"""Share of problems whose answer is 0, where an answer can be guessed."""


@dataclass(frozen=True)
class Settings:
    """Of one scale."""

    base: int = 1200
    """Steps of SFT before."""
    steps: int = 80
    """Of GRPO; a multiple of 4, as success is read at every quarter."""
    rate: float = 1e-3
    """Learning rate of GRPO, high on purpose: damage takes longer at a lower one."""
    pool: int = 1500
    """Problems that are trained on."""
    items: int = 40
    """Held-out problems per number of operations."""
    samples: int = 8
    """Responses to each."""


@dataclass(frozen=True)
class Way:
    """Problems and guards of an arm."""

    shares: Mapping[int, float]
    """Of problems, by number of operations."""
    beta: float = 0.0
    """KL coefficient."""
    gate: bool = False
    """The product's gate `too_hard`, with what else the engine does by itself."""
    random: bool = False
    """Rewards permuted within groups: as many groups with signal, and nothing in it."""
    biased: bool = False
    """0 is the answer more often than by chance."""


def arm_name(way: str, loss: str) -> str:
    """Of an arm, as its parts stand in it."""
    return f"{way}, {loss}"


def known_curve(way: str) -> Curve:
    """Success on known problems over the steps of a way, token-normalised loss."""
    arm = arm_name(way, LOSSES[0])
    return Curve(way, (*((quarter / 4, arm, f"known at {quarter}/4") for quarter in range(4)), (1.0, arm, "known")))


class HardRuns(Finding):
    """Findings on these runs: every way with both token normalisations, from one base per seed."""

    WAYS: ClassVar[Mapping[str, Way]] = {}
    """Problems and guards of its arms."""
    RUN_TWICE = (arm_name("hard", LOSSES[0]),)
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(base=100, steps=4, pool=100, items=4, samples=2),
        "laptop": Settings(),
    }

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Every way with every loss, and the base alone."""
        return (FROZEN, *(arm_name(way, loss) for way in self.WAYS for loss in LOSSES))

    def prepare(self, seed: int, settings: Settings) -> None:
        """Teach the base of the seed, or find that it is kept."""
        base_model(seed, Recipe(steps=settings.base))

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Success, habits and drift after training."""
        return readings(arm, self.WAYS, seed, settings, again=again)


def readings(arm: str, ways: Mapping[str, Way], seed: int, settings: Settings, *, again: bool) -> dict[str, float]:
    """Train from the base of the seed as the arm says, and measure what is left; `FROZEN` is measured alone."""
    name, _, loss = arm.rpartition(", ")
    way = Way(OUT_OF_REACH) if arm == FROZEN else ways[name]
    examples = problems(way, seed, settings)
    grpo = Grpo(rate=settings.rate, beta=way.beta, permute=way.random, loss="grpo" if loss == "grpo" else "dapo")
    arena = Arena(examples, base_model(seed, Recipe(steps=settings.base)), grpo, 2 * seed + again)
    held = [Chain().make(index, level, "eval") for level in KNOWN_OPERATION_COUNTS for index in range(settings.items)]
    beyond = [Chain().make(index, MOST_OPERATIONS, "eval") for index in range(2 * settings.items)]
    found: dict[str, float] = {}
    if arm != FROZEN:
        rule = EngineRule(_plan(way, settings.steps), pool_of(examples, lambda _: 1 / MODULUS), 2 * seed + again)
        for step in range(settings.steps):
            if 4 * step % settings.steps == 0:
                found[f"known at {4 * step // settings.steps}/4"] = float(
                    arena.look(held, settings.samples // 2).rewards.mean()
                )
            rule.step(arena)
        for name in ("teach", "refused"):
            found[f"groups: {name}"] = rule.totals[name] / rule.totals["groups"]
    found |= _skills(arena.look(held, settings.samples)) | {"greedy": float(arena.look(held, greedy=True).rewards.mean())}
    far = arena.look(beyond, settings.samples)
    found |= {"hard": float(far.rewards.mean()), "commonest answer, hard": commonest(far)}
    return found | {"drift": float(arena.drift(arena.look(held, 2)).mean())}


def problems(way: Way, seed: int, settings: Settings) -> list[Example]:
    """The pool of a seed: each problem once, the same for all arms that have these shares."""
    world, found = Chain(bias=ZERO_ANSWER_SHARE if way.biased else 0.0), []
    for level, share in way.shares.items():
        count = round(share * settings.pool)
        found += unique_examples([world.make(seed * 100_000 + index, level, "train") for index in range(count)])
    return found


def commonest(rollouts: Rollouts) -> float:
    """Share of the commonest answer among all responses to all problems, those without an answer counted."""
    answers = Counter(answer for group in rollouts.answers for answer in group)
    return max(count for answer, count in answers.items() if answer or len(answers) == 1) / answers.total()


def _skills(rollouts: Rollouts) -> dict[str, float]:
    """Success and habits on problems that the base was taught, levels counted alike."""
    levels = np.array([example.level for example in rollouts.examples])
    styles = np.array(rollouts.formats)
    return {
        "known": float(rollouts.rewards.mean()),
        "easy": float(rollouts.rewards[levels <= 4].mean()),
        "medium": float(rollouts.rewards[levels >= 5].mean()),
        "at once": float((styles == "direct").mean()),
        "commonest answer": commonest(rollouts),
    }


def _plan(way: Way, steps: int) -> Plan:
    """Uniform draws through the engine; without the gate it does nothing else."""
    engine = {} if way.gate else {"min_informative_share": 0.0}
    gates: Sequence[str] = ("too_hard",) if way.gate else ()
    return Plan("hand", (Stage("training", "grpo", steps, {"chain": 1.0}, gates=tuple(gates), options={"engine": engine}),))
