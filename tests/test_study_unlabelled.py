"""Figures of the study of difficulty without levels, by hand, its pools, and the rule of a linear regression."""

import math

import numpy as np
import pytest

from mixwright_lab.studies import jobs, unlabelled
from mixwright_lab.studies.peers.linear import FADE, NOISE, Linear, columns_of
from mixwright_lab.studies.unlabelled import (
    HIDDEN,
    OPEN,
    POOLS,
    SEEDS,
    TRAP,
    WRONG,
    held_out,
    problems,
    rule_of,
    without,
)
from mixwright_lab.worlds.chain import running_values


def looks(*accuracy: float) -> list[dict[str, float]]:
    return [{"charged": 240 * number, "accuracy": value} for number, value in enumerate(accuracy)]


def test_the_target_is_above_the_start_and_is_reached_by_the_mean_of_two_looks():
    assert unlabelled.time_to_target({"seen": looks(0.2, 0.5, 0.2, 0.4, 0.41)}, 0.2) == 960  # 0.35, 0.35, 0.3, 0.405
    assert unlabelled.time_to_target({"seen": looks(0.2, 0.3, 0.45)}, 0.2) is None


def test_rollouts_to_the_target_are_compared_by_restricted_means():
    """Uniform 480 and never, an arm 240 and 480 of 720 watched: (480 + 720) / (240 + 480)."""
    slow, slower, quick, usual = (0.0, 0.1, 0.9), (0.0, 0.1, 0.1), (0.0, 1.0), (0.0, 0.1, 0.9)
    runs = {("uniform", 0): slow, ("uniform", 1): slower, ("arm", 0): quick, ("arm", 1): usual, ("arm", 2): quick}
    rows = [{"arm": arm, "seed": seed, "seen": looks(*seen)} for (arm, seed), seen in runs.items()]
    found = unlabelled.sooner(rows, "arm", "uniform", 720)
    assert found is not None
    assert found.value == pytest.approx(1200 / 720)
    assert found.n == 2


def test_damage_prevented_and_the_share_of_a_gain_are_ratios_of_means():
    """Damage by uniform 0.4 and 0.2, by the arm 0.1 and 0.05: a quarter is left, with every seed."""
    found = {"frozen": {0: 0.6, 1: 0.5}, "uniform": {0: 0.2, 1: 0.3}, "arm": {0: 0.5, 1: 0.45, 2: 0.0}}
    prevented = unlabelled.recovered(found, "arm", "frozen")
    assert prevented is not None
    assert (prevented.value, prevented.low, prevented.high) == pytest.approx((0.75, 0.75, 0.75))
    found["arm"][1] = 0.3  # (0.3 + 0) / (0.4 + 0.2); one seed alone says 0.75 or 0
    prevented = unlabelled.recovered(found, "arm", "frozen")
    assert prevented is not None
    error = math.sqrt(0.5 * 2 * 0.375**2)
    assert prevented.value == pytest.approx(0.5)
    assert prevented.high - prevented.value == pytest.approx(12.7062 * error, rel=1e-4)
    assert unlabelled.recovered(found | {"whole": found["uniform"]}, "arm", "whole") is None


def test_pools_have_their_shares_and_hidden_classes_look_alike():
    for kind in ("wide", "operators", "uninformative"):
        found, shares = problems(kind, 100), POOLS[kind].shares
        levels = np.array([example.level for example in found])
        assert len({example.id for example in found}) == len(found)
        for level, share in shares.items():
            assert np.mean(levels == level) == pytest.approx(share, abs=0.06)  # fewer where prompts run out
        assert all(example.level is None for example in without(found))
    prompts = [str(example.prompt).split() for example in found]
    assert {len(words) for words in prompts} == {HIDDEN + 1}
    assert all(len(example.extra["accepted"]) == 16 for example in found if example.level == OPEN)
    wrong = [example for example in found if example.level == WRONG]
    right = np.mean([example.answer == str(running_values(str(example.prompt))[-1]) for example in wrong])
    assert right < 0.12  # 1/16 and three standard errors
    assert {example.level for example in problems("traps", 100)} == {2, 3, 4, 5, 6, 7, 8, TRAP}


def test_held_out_problems_are_in_no_pool_and_each_level_has_as_many():
    for kind in ("wide", "operators"):
        scored = held_out(kind)
        assert not {example.prompt for example in scored} & {example.prompt for example in problems(kind, 100)}
        counts = np.bincount([int(example.level or 0) for example in scored])[1:]
        assert max(counts) == POOLS[kind].each
        assert min(counts) >= 18  # of one operation there are few


def test_jobs_are_pairs_of_one_seed_and_a_quick_run_has_other_seeds():
    jobs = unlabelled.jobs_of(quick=False)
    assert len(set(jobs)) == len(jobs)
    assert [job.seed for job in jobs] == sorted(job.seed for job in jobs)
    assert {job.seed for job in jobs} == set(SEEDS)
    assert not {job.seed for job in unlabelled.jobs_of(quick=True)} & set(SEEDS)
    assert all(
        ("predicted", arm) in unlabelled.pairs_of(POOLS[kind].arms)
        for kind in POOLS
        for arm in ("uniform", "even")
        if arm in POOLS[kind].arms
    )


def test_columns_count_tokens_and_are_standardised():
    columns = columns_of(["1 +2", "1 +2 +2", "1 +3"])
    assert columns.shape == (3, 4)  # intercept, +2, +3, length; "1" is everywhere
    assert columns.mean(0) == pytest.approx([1, 0, 0, 0])
    assert columns[:, 1] == pytest.approx(np.array([0, 1, -1]) * math.sqrt(1.5))
    assert columns[:, 3] == pytest.approx(np.array([-1, 2, -1]) / math.sqrt(2))


def test_the_linear_rule_learns_a_planted_weight_and_draws_near_one_half():
    """Success is 0.5 where "a" stands once, 0 or 1 where it stands never or twice; "b" and "c" say nothing."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 3, 600)
    others = np.where(rng.random((600, 2)) < 0.5, "b", "c")
    prompts = [" ".join(["a"] * count + pair.tolist()) for count, pair in zip(counts, others, strict=True)]
    rule = Linear(prompts, 0)
    first = rule.draw(12)
    assert len(set(first)) == 12
    for _ in range(20):
        drawn = rng.choice(600, 12, replace=False).tolist()
        rule.observe(drawn, counts[drawn] / 2)
    mean, covariance = rule.posterior()
    assert np.abs(columns_of(prompts) @ mean + 0.5 - counts / 2).max() < 0.1
    assert np.linalg.eigvalsh(covariance).min() > 0
    later = [index for _ in range(5) for index in rule.draw(12)]
    assert np.mean(counts[later] == 1) > 0.9


def test_what_was_seen_fades_and_the_prior_stays():
    rule = Linear(["a", "b"], 0)
    rule.observe([0], np.array([1.0]))
    seen = columns_of(["a", "b"])[:1]
    precision = np.eye(3) + seen.T @ seen / NOISE
    for fade in (1.0, FADE):
        wanted = np.linalg.inv(np.eye(3) + fade * (precision - np.eye(3)))
        assert rule.posterior()[1] == pytest.approx(wanted)
        rule.observe([], np.zeros(0))


def test_a_rule_without_levels_draws_evenly_over_all_levels():
    true = problems("wide", 100)
    rule = rule_of("even", without(true), 0)
    drawn = [index for _ in range(50) for index in rule.engine.draw(12)]
    assert len(set(drawn)) > 550  # none twice before others, but for 2 % that explore
    assert np.mean([(true[index].level or 0) in (4, 5, 6) for index in drawn]) == pytest.approx(0.1, abs=0.06)


def test_rows_are_kept_and_a_cut_line_is_left_out(tmp_path):
    path = tmp_path / "rows.jsonl"
    jobs.work_and_append(lambda job: {"seed": job, "share": 0.1}, path, 3)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"job": "4", "ro')
    jobs.work_and_append(lambda job: {"seed": job}, path, 5)
    assert jobs.rows_by_job(path) == {"3": {"seed": 3, "share": 0.1}, "5": {"seed": 5}}
