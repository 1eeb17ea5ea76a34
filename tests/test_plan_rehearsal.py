"""Plan for SFT and DPO: what is known keeps a share, by the rule worked out by hand; reasons; never a word of RL."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from answer_rows import ItemValue, answers_of
from hypothesis import given
from hypothesis import strategies as st

from mixwright.answers.score import measure_answers
from mixwright.answers.table import CellNull, Header
from mixwright.config import CorpusConfig, PlanConfig, RunConfig, TrainConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.estimates.intervals import clustered_share
from mixwright.plan.planners.rehearsal import Rehearsal
from mixwright.plan.validate import validate_plan
from mixwright.records import Cell, Example, Measurement, Plan, TrainingSetup, from_data, to_data
from mixwright.run.preflight import check_keep, check_planner

SETUP = TrainingSetup(20, "sft", 16)


def cell(task: str, rows: int, rehearsal: int = 0) -> Cell:
    return Cell(task, None, rows, rehearsal_rows=rehearsal)


def measured(task: str, right: int, items: int = 30, chance: int = 0) -> list[Measurement]:
    """What the competence probe says: the first `right` items are right, `chance` others by the chance rule."""
    values = [ItemValue(task, "greedy", float(n < right), None, f"{task}{n}") for n in range(items)]
    values += [ItemValue(task, "chance", float(items - chance <= n), None, f"{task}{n}") for n in range(items)]
    shares = clustered_share(np.array([0.0] * (items - chance) + [1.0] * chance), 1)
    return measure_answers(replace(answers_of(values), header=Header(nulls=(CellNull(task, None, shares, "chance", {}),))))


def plan_of(cells: list[Cell], seen: list[Measurement], setup: TrainingSetup = SETUP, **options: object) -> Plan:
    plan = Rehearsal(**options).plan(cells, seen, setup)  # type: ignore[arg-type]
    validate_plan(plan, cells)
    assert from_data(Plan, to_data(plan)) == plan
    text = json.dumps(to_data(plan))
    assert not any(word in text for word in ("hopeless", "too_hard", "reward"))
    return plan


def told(plan: Plan) -> str:
    return plan.why["stages.0.weights"]


def test_known_tasks_without_rows_get_a_tenth_together() -> None:
    """The pool of the demo: one new task, four known kinds with 12 prompts each. 1 / (10/9), and (1/36) / (10/9) each."""
    kinds = ("capitals", "opposites", "sums", "tenses")
    cells = [cell("tools", 180), *(cell(kind, 0, 12) for kind in kinds)]
    plan = plan_of(cells, [row for kind in kinds for row in measured(kind, 20)] + measured("tools", 0))
    assert plan.stages[0].weights == pytest.approx({"tools": 0.9, **dict.fromkeys(kinds, 0.025)}, abs=1e-3)
    assert plan.stages[0].rehearse == kinds
    assert "each seen about 0.7 times" in plan.why["stages.0.weights.capitals"]  # 320 x .025 / 12
    more = plan_of(cells, [row for kind in kinds for row in measured(kind, 20)] + measured("tools", 0), share=0.25)
    assert more.stages[0].weights == pytest.approx({"tools": 0.75, **dict.fromkeys(kinds, 0.0625)}, abs=1e-3)


def test_the_task_to_be_taught_is_never_refused() -> None:
    """2,000 rows at 0 %, four tasks of 60 rows at .06 to .44: shares .8929 and .0268; 1/27 each for those that are known."""
    shares = {"new": 2000 / 2240, **dict.fromkeys("abcd", 60 / 2240)}
    seen = measured("new", 0) + [
        row for task, right in zip("abcd", (2, 8, 10, 13), strict=True) for row in measured(task, right)
    ]
    plan = plan_of([cell("new", 2000), *(cell(task, 60) for task in "abcd")], seen)
    known = [task for task in "abcd" if "kept" in plan.why[f"stages.0.weights.{task}"]]
    assert known == ["b", "c", "d"]  # 2 of 30 is not shown to be above chance
    wanted = {task: max(shares[task], 1 / 27) if task in known else shares[task] for task in shares}
    total = sum(wanted.values())
    assert plan.stages[0].weights == pytest.approx({task: w / total for task, w in wanted.items()}, abs=2e-4)
    assert all(plan.stages[0].weights[task] >= 0.9 * shares[task] - 1e-4 for task in shares)
    assert plan.stages[0].rehearse == ()


@pytest.mark.parametrize(
    ("cells", "seen", "reason"),
    [
        ([cell("only", 100)], measured("only", 20), "one task"),
        ([cell("a", 300), cell("b", 100)], measured("a", 0) + measured("b", 0), "clearly above its chance level"),
        ([cell("a", 300), cell("b", 100)], [], "no task was measured"),
        ([cell("a", 1000), cell("b", 1)], measured("a", 2), "clearly above its chance level"),
    ],
    ids=["one task", "nothing known", "loss only", "skewed and unmeasured"],
)
def test_where_nothing_is_to_be_kept_the_shares_are_the_users(
    cells: list[Cell], seen: list[Measurement], reason: str
) -> None:
    plan = plan_of(cells, seen)
    total = sum(own.count for own in cells)
    assert plan.stages[0].weights == pytest.approx({own.task: own.count / total for own in cells}, abs=1e-4)
    assert reason in told(plan)
    assert plan.stages[0].rehearse == ()


def test_everything_known_and_a_file_skewed_a_thousandfold() -> None:
    """Shares .999 and .001: the small one gets (1/6) / (.999 + 1/6), as far as 4 draws of each of its 2 rows allow."""
    plan = plan_of(
        [cell("big", 2000), cell("small", 2)], measured("big", 25) + measured("small", 25), TrainingSetup(100, "sft", 16)
    )
    assert plan.stages[0].weights == pytest.approx({"big": 1 - 8 / 1600, "small": 8 / 1600}, abs=1e-4)
    rich = plan_of([cell("big", 2000), cell("small", 500)], measured("big", 25) + measured("small", 25))
    assert rich.stages[0].weights == pytest.approx({"big": 0.8, "small": 0.2}, abs=1e-4)  # both above 1/6 already


def test_what_a_small_table_cannot_hold_goes_to_other_known_tasks_and_at_last_back() -> None:
    """320 draws: 2 rows hold 8 of them (2.5 %); the other kind takes the rest of the tenth, 7.5 %."""
    cells = [cell("new", 500), cell("few", 0, 2), cell("many", 0, 40)]
    weights = plan_of(cells, measured("few", 20) + measured("many", 20)).stages[0].weights
    assert weights == pytest.approx({"new": 0.9, "few": 0.025, "many": 0.075}, abs=1e-3)
    short = plan_of([cell("new", 500), cell("few", 0, 2)], measured("few", 20))
    assert short.stages[0].weights == pytest.approx({"new": 0.975, "few": 0.025}, abs=1e-3)


def test_rows_to_rehearse_are_drawn_only_where_the_training_rows_are_too_few() -> None:
    enough = plan_of([cell("new", 900), cell("old", 100, 50)], measured("old", 20), TrainingSetup(5, "sft", 16))
    assert enough.stages[0].rehearse == ()
    assert "50 rows" not in enough.why["stages.0.weights.old"]
    few = plan_of([cell("new", 900), cell("old", 5, 50)], measured("old", 20))
    assert few.stages[0].rehearse == ("old",)


def test_a_known_task_of_which_nobody_has_rows_is_named() -> None:
    plan = plan_of([cell("new", 200), cell("a", 0, 30)], measured("a", 20) + measured("plurals", 28))
    assert set(plan.stages[0].weights) == {"new", "a"}
    assert "no rows to replay for plurals" in told(plan)
    assert plan.stages[0].weights["a"] == pytest.approx(0.1, abs=1e-3)


def test_what_is_known_without_any_rows_changes_no_share_and_the_plan_says_so() -> None:
    plan = plan_of([cell("new", 200)], measured("plurals", 28))
    assert plan.stages[0].weights == {"new": 1.0}
    assert "no rows to replay for plurals (93% of 30 right" in told(plan)
    assert "keep" not in plan.why["stages.0.weights.new"]


def test_keep_and_given_rows_count_without_measurements() -> None:
    plan = plan_of([cell("a", 300), cell("b", 100)], [], keep=["b"], share=0.25)
    assert plan.stages[0].weights == pytest.approx({"a": 0.75 / (0.75 + 1 / 3), "b": (1 / 3) / (0.75 + 1 / 3)}, abs=1e-4)
    given = plan_of([cell("a", 300), cell("chat", 0, 100)], [])
    assert given.stages[0].weights == pytest.approx({"a": 0.9, "chat": 0.1}, abs=1e-4)
    with pytest.raises(InputError, match=r"keep.*\(a, b\), got 'c'"):
        plan_of([cell("a", 300), cell("b", 100)], [], keep=["c"])


def test_preferences_are_planned_like_completions() -> None:
    plan = plan_of([cell("a", 900), cell("b", 100)], measured("b", 20), TrainingSetup(20, "dpo", 8))
    assert plan.stages[0].objective == "dpo"
    assert plan.stages[0].monitors == ("displacement",)
    assert plan.stages[0].weights["b"] == pytest.approx((1 / 9) / (0.9 + 1 / 9), abs=1e-3)


@pytest.mark.parametrize("objective", ["sft", "dpo"])
def test_rows_to_rehearse_of_tasks_that_the_model_cannot_do_are_left_out_and_counted(objective: str) -> None:
    """0 of 40 and 3 of 40 are not shown to be above 0, and 18 of 40 where the chance rule has 16 is not above chance."""
    cells = [
        cell("new", 480),
        *(cell(task, 0, 12) for task in ("bigger", "capitals", "letters", "yes_no")),
        cell("chat", 0, 9),
    ]
    seen = [row for task, right in (("letters", 0), ("bigger", 3), ("capitals", 30)) for row in measured(task, right, 40)]
    seen += measured("yes_no", 18, 40, chance=16)
    setup = TrainingSetup(40, objective, 16)  # type: ignore[arg-type]
    plan = plan_of(cells, seen, setup)
    assert plan.stages[0].rehearse == ("capitals", "chat")  # nobody measured chat, so it is taken as it was given
    assert set(plan.stages[0].weights) == {"new", "capitals", "chat"}
    left_out = plan.why["stages.0.rehearse"]
    assert "36 rows" in left_out
    assert all(task in left_out for task in ("letters (0% of 40 right", "bigger (8% of 40 right", "yes_no (45% of 40 right"))
    asked = plan_of(cells, seen, setup, keep=["letters", "bigger", "yes_no"])
    assert asked.stages[0].rehearse == ("bigger", "capitals", "chat", "letters", "yes_no")
    assert "stages.0.rehearse" not in asked.why


def test_chance_is_no_knowledge() -> None:
    """20 of 30 right, and the chance rule right on 18: not shown to be above. 29 of 30 is."""
    cells = [cell("new", 500), cell("yes_no", 40)]
    kept = plan_of(cells, measured("yes_no", 20, chance=18))
    assert "shares of your rows stay" in told(kept)
    assert "kept" in plan_of(cells, measured("yes_no", 29, chance=15)).why["stages.0.weights.yes_no"]


@pytest.mark.parametrize(
    ("cells", "objective", "options", "changed"),
    [
        ([("new", 893), ("a", 60), ("b", 47)], "sft", {}, False),  # 10.7 % of the rows, as in the study
        ([("new", 903), ("a", 60), ("b", 37)], "sft", {}, True),  # 9.7 %
        ([("new", 890), ("a", 90), ("b", 20)], "sft", {}, True),  # one of two has less than a quarter of a tenth
        ([("new", 893), ("a", 60), ("b", 47)], "sft", {"share": 0.25}, True),  # more was asked for
        ([("new", 893), ("a", 60), ("b", 47)], "dpo", {}, True),  # not studied
        ([("new", 893), ("a", 60), ("b", 47)], "sft", {"keep": ["a"]}, True),  # asked for
        ([("a", 600), ("b", 400)], "sft", {}, False),  # nothing new: no task is under its third of a half
    ],
)
def test_rows_that_hold_enough_of_what_is_known_are_drawn_as_they_come(
    cells: list[tuple[str, int]], objective: str, options: dict[str, object], changed: bool
) -> None:
    made = [cell(task, rows) for task, rows in cells]
    setup = TrainingSetup(40, objective, 16)  # type: ignore[arg-type]
    plan = plan_of(made, measured("a", 20) + measured("b", 20), setup, **options)
    own = {task: rows / sum(count for _, count in cells) for task, rows in cells}
    assert (plan.stages[0].weights != pytest.approx(own, abs=1e-3)) == changed


tasks = st.dictionaries(
    st.sampled_from("abcdef"), st.tuples(st.integers(0, 3000), st.integers(0, 60), st.integers(0, 30)), min_size=1
)


@given(tasks, st.integers(1, 400), st.integers(1, 64))
def test_no_task_falls_under_nine_tenths_of_its_own_share(
    known: dict[str, tuple[int, int, int]], steps: int, batch: int
) -> None:
    cells = [cell(task, rows, spare) for task, (rows, spare, _) in known.items()]
    if not sum(own.count for own in cells):
        return
    seen = [row for task, (*_, right) in known.items() for row in measured(task, right)]
    plan = plan_of(cells, seen, TrainingSetup(steps, "sft", batch))
    weights, total = plan.stages[0].weights, sum(own.count for own in cells)
    assert sum(weights.values()) == pytest.approx(1)
    for own in cells:
        weight = weights.get(own.task, 0.0)
        assert weight >= 0.9 * own.count / total - 1e-3
        rows = own.count + (own.rehearsal_rows if own.task in plan.stages[0].rehearse else 0)
        new = "kept" not in plan.why.get(f"stages.0.weights.{own.task}", "")
        assert (
            new
            or not rows
            or weight * steps * batch <= max(4 * rows, steps * batch * own.count / total) + 1e-3 * steps * batch
        )


def test_the_planner_of_an_objective_and_one_that_cannot_plan_it() -> None:
    bare = CorpusConfig("rows.jsonl")
    names = [RunConfig(bare, train=TrainConfig(objective=one)).planner for one in ("grpo", "sft", "dpo")]
    assert names == ["difficulty", "rehearsal", "rehearsal"]
    assert RunConfig(bare, plan=PlanConfig("temperature"), train=TrainConfig(objective="sft")).planner == "temperature"
    with pytest.raises(InputError, match=r"planner for sft.*rehearsal.*difficulty"):
        check_planner("difficulty", "sft")
    check_planner("proportional", "dpo")


def test_a_plan_that_draws_rows_to_rehearse_without_naming_their_task_is_refused() -> None:
    cells = [cell("new", 180), cell("old", 0, 12)]
    plan = plan_of(cells, measured("old", 20))
    stage = plan.stages[0]
    for names, match in (((), "'old', or its name under rehearse"), (("old", "none"), "'none'")):
        with pytest.raises(InputError, match=match):
            validate_plan(replace(plan, stages=(replace(stage, rehearse=names),)), cells)
    validate_plan(plan, [cell("new", 180), cell("old", 12)])  # as a trainer sees them, in one set of rows


def test_tasks_to_keep_that_the_rows_lack_are_refused_before_anything_is_measured() -> None:
    corpus = Corpus.from_examples([Example("1", "sums", "1 + 1", target="2")])
    check_keep({"keep": ["sums"]}, corpus)
    check_keep({}, corpus)
    with pytest.raises(InputError, match=r"'sum'.*Nearest: sums"):
        check_keep({"keep": "sum"}, corpus)
