"""Training that is begun anew, in the engine."""

from __future__ import annotations

import numpy as np
from steer_world import SUCCESS, json_round_trip, outcome, pool

from mixwright.records import CellAssessment, GroupOutcome, Plan, Signals, Stage
from mixwright.steer.engine import Engine

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
