"""The gate: passing, damage, what is inconclusive, what is protected, and how often it is wrong."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from _example_run import build, build_pair, item_rows
from _scores import scores
from answer_rows import write_measured
from verdicts import judge_run

from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.estimates.exclusion import CHURN_SHARE, churn_for_error, estimate_churn_of_others, items_to_exclude
from mixwright.estimates.protected import cells_with_right_answers, find_unreadable_cells
from mixwright.records import Example
from mixwright.run.folder import RunFolder
from mixwright.verbs import compare
from mixwright.verbs.gating import Gating
from mixwright.verdict.rules.evidence import Evidence
from mixwright.verdict.rules.gate import (
    GateResult,
    check_protected,
    check_sides,
    items_to_measure,
    list_cells,
    named_cells,
)
from mixwright.verdict.rules.gate_question import GateQuestion, write_question
from mixwright.verdict.rules.gate_run import ask_gate

Cells = dict[tuple[str, float | None], np.ndarray]


def churned(cells: int, items: int, *, success: float, loss: float, churn: float, rng: np.random.Generator) -> list[Cells]:
    """Before and after of cells whose success falls by `loss` while `churn` of the items change."""
    before, after = {}, {}
    for place in range(cells):
        old, draw = rng.random(items) < success, rng.random(items)
        down, up = (churn + loss) / 2 / success, (churn - loss) / 2 / (1 - success)
        before["t", float(place)], after["t", float(place)] = old, np.where(old, draw >= down, draw < up)
    return [before, after]


def gate(before: Cells, after: Cells, **options: bool) -> GateResult:
    return check_protected([scores(before)], [scores(after)], list(before), **options)


def asked(run: RunFolder, *protected: str) -> GateResult:
    found = ask_gate(Evidence(run), GateQuestion(protected))
    assert found is not None
    return found


def fallen(items: int, lost: int) -> np.ndarray:
    return np.arange(items) >= lost


def test_an_unchanged_model_passes() -> None:
    values = {("t", 1.0): np.ones(400), ("t", 2.0): np.ones(400)}
    found = gate(values, values)
    assert found.outcome == "passed"
    assert found.mean is not None
    assert -0.05 < found.mean.low < 0
    # by hand: no item moved, so z squared squares are shared by the cells: error z sqrt(2 * 0.25 / 400 * 0.5 / 399)
    assert found.mean.error == pytest.approx(1.959964 * math.sqrt(2 * 0.25 / 400 * 0.5 / 399))


def test_a_significant_loss_is_damage_even_when_the_mean_holds() -> None:
    before = {("t", float(place)): np.ones(400) for place in range(20)}
    after = before | {("t", 3.0): fallen(400, 60)}
    found = gate(before, after)
    assert found.mean is not None
    assert found.mean.low > -0.05
    assert found.outcome == "damaged"
    assert [cell.level for cell in found.cells if cell.is_damaged] == [3.0]


def test_a_mean_below_zero_is_damage_though_no_cell_is() -> None:
    before = {("t", float(place)): np.ones(40) for place in range(40)}
    after = {cell: fallen(40, 3) for cell in before}
    found = gate(before, after)
    assert not any(cell.is_damaged for cell in found.cells)
    assert found.outcome == "damaged"
    # a small loss that is shown to be small enough is no damage
    assert gate(before, {cell: fallen(40, int(place < 8)) for place, cell in enumerate(before)}).outcome == "passed"


def test_too_few_items_cannot_tell_and_say_how_many_would() -> None:
    rng, items = np.random.default_rng(3), np.arange(40)
    found = gate({("t", 1.0): items < 32}, {("t", 1.0): (items >= 4) & (items < 36)})  # four fell, four rose
    assert found.outcome == "inconclusive"
    assert found.mean is not None
    assert found.items_needed is not None
    assert found.items_needed == items_to_measure(1) == 788, "the answers changed as often as is assumed"
    more = gate({("t", 1.0): items < 20}, {("t", 1.0): (items >= 8) & (items < 28)})  # eight fell, eight rose
    assert more.items_needed == items_to_exclude(0.05, 1, churn_for_error(more.mean.error, [40]))
    assert more.items_needed > 788
    # with about that many it passes
    passes = sum(
        gate(*churned(1, found.items_needed, success=0.8, loss=0.0, churn=0.2, rng=rng)).outcome == "passed"
        for _ in range(40)
    )
    assert passes >= 28


def test_one_cell_must_not_hide_behind_the_others() -> None:
    # the mean is safe and nothing is significant, but the cell of 60 could have lost more than 20 points
    big = {("t", float(place)): np.ones(900) for place in range(9)}
    before = big | {("u", None): np.ones(60)}
    found = gate(before, big | {("u", None): fallen(60, 8)})
    assert found.mean is not None
    assert found.mean.low > -0.05
    assert not any(cell.is_damaged for cell in found.cells)
    assert (found.outcome, found.cell_loss_limit) == ("inconclusive", 0.2)
    # by hand: 6 lost: squares 6 - .6, error sqrt((5.4 + 2.7055) / 59 / 60), t of 59 at 90 % is 1.671
    assert 0.1 + 1.671 * math.sqrt((5.4 + 2.7055) / 59 / 60) < 0.2 < 8 / 60 + 1.671 * math.sqrt((8 - 64 / 60) / 59 / 60)
    assert gate(before, big | {("u", None): fallen(60, 6)}).outcome == "passed"


def test_a_cell_too_small_to_exclude_a_loss_does_not_close_the_gate() -> None:
    big = {("t", float(place)): np.ones(900) for place in range(9)}
    found = gate(big | {("u", None): np.ones(10)}, big | {("u", None): fallen(10, 1)})
    assert (found.outcome, found.cell_loss_limit) == ("passed", 0.2)
    assert found.unseen_loss is not None
    assert found.unseen_loss >= 0.3


def test_a_cell_whose_skill_gave_way_to_the_commonest_answer_does_not_pass_behind_others() -> None:
    # success holds in all eight cells; in one of them half of it is what any prompt's answer earns
    cells = {("t", float(place)): fallen(100, 10) for place in range(8)}
    before = scores(cells, swapped=0.1)
    swapped = {cell: np.full(100, 0.5 if cell[1] == 3.0 else 0.1) for cell in cells}
    found = check_protected([before], [scores(cells, swapped=swapped)], list(cells))
    assert found.mean is not None
    assert found.mean.low > -0.05
    assert [cell.level for cell in found.cells if cell.word == "less dependent"] == [3.0]
    assert found.outcome == "damaged"
    assert check_protected([before], [before], list(cells)).outcome == "passed"


def test_each_asks_five_points_of_every_cell() -> None:
    rng = np.random.default_rng(0)
    sides = churned(6, 200, success=0.9, loss=0.0, churn=0.2, rng=rng)
    assert gate(*sides).outcome == "passed"
    found = gate(*sides, each_cell=True)
    assert found.outcome == "inconclusive"
    assert found.items_needed is not None
    assert found.items_needed > 200
    assert (
        gate(*(({cell: np.tile(v, 20) for cell, v in side.items()}) for side in sides), each_cell=True).outcome
        != "inconclusive"
    )


def test_protected_but_missing_or_too_small_is_no_pass() -> None:
    values = {("t", 1.0): np.ones(900)}
    old, new = scores(values | {("gone", None): np.ones(900)}), scores(values)
    found = check_protected([old], [new], [("t", 1.0), ("gone", None)])
    assert (found.outcome, found.items_needed) == ("inconclusive", None)
    few = values | {("few", None): np.ones(7)}
    assert gate(few, few).outcome == "inconclusive"
    alone = check_protected([old], [new], [("gone", None)])
    assert (alone.mean, alone.outcome) == (None, "inconclusive")
    # damage stays damage beside what is missing
    bad = check_protected([old], [scores({("t", 1.0): np.zeros(900)})], [("t", 1.0), ("gone", None)])
    assert bad.outcome == "damaged"


def test_nothing_protected_is_no_pass() -> None:
    values = {("t", 1.0): np.zeros(100)}
    found = check_sides(([scores(values)], [scores(values)]), "greedy", GateQuestion())
    assert (found.cells, found.outcome) == ((), "inconclusive")


@pytest.mark.parametrize(("right", "reason"), [(5, "too few items"), (0, "nothing to protect")])
def test_too_few_questions_are_not_taken_for_no_right_answer(tmp_path: Path, right: int, reason: str) -> None:
    """Five items of a task cannot be judged, although all were right before; a learned task alone has nothing to lose."""
    run = RunFolder(tmp_path)
    for when, known in (("before", right), ("after", 5)):
        values = [1.0] * known + [0.0] * (5 - known)
        rows = item_rows(("t", None), {"greedy": values, "pass@1": values, "greedy.swapped": [0.0] * 5})
        write_measured(run.measurements(when), rows)
    verdict = judge_run(run)
    assert (verdict.reason, verdict.exit_code) == (reason, 4)


def test_by_default_what_had_a_right_answer_under_the_declared_decoding_is_protected() -> None:
    cells = {("greedy", None): fallen(400, 399), ("sampled", None): np.zeros(400), ("few", None): np.ones(7)}
    sampled = {("greedy", None): np.zeros(400), ("sampled", None): np.full(400, 0.1), ("few", None): np.ones(7)}
    before = scores(cells, sampled=sampled)
    assert cells_with_right_answers([before], "greedy") == [("greedy", None)]
    assert cells_with_right_answers([before], "sampled") == [("sampled", None)]


def test_what_is_learned_does_not_pay_for_what_is_lost() -> None:
    """Two of 100 right in a task that is learned, and 6 points of 900 lost elsewhere: the mean of both would have risen."""
    kept = {("kept", float(level)): np.ones(900) for level in range(3)}
    before = kept | {("new", None): fallen(100, 98)}
    after = {cell: fallen(900, 54) for cell in kept} | {("new", None): np.ones(100)}
    found = check_sides(([scores(before)], [scores(after)]), "greedy", GateQuestion())
    assert {cell.task for cell in found.cells} == {"kept", "new"}
    assert found.mean is not None
    assert (found.mean.value, found.mean.items) == (pytest.approx(-0.06), 2700)


def test_a_cell_near_the_floor_counts_in_no_mean_and_has_no_bound() -> None:
    """9 of 100 right before cannot show a loss; where most of the group is like that, the gate says so."""
    floor, strong = {("floor", None): fallen(100, 91)}, {("strong", None): fallen(900, 100)}
    assert find_unreadable_cells([scores(floor | strong)], "greedy") == {("floor", None)}
    assert find_unreadable_cells([scores({("t", None): fallen(100, 90)})], "greedy") == set()
    lost = {("floor", None): np.zeros(100)}
    found = check_sides(([scores(floor | strong)], [scores(lost | strong)]), "greedy", GateQuestion())
    assert found.mean is not None
    assert (found.mean.value, found.mean.items, found.averaged) == (0, 900, 1)
    assert [(cell.readable, cell.loss_limit is None) for cell in found.cells] == [(False, True), (True, False)]
    more = {("floor", float(level)): fallen(100, 91) for level in range(3)} | strong
    unread = check_sides(([scores(more)], [scores(more)]), "greedy", GateQuestion())
    assert (unread.outcome, unread.lacks_right_answers) == ("inconclusive", True)


def test_a_task_near_the_floor_that_was_named_is_inconclusive() -> None:
    before = {("floor", None): fallen(400, 364), ("strong", None): fallen(900, 100)}
    found = gate(before, before, named_by_user=True)
    assert (found.outcome, found.lacks_right_answers) == ("inconclusive", True)


def test_names_of_tasks_and_cells() -> None:
    before = [scores({("gcd", 1.0): [1], ("gcd", 2.0): [1], ("lcm", None): [1]})]
    assert named_cells(list_cells(before), ["gcd"]) == [("gcd", 1.0), ("gcd", 2.0)]
    assert named_cells(list_cells(before), ["gcd@2", "lcm"]) == [("gcd", 2.0), ("lcm", None)]
    with pytest.raises(InputError, match="gcd"):
        named_cells(list_cells(before), ["gdc"])


def test_a_fall_from_the_commonest_answer_closes_the_gate() -> None:
    # 50 % to nothing, under a constant that earns 40 % in train and 10 % here
    before = {("t", 1.0): np.arange(200) % 2}
    assert gate(before, {("t", 1.0): np.zeros(200)}).outcome == "damaged"


def test_items_by_default() -> None:
    assert [items_to_measure(cells) for cells in (0, 1, 2, 4, 10)] == [788, 788, 395, 198, 82]


def test_items_of_a_comparison_follow_what_may_be_protected() -> None:
    rows = [
        Example(f"{level}-{place}", "sum", "1+1=", answer="2", level=level) for level in (1.0, 2.0) for place in range(3)
    ]
    cells = Corpus.from_examples(rows).cells()
    assert Gating().choose_items_per_cell(cells, None) == 395
    assert Gating(protect=["sum"]).choose_items_per_cell(cells, None) == 395
    assert Gating(protect=["sum@1"]).choose_items_per_cell(cells, None) == 788
    assert Gating(protect=["sum@1"]).choose_items_per_cell(cells, 40) == 40
    with pytest.raises(InputError, match="sum@3"):
        Gating(protect=["sum@3"]).choose_items_per_cell(cells, None)


def test_the_gate_of_a_run_folder(tmp_path: Path) -> None:
    run = build_pair(tmp_path / "pair")
    found = asked(run, "products@1")
    assert (found.outcome, len(found.cells)) == ("damaged", 1)
    assert asked(run, "chain_sum@1").outcome == "inconclusive"
    trial = asked(build(tmp_path / "trial"), "products")
    assert {cell.level for cell in trial.cells} == {1.0, 2.0, 3.0}
    assert trial.outcome == "damaged"
    assert ask_gate(Evidence(RunFolder(tmp_path / "empty"))) is None


def test_scores_that_are_not_numbers_are_not_measurable() -> None:
    values = {("t", 1.0): np.full(900, np.nan)}
    assert gate(values, values).outcome == "inconclusive"


@pytest.mark.slow
@pytest.mark.parametrize(("cells", "churn"), [(1, 0.2), (4, 0.2), (4, 0.06)])
def test_error_rates_at_the_default_size(cells: int, churn: float) -> None:
    rng, runs = np.random.default_rng(cells), 300
    items = items_to_measure(cells)
    passed = {
        loss: sum(
            gate(*churned(cells, items, success=0.9, loss=loss, churn=churn, rng=rng)).outcome == "passed"
            for _ in range(runs)
        )
        for loss in (0.0, 0.05)
    }
    assert passed[0.05] / runs <= 0.05, "2.5 % and twice its standard error, nearly"
    assert passed[0.0] / runs >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize(("starts", "items"), [((0.02, 0.04, 0.08, 0.1) * 5, 24), ((0.05, 0.2, 0.4, 0.6, 0.8, 0.93), 60)])
def test_error_rates_without_names(starts: tuple[float, ...], items: int) -> None:
    """An unharmed model is rarely called damaged, and a loss of 10 points hardly ever passes."""
    rng, runs = np.random.default_rng(items), 100
    said: dict[float, list[str]] = {}
    for loss in (0.0, 0.1):
        for _ in range(runs):
            before, after = {}, {}
            for place, start in enumerate(starts):
                old, churn = rng.random(items) < start, min(0.05, start / 2)
                flips = rng.random(items) < np.where(old, churn / start, churn / (1 - start))
                before["t", float(place)] = old
                after["t", float(place)] = (old ^ flips) & ~(rng.random(items) < min(1.0, loss / start))
            sides = [scores(before)], [scores(after)]
            said.setdefault(loss, []).append(check_sides(sides, "greedy", GateQuestion()).outcome)
    assert said[0.0].count("damaged") <= 0.08 * runs
    assert said[0.1].count("passed") <= 0.02 * runs


def test_several_seeds_share_their_items() -> None:
    old = scores({("t", 1.0): np.ones(100)})
    good, bad = scores({("t", 1.0): np.ones(100)}), scores({("t", 1.0): fallen(100, 40)})
    found = check_protected([old] * 3, [good, good, bad], [("t", 1.0)])
    assert found.mean is not None
    assert found.mean.seeds == 3
    assert found.mean.value == pytest.approx(-0.4 / 3)
    assert found.outcome == "inconclusive"


def test_damage_elsewhere_fails_unless_the_user_named_what_matters() -> None:
    before = {("safe", None): np.ones(800), ("other", None): fallen(200, 30)}
    after = {("safe", None): np.ones(800), ("other", None): np.zeros(200)}
    sides = [scores(before)], [scores(after)]
    found = check_protected(*sides, [("safe", None)])
    assert (found.outcome, [cell.task for cell in found.unprotected_losses]) == ("damaged", ["other"])
    told = check_protected(*sides, [("safe", None)], named_by_user=True)
    assert (told.outcome, [cell.task for cell in told.unprotected_losses]) == ("passed", ["other"])


def test_skill_that_gave_way_to_the_commonest_answer_is_damage() -> None:
    values = {("t", None): fallen(800, 200)}
    before = scores(values, swapped={("t", None): np.full(800, 0.1)})
    after = scores(values, swapped={("t", None): np.full(800, 0.7)})
    found = check_protected([before], [after], [("t", None)])
    assert found.mean is not None
    assert found.mean.value == 0
    assert found.dependence is not None
    assert found.dependence.value == pytest.approx(-0.6)
    assert found.outcome == "damaged"


@pytest.mark.parametrize(("right", "items", "code"), [("t", 40, 0), ("u", 40, 4), ("t", 4, 4)])
def test_warn_is_for_wide_intervals_not_for_what_was_not_measured(tmp_path: Path, right: str, items: int, code: int) -> None:
    """`u` has no item after, and 4 items are never judged: neither is waived."""
    run = RunFolder(tmp_path)
    for name, tasks in (("before", ("t", "u")), ("after", ("t",))):
        rows = [row for task in tasks for row in item_rows((task, None), {"greedy": [1.0, 0.0] * (items // 2)})]
        write_measured(run.measurements(name), rows)
    write_question(run, GateQuestion((right,)))
    assert (
        judge_run(run).exit_code,
        judge_run(run, inconclusive="warn").exit_code,
        judge_run(run, gated=False).exit_code,
    ) == (4, code, 0)


def test_half_of_a_comparison_is_never_judged_with_an_older_half(tmp_path: Path) -> None:
    run = build_pair(tmp_path / "pair")
    assert asked(run, "products").mean is not None
    compare.clear(run)  # then the new "before" is written, and the process is killed
    assert ask_gate(Evidence(run), GateQuestion(("products",))) is None


def test_twice_what_rose_or_fell_less_in_the_other_tasks_is_the_churn() -> None:
    changes = np.array([-1.0, -1, 0, 0, 1, 1, 1, -1, 0, 0, 0, 0, 0, 0])
    task = np.repeat([0, 1], [4, 10])
    assert estimate_churn_of_others(changes, task).tolist() == [0.2, 0.0], "what was learned is no churn, nor what was lost"
    half = np.array([0.5, -0.5, 0, 0, 1])
    assert estimate_churn_of_others(half, np.array([0, 0, 0, 0, 1])).tolist() == [0.0, 0.12], (
        "half a change counts a quarter"
    )
    assert estimate_churn_of_others(np.array([1.0, -1]), np.array([0, 0])).tolist() == [CHURN_SHARE], "no others"
