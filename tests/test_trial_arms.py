from collections import Counter
from dataclasses import replace

import pytest

from mixwright import catalog
from mixwright.config import TrialConfig
from mixwright.corpus import Corpus
from mixwright.corpus.timed_grades import TimedGrades
from mixwright.errors import InputError
from mixwright.records import Cell, CellAssessment, Example, Plan, Stage
from mixwright.trial.arm_roles import PLAN_ARM, UNTRAINED_ARM, assign_roles, null_name, why_left_out
from mixwright.trial.training import corpus_reward

CELLS = (Cell("gcd", 1.0, 30, 0.3), Cell("gcd", 2.0, 10, 0.3), Cell("sum", 1.0, 60, 0.1))
PLAN = Plan(
    planner="difficulty",
    stages=(
        Stage(
            "main",
            "grpo",
            60,
            {"gcd": 0.9, "sum": 0.1},
            selector="difficulty",
            gates=("too_hard",),
            controllers=("drift",),
            options={"selectors.difficulty": {"candidates": 4}, "engine": {"reward_range": [0, 2], "on_alarm": "log"}},
        ),
    ),
    cells=(CellAssessment("gcd", 1.0, "mastered", 0.95, 0.3, 256, 30),),
    why={"stages.0.weights.gcd": "reachable"},
)
ROLES = {
    "frozen": "reference",
    "uniform": "reference",
    "equal_shares": "reference",
    "steered": "lever",
    "shuffled_levels": "null",
    "permuted": "null",
}


def branch(name):
    return catalog.create("arms", name).branch(PLAN, CELLS)


def corpus(levels=(1.0, 2.0)):
    rows = [
        Example(f"{task}{level}{split}{n}", task, f"{task} {n} {level} {split}", answer=str(n), level=level, split=split)
        for task in ("gcd", "sum")
        for place, level in enumerate(levels)
        for split in ("train", "eval")
        for n in range(10 + 10 * place)
    ]
    return Corpus.from_examples(rows)


def test_every_arm_declares_its_role():
    assert {name: catalog.load("arms", name).ROLE for name in ROLES} == ROLES


def test_references_have_no_lever_and_shares_of_their_own():
    for name, weights, selector in (
        ("uniform", {"gcd": 0.4, "sum": 0.6}, "uniform"),
        ("equal_shares", {"gcd": 0.5, "sum": 0.5}, "equal_levels"),
    ):
        plan = branch(name).plan
        stage = plan.stages[0]
        assert (stage.weights, stage.selector) == (weights, selector)
        assert (stage.gates, stage.controllers, stage.monitors) == ((), (), ())
        assert stage.options == {"engine": {"reward_range": [0, 2]}}, "what a right answer earns is no lever"
        assert (stage.steps, stage.objective) == (60, "grpo")
        assert plan.cells == PLAN.cells


def test_each_arm_differs_in_one_thing():
    plain = {"trains": True, "permuted": "", "rows": "all", "adapter": ""}
    different = {
        "frozen": {"trains": False},
        "shuffled_levels": {"permuted": "levels"},
        "permuted": {"permuted": "rewards"},
    }
    for name in ROLES:
        found = branch(name)
        assert {field: getattr(found, field) for field in plain} == plain | different.get(name, {}), name
    assert branch("steered").plan == branch("shuffled_levels").plan == branch("permuted").plan == PLAN


@pytest.mark.parametrize("arm", ["uniform", "equal_shares"])
def test_no_examples_is_an_error(arm):
    with pytest.raises(InputError, match="training examples to plan for"):
        catalog.create("arms", arm).branch(PLAN, ())


def test_frozen_always_runs_and_nulls_of_old_settings_are_nulls():
    arms = assign_roles(TrialConfig())
    assert arms.always_run == ("frozen", "uniform", "equal_shares", "steered")
    assert arms.nulls == ("shuffled_levels", "permuted")
    old = assign_roles(TrialConfig(("uniform", "steered", "permuted_weights", "permuted")))
    assert (old.references, old.levers) == (("frozen", "uniform"), ("steered",))
    assert old.nulls == ("permuted_weights", "permuted", "shuffled_levels")
    assert assign_roles(TrialConfig(("steered", "frozen"))).always_run == ("frozen", "steered")
    with pytest.raises(InputError, match="'uniform', a reference"):
        assign_roles(TrialConfig(nulls=("uniform",)))
    with pytest.raises(InputError, match="Nearest: permuted"):
        assign_roles(TrialConfig(nulls=("permutd",)))


def test_names_of_nulls_tell_levers_apart():
    assert [null_name("permuted", lever) for lever in ("steered", "dial")] == ["permuted", "permuted.dial"]


@pytest.mark.parametrize(
    ("null", "objective", "levels", "words"),
    [
        ("permuted", "sft", (1.0, 2.0), "no rewards"),
        ("permuted", "grpo", (1.0,), ""),
        ("shuffled_levels", "sft", (1.0, 2.0), ""),
        ("shuffled_levels", "grpo", (1.0,), "no task has two levels"),
    ],
)
def test_a_null_that_makes_no_sense_is_left_out_with_the_reason(null, objective, levels, words):
    plan = replace(PLAN, stages=(replace(PLAN.stages[0], objective=objective),))
    reason = why_left_out(null, plan, corpus(levels))
    assert words in reason
    assert bool(reason) == bool(words)


def test_shuffled_levels_keep_counts_and_everything_but_the_level():
    before = corpus()
    after = before.with_shuffled_levels(0)
    rows = [list(side) for side in (before, after)]
    assert [replace(row, level=None) for row in rows[0]] == [replace(row, level=None) for row in rows[1]]
    counts = [Counter((row.task, row.split, row.level) for row in side) for side in rows]
    assert counts[0] == counts[1]
    moved = sum(a.level != b.level for a, b in zip(*rows, strict=True)) / len(rows[0])
    assert 0.3 < moved < 0.6  # 4/9 of the rows, as levels of 10 and 20 rows are mixed
    assert after.digest() == before.with_shuffled_levels(0).digest() != before.with_shuffled_levels(1).digest()
    assert before.digest() == corpus().digest()
    assert [(cell.key, cell.count) for cell in after.cells()] == [(cell.key, cell.count) for cell in before.cells()]


def test_every_trial_knows_the_untrained_arm_and_the_plan_as_it_stands():
    assert not branch(UNTRAINED_ARM).trains
    assert catalog.load("arms", UNTRAINED_ARM).ROLE == "reference"
    assert branch(PLAN_ARM).plan is PLAN


def test_a_trial_grades_the_last_message_of_a_completion():
    rows = Corpus.from_examples([Example("one", "sum", "2 + 2 =", answer="4")], {"sum": "exact"})
    reward = corpus_reward(rows, TimedGrades(rows, 0, "stop"))
    made = [{"role": "assistant", "content": "I add."}, {"role": "assistant", "content": "4"}]
    assert reward([made, list(reversed(made))], id=["one", "one"]) == [1.0, 0.0]


def test_a_trial_grades_what_was_cut_as_measuring_does():
    rows = Corpus.from_examples([Example("one", "sum", "2 + 2 =", answer="4")], {"sum": "final_answer"})
    reward = corpus_reward(rows, TimedGrades(rows, 0, "stop"), token_limit=3, end_tokens={2})
    ids = [[5, 5, 5], [5, 5, 2], [5, 2]]
    assert reward(["so it is 4"] * 3, id=["one"] * 3, completion_ids=ids) == [0.0, 1.0, 1.0]
    assert reward(["so it is 4"], id=["one"]) == [1.0], "whoever does not say the tokens"
