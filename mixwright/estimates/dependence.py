"""Dependence of answers on their prompts: success, the part that any prompt's answer would earn (S), the rest (D).

S, the *swapped success*, is the mean grade of the answers to one prompt of a cell on another prompt of it, over all ordered
pairs of different prompts. Dependence D = success - S; kappa = D / (1 - S), the share of the room above S that is used. A
model that says the same to every prompt, or answers at random, has D = 0 whatever its success is; a perfect one has kappa
1. S is a U-statistic of degree two: its jackknife pseudo-values have exactly the mean S, so that success, S and D of an
item add up, and means over seeds, cells and tasks are those of the pseudo-values. What D cannot see is a guess that reads
the form of the prompt (a template, a sub-group): that is dependence, and counts as such.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.intervals import Numbers, Z, t_quantile
from mixwright.records import Interval

PERMUTATION_ROUNDS = 1999
"""Random permutations of a test."""
UNSEEN_SQUARES = Z * Z
"""Squares added to a spread: Wilson's interval of 0 in n has the same width, so that what no prompt has shown is excluded
only beyond about four of them."""
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Dependence:
    """What the answers of one cell owe to their prompts."""

    success: float
    """Mean grade of answers on their own prompts, 0..1."""
    swapped: Interval
    """S, with a 95 % jackknife interval over prompts."""
    dependence: Interval
    """D = success - S, -1..1."""
    kappa: Interval
    """D / (1 - S), -1..1; (-1, 1) around 0 where S is 1 and there is no room to see anything."""
    items: Array
    """Shape (prompts,): pseudo-values of S; their mean is S, and success of an item minus its own is that item's D."""


def dependence(grades: Array) -> Dependence:
    """From the grade of every prompt's answers on every prompt.

    Args:
        grades: shape (prompts, prompts); [i, j] is the mean grade, 0..1, of the answers to prompt i judged on prompt j. NaN
            where a pair was not judged; each prompt must have been judged on as many others as others on it.

    Raises:
        ValueError: fewer than three prompts.
    """
    n = len(grades)
    if n < 3:
        raise ValueError("dependence needs three prompts")
    success = np.diagonal(grades)
    grades_elsewhere = grades.copy()
    np.fill_diagonal(grades_elsewhere, np.nan)
    return dependence_of_margins(success, np.nanmean(grades_elsewhere, axis=1), np.nanmean(grades_elsewhere, axis=0))


def dependence_of_shifts(grades: Array, shifts: NDArray[np.int64]) -> Dependence:
    """From grades on prompts that are some cyclic shifts away: the table of all pairs of a large cell would fill the memory.

    Args:
        grades: shape (prompts, shifts); [i, k] is the mean grade, 0..1, of the answers to prompt i judged on the prompt
            `shifts[k]` places behind, where the first follows the last.
        shifts: shape (shifts,); different, from 0 to prompts - 1, and the first of them is 0.

    Raises:
        ValueError: fewer than three prompts.
    """
    n, count = grades.shape
    if n == count:
        return dependence(_spread(grades, shifts))
    columns, given, row = (np.arange(n)[:, None] + shifts) % n, np.empty(n), np.zeros(n)
    for place in range(n):  # as rows of the whole table are summed, to the bit
        row[columns[place, 1:]] = grades[place, 1:]
        given[place] = row.sum()
        row[columns[place, 1:]] = 0.0
    received = np.bincount(columns[:, 1:].ravel(), grades[:, 1:].ravel(), n)
    return dependence_of_margins(grades[:, 0], given / (count - 1), received / (count - 1))


def _spread(grades: Array, shifts: NDArray[np.int64]) -> Array:
    """The table of all pairs, where every shift is there."""
    n = len(grades)
    table = np.empty((n, n))
    table[np.arange(n)[:, None], (np.arange(n)[:, None] + shifts) % n] = grades
    return table


def kappa(success: Numbers, swapped: Numbers) -> np.ndarray:
    """(success - S) / (1 - S), -1..1; 0 where S is 1."""
    room = 1 - np.asarray(swapped, dtype=float)
    return np.where(room > 1e-9, np.clip((success - np.asarray(swapped)) / np.maximum(room, 1e-9), -1, 1), 0.0)


def dependence_of_margins(success: Array, given_elsewhere: Array, received: Array) -> Dependence:
    """From margins of the table of grades, each of shape (prompts,), at least three.

    Args:
        success: grade of a prompt's answers on itself.
        given_elsewhere: their mean grade on other prompts.
        received: mean grade of other prompts' answers on it.
    """
    n, swapped = len(success), float(given_elsewhere.mean())
    return dependence_of_items(success, swapped + (n - 1) / (n - 2) * (given_elsewhere + received - 2 * swapped))


def dependence_of_items(success: Array, swapped_pseudovalues: Array) -> Dependence:
    """From success and pseudo-values of S, each of shape (prompts,), at least two; also those of several cells together."""
    item_count, item_dependence, swapped = len(success), success - swapped_pseudovalues, float(swapped_pseudovalues.mean())
    swapped_interval = _interval(swapped_pseudovalues, 1.0, 0.0)
    # a prompt that is known and has another answer than the commonest moves success up and S down, D by (1 + S) / n
    dependence_interval, room = _interval(item_dependence, 1 + swapped, -1.0), 1 - swapped
    kappa = Interval(0.0, -1.0, 1.0, item_count)
    if room > 1e-9:
        value = dependence_interval.value / room
        kappa_pseudovalues = value + (item_dependence - dependence_interval.value) / room
        kappa_pseudovalues += value * (swapped_pseudovalues - swapped) / room
        kappa = _interval(kappa_pseudovalues, 1 / room, -1.0)
    return Dependence(float(success.mean()), swapped_interval, dependence_interval, kappa, swapped_pseudovalues)


def _interval(values: Array, unit: float, lower_bound: float) -> Interval:
    """Mean with a 95 % t interval within (least, 1), of a spread with `UNSEEN_SQUARES` of `unit` more than were seen.

    A skill that few prompts show, all of them upwards, and pseudo-values that are all alike (constant answers; two equally
    common gold answers, all of them right) have too small a spread of their own: plain t covers 15 to 90 % there.
    """
    n, mean = len(values), float(values.mean())
    half_width = t_quantile(n - 1) * math.sqrt(
        (float(((values - mean) ** 2).sum()) + UNSEEN_SQUARES * unit**2) / (n - 1) / n
    )
    return Interval(max(mean, lower_bound), max(mean - half_width, lower_bound), min(mean + half_width, 1.0), n)


def permutation_p(grades: Array, rng: np.random.Generator, rounds: int = PERMUTATION_ROUNDS) -> float:
    """One-sided p value of "answers earn no more on their own prompts than on permuted ones"; exact for any grader.

    Args:
        grades: as for `dependence`, without pairs that are missing.
        rng: of the permutations.
        rounds: how many are drawn.
    """
    item_count, positions = len(grades), np.arange(len(grades))
    if item_count < 2:
        return 1.0
    null = grades[positions, rng.permuted(np.tile(positions, (rounds, 1)), axis=1)].mean(axis=1)
    return _share_reaching(null, np.diagonal(grades).mean())


def permutation_p_of_shifts(grades: Array, shifts: NDArray[np.int64], rng: np.random.Generator) -> float:
    """The same of grades as for `dependence_of_shifts`; where pairs are missing, the shifts stand for permutations."""
    n, count = grades.shape
    if n == count:
        return permutation_p(_spread(grades, shifts), rng)
    means = np.array([column.mean() for column in grades.T])
    return _share_reaching(means[1:], means[0])


def _share_reaching(null: Array, observed: float) -> float:
    """P value of what was observed, among values of the null and itself."""
    return float((1 + (null >= observed - 1e-12).sum()) / (1 + len(null)))
