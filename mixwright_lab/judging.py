"""Judging of a finding: contrasts paired by seed, Holm's correction, a noise floor, and the word; the same rule for all.

A contrast is formed within each seed, so that what arms of a seed share (world, starting point) drops out. Its interval is
Student's t over seeds at the confidence that Holm's procedure leaves it: 1 - 0.05 p / p', p' being its adjusted p value. So
the interval excludes 0 where the contrast is significant among all of the finding.

The noise floor says how large a contrast would be, with 95 % probability, if its arms did not differ at all, judged by two
runs of one arm that differ in nothing but the seed of their training: t * sqrt(mean(d^2) / 2 * sum(w^2) / n), d being what
the twins differ by, w the weights of the contrast. Nothing smaller is called reproduced.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from mixwright.errors import InputError
from mixwright.estimates.intervals import holm, t_quantile, t_tail
from mixwright_lab.contracts import Expectation

CANNOT_SHOW: Final = "cannot be shown here"
"""Word of a finding whose positive control is not reproduced."""
Word = Literal["refuted", "not reproduced", "inconclusive", "in part", "reproduced", "cannot be shown here"]
WORDS_WORST_FIRST: tuple[Word, ...] = (
    "refuted", "not reproduced", "inconclusive", CANNOT_SHOW, "in part", "reproduced",
)  # fmt: skip
"""From the worst to the best."""
MIN_SEEDS = 5
"""Paired seeds below which nothing is decided."""
LARGEST_READING = 1e100
"""Size up to which a reading counts as finite: sums of squares of larger ones are not."""
FAMILY_ALPHA = 0.05
"""Two-sided, over all contrasts of a finding."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one arm gave with one seed."""

    arm: str
    """Name of the arm."""
    seed: int
    """Shared by the arms that are compared."""
    readings: Mapping[str, float]
    """Numbers by name."""
    seconds: float
    """CPU time."""
    again: bool = False
    """The second run of the noise arm."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of one expectation."""

    name: str
    """Of the contrast."""
    unit: str
    """Of value, ends and sizes."""
    value: float
    """Mean over seeds."""
    low: float
    """Lower end of the interval, at the confidence that Holm's procedure leaves it."""
    high: float
    """Upper end."""
    p: float
    """Two-sided, after Holm's correction."""
    least: float
    """Least size that was asked for, fixed before the run."""
    noise: float | None
    """Noise floor; None where no noise arm has its readings."""
    word: Word
    """By this contrast alone."""
    points: tuple[float, ...]
    """The contrast in each seed."""


def word_of(value: float, low: float, high: float, least: float, seeds: int, floor: float = 0.0) -> Word:
    """The word of one contrast, first match: fewer than five seeds decide nothing.

    Args:
        value: mean over seeds.
        low: lower end of its interval.
        high: upper end.
        least: size that it must have, above 0.
        seeds: paired.
        floor: of the noise: no smaller contrast is reproduced, but noise does not make one "not reproduced".
    """
    if seeds < MIN_SEEDS:
        return "inconclusive"
    if low > 0 and value >= max(least, floor):
        return "reproduced"
    if high < 0:
        return "refuted"
    if high < least:
        return "not reproduced"
    if low > 0:
        return "in part"
    return "inconclusive"


def decide(found: Sequence[Judged], primary: str, control: str = "") -> Word:
    """Return the word of a finding: that of its primary contrast, if its control is reproduced.

    Args:
        found: all of its contrasts.
        primary: name of the contrast that gives the word.
        control: name of the contrast that has to be reproduced for it to say anything; empty without one.
    """
    word_by_name: dict[str, Word] = {one.name: one.word for one in found}
    word = word_by_name[primary]
    return CANNOT_SHOW if control and word != "inconclusive" and word_by_name[control] != "reproduced" else word


def judge(expected: Sequence[Expectation], rows: Sequence[Row], noise: Sequence[str]) -> list[Judged]:
    """Judge each expectation.

    Args:
        expected: contrasts, judged together.
        rows: of all arms and seeds.
        noise: arms that were run twice.

    Raises:
        InputError: a reading that an expectation names is missing, or is no finite number.
    """
    formed = [contrast_by_seed(one, rows) for one in expected]
    plain = [_mean(values) for values in formed]
    adjusted = holm([p for _, _, p in plain])
    found = []
    for one, values, (mean, error, p), corrected in zip(expected, formed, plain, adjusted, strict=True):
        half = 0.0
        if error > 0:
            level = FAMILY_ALPHA / min(len(expected), corrected / p if p > 0 else len(expected))
            half = error * t_quantile(len(values) - 1, 1 - level) if len(values) > 1 else math.inf
        floors = (noise_floor(one, rows, arm, len(values)) for arm in noise)
        floor = next((floor for floor in floors if floor is not None), None)
        word = word_of(mean, mean - half, mean + half, one.least, len(values), floor or 0.0)
        shown = (one.name, one.unit, mean, mean - half, mean + half, corrected, one.least, floor, word)
        found.append(Judged(*shown, tuple(float(value) for value in values)))
    return found


def contrast_by_seed(expected: Expectation, rows: Sequence[Row]) -> np.ndarray:
    """The contrast of each seed that has all of its arms, shape (seeds,), seeds ascending."""
    known = {(row.arm, row.seed): row.readings for row in rows if not row.again}
    arms = {term.arm for term in expected.terms}
    seeds = sorted({row.seed for row in rows if all((arm, row.seed) in known for arm in arms)})
    found = np.zeros(len(seeds))
    for place, seed in enumerate(seeds):
        for term in expected.terms:
            reading = known[term.arm, seed].get(term.reading)
            if reading is None or not abs(reading) <= LARGEST_READING:
                raise InputError(f"a finite {term.reading!r} of arm {term.arm!r}", str(reading), "Correct the finding.")
            found[place] += term.weight * reading
    return found


def noise_floor(expected: Expectation, rows: Sequence[Row], noise: str, seeds: int) -> float | None:
    """Size that the contrast would not exceed in 95 % of runs if its arms were all the noise arm; None without twins."""
    first = {row.seed: row.readings for row in rows if row.arm == noise and not row.again}
    twins = {row.seed: row.readings for row in rows if row.arm == noise and row.again}
    readings = {term.reading for term in expected.terms}
    both = [(first[seed], twins[seed]) for seed in twins if seed in first]
    if not seeds or not both or any(reading not in side for reading in readings for pair in both for side in pair):
        return None
    variance = sum(
        term.weight**2 * float(np.mean([(a[term.reading] - b[term.reading]) ** 2 for a, b in both])) / 2
        for term in expected.terms
    )
    return t_quantile(len(both)) * math.sqrt(variance / seeds)


def _mean(values: np.ndarray) -> tuple[float, float, float]:
    """Mean, its standard error, and the two-sided p value of a mean of 0."""
    if not len(values):
        raise InputError("a seed that all arms of a contrast were run with", "none", "Run the missing arms.")
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    if error == 0:
        return mean, error, 1.0 if len(values) < 2 or mean == 0 else 0.0
    return mean, error, t_tail(mean / error, len(values) - 1)
