"""Relevance of rows to shots: cosines, BM25 and turns, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mixwright_extras.mining.relevance import bm25, choose_in_turn, cosines


def test_cosines_do_not_depend_on_length_and_are_0_for_no_vector() -> None:
    rows = np.array([[2.0, 0.0], [0.0, 0.1], [3.0, 3.0], [0.0, 0.0]])
    found = cosines(rows, np.array([[5.0, 0.0]]))
    assert found[:, 0] == pytest.approx([1.0, 0.0, math.sqrt(0.5), 0.0])


def test_bm25_by_hand() -> None:
    rows = [["a", "b"], ["a", "a", "c", "d"], ["e", "f"]]
    found = bm25(rows, [["a", "c"]])
    mean = 8 / 3
    rare, common = math.log(1 + 2.5 / 1.5), math.log(1 + 1.5 / 2.5)
    first, second = 1.2 * (0.25 + 0.75 * 2 / mean), 1.2 * (0.25 + 0.75 * 4 / mean)
    assert found[:, 0] == pytest.approx(
        [common * 2.2 / (1 + first), common * 2 * 2.2 / (2 + second) + rare * 2.2 / (1 + second), 0.0]
    )


def test_shots_take_turns_and_no_row_is_taken_twice() -> None:
    scores = np.array([[9.0, 9.0], [8.0, 1.0], [7.0, 8.0], [0.0, 0.0]])
    assert choose_in_turn(scores, 3).tolist() == [0, 2, 1]
    assert sorted(choose_in_turn(scores, 9).tolist()) == [0, 1, 2, 3]
