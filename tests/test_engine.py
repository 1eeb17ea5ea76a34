"""The engine on simulated learners: where it draws, what it refuses, what it does about alarms, and how it continues."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from steer_world import BLIND, SUCCESS, cells, competence, json_round_trip, outcome, pool, train

from mixwright.errors import InputError
from mixwright.plan.planners.difficulty import Difficulty
from mixwright.plan.planners.proportional import Proportional
from mixwright.records import GroupOutcome, Plan, SFTOutcome, Signals, Stage, TrainingSetup
from mixwright.steer.engine import Engine

IN_BAND = ("chain@2", "spell@2")


@pytest.fixture(scope="module")
def steered():
    return [train(Difficulty(), seed) for seed in range(3)]


def test_draws_concentrate_on_the_band_and_waste_less(steered):
    for seed, run in enumerate(steered):
        plain = train(Proportional(), seed)
        total = run.groups
        assert sum(run.drawn[key] for key in IN_BAND) / total > 0.6
        assert sum(plain.drawn[key] for key in IN_BAND) / total < 0.25
        # half of the cells that do not read the prompt carry signal, which flatters the plain run
        assert run.zero_signal / total < 0.6 * plain.zero_signal / total
        assert sum(run.drawn[key] for key in SUCCESS if key.startswith("count")) / total < 0.05


def test_nothing_starves_and_mastered_tasks_keep_an_anchor(steered):
    drawn = sum((run.drawn for run in steered), start=type(steered[0].drawn)())
    total = sum(drawn.values())
    assert all(drawn[key] > 0 for key in SUCCESS)
    assert drawn["gcd@1"] / total > 0.05


def test_cells_that_do_not_read_the_prompt_are_refused_by_name_and_skilled_ones_never(steered):
    named = {d.what: d for run in steered for d in run.decisions if d.new == "refused"}
    blind = [named[f"refuse.{key}"] for key in BLIND if f"refuse.{key}" in named]
    assert blind
    assert all(d.because.startswith("lucky: ") and "kappa at most" in d.because for d in blind)
    assert named["refuse.prime@1"].because.startswith("too hard: ")
    for run in steered:
        refusals = [d.what for d in run.decisions if d.new == "refused"]
        assert not {"refuse.chain@2", "refuse.spell@2"} & set(refusals)
        hard = [what for what in refusals if "count" not in what]  # lucky cells get a share of their groups in
        assert len(hard) <= len(set(hard)) + 1 < sum(a.kind == "refuse" for a in run.actions)


def test_a_cell_that_becomes_reachable_comes_back():
    run = train(Difficulty(), 0, steps=150, revive=("chain@3", 30, 0.5))
    told = [(d.old, d.new) for d in run.decisions if d.what == "refuse.chain@3"]
    assert told == [(None, "refused"), ("refused", "admitted")]
    assert run.drawn["chain@3"] > 60  # 1200 draws; a hopeless cell gets about 1 % of them
    assert run.engine.snapshot()["chain@3"]["state"] == "unknown"  # a run does not test what is reachable
    assert run.engine.snapshot()["chain@3"]["refused"] >= 1


def test_snapshot_knows_the_cells(steered):
    for run in steered:
        shown = run.engine.snapshot()
        assert {shown[key]["state"] for key in IN_BAND} == {"unknown"}
        assert shown["count@1"]["state"] == "lucky"
        assert {shown[key]["state"] for key in ("prime@1", "gcd@3")} == {"hopeless"}
        assert shown["chain@2"]["success"] == pytest.approx(0.45, abs=0.15)
        assert shown["chain@2"]["kappa"] == pytest.approx((0.45 - 0.0225) / (1 - 0.0225), abs=0.15)  # of 20 golds
        assert shown["count@1"]["success"] == pytest.approx(0.3, abs=0.15)
        assert abs(shown["count@1"]["kappa"]) < 0.2


def play(engine, tape_seed, steps):
    """Actions, draws and decisions over steps whose outcomes depend only on the tape seed and what was drawn."""
    here, seen = pool(), []
    for step in steps:
        rng = np.random.default_rng((tape_seed, step))
        drawn = engine.draw(6)
        outcomes = [outcome(here, index, step, SUCCESS, rng) for index in drawn]
        signals = Signals(step, beta=0.04, kl_nats=float(rng.random() * 0.5))
        acts = engine.observe(outcomes, signals)
        seen.append((drawn, acts, engine.take_decisions(), engine.snapshot(), engine.wanted_shares()))
    return seen


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 2**40), st.integers(0, 12), st.sampled_from(["difficulty", "uniform"]))
def test_round_trip_continues_exactly(seed, cut, selector):
    plan = Difficulty().plan(cells(), competence(np.random.default_rng(seed)), TrainingSetup(12))
    plan = replace(plan, stages=(replace(plan.stages[0], selector=selector),))
    whole = Engine(plan, pool(), seed=seed)
    before = play(whole, seed, range(cut))
    saved = json_round_trip(whole.state_dict())
    resumed = Engine(plan, pool(), seed=seed)
    resumed.load_state_dict(saved)
    assert resumed.state_dict() == saved
    assert play(resumed, seed, range(cut, 12)) == play(whole, seed, range(cut, 12))
    if selector == "difficulty" and cut:
        again = Engine(plan, pool(), seed=seed)
        assert play(again, seed, range(cut)) == before  # and the same tape gives the same actions


def test_untaken_decisions_survive_too():
    plan = Difficulty().plan(cells(), competence(np.random.default_rng(0)), TrainingSetup(5))
    one, other = Engine(plan, pool(), seed=0), Engine(plan, pool(), seed=0)
    one.observe([GroupOutcome("prime@1#0", "prime", 1.0, 0, (0.0,) * 8)], Signals(0))
    other.load_state_dict(json_round_trip(one.state_dict()))
    assert other.take_decisions() == one.take_decisions() != []


def test_state_of_another_run_is_refused():
    plan = Difficulty().plan(cells(), competence(np.random.default_rng(0)), TrainingSetup(5))
    state = Engine(plan, pool(), seed=0).state_dict()
    edited = replace(plan, stages=(replace(plan.stages[0], weights={"chain": 0.5, "gcd": 0.5}),))
    scaled = replace(plan, stages=(replace(plan.stages[0], options={"engine": {"reward_range": [-1, 1]}}),))
    others = [
        Engine(plan, pool(), seed=1),
        Engine(plan, pool(50), seed=0),
        Engine(plan, replace(pool(), content_digest="x"), seed=0),
        Engine(plan, replace(pool(), ids=tuple(reversed(tuple(pool().ids)))), seed=0),
    ]
    for other in [*others, Engine(edited, pool(), seed=0), Engine(scaled, pool(), seed=0)]:
        with pytest.raises(InputError, match="same seed, data and plan"):
            other.load_state_dict(state)


@pytest.mark.parametrize(("version", "told"), [(None, "a state without .*number"), (1, "1"), (8, "8")])
def test_a_state_of_another_version_is_refused(version: int | None, told: str) -> None:
    plan = Difficulty().plan(cells(), competence(np.random.default_rng(0)), TrainingSetup(5))
    state = Engine(plan, pool(), seed=0).state_dict()
    state.pop("version") if version is None else state.update(version=version)
    with pytest.raises(InputError, match=rf"expected a state of version 14, got {told}\. Resume with the Mixwright version"):
        Engine(plan, pool(), seed=0).load_state_dict(state)


def stage(**changes) -> Plan:
    base = Stage("s", "grpo", 10, {"chain": 0.5, "gcd": 0.5}, selector="uniform")
    return Plan("hand", (replace(base, **changes),))


def test_without_levers_nothing_happens():
    engine = Engine(stage(), pool(), seed=0)
    here = pool()
    for step in range(5):
        outcomes = [outcome(here, i, step, dict.fromkeys(SUCCESS, 0.0), np.random.default_rng(0)) for i in engine.draw(8)]
        assert engine.observe(outcomes, Signals(step, kl_nats=9.0)) == []
    assert engine.take_decisions() == []
    assert engine.wanted_shares() == {"chain": 0.5, "count": 0, "gcd": 0.5, "lcm": 0, "prime": 0, "spell": 0}


def groups(*wins, cell="chain@2", step=0):
    task, level = cell.split("@")
    return [GroupOutcome(f"{cell}#{i}", task, float(level), step, (1.0,) * w + (0.0,) * (8 - w)) for i, w in enumerate(wins)]


def test_few_informative_groups_scale_or_skip_the_step_and_it_is_restored():
    engine = Engine(stage(gates=("too_hard",)), pool(), seed=0)
    (scaled,) = engine.observe(groups(4, 8, 8, 8, 8, 8, 8, 8), Signals(0))
    assert (scaled.kind, scaled.value) == ("lr_factor", 0.5)  # 1 of 8 is half of 25 %
    (skipped,) = [a for a in engine.observe(groups(8, 8, 8, 8), Signals(1)) if a.kind == "skip_step"]
    assert "0 of 4 groups are informative" in skipped.because
    (restored,) = engine.observe(groups(4, 4), Signals(2)) or [None]
    assert restored is None  # already told when the step was skipped: the factor stands at 1
    engine.observe(groups(4, 8, 8, 8, 8, 8, 8, 8), Signals(3))
    (restored,) = engine.observe(groups(4, 4), Signals(4))
    assert (restored.kind, restored.value) == ("lr_factor", 1.0)
    assert engine.observe(groups(4, 8, 8, 8), Signals(5)) == []  # 1 of 4 is just enough
    told = [(d.step, d.what, d.old, d.new) for d in engine.take_decisions() if not d.what.startswith("refuse.")]
    assert told == [
        (0, "lr_factor", 1.0, 0.5),
        (1, "skip_step", None, "step"),
        (1, "lr_factor", 0.5, 1.0),
        (3, "lr_factor", 1.0, 0.5),
        (4, "lr_factor", 0.5, 1.0),
    ]


def test_rewards_are_mapped_to_shares():
    engine = Engine(stage(options={"engine": {"reward_range": [-1, 1]}}), pool(), seed=0)
    engine.observe([GroupOutcome("chain@2#0", "chain", 2.0, 0, (-1.0, 0.0, 1.0, 5.0))], Signals(0))
    shown = engine.snapshot()["chain@2"]
    assert shown["evidence"] == 4
    assert shown["success"] == shown["kappa"] == pytest.approx((0 + 0.5 + 1 + 1 + 1) / (4 + 2))


def test_losses_of_sft_are_taken_in():
    engine = Engine(stage(objective="sft"), pool(), seed=0)
    assert engine.observe([SFTOutcome("chain@2#0", "chain", 2.0, 0, 1.5, 10)], Signals(0)) == []
    assert engine.snapshot()["chain@2"]["evidence"] == 0


def test_wrong_input_is_an_input_error():
    with pytest.raises(InputError, match="'chian'"):
        Engine(stage(weights={"chian": 1.0}), pool(), seed=0)
    with pytest.raises(InputError, match="patiense"):
        Engine(stage(options={"engine": {"patiense": 1}}), pool(), seed=0)
    with pytest.raises(InputError, match="candidats"):
        Engine(stage(selector="difficulty", options={"selectors.difficulty": {"candidats": 1}}), pool(), seed=0)
    with pytest.raises(InputError, match="an example of the pool"):
        Engine(stage(), pool(), seed=0).observe([GroupOutcome("no", "chain", 2.0, 0, (1.0,))], Signals(0))
