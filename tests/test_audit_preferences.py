"""Preference pairs: behaviours by hand, odds by hand, what chance and length explain, and rejected answers that are none."""

from __future__ import annotations

import random

import pytest

from mixwright.audit.checks.preferences import Preferences, is_trivial, without_common_start
from mixwright.behaviours import BEHAVIOURS, read_behaviours
from mixwright.corpus import Corpus
from mixwright.records import Example, Observation

ANSWER = "The train to the coast leaves at nine from the second platform, and the ticket costs twelve euros in all."
OTHER = "A bus to the coast leaves at eight from the main square there, and the ticket costs eleven euros in all."


def _check(pairs: list[tuple[str, str]], split: str = "train") -> list[Observation]:
    rows = [
        Example(f"i{n}", "chat", f"Question number {n}?", chosen=chosen, rejected=rejected, split=split)
        for n, (chosen, rejected) in enumerate(pairs)
    ]
    return Preferences().check(Corpus.from_examples(rows))


def test_scores_and_other_pairs_that_contradict_a_pair_are_found() -> None:
    rows = [
        Example(
            f"i{n}",
            "chat",
            f"Question {n}?",
            chosen=ANSWER,
            rejected=OTHER,
            extra={"score_chosen": n % 2, "score_rejected": 1},
        )
        for n in range(40)
    ]
    seen, *_ = _warnings(Preferences().check(Corpus.from_examples(rows)))
    assert seen.count == 20
    assert "score_chosen is below score_rejected" in seen.message
    again = Example("i40", "chat", "Question 3?", chosen=OTHER, rejected=ANSWER)
    turned = Preferences().check(Corpus.from_examples([*rows, again]))
    assert any(one.count == 1 and "another pair of the same prompt rejects" in one.message for one in turned)


def _warnings(seen: list[Observation]) -> list[Observation]:
    return [one for one in seen if one.severity == "warning"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("I see. Which city do you mean?", {"asks", "acknowledges"}),
        ("He asked \"why now?\" and left.", set()),
        ("```a ? b : c?```", {"writes code"}),
        ("In May it can't rain more than in June.", set()),
        ("It depends on the lease; perhaps call them.", {"hedges"}),
        ("I\u2019m sorry, but I can\u2019t help with that.", {"refuses"}),
        ("I can't stress enough how good it is. Sorry for the typo.", set()),
        ("I am unable to assist with this request.", {"refuses"}),
        ("Two ways:\n- walk\n- ride", {"lays out"}),
        ("That sounds hard. Thanks for the details.", {"acknowledges"}),
        ("Wait, let me check: 3 times 4 is 12.", {"checks itself"}),
        ("Wait for the bus and check the sign.", set()),
        ('{"tool": "weather", "city": "Rome"}', {"calls a tool"}),
        ('<tool_call>{"name": "now"}</tool_call>', {"calls a tool"}),
        ('{"city": "Rome"}', set()),
        ("", set()),
    ],
)  # fmt: skip
def test_behaviours_by_hand(text: str, shown: set[str]) -> None:
    assert {name for name, is_shown in zip(BEHAVIOURS, read_behaviours(text), strict=True) if is_shown} == shown


def test_the_dialogue_so_far_is_left_out() -> None:
    """Both sides hold the user's question; the answers have none."""
    assert without_common_start("Human: Why?\nAssistant: So.", "Human: Why?\nAssistant: No.") == (
        "Assistant: So.",
        "Assistant: No.",
    )
    assert without_common_start("one", "one more") == ("one", "one more")
    seen = _check([("Human: Why?\nBot: " + ANSWER, "Human: Why?\nBot: " + OTHER)] * 40)
    assert not any("asks" in one.message for one in seen)


def test_odds_by_hand() -> None:
    """The rejected side alone asks in 34 pairs, the preferred one alone in 10: odds 10.5 / 34.5."""
    asks = f"{OTHER} Which day do you want to go?"
    pairs = [(ANSWER, asks)] * 34 + [(asks, ANSWER)] * 10 + [(ANSWER, OTHER)] * 56
    (warning,) = [one for one in _warnings(_check(pairs)) if "asks" in one.message]
    assert (warning.task, warning.count, warning.total) == ("chat", 34, 100)
    assert [row["side"] for row in warning.evidence] == ["rejected"] * 34 + ["chosen"] * 10


def test_as_many_on_both_sides_are_fine() -> None:
    asks = f"{OTHER} Which day do you want to go?"
    pairs = [(ANSWER, asks)] * 20 + [(asks, ANSWER)] * 22 + [(ANSWER, OTHER)] * 20
    (info,) = _check(pairs)
    assert (info.severity, info.total) == ("info", 62)


def test_length_that_decides() -> None:
    pairs = [(f"{ANSWER} {OTHER}", OTHER)] * 40 + [(ANSWER, f"{OTHER} {ANSWER}")] * 12
    (warning,) = _warnings(_check(pairs))
    assert (warning.count, warning.total) == (40, 52)


def test_rejected_answers_that_are_none() -> None:
    bad = ["No.", f"{'So it is. ' * 8}", "Question number 3?", "#### $$$ 0x00 ==== ;;;; 1111"]
    pairs = [(ANSWER, OTHER)] * 3 + [(ANSWER, bad[2])] + [(ANSWER, bad[n % 2 + 2 * (n % 4 == 3)]) for n in range(4, 12)]
    pairs += [(ANSWER, OTHER)] * 60
    (warning,) = [one for one in _warnings(_check(pairs)) if "not real answers" in one.message]
    assert 7 <= warning.count <= 9
    assert is_trivial("", ANSWER, "")
    assert not is_trivial("42", "17", "What is 6 * 7?")


def test_eval_pairs_and_rows_without_pairs_are_left_alone() -> None:
    asks = f"{OTHER} Which day do you want to go?"
    assert _check([(ANSWER, asks)] * 40, split="eval") == []
    assert Preferences().check(Corpus.from_examples([Example("a", "t", "p", answer="1")])) == []


def test_pairs_of_one_process_have_few_warnings() -> None:
    """Sides drawn alike, 60 times: at most one corpus in twenty with a warning."""
    warned = 0
    for seed in range(60):
        rng = random.Random(seed)
        extra = ["Which day?", "I see.", "Perhaps.", "I can't help with that.", "**Note**", "It is far.", "Yes it is so."]

        def side(rng: random.Random = rng, extra: list[str] = extra) -> str:
            return " ".join([ANSWER, *rng.sample(extra, rng.randint(0, 3))])

        warned += bool(_warnings(_check([(side(), side()) for _ in range(150)])))
    assert warned <= 3
