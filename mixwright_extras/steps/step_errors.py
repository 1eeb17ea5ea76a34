"""Steps of rows that can be verified without a model, and whether wrong ones stand together in rows, beside chance.

A step is an equation between numbers, or the number that a turn answers to an expression in the turn before. It is right or
wrong by what stands in it, so that what goes on rightly from a wrong value is right. What states a wrong value again is
counted once.

Source: Sinha et al. 2025 (arXiv 2509.09677) count steps by the state that stands in the context, as it is done here.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixwright.extend import (
    UNTRAINED_TURNS,
    Equation,
    Example,
    Interval,
    Message,
    is_masked,
    is_trained,
    jackknife,
    mask_of,
    read_equations,
)

MAX_ANSWER_WORDS = 4
"""Words beside the number of a turn that answers an expression."""
SIZES = (10, 100, 1000)
"""Bounds of the largest number of a step, by which steps are of one kind."""
LEAST_OF_A_KIND = 8
"""Steps of one kind, below which they join those of other rare kinds."""
MAX_STRATA, WRONG_OF_A_STRATUM = 20, 3
"""Strata of steps that are as likely to be wrong, and mistakes that are expected in one."""
RIDGE, FITS = 1.0, 30
"""Penalty on the coefficients of a step's chance to be wrong, and rounds of fitting them."""
ROUNDS, MAX_STEPS = 400, 20_000
"""Permutations of the null, and steps of a task that they are made on."""
_NUMBER = re.compile(r"[-\u2212]?\s?[$\u20ac\u00a3]?\d[\d,]*(?:\.\d+)?")
_END_OF_QUESTION = " \t\r\f\v\xa0=?.:!"


class Step(NamedTuple):
    """One step of a row."""

    kind: str
    """Operation, and size of its numbers."""
    is_right: bool
    """By what stands in it."""
    is_repeat: bool
    """It states a wrong value that a step before it has stated of the same."""
    text: str
    """As it stands there; of an answer with its question."""
    right: Fraction
    """What it should state."""
    turn: int
    """The assistant's turn that it stands in, counted from 0."""
    span: tuple[int, int] | None
    """Characters of that turn; None where it is the turn."""
    size: float = 0.0
    """Of its largest number: log10 of one more."""


class Turn(NamedTuple):
    """One turn of the assistant."""

    question: str
    """The user's turn before it."""
    text: str
    masked: Sequence[tuple[int, int]]
    """Its parts that are not trained on."""


def read_steps(example: Example) -> list[Step]:
    """The steps of a row's turns of the assistant, in their order, without those that are not trained on."""
    steps: list[Step] = []
    facts: set[tuple[str, tuple[Fraction, ...], Fraction]] = set()
    for number, (question, text, masked) in enumerate(read_turns(example)):
        for equation, span in _equations(question, text):
            fact = (equation.operation, equation.operands, equation.stated)
            if not is_masked(span or (0, len(text)), masked):
                size = max(map(abs, equation.operands), default=Fraction(0))
                kind = f"{equation.operation} {sum(size >= bound for bound in SIZES)}"
                is_repeat = not equation.is_right and fact in facts
                log_size = math.log10(1 + min(float(size), 1e18))
                told = (equation.is_right, is_repeat, equation.text, equation.true, number, span)
                steps.append(Step(kind, *told, log_size))
            facts.add(fact)
    return steps


def read_turns(example: Example) -> list[Turn]:
    """The assistant's turns of a row with a completion."""
    prompt, target = example.prompt, example.target or ()
    talk: list[Message] = [*(({"role": "user", "content": prompt},) if isinstance(prompt, str) else prompt)]
    talk += [{"role": "assistant", "content": target}] if isinstance(target, str) else target
    untrained, turns = set(example.extra.get(UNTRAINED_TURNS, ())), list[Turn]()
    for place, message in enumerate(talk):
        if message["role"] == "assistant":
            text, before = message["content"], talk[place - 1] if place else message
            is_whole = len(turns) in untrained or not is_trained(message)
            masked = [(0, len(text))] if is_whole else mask_of(example) if place == len(talk) - 1 else ()
            turns.append(Turn(before["content"] if before["role"] == "user" else "", text, masked))
    return turns if example.target is not None else []


def _equations(question: str, text: str) -> Iterator[tuple[Equation, tuple[int, int] | None]]:
    """Equations of a turn with their places; or the one that it makes with the expression that was asked for."""
    found = read_equations(text)
    yield from ((one, one.span) for one in found)
    numbers = _NUMBER.findall(text)
    if found or len(numbers) != 1 or len(text.split()) > MAX_ANSWER_WORDS + 1 or "=" in text:
        return
    asked = question.rpartition("\n")[2].rstrip(_END_OF_QUESTION)
    joined = read_equations(f"{asked} = {numbers[0]}")
    if len(joined) == 1 and joined[0].span[1] == len(asked) + 3 + len(numbers[0]):
        yield joined[0], None


class Clustering(NamedTuple):
    """How the mistakes of a task stand in its rows."""

    correlation: Interval | None
    """Intraclass correlation of wrong steps within rows; None where it cannot be told."""
    null: float = 0.0
    """Its mean where mistakes are exchanged between rows, among steps that are as likely to be wrong."""
    chance: float = 1.0
    """Share of such exchanges that give at least as many pairs of wrong steps in one row; at least 1 / (rounds + 1)."""


class TaskSteps:
    """The steps of one task's rows: counts of all, and what the null needs of the first `MAX_STEPS`, texts left out."""

    def __init__(self) -> None:
        self.rows = self.steps = self.wrong = 0
        """Rows, steps without repeats of a wrong one, and those of them that are wrong."""
        self.after, self.else_ = (0, 0), (0, 0)
        """Wrong steps and steps with a wrong one before them in the row, and without."""
        self._lengths: list[int] = []
        self._kinds: list[str] = []
        self._sizes: list[float] = []
        self._wrong = bytearray()
        self._is_full = False

    def add(self, row: Sequence[Step]) -> None:
        """Counts a row; what states a wrong value again is left out."""
        kept = [step for step in row if not step.is_repeat]
        if not kept:
            return
        self.rows += 1
        self.steps += len(kept)
        wrong = [not step.is_right for step in kept]
        first = wrong.index(True) + 1 if True in wrong else len(wrong)
        self.wrong += sum(wrong)
        self.after = (self.after[0] + sum(wrong[first:]), self.after[1] + len(wrong[first:]))
        self.else_ = (self.else_[0] + sum(wrong[:first]), self.else_[1] + first)
        self._is_full |= len(self._lengths) >= 2 and len(self._kinds) + len(kept) > MAX_STEPS
        if not self._is_full:
            self._lengths.append(len(kept))
            self._kinds += [sys.intern(step.kind) for step in kept]
            self._sizes += [step.size for step in kept]
            self._wrong += bytes(wrong)

    def find_clustering(self, rng: np.random.Generator) -> Clustering:
        """Correlation of mistakes within rows.

        Args:
            rng: of the null.
        """
        if self.wrong in (0, self.steps) or self.steps <= self.rows:
            return Clustering(None)
        lengths, wrong = np.array(self._lengths, np.int64), np.frombuffer(self._wrong, np.uint8).astype(bool)
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        places = np.concatenate([np.arange(length) for length in lengths])
        exchanged = _exchange(wrong, _strata(self._kinds, np.array(self._sizes), places, wrong), rng)
        by_row = np.add.reduceat(exchanged, starts, axis=1, dtype=np.int64)
        own = np.add.reduceat(wrong, starts, dtype=np.int64)
        pairs = (own * (own - 1)).sum()
        reached = int(((by_row * (by_row - 1)).sum(1) >= pairs).sum())
        parts = np.stack([_parts(lengths, counted) for counted in (own, *by_row)])
        null = float(np.mean([_correlation(part.sum(0)) for part in parts[1:]]))
        return Clustering(jackknife(parts[0], _correlation), null, (reached + 1) / (ROUNDS + 1))


def _strata(
    kinds: Sequence[str], sizes: NDArray[np.float64], places: NDArray[np.int64], wrong: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Number of the stratum of each step: steps that are about as likely to be wrong, by operation, numbers and place."""
    counts = Counter(kinds)
    names = [kind if counts[kind] >= LEAST_OF_A_KIND else "" for kind in kinds]
    codes = np.unique(names, return_inverse=True)[1]
    columns = [sizes, sizes**2, np.log1p(places), places == 0, *(codes == code for code in range(1, codes.max() + 1))]
    chances = _fit_chances(np.stack(columns, axis=1).astype(float), wrong)
    distinct, places_of = np.unique(chances.round(6), return_inverse=True)
    expected = distinct * np.bincount(places_of)
    count = int(np.clip(wrong.sum() // WRONG_OF_A_STRATUM, 1, MAX_STRATA))
    middle = (np.cumsum(expected) - expected / 2) / expected.sum()  # steps of one chance are in one stratum
    return (middle * count).astype(np.int64)[places_of]


def _fit_chances(features: NDArray[np.float64], wrong: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Chance of each step to be wrong, by logistic regression with a small penalty.

    Args:
        features: shape (steps, features).
        wrong: shape (steps,); neither all nor none.
    """
    spread = features.std(axis=0)
    columns = (features - features.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    columns = np.concatenate([np.ones((len(wrong), 1)), columns], axis=1)
    penalty = RIDGE * np.eye(columns.shape[1])
    penalty[0, 0] = 1e-6
    coefficients = np.zeros(columns.shape[1])
    coefficients[0] = np.log(wrong.mean() / (1 - wrong.mean()))
    for _ in range(FITS):
        chances = 1 / (1 + np.exp(-np.clip(columns @ coefficients, -30, 30)))
        weighted = columns * (chances * (1 - chances))[:, None]
        slope = columns.T @ (wrong - chances) - penalty @ coefficients
        step = np.linalg.solve(weighted.T @ columns + penalty, slope)
        coefficients += step / max(1.0, float(np.abs(step).max()))  # no leap beyond what the curve is good for
    return 1 / (1 + np.exp(-np.clip(columns @ coefficients, -30, 30)))


def _exchange(wrong: NDArray[np.bool_], strata: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Shape (rounds, steps): the mistakes dealt out anew among the steps of each stratum."""
    dealt = np.zeros((ROUNDS, len(wrong)), bool)
    for stratum in np.unique(strata[wrong]):
        members = np.flatnonzero(strata == stratum)
        dealt[:, members] = rng.permuted(np.tile(wrong[members], (ROUNDS, 1)), axis=1)
    return dealt


def _parts(lengths: NDArray[np.int64], wrong: NDArray[np.int64]) -> NDArray[np.float64]:
    """Shape (rows, 5): what the correlation is made of, by row."""
    ones = np.ones(len(lengths))
    return np.stack([ones, lengths, lengths**2, wrong, wrong**2 / lengths], axis=1).astype(float)


def _correlation(sums: NDArray[np.float64]) -> float:
    """One-way analysis of variance with rows of unequal length (Donner and Koval 1980)."""
    rows, steps, squares, wrong, between = sums
    if rows < 2 or steps <= rows:
        return 0.0
    mean_square_between = (between - wrong**2 / steps) / (rows - 1)
    mean_square_within = (wrong - between) / (steps - rows)
    usual = (steps - squares / steps) / (rows - 1)
    total = mean_square_between + (usual - 1) * mean_square_within
    return float((mean_square_between - mean_square_within) / total) if total > 0 else 0.0
