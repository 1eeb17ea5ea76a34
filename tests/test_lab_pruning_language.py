"""Comparisons of numbers, and what the finding on pruning keeps of them: by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from mixwright_lab.pruned import KEPT_SHARE, Settings, best_of, error, examples, trained
from mixwright_lab.worlds.comparison import ANSWERS, DIGITS, Comparison, language, shares


@pytest.mark.parametrize("level", range(1, DIGITS + 1))
@pytest.mark.parametrize("split", ["train", "eval"])
def test_the_digit_of_the_level_is_the_first_that_differs_and_decides(level: int, split: str) -> None:
    for index in range(20):
        example = Comparison().make(index, float(level), split)
        digits = [int(word) for word in str(example.prompt).split()]
        one, other = digits[:DIGITS], digits[DIGITS:]
        assert next(place for place in range(DIGITS) if one[place] != other[place]) == level - 1
        assert example.answer == (">" if one > other else "<")
        assert example.split == split


def test_shares_are_those_of_pairs_of_different_numbers() -> None:
    counts = Counter()
    for pair in range(4**4):  # first two digits; what follows is settled where one of them differs
        a, b, c, d = pair // 64, pair // 16 % 4, pair // 4 % 4, pair % 4
        counts[1 if a != c else 2 if b != d else 3] += 1
    assert shares()[:2] == pytest.approx(np.array([counts[1], counts[2]]) / 256 / (1 - 4.0**-DIGITS))
    assert shares().sum() == pytest.approx(1)


def test_the_highest_scores_of_each_answer_are_kept() -> None:
    answers = np.array([0] * 10 + [1] * 10)
    score = np.array([*range(10), *range(100, 110)], dtype=float)
    assert sorted(best_of(score, answers)) == [7, 8, 9, 17, 18, 19]
    assert sorted(best_of(-score, answers)) == [0, 1, 2, 10, 11, 12]
    assert KEPT_SHARE == 0.3


def test_labels_are_wrong_as_often_as_said_and_marked() -> None:
    clean, noisy = (examples(400, noise, np.random.default_rng(5)) for noise in (0.0, 0.05))
    assert not clean.wrong.any()
    assert 5 <= noisy.wrong.sum() <= 40
    assert ((clean.answers != noisy.answers) == noisy.wrong).all()
    words = language()
    for row in np.flatnonzero(noisy.wrong)[:3]:
        assert words.decode(noisy.responses[row].tolist()) == f"# {ANSWERS[noisy.answers[row]]}"


def test_the_model_learns_the_first_digit_at_once() -> None:
    settings = Settings(test=60)
    rows = examples(600, 0.0, np.random.default_rng(1))
    before = error(trained(rows, np.arange(600), 1, 0, settings), settings)
    after = error(trained(rows, np.arange(600), 150, 0, settings), settings)
    assert after < 0.25 < before
