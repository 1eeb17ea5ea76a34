import json
import math
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mixwright.records import Interval
from mixwright_lab.studies import report, turns
from mixwright_lab.studies.turns import Meter, take_turns


def result(quick):
    found = Interval(1.5, 1.0, 2.0, 3)
    goals = [report.Goal("fast", found, "<= 1", False)]
    return report.Result(found, "ms", [0, 1, 2], [{"seed": 0, "quick": quick}], {"other": 4.0}, goals=goals)


def last_line(capsys, monkeypatch, folder, *words):
    monkeypatch.setattr(report, "RESULTS", folder)
    monkeypatch.setattr(sys, "argv", ["study", *words])
    report.run("made_up", "About it.", result)
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_a_full_run_leaves_raw_rows_and_what_it_ran_on(capsys, monkeypatch, tmp_path):
    line = last_line(capsys, monkeypatch, tmp_path)
    expected = {"name": "made_up", "value": 1.5, "low": 1.0, "high": 2.0, "seeds": [0, 1, 2], "unit": "ms", "quick": False}
    goal = {"name": "fast", "value": 1.5, "low": 1.0, "high": 2.0, "times": 3, "goal": "<= 1", "reached": False}
    expected["goals"] = [goal]
    assert line == expected
    kept = json.loads((tmp_path / "made_up.json").read_text())
    assert kept.items() >= expected.items()
    assert kept["rows"] == [{"seed": 0, "quick": False}]
    assert kept["figures"] == {"other": 4.0}
    assert {"commit", "tree", "versions", "machine", "seconds"} <= kept.keys()
    assert {"python", "torch", "trl", "transformers", "numpy"} <= kept["versions"].keys()


def test_a_quick_run_only_prints(capsys, monkeypatch, tmp_path):
    assert last_line(capsys, monkeypatch, tmp_path, "--quick")["quick"] is True
    assert list(tmp_path.iterdir()) == []


def test_conditions_name_no_machine_and_no_folder():
    said = json.dumps(report.conditions())
    assert socket.gethostname() not in said
    assert str(Path(__file__).parent.parent) not in said
    assert str(Path.home()) not in said


def test_intervals_are_paired_t_by_hand():
    found = report.interval([1.0, 2.0, 3.0])
    assert (found.value, found.n) == (2.0, 3)
    assert found.high - found.value == pytest.approx(4.302652730 / math.sqrt(3))
    with pytest.raises(ValueError, match="at least two"):
        report.interval([1.0])


class Clock:
    """Stands in for the CPU clock: work moves it, nothing else does."""

    now = 0.0

    def __init__(self, monkeypatch):
        monkeypatch.setattr(turns.time, "process_time", lambda: self.now)

    def work(self, seconds):
        self.now += seconds


def test_time_of_a_method_is_charged_without_what_it_extends(monkeypatch):
    clock = Clock(monkeypatch)

    class Theirs:
        def step(self):
            clock.work(10)

    class Probe:
        def look(self):
            clock.work(3)

    class Ours(Theirs):
        def step(self):
            clock.work(1)
            super().step()
            Probe().look()
            clock.work(2)

    plain = Ours.step, Theirs.step
    meter = Meter()
    meter.own("probes", [Probe])
    meter.own("ours", [Ours])
    Ours().step()
    clock.work(100)
    meter.switch(meter.owner)
    assert dict(meter.spent) == {"ours": 3, "trainer": 110, "probes": 3}
    meter.restore()
    assert (Ours.step, Theirs.step) == plain


def test_time_is_charged_to_the_caller_again_after_an_error(monkeypatch):
    clock = Clock(monkeypatch)

    class Broken:
        def step(self):
            clock.work(1)
            raise KeyError

    meter = Meter()
    meter.own("ours", [Broken])
    with pytest.raises(KeyError):
        Broken().step()
    clock.work(5)
    meter.switch(meter.owner)
    assert dict(meter.spent) == {"trainer": 5, "ours": 1}
    meter.restore()


class Run:
    """A trainer that notes each step in a common diary."""

    def __init__(self, name, steps, diary, clock, seconds, error=None):
        self.name, self.steps, self.diary, self.clock, self.seconds, self.error = name, steps, diary, clock, seconds, error

    def add_callback(self, callback):
        self.callback = callback

    def train(self):
        for number in range(self.steps):
            if number == self.error:
                raise RuntimeError("broken")
            self.diary.append(self.name)
            self.clock.work(self.seconds)
            self.callback.on_step_end(SimpleNamespace(), SimpleNamespace(), SimpleNamespace())


def test_runs_take_turns_in_every_order_and_each_pays_its_own_step(monkeypatch):
    clock, diary = Clock(monkeypatch), []
    runs = {name: Run(name, 6, diary, clock, seconds) for name, seconds in (("a", 1.0), ("b", 2.0), ("c", 4.0))}
    rows = take_turns(runs, Meter(), warmup=2, steps=4)
    rounds = [tuple(diary[start : start + 3]) for start in range(0, 18, 3)]
    assert len(set(rounds)) == 6
    assert all(set(names) == {"a", "b", "c"} for names in rounds)
    assert {(row["run"], row["cpu"]) for row in rows} == {("a", 1.0), ("b", 2.0), ("c", 4.0)}
    assert [row["step"] for row in rows if row["run"] == "a"] == [-2, -1, 0, 1, 2, 3]


def test_an_error_in_a_run_ends_the_turns(monkeypatch):
    clock, diary = Clock(monkeypatch), []
    runs = {"a": Run("a", 3, diary, clock, 1.0), "b": Run("b", 3, diary, clock, 1.0, error=1)}
    with pytest.raises(RuntimeError, match="broken"):
        take_turns(runs, Meter(), warmup=0, steps=3)


def spent(seed, run, step, trainer, bookkeeping=0.0):
    """A row of the study of overhead."""
    costs = {"trainer": trainer, "bookkeeping": bookkeeping}
    return {"case": "made up", "seed": seed, "run": run, "step": step, "cpu": sum(costs.values()), **costs}


def test_overhead_is_told_against_a_step_without_us():
    from mixwright_lab.studies.overhead import OFF, ON, WARMUP_STEPS, figures, packed

    rows = []
    for seed, share in ((0, 0.01), (1, 0.03)):
        for step in range(-WARMUP_STEPS, 2):
            rows += [spent(seed, OFF, step, 1.0), spent(seed, ON, step, 1.0, share)]
    found = figures(rows)
    assert found["steps per arm"] == 4
    assert found["step, CPU ms"] == pytest.approx(1000)
    assert found["bookkeeping, CPU ms per step"] == pytest.approx(20)
    for name in ("bookkeeping, direct, %", "bookkeeping, on against off, %"):
        assert found[name].value == pytest.approx(2), name
    assert found["bookkeeping, direct, %"].high == pytest.approx(2 + 12.7062047)
    kept = packed(rows)
    assert [(one["seed"], one["run"]) for one in kept][:2] == [(0, OFF), (0, ON)]
    assert kept[1]["bookkeeping"] == [10000] * (WARMUP_STEPS + 2)


def test_goals_of_overhead_ask_for_the_upper_end():
    from mixwright_lab.studies.overhead import goals

    for high in (1.0, 1.1):
        (asked,) = goals({"grpo 15M": {"bookkeeping, direct, %": Interval(0.5, 0.0, high, 5)}})
        assert (asked.name, asked.reached) == ("bookkeeping, grpo 15M, % of a step", high == 1.0)


def test_the_committed_shares_and_goals_are_those_of_the_committed_rows():
    from mixwright_lab.studies.overhead import OWNERS, WARMUP_STEPS, figures, goals

    kept = json.loads((report.RESULTS / "overhead.json").read_text())
    found = {}
    for case in kept["figures"]:
        rows = []
        for run in (run for run in kept["rows"] if run["case"] == case):
            for place, costs in enumerate(zip(*(run[owner] for owner in OWNERS), strict=True)):
                rows.append(spent(run["seed"], run["run"], place - WARMUP_STEPS, *(1e-6 * cost for cost in costs)))
        found[case] = figures(rows)
    for case, shares in found.items():
        for name, value in shares.items():
            was = kept["figures"][case][name]
            told = [value.value, value.low, value.high] if isinstance(value, Interval) else [value]
            assert told == pytest.approx(
                [was[end] for end in ("value", "low", "high")] if len(told) > 1 else [was], abs=1e-3
            )
    (goal,) = goals(found)
    assert goal.record() == pytest.approx(kept["goals"][0], abs=1e-3)


def test_everything_beside_a_trainer_is_charged_wherever_it_stands():
    from mixwright.steer.beside.run import DrawLog
    from mixwright.trainers.resume import Checkpoints
    from mixwright_lab.studies.trainer_runs import charge_owners

    meter, methods = Meter(), ((DrawLog, "read_or_draw"), (Checkpoints, "stage_state"))
    plain = [vars(kind)[name] for kind, name in methods]
    charge_owners(meter)
    try:
        timed = [vars(kind)[name] for kind, name in methods]
        assert [function.__wrapped__ for function in timed] == plain
    finally:
        meter.restore()
    assert [vars(kind)[name] for kind, name in methods] == plain
