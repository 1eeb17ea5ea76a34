"""Pairs of right and wrong answers: distances, classes of errors, near misses, balance of lengths, the null; by hand."""

from __future__ import annotations

import numpy as np
import pytest

from mixwright_lab.answer_pairs import (
    Candidate,
    balance_by_length,
    closeness,
    distance,
    error_class,
    longer_chosen_share,
    near_misses,
)


def pair(place: int, near: float, longer: int) -> Candidate:
    return Candidate(place, f"right {place}", f"wrong {place} {near} {longer}", "value", near, longer)


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "abc", 0), ("flaw", "lawn", 2), ("abcd", "bcda", 2)],
)
def test_the_edit_distance_is_levenshteins(one: str, other: str, edits: int) -> None:
    assert distance(list(one), list(other)) == edits == distance(list(other), list(one))
    assert closeness(one, other) == pytest.approx(1 - edits / max(len(one), len(other)))


def test_long_texts_are_compared_by_words() -> None:
    words = [f"word{n}" for n in range(200)]
    assert closeness(" ".join(words), " ".join(["other", *words[1:]])) == pytest.approx(1 - 1 / 200)


@pytest.mark.parametrize(
    ("chosen", "rejected", "cut", "kind"),
    [
        ("add(3, 5)", "add(3, 6)", False, "value"),
        ("sub(3, 5)", "sub(5, 3)", False, "order"),
        ("42", "", False, "empty"),
        ("42", "4", True, "cut"),
    ],
)
def test_wrong_answers_have_a_class(chosen: str, rejected: str, cut: bool, kind: str) -> None:
    assert error_class(chosen, rejected, cut=cut) == kind


def test_near_misses_are_one_edit_away_and_say_which() -> None:
    found = list(near_misses("add(31, 5)", np.random.default_rng(0)))
    kinds = {kind for _, kind in found}
    assert kinds == {"edited: a digit", "edited: two words swapped", "edited: a word left out"}
    assert all(text != "add(31, 5)" for text, _ in found)
    assert all(len(text) == 10 for text, kind in found if kind == "edited: a digit")
    assert list(near_misses("", np.random.default_rng(0))) == []


def test_the_closest_pair_is_taken_where_length_says_nothing() -> None:
    options = [[pair(0, 0.2, 1), pair(0, 0.9, 1)], [pair(1, 0.8, -1)]]
    found, left_out = balance_by_length(options, 0.0)
    assert [(p.prompt_index, p.closeness) for p in found] == [(0, 0.9), (1, 0.8)]
    assert (left_out, longer_chosen_share(found)) == (0, 0.5)


def test_pairs_are_changed_before_they_are_left_out() -> None:
    options = [[pair(n, 0.9, 3), pair(n, 0.9 - 0.1 * n, -2)] for n in range(4)]
    found, left_out = balance_by_length(options, 0.0)
    assert left_out == 0
    assert [p.token_difference for p in found] == [-2, -2, 3, 3]  # where the least closeness is given up
    alone, left_out = balance_by_length([[pair(n, 0.1 * n, 2)] for n in range(6)] + [[pair(6, 0.5, -1)]], 0.0)
    assert left_out == 5
    assert [p.prompt_index for p in alone] == [5, 6]


@pytest.mark.parametrize("tolerance", [0.0, 0.05, 0.3])
def test_length_never_tells_more_than_is_allowed(tolerance: float) -> None:
    rng = np.random.default_rng(1)
    options = [[pair(n, float(rng.random()), int(rng.integers(-2, 6))) for _ in range(3)] for n in range(60)]
    found, _ = balance_by_length(options, tolerance)
    assert abs(longer_chosen_share(found) - 0.5) <= tolerance + 1 / len(found)
