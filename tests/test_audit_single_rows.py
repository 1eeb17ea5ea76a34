"""Rows broken by themselves, and prompts: the faults of public reports rebuilt, and sound files that look like them."""

from __future__ import annotations

from typing import Any

import pytest

from mixwright.audit.checks.prompts import Prompts
from mixwright.audit.checks.single_rows import SingleRows
from mixwright.corpus import Corpus
from mixwright.records import Example, Observation

PROSE = "Put the lamp on a dry table, then clean it slowly and check every part twice"


def corpus(targets: list[Any], **fields: Any) -> Corpus:
    return Corpus.from_examples(
        Example(f"r{n}", "all", fields.get("prompt", f"How do I clean lamp {n}?"), target=text, source=f"a.jsonl:{n + 1}")
        for n, text in enumerate(targets)
    )


def warned(observations: list[Observation]) -> dict[str, tuple[int, int]]:
    """First word of the remedy and of the message -> count and total."""
    return {one.message: (one.count, one.total) for one in observations if one.severity == "warning"}


def sound(count: int) -> list[str]:
    return [f"{PROSE} by hand {n} times." for n in range(count)]


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("NaN", "missing value"),
        ("#N/A", "missing value"),
        ("<think>I take the lamp and", "thoughts that do not end"),
        ("I am {{name}}, made by {{ author }}.", "{{name}}"),
        ("Write to [Your Company] and ask for the lamp today.", "[Your Company]"),
    ],
)
def test_broken_rows_are_found_with_their_lines(broken: str, words: str) -> None:
    (found,) = [one for one in SingleRows().check(corpus([*sound(40), *[broken] * 5])) if one.severity == "warning"]
    assert (found.count, found.total) == (5, 45)
    assert words in found.message
    assert found.evidence[0]["source"] == "a.jsonl:41"


def test_texts_cut_at_a_limit_are_found_and_a_style_without_marks_is_not() -> None:
    long = [f"Part {'i' * n}: {PROSE} {'overandagain' * 20}" for n in range(10)]
    at_a_limit = [text[:150] for text in long]
    (message,) = warned(SingleRows().check(corpus([*sound(40), *at_a_limit])))
    assert "10 of them at exactly 150 characters" in message
    by_tokens = [text[: 150 + 3 * n] + "a" for n, text in enumerate(long)]
    (message,) = warned(SingleRows().check(corpus([*sound(40), *by_tokens])))
    assert "10 of them longer than 95 of 100" in message
    unmarked = [f"{PROSE} on day {n} of the week" for n in range(40)]
    assert not warned(SingleRows().check(corpus([*sound(40), *unmarked])))


def test_an_answer_before_thousands_of_blanks_is_read() -> None:
    assert not warned(SingleRows().check(corpus([*sound(40), f"{PROSE} on every day of the week.{' ' * 5000}"])))


def test_what_looks_broken_and_is_sound_is_no_warning() -> None:
    code = "Use this, with the name of your file in it:\n```sh\necho {{name}}\n```"
    letter = ["Dear friend, the lamp is clean again. Yours, [Your Name]"]
    lists = [f"You need these things for it:\n- a cloth of kind {n}\n- some warm and clean water" for n in range(30)]
    assert not warned(SingleRows().check(corpus([*sound(300), *[code] * 30, *letter, *lists])))
    assert not warned(SingleRows().check(corpus(["none", "some", "all"] * 20))), "`none` among short answers is one of them"
    assert not warned(SingleRows().check(corpus([None] * 20))), "prompts alone, for rewards"


def test_chats_that_end_with_the_user_and_empty_turns_are_found() -> None:
    chats = [
        Example(f"c{n}", "all", ({"role": "user", "content": "Hello"},), target="Good day to you, how can I help?")
        for n in range(9)
    ]
    open_end = Example("open", "all", ({"role": "user", "content": "Hello"},))
    empty_turn = Example(
        "gap",
        "all",
        tuple({"role": role, "content": text} for role, text in (("user", "Hi"), ("assistant", ""), ("user", "So?"))),
        target="Yes, I am here.",
    )
    found = warned(SingleRows().check(Corpus.from_examples([*chats, open_end, empty_turn])))
    assert sorted(found.values()) == [(1, 11), (1, 11)]


def test_markers_of_a_template_are_found() -> None:
    found = Prompts().check(corpus([*sound(30), *[f"{text}</s>" for text in sound(30)]]))
    assert list(warned(found).values()) == [(30, 60)]
    whole = [f"<s>[INST] How? [/INST] {text} </s>" for text in sound(20)]
    (message,) = warned(
        Prompts().check(Corpus.from_examples(Example(f"t{n}", "all", "", text) for n, text in enumerate(whole)))
    )
    assert "[INST] (20)" in message
    assert not warned(Prompts().check(corpus([*sound(400), "Write <s>old</s> for a struck text."])))


@pytest.mark.parametrize(
    ("train", "held_out", "is_told"),
    [("Be brief.", None, True), ("Be brief.", "Be long.", True), ("Be brief.", "Be brief.", False)],
)
def test_system_messages_of_both_splits_are_compared(train: str, held_out: str | None, is_told: bool) -> None:
    def rows(split: str, system: str | None) -> list[Example]:
        first = [] if system is None else [{"role": "system", "content": system}]
        turns = [(*first, {"role": "user", "content": f"Is room {n} free?"}) for n in range(20)]
        return [Example(f"{split}{n}", "all", turn, "No", "No", split=split) for n, turn in enumerate(turns)]

    found = warned(Prompts().check(Corpus.from_examples([*rows("train", train), *rows("eval", held_out)])))
    assert bool(found) == is_told


def test_an_answer_that_the_prompt_states_is_found_and_one_that_is_read_out_of_it_is_not() -> None:
    sums = [(n + 10, 2 * n + 31) for n in range(40)]
    stated = [
        Example(f"s{n}", "all", f"{a} and {b}? (Solution: {a} + {b} = {a + b})", answer=f"{a + b}")
        for n, (a, b) in enumerate(sums)
    ]
    assert list(warned(Prompts().check(Corpus.from_examples(stated))).values()) == [(40, 40)]
    read = [
        Example(f"r{n}", "all", f"Town {n}rt has {a} trees and {b} lamps. How many trees?", answer=f"{a}")
        for n, (a, b) in enumerate(sums)
    ]
    assert not warned(Prompts().check(Corpus.from_examples(read)))
