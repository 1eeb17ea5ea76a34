"""Rollouts to a target when runs miss it: by hand, and coverage by simulation."""

import math

import numpy as np
import pytest

from mixwright.trial.effects import restricted_ratio


def test_ratio_by_hand():
    # means of min(T, 100): 60 and 90 (one run missed, one arrived after the budget)
    found = restricted_ratio([40, 80, 60], [70, None, 140], 100)
    assert found is not None
    assert found.value == pytest.approx(60 / 90)
    left_out = [math.log(140 / 200), math.log(100 / 170), math.log(120 / 170)]
    error = math.sqrt(2 / 3 * sum((value - np.mean(left_out)) ** 2 for value in left_out))
    half = 4.302653 * error  # t of 2 degrees of freedom
    assert (found.low, found.high) == (
        pytest.approx(2 / 3 * math.exp(-half), rel=1e-5),
        pytest.approx(2 / 3 * math.exp(half), rel=1e-5),
    )
    assert found.n == 3


def test_a_run_that_misses_counts_with_the_whole_budget_and_is_never_left_out():
    missed, late = (restricted_ratio([40, 50, t], [70, 90, 80], 100) for t in (None, 5000))
    assert missed == late
    assert missed is not None
    assert missed.value > restricted_ratio([40, 50, 60], [70, 90, 80], 100).value


@pytest.mark.parametrize(("arm", "reference"), [([40], [50]), ([None, None], [None, 120]), ([], [])])
def test_nothing_is_said_where_nothing_was_seen(arm, reference):
    assert restricted_ratio(arm, reference, 100) is None


@pytest.mark.parametrize("seeds", [5, 8])
@pytest.mark.parametrize(("spread", "budget", "step"), [(0.3, 1.5, 0.0), (0.6, 1.5, 0.2), (1.0, 3.0, 0.2)])
def test_the_interval_covers_the_true_ratio(seeds, spread, budget, step):
    """Log-normal times with a spread of their own per seed, up to a third of them censored, seen at every `step`."""

    def times(rng, count):
        both = rng.normal(size=(count, 1)) * math.sqrt(0.3) + rng.normal(size=(count, 2)) * math.sqrt(0.7)
        drawn = np.exp(spread * both) * [0.7, 1.0]
        return np.ceil(drawn / step) * step if step else drawn

    rng = np.random.default_rng(3)
    truth = np.minimum(times(rng, 400_000), budget).mean(axis=0)
    inside = []
    for _ in range(1500):
        drawn = [[None if t >= budget else t for t in side] for side in times(rng, seeds).T.tolist()]
        found = restricted_ratio(*drawn, budget)
        inside.append(found is not None and found.low <= truth[0] / truth[1] <= found.high)
    assert np.mean(inside) > 0.92
