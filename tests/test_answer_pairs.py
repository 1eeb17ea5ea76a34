"""Pairs of right and wrong answers: distances, near misses, balance of lengths; by hand."""

from __future__ import annotations

import numpy as np
import pytest

from mixwright_lab.answer_pairs import (
    Candidate,
    balance_by_length,
    closeness,
    distance,
    longer_chosen_share,
    near_misses,
)


def pair(place: int, near: float, longer: int) -> Candidate:
    return Candidate(place, f"right {place}", f"wrong {place} {near} {longer}", near, longer)


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "abc", 0), ("flaw", "lawn", 2), ("abcd", "bcda", 2)],
)
def test_the_edit_distance_is_levenshteins(one: str, other: str, edits: int) -> None:
    assert distance(list(one), list(other)) == edits == distance(list(other), list(one))
    assert closeness(one, other) == pytest.approx(1 - edits / max(len(one), len(other)))


def test_near_misses_are_one_edit_away() -> None:
    found = near_misses("add(31, 5)", np.random.default_rng(0))
    assert "add(31, 5)" not in found
    digits = [text for text in found if len(text) == 10 and text.startswith("add(") and text.endswith(")") and ", " in text]
    assert all(distance(text, "add(31, 5)") == 1 for text in digits)
    assert digits
    assert len(found) > len(digits)  # words are swapped or left out, too
    assert near_misses("", np.random.default_rng(0)) == []


def test_the_closest_pair_is_taken_where_length_says_nothing() -> None:
    options = [[pair(0, 0.2, 1), pair(0, 0.9, 1)], [pair(1, 0.8, -1)]]
    found = balance_by_length(options, 0.0)
    assert [(p.prompt_index, p.closeness) for p in found] == [(0, 0.9), (1, 0.8)]
    assert longer_chosen_share(found) == 0.5


def test_pairs_are_changed_before_they_are_left_out() -> None:
    options = [[pair(n, 0.9, 3), pair(n, 0.9 - 0.1 * n, -2)] for n in range(4)]
    found = balance_by_length(options, 0.0)
    assert [p.token_difference for p in found] == [-2, -2, 3, 3]  # where the least closeness is given up
    alone = balance_by_length([[pair(n, 0.1 * n, 2)] for n in range(6)] + [[pair(6, 0.5, -1)]], 0.0)
    assert [p.prompt_index for p in alone] == [5, 6]


@pytest.mark.parametrize("tolerance", [0.0, 0.05, 0.3])
def test_length_never_tells_more_than_is_allowed(tolerance: float) -> None:
    rng = np.random.default_rng(1)
    options = [[pair(n, float(rng.random()), int(rng.integers(-2, 6))) for _ in range(3)] for n in range(60)]
    found = balance_by_length(options, tolerance)
    assert abs(longer_chosen_share(found) - 0.5) <= tolerance + 1 / len(found)
