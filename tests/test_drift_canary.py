"""The KL penalty and the canaries alone, against hand values and their stated error rates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixwright.records import CanaryOutcome, Signals
from mixwright.steer.controllers import Drift
from mixwright.steer.monitors.canary import Canary


def test_drift_moves_beta_outside_the_dead_band_only():
    drift = Drift(target=0.1, dead_band=1.5, factor=2.0, smooth=1.0, steps_between_moves=5)
    assert drift.propose(Signals(0, beta=0.04)) == []
    assert drift.propose(Signals(1, beta=0.04, kl_nats=0.14)) == []
    (tighter,) = drift.propose(Signals(2, beta=0.04, kl_nats=0.3))
    assert (tighter.kind, tighter.target, tighter.value) == ("coefficient", "beta", 0.08)
    assert drift.propose(Signals(3, beta=0.08, kl_nats=0.3)) == []  # resting
    (looser,) = drift.propose(Signals(7, beta=0.08, kl_nats=0.01))
    assert looser.value == 0.04
    assert drift.propose(Signals(12, beta=0.04, kl_nats=0.01)) == []  # never under where it began


def test_drift_smooths_by_the_steps_between_readings():
    """First 0.4 as it is; two steps later half of a half of it is left: 0.4 / 4 + 3 / 4 * 0.2 = 0.25."""
    drift = Drift(target=0.1, dead_band=1.5, factor=2.0, smooth=0.5, steps_between_moves=0)
    (first,) = drift.propose(Signals(1, beta=0.04, kl_nats=0.4))
    assert "KL 0.4 nats" in first.because
    (later,) = drift.propose(Signals(3, beta=0.08, kl_nats=0.2))
    assert "KL 0.25 nats" in later.because


def test_drift_never_touches_a_beta_of_zero():
    drift, factor = Drift(target=0.1, factor=2.0, smooth=1.0, steps_between_moves=1, min_lr_factor=0.1), 1.0
    for step in range(10):
        for action in drift.propose(Signals(step, beta=0.0, lr_factor=factor, kl_nats=5.0)):
            assert action.kind == "lr_factor"
            factor = action.value
    assert factor == 0.1
    for step in range(10, 20):
        for action in drift.propose(Signals(step, beta=0.0, lr_factor=factor, kl_nats=0.0)):
            factor = action.value
    assert factor == 1.0


@settings(deadline=None)
@given(st.floats(1e-4, 1.0), st.lists(st.floats(0, 10), max_size=40))
def test_beta_stays_within_its_bounds(first, tape):
    drift, beta = Drift(steps_between_moves=1), first
    for step, kl in enumerate(tape):
        for action in drift.propose(Signals(step, beta=beta, kl_nats=kl)):
            assert action.kind == "coefficient"
            beta = action.value
    assert first * 0.999 <= beta <= first * 64 * 1.001


def canaries(successes, step, task="t"):
    return tuple(CanaryOutcome(f"{task}{i}", task, None, step, float(s)) for i, s in enumerate(successes))


def test_canary_by_hand():
    monitor = Canary()
    assert monitor.inspect(Signals(0, canaries=canaries([1] * 16, 0))) == []
    assert monitor.inspect(Signals(1)) == []
    assert monitor.inspect(Signals(20, canaries=canaries([0] * 3 + [1] * 13, 20))) == []  # 0.19, error 0.10
    (alarm,) = monitor.inspect(Signals(40, canaries=canaries([0] * 4 + [1] * 12, 40)))
    assert (alarm.monitor, alarm.task, alarm.value) == ("canary", "t", 0.25)
    assert alarm.threshold == pytest.approx(2 * np.std([1] * 4 + [0] * 12, ddof=1) / 4)


def test_a_single_item_has_an_error_of_one():
    # its spread is not known: the largest that success can have
    for errors, threshold in ((2.0, None), (0.75, 0.75), (0.01, 0.05)):
        monitor = Canary(standard_errors=errors)
        monitor.inspect(Signals(0, canaries=canaries([1], 0)))
        alarms = monitor.inspect(Signals(5, canaries=canaries([0], 5)))
        assert [(alarm.value, alarm.threshold) for alarm in alarms] == ([] if threshold is None else [(1.0, threshold)])


def test_a_fall_of_just_the_threshold_is_no_alarm():
    for now, alarms in ((0.5, []), (0.25, [0.75])):  # one item, half an error of 1
        monitor = Canary(standard_errors=0.5)
        monitor.inspect(Signals(0, canaries=canaries([1], 0)))
        assert [alarm.value for alarm in monitor.inspect(Signals(5, canaries=canaries([now], 5)))] == alarms


def test_canary_compares_with_the_first_pass_and_by_task():
    monitor = Canary()
    monitor.inspect(Signals(0, canaries=canaries([1] * 8, 0, "a") + canaries([0, 1] * 4, 0, "b")))
    alarms = monitor.inspect(Signals(5, canaries=canaries([0] * 8, 5, "a") + canaries([1, 0] * 4, 5, "b")))
    assert [alarm.task for alarm in alarms] == ["a"]


def test_canary_rates_are_as_stated():
    rng = np.random.default_rng(0)

    def rate(before, after, passes=2000):
        fired = 0
        for _ in range(passes):
            monitor = Canary()
            monitor.inspect(Signals(0, canaries=canaries(rng.random(16) < before, 0)))
            fired += bool(monitor.inspect(Signals(1, canaries=canaries(rng.random(16) < after, 1))))
        return fired / passes

    assert rate(0.95, 0.95) < 0.012
    assert rate(0.8, 0.8) < 0.045
    assert 0.70 < rate(0.95, 0.6) < 0.80
