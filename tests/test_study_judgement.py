"""The study of judgements: its learners are what they say, its trials and losses too, and its goals can be missed."""

import json

import numpy as np
import pytest

from mixwright.estimates.dependence import dependence
from mixwright.records import to_data
from mixwright_lab.studies import judgement
from mixwright_lab.studies.judgement import cells, changes
from mixwright_lab.studies.judgement.cells import Fake, all_fakes, at_kappa, constant_shares, grades, majority
from mixwright_lab.studies.report import RESULTS

RESULT = RESULTS / "judgement.json"


def test_truth_of_partial_skill_by_hand() -> None:
    fake = Fake("", "skilled", majority(0.4), constant_shares(10), 0.45)
    assert fake.success == pytest.approx(0.45 + 0.55 * 0.4)
    assert fake.swapped == pytest.approx(0.45 * (0.16 + 0.36 / 9) + 0.55 * 0.4)
    assert fake.kappa == pytest.approx((0.67 - 0.31) / 0.69)
    assert Fake(
        "", "skilled", majority(0.4), constant_shares(10), at_kappa(0.1, majority(0.4), constant_shares(10))
    ).kappa == pytest.approx(0.1)


@pytest.mark.parametrize("fake", all_fakes(), ids=lambda fake: fake.name)
def test_learners_do_what_they_say(fake: Fake) -> None:
    rng = np.random.default_rng(0)
    found = [dependence(grades(*fake.answers(200, rng))) for _ in range(30)]
    assert np.mean([one.success for one in found]) == pytest.approx(fake.success, abs=0.03)
    assert np.mean([one.swapped.value for one in found]) == pytest.approx(fake.swapped, abs=0.03)


def test_pseudo_values_of_a_trial_are_those_of_dependence() -> None:
    rng = np.random.default_rng(0)
    gold, says = rng.integers(0, 3, 12), rng.integers(0, 3, (4, 12))
    own, swapped = changes.pseudo_values(gold, says)
    for run in range(4):
        found = dependence(grades(gold, says[run][:, None]))
        assert own[run].mean() == pytest.approx(found.success)
        assert swapped[run] == pytest.approx(found.items)


@pytest.mark.parametrize("name", changes.DESIGNS)
def test_designs_have_the_mean_that_coverage_is_counted_for(name: str) -> None:
    design, rng = changes.DESIGNS[name], np.random.default_rng(0)
    means = [changes.drawn(design, 4, 340, 17, rng)[0] for _ in range(200)]
    assert np.mean(means) == pytest.approx(design.churn if design.alike else 0.0, abs=0.01)
    assert np.mean(np.abs(means)) == pytest.approx(design.churn, abs=0.02)


def test_a_gain_is_as_large_as_said_and_drift_is_none_of_dependence() -> None:
    rng = np.random.default_rng(0)
    arms = [changes.Arm(gain=0.05), changes.Arm(), changes.Arm(0.8)]
    found = [changes.trial(arms, 8, (60,) * 17, rng)[0] for _ in range(12)]
    assert np.mean([one[0].estimate.value for one in found]) == pytest.approx(0.05, abs=0.01)
    depends = [one[0].dependence.value - one[1].dependence.value for one in found]
    assert np.mean(depends) == pytest.approx(0.0, abs=0.01)
    assert np.mean([one[0].estimate.value - one[1].estimate.value for one in found]) > 0.02
    assert np.mean([one[0].swapped.value - one[1].swapped.value for one in found]) > 0.02


@pytest.mark.parametrize(("name", "word"), [("unharmed", "passed"), ("-20 in one cell", "damaged")])
def test_the_gate_itself_is_asked(name: str, word: str) -> None:
    assert changes.gate((name, 4, 800, 10, 0))["outcomes"][word] >= 8


def test_the_bound_of_the_gate_counts_its_lower_end() -> None:
    found = changes.gate_end((1, 400, 0))
    assert found["items per cell"] == 788
    assert 0 < found["passed"] < 0.06 * 400


def test_the_chance_level_is_compared_with_the_rules_that_scored() -> None:
    found = cells.chance(("ten answers", 30, False, 200))
    assert abs(found["bias"]) < 0.03
    assert found["commonest answer on its own rows, bias"] > 0.06
    formed = cells.chance(("yes/no, its form in the prompt", 100, True, 20))
    assert abs(formed["bias"]) < 0.05


def test_goals_pool_over_what_is_named_and_can_be_missed() -> None:
    rows = [{"a": a, "b": b, "times": 10, "hits": hits} for a, b, hits in [(1, 1, 10), (1, 2, 8), (2, 1, 10), (2, 2, 10)]]
    found = judgement.pooled(rows, ("a", "b"), lambda row: row["hits"])
    assert sorted(one.value for one in found) == [0.9, 0.9, 1.0, 1.0]
    assert not judgement.at_least("", found, 0.93).reached
    assert judgement.at_least("", found, 0.9).reached
    assert not judgement.at_most("", found, 0.99).reached
    assert not judgement.bias_within("", [(0.001, 0.0), (-0.02, 0.001)], 0.01).reached


WIDTHS = {"precision", "committed"}
"""Parts of the widths of intervals and of planned looks."""


@pytest.mark.slow
def test_a_run_gives_goals_limits_and_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    def few(_: bool) -> list[judgement.Job]:
        small = {(kind, what[:-1] if kind in ("power", "gate") else what): (kind, what, 2) for kind, what, _ in every}
        return [job for job in small.values() if job[0] != "gate" or job[1][1] == 1]

    every, widths = judgement.jobs(True), judgement.precision.jobs(True)
    once = [(name, (*given[:-1], 1)) for name, given in widths if name != "simulated" or given[0] == "nothing but chance"]
    monkeypatch.setattr(judgement, "jobs", few)
    monkeypatch.setattr(judgement.precision, "jobs", lambda _: once)
    monkeypatch.setattr(judgement, "run_in_processes", lambda do, work, say="": [do(job) for job in work])
    result = judgement.measure(quick=True)
    names = [goal.name for goal in result.goals]
    assert len(names) == len(set(names)) == 29
    json.dumps([to_data(result.figures), result.settings, list(result.rows)], allow_nan=False)
    assert set(result.figures["limits"]["coverage by way"]) == {
        "seeds and items",
        "seeds and items, these bases",
        "seeds",
        "items",
    }
    assert {row["part"] for row in result.rows} == set(judgement.KINDS) | WIDTHS


def test_the_committed_goals_are_those_of_the_committed_rows() -> None:
    kept = json.loads(RESULT.read_text(encoding="utf-8"))
    rows = kept["rows"]
    goals = [*judgement.goals_of_cells([row for row in rows if row["part"] == "cells"]), *judgement.goals_of_changes(rows)]
    goals += judgement.precision.goals_of([row for row in rows if row["part"] in WIDTHS])
    assert json.loads(json.dumps([goal.record() for goal in goals])) == kept["goals"]
