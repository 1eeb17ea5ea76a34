"""The KL penalty alone, against hand values."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mixwright.records import Signals
from mixwright.steer.controllers import Drift


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
    drift = Drift(target=0.1, factor=2.0, smooth=1.0, steps_between_moves=1)
    assert [action for step in range(10) for action in drift.propose(Signals(step, beta=0.0, kl_nats=5.0))] == []


@settings(deadline=None)
@given(st.floats(1e-4, 1.0), st.lists(st.floats(0, 10), max_size=40))
def test_beta_stays_within_its_bounds(first, tape):
    drift, beta = Drift(steps_between_moves=1), first
    for step, kl in enumerate(tape):
        for action in drift.propose(Signals(step, beta=beta, kl_nats=kl)):
            assert action.kind == "coefficient"
            beta = action.value
    assert first * 0.999 <= beta <= first * 64 * 1.001
