"""The gate: passing, damage, what cannot be told, what is protected, and how often it is wrong."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from _example_run import build, build_pair
from _scores import scores

from mixwright.cli import compare
from mixwright.cli.gating import Gating
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.estimates.exclusion import churn_for_error, items_to_exclude
from mixwright.estimates.loss_limits import SimulatedCheckpoint, find_min_items_for_cell_rule, share_passing
from mixwright.records import Example
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.text import MINUS_SIGN
from mixwright.verdict.rules.gate import (
    GateResult,
    check_mastered,
    check_protected,
    decides_protection,
    items_to_measure,
    mastered_cells,
    named_cells,
)
from mixwright.verdict.rules.gate_question import GateQuestion
from mixwright.verdict.rules.gate_run import check_gate
from mixwright.verdict.rules.gate_words import gate_lines

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


def fallen(items: int, lost: int) -> np.ndarray:
    return np.arange(items) >= lost


def test_an_unchanged_model_passes() -> None:
    values = {("t", 1.0): np.ones(400), ("t", 2.0): np.ones(400)}
    found = gate(values, values)
    assert (found.outcome, found.exit_code(), found.exit_code("warn")) == ("passed", 0, 0)
    assert found.mean is not None
    assert -0.05 < found.mean.low < 0
    # by hand: no item moved, so z squared squares are shared by the cells: error z sqrt(2 * 0.25 / 400 * 0.5 / 399)
    assert found.mean.error == pytest.approx(1.959964 * math.sqrt(2 * 0.25 / 400 * 0.5 / 399))
    assert gate_lines(found)[0].startswith("passed: mean over 2 protected cells 0 points")


def test_a_significant_loss_is_damage_even_when_the_mean_holds() -> None:
    before = {("t", float(place)): np.ones(400) for place in range(20)}
    after = before | {("t", 3.0): fallen(400, 60)}
    found = gate(before, after)
    assert found.mean is not None
    assert found.mean.low > -0.05
    assert (found.outcome, found.exit_code()) == ("damaged", 3)
    assert [cell.level for cell in found.cells if cell.is_damaged] == [3.0]
    assert f"t@3: {MINUS_SIGN}15 points" in "\n".join(gate_lines(found))


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
    assert (found.outcome, found.exit_code(), found.exit_code("warn")) == ("cannot tell", 4, 0)
    assert found.mean is not None
    assert found.items_needed is not None
    assert found.items_needed == items_to_measure(1, chosen=True) == 788, "the answers changed as often as is assumed"
    text = gate_lines(found, "warn")
    assert f"{found.items_needed:,} items per cell" in text[0]
    assert "a loss of at most" in text[1]
    more = gate({("t", 1.0): items < 20}, {("t", 1.0): (items >= 8) & (items < 28)})  # eight fell, eight rose
    assert more.items_needed == items_to_exclude(0.05, 1, churn_for_error(more.mean.error, [40]))
    assert more.items_needed > 788
    assert text[-1].startswith("warning:")
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
    assert (found.outcome, found.cell_loss_limit, found.cell_rule_items) == ("cannot tell", 0.2, 60)
    # by hand: 6 lost: squares 6 - .6, error sqrt((5.4 + 2.7055) / 59 / 60), t of 59 at 90 % is 1.671
    assert 0.1 + 1.671 * math.sqrt((5.4 + 2.7055) / 59 / 60) < 0.2 < 8 / 60 + 1.671 * math.sqrt((8 - 64 / 60) / 59 / 60)
    assert gate(before, big | {("u", None): fallen(60, 6)}).outcome == "passed"


def test_a_cell_too_small_to_exclude_a_loss_does_not_close_the_gate_and_is_told() -> None:
    big = {("t", float(place)): np.ones(900) for place in range(9)}
    found = gate(big | {("u", None): np.ones(10)}, big | {("u", None): fallen(10, 1)})
    assert (found.outcome, found.cell_loss_limit, found.cell_rule_items) == ("passed", 0.2, 900)
    assert found.unseen_loss is not None
    assert found.unseen_loss >= 0.3
    told = gate_lines(found)
    assert "a loss of 20 in any cell of 900 items or more" in told[0]
    assert "points in one of the 10 cells would pass in more than one of 20 cases" in told[1]


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
    assert found.outcome == "cannot tell"
    assert found.items_needed is not None
    assert found.items_needed > 200
    assert (
        gate(*(({cell: np.tile(v, 20) for cell, v in side.items()}) for side in sides), each_cell=True).outcome
        != "cannot tell"
    )


def test_protected_but_missing_or_too_small_is_no_pass() -> None:
    values = {("t", 1.0): np.ones(900)}
    old, new = scores(values | {("gone", None): np.ones(900)}), scores(values)
    found = check_protected([old], [new], [("t", 1.0), ("gone", None)])
    assert (found.outcome, found.items_needed) == ("cannot tell", None)
    assert any(line.startswith("gone: not measurable") for line in gate_lines(found))
    few = values | {("few", None): np.ones(7)}
    assert gate(few, few).outcome == "cannot tell"
    alone = check_protected([old], [new], [("gone", None)])
    assert (alone.mean, alone.exit_code()) == (None, 4)
    # damage stays damage beside what is missing
    bad = check_protected([old], [scores({("t", 1.0): np.zeros(900)})], [("t", 1.0), ("gone", None)])
    assert bad.outcome == "damaged"


def test_nothing_protected_is_no_pass() -> None:
    values = {("t", 1.0): np.arange(100) % 2}
    found = check_mastered([scores(values)], [scores(values)])
    assert (found.cells, found.exit_code()) == ((), 4)
    assert "nothing was protected" in gate_lines(found)[0]


def test_cells_too_small_to_protect_are_named_with_the_reason() -> None:
    """20 items all right: 4 or so decide, and 8 must; of 200 that do, a loss is excluded, and the small cell is told all the
    same. A cell of 60 % is none of them."""
    small = {("few", 1.0): np.ones(20), ("half", None): fallen(20, 8)}
    found = check_mastered([scores(small)], [scores(small)])
    deciding = sum(decides_protection(item) for item in scores(small).items if item[0] == "few")
    assert deciding < 8
    assert [(one.cell, one.before, one.items, one.deciding) for one in found.too_small] == [
        (("few", 1.0), 1.0, 20, deciding)
    ]
    head, told = gate_lines(found)
    assert (found.exit_code(), found.exit_code("warn")) == (4, 4)
    assert head.startswith("cannot tell: nothing was protected. No cell of enough items had 90 % before")
    assert told.startswith(
        f"few@1: 100 % before, and not protected: one item in 5 decides what is, {deciding} of its 20 items"
    )
    assert "measure about 40 items, or name it with --protect" in told
    both = small | {("many", None): np.ones(1200)}
    found = check_mastered([scores(both)], [scores(both)])
    assert found.outcome == "passed"
    assert gate_lines(found)[-1] == told
    assert check_protected([scores(small)], [scores(small)], [("few", 1.0)], named_by_user=True).too_small == (), (
        "who named it compares all of it"
    )


def test_what_is_protected_is_decided_on_items_that_are_not_compared() -> None:
    ones, names = np.ones(500), [("t", 1.0, f"t-{place}") for place in range(500)]
    deciding = np.array([decides_protection(name) for name in names])
    assert 60 < deciding.sum() < 140
    # right on the deciding items alone: protected, and its other items say nothing of a loss; the page counts all of them
    before = scores({("t", 1.0): deciding, ("t", 2.0): ones, ("t", 3.0): ~deciding})
    after = scores({("t", 1.0): np.zeros(500), ("t", 2.0): ones, ("t", 3.0): ones})
    assert mastered_cells([before], "greedy") == [("t", 1.0), ("t", 2.0)]
    found = check_mastered([before], [after])
    assert [cell.change.value for cell in found.cells if cell.change] == [pytest.approx(-deciding.mean()), 0.0]
    assert found.mean is not None
    assert found.mean.value == 0
    assert found.mean.items == 2 * int((~deciding).sum())


def test_mastered_under_the_declared_decoding_is_protected() -> None:
    cells = {("greedy", None): np.ones(400), ("sampled", None): np.zeros(400), ("neither", None): np.full(400, 0.5)}
    sampled = {("greedy", None): np.full(400, 0.7), ("sampled", None): np.ones(400), ("neither", None): np.zeros(400)}
    assert mastered_cells([scores(cells, sampled=sampled)], "greedy") == [("greedy", None)]
    assert mastered_cells([scores(cells, sampled=sampled)], "sampled") == [("sampled", None)]


def test_names_of_tasks_and_cells() -> None:
    before = [scores({("gcd", 1.0): [1], ("gcd", 2.0): [1], ("lcm", None): [1]})]
    assert named_cells(before, ["gcd"]) == [("gcd", 1.0), ("gcd", 2.0)]
    assert named_cells(before, ["gcd@2", "lcm"]) == [("gcd", 2.0), ("lcm", None)]
    with pytest.raises(InputError, match="gcd"):
        named_cells(before, ["gdc"])


def test_a_fall_from_the_commonest_answer_closes_the_gate() -> None:
    # 50 % to nothing, under a constant that earns 40 % in train and 10 % here
    before = {("t", 1.0): np.arange(200) % 2}
    assert gate(before, {("t", 1.0): np.zeros(200)}).outcome == "damaged"


def test_items_by_default() -> None:
    assert [items_to_measure(cells, chosen=True) for cells in (1, 2, 4, 10)] == [788, 395, 198, 82]
    assert items_to_measure(4, chosen=False) == 248  # five fourths: one item in five decides
    assert items_to_measure(0, chosen=False) == 985


def test_items_of_a_comparison_follow_what_may_be_protected() -> None:
    rows = [
        Example(f"{level}-{place}", "sum", "1+1=", answer="2", level=level) for level in (1.0, 2.0) for place in range(3)
    ]
    cells = Corpus.from_examples(rows).cells()
    assert Gating().choose_items_per_cell(cells, None) == 494
    assert Gating(protect=["sum"]).choose_items_per_cell(cells, None) == 395
    assert Gating(protect=["sum@1"]).choose_items_per_cell(cells, None) == 788
    assert Gating(protect=["sum@1"]).choose_items_per_cell(cells, 40) == 40
    with pytest.raises(InputError, match="sum@3"):
        Gating(protect=["sum@3"]).choose_items_per_cell(cells, None)


def test_the_gate_of_a_run_folder(tmp_path: Path) -> None:
    run = build_pair(tmp_path / "pair")
    found = check_gate(run, GateQuestion(("products@1",)))
    assert (found.outcome, len(found.cells)) == ("damaged", 1)
    assert check_gate(run, GateQuestion(("chain_sum@1",))).outcome == "cannot tell"
    trial = check_gate(build(tmp_path / "trial"), GateQuestion(("products",)))
    assert {cell.level for cell in trial.cells} == {1.0, 2.0, 3.0}
    assert trial.outcome == "damaged"
    with pytest.raises(InputError, match="measurements before and after"):
        check_gate(RunFolder(tmp_path / "empty"), GateQuestion())


def test_scores_that_are_not_numbers_are_not_measurable() -> None:
    values = {("t", 1.0): np.full(900, np.nan)}
    assert gate(values, values).outcome == "cannot tell"


@pytest.mark.slow
@pytest.mark.parametrize(("cells", "churn"), [(1, 0.2), (4, 0.2), (4, 0.06)])
def test_error_rates_at_the_default_size(cells: int, churn: float) -> None:
    rng, runs = np.random.default_rng(cells), 300
    items = items_to_measure(cells, chosen=True)
    passed = {
        loss: sum(
            gate(*churned(cells, items, success=0.9, loss=loss, churn=churn, rng=rng)).outcome == "passed"
            for _ in range(runs)
        )
        for loss in (0.0, 0.05)
    }
    assert passed[0.05] / runs <= 0.05, "2.5 % and twice its standard error, nearly"
    assert passed[0.0] / runs >= 0.8


def test_several_seeds_share_their_items() -> None:
    old = scores({("t", 1.0): np.ones(100)})
    good, bad = scores({("t", 1.0): np.ones(100)}), scores({("t", 1.0): fallen(100, 40)})
    found = check_protected([old] * 3, [good, good, bad], [("t", 1.0)])
    assert found.mean is not None
    assert found.mean.seeds == 3
    assert found.mean.value == pytest.approx(-0.4 / 3)
    assert found.outcome == "cannot tell"


def test_damage_elsewhere_fails_unless_the_user_named_what_matters() -> None:
    before = {("safe", None): np.ones(800), ("other", None): fallen(200, 30)}
    after = {("safe", None): np.ones(800), ("other", None): np.zeros(200)}
    sides = [scores(before)], [scores(after)]
    found = check_protected(*sides, [("safe", None)])
    assert (found.outcome, found.exit_code("warn")) == ("damaged", 3)
    assert any("not protected, and damaged" in line for line in gate_lines(found))
    told = check_protected(*sides, [("safe", None)], named_by_user=True)
    assert (told.outcome, told.exit_code()) == ("passed", 0)
    assert any(line.startswith("other") and "reported only" in line for line in gate_lines(told))


def test_skill_that_gave_way_to_the_commonest_answer_is_damage() -> None:
    values = {("t", None): fallen(800, 200)}
    before = scores(values, swapped={("t", None): np.full(800, 0.1)})
    after = scores(values, swapped={("t", None): np.full(800, 0.7)})
    found = check_protected([before], [after], [("t", None)])
    assert found.mean is not None
    assert found.mean.value == 0
    assert found.dependence is not None
    assert found.dependence.value == pytest.approx(-0.6)
    assert (found.outcome, found.exit_code()) == ("damaged", 3)
    assert any("depend less on their prompts" in line for line in gate_lines(found))


def test_warn_is_for_wide_intervals_not_for_what_was_not_measured() -> None:
    wide = gate({("t", None): np.ones(10)}, {("t", None): np.ones(10)})
    assert (wide.outcome, wide.exit_code(), wide.exit_code("warn")) == ("cannot tell", 4, 0)
    missing = check_protected([scores({("t", None): np.ones(10)})], [scores({("u", None): np.ones(10)})], [("t", None)])
    assert missing.exit_code("warn") == 4
    assert GateResult("cannot tell", None, (), 0.15).exit_code("warn") == 4, "nothing was protected"


def test_half_of_a_comparison_is_never_judged_with_an_older_half(tmp_path: Path) -> None:
    run = build_pair(tmp_path / "pair")
    assert check_gate(run, GateQuestion(("products",))).mean is not None
    compare.clear(run)  # then the new "before" is written, and the process is killed
    with pytest.raises(InputError, match="measurements before and after"):
        check_gate(run, GateQuestion(("products",)))


def test_which_cells_exclude_a_loss_by_themselves_is_told_by_their_sizes() -> None:
    assert [find_min_items_for_cell_rule((size,) * cells, 0.05) for cells, size in ((8, 50), (40, 25), (1, 800))] == [
        50,
        None,
        800,
    ]
    assert find_min_items_for_cell_rule((10, *(900,) * 9), 0.05) == 900, "one small cell does not free the large ones"
    # by hand, one cell that is only judged by its mean: no churn, so nothing but the added squares stands in the way
    still = SimulatedCheckpoint(redrawn=0.0)
    assert [share_passing((size,), 0.05, still, min_items_for_cell_rule=None) for size in (70, 90)] == [0.0, 1.0]
    assert 1.99 * math.sqrt(3.8415 / 69 / 70) > 0.05 > 1.99 * math.sqrt(3.8415 / 89 / 90)
    seen = [
        share_passing((50,) * 8, 0.05, SimulatedCheckpoint(smallest_cell_loss=one), min_items_for_cell_rule=50)
        for one in (0.0, 0.2, 0.6)
    ]
    assert seen[0] > 0.8 > 0.1 > seen[1] > seen[2]
