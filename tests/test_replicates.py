"""Reliability of rankings: variance components by hand, SEAL's published results, and what pilots of noise say."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_call import Call

from mixwright.errors import InputError
from mixwright.records import SeedRow, TrialResult
from mixwright.run.folder import write_json
from mixwright_extras.mining.replicates import f_quantile, f_tail, format_ranking, ranking
from mixwright_extras.verbs.replicates import replicates

PUBLISHED: dict[str, Any] = json.loads((Path(__file__).parent / "seal_rankings.json").read_text(encoding="utf-8"))


def seal_runs() -> list[list[list[float]]]:
    articles = PUBLISHED["iter0"]["runs"]
    return [[[right / article["asked"] for right in runs] for runs in article["right"]] for article in articles]


def published_runs(name: str) -> list[list[list[float]]]:
    """Three runs with the mean and the standard deviation that were published, for each edit of each article."""
    pairs = [zip(*group, strict=True) for group in zip(PUBLISHED[name]["means"], PUBLISHED[name]["spreads"], strict=True)]
    return [[[mean - spread, mean, mean + spread] for mean, spread in group] for group in pairs]


def test_components_by_hand() -> None:
    """Candidates 1 and 2, 5 and 6: variance of the means 8, of one run 0.5, so of the mean of two 0.25."""
    found = ranking([[[1.0, 2.0], [5.0, 6.0]]])
    assert (found.noise, found.worth) == (0.5, 7.75)
    assert found.reliability.value == pytest.approx(7.75 / 8)
    assert found.needed == 1  # .8 / .2 x .5 / 7.75 = .26
    assert found.word == "uncertain"  # two candidates show nothing: the interval begins far below 0
    assert found.reliability.low < 0


def test_a_paired_seed_that_helps_every_candidate_is_no_noise() -> None:
    runs = [[0.1, 0.4, 0.2], [0.3, 0.6, 0.4], [0.2, 0.5, 0.3]]
    found = ranking([runs], paired=True)
    assert found.noise == pytest.approx(0.0, abs=1e-12)
    assert found.reliability.value == pytest.approx(1.0)
    assert ranking([runs]).reliability.value < 0.5


@pytest.mark.parametrize(
    ("tail", "above", "below", "expected"),
    [(0.05, 1, 1, 161.4476), (0.05, 4, 5, 5.1922), (0.025, 4, 10, 4.4683), (0.025, 60, 60, 1.6668), (0.01, 2, 3, 30.8165)],
)
def test_quantiles_of_f_as_printed_in_tables(tail: float, above: int, below: int, expected: float) -> None:
    assert f_quantile(tail, above, below) == pytest.approx(expected, rel=1e-4)
    assert f_tail(expected, above, below) == pytest.approx(tail, rel=1e-3)


@pytest.mark.parametrize(("name", "reliability", "needed"), [("iter0", 0.318, 26), ("iter1", 0.170, 59)])
def test_seal_ranked_edits_by_noise(name: str, reliability: float, needed: int) -> None:
    """Mean of 3 runs of 5 edits of 50 articles, as published: 'best of 5' is mostly luck."""
    found = ranking(published_runs(name))
    assert (found.groups, found.candidates, found.runs) == (50, 250, 3)
    assert found.reliability.value == pytest.approx(reliability, abs=0.001)
    assert found.needed == needed
    assert found.word == "ranking noise"
    assert format_ranking(found)[0].startswith("You are ranking noise: with 3 runs of each of 250 candidates in 50 groups")


def test_runs_say_the_same_as_their_published_summaries() -> None:
    runs, summary = ranking(seal_runs()), ranking(published_runs("iter0"))
    assert runs.reliability.value == pytest.approx(summary.reliability.value, abs=1e-4)
    assert runs.noise == pytest.approx(0.0367, abs=1e-4)
    assert runs.worth == pytest.approx(0.0057, abs=1e-4)


def test_two_pilot_runs_of_the_three_foretell_the_third() -> None:
    """Of 2 runs the interval holds what Spearman and Brown make of all 3; so it does for each pair of runs."""
    whole = ranking(seal_runs())
    single = 1 / (1 + 3 * (1 - whole.reliability.value) / whole.reliability.value)
    expected = 2 * single / (1 + single)
    for pair in itertools.combinations(range(3), 2):
        pilot = ranking([[[runs[place] for place in pair] for runs in article] for article in seal_runs()])
        assert pilot.reliability.low < expected < pilot.reliability.high
        assert pilot.word == "ranking noise"
        assert pilot.needed is not None
        assert pilot.needed_low <= 26
        assert pilot.needed_high is None or pilot.needed_high >= 26


def test_intervals_cover_and_needed_runs_are_right_on_average() -> None:
    """Normal scores of known worth .6 and noise 1: the mean of 3 has reliability 1.08 / 2.08 = .519; .8 takes 12 runs."""
    rng, truth = np.random.default_rng(100), 3 * 0.36 / (3 * 0.36 + 1)
    inside, needed = 0, []
    for _ in range(400):
        scores = rng.normal(0, 0.6, (10, 6, 1)) + rng.normal(0, 1, (10, 6, 3))
        found = ranking(scores.tolist())
        inside += found.reliability.low <= truth <= found.reliability.high
        needed.append(found.needed or 1000)
    assert 0.92 <= inside / 400 <= 0.98
    assert np.median(needed) == pytest.approx(12, abs=1)


def test_candidates_that_do_not_differ_get_no_number() -> None:
    found = ranking([[[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]])
    assert found.needed is None
    assert "no number of runs can be named" in format_ranking(found)[1]
    with pytest.raises(ValueError, match="two runs each"):
        ranking([[[0.1], [0.2]]])


def test_the_command_reads_a_table(call: Call) -> None:
    lines = ["candidate,score,group,run"]
    for number, article in enumerate(seal_runs()):
        lines += [f"{c},{score},{number},{r}" for c, runs in enumerate(article) for r, score in enumerate(runs)]
    Path("scores.csv").write_text("\n".join(lines), encoding="utf-8")
    code, out, err = call("replicates", "scores.csv", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["word"] == "ranking noise"
    assert found["ranking"]["reliability"]["value"] == pytest.approx(ranking(seal_runs(), paired=True).reliability.value)
    Path("one.csv").write_text("candidate,score\na,1\nb,2\n", encoding="utf-8")
    code, _, err = call("replicates", "one.csv")
    assert (code, "two runs or more" in err) == (1, True)
    Path("wrong.csv").write_text("candidate,value\na,1\n", encoding="utf-8")
    code, _, err = call("replicates", "wrong.csv")
    assert (code, "no score" in err) == (1, True)


@pytest.mark.parametrize(("score", "told"), [("-2e200", "-2e+200"), ("-inf", "-inf"), ("1e155", "1e+155")])
def test_a_score_whose_square_overflows_is_refused_with_its_row_and_its_column(score: str, told: str, call: Call) -> None:
    Path("huge.csv").write_text(f"candidate,score\na,1\na,2\nb,{score}\nb,6\n", encoding="utf-8")
    code, out, err = call("replicates", "huge.csv")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert f"huge.csv: expected score in row 3: a number between -1e+150 and 1e+150, got {told}." in err


def test_large_scores_whose_squares_are_finite_are_ranked_as_small_ones_are(call: Call) -> None:
    Path("large.csv").write_text("candidate,score\na,1e100\na,2e100\nb,5e100\nb,6e100\n", encoding="utf-8")
    code, out, err = call("replicates", "large.csv", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["ranking"]["reliability"]["value"] == pytest.approx(7.75 / 8)


def test_a_trial_with_a_value_that_overflows_is_refused_with_its_row(call: Call) -> None:
    values = {("uniform", 0): 0.5, ("uniform", 1): 0.6, ("steered", 0): 0.7, ("steered", 1): -2e200}
    rows = tuple(SeedRow(arm, seed, "success", value) for (arm, seed), value in values.items())
    trial = TrialResult(("uniform", "steered"), ("uniform",), (), (0, 1), rows, (), (), {})
    write_json(Path("run/trial/result.json"), trial)
    code, out, err = call("replicates", "run")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "run/trial/result.json: expected rows.3.value: a number between -1e+150 and 1e+150, got -2e+200." in err


def test_a_target_that_is_no_reliability_is_not_told_as_too_few_runs(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("candidate,score\na,1\na,2\nb,5\nb,6\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a reliability above 0 and below 1 as the target, got 1\.5"):
        replicates(str(path), target=1.5)
    assert replicates(str(path), target=0.5).needed == 1


def test_arms_of_a_trial_with_unequal_numbers_of_seeds_are_refused_as_such(call: Call) -> None:
    rows = tuple(
        SeedRow(arm, seed, "success", 0.5 + seed / 9) for arm, seeds in (("a", 2), ("b", 3)) for seed in range(seeds)
    )
    write_json(Path("run/trial/result.json"), TrialResult(("a", "b"), (), (), (0, 1, 2), rows, (), (), {}))
    code, _, err = call("replicates", "run")
    assert (code, "as many seeds of every arm" in err) == (1, True)
