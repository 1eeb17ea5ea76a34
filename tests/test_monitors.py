"""Monitors that compare a run with its start: windows by hand, silence, rest, restart, tapes with and without a change."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from steer_world import pool

from benchmarks._monitor_tapes import CHANGES, calm, changed
from benchmarks.monitors import damage
from mixwright import catalog
from mixwright.contracts import Pool, Scene
from mixwright.errors import InputError
from mixwright.records import Alarm, Cell, GroupOutcome, Outcome, PairOutcome, Plan, Signals, Stage
from mixwright.steer.engine import Engine
from mixwright.steer.ledger import Ledger
from mixwright.steer.monitors._windows import MOST_LEVELS_APART, Windows, mean_and_error, mean_change

NAMES = sorted(CHANGES)


def scene(levels: int = 2, chance: float = 0.0, reward_range: tuple[float, float] = (0.0, 1.0)) -> Scene:
    cells = tuple(Cell("t", float(level), 1, chance, "known") for level in range(levels))
    here = Pool(tuple(map(str, range(levels))), ("t",), np.zeros(levels, np.int32), cells, np.arange(levels, dtype=np.int32))
    options = {"engine": {"reward_range": reward_range}}
    return Scene(here, Ledger(here), Stage("grpo", "grpo", 10, {"t": 1.0}, options=options))


def monitor(name: str, place: Scene | None = None, **options: Any) -> Any:
    made = catalog.create("monitors", name, {"start_groups": 2, "window": 4} | options)
    made.begin(place or scene())
    return made


def group(
    answers: str = "abcd",
    rewards: tuple[float, ...] = (0, 0, 0, 0),
    lengths: tuple[int, ...] = (10,) * 4,
    level: float = 0.0,
) -> GroupOutcome:
    return GroupOutcome(str(int(level)), "t", level, 0, tuple(map(float, rewards)), lengths, (), tuple(answers))


def told(made: Any, groups: Sequence[Any], step: int = 0) -> list[Alarm]:
    made.observe(step, groups)
    return made.inspect(Signals(step))


WINS = (1.0, 1.0, 0.0, 0.0)
CASES: dict[str, tuple[list[GroupOutcome], list[GroupOutcome], float, float]] = {
    # start of 2 groups, window of 4; commonest answer had 1/4 of each, threshold 1/4 + 0.15
    "repetition": ([group()] * 2, [group("aaaa")] * 4, 1.0, 0.4),
    # half of the length
    "length": ([group(lengths=(8, 10, 10, 12))] * 2, [group(lengths=(5, 5, 5, 5))] * 4, 0.5, 0.6),
    # successes took 10 tokens, now one of two takes 4
    "skipped_work": ([group(rewards=WINS)] * 2, [group(rewards=WINS, lengths=(4, 10, 10, 10))] * 4, 0.5, 0.25),
}


@pytest.mark.parametrize("name", NAMES)
def test_by_hand(name: str) -> None:
    start, now, value, threshold = CASES[name]
    made = monitor(name)
    assert told(made, start) == []
    (alarm,) = told(made, now, 7)
    assert (alarm.monitor, alarm.step, alarm.task) == (name, 7, "t")
    assert (alarm.value, alarm.threshold) == pytest.approx((value, threshold))
    assert alarm.message.startswith("t: ")


@pytest.mark.parametrize("name", NAMES)
def test_the_start_again_and_what_carries_nothing_are_silent(name: str) -> None:
    start, _, _, _ = CASES[name]
    made = monitor(name)
    assert told(made, start * 20) == []
    blank = monitor(name)
    groups = [GroupOutcome("0", "t", 0.0, 0, (0.0, 1.0))] * 40  # no lengths, no answers
    assert told(blank, [*groups, Outcome("0", "t", 0.0, 0, 1.0, 3), PairOutcome("0", "t", 0.0, 0, 1.0, -1.0, -2.0)]) == []


@pytest.mark.parametrize("name", NAMES)
def test_it_rests_and_continues_after_a_restart(name: str) -> None:
    start, now, _, _ = CASES[name]
    made = monitor(name, steps_between_alarms=5)
    told(made, start)
    assert told(made, now[:2], 3) == []
    again = monitor(name, steps_between_alarms=5)
    again.restore(json.loads(json.dumps(made.state(), allow_nan=False)))
    for step, rings in ((4, True), (6, False), (9, True)):
        one, other = told(made, now, step), told(again, now, step)
        assert one == other
        assert bool(one) == rings
    assert json.loads(json.dumps(made.state())) == again.state()


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_bounded(name: str) -> None:
    made = monitor(name)
    start, now, _, _ = CASES[name]
    told(made, [*start, *now] * 10)
    size = len(json.dumps(made.state()))
    told(made, now * 100, 1)
    assert len(json.dumps(made.state())) <= 1.5 * size


@pytest.mark.parametrize("name", NAMES)
def test_another_mix_of_levels_is_not_a_change(name: str) -> None:
    """Level 1 is short, of one answer and often right; level 0 long, of many and never: drawing only one changes nothing."""
    one = group("aaab", WINS, (4, 4, 4, 4), 1.0)
    other = group("abcd", (0, 0, 0, 0), (40, 40, 40, 40), 0.0)
    made = monitor(name)
    assert told(made, [one, other] * 4) == []
    assert told(made, [one] * 30, 1) == []
    assert told(made, [other] * 30, 2) == []


def test_repetition_takes_a_constant_that_is_often_right_for_no_repetition() -> None:
    start, now = [group()] * 2, [group("aaab")] * 4
    assert [alarm.value for alarm in told(monitor("repetition"), start + now)] == [0.75]
    assert told(monitor("repetition", scene(chance=0.7)), start + now) == []


def test_length_tells_growth_and_a_common_limit() -> None:
    start = [group(lengths=(8, 9, 11, 12))] * 2
    (grown,) = told(monitor("length"), start + [group(lengths=(20, 22, 24, 30))] * 4)
    assert (grown.value, grown.threshold) == (24 / 11, 2.0)
    (full,) = told(monitor("length"), start + [group(lengths=(9, 16, 16, 16))] * 4)
    assert (full.value, full.threshold) == (0.75, 0.5)
    assert "stop at one length" in full.message
    assert told(monitor("length"), [group(lengths=(8, 8, 8, 8))] * 40) == []  # one length by nature


def test_a_right_answer_is_what_the_reward_range_says() -> None:
    place = scene(reward_range=(-1.0, 0.0))
    start = [group(rewards=(0.0, 0.0, -1.0, -1.0))] * 2
    now = [group(rewards=(0.0, 0.0, -1.0, -1.0), lengths=(4, 4, 4, 4))] * 4
    assert len(told(monitor("skipped_work", place), start + now)) == 1
    assert told(monitor("skipped_work"), start + now) == []


def test_the_error_of_a_change_holds_that_of_its_starts() -> None:
    assert mean_and_error([1.0, 3.0]) == [2.0, 1.0]
    assert mean_and_error([5.0]) == [5.0, 1.0]
    windows = Windows(mean_and_error, start_groups=2, size=4, steps_between_alarms=0)
    windows.learn_cells(scene())
    for level in (0.0, 1.0):
        for value in (1.0, 3.0):
            windows.add(group(level=level), value)
    for level in (0.0, 0.0, 0.0, 1.0):
        windows.add(group(level=level), 2.0 + level)
    ((_, seen),) = windows.due_windows(0)
    mean, error = mean_change(seen, [each.entry for each in seen], lambda each: each.start)
    assert mean == 0.25
    assert error == pytest.approx(np.sqrt(0.25**2 + (0.75 * 1.0) ** 2 + (0.25 * 1.0) ** 2))


@pytest.mark.parametrize("wrong", [{"start_groups": 0}, {"size": 1}, {"steps_between_alarms": -1}])
def test_windows_that_could_compare_nothing_are_refused(wrong: dict[str, int]) -> None:
    least = {"start_groups": 1, "size": 2, "steps_between_alarms": 0}
    Windows(list, **least)
    with pytest.raises(InputError):
        Windows(list, **least | wrong)


def test_a_task_of_very_many_levels_is_one_cell() -> None:
    windows = Windows(list, start_groups=2, size=4, steps_between_alarms=0)
    windows.learn_cells(scene(MOST_LEVELS_APART + 1))
    for level in range(4):
        windows.add(group(level=float(level)), level)
    assert windows.state()["starts"] == {"t": [0, 1]}


def test_the_engine_writes_alarms_down() -> None:
    here = pool()
    task, name, level = here.cells[0].task, here.ids[0], here.cells[0].level
    weights = {each: 1 / len(here.tasks) for each in here.tasks}
    options = {"engine": {"on_alarm": "log"}, "monitors.repetition": {"start_groups": 2, "window": 4}}
    stage = Stage("grpo", "grpo", 10, weights, monitors=("repetition",), options=options)
    engine = Engine(Plan("test", (stage,)), here, seed=0)
    calm, alike = (GroupOutcome(name, task, level, 0, (0.0,) * 4, (), (), tuple(said)) for said in ("abcd", "aaaa"))
    for step, groups in enumerate(([calm] * 2, [alike] * 4)):
        assert engine.observe(groups, Signals(step)) == []
    (decision,) = [each for each in engine.take_decisions() if each.what == "alarm.repetition"]
    assert (decision.step, decision.new) == (1, 1.0)
    assert "100% of the completions of the last 4 prompts end in 'a'" in decision.because


def test_damage_done_at_the_first_alarm_by_hand() -> None:
    row = {"rings": {"a": [6, 2], "b": [], "c": [0]}, "easy": [0.9, 0.7, 0.5]}  # looked at in steps 0, 4 and 8
    assert damage(row, ("a", "b")) == pytest.approx(0.75)
    assert damage(row, ("b",)) == 1.0
    assert damage(row, ("a", "c")) == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_a_large_change_is_seen_and_a_calm_run_is_silent(name: str) -> None:
    rng = np.random.default_rng(3)
    assert sum(changed(name, CHANGES[name][-1], rng) for _ in range(8)) >= 6
    assert sum(calm(name, rng) for _ in range(3)) == 0
