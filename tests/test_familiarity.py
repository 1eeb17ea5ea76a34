"""Familiarity: twins and readings by hand, the words, and a tiny model that learns texts by heart."""

from __future__ import annotations

import numpy as np
import pytest

from mixwright.measure.familiarity import Reading, make_twins, read, word_of
from mixwright.measure.probes.familiarity import lead_of
from mixwright.records import Interval

TEXTS = ["Today Mia has 12 cups and 12 jars, or 345.", "Today Omar has 78 cups and 90 jars, or 678.", "No slot here"]


def test_twins_fill_slots_of_the_same_kind_and_the_same_slot_alike() -> None:
    twins = make_twins(TEXTS, 3, np.random.default_rng(0))
    assert twins[2] == []
    assert len(twins[0]) == 2, "two numbers of two digits, one name, one number of three digits"
    for twin in twins[0]:
        name, first, second, third = (part.strip(",.") for part in np.array(twin.split(" "))[[1, 3, 6, 9]])
        assert (name, third) == ("Omar", "678")
        assert first == second in {"78", "90"}


def test_readings_by_hand() -> None:
    """The lowest fifth of ten tokens are two; of the second half three of five are the first choice."""
    logprobs = -np.arange(10.0)
    hits = np.array([0, 0, 0, 0, 0, 1, 1, 0, 1, 0], bool)
    assert read(logprobs, hits) == Reading(-8.5, 0.6)


def test_a_lead_is_over_the_mean_of_the_twins_that_could_be_read() -> None:
    assert lead_of([Reading(-1.0, 0.5), Reading(-2.0, 0.25), None, Reading(-4.0, 0.25)]) == Reading(2.0, 0.25)
    assert lead_of([None, Reading(-2.0, 0.2)]) is None
    assert lead_of([Reading(-2.0, 0.2), None]) is None


@pytest.mark.parametrize(
    ("lead", "gain", "word"),
    [
        ((0.2, 0.1, 0.3), None, "item seen"),
        ((0.2, 0.1, 0.3), (1.0, 0.9, 1.1), "item seen"),
        ((0.0, -0.2, 0.2), (1.0, 0.9, 1.1), "cannot tell"),
        ((0.0, -0.05, 0.05), (1.0, 0.9, 1.1), "task seen"),
        ((0.0, -0.05, 0.05), (0.0, -0.1, 0.1), "clean"),
        ((0.0, -0.05, 0.05), None, "clean"),
    ],
)
def test_words(lead: tuple[float, float, float], gain: tuple[float, float, float] | None, word: str) -> None:
    assert word_of(Interval(*lead, 40), None if gain is None else Interval(*gain, 40)) == word
