"""Cells: intervals by hand, every word, what must not be said, and files that cannot be judged."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from _example_run import CELLS, build, build_pair, item_rows
from _scores import scores, without
from answer_rows import write_measured
from verdicts import judge_run

from mixwright.errors import InputError
from mixwright.estimates.outcome import ItemScores
from mixwright.records import Interval, Measurement
from mixwright.run.folder import RunFolder
from mixwright.verdict.rules.cells import (
    CellChange,
    compare_cells,
    find_missing_cells,
    find_tasks_not_learned,
    to_interval,
)
from mixwright.verdict.rules.evidence import Evidence

CELL = ("t", 1.0)


def one(before: ItemScores, after: ItemScores, outcome="greedy") -> CellChange:
    (cell,) = compare_cells(([before], [after]), outcome)
    return cell


def change_of(cell: CellChange) -> Interval:
    assert cell.change is not None
    return to_interval(cell.change.estimate)


def test_interval_by_hand() -> None:
    # 20 items, all rose by 1: no spread but the z squared squares that are added, hence error sqrt(z z / 19 / 20)
    claim = one(scores({CELL: [0] * 20}), scores({CELL: [1] * 20}))
    assert claim.word == "improves"
    assert change_of(claim).value == 1.0
    assert change_of(claim).low == pytest.approx(1 - 2.093024 * 1.959964 * math.sqrt(1 / 380), abs=1e-6)
    assert (change_of(claim).high, change_of(claim).n) == (1.0, 20)


def test_the_parts_add_up() -> None:
    rng = np.random.default_rng(0)
    before, after = (scores({CELL: rng.random(30) < p}, swapped={CELL: rng.normal(p / 3, 0.1, 30)}) for p in (0.3, 0.8))
    claim = one(before, after)
    assert claim.change is not None
    assert change_of(claim).value == pytest.approx(claim.change.swapped.value + claim.change.dependence.value)
    mean = [np.mean(list(side.by_item("greedy.swapped").values())) for side in (before, after)]
    assert claim.change.swapped.value == pytest.approx(mean[1] - mean[0])


@pytest.mark.parametrize("others", [0, 3, 5, 15])
def test_a_task_that_lost_all_of_eight_right_answers_is_damaged_whatever_else_is_judged(others: int) -> None:
    """8 of 14 right, then none: 2 / 2^8 = .0078 by the signs, which tasks without a changed answer do not correct."""
    kept = {(f"kept{number}", None): [1] * 7 + [0] * 7 for number in range(others)}
    before, after = scores(kept | {CELL: [1] * 8 + [0] * 6}), scores(kept | {CELL: [0] * 14})
    found = {claim.task: claim for claim in compare_cells(([before], [after]), "greedy")}
    assert found["t"].word == "worsens"
    assert found["t"].adjusted_p == pytest.approx(2 / 2**8)
    assert change_of(found["t"]).high == pytest.approx(-0.14, abs=0.005)
    assert all(claim.word == "cannot tell" for task, claim in found.items() if task != "t")


@pytest.mark.parametrize(
    ("right", "after", "kind"),
    [
        ([1] * 5 + [0] * 9, [0] * 14, "cannot tell"),  # 2 / 2^5 = .0625
        ([1] * 8 + [0] * 6, [0] * 8 + [1] * 3 + [0] * 3, "cannot tell"),  # 8 lost, 3 gained: .23
        ([1] * 8 + [0] * 6, [1] * 5 + [0] * 9, "cannot tell"),  # 3 lost
    ],
)
def test_fewer_lost_answers_or_some_that_were_gained_are_not_called_damage(
    right: list[int], after: list[int], kind: str
) -> None:
    assert one(scores({CELL: right}), scores({CELL: after})).word == kind


def test_many_lost_answers_are_judged_by_their_interval() -> None:
    claim = one(scores({CELL: [1] * 3000 + [0] * 2000}), scores({CELL: [0] * 5000}))
    assert (claim.word, claim.adjusted_p) == ("worsens", pytest.approx(0, abs=1e-9))


def test_what_eight_tasks_lost_at_once_is_damage_of_each() -> None:
    before, after = ({(f"t{n}", None): answers for n in range(8)} for answers in ([1] * 8 + [0] * 6, [0] * 14))
    assert {claim.word for claim in compare_cells(([scores(before)], [scores(after)]), "greedy")} == {"worsens"}


def test_a_task_that_is_not_above_chance_after_is_not_learned_unless_something_was() -> None:
    """24 items of a new task, 0 or 1 right after; kept stays at 20 of 24, and is above chance after without a change."""
    kept = {("kept", None): [1] * 20 + [0] * 4}
    for right in (0, 1):
        after = kept | {("intents", None): [1] * right + [0] * (24 - right)}
        sides = ([scores(kept | {("intents", None): [0] * 24})], [scores(after)])
        assert find_tasks_not_learned(compare_cells(sides, "greedy"), sides, "greedy", ["kept"]) == (
            f"intents ({right} of 24 right after)",
        )
        assert find_tasks_not_learned(compare_cells(sides, "greedy"), sides, "greedy", ["kept", "intents"]) == ()
    learned = ([scores({("intents", None): [0] * 24, ("b", None): [0] * 24})],
               [scores({("intents", None): [1] * 24, ("b", None): [0] * 24})])  # fmt: skip
    assert find_tasks_not_learned(compare_cells(learned, "greedy"), learned, "greedy", []) == ()


def test_a_rise_that_any_prompt_would_earn_is_the_commonest_answer() -> None:
    claim = one(scores({CELL: [0, 1] * 20}, swapped=0.5), scores({CELL: [1] * 40}, swapped=1.0))
    assert claim.word == "commonest"
    assert claim.change is not None
    assert claim.change.dependence.value == 0.0


def test_a_rise_up_to_the_chance_level_is_not_learnt() -> None:
    # half of the items are right by a rule without the skill: the same half, or twice as many
    before, half = scores({CELL: [0] * 40}), [1, 0] * 20
    reached = one(before, scores({CELL: half}, chance={CELL: half}))
    assert reached.word == "cannot tell"
    assert not reached.above_chance
    assert one(before, scores({CELL: [1] * 40}, chance={CELL: half})).word == "improves"


def test_success_and_chance_level_are_compared_under_the_same_decoding() -> None:
    # greedy lies above the level of 50 %, samples of the same model do not
    half = {CELL: [1, 0] * 20}
    before = scores({CELL: [0] * 40}, sampled={CELL: [0] * 40})
    after = scores({CELL: [1] * 40}, sampled=half, chance=half)
    assert one(before, after).word == "improves"
    assert one(before, after, "sampled").word == "cannot tell"


def test_a_rise_without_a_chance_level_is_not_learnt() -> None:
    before, after = scores({CELL: [0] * 40}), scores({CELL: [1] * 40})
    assert one(before, without(after, "chance")).word == "cannot tell"


def test_samples_alone_are_sharper() -> None:
    before = scores({CELL: [0, 1] * 40}, sampled={CELL: [0.1, 0.5] * 40})
    after = scores({CELL: [0, 1] * 40}, sampled={CELL: [0.1, 1.0] * 40})
    assert one(before, after).word == "sharper"
    few = [scores({CELL: [0, 1] * 10}, sampled={CELL: [0.1, high] * 10}) for high in (0.5, 1.0)]
    assert one(*few).word == "cannot tell", "twenty items do not exclude a greedy gain"


@pytest.mark.parametrize("common", [0.4, 0.1])
def test_a_fall_is_damage_however_common_the_answer_was(common: float) -> None:
    # from 50 % to nothing; a constant answer earns 40 % in train, and 10 % or 40 % of what is scored
    chance = {CELL: np.arange(40) < 40 * common}
    before = scores({CELL: [1, 0] * 20}, swapped=0.4, chance=chance)
    claim = one(before, scores({CELL: [0] * 40}, swapped=0.0, chance=chance))
    assert claim.word == "worsens"
    assert change_of(claim).high < 0


def test_unchanged_needs_an_interval_within_five_points() -> None:
    rng = np.random.default_rng(1)
    for items, kind in ((40, "cannot tell"), (400, "no change")):
        values = {CELL: rng.random(items) < 0.5}
        claim = one(scores(values), scores(values))
        assert claim.word == kind
        assert (change_of(claim).high < 0.05) == (kind == "no change")
    (few,) = compare_cells(([scores({CELL: [0, 1] * 20})], [scores({CELL: [0, 1] * 20})]), "greedy")
    assert few.change is not None
    assert few.change.estimate.detectable() == pytest.approx(0.14, abs=0.005)


def test_few_items_cannot_tell() -> None:
    claim = one(scores({CELL: [0] * 7}), scores({CELL: [1] * 7}))
    assert (claim.word, claim.adjusted_p) == ("cannot tell", None)
    assert one(scores({CELL: [0] * 8}), scores({CELL: [1] * 8})).word == "improves"


def test_what_was_not_measured_cannot_be_told() -> None:
    nan = {CELL: [math.nan] * 40}
    up = one(scores({CELL: [0] * 40}, swapped=nan), scores({CELL: [1] * 40}, swapped=nan))
    assert up.word == "cannot tell"
    assert up.change is not None
    assert math.isnan(up.change.swapped.value)
    assert math.isnan(up.change.dependence.value)
    assert one(scores({CELL: [1] * 40}, swapped=nan), scores({CELL: [0] * 40}, swapped=nan)).word == "worsens"
    sides = ([scores({CELL: [1] * 9, ("u", None): [1] * 9})], [scores({CELL: [1] * 9})])
    assert find_missing_cells(sides) == [("u", None)]
    assert [cell.task for cell in compare_cells(sides, "greedy")] == ["t"]


def test_words_with_a_sign_survive_holm() -> None:
    def sides(cells: int) -> tuple[list[ItemScores], list[ItemScores]]:
        names = [(f"t{place}", None) for place in range(cells)]
        before = {name: [0] * 40 for name in names}
        after = {name: [1] * 8 + [0] * 32 if place == 0 else [0] * 40 for place, name in enumerate(names)}
        return [scores(before)], [scores(after)]

    alone, many = (compare_cells(sides(cells), "greedy")[0] for cells in (1, 30))
    assert alone.change is not None
    assert many.change is not None
    assert alone.word == "improves"
    assert alone.adjusted_p == pytest.approx(alone.change.estimate.p)
    assert many.adjusted_p == pytest.approx(30 * alone.change.estimate.p)
    assert many.word == "cannot tell"
    assert many.change.estimate == alone.change.estimate


@pytest.mark.parametrize(("cells", "kind"), [(8, "improves"), (11, "cannot tell")])
def test_claims_ship_at_a_corrected_p_under_one_in_twenty(cells: int, kind: str) -> None:
    # ten of forty items rise: p .0056 alone, .045 among 8 claims, .062 among 11
    names = [(f"t{place}", None) for place in range(cells)]
    after = {name: [1] * 10 * (place == 0) + [0] * (40 - 10 * (place == 0)) for place, name in enumerate(names)}
    sides = ([scores({name: [0] * 40 for name in names})], [scores(after)])
    first = compare_cells(sides, "greedy")[0]
    assert first.adjusted_p == pytest.approx(cells * 0.0056096, rel=1e-4)
    assert first.word == kind


def test_a_rise_without_dependence_is_not_blamed_on_the_correction() -> None:
    # every item rises by .4; S by half of that with both signs, so neither word holds
    swapped = {CELL: [0.9, -0.5] * 20}
    claim = one(scores({CELL: [0] * 40}), scores({CELL: [0.4] * 40}, swapped=swapped))
    assert claim.word == "cannot tell"


def test_whole_tasks_stand_beside_their_cells() -> None:
    before = scores({("a", 1.0): [0] * 20, ("a", 2.0): [1] * 20, ("b", None): [1] * 20})
    claims = compare_cells(([before], [before]), "greedy")
    assert [(claim.task, claim.level, claim.whole) for claim in claims] == [
        ("a", 1.0, False),
        ("a", 2.0, False),
        ("a", None, True),
        ("b", None, False),
    ]


def test_levels_are_in_order_and_items_without_one_come_first() -> None:
    levels = (64.0, None, 9.0, 8.0, 1.0)
    kept = scores({("a", level): [0] * 20 for level in levels})
    shown = [(part.level, part.whole) for part in compare_cells(([kept], [kept]), "greedy")]
    assert shown == [(None, False), (1.0, False), (8.0, False), (9.0, False), (64.0, False), (None, True)]
    other = scores({("b", 1.0): [0] * 20})
    gone = [("a", None), ("a", 1.0), ("a", 8.0), ("a", 9.0), ("a", 64.0)]
    assert find_missing_cells(([kept], [other])) == gone


def test_fewer_than_five_seeds_cannot_tell() -> None:
    before, after = scores({CELL: [0] * 40}), scores({CELL: [1] * 40})
    for seeds, kind in ((4, "cannot tell"), (5, "improves")):
        (claim,) = compare_cells(([before] * seeds, [after] * seeds), "greedy")
        assert (claim.word, change_of(claim).n) == (kind, seeds)


def test_a_trial_by_arm(tmp_path: Path) -> None:
    run = build(tmp_path)
    evidence = Evidence(run)
    kinds = {(cell.task, cell.level): cell.word for cell in evidence.comparisons["steered"]}
    assert evidence.arm == "steered"
    assert kinds["chain_sum", 2.0] == "improves"
    assert kinds["products", 1.0] == "worsens"
    assert kinds["gcd", 3.0] == "commonest"
    assert kinds["count_bits", 1.0] == "cannot tell"
    frozen = evidence.comparisons["frozen"]
    assert len(frozen) == len(CELLS) + 4
    assert {cell.word for cell in frozen} <= {"cannot tell", "no change"}


def test_the_declared_decoding_is_read_from_the_settings(tmp_path: Path) -> None:
    run = build_pair(tmp_path)
    assert Evidence(run).outcome == "greedy"
    (tmp_path / "run.yaml").write_text("measure: {decoding: sampled}\n", encoding="utf-8")
    assert Evidence(run).outcome == "sampled"
    ((before, _),) = Evidence(run).sides_by_arm.values()
    claim = next(task for task in judge_run(run).tasks if (task.task, task.level) == ("gcd", 2.0))
    values = [value for item, value in before[0].by_item("pass@1").items() if item[:2] == ("gcd", 2.0)]
    assert claim.before == pytest.approx(np.mean(values))


def test_measurements_without_answers_are_refused(tmp_path: Path) -> None:
    run = build_pair(tmp_path)
    run.answers("before").unlink()
    with pytest.raises(InputError, match=r"before\.answers\.parquet.*nothing"):
        judge_run(run)


def test_a_broken_table_names_its_file(tmp_path: Path) -> None:
    run = build_pair(tmp_path)
    run.answers("after").write_text("not parquet")
    with pytest.raises(InputError, match=r"after\.answers\.parquet"):
        judge_run(run)


def test_items_are_paired_and_unpaired_ones_left_out(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    names = ("greedy", "pass@1", "greedy.swapped", "pass@1.swapped", "chance")
    rows = item_rows(CELL, {name: [0.0] * 10 for name in names})
    new = item_rows(CELL, {name: [float(name in names[:2])] * 12 for name in names})
    write_measured(run.measurements("before"), rows)
    write_measured(run.measurements("after"), [*new, Measurement("drift", "*", "kl", 0.1, 0.0, 0.2, 9, "nats")])
    (task,) = judge_run(run).tasks
    assert (task.before, task.after, task.change.n) == (0.0, 1.0, 10)


def test_branches_that_the_result_does_not_speak_of_are_left_out(tmp_path: Path) -> None:
    run = build(tmp_path, seeds=2)
    before = {arm: len(sides[0]) for arm, sides in Evidence(run).sides_by_arm.items()}
    assert set(before.values()) == {2}
    shutil.copytree(run.branch("steered", 0), run.branch("steered", 2))  # of earlier settings with three seeds
    shutil.copytree(run.branch("steered", 0), run.branch("without_gates", 0))
    assert {arm: len(sides[0]) for arm, sides in Evidence(run).sides_by_arm.items()} == before
    assert [seed for seed, _ in Evidence(run).branches["steered"]] == [0, 1]
    run.result.unlink()
    assert {arm: len(found) for arm, found in Evidence(run).branches.items()} == before | {"steered": 3, "without_gates": 1}
