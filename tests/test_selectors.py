"""The difficulty selector by simulation: which cells it draws, and bands by task."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from mixwright.contracts import Scene
from mixwright.errors import InputError
from mixwright.plan.validate import validate_plan
from mixwright.records import Cell, CellAssessment, GroupOutcome, Plan, Signals, Stage, from_data, to_data
from mixwright.steer.engine import Engine
from mixwright.steer.ledger import Ledger
from mixwright.steer.pool import make_pool
from mixwright.steer.selectors._states import ACTIVE, DEFERRED
from mixwright.steer.selectors.difficulty import Difficulty


def pool(levels=(1.0, 2.0, 3.0), each=20, task="t", golds=None):
    names = [f"{task}{level}#{i}" for level in levels for i in range(each)]
    column = [level for level in levels for _ in range(each)]
    return make_pool(names, [task] * len(names), column, golds)


def scene(here, band=(0.1, 0.9), bands=None, **options):
    stage = Stage(
        "s", "grpo", 10, {task: 1 / len(here.tasks) for task in here.tasks}, band, bands=bands or {}, options=options
    )
    return Scene(here, Ledger(here), stage)


def group(cell, wins, step=0, of=8):
    return GroupOutcome("x", cell.task, cell.level, step, (1.0,) * wins + (0.0,) * (of - wins))


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
    here = make_pool(names, ["a"] * 10 + ["b"] * 10, [1.0] * 20)
    known = tuple(CellAssessment(t, 1.0, "reachable", 0.2, 0.0, 400, 10, 0.17, 0.23) for t in "ab")
    stage = Stage("s", "grpo", 9, {"a": 0.5, "b": 0.5}, selector="difficulty", gates=("too_hard",), bands={"b": (0.3, 0.6)})
    engine = Engine(Plan("p", (stage,), known), here, seed=0)
    assert engine._selector._states.cell_state.tolist() == [ACTIVE, DEFERRED]
    groups = [GroupOutcome(f"{t}0", t, 1.0, 0, (1.0, 1.0) + (0.0,) * 6) for t in "ab"]
    assert [action.target for action in engine.observe(groups, Signals(0)) if action.kind == "refuse"] == ["b0"]


@pytest.mark.slow
@pytest.mark.parametrize("levels", [True, False])
def test_more_groups_teach_than_by_uniform_draws_with_levels_and_as_many_without(levels):
    """A quarter of the items can be learnt; without levels rows are drawn evenly."""
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
    assert ours > 0.8 if levels else ours == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("count", [40, 400])
def test_rows_of_a_cell_are_drawn_evenly_whatever_they_showed(count):
    """In as many draws as rows nearly every row is drawn, and over many passes all alike, with evidence or without."""
    place = scene(make_pool([str(i) for i in range(count)], ["t"] * count))
    for index in range(0, count, 2):
        place.ledger.add(index, 0, 4.0, 8)
    selector, rng, drawn = Difficulty(explore=0.0), np.random.default_rng(0), Counter()
    selector.begin(place)
    for batch in range(10 * count // 20):
        found = selector.pick(np.zeros(20, dtype=int), rng)
        place.ledger.mark_drawn(found)
        drawn.update(found.tolist())
        if (batch + 1) * 20 == count:
            assert len(drawn) > 0.8 * count
    counts = np.array([drawn[index] for index in range(count)])
    assert counts.sum() == 10 * count
    assert counts.std() < 1.6  # independent draws would have sqrt(10)
    assert counts[::2].mean() == pytest.approx(10, abs=0.4)


def test_a_trap_is_not_chased():
    """A coin tossed for yes or no has the largest p(1 - p) of all: it gets few draws, the band gets most."""
    success = {1.0: 0.99, 2.0: 0.4, 3.0: 0.0, 9.0: 0.5}
    golds = [("yes", "no")[i % 2] if level == 9 else str(i) for level in success for i in range(100)]
    here = pool(tuple(success), 100, golds=golds)

    def drawn_by(seed, shown):
        engine = Engine(Plan("p", (Stage("s", "grpo", 99, {"t": 1.0}, selector="difficulty"),)), here, seed=seed)
        rng, drawn = np.random.default_rng(seed), Counter()
        for step in range(100):
            out = []
            for index in engine.draw(12):
                level = float(here.cells[here.cell_of[index]].level or 0)
                drawn[level] += step >= 25
                wrong = "yes" if golds[index] == "no" else "no"
                answers = tuple(golds[index] if win else wrong for win in rng.random(8) < success[level])
                rewards = tuple(float(answer == golds[index]) for answer in answers)
                out.append(GroupOutcome(here.ids[index], "t", level, step, rewards, answers if shown else ()))
            engine.observe(out, Signals(step))
        return {level: count / sum(drawn.values()) for level, count in drawn.items()}

    seen = [drawn_by(seed, True) for seed in range(3)]
    assert np.mean([drawn[9.0] for drawn in seen]) < 0.2
    assert np.mean([drawn[2.0] for drawn in seen]) > 0.7
    assert drawn_by(0, False)[9.0] > 0.3  # without answers nothing tells it from skill
