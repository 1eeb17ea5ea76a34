"""The study of balanced pairs: its pairs have the fault that it plants, and its goals are computed by hand."""

from __future__ import annotations

import random

from mixwright.audit.balanced import balance
from mixwright.corpus import Corpus
from mixwright_lab.studies import balanced_pairs as study


def test_the_rejected_side_asks_and_the_preferred_one_is_right() -> None:
    rows = study.make_pairs(300, random.Random(1))
    assert len({row.prompt for row in rows}) == 300
    assert all(str(row.chosen)[0] == str(row.prompt)[-4] != str(row.rejected)[0] for row in rows)
    only = [(str(row.chosen).endswith("?"), str(row.rejected).endswith("?")) for row in rows]
    assert abs(only.count((False, True)) - 150) < 40
    left = balance(Corpus.from_examples(rows))
    assert not left.left
    kept = [(str(row.chosen).endswith("?"), str(row.rejected).endswith("?")) for row in left.corpus]
    assert kept.count((False, True)) == kept.count((True, False)) == only.count((True, False))


def test_goals_by_hand() -> None:
    asks = {"not trained": 50.0, "as they are": 10.0, "balanced": 45.0, "random": 35.0}
    rows = [
        {"seed": seed, "arm": arm, "asks": value + seed, "right": 90.0 - (arm == "balanced") * 6}
        for arm, value in asks.items()
        for seed in (0, 1)
    ]
    goals = study.goals_of(rows, (0, 1))
    assert [goal.found.value for goal in goals] == [40.0, 15.0, -5.0, -6.0]
    assert [goal.reached for goal in goals] == [True, False, True, False]
