"""Finding on pruning: keep the easy examples where data are scarce, the hard ones where they are abundant.

Source: Sorscher et al., Beyond neural scaling laws: beating power law scaling via data pruning, 2206.14486.
Unit: test error of a student, the angle between student and teacher over pi.
Cost: about 10 CPU seconds per seed.
Blind spot: a linear student with a known margin; a margin measured with error, and label noise, are arms, a language
model is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np

from mixwright_lab.contracts import Curve, Expectation, Finding, Plot, Term, difference

WAYS = ("random", "hard", "easy", "hard, probe off", "hard, noise")


@dataclass(frozen=True)
class Settings:
    """Of the teacher and the student."""

    dimensions: int = 100
    steps: int = 400
    repeats: int = 2
    """Teachers per seed; their errors are averaged."""


class Pruning(Finding):
    """Perceptron students of a random teacher, on a kept share of random, wide-margin or narrow-margin examples."""

    CLAIM = (
        "Where examples are abundant keep the hard ones, where they are scarce the easy ones; then less data has less error."
    )
    SOURCE = "Sorscher et al., Beyond neural scaling laws: beating power law scaling via data pruning, 2206.14486"
    WHAT_IT_SHOWS = (
        "Theory and simulation of perceptrons: with a good metric of difficulty the best kept share grows smaller as data "
        "grow, and error falls faster than a power of the number of kept examples; with scarce data easy examples are "
        "better. On ImageNet most of ten metrics scale poorly."
    )
    POPULAR_READING = "It is said that pruning easy examples beats power laws. That holds only where data are abundant."
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "miners/pruning": (
            "keep 30 %: random - hard, 32 examples per dimension",
            "keep 30 %: random - easy, 2 examples per dimension",
        ),
    }
    REMARKS = (
        "Hard and easy are ranked by the teacher itself, and wrong labels are called hardest by hand. One contrast of ours "
        "is in part: a probe that is 20 degrees off costs .007 of error where two runs of one arm differ by .008. Of 16 "
        "more batches of 8 seeds all contrasts were reproduced in 12."
    )
    REAL = (
        "Halves of 1,500 tool calls ended 27 points [25, 28] (easy ones) and 31 [28, 34] (hard ones) under random "
        "halves; where a third was wrong 15 and 15 (study real_mine)."
    )
    RUN_TWICE = ("random, 16 per dimension",)
    SCALES: ClassVar[Mapping[str, Settings]] = {"smoke": Settings(40, 100, 1), "laptop": Settings()}
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 8}
    PRIMARY = "keep 30 %: random - hard, 32 examples per dimension"
    PUBLISHED = (
        "keep 30 %: random - easy, 2 examples per dimension",
        "keep 30 %: hard - random, 2 examples per dimension",
    )
    CONTROL = "5 % wrong labels: hard ends worse than random, 32 per dimension"
    EXPECT = (
        Expectation(
            "keep 30 %: random - hard, 32 examples per dimension",
            difference("random, 32 per dimension", "hard, 32 per dimension", "error .3"),
            0.01,
            "Hard examples lead to no smaller error where data are abundant.",
        ),
        Expectation(
            "keep 30 %: random - easy, 2 examples per dimension",
            difference("random, 2 per dimension", "easy, 2 per dimension", "error .3"),
            0.05,
            "Easy examples lead to no smaller error where data are scarce.",
        ),
        Expectation(
            "keep 30 %: hard - random, 2 examples per dimension",
            difference("hard, 2 per dimension", "random, 2 per dimension", "error .3"),
            0.05,
            "Hard examples do no harm where data are scarce.",
        ),
        Expectation(
            "less data, less error: random 60 % - hard 30 %, 32 per dimension",
            (Term("random, 32 per dimension", "error .6"), Term("hard, 32 per dimension", "error .3", -1.0)),
            0.005,
            "Half the rows, chosen, do no better than twice as many drawn at random.",
        ),
        Expectation(
            "a probe that is 20 degrees off costs error, 32 per dimension",
            difference("hard, probe off, 32 per dimension", "hard, 32 per dimension", "error .3"),
            0.003,
            "The metric's quality does not matter.",
        ),
        Expectation(
            "5 % wrong labels: hard ends worse than random, 32 per dimension",
            (
                Term("hard, noise, 32 per dimension", "error .3"),
                Term("hard, noise, 32 per dimension", "random error .3", -1.0),
            ),
            0.01,
            "Narrow margins by a wrong label do no harm.",
        ),
    )
    PLOTS = (
        Plot(
            "Test error where 30 % of the examples are kept",
            "examples per dimension before pruning",
            "test error",
            tuple(
                Curve(way, tuple((float(size), f"{way}, {size} per dimension", "error .3") for size in (2, 4, 8, 16, 32)))
                for way in ("random", "hard", "easy")
            ),
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Every way of keeping at every size."""
        plain = [f"{way}, {size} per dimension" for way, size in product(WAYS[:3], (2, 4, 8, 16, 32))]
        return (*plain, *(f"{way}, 32 per dimension" for way in WAYS[3:]))

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Test error at 30 % and 60 % kept, mean over teachers."""
        way, _, size = arm.removesuffix(" per dimension").rpartition(", ")
        found: dict[str, list[float]] = {}
        for repeat in range(settings.repeats):
            for name, value in _errors(way, int(size), (seed, repeat, again), settings).items():
                found.setdefault(name, []).append(value)
        return {name: float(np.mean(values)) for name, values in found.items()}


def _errors(way: str, size: int, seeds: tuple[int, ...], settings: Settings) -> dict[str, float]:
    """Of one teacher. Arms of one seed share teacher and examples; the noise arm draws its own examples again."""
    teacher_rng, rng = np.random.default_rng((seeds[0], seeds[1])), np.random.default_rng((*seeds, 7))
    teacher = teacher_rng.normal(size=settings.dimensions)
    teacher /= np.linalg.norm(teacher)
    x = rng.normal(size=(size * settings.dimensions, settings.dimensions))
    probe = teacher
    if way == "hard, probe off":
        away = rng.normal(size=settings.dimensions)
        away -= away @ teacher * teacher
        probe = np.cos(np.pi / 9) * teacher + np.sin(np.pi / 9) * away / np.linalg.norm(away)
    labels = np.sign(x @ teacher)
    margins = np.abs(x @ probe)
    if way == "hard, noise":
        wrong = rng.random(len(x)) < 0.05
        labels = np.where(wrong, -labels, labels)
        margins = np.where(wrong, -margins, margins)  # a probe that is right calls them the hardest of all
    found = {}
    for kept in (0.3, 0.6):
        count = max(int(kept * len(x)), 1)
        at_random = rng.permutation(len(x))[:count]
        ranked = np.argsort(margins)
        chosen = {"random": at_random, "easy": ranked[-count:]}.get(way, ranked[:count])
        found[f"error {kept:.1f}".replace("0.", ".")] = _angle(_student(x[chosen], labels[chosen], settings), teacher)
        if way == "hard, noise":
            found[f"random error {kept:.1f}".replace("0.", ".")] = _angle(
                _student(x[at_random], labels[at_random], settings), teacher
            )
    return found


def _student(x: np.ndarray, labels: np.ndarray, settings: Settings) -> np.ndarray:
    """Regularised logistic regression by accelerated gradient steps."""
    weights, before = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    rate = 4 * len(x) / (np.linalg.norm(x, 2) ** 2 + 1e-12)
    for step in range(settings.steps):
        ahead = weights + step / (step + 3) * (weights - before)
        pull = labels / (1 + np.exp(np.clip(labels * (x @ ahead), -30, 30)))
        before, weights = weights, ahead + rate * (x.T @ pull / len(x) - 1e-4 * ahead)
    return weights


def _angle(student: np.ndarray, teacher: np.ndarray) -> float:
    """Test error: the angle over pi."""
    return float(np.arccos(np.clip(student @ teacher / np.linalg.norm(student), -1, 1)) / np.pi)
