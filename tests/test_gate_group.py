"""The gate over one named group with a margin of its own: its rule, what items can exclude, the page and the exit code."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from _example_run import item_rows
from _scores import scores
from answer_rows import write_measured
from cli_call import Call
from verdicts import judge_run

from mixwright.estimates.exclusion import cell_loss_limits, items_to_exclude, unharmed_pass_share
from mixwright.estimates.looks import MAX_LOOKS, Look
from mixwright.run.folder import RunFolder, read_json
from mixwright.verbs.gating import Gating
from mixwright.verdict.rules.evidence import Evidence
from mixwright.verdict.rules.gate import GateResult, check_protected, check_sides, items_to_measure
from mixwright.verdict.rules.gate_question import GateQuestion, write_question
from mixwright.verdict.rules.gate_run import ask_gate

TASKS = ("a", "b", "c", "d")
Values = Mapping[str, Sequence[float] | np.ndarray]


def right(count: int, of: int = 30) -> list[float]:
    """So many right answers, the last ones."""
    return [float(place >= of - count) for place in range(of)]


def every(count: int) -> dict[str, list[float]]:
    return {task: right(count) for task in TASKS}


def gate(before: Values, after: Values, margin: float | None = 0.15) -> GateResult:
    sides = [[scores({(task, None): values for task, values in side.items()})] for side in (before, after)]
    return check_protected(sides[0], sides[1], [(task, None) for task in before], named_by_user=True, margin=margin)


def test_an_unharmed_group_passes_by_its_margin_where_the_default_cannot_tell() -> None:
    before = {task: right(24) for task in TASKS}
    after = {task: [1.0 if place < 2 else float(place >= 8) for place in range(30)] for task in TASKS}  # 2 up, 2 down
    found = gate(before, after)
    assert found.outcome == "passed"
    assert found.mean is not None
    # by hand: 4 squares and a fourth of z squared in each cell, 29 degrees of freedom, 30 items, 4 cells
    assert found.mean.error == pytest.approx(math.sqrt((4 + 3.8415 / 4) / 29 / 30 / 4), rel=1e-4)
    assert gate(before, after, None).outcome == "inconclusive"
    assert gate(before, after, 0.05).outcome == "inconclusive"
    assert found.cell_loss_limit == 0.35


def test_a_loss_of_the_mean_passes_only_where_it_is_shown_to_be_within_the_margin() -> None:
    # by hand: 3 of 30 lost in every cell: -10 points, error sqrt((2.7 + 0.96) / 29 / 30 / 4) = 3.24, so [-16.4, -3.6]
    before, after = every(30), {task: right(27) for task in TASKS}
    found = gate(before, after, 0.2)
    assert found.mean is not None
    assert (round(100 * found.mean.low, 1), round(100 * found.mean.high, 1)) == (-16.4, -3.6)
    assert not any(cell.is_damaged for cell in found.cells)
    assert found.outcome == "passed"
    lost = gate(before, after, 0.15)
    assert lost.outcome == "damaged"


def test_one_task_that_is_lost_is_damage_whatever_the_margin() -> None:
    before = every(30)
    assert gate(before, before | {"c": right(20)}, 0.3).outcome == "damaged"
    assert gate(before | {"c": right(27)}, before | {"c": right(0)}, 0.9).outcome == "damaged"
    assert gate(before, every(0), 0.99).outcome == "damaged"


def test_every_cell_excludes_what_its_items_can_under_any_margin() -> None:
    # by hand, 4 cells of 30: error sqrt((.2 + 2.7055 / 30) / 29) = .1000, t of 29 at 90 % 1.699, and the 96.7 % point of the
    # normal distribution, 1.84, times sqrt(.2 / 30) = .0816: .170 + .150, so 35 points in steps of 5
    limits = {items: cell_loss_limits((items,) * cells)[items] for cells, items in ((4, 30), (12, 60), (6, 150), (50, 16))}
    assert limits == {30: 0.35, 60: 0.25, 150: 0.2, 16: 0.6}
    assert cell_loss_limits((60,) * 12, churn=0.1)[60] == 0.2, "fewer answers change, so that 60 items exclude more"
    assert cell_loss_limits((30,) * 4, 0.5) == {30: 0.5}, "no single task has to exclude less than the mean"
    assert cell_loss_limits((8,) * 60) == {}, "no loss below 100 points that so few items exclude"
    before = every(24)
    gained = {task: right(28) for task in TASKS}
    # by hand: 9 of 30 lost: squares 9 - 2.7, error sqrt((6.3 + 2.7055) / 29 / 30) = .1017, so -30 - 17.3 points
    found = gate(before, gained | {"c": right(15)}, 0.15)
    assert found.mean is not None
    assert found.mean.low > -0.15
    assert [(cell.task, cell.loss_limit) for cell in found.cells if not cell.limit_excluded] == [("c", 0.35)]
    assert found.outcome != "passed"
    assert gate(before, gained | {"c": right(21)}, 0.15).outcome == "passed", "10 points lost, 13 more may be"


@pytest.mark.parametrize(("cells", "items"), [(6, 150), (12, 60), (4, 30), (20, 16)])
def test_the_default_margin_written_out_is_the_default(cells: int, items: int) -> None:
    rng = np.random.default_rng(cells)
    outcomes = set()
    for draw in range(24):
        before = {f"t{cell}": rng.random(items) < 0.7 for cell in range(cells)}
        after = {task: np.where(rng.random(items) < 0.1, rng.random(items) < 0.7, own) for task, own in before.items()}
        if draw % 2:
            after = {task: own | (rng.random(items) < 0.5) for task, own in after.items()}
            after["t0"] = before["t0"] & (rng.random(items) > 0.02 * draw)
        default, explicit = gate(before, after, None), gate(before, after, 0.05)
        assert replace(explicit, cells=()) == replace(default, cells=())
        judged = [
            [(cell.judged, cell.loss_limit, cell.limit_excluded) for cell in found.cells] for found in (default, explicit)
        ]
        assert judged[0] == judged[1]
        outcomes.add(default.outcome)
    assert len(outcomes) > 1 or items < 60


@pytest.mark.parametrize("margin", [None, 0.05, 0.1, 0.15, 0.2])
def test_one_task_of_sixty_items_that_loses_forty_points_among_gains_never_passes(margin: float | None) -> None:
    rng = np.random.default_rng(4)
    for _ in range(10):
        before = {f"t{cell}": rng.random(60) < 0.7 for cell in range(12)}
        after = {task: own | (rng.random(60) < 0.5) for task, own in before.items()}
        after["t0"] = before["t0"] & (rng.random(60) > 0.4 / 0.7)
        assert gate(before, after, margin).outcome != "passed"


def test_ten_of_fifty_levels_that_lose_forty_points_among_gains_never_pass() -> None:
    rng, unharmed = np.random.default_rng(6), 0
    cells: list[tuple[str, float | None]] = [("t", float(level)) for level in range(50)]

    def outcome(before: np.ndarray, after: np.ndarray, margin: float | None) -> str:
        sides = [[scores(dict(zip(cells, side.astype(float).tolist(), strict=True)))] for side in (before, after)]
        return check_protected(sides[0], sides[1], cells, named_by_user=True, margin=margin).outcome

    for margin in (None, 0.15, None, 0.15):
        before, redrawn = rng.random((50, 16)) < 0.7, rng.random((50, 16)) < 0.2
        after = before | (rng.random((50, 16)) < 0.6)
        after[::5] = before[::5] & (rng.random((10, 16)) > 0.4 / 0.7)
        assert outcome(before, after, margin) != "passed"
        unharmed += outcome(before, np.where(redrawn, rng.random((50, 16)) < 0.7, before), 0.15) == "passed"
    assert unharmed >= 3


def test_the_loss_that_is_said_to_pass_unseen_is_not_too_low() -> None:
    """Five points more than is printed pass in at most one of 20 cases where others gain; by another simulation."""
    rng, draws, passes = np.random.default_rng(7), 300, 0
    before = {task: right(21) for task in TASKS}
    printed = gate(before, before).unseen_loss
    assert printed is not None
    assert 0.1 < printed < 0.35, "what is below the loss that every task has to exclude"
    for _ in range(draws):
        after = {task: np.array(own) for task, own in before.items()}
        after = {task: np.where(rng.random(30) < 0.2, rng.random(30) < 0.7, own) for task, own in after.items()}
        after = {task: own.astype(bool) | (rng.random(30) < 0.5) for task, own in after.items()}
        lost = np.where(rng.random(30) < 0.2, rng.random(30) < 0.7, before["a"]).astype(bool)
        after["a"] = lost & (rng.random(30) > (printed + 0.05) / 0.7)
        passes += gate(before, after).outcome == "passed"
    assert passes / draws <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)


@pytest.mark.parametrize(
    ("before", "after", "margin", "outcome"),
    [
        (4, 4, None, "inconclusive"),  # 2 % of 200 cannot lose 5 points
        (4, 4, 0.01, "inconclusive"),  # nor be read at all
        (20, 20, None, "passed"),
        (20, 20, 0.15, "inconclusive"),
        (4, 120, None, "passed"),  # nothing that was there is hidden by this metric
        (0, 2, None, "inconclusive"),
        (60, 0, None, "damaged"),
    ],
)
def test_a_loss_that_is_impossible_is_not_excluded(before: int, after: int, margin: float | None, outcome: str) -> None:
    many = {"many": right(150, 200)}
    found = gate({"few": right(before, 200)} | many, {"few": right(after, 200)} | many, margin)
    assert found.outcome == outcome
    assert found.lacks_right_answers == (outcome == "inconclusive")


def test_a_protected_cell_that_was_not_measured_is_no_pass_and_no_damage() -> None:
    before, after = every(30), {task: right(30) for task in TASKS[:3]}
    found = gate(before, after, 0.3)
    assert (found.outcome, found.items_needed) == ("inconclusive", None)


def test_dependence_is_judged_by_the_same_margin() -> None:
    cells: dict[tuple[str, float | None], list[float]] = {(task, None): values for task, values in every(30).items()}
    old, new = scores(cells, swapped=0.0), scores(cells, swapped=0.1)
    found = [
        check_protected([old], [new], list(cells), named_by_user=True, margin=margin).outcome for margin in (0.05, 0.15)
    ]
    assert found == ["damaged", "passed"]


def test_what_items_can_exclude_is_what_the_formula_says() -> None:
    # by hand: error sqrt((6 + 3.8415 / 4) / (29 * 30 * 4)) = .04472, t of 116 is 1.9806; spread sqrt(.2 / 120)
    by_hand = 0.5 * math.erfc(-(0.15 - 1.9806 * 0.04472) / math.sqrt(0.2 / 120) / math.sqrt(2))
    assert unharmed_pass_share([30] * 4, 0.15) == pytest.approx(by_hand, abs=2e-3)
    assert by_hand == pytest.approx(0.934, abs=1e-3)
    for margin, cells in ((0.15, 4), (0.05, 1), (0.3, 9)):
        items = items_to_exclude(margin, cells)
        assert unharmed_pass_share([items] * cells, margin) >= 0.875
        assert items == 8 or unharmed_pass_share([items - 1] * cells, margin) < 0.875
        assert items_to_measure(cells, margin=margin) == items


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--protect", "a", "--margin", "0"), "--margin in points, above 0 and below 100, got 0"),
        (("--protect", "a", "--margin", "100"), "--margin in points, above 0 and below 100, got 100"),
        (("--protect", "a", "--margin", "nan"), "--margin in points, above 0 and below 100, got nan"),
        (("--protect", "a", "--margin", "15", "--each"), "--margin or --each, got both"),
    ],
)
def test_a_wrong_margin_is_refused(call: Call, options: tuple[str, ...], told: str) -> None:
    code, out, err = call("verdict", "somewhere", *options)
    assert (code, out) == (1, "")
    assert told in err


def test_margins_are_points() -> None:
    assert Gating(True, ("a",), margin=15).margin_share == 0.15
    assert Gating(True, ("a",)).margin_share is None


def folder(
    path: Path, before: Values, after: Values, protect: Sequence[str] = TASKS, margin: float | None = 0.15
) -> RunFolder:
    run = RunFolder(path)
    for name, side in (("before", before), ("after", after)):
        parts = ({"greedy": values, "greedy.swapped": [0.0] * len(values)} for values in side.values())
        rows = [row for task, part in zip(side, parts, strict=True) for row in item_rows((task, None), part)]
        write_measured(run.measurements(name), rows)
    write_question(run, GateQuestion(tuple(protect), margin=margin))
    return run


def test_reason_and_exit_code_of_a_folder_are_those_of_its_group(tmp_path: Path) -> None:
    near = judge_run(folder(tmp_path / "near", every(30), every(27), margin=0.2))
    assert (near.exit_code, near.reason) == (0, "kept")
    far = judge_run(folder(tmp_path / "far", every(30), every(27)))
    assert (far.exit_code, far.reason) == (3, "the average fell")
    lost = judge_run(folder(tmp_path / "lost", every(30), every(30) | {"b": right(3)}))
    assert (lost.exit_code, lost.reason, lost.tasks[0].task) == (3, "a task was lost", "b")
    wide = judge_run(folder(tmp_path / "wide", every(24), every(24), margin=0.01))
    assert (wide.exit_code, wide.reason) == (4, "too few items")


def test_the_headline_names_the_task_that_fell_before_an_average_that_did_not(tmp_path: Path) -> None:
    names, levels = ("facts", "more", "sums"), [("sums", float(level)) for level in range(4)]
    run = RunFolder(tmp_path / "levels")
    for name, lost, rest in (("before", 42, 30), ("after", 39, 34)):  # 3 of 60 in each of four levels, and as many gained
        counts = {("facts", None): rest, ("more", None): rest} | dict.fromkeys(levels, lost)
        rows = [row for cell, count in counts.items() for row in item_rows(cell, {"greedy": right(count, 60)})]
        write_measured(run.measurements(name), rows)
    write_question(run, GateQuestion(names, margin=0.05))
    found = judge_run(run)
    assert (found.outcome, found.tasks[0].task, found.tasks[0].protected) == ("damaged", "sums", True)
    assert found.headline == f"DO NOT SHIP {found.after}. It lost sums (\N{MINUS SIGN}5.0 points)."
    before = dict.fromkeys("abcdefgh", right(42, 60))
    fell = before | {"a": right(33, 60)}
    unclear = judge_run(
        folder(tmp_path / "unclear", before, fell | dict.fromkeys("bcdefgh", right(44, 60)), "abcdefgh", None)
    )
    assert "E for after. Perhaps lower: a (\N{MINUS SIGN}15 points)." in unclear.headline
    few = judge_run(folder(tmp_path / "few", {"a": right(1, 10)}, {"a": right(0, 10)}, (), None))
    assert (few.gate and few.gate.mean and few.gate.mean.value) == 0, "an item in it was chosen by the others of its task"
    assert "E for after. Perhaps lower: a (\N{MINUS SIGN}10 points). The average changed by 0" in few.headline
    average = judge_run(folder(tmp_path / "average", before, fell, (), None))
    assert average.reason == "the average fell"
    assert average.headline.startswith(f"DO NOT SHIP {average.after}. Lower: a (\N{MINUS SIGN}15 points). The average")


def test_a_loss_of_what_was_not_named_is_told_and_does_not_close_the_gate(tmp_path: Path) -> None:
    run = judge_run(folder(tmp_path / "run", every(30), every(30) | {"d": right(3)}, TASKS[:3]))
    assert (run.exit_code, run.tasks[0].task, run.tasks[0].word, run.tasks[0].protected) == (0, "d", "lost", False)
    assert "d (" in run.headline
    both = folder(tmp_path / "both", every(30), every(30) | {"d": right(3), "c": right(3)}, TASKS[:3])
    assert judge_run(both).exit_code == 3


def test_the_gate_of_a_folder_is_that_of_its_tables(tmp_path: Path) -> None:
    run = folder(tmp_path / "run", every(30), every(27), margin=None)
    assert read_json(run.path / "gate.json", GateQuestion) == GateQuestion(TASKS)
    before, after = ([scores({(task, None): values for task, values in side.items()})] for side in (every(30), every(27)))
    found = ask_gate(Evidence(run))
    alone = check_protected(before, after, [(task, None) for task in TASKS], named_by_user=True)
    assert found is not None
    assert [(cell.key, cell.judged) for cell in found.cells] == [(cell.key, cell.judged) for cell in alone.cells]
    assert replace(found, cells=()) == replace(alone, cells=())


def rings(before: Values, after: Values, groups: Mapping[str, tuple[str, ...]], look: Look | None = None) -> GateResult:
    sides = [[scores({(task, None): values for task, values in side.items()})] for side in (before, after)]
    return check_sides((sides[0], sides[1]), "greedy", GateQuestion(rings=tuple(groups.items()), look=look))


def test_what_is_kept_in_one_group_does_not_pay_for_what_is_lost_in_another() -> None:
    kept, names = {task: right(200, of=250) for task in "abcdef"}, {"replayed": tuple("abcdef"), "sealed": ("x", "y")}
    before = kept | {"x": right(200, of=250), "y": right(200, of=250)}
    after = kept | {"x": right(178, of=250), "y": right(178, of=250)}  # 8.8 points
    pooled = gate(before, after).mean
    assert pooled is not None
    assert pooled.value == pytest.approx(-0.022)
    found = rings(before, after, names)
    assert found.outcome == "damaged"
    assert [(ring.name, ring.outcome) for ring in found.rings] == [("replayed", "passed"), ("sealed", "damaged")]
    assert found.mean is not None
    assert found.mean.value == pytest.approx(-0.088), "of the worst group"
    assert {cell.task for cell in found.cells} == {*"abcdef", "x", "y"}
    assert rings(before, before, names).outcome == "passed"


def test_a_group_without_names_has_the_tasks_of_no_other_and_each_has_its_own_outcome() -> None:
    before = {"a": right(200, of=250), "b": right(200, of=250), "mine": right(12, of=16)}
    found = rings(before, before, {"replayed": ("a", "b"), "your tasks": ()})
    assert [ring.outcome for ring in found.rings] == ["passed", "inconclusive"]
    assert found.outcome == "inconclusive"
    assert [cell.task for cell in found.cells] == ["a", "b", "mine"]


def test_a_ruined_model_is_told_at_the_first_look_and_an_unharmed_one_never_there() -> None:
    names = {"replayed": tuple("abcdef"), "sealed": ("x", "y", "z")}
    before = {task: right(6, of=9) for tasks in names.values() for task in tasks}
    first = Look(1, 81, 1296, MAX_LOOKS)
    ruined = rings(before, dict.fromkeys(before, right(0, of=9)), names, first)
    assert ruined.outcome == "damaged"
    assert ruined.mean is not None
    assert -1 <= ruined.mean.low < ruined.mean.high < -0.05
    assert rings(before, dict.fromkeys(before, right(4, of=9)), names, first).outcome == "inconclusive", "a third lost"
    assert rings(before, before, names, first).outcome == "inconclusive", "an unharmed one needs more items"


def test_a_new_task_of_the_user_has_nothing_to_lose_and_does_not_keep_the_gate_open() -> None:
    names = {"replayed": ("a", "b"), "your tasks": ()}
    before = {"a": right(200, of=250), "b": right(200, of=250), "new": right(0, of=40)}
    found = rings(before, before | {"new": right(39, of=40)}, names)
    assert (found.outcome, [ring.outcome for ring in found.rings]) == ("passed", ["passed", "inconclusive"])
    assert rings({"new": right(0, of=40)}, {"new": right(39, of=40)}, {"your tasks": ()}).outcome == "inconclusive"
