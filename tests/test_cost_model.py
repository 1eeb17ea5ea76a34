"""The cost model: its line, and the worked example, beside values worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright_lab.studies.cost_example import RUN, Setup, gpu_hours
from mixwright_lab.studies.cost_model import check_line, line_through


@given(st.floats(0, 10), st.floats(0.001, 10))
def test_a_line_is_found_and_said_of_the_double(start: float, slope: float) -> None:
    rows = [{"rows": size, "cpu_seconds": start + slope * size} for size in (400, 100, 800, 200)]
    found = check_line(rows, "rows")
    assert found["slope"] == pytest.approx(slope, rel=1e-6)
    assert found["ratio"] == pytest.approx(1) == found["slope ratio"]
    assert found["measured"] == pytest.approx(start + 800 * slope)


def test_neither_end_of_a_line_is_negative() -> None:
    assert line_through([1, 2, 4], [1, 4, 16])[0] == 0
    assert line_through([1, 2, 4], [4, 2, 1])[1] == 0


def test_the_square_of_rows_misses_the_line() -> None:
    found = check_line([{"rows": size, "cpu_seconds": size**2} for size in (1, 2, 4, 8)], "rows")
    assert found["ratio"] > 1.33
    assert found["slope ratio"] > found["ratio"]


def test_hours_by_hand() -> None:
    made = Setup(
        parameters=1e9, layers=10, width=1000, rows=2048, tokens=1000, items=10, samples=3, room=100, batch=8, steps=10,
        prompts=10, arms=2, seeds=2, gpus=4, peak=1e12, utilisation=0.5, reading=0.25, pass_seconds=0.072, scan_passes=2,
        sketch_passes=3,
    )  # fmt: skip
    hours = gpu_hours(made)
    forward = 2 * (1e9 + 2 * 10 * 1000 * 1000)  # 2.04e9 operations a token
    read = 2048 * 1000 * forward / 0.5e12 / 3600
    assert hours[RUN] == pytest.approx((3 * read, 3 * read / 4))
    assert hours["scan, default columns"] == pytest.approx((4 * read, 2 * read))  # two shards, so two of four GPUs
    writing = (2 + 5) * 100 * 0.072 / 3600  # 10 greedy answers, 8 at a time; 3 samples each of 2 items at a time
    measuring = writing + 10 * 1000 * forward / 0.25e12 / 3600
    training = 10 * 10 * 1000 * 3 * forward / 0.5e12 / 3600
    assert hours["measure"] == pytest.approx((measuring, measuring))
    # four branches that are trained and two that are not, on four GPUs
    assert hours["trial"] == pytest.approx((4 * training + 6 * measuring, 2 * (training + measuring)))
