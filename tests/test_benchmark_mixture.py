"""The benchmark of the mixture alone: its ratios, differences and censored runs are those of the rows."""

import math

import pytest

from benchmarks import mixture


def row(arm: str, seed: int, reached: int | None) -> dict:
    """A run that is at 0.2 until it reaches everything after `reached` rollouts."""
    seen = [
        {"charged": n, "accuracy": 0.9 if reached is not None and n >= reached - 480 else 0.2} for n in range(0, 5761, 480)
    ]
    return {"arm": arm, "seed": seed, "charged": 5760, "teach": 0.5, "weights": {}, "seen": seen}


def test_ratios_and_censored_runs_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = {"natural": (1920, None), "equal": (960, 960), "learnable": (960, 1440)}
    made = {(arm, seed): row(arm, seed, own[seed]) for arm, own in spent.items() for seed in (0, 1)}
    monkeypatch.setattr(mixture, "spread", lambda work, jobs, say="": [made[job] for job in jobs] if say else [])
    result = mixture.measure(quick=True)
    logs = [math.log(1920 / 960), math.log(mixture.BUDGET / 1440)]
    assert result.figures["natural"]["rollouts over learnable"]["logs"] == pytest.approx(logs)
    assert result.value.value == pytest.approx(math.exp(sum(logs) / 2))
    assert (result.figures["natural"]["censored"], result.figures["learnable"]["censored"]) == (1, 0)
    assert "lower bound" in result.unit
    assert result.figures["natural"]["final, learnable minus it"]["value"] == pytest.approx((0.0 + 0.7) / 2)
