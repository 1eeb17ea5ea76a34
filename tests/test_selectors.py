"""Selectors by hand and by simulation: static band, target, and the states that the difficulty selector keeps."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixwright.contracts import Scene
from mixwright.errors import InputError
from mixwright.plan._validate import validate_plan
from mixwright.records import Cell, CellPlan, GroupOutcome, Plan, Signals, Stage, from_data, to_data
from mixwright.steer._engine import Engine
from mixwright.steer._ledger import Ledger
from mixwright.steer._pool import make_pool
from mixwright.steer.selectors._items import outside
from mixwright.steer.selectors._states import LONGEST, PILOT, CellStates
from mixwright.steer.selectors.static_band import StaticBand
from mixwright.steer.selectors.target import Target, ranks


def pool(levels=(1.0, 2.0, 3.0), each=20, luck=0.0, task="t"):
    names = [f"{task}{level}#{i}" for level in levels for i in range(each)]
    column = [level for level in levels for _ in range(each)]
    cells = [Cell(task, level, each, luck) for level in levels]
    return make_pool(names, [task] * len(names), column, cells=cells)


def scene(here, band=(0.1, 0.9), bands=None, **options):
    stage = Stage(
        "s", "grpo", 10, {task: 1 / len(here.tasks) for task in here.tasks}, band, bands=bands or {}, options=options
    )
    return Scene(here, Ledger(here), stage, {})


def group(cell, wins, step=0, of=8):
    return GroupOutcome("x", cell.task, cell.level, step, (1.0,) * wins + (0.0,) * (of - wins))


def test_target_follows_the_published_rule_by_hand():
    here = pool()
    selector = Target(spread=0.0)
    selector.begin(scene(here))
    easy = here.cells[0]
    assert set(here.cell_of[selector.pick(np.zeros(9, dtype=int), np.random.default_rng(0))]) == {0}
    selector.observe(0, [group(easy, 8), group(easy, 4)])  # mean 0.75
    first = 0.5 * math.tanh(2 * 0.25)
    assert selector.state()["targets"] == [pytest.approx(first)] == [pytest.approx(0.23106, abs=1e-5)]
    selector.observe(1, [group(easy, 8)])
    second = first + 0.5 * math.tanh(1.0)
    assert selector.state()["targets"] == [pytest.approx(second)]  # 0.612: the middle level of three
    assert set(here.cell_of[selector.pick(np.zeros(9, dtype=int), np.random.default_rng(0))]) == {1}
    for step in range(9):
        selector.observe(step, [group(easy, 8)])
    assert selector.state()["targets"] == [1.0]  # clipped
    selector.observe(9, [group(easy, 0)])
    assert selector.state()["targets"] == [pytest.approx(1 - 0.5 * math.tanh(1.0))]
    selector.observe(10, [])
    assert selector.state()["targets"] == [pytest.approx(1 - 0.5 * math.tanh(1.0))]


def test_target_keeps_one_target_per_task_and_its_noise_spreads_the_draws():
    names = [f"{task}{i}" for task in "ab" for i in range(40)]
    here = make_pool(names, ["a"] * 40 + ["b"] * 40, [*range(1, 41), *range(1, 41)])
    selector = Target(spread=0.1, start=0.5)
    selector.begin(scene(here, engine={"reward_range": [-1.0, 1.0]}))
    selector.observe(0, [GroupOutcome("x", "a", 1.0, 0, (1.0, -1.0, -1.0, -1.0))])  # 25 % right
    low, middle = selector.state()["targets"]
    assert (low, middle) == (pytest.approx(0.5 - 0.5 * math.tanh(0.5)), 0.5)
    drawn = selector.pick(np.repeat([0, 1], 400), np.random.default_rng(0))
    level = np.array([here.cells[cell].level for cell in here.cell_of[drawn]]) / 40
    assert abs(level[:400].mean() - low) < 0.04 < abs(level[400:].mean() - low)
    assert level[400:].std() > 0.05  # does not serve the same items again and again
    assert ranks([3.0, None, 1.0, 2.0]).tolist() == [1.0, 0.5, 0.0, 0.5]
    assert ranks([None, 4.0]).tolist() == [0.5, 0.5]


def test_static_band_keeps_what_was_inside_at_the_start_edges_included():
    here = pool(levels=(1.0, 2.0, 3.0, 4.0, 5.0), each=8)
    place = scene(here, band=(0.25, 0.75))
    for cell, success in enumerate((0.76, 0.75, 0.25, 0.24)):  # the fifth was not measured
        place.ledger.lasting.start(cell, success, 100)
    selector, rng = StaticBand(), np.random.default_rng(0)
    selector.begin(place)
    drawn = selector.pick(np.zeros(24, dtype=int), rng)
    assert Counter(here.cell_of[drawn].tolist()) == {1: 8, 2: 8, 4: 8}
    for index in range(40):
        place.ledger.add(index, 1, 8.0 * (index < 8), 8)
    assert set(here.cell_of[selector.pick(np.zeros(24, dtype=int), rng)]) == {1, 2, 4}  # and never changes its mind


def test_static_band_without_a_measurement_is_uniform_and_never_empty():
    here = pool()
    selector = StaticBand()
    selector.begin(scene(here))
    assert sorted(selector.pick(np.zeros(60, dtype=int), np.random.default_rng(0)).tolist()) == list(range(60))
    place = scene(here)
    for cell, success in enumerate((1.0, 0.97, 0.0)):
        place.ledger.lasting.start(cell, success, 100)
    selector.begin(place)
    assert set(here.cell_of[selector.pick(np.zeros(30, dtype=int), np.random.default_rng(0))]) == {1}


def test_bands_by_task_are_checked_kept_and_heeded():
    cells = (Cell("a", 1.0, 10, 0.0), Cell("b", 1.0, 10, 0.0))
    stage = Stage("s", "grpo", 1, {"a": 0.5, "b": 0.5}, bands={"b": (0.3, 0.6)})
    plan = Plan("p", (stage,))
    validate_plan(plan, cells)
    assert from_data(Plan, json.loads(json.dumps(to_data(plan)))) == plan
    assert (stage.band_of("a"), stage.band_of("b")) == ((0.1, 0.9), (0.3, 0.6))
    for bands, said in (({"b": (0.6, 0.3)}, "low < high"), ({"c": (0.1, 0.9)}, "'c'")):
        with pytest.raises(InputError, match=said):
            validate_plan(Plan("p", (Stage("s", "grpo", 1, {"a": 0.5, "b": 0.5}, bands=bands),)), cells)
    names = [f"{t}{i}" for t in "ab" for i in range(10)]
    here = make_pool(names, ["a"] * 10 + ["b"] * 10, [1.0] * 20, cells=cells)
    known = tuple(CellPlan(t, 1.0, "reachable", 0.2, 0.0, 400, 10, 0.17, 0.23) for t in "ab")
    stage = Stage("s", "grpo", 9, {"a": 0.5, "b": 0.5}, selector="difficulty", gates=("too_hard",), bands={"b": (0.3, 0.6)})
    engine = Engine(Plan("p", (stage,), known), here, seed=0)
    shown = engine.snapshot()
    assert (shown["a@1"]["drawn_as"], shown["b@1"]["drawn_as"]) == ("active", "deferred")
    groups = [GroupOutcome(f"{t}0", t, 1.0, 0, (1.0, 1.0) + (0.0,) * 6) for t in "ab"]
    assert [action.target for action in engine.observe(groups, Signals(0)) if action.kind == "refuse"] == ["b0"]


def states(here, band=(0.1, 0.9)):
    place = scene(here, band)
    return place, CellStates(place, memory=128.0, pilots=0.25, reviews=0.1)


def show(kept, place, cell, wins, step):
    place.ledger.reach(step)
    kept.observe(step, [group(place.pool.cells[cell], wins, step)])
    return list(kept.named().values())[cell]


def test_states_by_hand():
    place, kept = states(pool(luck=0.25, levels=(1.0, 2.0, 3.0, 4.0)))
    seen = [show(kept, place, 0, 8, step) for step in range(4)]
    assert seen == ["unknown", "active", "mastered", "mastered"]  # 17/18 = 0.94 is 0.93 above luck: over the band, twice
    assert [show(kept, place, 1, 4, step) for step in range(3)] == ["unknown", "active", "active"]
    assert [show(kept, place, 2, 0, step) for step in range(2)] == ["unknown", "deferred"]
    lucky = [show(kept, place, 3, 2, step) for step in range(12)]
    assert (lucky[0], lucky[1], lucky[-1]) == ("unknown", "active", "lucky")  # as often right as luck: takes longer to tell
    assert show(kept, place, 0, 7, 20) == "mastered"  # one slip in eight is no regression
    assert show(kept, place, 0, 6, 21) == "review"
    assert show(kept, place, 0, 8, 22) == "mastered"  # 14 of 16: at most 0.93 above luck
    assert show(kept, place, 0, 4, 23) == "review"
    assert show(kept, place, 0, 8, 24) == "active"  # 12 of 16: at most 0.81 above luck


def test_a_mastered_cell_that_regresses_comes_back_and_forgets_its_past():
    place, kept = states(pool())
    for step in range(8):
        show(kept, place, 0, 8, step)
    assert show(kept, place, 0, 3, 9) == "review"
    assert show(kept, place, 0, 4, 10) == "active"
    assert (kept.evidence.wins[0], kept.evidence.tries[0]) == (7.0, 16.0)


def serve(kept, place, step, draws=8):
    place.ledger.reach(step)
    cells = np.full(draws, -1)
    kept.serve(np.zeros(draws, dtype=int), cells, np.random.default_rng(step))
    return [int(cell) for cell in cells if cell >= 0]


def test_a_deferred_cell_is_piloted_at_rising_intervals_and_found_when_it_becomes_reachable():
    place, kept = states(pool(levels=(1.0,)))
    for step in range(3):
        show(kept, place, 0, 0, step)
    assert kept.named() == {"t@1": "deferred"}
    pilots = []
    for step in range(3, 400):
        if served := serve(kept, place, step):
            assert len(served) <= PILOT
            pilots.append(step)
            for _ in served:
                show(kept, place, 0, 0, step)
    gaps = np.diff(pilots)
    assert gaps[0] < gaps[1] < gaps[2]
    assert LONGEST <= gaps[-1] <= gaps.max() <= LONGEST + 1
    start = pilots[-1] + 1
    for step in range(start, start + LONGEST + 2):
        for _ in serve(kept, place, step):
            show(kept, place, 0, 3, step)
    assert kept.named() == {"t@1": "active"}
    assert kept.evidence.tries[0] <= 8 * (PILOT + 1)  # all the failures of another model are forgotten


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 8), min_size=2, max_size=12), st.integers(0, 1000))
def test_no_cell_starves_and_pilots_keep_to_their_share(success, seed):
    """Whatever cells show, each is drawn again within a bound, and pilots and reviews take no more than their shares."""
    levels = [float(number + 1) for number in range(len(success))]
    here = pool(levels=tuple(levels))
    plan = Plan("p", (Stage("s", "grpo", 500, {"t": 1.0}, selector="difficulty", options={}),))
    engine, rng = Engine(plan, here, seed=seed), np.random.default_rng(seed)
    last = np.zeros(len(levels), dtype=int)
    longest, extra, draws = np.zeros(len(levels), dtype=int), 0, 12
    for step in range(260):
        before = engine.snapshot()
        drawn = engine.draw(draws)
        out = []
        for index in drawn:
            cell = here.cell_of[index]
            longest[cell], last[cell] = max(longest[cell], step - last[cell]), step
            extra += before[here.cells[cell].key]["drawn_as"] in ("mastered", "deferred", "review", "lucky")
            rewards = tuple(float(x) for x in rng.permutation([1] * success[cell] + [0] * (8 - success[cell])))
            out.append(GroupOutcome(here.ids[index], "t", here.cells[cell].level, step, rewards))
        engine.observe(out, Signals(step))
    longest = np.maximum(longest, 260 - last)
    assert longest.max() <= LONGEST + 100
    if any(1 < wins < 7 for wins in success):
        assert extra <= (0.05 + 0.02 + 0.02) * 260 * draws + 60


@pytest.mark.parametrize("levels", [True, False])
def test_more_groups_teach_than_by_uniform_draws_with_and_without_levels(levels):
    """A quarter of the items can be learnt; without levels only their own evidence can tell which: it takes a pass."""
    count = 400
    truth = np.array([(1.0, 0.0, 0.0, 0.5)[index % 4] for index in range(count)])
    here = make_pool([str(i) for i in range(count)], ["t"] * count, [float(i % 4) for i in range(count)] if levels else None)

    def teaches(selector, seed):
        engine = Engine(Plan("p", (Stage("s", "grpo", 99, {"t": 1.0}, selector=selector),)), here, seed=seed)
        rng, mixed = np.random.default_rng(seed), []
        for step in range(100):
            out = []
            for index in engine.draw(12):
                rewards = tuple(float(win) for win in rng.random(8) < truth[index])
                out.append(GroupOutcome(str(index), "t", here.cells[here.cell_of[index]].level, step, rewards))
                mixed.append(not out[-1].no_signal)
            engine.observe(out, Signals(step))
        return np.mean(mixed[600:])

    uniform, ours = (np.mean([teaches(name, seed) for seed in range(3)]) for name in ("uniform", "difficulty"))
    assert uniform == pytest.approx(0.25, abs=0.03)
    assert ours > (0.8 if levels else 0.45)


def test_items_seen_twice_outside_the_band_come_last_for_a_while():
    here = pool(levels=(1.0,), each=4)
    ledger = Ledger(here)
    for index, wins in enumerate((8, 0, 4)):
        for step in range(2):
            ledger.add(index, step, float(wins), 8)
    ledger.add(3, 1, 0.0, 8)  # seen once

    def out():
        return outside(ledger, ledger.rows(np.arange(4)[None]), np.array([[0.1, 0.9]]))[0].tolist()

    assert out() == [True, True, False, False]
    ledger.reach(200)
    assert out() == [False] * 4


def test_a_trap_is_not_chased():
    """Items right by luck half the time have the largest p(1 - p) of all: they get few draws, the band gets most."""
    success = {1.0: 0.99, 2.0: 0.4, 3.0: 0.0, 9.0: 0.5}
    here = make_pool(
        [f"{level}#{i}" for level in success for i in range(100)],
        ["t"] * 400,
        [level for level in success for _ in range(100)],
        cells=[Cell("t", 9.0, 100, 0.5)],
    )
    engine = Engine(Plan("p", (Stage("s", "grpo", 99, {"t": 1.0}, selector="difficulty"),)), here, seed=0)
    rng, drawn = np.random.default_rng(0), Counter()
    for step in range(80):
        out = []
        for index in engine.draw(12):
            level = float(here.cells[here.cell_of[index]].level or 0)
            drawn[level] += step >= 10
            p = rng.uniform(0.4, 0.6) if level == 9 else success[level]
            out.append(GroupOutcome(here.ids[index], "t", level, step, tuple(float(w) for w in rng.random(8) < p)))
        engine.observe(out, Signals(step))
    total = sum(drawn.values())
    assert drawn[9.0] < 0.08 * total
    assert drawn[2.0] > 0.8 * total
    assert engine.snapshot()["t@9"]["drawn_as"] in ("lucky", "active")


def test_staleness_is_noise_free_then_told_once():
    here = pool(levels=(1.0, 2.0), each=50)
    known = tuple(CellPlan("t", level, "reachable", 0.5, 0.0, 256, 50, 0.44, 0.56) for level in (1.0, 2.0))
    engine = Engine(Plan("p", (Stage("s", "grpo", 99, {"t": 1.0}),), known), here, seed=0)
    assert engine.staleness() == {"band_moved": 0.0, "stale_since": None, "in_band_yield": None}

    def show(step, first):
        for level, wins in ((1.0, first), (2.0, 4)):
            out = [GroupOutcome(f"t{level}#{i}", "t", level, step, (1.0,) * wins + (0.0,) * (8 - wins)) for i in range(4)]
            engine.observe(out, Signals(step))

    for step in range(10):
        show(step, 4)
    assert engine.staleness() == {"band_moved": 0.0, "stale_since": None, "in_band_yield": 1.0}
    for step in range(10, 40):
        show(step, 8)
    shown = engine.staleness()
    assert shown["band_moved"] == 0.5
    assert 10 < shown["stale_since"] < 30
    told = [decision for decision in engine.take_decisions() if decision.what == "stale"]
    assert [decision.step for decision in told] == [shown["stale_since"]]
    fresh = Engine(Plan("p", (Stage("s", "grpo", 99, {"t": 1.0}),), known), here, seed=0)
    fresh.restore(engine.state())
    assert fresh.staleness() == shown
