"""Finding on self-edits: new facts are learnt from rewrites in forms that the model knows, not in foreign ones.

Source: Zweiger et al., Self-Adapting Language Models, 2506.10943.
Unit: share of questions about new facts that the greedy response answers.
Cost: about 90 CPU seconds per seed.
Blind spot: forms stand for what a model writes itself; the outer loop of reinforcement learning is not run.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mixwright_extras.mining.halving import halve
from mixwright_lab.contracts import Curve, Expectation, Finding, Plot, difference
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.sft import Batch, Schedule, fit
from mixwright_lab.worlds.entities import ATTRIBUTES, KNOWN_ENTITIES, NEW_ENTITIES, TAUGHT_FORMS, Entities

WAYS = {"passage only": 6.0, "native questions": 1.0, "reversed": 4.0, "native statements": 3.0, "foreign statements": 5.0}
"""Arm -> form of the rewrite. The test asks in the other question, which is not among them."""
RANDOM, CHOSEN, OVERFIT, BEFORE = "random edit", "chosen", "chosen by the test questions", "before training"
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Settings:
    """Of base, edits and rounds."""

    base: int = 1500
    """Steps of SFT of the base on known entities in the native forms."""
    steps: int = 150
    """Of each training on a candidate."""
    tokens: int = 192
    """Target tokens of a step, ends included."""
    known: int = 48
    """Rows about known entities in each step, of every arm."""
    rate: float = 2e-3
    short: int = 75
    """Steps of a training of halving."""
    runs: int = 2
    """Seeds of each round of it."""
    asked: int = 50
    """New facts whose questions are the reward; the others are the test."""


class SelfEdits(Finding):
    """SFT on new facts in five forms at equal target tokens, at random, and in the form that sequential halving chooses."""

    CLAIM = (
        "New facts are learnt better from rewrites in forms that the model knows than from the passage or from foreign "
        "forms of the same content, and a form chosen by reward questions beats a random one on other questions."
    )
    SOURCE = "Zweiger et al., Self-Adapting Language Models (SEAL), 2506.10943"
    WHAT_IT_SHOWS = (
        "Qwen2.5-7B, SQuAD passages: passage only 33.5 %, own edits 39.7, after two rounds of reinforcement learning 47.0, "
        "edits of GPT-4.1 46.3; in the released logs the ranking of five edits has a reliability of .32 and .17."
    )
    POPULAR_READING = (
        "It is said that models learn better from data of their own than from a stronger model's. Before reinforcement "
        "learning own edits lose to GPT-4.1's by 6.6 points, after it the difference is +0.7 [-3.5, 4.8]."
    )
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "miners/self_edits": (
            "test questions: native questions - passage only",
            "test questions: native statements - foreign statements",
            "test questions: chosen by other questions - random edit",
        ),
    }
    RUN_TWICE = ("native questions",)
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(base=30, steps=4, short=2),
        "laptop": Settings(),
    }
    PRIMARY = "test questions: native questions - passage only"
    CONTROL = "test questions: native statements - before"
    PUBLISHED = ("test questions: chosen by other questions - random edit",)
    EXPECT = (
        Expectation(
            "test questions: native questions - passage only",
            difference("native questions", "passage only", "test"),
            0.06,
            "Facts are learnt from the passage as well.",
        ),
        Expectation(
            "test questions: native statements - foreign statements",
            difference("native statements", "foreign statements", "test"),
            0.05,
            "The same content teaches as much in marks that the model has never read.",
        ),
        Expectation(
            "test questions: chosen by other questions - random edit",
            difference(CHOSEN, RANDOM, "test"),
            0.03,
            "Choosing by reward questions is no better than drawing a form.",
        ),
        Expectation(
            CONTROL, difference("native statements", "before training", "test"), 0.1, "New facts are not learnt in any form."
        ),
    )
    PLOTS = (
        Plot(
            "Test questions, by what was trained on",
            "0 before, 1 passage, 2 questions, 3 reversed, 4 statements, 5 foreign, 6 random, 7 chosen, 8 by the test",
            "questions answered",
            (
                Curve(
                    "new facts",
                    tuple((float(n), arm, "test") for n, arm in enumerate((BEFORE, *WAYS, RANDOM, CHOSEN, OVERFIT))),
                ),
            ),
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Five forms, a random one per entity, and choices by halving."""
        return (*WAYS, RANDOM, CHOSEN, OVERFIT, BEFORE)

    def prepare(self, seed: int, settings: Settings) -> None:
        """The base."""
        _base(seed, settings)

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Choose where the arm chooses, train, and ask."""
        base, world = _base(seed, settings), Entities(seed=1000 + seed)
        facts = np.random.default_rng((seed, 28)).permutation(NEW_ENTITIES * ATTRIBUTES)
        reward, test = facts[: settings.asked], facts[settings.asked :]
        rng, found, way = np.random.default_rng((seed, again)), {}, arm
        if arm in (CHOSEN, OVERFIT):
            way, found = _choose(base, world, reward if arm == CHOSEN else test, settings, rng)
        model = base if arm == BEFORE else _trained(base, world, _rows(world, way, rng), settings, rng)
        known = np.arange(KNOWN_ENTITIES)
        asked = {name: _right(model, world, own, "eval").mean() for name, own in (("reward", reward), ("test", test))}
        return found | {**asked, "known": float(_right(model, world, known, "train").mean())}


def _base(seed: int, settings: Settings) -> GPT:
    levels = tuple((level, 1.0) for level in TAUGHT_FORMS)
    options = (("seed", 1000 + seed),)
    return base_model(seed, Recipe(levels, (("full", 1.0),), steps=settings.base, world="entities", options=options))


def _rows(world: Entities, way: str, rng: np.random.Generator) -> Pairs:
    """All new facts in one form; of a random edit every entity has a form of its own."""
    drawn = rng.choice(list(WAYS.values()), NEW_ENTITIES) if way == RANDOM else np.full(NEW_ENTITIES, WAYS[way])
    every = itertools.product(enumerate(drawn.tolist()), range(ATTRIBUTES))
    return list(
        dict.fromkeys(world.state_fact(KNOWN_ENTITIES + entity, attribute, level) for (entity, level), attribute in every)
    )


def _trained(base: GPT, world: Entities, rows: Pairs, settings: Settings, rng: np.random.Generator, steps: int = 0) -> GPT:
    """A copy after steps of equal target tokens; beside them known facts, so that no arm forgets how to answer."""
    model, sizes = copy.deepcopy(base), [len(target.split()) + 1 for _, target in rows]
    count = max(round(settings.tokens / float(np.mean(sizes))), 1)
    known = [
        world.state_fact(n, a, level) for n in range(KNOWN_ENTITIES) for a in range(ATTRIBUTES) for level in TAUGHT_FORMS
    ]

    def batch(_: int) -> Batch:
        own = [rows[place] for place in rng.integers(len(rows), size=count)]
        own += [known[place] for place in rng.integers(len(known), size=settings.known)]
        return Batch([prompt for prompt, _ in own], [target for _, target in own])

    fit(model, batch, Schedule(steps or settings.steps, settings.rate, warm=5))
    return model


def _choose(
    base: GPT, world: Entities, questions: np.ndarray, settings: Settings, rng: np.random.Generator
) -> tuple[str, dict[str, float]]:
    """The form that halving is left with, the passage being the reference; and what it saw."""
    names, first = list(WAYS), int(rng.integers(2**31))

    def run(place: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        own = np.random.default_rng((first, seed))
        model = _trained(base, world, _rows(world, names[place], own), settings, own, settings.short)
        return _right(model, world, questions, "eval"), np.zeros(0)

    done = halve(len(names), run, len(questions), runs=settings.runs, seeds=itertools.count())
    reliability = 0.0 if done.ranking is None else done.ranking.reliability.value
    return names[done.best], {"place of the choice": float(done.best), "reliability": reliability}


def _right(model: GPT, world: Entities, facts: np.ndarray, split: str) -> np.ndarray:
    """Whether the other question is answered about each fact, 0 or 1."""
    asked = [world.make(int(place), 2.0, split) for place in facts]
    said = [model.language.decode(own) for own in model.write([str(one.prompt) for one in asked], 2)]
    return np.array([own == one.answer for own, one in zip(said, asked, strict=True)], dtype=float)
