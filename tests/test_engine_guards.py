"""Draws that leave canaries alone, and the order in which alarms are answered."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from steer_world import SUCCESS, json_round_trip, outcome, pool

from mixwright.records import Action, Alarm, CanaryOutcome, CellAssessment, EngineOptions, GroupOutcome, Plan, Signals, Stage
from mixwright.steer.engine import Engine
from mixwright.steer.policy import MAX_TIGHTENINGS, QUIET_STEPS, Policy

TASKS = ("chain", "count", "gcd", "lcm", "prime", "spell")


def planned(weights, measured=True, **changes) -> Plan:
    """A plan that knows the world's success: three mastered cells, two reachable ones, the rest hopeless or lucky."""
    cells = []
    for key, success in SUCCESS.items():
        task, level = key.split("@")
        ends = max(0.0, success - 0.04), min(1.0, success + 0.04)
        blind = {"swapped": 0.28, "kappa": 0.03, "kappa_high": 0.05} if task == "count" else {}
        cells.append(CellAssessment(task, float(level), "unknown", success, 0.0, 256, 60, *ends, **blind))
    stage = Stage("s", "grpo", 10, weights, **changes)
    return Plan("hand", (stage,), tuple(cells) if measured else ())


def drawn_cells(engine, count) -> Counter[str]:
    here = pool()
    return Counter(here.cells[here.cell_of[index]].key for index in engine.draw(count))


def watched() -> Engine:
    plan = planned({"prime": 1.0}, selector="uniform", monitors=("canary",))
    cells = tuple(replace(cell, state="mastered") if cell.success > 0.9 else cell for cell in plan.cells)
    return Engine(replace(plan, cells=cells), pool(), seed=0)


def look(engine, step, lost=(), beta=0.04) -> list[Action]:
    """A canary pass in which the tasks of `lost` fail and the others succeed."""
    here, seen = pool(), []
    for index in engine.canaries:
        cell = here.cells[here.cell_of[index]]
        seen.append(CanaryOutcome(here.ids[index], cell.task, cell.level, step, float(cell.task not in lost)))
    return engine.watch(Signals(step, beta=beta, canaries=tuple(seen)))


def kinds(actions):
    return [(action.kind, action.target) for action in actions]


def test_alarms_tighten_and_leave_the_draws_alone():
    engine = watched()
    wanted = {task: float(task == "prime") for task in TASKS}
    assert look(engine, 0) == []
    for step in (10, 20, 30):
        assert kinds(look(engine, step, {"gcd"})) == [("coefficient", "beta")]
        assert engine.wanted_shares() == wanted
    assert drawn_cells(engine, 400) == {"prime@1": 400}
    decisions = [(d.step, d.what, d.old, d.new) for d in engine.take_decisions() if not d.what.startswith("alarm")]
    assert decisions == [(step, "beta", 0.04, 0.08) for step in (10, 20, 30)]


def test_alarms_go_on_while_one_task_is_lost_and_loosen_when_all_are_back():
    engine = watched()
    look(engine, 0)
    for step, lost in ((10, {"gcd", "spell"}), (20, {"gcd", "spell"}), (24, {"gcd"})):
        assert kinds(look(engine, step, lost)) == [("coefficient", "beta")]
    (loosened,) = look(engine, 28)
    assert (loosened.target, loosened.value) == ("beta", 0.02)
    later = [kinds(look(engine, step, {"gcd"})) for step in (32, 36, 40)]
    assert later == [[("coefficient", "beta")], [("coefficient", "beta")], []], "no fifth tightening"


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**30), st.integers(1, 11))
def test_a_run_resumed_in_a_row_of_alarms_continues_exactly(seed, cut):
    def play(engine, steps):
        here, seen = pool(), []
        for step in steps:
            rng = np.random.default_rng((seed, step))
            drawn = engine.draw(7)
            acts = engine.observe([outcome(here, index, step, SUCCESS, rng) for index in drawn], Signals(step, beta=0.04))
            lost = {"gcd"} if step in (2, 3, 4, 7, 8) else set()
            seen.append((drawn, acts, look(engine, step, lost), engine.take_decisions(), engine.wanted_shares()))
        return seen

    whole, resumed = watched(), watched()
    before = play(whole, range(cut))
    resumed.load_state_dict(json_round_trip(whole.state_dict()))
    after = play(whole, range(cut, 12))
    assert play(resumed, range(cut, 12)) == after
    tightened = [step for step, seen in enumerate(before + after) if kinds(seen[2]) and seen[2][0].value == 0.08]
    assert tightened == [2, 3, 4, 7, 8]


def alarm(step) -> list[Alarm]:
    return [Alarm("displacement", step, "t", 2.0, 1.0, "t fell")]


def test_without_canaries_quiet_steps_loosen_what_alarms_tightened():
    policy = Policy(EngineOptions())
    for step in range(0, 200, 20):
        policy.respond(alarm(step), Signals(step), 0.0)
    assert policy.lr_factor == 0.5**MAX_TIGHTENINGS
    factors = []
    for step in range(181, 181 + 6 * QUIET_STEPS):
        policy.respond([], Signals(step), 0.0)
        factors.append(policy.lr_factor)
    assert factors[QUIET_STEPS - 3] == 0.5**MAX_TIGHTENINGS
    assert factors[QUIET_STEPS] == 0.5 ** (MAX_TIGHTENINGS - 1)
    assert factors[-1] == 1


def test_quiet_steps_loosen_nothing_once_canaries_were_watched():
    policy = Policy(EngineOptions())
    assert (policy.lr_factor, policy.sent_lr_factor) == (1.0, 1.0)
    policy.respond([], Signals(0, canaries=(CanaryOutcome("a", "t", None, 0, 1.0),)), 0.0)
    policy.respond(alarm(1), Signals(1), 0.0)
    for step in range(2, 3 * QUIET_STEPS):
        policy.respond([], Signals(step), 0.0)
    assert policy.lr_factor == 0.5
    policy.respond([], Signals(3 * QUIET_STEPS, canaries=(CanaryOutcome("a", "t", None, 0, 1.0),)), 0.0)
    assert policy.lr_factor == 1.0


def test_lines_after_training_was_begun_anew_are_at_the_trainers_step(monkeypatch):
    """What the ledger, the gates and the log see of groups lies in one time: 60 steps, then the trainer's 0 again."""
    engine = Engine(planned({"prime": 1.0}, measured=False, gates=("too_hard",)), pool(), seed=1)
    seen: list[tuple[int, set[int]]] = []
    monkeypatch.setattr(engine._selector, "observe", lambda step, groups: seen.append((step, {g.step for g in groups})))

    def observe(step: int, wins: int) -> None:
        rewards = (1.0,) * wins + (0.0,) * (8 - wins)
        groups = [GroupOutcome(f"prime@1#{place}", "prime", 1.0, step, rewards) for place in range(8)]
        engine.observe(groups, Signals(step))

    for step in range(60):
        observe(step, 4)
    engine.take_decisions()
    for step in range(60):
        observe(step, 0)
    (refused,) = [d for d in engine.take_decisions() if d.what == "refuse.prime@1"]
    assert 0 <= refused.step < 60
    assert seen == [(step, {step}) for step in range(120)], "engine and groups go on together"


def test_what_waits_goes_on_waiting_no_longer_where_training_is_begun_anew():
    """The same outcomes, once with steps that go on and once with steps from 0: the same draws and actions."""

    def run(anew: bool) -> tuple[list[list[int]], list[tuple[int, str]]]:
        levers = {"gates": ("too_hard",), "controllers": ("drift",)}
        even = dict.fromkeys(TASKS, 1 / 6)
        plan = planned(even, False, selector="difficulty", **levers)
        here, rng, success, drawn, told = pool(), np.random.default_rng(0), dict(SUCCESS), [], []
        engine = Engine(plan, here, seed=1)
        for step in range(120):
            if step == 60:
                success |= {"lcm@2": 0.6, "chain@3": 0.6}
                engine.take_decisions()
                if anew:
                    engine, state = Engine(plan, here, seed=1), json_round_trip(engine.state_dict())
                    engine.load_state_dict(state)
            now = step - 60 if anew and step >= 60 else step
            drawn.append(engine.draw(8))
            groups = [outcome(here, index, now, success, rng) for index in drawn[-1]]
            engine.observe(groups, Signals(now, beta=0.04, kl_nats=1.0 if step < 60 else 0.001))
        for decision in engine.take_decisions():
            told.append((decision.step % 60, decision.what))
        return drawn, told

    on, anew = run(False), run(True)
    assert anew[0] == on[0]
    assert anew[1] == on[1]
    assert {"beta"} < {what for _, what in anew[1]}, "levers moved in the second training"
