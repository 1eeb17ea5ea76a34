"""What answers do beside answering, before and after: counts by hand, planted losses, clean pairs, and the gate."""

from __future__ import annotations

import random

import pytest

from mixwright.answers.table import Answers
from mixwright.behaviours import BEHAVIOURS, read_behaviours
from mixwright.records import AnswerPair
from mixwright.verdict.rules.behaviours import ANY_RIGHT, DISTINCT, compare_behaviours, judge_behaviours

ASK, TELL = "Which day would you like?", "Your table is booked."


def rows(task: str, pairs: list[tuple[str, str]]) -> dict[tuple[str, str], AnswerPair]:
    """Answers of both sides."""
    return {(task, f"{task}-{i}"): AnswerPair(task, None, "", "", *texts, 0.0, 0.0) for i, texts in enumerate(pairs)}


def test_counts_by_hand() -> None:
    """7 of 20 asked before and 1 after, which is among the 7: six discordant pairs, p = 2 / 64."""
    pairs = [(ASK, TELL)] * 6 + [(ASK, ASK)] + [(TELL, TELL)] * 13
    (change,) = compare_behaviours(rows("bookings", pairs))
    assert (change.behaviour, change.before, change.after) == ("asks", 0.35, 0.05)
    assert change.change.value == pytest.approx(-0.3)
    assert change.change.n == 20
    assert change.adjusted_p == pytest.approx(2 / 64)
    assert not change.shown


@pytest.mark.parametrize(
    ("text", "is_call"),
    [
        ('{"name": "find_city", "arguments": {"city": "Rome"}}', True),
        ('{"tool": "find_city", "city": "Rome"}', True),
        ('{"name": "Mira", "age": 31, "city": "Rome"}', False),
    ],
)
def test_a_record_with_a_name_is_no_call(text: str, is_call: bool) -> None:
    assert read_behaviours(text)[BEHAVIOURS.index("calls a tool")] is is_call


@pytest.mark.parametrize(
    ("text", "behaviour", "shows"),
    [
        ('Do you mean the account "apple"?', "asks", True),
        ("Is it 50%? I need it for the form.", "asks", True),
        ("What is 5 + 1? 7", "asks", False),
        ("It is at http://example.com/search?q=river", "asks", False),
        ("I am unable to share that.", "refuses", True),
        ("The guest says that the hotel was unable to provide towels.", "refuses", False),
        ("I can't recommend it enough.", "refuses", False),
    ],
)
def test_words_that_only_look_like_a_behaviour(text: str, behaviour: str, shows: bool) -> None:
    assert read_behaviours(text)[BEHAVIOURS.index(behaviour)] is shows


def test_what_the_score_does_not_see_is_shown() -> None:
    """79 of 100 questions back are gone."""
    pairs = [(ASK, TELL)] * 79 + [(TELL, TELL)] * 121
    (change,) = compare_behaviours(rows("bookings", pairs))
    assert change.shown
    assert change.change.high < -0.3
    (whole,) = compare_behaviours(rows("bookings", [(ASK, TELL)] * 20))
    assert (whole.change.value, whole.change.low) == (pytest.approx(-1), -1), "no share falls by more than 100 points"


def test_the_corrections_are_over_all_behaviours_but_protected_ones_have_their_own() -> None:
    pairs = [(ASK, TELL)] * 8 + [(TELL, TELL)] * 12
    others = [[("Perhaps.", "Yes.")] * 3 + [("Yes.", "Perhaps.")] * 3 + [("Yes.", "Yes.")] * 14 for _ in range(5)]
    every = rows("bookings", pairs)
    for i, other in enumerate(others):
        every |= rows(f"other{i}", other)
    alone = next(one for one in compare_behaviours(every, protected=("asks",)) if one.behaviour == "asks")
    together = next(one for one in compare_behaviours(every) if one.behaviour == "asks")
    assert together.adjusted_p == pytest.approx(6 * alone.adjusted_p)
    assert alone.shown
    assert not together.shown


def test_samples_that_became_alike() -> None:
    def table(texts: list[str], best: float) -> Answers:
        return Answers.from_rows(
            {
                "item": f"i{i}",
                "task": "t",
                "decoding": "sampled",
                "sample": k,
                "text": text,
                "right": best if k == 0 else 0.0,
            }
            for i in range(20)
            for k, text in enumerate(texts)
        )

    found = compare_behaviours({}, (table(["a", "b", "c", "d"], 1.0), table(["a", "a", "a", "a"], 0.0)))
    assert {one.behaviour: (one.before, one.after, one.shown) for one in found} == {
        DISTINCT: (1.0, 0.25, True),
        ANY_RIGHT: (1.0, 0.0, True),
    }


def test_the_gate_fails_a_loss_and_passes_none_that_it_cannot_exclude() -> None:
    kept = [(ASK, ASK)] * 100 + [(TELL, TELL)] * 100
    assert judge_behaviours(compare_behaviours(rows("b", kept), protected=("asks",)), ("asks",)) == "passed"
    lost = compare_behaviours(rows("b", [(ASK, TELL)] * 60 + [(TELL, TELL)] * 60), protected=("asks",))
    assert judge_behaviours(lost, ("asks",)) == "damaged"
    few = compare_behaviours(rows("b", [(ASK, ASK)] * 6 + [(ASK, TELL)] * 4), protected=("asks",))
    assert judge_behaviours(few, ("asks",)) == "inconclusive"
    assert judge_behaviours(compare_behaviours(rows("b", kept)), ("hedges",)) == "inconclusive"


def test_clean_pairs_are_seldom_called_changed() -> None:
    """100 comparisons of four tasks whose sides come from one process: a change in two of them at most."""
    phrases = (ASK, TELL, "Perhaps.", "I see.", "Let me check that.", "- one\n- two", "I can't help with that.")
    shown = 0
    for seed in range(100):
        rng = random.Random(seed)
        every: dict[tuple[str, str], AnswerPair] = {}
        for task in range(4):
            pairs = [(" ".join(rng.sample(phrases, 2)), " ".join(rng.sample(phrases, 2))) for _ in range(50)]
            every |= rows(f"t{task}", pairs)
        shown += any(change.shown for change in compare_behaviours(every))
    assert shown <= 2


@pytest.mark.parametrize("piece", ["\n", " ", "?", "`", '"', "i'm sorry, but i ", "[a(", "**", "_", ")*_"])
def test_long_texts_are_read_in_linear_time(piece: str) -> None:
    """A quadratic pattern would take minutes."""
    assert len(read_behaviours(piece * (200_000 // len(piece)))) == len(BEHAVIOURS)
