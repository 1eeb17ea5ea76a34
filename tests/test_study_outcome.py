"""The outcome of the arena: success, S and D come out of the kept letters as they are worked out by hand."""

import numpy as np
import pytest

from mixwright.records import Example
from mixwright_lab.studies import outcome


def problem(number, answer, level=1.0, **extra):
    return Example(f"p{number}", "chain", "3 +1", answer=answer, level=level, extra=extra)


FOUR = [problem(0, "4"), problem(1, "4"), problem(2, "11"), problem(3, "2")]


def test_success_and_its_parts_by_hand():
    seen = {"greedy": "44b-", "sampled": "4444" + "4444" + "bb--" + "2---"}
    found = outcome.scores(seen, FOUR)
    greedy = [found.by_item("greedy")[item] for item in found.items]
    assert greedy == [1.0, 1.0, 1.0, 0.0]
    assert [found.by_item("pass@1")[item] for item in found.items] == [1.0, 1.0, 0.5, 0.25]
    # of the 12 ordered pairs "4" is right on the other "4" in two
    assert np.mean(list(found.by_item("greedy.swapped").values())) == pytest.approx(2 / 12)


def test_every_accepted_answer_counts():
    several = [problem(n, "1", accepted=("1", "12")) for n in range(3)]
    found = outcome.scores({"greedy": "1c2", "sampled": "1c22" * 3}, several)
    assert sorted(found.by_item("greedy").values()) == [0.0, 1.0, 1.0]


def test_arms_are_paired_by_seed_and_levels_count_once():
    scored = [*FOUR, *(problem(n, str(n), level=2.0) for n in range(4, 7))]
    rows = []
    for seed in range(5):
        rows.append({"arm": "frozen", "seed": seed, "answers": {"greedy": "-------", "sampled": "-" * 28}})
        rows.append({"arm": "ours", "seed": seed, "answers": {"greedy": "44b2---", "sampled": "-" * 28}})
    found = outcome.differences(rows, scored, [("ours", "frozen"), ("ours", "absent")])
    assert list(found) == ["ours - frozen"]
    assert found["ours - frozen"]["success"][0] == pytest.approx(0.5)  # all of one level and none of the other
    assert found["ours - frozen"]["S"][0] + found["ours - frozen"]["D"][0] == pytest.approx(0.5)
    assert found["ours - frozen"]["seeds"] == 5
    assert outcome.differences(rows, scored, [("ours", "frozen")], levels=[2.0])["ours - frozen"]["success"][0] == 0
    shown = outcome.means(rows, scored)
    assert (shown["ours"]["greedy"], shown["ours"]["levels"]) == (0.5, [1.0, 0.0])


def test_a_model_that_was_not_trained_stands_for_itself_at_every_time():
    rows = [{"arm": "frozen", "seed": 0, "answers": {"greedy": "----", "sampled": "-" * 16}}]
    late, early = ({"greedy": text, "sampled": "-" * 16} for text in ("44b2", "44--"))
    rows.append({"arm": "ours", "seed": 0, "answers": late, "early": early})
    found = outcome.differences(rows, FOUR, [("ours", "frozen")], column="early")["ours - frozen"]
    assert found["success"][0] == pytest.approx(0.5)
    assert found["word"] == "cannot tell"


def test_a_collapse_onto_the_commonest_answer_is_no_dependence():
    common = [problem(n, "7" if n < 6 else str(n + 2)) for n in range(10)]
    rows = []
    for seed in range(5):
        rows.append({"arm": "frozen", "seed": seed, "answers": {"greedy": "-" * 10, "sampled": "-" * 40}})
        rows.append({"arm": "ours", "seed": seed, "answers": {"greedy": "7" * 10, "sampled": "7" * 40}})
    found = outcome.differences(rows, common, [("ours", "frozen")])["ours - frozen"]
    assert found["success"][0] == pytest.approx(0.6)
    assert found["D"][0] == pytest.approx(0.0)
    assert found["word"] != "improves"
