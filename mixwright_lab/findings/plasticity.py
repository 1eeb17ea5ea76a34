"""Finding on plasticity: what KL, entropy and weight change after one task tell of what is forgotten and still learnt.

Source: Tiwari et al., Learning, fast and slow: towards LLMs that adapt continually, 2605.12484.
Unit: share of problems solved by samples; rank correlation over the checkpoints of a seed.
Cost: about 110 CPU seconds per seed.
Blind spot: three tasks that differ in their operations alone, one small model, tens of steps; no prompt is trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np

from mixwright import catalog
from mixwright.records import Example
from mixwright_lab.changes import entropy_of, spearman, weight_change
from mixwright_lab.contracts import Expectation, Finding, Term
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Arena
from mixwright_lab.training.grpo import Settings as Grpo
from mixwright_lab.training.rules import UniformRule

LEVEL_BY_TASK = {"kept": 1.0, "first": 2.0, "second": 3.0}
"""Level of each task in the world of operators: one is mastered and not trained again, one is trained first, one second."""
PREDICTORS = ("KL", "entropy", "weight change")
ARM = "sweep"


@dataclass(frozen=True)
class Settings:
    """Of the base, the runs on the first task, and the runs on the second."""

    base: int = 300
    """Steps of SFT of the base."""
    shares: tuple[tuple[float, float], ...] = ((1.0, 1.0), (2.0, 0.3), (3.0, 0.15))
    """Of the levels in it: the first task leaves room, the second more."""
    ways: tuple[tuple[float, float], ...] = (
        *((0.0, rate) for rate in (3e-4, 6e-4, 1e-3, 1.5e-3)),
        *((beta, rate) for beta in (0.1, 1.0) for rate in (1e-3, 1.5e-3)),
    )
    """Coefficient of the KL and learning rate of each run on the first task."""
    checkpoints: tuple[int, ...] = (20, 60)
    """Steps after which a run on the second task starts."""
    second: int = 60
    """Steps on the second task, at `rate` and without KL."""
    rate: float = 5e-4
    """Of the second task."""
    known: int = 256
    """Problems of each task that are trained on."""
    tested: int = 96
    """Problems of each task that are tested, with 4 samples."""
    near: float = 0.05
    """Success on the first task in which two checkpoints may differ to be compared."""


def _rank(name: str, parts: tuple[tuple[str, str, float], ...], least: float, refuted: str) -> Expectation:
    """Of rank correlations, each of a predictor with an outcome."""
    terms = tuple(Term(ARM, f"{predictor} ~ {outcome}", weight) for predictor, outcome, weight in parts)
    return Expectation(name, terms, least, refuted, "rank correlation")


class Plasticity(Finding):
    """RL on one task with and without a KL leash; every checkpoint is measured, and trained on another task."""

    CLAIM = (
        "The further RL on one task takes a model from its start, in KL on that task, the more it forgets and the less it "
        "learns of the next; KL tells this better than entropy and weight change, and at equal success a leash helps."
    )
    SOURCE = (
        "Tiwari et al., Learning, fast and slow: towards LLMs that adapt continually, 2605.12484; on forgetting: Shenfeld "
        "et al., RL's razor: why online reinforcement learning forgets less, 2509.04259"
    )
    WHAT_IT_SHOWS = (
        "Qwen3-8B trained on mathematics and then on HoVer-hard reaches 0.0 by RL, 16.7 where prompts were trained along "
        "with weights, 20.2 from the base; after physics RL reaches 19.9, the base 18.3. KL on the new task predicts "
        "forgetting in 2509.04259; norm, sparsity and rank of the weight change do not."
    )
    POPULAR_READING = (
        "It is said that staying close to the base keeps a model able to learn. In one of the source's two arms RL lost "
        "nothing, and no rival of KL as predictor was tried."
    )
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "controllers/drift": ("second task at equal success on the first: with KL penalty - without",),
    }
    REMARKS = (
        "KL predicts forgetting best, weight change predicts later learning best (that contrast was added after the run). "
        "KL measured on the second task predicts better than KL on the first. A KL penalty alone does not help later "
        "learning."
    )
    RUN_TWICE = (ARM,)
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(40, ways=((0.0, 3e-3), (0.1, 3e-3)), checkpoints=(1, 3), second=2, known=24, tested=16),
        "laptop": Settings(),
    }
    PRIMARY = "KL ~ forgetting"
    CONTROL = "weight change ~ forgetting"
    PUBLISHED = (
        "~ forgetting: KL - weight change",
        "second task at equal success on the first: with KL penalty - without",
    )
    EXPECT = (
        _rank("KL ~ forgetting", (("KL", "forgetting", 1.0),), 0.4, "Further from the start no more is forgotten."),
        _rank(
            "~ forgetting: KL - weight change",
            (("KL", "forgetting", 1.0), ("weight change", "forgetting", -1.0)),
            *(0.1, "Weight change tells forgetting as well as KL."),
        ),
        _rank("- KL ~ second task", (("KL", "second task", -1.0),), 0.4, "Further from the start as much is learnt."),
        *(
            _rank(
                f"~ second task, sign turned: KL - {other}",
                (("KL", "second task", -1.0), (other, "second task", sign)),
                *(0.1, f"The {other} tells as well as KL what is learnt of the second task."),
            )
            for other, sign in (("entropy", -1.0), ("weight change", 1.0))
        ),
        Expectation(
            "second task at equal success on the first: with KL penalty - without",
            (Term(ARM, "second task, leashed - plain"),),
            0.05,
            "Where both do the first task equally well, the penalty leaves no more to learn with.",
        ),
        _rank(
            CONTROL,
            (("weight change", "forgetting", 1.0),),
            0.2,
            "What is forgotten does not depend on how much was trained.",
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """One: correlations are over all checkpoints of a seed."""
        return (ARM,)

    def prepare(self, seed: int, settings: Settings) -> None:
        """The base."""
        _base(seed, settings)

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Train on the first task in every way; measure each checkpoint, and train it on the second task."""
        start, number = _base(seed, settings), 2 * seed + again
        train = {task: _problems(task, seed, "train", settings.known) for task in LEVEL_BY_TASK}
        tested = {task: _problems(task, seed, "eval", settings.tested) for task in LEVEL_BY_TASK}
        before = {task: _success(start, tested[task], seed) for task in LEVEL_BY_TASK}
        found = {f"base, {task}": value for task, value in before.items()}
        found["base, second after"] = _success(_second(start, train["second"], settings, number), tested["second"], seed)
        rows: list[dict[str, float]] = []
        for beta, rate in settings.ways:
            arena, rule = (
                Arena(train["first"], start, Grpo(beta=beta, rate=rate), number),
                UniformRule(settings.known, number),
            )
            for steps in settings.checkpoints:
                while arena.steps < steps:
                    rule.step(arena)
                row = _measured(arena, tested, before)
                after = _success(_second(arena.model, train["second"], settings, number), tested["second"], seed)
                rows.append({"beta": beta, **row, "second task": after})
                found |= {f"{name}, beta {beta:g}, rate {rate:g}, {steps} steps": value for name, value in rows[-1].items()}
        for predictor, outcome in product((*PREDICTORS, "KL of the second task"), ("forgetting", "second task")):
            found[f"{predictor} ~ {outcome}"] = spearman([r[predictor] for r in rows], [r[outcome] for r in rows])
        return found | {"second task, leashed - plain": _matched(rows, settings.near)}


def _base(seed: int, settings: Settings) -> GPT:
    return base_model(seed, Recipe(settings.shares, (("full", 1.0),), steps=settings.base, world="operators"))


def _problems(task: str, seed: int, split: str, count: int) -> list[Example]:
    world = catalog.create("worlds", "operators")
    return [world.make(10_000 * seed + index, LEVEL_BY_TASK[task], split) for index in range(count)]


def _success(model: GPT, examples: Sequence[Example], seed: int) -> float:
    return float(Arena(examples, model, Grpo(), seed).look(examples, 4).rewards.mean())


def _second(model: GPT, examples: Sequence[Example], settings: Settings, number: int) -> GPT:
    """A fresh run on the second task."""
    arena, rule = Arena(examples, model, Grpo(rate=settings.rate), number), UniformRule(len(examples), number)
    for _ in range(settings.second):
        rule.step(arena)
    return arena.model


def _measured(arena: Arena, tested: Mapping[str, Sequence[Example]], before: Mapping[str, float]) -> dict[str, float]:
    """A checkpoint: success, forgetting, and the predictors."""
    looks = {task: arena.look(examples, 4) for task, examples in tested.items()}
    return {
        "first task": float(looks["first"].rewards.mean()),
        "forgetting": before["kept"] - float(looks["kept"].rewards.mean()),
        "second task before": float(looks["second"].rewards.mean()),
        "KL": float(arena.drift(looks["first"]).mean()),
        "KL of the second task": float(arena.drift(looks["second"]).mean()),
        "entropy": entropy_of(arena.model, looks["second"]),
        "weight change": weight_change(arena.start, arena.model),
    }


def _matched(rows: Sequence[Mapping[str, float]], near: float) -> float:
    """Success on the second task of leashed minus plain checkpoints: mean over pairs near on the first, or the nearest."""
    pairs = [
        (abs(leashed["first task"] - plain["first task"]), leashed["second task"] - plain["second task"])
        for leashed, plain in product((r for r in rows if r["beta"]), [r for r in rows if not r["beta"]])
    ]
    close = [gain for apart, gain in pairs if apart <= near]
    return float(np.mean(close)) if close else min(pairs)[1]
