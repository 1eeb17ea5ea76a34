"""Causes of a loss: shares by hand, the order of kinds, nothing where nothing stands out, and remedies in a report."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import get_args

import pytest

from mixwright.records import AnswerPair, CauseKind
from mixwright.verdict.rules.causes import find_causes
from mixwright.verdict.words import CAUSES
from mixwright.words import repeats_itself

CITIES = [f"{a}{b}ville" for a in ("Mar", "Lun", "Tor", "Bel", "Kor", "Nes") for b in ("a", "e", "i", "o", "u")]


def pair(
    i: int, after: str, *, right: bool = False, was_right: bool = True, cut: bool = False, gold: str = ""
) -> AnswerPair:
    """One item of task `towns`, answered with a sentence before."""
    gold = gold or CITIES[i % len(CITIES)]
    before = f"The town that you mean is called {gold}."
    return AnswerPair(
        "towns",
        None,
        f"Which town is number {i} on our list?",
        gold,
        before,
        after,
        float(was_right),
        float(right),
        (False, cut),
    )


def right(count: int, start: int = 100) -> list[AnswerPair]:
    """Items that stayed right, in the words of before."""
    return [pair(i, f"The town that you mean is called {CITIES[i % 30]}.", right=True) for i in range(start, start + count)]


def shares(pairs: list[AnswerPair]) -> dict[str, tuple[int, int]]:
    """Kind -> lost answers that it explains, and lost answers."""
    return {cause.kind: (cause.items, cause.lost) for cause in find_causes(pairs, {"towns"})}


@pytest.mark.parametrize(
    ("kind", "after", "cut"),
    [
        ("empty", "  ", False),
        ("repeating", "no town no town no town no town no town no town no town", False),
        ("cut", "The town that you mean, as far as anybody here can tell from what", True),
        ("refuses", "I'm sorry, but I can't help with that.", False),
        ("asks back", "Which list of towns do you have in mind here?", False),
        ("wrong step", "First 3 + {i} = 99, then 99 + 2 = 101. So it is {town}.", False),
        ("shorter", "{town}", False),
        ("longer", "The town of {town} is one of which nobody knows much, except that it lies far from here, north.", False),
        ("prompt copied", "Which town is number {i} on our list?", False),
    ],
)  # fmt: skip
def test_each_kind_is_named_first(kind: str, after: str, cut: bool) -> None:
    lost = [pair(i, after.format(i=i, town=CITIES[(i + 7) % 30]), cut=cut) for i in range(12)]
    assert shares(lost + right(8)) == {kind: (12, 12)}


@pytest.mark.parametrize(("text", "repeats"), [("10101010", False), ("1 0 1 0 1 0 1 0 1 0", True), (32 * "0", True)])
def test_a_number_may_be_made_of_one_piece(text: str, repeats: bool) -> None:
    assert repeats_itself(text) is repeats


def test_lost_answers_are_shared_out_and_the_largest_share_comes_first() -> None:
    """12 of 24 lost answers are cut, 10 empty, and 2 are wrong sentences, which nothing explains."""
    lost = [pair(i, "The town that you mean, as far as anybody here", cut=True) for i in range(12)]
    lost += [pair(i, "") for i in range(12, 22)] + [pair(i, "The town that you mean is called Oslo.") for i in (22, 23)]
    found = find_causes(lost + right(10), {"towns"})
    assert [(cause.kind, cause.items, cause.lost, cause.kept_with, cause.kept) for cause in found] == [
        ("cut", 12, 24, 0, 10),
        ("empty", 10, 24, 0, 10),
    ]
    assert all(len(cause.examples) == 3 for cause in found)


def test_a_format_of_its_own_that_is_gone_is_named() -> None:
    """JSON before, a sentence after: nothing new stands in it."""
    sides = [(f'{{"town": "{CITIES[i % 30]}"}}', f"You mean the town of {CITIES[(i + 7) % 30]}.") for i in range(12)]
    lost = [replace(pair(i, after), before=before) for i, (before, after) in enumerate(sides)]
    kept = [replace(pair(i, before, right=True), before=before) for i, (before, _) in enumerate(sides, start=100)]
    (cause,) = find_causes(lost + kept, {"towns"})
    assert (cause.kind, cause.pattern, cause.items, cause.lost) == ("format lost", '{"…": …}', 12, 12)


def test_wrong_facts_in_the_same_form_have_no_cause() -> None:
    lost = [pair(i, f"The town that you mean is called {CITIES[(i + 7) % 30]}.") for i in range(20)]
    assert shares(lost + right(10)) == {}


def test_a_form_that_is_commoner_where_answers_stayed_right_explains_nothing() -> None:
    short_and_right = [pair(i, CITIES[i % 30], right=True) for i in range(40)]
    lost = [pair(i, CITIES[(i + 5) % 30]) for i in range(50, 66)]
    lost += [pair(i, f"The town that you mean is called {CITIES[(i + 3) % 30]}.") for i in range(66, 70)]
    (cause,) = find_causes(short_and_right + lost, {"towns"})
    assert (cause.kind, cause.is_specific) == ("shorter", False)


def test_one_label_for_everything_is_the_cause_though_it_is_right_where_it_is_the_label() -> None:
    pairs = [
        pair(i, "billing", gold=("billing", "login", "refunds", "shipping")[i % 4], right=i % 4 == 0) for i in range(80)
    ]
    (cause,) = find_causes(pairs, {"towns"})
    assert (cause.kind, cause.items, cause.is_specific) == ("one answer", 60, True)


def test_answers_that_were_right_in_part_count() -> None:
    lost = [replace(pair(i, ""), score_before=0.66) for i in range(20)]
    assert shares([*lost, *right(5)]) == {"empty": (20, 20)}


def test_an_answer_is_in_another_language_than_its_own_prompt() -> None:
    asked = ("Welche Stadt ist das und wo ist sie?", "Which of the towns is it, and where is it?")
    said = "It is one of the towns that lie in the north of"
    pairs = [replace(pair(i, f"{said} {CITIES[(i + 7) % 30]}.", right=i % 2 == 1), prompt=asked[i % 2]) for i in range(40)]
    pairs = [replace(one, before="Das ist die Stadt mit der Burg.") if one.prompt == asked[0] else one for one in pairs]
    (cause,) = find_causes(pairs, {"towns"})
    assert (cause.kind, cause.items, cause.is_specific, cause.kept_with) == ("other language", 20, True, 0)


def test_a_name_that_is_longer_is_no_longer_answer() -> None:
    lost = [replace(pair(i, f"San {CITIES[(i + 7) % 30]}"), before="Rome") for i in range(20)]
    assert shares([*lost, *right(5)]) == {}


def test_length_that_goes_with_new_content_is_no_cause() -> None:
    """Fifteen of twenty lost answers are short: under four fifths, so that something else made all twenty wrong."""
    lost = [pair(i, CITIES[(i + 5) % 30]) for i in range(15)]
    lost += [pair(i, f"The town that you mean is called {CITIES[(i + 3) % 30]}.") for i in range(15, 20)]
    assert shares(lost + right(10)) == {}
    assert shares(lost[:18] + right(10)) == {"shorter": (15, 18)}


def test_a_form_of_answers_that_stayed_right_is_told() -> None:
    pairs = [pair(i, CITIES[(i + 5) % 30]) for i in range(12)] + [pair(i, CITIES[i % 30], right=True) for i in range(20, 26)]
    (cause,) = find_causes(pairs, {"towns"})
    assert (cause.kind, cause.kept_with, cause.kept, cause.is_specific) == ("shorter", 6, 6, False)


@pytest.mark.parametrize(
    "tail", [" Would you like to know more?", " It lies far from here, and few people ever go there now."]
)
def test_a_change_of_style_of_all_answers_explains_no_loss(tail: str) -> None:
    lost = [pair(i, f"The town that you mean is called {CITIES[(i + 7) % 30]}.{tail}") for i in range(20)]
    kept = [pair(i, f"The town that you mean is called {CITIES[i % 30]}.{tail}", right=True) for i in range(40, 60)]
    assert not any(cause.is_specific for cause in find_causes(lost + kept, {"towns"}))


def test_thoughts_are_not_read() -> None:
    thought = "<think>Is it this one? I cannot help with that.</think>"
    lost = [pair(i, f"{thought}The town that you mean is called {CITIES[(i + 7) % 30]}.") for i in range(20)]
    assert shares(lost + right(5)) == {}


def test_labels_that_are_swapped_and_one_that_is_lost() -> None:
    def item(i: int, gold: str, said: str) -> AnswerPair:
        return AnswerPair("towns", None, f"Is {i} fine?", gold, f"It is {gold}.", f"It is {said}.", 1.0, float(gold == said))

    swapped = [item(i, *(("good", "bad") if i % 2 else ("bad", "good"))) for i in range(24)]
    (cause,) = find_causes(swapped, {"towns"})
    assert (cause.kind, cause.items) == ("other label", 24)
    one_lost = [item(i, "mixed", "good") for i in range(10)] + [item(i, "good", "good") for i in range(10)]
    (cause,) = find_causes(one_lost + [item(i, "bad", "bad") for i in range(10)], {"towns"})
    assert (cause.kind, cause.pattern, cause.items, cause.lost) == ("other label", "good for mixed", 10, 10)


def test_a_right_answer_that_the_grader_does_not_take() -> None:
    pairs = [pair(i, f"The town that you mean is, of course, {CITIES[i % 30]}.") for i in range(12)]
    assert shares(pairs + right(5)) == {"unread": (12, 12)}


def test_a_format_is_that_of_the_task_that_has_it_or_new() -> None:
    lost = [pair(i, '{"tool": "map", "town": "Oslo"}') for i in range(12)]
    (cause,) = find_causes(lost + right(8), {"towns"})
    assert (cause.kind, cause.pattern, cause.items) == ("new format", '{"…": …}', 12)
    calls = [replace(pair(i, '{"tool": "call", "name": "Ben"}', right=True), task="calls") for i in range(10)]
    taken = [replace(pair(i, '{"tool": "map"}', right=i == 0), task="weather") for i in range(10)]  # is no owner of it
    (cause,) = find_causes(lost + right(8) + taken, {"towns"})
    assert (cause.kind, cause.pattern, cause.items) == ("new format", '{"…": …}', 12)
    (cause,) = find_causes(lost + right(8) + calls + taken, {"towns"})
    assert (cause.kind, cause.pattern, cause.items) == ("other format", "calls", 12)


def test_a_denied_answer_is_not_stated() -> None:
    pairs = [pair(i, f"The town that you mean is not called {CITIES[i % 30]}.") for i in range(12)]
    assert shares(pairs + right(5)) == {}


def test_short_answers_in_another_language_are_seen_beside_english_prompts() -> None:
    pairs = [pair(i, f"C'est {CITIES[(i + 4) % 30]}.") for i in range(12)]
    (cause,) = find_causes(pairs + right(5), {"towns"})
    assert (cause.kind, cause.pattern) == ("other language", "french")


def test_tasks_that_are_not_damaged_and_answers_without_a_grade_are_left_alone() -> None:
    assert find_causes([pair(i, "") for i in range(12)], {"other"}) == []


def test_random_flips_have_no_cause() -> None:
    """60 clean comparisons in which answers are reworded, and lost or gained alike: a cause in three of them at most."""
    named = 0
    for seed in range(60):
        rng = random.Random(seed)
        pairs = []
        for i in range(40):
            gold, start = (
                CITIES[i % 30],
                rng.choice(("Its name is, as I think,", "The town that you mean is called", "You mean the town of")),
            )
            is_right, was_right = rng.random() < 0.7, rng.random() < 0.7
            said = gold if is_right else rng.choice(CITIES)
            pairs.append(pair(i, f"{start} {said}{rng.choice(('.', '!', ''))}", right=is_right, was_right=was_right))
        named += bool(find_causes(pairs, {"towns"}))
    assert named <= 3


def test_every_kind_has_words_and_a_remedy() -> None:
    assert set(CAUSES) == set(get_args(CauseKind))
