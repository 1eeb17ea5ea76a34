"""Helpers of the study of mixed families without levels or task names: rows, contrasts and charges."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from mixwright.records import Example
from mixwright.trainers.steering import pool_of, read_steering
from mixwright_lab.studies import unlabelled_families as study

SEED = 107


@pytest.fixture(scope="module")
def rows():
    return study.make_rows(SEED, text=False)


@pytest.mark.gym
def test_no_prompt_stands_twice_and_no_set_of_rows_shares_one(monkeypatch):
    few = {key: cell._replace(pool_rows=5, taught_rows=min(cell.taught_rows, 40)) for key, cell in study.CELLS.items()}
    monkeypatch.setattr(study, "CELLS", few)
    made = study.make_rows(SEED)
    prompts = [row.prompt for part in (made.pool, made.held_out, made.text) for row in part]
    assert len(prompts) == len(set(prompts))
    assert Counter((row.task, row.level) for row in made.text) == {
        key: cell.taught_rows for key, cell in few.items() if cell.taught_rows
    }


@pytest.mark.gym
def test_cells_hold_what_the_table_says(rows):
    assert Counter((row.task, row.level) for row in rows.pool) == {key: cell.pool_rows for key, cell in study.CELLS.items()}
    assert Counter((row.task, row.level) for row in rows.held_out) == dict.fromkeys(study.CELLS, study.HELD_OUT)
    states = Counter()
    for cell in study.CELLS.values():
        states[cell.state] += cell.pool_rows
    assert states["mastered"] / states.total() == pytest.approx(0.45, abs=0.01)
    assert states["reachable"] / states.total() == pytest.approx(0.15, abs=0.05)


@pytest.mark.gym
def test_seeds_share_held_out_items_within_ten_and_nothing_else(rows):
    near, far = study.held_out(SEED - 7), study.held_out(SEED + 3)
    assert [row.prompt for row in near] == [row.prompt for row in rows.held_out]
    own = {
        row.prompt for row in near if (row.task, row.level) == ("chain_sum", 10)
    }  # so many that two random choices hardly meet
    assert not own & {row.prompt for row in far}
    again = study.make_rows(SEED, text=False)
    assert again == rows


@pytest.mark.gym
def test_rows_show_neither_family_nor_level_and_are_one_cell(rows):
    data = study.dataset(rows.pool, labelled=False)
    assert data.column_names == ["prompt", "answer"]
    known = read_steering(study.steering("predicted", Path("unused")))
    assert [(cell.task, cell.level) for cell in pool_of(data, known).cells] == [("all", None)]
    told = study.dataset(rows.pool, labelled=True)
    known = read_steering(study.steering("levels", Path("unused")))
    assert len(pool_of(told, known).cells) == len(study.CELLS)
    assert study.steering("uniform", Path("unused")) is None


@pytest.mark.gym
def test_what_is_taught_within_reach_is_mostly_the_problem_again(monkeypatch):
    few = {
        key: cell._replace(pool_rows=1, taught_rows=200)
        for key, cell in study.CELLS.items()
        if key[0] in ("chain_sum", "spell_backward")
    }
    monkeypatch.setattr(study, "CELLS", few)
    made = study.make_rows(SEED).text
    for row in made:
        assert row.target == row.answer or str(row.prompt).removesuffix(" =").endswith(str(row.target))
    copied = Counter((few[row.task, row.level].state) for row in made if row.target != row.answer)
    assert set(copied) == {"reachable"}
    assert copied["reachable"] / (2 * 200) == pytest.approx(
        study.COPIED_SHARE, abs=0.05
    )  # a few words are their own reverse


def test_the_budget_ends_a_run_before_a_step_would_go_beyond_it():
    settings = study.Settings(budget=200, prompts=8, group=8)
    budget = study.Budget(settings)
    stops = []
    for rollouts in (64, 128, 160):
        control = SimpleNamespace(should_training_stop=False)
        budget.trainer = SimpleNamespace(steered=SimpleNamespace(rollouts=rollouts))
        budget.on_step_end(None, SimpleNamespace(global_step=1), control)
        stops.append(control.should_training_stop)
    assert stops == [False, False, True]  # 128 + 64 fits, 160 + 64 does not
    budget.trainer = SimpleNamespace(steered=None)
    budget.on_step_end(None, SimpleNamespace(global_step=3), control := SimpleNamespace(should_training_stop=False))
    assert (budget.charged, control.should_training_stop) == (192, True)


def test_only_the_answer_is_right():
    assert study.right(["p", "p", "p"], ["12", " 12 ", "12 3"], ["12", "12", "12"]) == [1.0, 1.0, 0.0]


def test_shares_of_draws_by_hand():
    pool = [Example(str(level), "chain_sum", "p", level=float(level)) for level in (3, 6, 10)]
    assert study.shares([0, 1, 2, 2], pool) == {"mastered": 0.0, "reachable": 0.25, "beyond": 0.75}


def test_contrasts_count_cells_alike_by_hand(monkeypatch):
    items = [(family, float(level), f"{family}@{level}:{place}") for family, level in study.CELLS for place in range(4)]
    monkeypatch.setattr(study, "items_of", lambda seed: items)
    greedy = {"uniform": 0.0, "predicted": 1.0}

    def row(arm, seed):
        right = [greedy[arm] if item[0] == "chain_sum" else 0.0 for item in items]
        columns = {name: json.dumps([0.0] * len(items)) for name in study.NAMES}
        return {"arm": arm, "seed": seed} | columns | {"greedy": json.dumps(right)}

    found = study.compare([row(arm, seed) for arm in greedy for seed in (100, 101)])
    cells = [key for key in study.CELLS if key[0] == "chain_sum"]
    assert found["predicted - uniform"]["success"][0] == pytest.approx(len(cells) / len(study.CELLS), abs=1e-4)
    assert found["predicted - uniform"]["mastered"][0] == 0.0
    reached = {goal.name.partition(":")[0]: goal.reached for goal in study.goals_of(found)}
    assert reached == {"predicted - uniform": True}
