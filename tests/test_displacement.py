"""The displacement monitor and what is told of losses and pairs, against hand values."""

from __future__ import annotations

import json

import pytest
from steer_world import pool

from mixwright.records import PairOutcome, Plan, SFTOutcome, Signals, Stage
from mixwright.steer.beside.files import loss_line, pair_line
from mixwright.steer.engine import Engine
from mixwright_extras.monitors.displacement import Displacement


def pair(chosen: float, rejected: float, task: str = "t", example: str = "e") -> PairOutcome:
    """Log-ratios given; log-probabilities around -20 and -30."""
    return PairOutcome(example, task, None, 0, -20 + chosen, -30 + rejected, -20.0, -30.0, 0.1)


def told(monitor: Displacement, pairs: list[PairOutcome], step: int = 0) -> list[tuple[str | None, float, float]]:
    monitor.observe(step, pairs)
    return [(alarm.task, alarm.value, alarm.threshold) for alarm in monitor.inspect(Signals(step))]


def test_margin_and_log_ratios_by_hand():
    one = pair(-2.0, -5.0)
    assert (one.chosen_logratio, one.rejected_logratio) == (-2.0, -5.0)
    assert one.margin == pytest.approx(0.3)


def test_it_alarms_when_chosen_falls_while_the_margin_grows():
    falling = [pair(-2.0, -2.0 - n) for n in range(16)]  # each like the last in chosen, ahead by one more in margin
    assert told(Displacement(), falling) == [("t", 2.0, 1.0)]


@pytest.mark.parametrize(
    "pairs",
    [
        [pair(-2.0, -2.0 - n) for n in range(15)],  # too few
        [pair(+2.0, -2.0 - n) for n in range(16)],  # chosen gains
        [pair(-0.9, -2.0 - n) for n in range(16)],  # falls by less than one nat
        [pair(-2.0, +1.0 + n) for n in range(16)],  # the margin is negative: the run diverges, it does not displace
        [pair(-2.0, -18.0 + n) for n in range(16)],  # the margin shrinks again
        [pair(-4.0 * (-1) ** n - 2.0, -9.0 - n) for n in range(16)],  # mean -2, but within three standard errors of 1
    ],
    ids=["few", "gains", "little", "negative-margin", "shrinking-margin", "noise"],
)
def test_it_is_silent_otherwise(pairs: list[PairOutcome]):
    assert told(Displacement(), pairs) == []


@pytest.mark.parametrize("broken", [float("nan"), float("inf"), -float("inf")])
def test_pairs_that_overflowed_are_left_out(broken: float):
    falling = [pair(-2.0, -2.0 - n) for n in range(16)]
    assert told(Displacement(), [pair(broken, -3.0), *falling, pair(-2.0, broken)]) == [("t", 2.0, 1.0)]
    assert told(Displacement(), [pair(broken, broken)] * 16) == []


def test_it_rests_keeps_a_window_per_task_and_continues_after_a_restart():
    falling = [pair(-2.0, -2.0 - n, task) for n in range(16) for task in ("a", "b")]
    monitor = Displacement(steps_between_alarms=5, window=16)
    assert [task for task, _, _ in told(monitor, falling, 3)] == ["a", "b"]
    assert told(monitor, falling, 7) == []
    again = Displacement(steps_between_alarms=5, window=16)
    again.restore(json.loads(json.dumps(monitor.state())))
    well = [pair(1.0, -9.0 - n, "a") for n in range(16)]  # pushes what was seen of `a` out of its window
    assert [task for task, _, _ in told(monitor, well, 8)] == ["b"]
    assert [task for task, _, _ in told(again, well, 8)] == ["b"]
    assert monitor.state() == again.state()


@pytest.mark.parametrize(("on_alarm", "kinds"), [("stop", ["stop"]), ("log", [])])
def test_the_engine_writes_the_alarm_down_and_does_what_the_plan_says(on_alarm: str, kinds: list[str]):
    here = pool()
    weights = {task: 1 / len(here.tasks) for task in here.tasks}
    options = {"engine": {"on_alarm": on_alarm}}
    stage = Stage("dpo", "dpo", 10, weights, monitors=("displacement",), options=options)
    engine = Engine(Plan("test", (stage,)), here, seed=0)
    falling = [pair(-2.0, -2.0 - n, here.tasks[0], here.ids[0]) for n in range(16)]
    actions = engine.observe(falling, Signals(4))
    assert [action.kind for action in actions] == kinds
    (decision,) = [decision for decision in engine.take_decisions() if decision.what == "alarm.displacement"]
    assert (decision.step, decision.old, decision.new) == (4, 1.0, 2.0)
    assert "chosen completions are 2 nats less likely" in decision.because


def test_losses_by_hand():
    line = loss_line(
        [
            SFTOutcome("a", "t", 1.0, 0, 2.0, 3),
            SFTOutcome("b", "t", 1.0, 0, 1.0, 1),
            SFTOutcome("c", "u", None, 0, 4.0, 2),
        ]
    )
    assert line["losses"] == {"t@1": [7.0, 4], "u": [8.0, 2]}
    assert line["loss"] == 15 / 6


def test_pairs_are_told_by_task():
    line = pair_line([pair(-2.0, -5.0), pair(0.0, -1.0), pair(1.0, 1.0, "u")], 0.7)
    assert line["chosen_logratio"] == {"t": -1.0, "u": 1.0}
    assert line["rejected_logratio"] == {"t": -3.0, "u": 1.0}
    assert line["margin"] == pytest.approx({"t": 0.2, "u": 0.0})
    assert (line["pairs"], line["loss"]) == (3, 0.7)
