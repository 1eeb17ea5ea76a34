"""What is foreseen before a GRPO run (tasks starved, tasks at risk of damage), by hand, and its scores after the run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from _example_run import build
from hypothesis import given
from hypothesis import strategies as st
from steer_world import cells as world_cells
from steer_world import competence as world_competence
from steer_world import row

from mixwright.catalog import create
from mixwright.cli import direct_plan, planning
from mixwright.cli.options import Measuring
from mixwright.config import CorpusConfig, RunConfig
from mixwright.contracts import Branch
from mixwright.plan.foreseen import depends, is_starved, lines_of, mixed_chances, with_foreseen
from mixwright.records import (
    Cell,
    CellPlan,
    CellState,
    Foreseen,
    ForeseenWord,
    Interval,
    Measurement,
    Plan,
    Stage,
    TrainingSetup,
    from_data,
    to_data,
)
from mixwright.runs import RunFolder, read_json, read_plan, write_plan
from mixwright.trial.branch import branch_digest
from mixwright.verdict.blocks import Block, Paragraph, Table
from mixwright.verdict.foreseen import score_of, scored
from mixwright.verdict.stage import render

SETUP = TrainingSetup(40, batch=8, generations=2)
HALF, NEVER = 2, 0
"""Right answers of four samples: pairs of them differ with a chance of 2/3, or never."""


def items(task: str, level: float | None, *right: int) -> list[Measurement]:
    """Items of four samples each, by how many are right."""
    return [
        Measurement("competence", task, "pass@1", k / 4, 0.0, 1.0, 4, "share", level, f"{task}{level}{place}")
        for place, k in enumerate(right)
    ]


def plan(weights: dict[str, float], cells: list[CellPlan], **stage: object) -> Plan:
    return Plan("any", (Stage("training", "grpo", 40, weights, **stage),), tuple(cells))  # type: ignore[arg-type]


def cell(task: str, state: CellState, rows: int, *, level: float | None = None, p: float | None = None) -> CellPlan:
    success = 0.5 if state in ("reachable", "lucky", "unknown") else 0.02
    return CellPlan(task, level, state, success, 0.0, 256, rows, p=p)


def data(known: list[CellPlan]) -> list[Cell]:
    return [Cell(one.task, one.level, one.examples) for one in known]


def foreseen(known: list[CellPlan], rows: list[Measurement], weights: dict[str, float], **stage: object) -> list[Foreseen]:
    rows = rows + [row(one.task, one.level, one.success or 0.0, 0.0, 1.0) for one in known]
    return list(with_foreseen(plan(weights, known, **stage), data(known), rows, SETUP).foreseen)


def skill(task: str, low: float = 0.1) -> Measurement:
    return row(task, None, 0.3, low, 0.5, name="pass@1.kappa")


# chances and noise


def test_the_chance_that_a_group_is_mixed_by_hand() -> None:
    rows = items("a", 1.0, HALF, NEVER, 4) + items("b", None, 1)
    # of the 6 pairs of 2 right and 2 wrong samples 4 are mixed; of 1 right and 3 wrong 3 are
    assert mixed_chances(rows, 2) == {("a", 1.0): pytest.approx(4 / 6 / 3), ("b", None): pytest.approx(1 / 2)}
    assert mixed_chances(rows, 8) == {("a", 1.0): pytest.approx(1 / 3), ("b", None): 1.0}  # a group of all four samples
    assert mixed_chances([row("a", 1.0, 0.5, 0.0, 1.0)], 2) == {}  # no items


@pytest.mark.parametrize(
    ("state", "p", "wanted"),
    [
        ("reachable", 0.001, True),
        ("mastered", None, True),
        ("lucky", 0.001, False),
        ("unknown", None, False),
        ("unknown", 0.05, False),
        ("unknown", 0.049, True),
        ("hopeless", 0.2, False),
        ("hopeless", 0.01, True),
    ],
)
def test_which_cells_are_noise(state: CellState, p: float | None, wanted: bool) -> None:
    assert depends(cell("a", state, 1, p=p)) is wanted


def test_noise_and_groups_by_hand() -> None:
    # 320 groups: uniform 32 of a and 288 of b, equal shares 160 each; all groups of a and b differ with a chance of 2/3
    known = [cell("a", "reachable", 10), cell("b", "lucky", 90)]
    rows = [*items("a", None, HALF), *items("b", None, HALF), skill("a")]
    found = {(said.arm, said.task): said for said in foreseen(known, rows, {"a": 0.9, "b": 0.1})}
    assert [found["uniform", task].groups for task in "ab"] == [pytest.approx(n * 2 / 3, abs=0.05) for n in (32, 288)]
    assert found["uniform", "a"].noise == found["uniform", "b"].noise == 0.9
    assert found["equal_shares", "a"].noise == 0.5
    assert found["steered", "a"].noise == 0.1
    assert {key: said.word for key, said in found.items() if said.word != "as forecast"} == {("uniform", "a"): "at risk"}
    risk = found["uniform", "a"]
    assert (risk.before, risk.low) == (0.5, 0.0)  # nothing known says how far it falls
    assert risk.high > 0.5
    assert risk.because.startswith("90% of the groups that carry a reward difference (192 of 213) would come from cells")
    assert risk.because.endswith("mostly b")
    refused = foreseen(known, rows, {"a": 0.1, "b": 0.9}, gates=("too_hard",))
    assert {(said.noise, said.word) for said in refused if said.arm == "steered"} == {(0.0, "as forecast")}
    assert [said.groups for said in refused if (said.arm, said.task) == ("steered", "b")] == [0.0]


def test_levels_share_a_task_and_hopeless_cells_without_mixed_groups_are_no_noise() -> None:
    known = [cell("a", "reachable", 30, level=1.0), cell("a", "hopeless", 30, level=2.0), cell("b", "reachable", 60)]
    rows = items("a", 1.0, HALF) + items("a", 2.0, NEVER) + items("b", None, HALF)
    found = foreseen(known, rows, {"a": 0.5, "b": 0.5}, selector="equal_levels")
    # of 320 groups a gets a half under each arm, and its level 1 a half of that: 80
    assert {said.arm: said.groups for said in found if said.task == "a"} == {
        arm: pytest.approx(80 * 2 / 3, abs=0.05) for arm in ("uniform", "equal_shares", "steered")
    }
    assert {said.noise for said in found} == {0.0}


def test_half_is_not_mostly_and_without_skill_there_is_nothing_to_lose() -> None:
    rows = [*items("a", None, HALF), *items("b", None, HALF)]

    def words(noisy: int, *more: Measurement) -> list[str]:
        known = [cell("a", "reachable", 100), cell("b", "lucky", noisy)]
        return [s.word for s in foreseen(known, [*rows, *more], {"a": 0.5, "b": 0.5}) if (s.arm, s.task) == ("uniform", "a")]

    assert words(100, skill("a")) == ["as forecast"]
    assert words(101, skill("a")) == ["at risk"]
    assert words(101, skill("a", low=0.0)) == words(101) == ["as forecast"]


@given(st.integers(1, 500), st.integers(1, 500), st.integers(1, 500), st.integers(0, 500))
def test_more_rows_of_noise_never_lower_the_share_of_noise(skilled: int, other: int, noisy: int, more: int) -> None:
    rows = items("a", None, 1) + items("b", None, HALF) + items("c", None, 3)

    def noise(count: int) -> float:
        known = [cell("a", "reachable", skilled), cell("b", "reachable", other), cell("c", "lucky", count)]
        return next(s.noise for s in foreseen(known, rows, {"a": 1.0, "b": 0.0, "c": 0.0}) if s.arm == "uniform")

    assert noise(noisy) <= noise(noisy + more)


# starved


def test_edges_of_starved() -> None:
    assert is_starved(0.0099, 0.04)
    assert not is_starved(0.01, 0.04)  # a quarter
    assert is_starved(0.0199, 0.2)
    assert not is_starved(0.02, 0.2)  # 2 points
    assert is_starved(0.0, 0.01)
    assert not is_starved(0.0, 0.0099)  # the plan itself teaches less than a point


def test_starved_by_hand() -> None:
    # uniform: 0.4 of 40 steps on a: gain 0.25 * (1 - exp(-0.01)) = 0.0025; the plan, 36 steps: 0.1484
    known = [cell("a", "reachable", 10), cell("b", "reachable", 990), cell("c", "unknown", 10)]
    rows = items("a", None, HALF) + items("b", None, HALF) + items("c", None, HALF)
    found = foreseen(known, rows, {"a": 0.9, "b": 0.05, "c": 0.05})
    uniform = {said.task: said for said in found if said.arm == "uniform"}
    assert [said.word for said in uniform.values()] == ["starved", "as forecast", "as forecast"]  # c is not shown to depend
    assert uniform["a"].because == (
        "0.4 steps' worth of draws, 2 informative groups, under the plan 36.0 steps' worth of draws, 192 informative "
        "groups: +0.2 points expected, under the plan +14.8"
    )
    assert {said.word for said in found if said.arm in ("equal_shares", "steered")} == {"as forecast"}


def test_a_task_may_be_starved_and_at_risk_and_the_terminal_says_both() -> None:
    known = [cell("a", "reachable", 5), cell("b", "reachable", 5), cell("c", "lucky", 990)]
    rows = [*items("a", None, HALF), *items("b", None, HALF), *items("c", None, HALF), skill("a"), skill("b")]
    said = with_foreseen(plan({"a": 0.5, "b": 0.5, "c": 0.0}, known), data(known), [*rows, *world_rows(known)], SETUP)
    pairs = [(one.task, one.word) for one in said.foreseen if one.arm == "uniform"]
    assert pairs == [("a", "starved"), ("a", "at risk"), ("b", "starved"), ("b", "at risk"), ("c", "as forecast")]
    (line,) = lines_of(said)
    assert line.startswith("uniform would starve a and b and put them at risk of damage: 99% of the groups")
    less = replace(said, foreseen=tuple(one for one in said.foreseen if (one.task, one.word) != ("b", "starved")))
    assert lines_of(less)[0].startswith("uniform would starve a and put a and b at risk of damage: 99%")
    assert lines_of(replace(said, foreseen=())) == []


def world_rows(known: list[CellPlan]) -> list[Measurement]:
    return [row(one.task, one.level, one.success or 0.0, 0.0, 1.0) for one in known]


# where nothing is foreseen, and what must not change


def test_nothing_is_foreseen_without_grpo_or_without_measured_items() -> None:
    known = [cell("a", "reachable", 10)]
    rows = items("a", None, HALF) + world_rows(known)
    made = plan({"a": 1.0}, known)
    assert len(with_foreseen(made, data(known), rows, SETUP).foreseen) == 3
    sft = replace(made, stages=(replace(made.stages[0], objective="sft"),))
    assert with_foreseen(sft, data(known), rows, SETUP) == sft
    assert with_foreseen(made, data(known), world_rows(known), SETUP) == made
    assert with_foreseen(made, [*data(known), Cell("b", None, 5)], rows, SETUP) == made  # b was never measured


@pytest.mark.parametrize("planner", ["difficulty", "proportional"])
def test_every_planner_gets_it_and_keeps_all_other_values(planner: str) -> None:
    rows = world_competence(np.random.default_rng(0))
    rows += [one for c in world_cells() for one in items(c.task, c.level, HALF)]
    made = create("planners", planner).plan(world_cells(), rows, SETUP)
    said = with_foreseen(made, world_cells(), rows, SETUP)
    assert replace(said, foreseen=()) == made
    assert {one.arm for one in said.foreseen} == {"uniform", "equal_shares", "steered"}


def test_plans_of_before_load_and_new_ones_come_back(tmp_path: Path) -> None:
    old = {"planner": "p", "stages": [], "why": {}}
    assert from_data(Plan, old).foreseen == ()
    known = [cell("a", "reachable", 10)]
    said = with_foreseen(plan({"a": 1.0}, known), data(known), items("a", None, HALF) + world_rows(known), SETUP)
    write_plan(tmp_path / "plan.yaml", said)
    assert read_plan(tmp_path / "plan.yaml") == said


def test_what_is_foreseen_does_not_make_a_finished_branch_out_of_date() -> None:
    known = [cell("a", "reachable", 10)]
    bare = plan({"a": 1.0}, known)
    said = with_foreseen(bare, data(known), items("a", None, HALF) + world_rows(known), SETUP)
    assert said.foreseen

    def digest(made: Plan) -> str:
        return branch_digest(Branch(made), RunConfig(CorpusConfig("rows")), corpus="c", base="b", arm="steered", seed=0)

    assert digest(said) == digest(bare) != digest(replace(bare, planner="other"))


# scores


@pytest.mark.parametrize(
    ("word", "after", "low", "high", "wanted"),
    [
        ("starved", 0.5, -0.03, 0.019, "right"),
        ("starved", 0.5, 0.001, 0.019, "right"),  # a gain, and under 2 points
        ("starved", 0.5, 0.001, 0.02, "wrong"),
        ("starved", 0.5, 0.0, 0.02, "cannot tell"),
        ("at risk", 0.5, -0.3, -0.001, "right"),
        ("at risk", 0.5, -0.01, -0.001, "right"),
        ("at risk", 0.5, -0.019, 0.0, "wrong"),
        ("at risk", 0.5, -0.02, 0.0, "cannot tell"),
        ("as forecast", 0.4, -0.3, -0.1, "right"),
        ("as forecast", 0.39, 0.0, 0.1, "wrong"),
        ("as forecast", 0.61, 0.0, 0.1, "wrong"),
    ],
)
def test_scores_by_hand(word: ForeseenWord, after: float, low: float, high: float, wanted: str) -> None:
    said = Foreseen("uniform", "a", word, 0.5, 0.4, 0.6, 3.0, 0.7, "")
    assert score_of(said, after, Interval((low + high) / 2, low, high, 8)) == wanted


def run_with(tmp_path: Path, *said: Foreseen) -> RunFolder:
    run = build(tmp_path)
    write_plan(run.plan, replace(read_plan(run.plan), foreseen=said))
    return run


def blocks_of(run: RunFolder) -> list[Block]:
    return create("sections", "foreseen").blocks(run)


def test_the_page_shows_right_and_wrong(tmp_path: Path) -> None:
    """In the example run `steered` gains on gcd and chain_sum; `frozen` and `steered` change places, so it loses there."""
    because = "68% of the groups would come from <b>noise</b>"
    wanted: list[tuple[str, ForeseenWord, float]] = [
        ("gcd", "at risk", 0.6),
        ("gcd", "starved", 0.6),
        ("chain_sum", "as forecast", 0.05),
        ("absent", "starved", 0.5),
    ]
    said = [Foreseen("steered", task, word, 0.5, 0.0, high, 12.4, 0.68, because) for task, word, high in wanted]
    run = run_with(tmp_path, *said, replace(said[0], arm="not_run"))
    for seed in range(5):
        first, other = (run.branch(arm, seed) / "after.parquet" for arm in ("frozen", "steered"))
        kept = first.read_bytes()
        first.write_bytes(other.read_bytes())
        other.write_bytes(kept)
    text, _, table, _ = blocks_of(run)
    assert isinstance(text, Paragraph)
    assert isinstance(table, Table)
    assert [(one[1], one[2], one[-1]) for one in table.rows] == [
        ("gcd", "at risk", "right"),
        ("gcd", "starved", "right"),
        ("chain_sum", "as forecast", "wrong"),
    ]
    assert table.rows[0][:6] == ("steered", "gcd", "at risk", "50 %", "0 % to 60 %", "12")
    assert text.text == (
        "steered against frozen: 1 of 1 task at risk of damage lost success; 1 of 1 task starved did not gain 2 points; "
        "0 of 1 task with neither word ended in their 80 % range (1 outside it). Before the run 68 % of its informative "
        "groups were expected from cells whose answers are not shown to depend on their prompts."
    )
    page = render(run).read_text(encoding="utf-8")
    assert "What each arm was expected to starve and to damage" in page
    assert "&lt;b&gt;noise" in page
    found = read_json(run.data, dict)["foreseen"]
    assert [one["word"] for one in found] == ["right", "right", "wrong"]
    assert json.dumps(found[0]["foreseen"]["because"]) == json.dumps(because)
    assert found[0]["change"]["high"] < 0


def test_the_first_screen_says_what_became_of_tasks_that_other_arms_put_at_risk(tmp_path: Path) -> None:
    """In the example run `frozen` and `uniform` change places, so uniform loses in gcd what it had gained."""
    risk = Foreseen("uniform", "gcd", "at risk", 0.5, 0.0, 0.6, 12.4, 0.68, "")
    run = run_with(tmp_path, risk, replace(risk, task="chain_sum"), replace(risk, arm="steered"))
    for seed in range(5):
        first, other = (run.branch(arm, seed) / "after.parquet" for arm in ("frozen", "uniform"))
        kept = first.read_bytes()
        first.write_bytes(other.read_bytes())
        other.write_bytes(kept)
    came = {one.foreseen.task: one.word for one in scored(run) if one.foreseen.arm == "uniform"}
    told = [block.text for block in create("sections", "damaged").blocks(run) if isinstance(block, Paragraph)]
    assert came == {"gcd": "cannot tell", "chain_sum": "right"}
    (text,) = [one for one in told if "at risk" in one]
    assert text.startswith("Before the run the plan said that uniform puts gcd and chain_sum at risk.")
    moved = r"chain_sum lost: sampled success 50 % to \d+ %, against frozen \N{MINUS SIGN}\d.* points, this interval"
    assert re.search(moved + r" by itself\. Cannot tell: gcd\.$", text)


def test_without_frozen_an_arm_is_scored_against_its_start_and_old_plans_show_nothing(tmp_path: Path) -> None:
    run = run_with(tmp_path, Foreseen("steered", "gcd", "starved", 0.5, 0.4, 0.6, 3.0, 0.0, ""))
    result = json.loads(run.result.read_text(encoding="utf-8"))
    result["arms"].remove("frozen")
    run.result.write_text(json.dumps(result), encoding="utf-8")
    (came,) = scored(run)
    assert (came.against, came.word) == ("its start", "wrong")
    assert came.change.low > 0
    write_plan(run.plan, replace(read_plan(run.plan), foreseen=()))
    assert blocks_of(run) == []
    assert to_data(scored(run)) == []


def test_the_terminal_says_it_on_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    said = Foreseen("uniform", "a\n\x1b[31mb", "starved", 0.5, 0.4, 0.6, 3.0, 0.0, "")
    made = replace(plan({"a": 1.0}, []), foreseen=(said,))
    monkeypatch.setattr(direct_plan, "plan", lambda *_, **__: (None, None, made, None))
    planning.plan_checkpoint("model", Measuring(), {}, None, None, None)
    shown = capsys.readouterr()
    assert shown.err == "plan: uniform would starve a  [31mb\n"
    assert "foreseen" in shown.out
