"""Words for changes: each case by hand, and that a family of claims is corrected by all that a word rests on."""

import numpy as np
import pytest

from mixwright.estimates.crossed import Estimate
from mixwright.estimates.intervals import t_quantile, t_tail
from mixwright.estimates.judgement import SIGN_ALPHA, change_word, change_words, evidence, format_word
from mixwright.estimates.outcome import Change, ItemScores, mean_score

DF = 20.0


def estimate(value: float, error: float = 0.01, seeds: int = 8) -> Estimate:
    half = t_quantile(DF) * error
    return Estimate(value, value - half, value + half, t_tail(value / error, DF), error, DF, seeds, 100)


def moved(success, depends=None, sampled=None, sampled_depends=None, *, error=0.01, seeds=8) -> Change:
    depends = success if depends is None else depends
    parts = (estimate(value, error, seeds) for value in (success, success - depends, depends))
    drawn = [None if value is None else estimate(value, error, seeds) for value in (sampled, sampled_depends)]
    return Change(*parts, *drawn, ())


CASES = {
    "worsens": moved(-0.06),
    "improves": moved(0.06),
    "commonest": moved(0.06, 0.0),
    "less dependent": moved(0.0, -0.06),
    "sharper": moved(0.0, 0.0, 0.06, 0.06),
    "no change": moved(0.01),
    "cannot tell": moved(0.02, error=0.03),
}


@pytest.mark.parametrize("word", CASES)
def test_the_word_by_hand(word: str) -> None:
    assert change_word(CASES[word]) == word


def test_success_that_rose_for_no_shown_reason_is_not_called() -> None:
    both = Change(estimate(0.06), estimate(0.03, 0.02), estimate(0.03, 0.02), None, None, ())
    assert change_word(both) == "cannot tell"


def test_samples_that_only_collapsed_are_not_sharper() -> None:
    assert change_word(moved(0.0, 0.0, 0.06, 0.0)) == "no change", "the sampled rise is S"
    assert change_word(moved(0.04, 0.04, 0.09, 0.09, error=0.024)) == "cannot tell", "a greedy gain is not excluded"


def test_what_was_not_measured_gives_no_word() -> None:
    unknown = estimate(float("nan"), float("nan"))
    assert change_word(Change(estimate(0.06), unknown, unknown, None, None, ())) == "cannot tell"
    assert change_word(Change(estimate(-0.06), unknown, unknown, None, None, ())) == "worsens", "a loss is told all the same"


@pytest.mark.parametrize(("seeds", "word"), [(1, "improves"), (2, "cannot tell"), (4, "cannot tell"), (5, "improves")])
def test_a_trial_of_few_seeds_tells_nothing(seeds: int, word: str) -> None:
    assert change_word(moved(0.06, seeds=seeds)) == word


def test_evidence_is_the_largest_p_of_the_parts_and_1_for_the_other_sign() -> None:
    found = evidence(moved(0.05, 0.02))
    assert found["improves"] == pytest.approx(t_tail(2.0, DF))
    assert found["commonest"] == pytest.approx(t_tail(3.0, DF))
    assert found["worsens"] == found["less dependent"] == found["sharper"] == 1.0
    assert evidence(moved(0.05, 0.04), estimate(0.001))["improves"] == pytest.approx(t_tail(0.1, DF))


def test_a_family_is_corrected_by_all_that_a_word_rests_on() -> None:
    """Success truly rises through S in 17 cells: with D uncorrected some cell is called improved far too often."""
    rng, wrong, naive = np.random.default_rng(3), 0, 0
    for _ in range(400):
        cells = [moved(0.2, 0.01 * rng.standard_t(DF)) for _ in range(17)]
        wrong += "improves" in change_words(cells)
        naive += any(cell.estimate.low > 0 and cell.dependence.low > 0 for cell in cells)
    assert wrong / 400 <= 0.05
    assert naive / 400 > 0.2


def test_holm_and_levers_make_words_rarer() -> None:
    weak = moved(0.025, error=0.011)
    assert change_word(weak) == "improves"
    assert change_words([weak] * 5)[0] == "no change"
    assert change_word(weak, times=5) == "no change"
    assert SIGN_ALPHA == 0.05


def test_margins_are_told_in_points() -> None:
    assert format_word("no change", 0.02) == "no change beyond 2 points"
    assert change_word(moved(0.01), margin=0.02) == "cannot tell"


@pytest.mark.parametrize(("p", "word"), [(SIGN_ALPHA, "no change"), (np.nextafter(SIGN_ALPHA, 0), "improves")])
def test_a_p_of_exactly_one_in_twenty_is_not_under_it(p: float, word: str) -> None:
    part = Estimate(0.02, 0.0, 0.04, float(p), 0.01, DF, 8, 100)
    assert change_word(Change(part, part, part, None, None, ())) == word


def test_a_mean_counts_each_task_each_cell_or_each_item_once() -> None:
    """Tasks: (2/3 + 0) / 2; cells: (1/2 + 1 + 0) / 3; items: 2/5."""
    right = {("a", 1.0, "p"): 1.0, ("a", 1.0, "q"): 0.0, ("a", 2.0, "r"): 1.0, ("b", None, "s"): 0.0, ("b", None, "t"): 0.0}
    scores = ItemScores.of({"greedy": right})
    assert mean_score(scores, "greedy", scores.items) == pytest.approx(1 / 3)
    assert mean_score(scores, "greedy", scores.items, by="cells") == pytest.approx(1 / 2)
    assert mean_score(scores, "greedy", scores.items, by="items") == pytest.approx(2 / 5)
