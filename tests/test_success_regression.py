"""Beta-binomial regression of success: against closed forms, a grid, numerical derivatives and simulated groups."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from steer_world import json_round_trip

from mixwright.estimates.success_regression import (
    CONCENTRATION_LIMITS,
    Seen,
    SuccessRegression,
    log_gamma,
    log_likelihood,
    sigmoid,
)


@given(st.floats(1e-6, 1e6))
def test_log_gamma_is_that_of_the_standard_library(value: float) -> None:
    assert float(log_gamma(np.array([value]))[0]) == pytest.approx(math.lgamma(value), rel=1e-9, abs=1e-9)


def test_sigmoid_does_not_overflow() -> None:
    assert sigmoid(np.array([-1e4, 0.0, math.log(3), 1e4])) == pytest.approx([0, 0.5, 0.75, 1])


def test_beta_binomial_by_hand_and_summing_to_one() -> None:
    def chance(wins: int, tries: int, mean: float, concentration: float) -> float:
        return float(np.exp(log_likelihood(np.array([wins]), np.array([tries]), np.array([mean]), concentration))[0])

    assert chance(1, 1, 0.3, 5.0) == pytest.approx(0.3)
    assert chance(2, 2, 0.3, 5.0) == pytest.approx(0.3 * (1.5 + 1) / (5 + 1))  # a Polya urn of 1.5 right and 3.5 wrong
    assert chance(1, 2, 0.3, 5.0) == pytest.approx(0.3 * 3.5 / (5 + 1))
    assert sum(math.comb(8, k) * chance(k, 8, 0.2, 0.7) for k in range(9)) == pytest.approx(1)
    assert chance(3, 8, 0.4, 1e7) == pytest.approx(0.4**3 * 0.6**5, rel=1e-4), "alike prompts: binomial"


def groups(rows: int, concentration: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """x with an intercept and three features, wins of 8, and the logits that they were drawn from."""
    rng = np.random.default_rng(seed)
    x = np.c_[np.ones(rows), rng.standard_normal((rows, 3))]
    logits = x @ np.array([-0.5, 1.2, -0.8, 0.0])
    mean = sigmoid(logits)
    success = rng.beta(mean * concentration, (1 - mean) * concentration)
    return x, rng.binomial(8, success).astype(float), np.full(rows, 8.0), logits


def posterior(regression: SuccessRegression, weights: np.ndarray, data: tuple[np.ndarray, ...]) -> float:
    """Log posterior up to a constant, written down anew: rollouts of a prompt count for n (1 + c) / (n + c)."""
    x, wins, tries, worth = data
    concentration = regression.shape.concentration
    success = 1 / (1 + np.exp(-x @ weights))
    counted = worth * (1 + concentration) / (tries + concentration)
    fit = counted * (wins * np.log(success) + (tries - wins) * np.log(1 - success))
    scales = np.array([2.0, *[regression.shape.scales[0]] * (len(weights) - 1)])
    return float(fit.sum() - 0.5 * ((weights / scales) ** 2).sum())


def test_the_mode_of_an_intercept_is_the_best_of_a_grid() -> None:
    data = np.ones((3, 1)), np.array([1.0, 4.0, 8.0]), np.array([8.0, 8.0, 8.0]), np.array([1.0, 0.5, 0.25])
    regression = SuccessRegression(1, ())
    regression.fit(Seen(*data))
    grid = np.linspace(-4, 4, 80_001)
    counted = data[3] * 9 / 16
    success = 1 / (1 + np.exp(-grid[:, None]))
    fit = (counted * (data[1] * np.log(success) + (8 - data[1]) * np.log(1 - success))).sum(1) - grid**2 / 8
    assert float(regression.mean[0]) == pytest.approx(float(grid[fit.argmax()]), abs=2e-4)


def test_mode_and_covariance_are_those_of_numerical_derivatives() -> None:
    x, wins, tries, _ = groups(60, 4.0)
    data = x, wins, tries, np.linspace(0.3, 1, 60)
    regression = SuccessRegression(1, (3,))
    regression.fit(Seen(*data))
    step, axes = 1e-3, np.eye(4)
    at = [posterior(regression, regression.mean + sign * step * axis, data) for axis in axes for sign in (1, -1)]
    slope = [(up - down) / (2 * step) for up, down in zip(at[::2], at[1::2], strict=True)]
    assert slope == pytest.approx([0] * 4, abs=2e-3)
    curvature = np.empty((4, 4))
    for i, one in enumerate(axes):
        for j, other in enumerate(axes):
            corners = [(a * one + b * other) * step for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
            values = [posterior(regression, regression.mean + corner, data) for corner in corners]
            curvature[i, j] = -(values[0] - values[1] - values[2] + values[3]) / (4 * step**2)
    assert regression.root @ regression.root.T == pytest.approx(np.linalg.inv(curvature), rel=1e-3, abs=1e-5)


def test_planted_weights_come_back_and_the_probit_mean_is_nearer_to_one_half() -> None:
    x, wins, tries, logits = groups(1500, 8.0)
    regression = SuccessRegression(1, (3,))
    for _ in range(4):
        regression.reshape(Seen(x, wins, tries, np.ones(1500)))
        regression.fit(Seen(x, wins, tries, np.ones(1500)))
    assert regression.mean == pytest.approx([-0.5, 1.2, -0.8, 0.0], abs=0.12)
    assert np.corrcoef(regression.logits(x)[0], logits)[0, 1] > 0.99
    few = SuccessRegression(1, (3,))
    few.fit(Seen(x[:6], wins[:6], tries[:6], np.ones(6)))
    mean, spread = few.logits(x)
    assert (np.abs(few.success(x) - 0.5) < np.abs(sigmoid(mean) - 0.5)).all()
    assert (spread > regression.logits(x)[1]).all()


def test_draws_of_the_weights_have_mean_and_covariance_of_the_posterior() -> None:
    x, wins, tries, _ = groups(40, 8.0)
    regression = SuccessRegression(1, (3,))
    regression.fit(Seen(x, wins, tries, np.ones(40)))
    drawn = regression.drawn(np.random.default_rng(1), 40_000)
    assert drawn.mean(0) == pytest.approx(regression.mean, abs=0.01)
    assert np.cov(drawn.T) == pytest.approx(regression.root @ regression.root.T, rel=0.06, abs=0.002)


def test_evidence_prefers_the_concentration_that_groups_were_drawn_with() -> None:
    found = []
    for concentration in (1.0, 8.0, 256.0):
        x, wins, tries, _ = groups(800, concentration)
        regression = SuccessRegression(1, (3,))
        for _ in range(10):
            regression.reshape(Seen(x, wins, tries, np.ones(800)))
            regression.fit(Seen(x, wins, tries, np.ones(800)))
        found.append(regression.shape.concentration)
        assert regression.shape.scales[0] > 0.25, "features that matter keep their scale"
    assert found[0] in (0.5, 1, 2)
    assert found[1] in (4, 8, 16)
    assert found[2] >= 64
    assert found[2] <= CONCENTRATION_LIMITS[1]


def test_evidence_shrinks_features_that_say_nothing() -> None:
    x, wins, tries, _ = groups(400, 8.0)
    x[:, 1:] = np.random.default_rng(5).standard_normal((400, 3))
    regression, scales = SuccessRegression(1, (3,)), []
    for _ in range(5):
        regression.reshape(Seen(x, wins, tries, np.ones(400)))
        scales.append(regression.shape.scales[0])
    assert all(later <= earlier for earlier, later in pairwise(scales))
    assert scales[-1] < 0.1


def test_a_state_comes_back_to_the_bit() -> None:
    x, wins, tries, _ = groups(50, 2.0)
    one, two = SuccessRegression(1, (3,)), SuccessRegression(1, (3,))
    one.reshape(Seen(x, wins, tries, np.ones(50)))
    one.fit(Seen(x, wins, tries, np.ones(50)))
    two.restore(json_round_trip(one.state()))
    assert two.state() == one.state()
    for regression in (one, two):
        regression.reshape(Seen(x[:20], wins[:20], tries[:20], np.ones(20)))
        regression.fit(Seen(x[:20], wins[:20], tries[:20], np.ones(20)))
    assert two.state() == one.state()


def test_always_right_and_always_wrong_rows_leave_finite_weights() -> None:
    x = np.c_[np.ones(40), np.repeat([-1.0, 1.0], 20)]
    wins, tries = np.repeat([0.0, 8.0], 20), np.full(40, 8.0)
    regression = SuccessRegression(1, (1,))
    for _ in range(8):
        regression.reshape(Seen(x, wins, tries, np.ones(40)))
        regression.fit(Seen(x, wins, tries, np.ones(40)))
    assert np.isfinite(regression.mean).all()
    assert regression.success(x)[[0, -1]] == pytest.approx([0, 1], abs=0.1)
