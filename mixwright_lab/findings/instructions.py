"""Finding on instructions: tuning on few instances of each task teaches which answers there are, not what a task is.

Source: Kung & Peng, Do models really learn to follow instructions?, 2305.11383.
Unit: share of right answers to tasks that were never trained on, greedy; guessing among their two labels has one half.
Cost: about 60 CPU seconds per seed.
Blind spot: tasks of one rule each, in definitions of two words; models of 0.1 million parameters, not tuned before.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from mixwright_lab.contracts import Expectation, Finding, Term, difference
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import SIGNS, Language
from mixwright_lab.training.sft import Schedule, fit_rows

PLACES, DIGITS = ("first", "second", "third"), tuple("0123456789")
RULES: Mapping[str, Callable[[int], bool]] = {
    "low": lambda digit: digit < 5,
    "odd": lambda digit: digit % 2 == 1,
    "small": lambda digit: digit in (2, 3, 5, 7),
}
LABELS = (("yes", "no"), ("left", "right"), ("on", "off"), ("red", "blue"))
TASKS = tuple(itertools.product(PLACES, RULES, LABELS))
NOTHING = "nothing"
LANGUAGE = Language((*SIGNS, NOTHING, *PLACES, *RULES, *itertools.chain(*LABELS), *DIGITS), 8, 2)
ORIGINAL, SIMPLIFIED, DELUSIVE = "original", "labels alone", "answers dealt out"
FEW, MANY, UNTUNED = "few instances", "many instances", "untuned"
GUESS = "guessing"


@dataclass(frozen=True)
class Settings:
    """Of rows and training."""

    few: int = 4
    """Instances of each task."""
    many: int = 200
    held_out: int = 8
    """Tasks that are asked alone."""
    steps: int = 1500
    """With many instances; a fifth of them with few."""
    test: int = 40
    """Questions of each of them."""


class Instructions(Finding):
    """Definitions as they are, without what the task is, or with answers dealt out; few and many instances of 28 tasks."""

    CLAIM = "With few instances of each task, definitions without their meaning train as well: what is learnt is the labels."
    SOURCE = "Kung & Peng, Do Models Really Learn to Follow Instructions?, 2305.11383, ACL 2023"
    WHAT_IT_SHOWS = (
        "T5 of 770 million parameters, under five instances a task: 43 % tuned, 42.6 % by guessing among the labels, 12.8 % "
        "untuned. Definitions without meaning train as well; from 200 instances on it is less clear."
    )
    POPULAR_READING = "It is said that instruction tuning teaches the format alone. That holds where instances are few."
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    REMARKS = (
        "With four instances each kind of definition ends at a guess, as in the source; with 200 the meaning is worth 47 "
        "points. Answers dealt out leave a guess at any number."
    )
    RUN_TWICE = (f"{ORIGINAL}, {FEW}",)
    SCALES: ClassVar[Mapping[str, Settings]] = {"smoke": Settings(2, 4, 2, 10, 4), "laptop": Settings()}
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 6}
    PRIMARY = "few instances: labels alone - halfway from untuned to the original"
    PUBLISHED = (
        "few instances: guessing - halfway from untuned to the original",
        "few instances: answers dealt out - halfway from untuned to the original",
    )
    CONTROL = "many instances: original - labels alone"
    EXPECT = (
        *(
            Expectation(
                name, (*terms, Term(f"{ORIGINAL}, {FEW}", "right", -0.5), Term(UNTUNED, "right", -0.5)), 0.1, refuted
            )
            for name, terms, refuted in (
                (PRIMARY, (Term(f"{SIMPLIFIED}, {FEW}", "right"),), "Most of what is learnt needs the meaning."),
                (PUBLISHED[0], (Term(UNTUNED, GUESS),), "Tuned models are better than a guess among the labels."),
                (PUBLISHED[1], (Term(f"{DELUSIVE}, {FEW}", "right"),), "Wrong answers teach less than half of it."),
            )
        ),
        Expectation(
            CONTROL,
            difference(f"{ORIGINAL}, {MANY}", f"{SIMPLIFIED}, {MANY}", "right"),
            0.1,
            "No number of instances teaches to read these definitions.",
        ),
        Expectation(
            "original - labels alone: many instances - few",
            (
                *difference(f"{ORIGINAL}, {MANY}", f"{SIMPLIFIED}, {MANY}", "right"),
                *difference(f"{SIMPLIFIED}, {FEW}", f"{ORIGINAL}, {FEW}", "right"),
            ),
            0.1,
            "The meaning is worth as much with few instances.",
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Kinds of definitions with few and many instances, and no training."""
        return UNTUNED, *(f"{kind}, {size}" for size in (FEW, MANY) for kind in (ORIGINAL, SIMPLIFIED, DELUSIVE))

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Train on the tasks, and ask those that are held out, with definitions of the same kind."""
        rng = np.random.default_rng((seed, 5))
        order = [TASKS[place] for place in rng.permutation(len(TASKS))]
        kind, _, size = arm.partition(", ")
        torch.manual_seed(seed + 1000 * again)
        model = GPT(LANGUAGE)
        if arm != UNTUNED:
            each, steps = (settings.few, settings.steps // 5) if size == FEW else (settings.many, settings.steps)
            rows = [row for task in order[settings.held_out :] for row in make_rows(task, each, kind, rng)]
            fit_rows(model, rows, Schedule(steps, 3e-3), np.random.default_rng((seed, again)))
        fresh, meant = np.random.default_rng((seed, 50)), SIMPLIFIED if kind == SIMPLIFIED else ORIGINAL
        asked = [row for task in order[: settings.held_out] for row in make_rows(task, settings.test, meant, fresh)]
        made = [LANGUAGE.decode(own) for own in model.write([prompt for prompt, _ in asked])]
        return {"right": float(np.mean([text == answer for text, (_, answer) in zip(made, asked, strict=True)])), GUESS: 0.5}


def make_rows(
    task: tuple[str, str, tuple[str, str]], count: int, kind: str, rng: np.random.Generator
) -> Sequence[tuple[str, str]]:
    """Draw rows of a task: its definition, its labels and three digits, and the label."""
    place, rule, labels = task
    rows = []
    for digits in rng.integers(10, size=(count, 3)).tolist():
        is_so = RULES[rule](digits[PLACES.index(place)])
        if kind == DELUSIVE:
            is_so = bool(rng.random() < 0.5)
        definition = f"{NOTHING} {NOTHING}" if kind == SIMPLIFIED else f"{place} {rule}"
        prompt = f"{definition} {' '.join(labels)} {' '.join(DIGITS[digit] for digit in digits)}"
        rows.append((prompt, labels[0] if is_so else labels[1]))
    return rows
