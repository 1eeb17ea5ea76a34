"""Words of findings: values by hand, the share of "reproduced" under nulls, power as the t distribution has it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from mixwright.errors import InputError
from mixwright_lab.contracts import Expectation, Term, difference
from mixwright_lab.judging import CANNOT_SHOW, WORDS_WORST_FIRST, Row, decide, judge, noise_floor, word_of

EASY = Expectation("a - b", difference("a", "b", "x"), 0.1, "b is above a")


def rows_of(readings: dict[str, list[float]], twin: str = "", twins: tuple[float, ...] = ()) -> list[Row]:
    found = [Row(arm, seed, {"x": value}, 1.0) for arm, values in readings.items() for seed, value in enumerate(values)]
    return found + [Row(twin, seed, {"x": value}, 1.0, again=True) for seed, value in enumerate(twins)]


@pytest.mark.parametrize(
    ("value", "low", "high", "word"),
    [
        (0.20, 0.15, 0.25, "reproduced"),
        (0.10, 0.01, 0.19, "reproduced"),
        (-0.2, -0.3, -0.1, "refuted"),
        (0.02, -0.04, 0.08, "not reproduced"),
        (0.05, 0.01, 0.09, "not reproduced"),
        (0.08, 0.02, 0.14, "in part"),
        (0.08, -0.1, 0.26, "inconclusive"),
        (0.20, -0.1, 0.5, "inconclusive"),
    ],
)
def test_words_are_the_first_that_match(value: float, low: float, high: float, word: str) -> None:
    assert word_of(value, low, high, 0.1, 5) == word
    assert word_of(value, low, high, 0.1, 4) == "inconclusive"


def test_one_contrast_has_the_plain_t_interval() -> None:
    own, other = [0.9, 0.8, 0.7, 0.9, 0.8], [0.5, 0.5, 0.3, 0.4, 0.5]
    (found,) = judge([EASY], rows_of({"a": own, "b": other}), ["b"])
    word = found.word
    differences = np.subtract(own, other)
    low, high = stats.t.interval(0.95, 4, differences.mean(), stats.sem(differences))
    assert (found.value, found.low, found.high) == pytest.approx((differences.mean(), low, high), abs=1e-6)
    assert found.p == pytest.approx(stats.ttest_rel(own, other).pvalue, rel=1e-6)
    assert (found.noise, found.word, word) == (None, "reproduced", "reproduced")


def test_intervals_exclude_zero_exactly_where_holm_rejects() -> None:
    rng = np.random.default_rng(5)
    seen = set()
    for _ in range(200):
        expected = [Expectation(f"{n}", (Term("a", f"{n}"),), 0.01, "no") for n in range(4)]
        shift = rng.choice([0, 0.6, 1.2], 4)
        rows = [Row("a", seed, {f"{n}": float(rng.normal(shift[n])) for n in range(4)}, 1.0) for seed in range(8)]
        found = judge(expected, rows, ["a"])
        for one in found:
            assert (one.p < 0.05) == (one.low > 0 or one.high < 0)
            seen.add(one.p < 0.05)
    assert seen == {True, False}


def test_the_primary_contrast_gives_the_word_if_its_control_is_reproduced() -> None:
    good = Expectation("a - b", difference("a", "b", "x"), 0.1, "no")
    bad = Expectation("b - a", difference("b", "a", "x"), 0.1, "no")
    rows = rows_of({"a": [0.9, 0.8, 0.9, 0.8, 0.9], "b": [0.1, 0.1, 0.2, 0.1, 0.1]})
    found = judge([good, bad], rows, ["a"])
    assert [one.word for one in found] == ["reproduced", "refuted"]
    assert (decide(found, "a - b"), decide(found, "b - a")) == ("reproduced", "refuted")
    assert decide(found, "b - a", "a - b") == "refuted"
    assert decide(found, "a - b", "b - a") == CANNOT_SHOW


def test_the_noise_floor_by_hand_and_what_it_does() -> None:
    rows = rows_of({"a": [0.9, 0.8, 0.9, 0.8, 0.9], "b": [0.7, 0.7, 0.7, 0.6, 0.7]}, "b", (0.1, 1.3, 0.1, 1.2, 0.1))
    squares = np.mean([0.36, 0.36, 0.36, 0.36, 0.36])
    by_hand = stats.t.ppf(0.975, 5) * math.sqrt(squares / 2 * 2 / 5)
    assert noise_floor(EASY, rows, "b", 5) == pytest.approx(by_hand)
    (found,) = judge([EASY], rows, ["b"])
    word = found.word
    assert found.low > 0.1, "it would be reproduced by its interval"
    assert (found.noise, word) == (pytest.approx(by_hand), "in part"), "but two runs of one arm differ by more"


@pytest.mark.parametrize(("low", "high", "word"), [(0.03, 0.04, "in part"), (-0.01, 0.01, "not reproduced")])
def test_noise_does_not_make_a_contrast_not_reproduced(low: float, high: float, word: str) -> None:
    assert word_of((low + high) / 2, low, high, 0.02, 5, 0.1) == word


def test_all_seeds_alike_have_no_width() -> None:
    (found,) = judge([EASY], rows_of({"a": [1.0] * 5, "b": [0.0] * 5}), ["b"])
    word = found.word
    assert (found.low, found.high, found.p, word) == (1.0, 1.0, 0.0, "reproduced")
    (found,) = judge([EASY], rows_of({"a": [1.0] * 5, "b": [1.0] * 5}), ["b"])
    word = found.word
    assert (found.low, found.high, found.p, word) == (0.0, 0.0, 1.0, "not reproduced")


def test_a_missing_or_infinite_reading_is_named() -> None:
    rows = [Row("a", 0, {"x": math.inf}, 1.0), Row("b", 0, {}, 1.0)]
    with pytest.raises(InputError, match="a finite 'x' of arm 'a'"):
        judge([EASY], rows, ["a"])
    with pytest.raises(InputError, match="a seed that all arms"):
        judge([EASY], rows[:1], ["a"])


def simulated(shift: float, contrasts: int, seeds: int, findings: int, *, twins: bool = True) -> float:
    """Share of simulated findings that are called reproduced; arms of unit spread, all contrasts shifted alike."""
    rng = np.random.default_rng((int(shift * 100), contrasts, seeds))
    expected = [Expectation(f"{n}", difference("a", "b", f"{n}"), 0.01, "no") for n in range(contrasts)]
    words = []
    for _ in range(findings):
        drawn = rng.normal(size=(3, seeds, contrasts))
        drawn[0] += shift
        rows = [
            Row(arm, seed, {f"{n}": drawn[place, seed, n] for n in range(contrasts)}, 1.0, again)
            for place, (arm, again) in enumerate((("a", False), ("b", False), ("b", True))[: 2 + twins])
            for seed in range(seeds)
        ]
        words.append(min((one.word for one in judge(expected, rows, ["b"])), key=WORDS_WORST_FIRST.index))
    return words.count("reproduced") / findings


@pytest.mark.slow
@pytest.mark.parametrize("contrasts", [1, 3])
def test_nulls_are_called_reproduced_no_more_often_than_nominal(contrasts: int) -> None:
    share = simulated(0.0, contrasts, 5, 2000)
    assert share <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 2000)


def test_power_is_that_of_the_t_test_and_the_noise_floor_costs_some() -> None:
    seeds, shift = 8, 1.5
    theory = stats.nct.sf(stats.t.ppf(0.975, seeds - 1), seeds - 1, shift / math.sqrt(2 / seeds))
    assert simulated(shift, 1, seeds, 2000, twins=False) == pytest.approx(theory, abs=0.03)
    assert theory - 0.15 < simulated(shift, 1, seeds, 2000) < theory
