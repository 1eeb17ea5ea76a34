"""Mixes, advantages within formats, and scores of the study of formats, by hand."""

import json
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

pytest.importorskip("torch")

from mixwright_lab.studies.formats import GUARDED, balanced, goals, guards, mix, scores
from mixwright_lab.studies.report import RESULTS
from mixwright_lab.training.grpo import Rollouts


def test_advantages_sum_to_zero_over_each_format_of_each_group() -> None:
    formats = [["full", "full", "direct", "direct", "none"], ["full"] * 5]
    rewards = np.array([[1.0, 0, 1, 1, 1], [1, 0, 0, 0, 0]])
    given = balanced(cast(Rollouts, SimpleNamespace(rewards=rewards, formats=formats)))
    for own, styles in zip(given, formats, strict=True):
        for style in set(styles):
            assert own[np.array(styles) == style].sum() == pytest.approx(0, abs=1e-12)
    assert given[0, 2:].tolist() == [0, 0, 0]  # equal rewards of one format, and a format that stands alone, teach nothing
    assert given[0, 0] == pytest.approx(-given[0, 1])
    plain = (rewards[1] - rewards[1].mean()) / (rewards[1].std(ddof=1) + 1e-4)
    assert given[1] == pytest.approx(plain)  # one format only: what GRPO does
    assert rewards[0].tolist() == [1, 0, 1, 1, 1]


def test_mixes_are_drawn_once_and_for_all_and_cross_share_with_noise() -> None:
    assert mix(3) == mix(3)
    recipes = [mix(seed) for seed in range(20)]
    assert {max(recipe.styles, key=lambda pair: pair[1])[0] for recipe in recipes} == {"full", "verbose", "direct"}
    assert all(sum(share for _, share in recipe.styles) == pytest.approx(1) for recipe in recipes)
    assert len(GUARDED) == 3


def race(won: str, said: str | None, **guesses: str) -> dict[str, Any]:
    shares = {style: 0.9 if style == won else 0.05 for style in ("full", "verbose", "direct")}
    expected = {style: [0.3, 0.3, 0.0, 0.5] for style in shares}
    rules = {"race": won, "share": won, "accuracy": won, "share x accuracy": won} | guesses
    return {"foretold": {"said": said, "expected": expected, **rules}, "looks": {60: {"shares": shares}}}


def test_scores_by_hand() -> None:
    told = scores(
        [race("full", "full"), race("verbose", None, race="full", share="full"), race("direct", "direct", share="full")]
    )
    assert (told["race"]["hits"], told["share"]["hits"], told["accuracy"]["hits"]) == (2, 1, 3)
    assert (told["decided, race"]["hits"], told["decided, race"]["of"]) == (2, 2)
    assert told["undecided, race"]["hits"] == 0
    assert told["share and accuracy disagree, race"] == {"hits": 1, "of": 2, "rate": 0.5} | {
        key: told["share and accuracy disagree, race"][key] for key in ("low", "high")
    }
    assert (told["shares inside their 80 % range"]["hits"], told["shares inside their 80 % range"]["of"]) == (6, 9)
    assert told["race"]["low"] < 2 / 3 < told["race"]["high"]
    assert (told["always full"]["hits"], told["undecided, always full"]["hits"]) == (1, 0)
    assert told["p against always full"] == pytest.approx(3 * (1 / 3) ** 2 * (2 / 3) + (1 / 3) ** 3)  # 2 or 3 of 3 at 1/3
    assert (told["race alone right, not always full"], told["always full right, not race"]) == (1, 0)
    assert told["p against always full, paired"] == pytest.approx(0.5)  # 1 of 1
    (goal,) = goals(told)
    assert (goal.found.value, goal.found.n, goal.reached) == (pytest.approx(1 / 3), 3, False)


def test_the_forecast_beats_the_null_where_it_alone_is_right_often_enough() -> None:
    """Right alone in 5 of 5: p = 1/32; in 7 of 8: 9/256; in 4 of 4: 1/16, which is not enough."""
    for alone, wrong, p, reached in ((5, 0, 1 / 32, True), (7, 1, 9 / 256, True), (4, 0, 1 / 16, False)):
        told = scores(
            [race("full", "full")] * 3 + [race("direct", "x")] * alone + [race("full", "x", race="direct")] * wrong
        )
        assert told["p against always full, paired"] == pytest.approx(p)
        assert goals(told)[0].reached is reached
    assert scores([race("full", "full")] * 3)["p against always full, paired"] == 1
    assert scores([race("full", "full")] * 3)["p against always full"] == 1


def flat(found: Any) -> dict[str, Any]:
    """Path -> leaf of nested figures."""
    if not isinstance(found, dict | list):
        return {"": found}
    parts = found.items() if isinstance(found, dict) else enumerate(found)
    return {f"{name}/{path}": leaf for name, part in parts for path, leaf in flat(part).items()}


def test_the_committed_figures_and_goals_are_those_of_the_committed_rows() -> None:
    kept = json.loads((RESULTS / "formats.json").read_text())
    rows = [
        row | {name: {int(step): seen for step, seen in row[name].items()} for name in ("looks", "pass")}
        for row in kept["rows"]
    ]
    forecast = scores([row for row in rows if row["mix"] not in GUARDED])
    assert flat(kept["figures"]) == pytest.approx(flat({"forecast": forecast, "guards": guards(rows)}))
    assert flat(kept["goals"]) == pytest.approx(flat([goal.record() for goal in goals(forecast)]))
    assert (forecast["race"]["hits"], forecast["always full"]["hits"], forecast["mixes"]) == (17, 13, 20)
