"""Claims: hand-computed intervals, the distributions against scipy's, the gate, and what must not be claimed."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from _example_run import CELLS, build, build_pair
from hypothesis import given
from hypothesis import strategies as st

from mixwright.errors import InputError
from mixwright.records import Claim, Interval, Measurement
from mixwright.runs import RunFolder, write_json, write_measurements
from mixwright.verdict._claims import GATE_FAILED, chance, claims_of, gate, gate_lines, judge, mastered
from mixwright.verdict._intervals import holm, mean_over_items, mean_over_seeds, quantile, seeds_probability, tail


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 8, 31])
def test_students_distribution_is_scipys(freedom: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    assert quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=1e-9)
    for t in (0.0, 0.3, 1.0, 2.5, 12.0):
        assert tail(t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), abs=1e-12)


def test_seed_interval_by_hand() -> None:
    # mean 2, standard deviation 1, three seeds: 2 -+ 4.302653 / sqrt(3)
    mean, low, high = mean_over_seeds([1.0, 2.0, 3.0])
    assert (mean, low, high) == pytest.approx((2.0, 2 - 4.302653 / math.sqrt(3), 2 + 4.302653 / math.sqrt(3)), abs=1e-5)
    assert mean_over_seeds([1.0])[1:] == (-math.inf, math.inf)


def test_seed_test_is_scipys_paired_t() -> None:
    stats = pytest.importorskip("scipy.stats")
    differences = [0.1, 0.3, -0.05, 0.2, 0.12]
    assert seeds_probability(differences) == pytest.approx(stats.ttest_1samp(differences, 0.0).pvalue)
    assert seeds_probability([0.2, 0.2]) == 0.0
    assert seeds_probability([0.0, 0.0]) == 1.0


def test_item_interval_by_hand() -> None:
    # 8 items, all rose by 1, with two pseudo-items: centre 8/10, variance (9/10 - 0.64)/10 = 0.026
    mean, low, high, _ = mean_over_items([1.0] * 8)
    assert mean == 1.0
    assert low == pytest.approx(0.8 - 1.959964 * math.sqrt(0.026), abs=1e-6)
    assert high == 1.0
    # no item moved: the interval is not a point
    assert mean_over_items([0.0] * 8)[1] == pytest.approx(-1.959964 * math.sqrt(0.01), abs=1e-6)


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=40))
def test_item_interval_mirrors_and_holds_its_centre(differences: list[float]) -> None:
    _, low, high, p = mean_over_items(differences)
    _, mirrored_low, mirrored_high, mirrored_p = mean_over_items([-d for d in differences])
    assert (low, high, p) == pytest.approx((-mirrored_high, -mirrored_low, mirrored_p))
    assert low < high
    assert (p < 0.05) == (low > 0 or high < 0) or min(abs(low), abs(high)) < 1e-9


def test_item_interval_covers() -> None:
    rng, hits = np.random.default_rng(0), 0
    for _ in range(400):
        skill = rng.beta(2, 2, 24)
        before, after = rng.binomial(8, skill) / 8, rng.binomial(8, np.clip(skill + 0.1, 0, 1)) / 8
        _, low, high, _ = mean_over_items(list(after - before))
        hits += low <= float(np.mean(np.clip(skill + 0.1, 0, 1) - skill)) <= high
    assert hits / 400 > 0.93


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


def _run(folder: Path, cells: dict[tuple[str, float], tuple[list[float], list[float]]], luck: float = 0.0) -> RunFolder:
    run = RunFolder(folder)
    for when, name in enumerate(("before", "after")):
        rows = [
            Measurement("competence", task, "pass@1", value, value, value, 8, "share", level, f"{task}{level}{i}", luck)
            for (task, level), both in cells.items()
            for i, value in enumerate(both[when])
        ]
        write_measurements(run.measurements(name), rows)
    return run


def test_kinds_of_claims(tmp_path: Path) -> None:
    run = _run(
        tmp_path,
        {
            ("up", 1.0): ([0.0] * 20, [1.0] * 20),
            ("down", 1.0): ([1.0] * 20, [0.25] * 20),
            ("same", 1.0): ([0.5] * 20, [0.5] * 20),
            ("few", 1.0): ([0.0] * 3, [1.0] * 3),
            ("wide", 1.0): ([0.0, 1.0] * 4, [1.0, 0.0] * 4),
        },
    )
    kinds = {claim.task: claim.kind for claim in judge(run)}
    assert kinds == {"up": "learnt", "down": "damaged", "same": "unchanged", "few": "unmeasurable", "wide": "unmeasurable"}


def test_a_rise_to_luck_is_not_learnt(tmp_path: Path) -> None:
    rows = {("trap", 1.0): ([0.0] * 30, [0.375] * 30)}
    (lucky,) = judge(_run(tmp_path / "lucky", rows, luck=0.36))
    (skilled,) = judge(_run(tmp_path / "skilled", rows, luck=0.01))
    assert lucky.kind == "unmeasurable"
    assert "luck (36 %)" in lucky.evidence
    assert skilled.kind == "learnt"


def test_a_fall_from_luck_is_not_damage(tmp_path: Path) -> None:
    rows = {("trap", 1.0): ([0.375] * 30, [0.0] * 30)}
    (claim,) = judge(_run(tmp_path, rows, luck=0.36))
    assert claim.kind == "unmeasurable"


def test_items_are_paired_and_unpaired_ones_left_out(tmp_path: Path) -> None:
    run = _run(tmp_path, {("t", 1.0): ([0.5] * 10, [1.0] * 10)})
    rows = [Measurement("competence", "t", "pass@1", 0.0, 0.0, 0.0, 8, "share", 1.0, "new", 0.0)]
    known = [Measurement("competence", "t", "pass@1", 1.0, 1.0, 1.0, 8, "share", 1.0, f"t1.0{i}", 0.0) for i in range(10)]
    write_measurements(run.measurements("after"), rows + known)
    (claim,) = judge(run)
    assert (claim.before, claim.after, claim.difference.n) == (0.5, 1.0, 10)


def test_a_trial_rests_on_its_seeds(tmp_path: Path) -> None:
    run = build(tmp_path, seeds=3)
    claims = [claim for claim in judge(run) if claim.arm == "steered"]
    assert {claim.difference.n for claim in claims} == {3}
    by_cell = {(claim.task, claim.level): claim for claim in claims}
    assert by_cell["chain_sum", 2.0].kind == "learnt"
    assert by_cell["count_bits", 1.0].kind == "unmeasurable"
    assert by_cell["prime_factorization", None].kind == "unchanged"
    # whole tasks are told apart from their cells, and only where there are several
    assert ("chain_sum", None) in by_cell
    assert ("count_bits", None) not in by_cell


def test_a_null_trial_claims_little(tmp_path: Path) -> None:
    claims = [claim for claim in judge(build(tmp_path)) if claim.arm == "permuted"]
    assert sum(claim.kind in ("learnt", "damaged") for claim in claims) <= 1
    assert len(claims) == len(CELLS) + 4


def test_seeds_that_disagree_widen_the_interval(tmp_path: Path) -> None:
    run = build(tmp_path, seeds=2)
    for claim in judge(run):
        assert -1 <= claim.difference.low <= claim.difference.value <= claim.difference.high <= 1


def test_claims_on_file_are_kept_when_there_is_nothing_to_judge(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    claim = Claim("learnt", "t", None, 0.1, 0.5, Interval(0.4, 0.3, 0.5, 5), "5 seeds")
    write_json(run.claims, [claim])
    assert claims_of(run) == [claim]


def _claim(task: str, level: float | None, kind: str, p: float | None = None) -> Claim:
    return Claim(kind, task, level, 0.9, 0.5, Interval(-0.4, -0.5, -0.3, 5), "", adjusted_p=p)  # type: ignore[arg-type]


def test_gate_stops_only_for_what_is_protected() -> None:
    claims = [_claim("a", 1.0, "damaged"), _claim("b", 1.0, "unchanged")]
    assert gate(claims, ["a"]) == GATE_FAILED
    assert gate(claims, ["a@1"]) == GATE_FAILED
    assert gate(claims, ["a@2", "b"]) == 0
    assert gate([_claim("a", 1.0, "damaged", 0.2)], ["a"]) == 0
    assert "perhaps damaged" in gate_lines([_claim("a", 1.0, "damaged", 0.2)], ["a"])[0]
    assert "a@1" in gate_lines(claims, ["a"])[0]
    assert "nothing was protected" in gate_lines(claims, [])[0]
    assert "none damaged" in gate_lines(claims, ["b"])[0]


def test_the_gate_of_the_example_protects_what_was_mastered(tmp_path: Path) -> None:
    claims = judge(build_pair(tmp_path))
    protected = mastered(claims)
    assert "products@1" in protected
    assert "gcd@3" not in protected
    assert gate(claims, protected) == GATE_FAILED
    assert gate([claim for claim in claims if claim.task != "products"], protected) == 0


def test_chance_is_said() -> None:
    text = chance([_claim("a", 1.0, "unchanged")] * 40)
    assert "40 claims" in text
    assert "1.0 would be called learnt and 1.0 damaged" in text


def test_a_broken_table_names_its_file(tmp_path: Path) -> None:
    run = build_pair(tmp_path)
    run.measurements("after").write_text("not parquet")
    with pytest.raises(InputError, match=r"after\.parquet"):
        judge(run)
