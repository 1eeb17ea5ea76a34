"""Dilution: the frame of a task's completions and the share of words beside it, by hand."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright.corpus import Corpus
from mixwright.records import Example, Observation
from mixwright_extras.checks.dilution import Dilution
from mixwright_extras.instructions.frames import find_frame

PREAMBLE = " ".join(f"word{n}" for n in range(57))


def observed(completions: list[str]) -> list[Observation]:
    return Dilution().check(
        Corpus.from_examples(Example(f"i{n}", "t", f"p{n}", target=text) for n, text in enumerate(completions))
    )


def test_the_share_is_counted_by_hand() -> None:
    """Three words of four are the frame."""
    (seen,) = observed([f"The answer is: {('yes', 'no')[n % 2]}." for n in range(40)])
    assert (seen.severity, seen.count, seen.total, seen.remedy) == ("info", 40, 160, "")
    assert "'The answer is …'" in seen.message


def test_few_words_beside_a_long_frame_are_a_warning() -> None:
    """57 words and `Label` before one word of 59: 1.7 %."""
    (seen,) = observed([f"{PREAMBLE} Label: {('red', 'blue')[n % 2]}" for n in range(40)])
    assert (seen.severity, seen.count, seen.total) == ("warning", 40, 59 * 40)
    assert seen.remedy


def test_keys_around_values_are_a_frame_with_gaps() -> None:
    frame = find_frame("t", [f'{{"name": "f{n}", "arguments": {{"city": "c{n}", "unit": "metre"}}}}' for n in range(30)])
    assert frame is not None
    assert frame.text == "name … arguments city … unit metre"
    assert (frame.varying, frame.words) == (60, 7 * 30)


def test_rows_without_the_frame_vary_as_a_whole() -> None:
    rows = [f"The final answer is {n}" for n in range(98)] + ["I do not know"] * 2
    frame = find_frame("t", rows)
    assert frame is not None
    assert (frame.with_frame, frame.words, frame.varying) == (98, 98 * 5 + 8, 98 + 8)
    assert observed([*rows[:40], *["None of it at all"] * 10]) == [], "a tenth and more lacks it"


@pytest.mark.parametrize(
    "rows",
    [
        [" ".join(random.Random(n).choices(["the", "of", "a", "one", "two", "red", "sun", "big"], k=60)) for n in range(40)],
        ["All the same words."] * 40,
        ["yes", "no"] * 20,
        [f"The answer is {n}" for n in range(19)],
        [""] * 40,
        ["\x00", "\u202e", "。" * 500, "🙂"] * 10,
    ],
    ids=["free", "all the same", "labels", "too few", "empty", "signs"],
)
def test_nothing_is_said_without_a_frame(rows: list[str]) -> None:
    assert observed([row or " " for row in rows]) == []


def test_rows_without_completion_are_not_read() -> None:
    rows = [Example(f"i{n}", "t", "p", answer=f"The answer is {n}") for n in range(40)]
    assert Dilution().check(Corpus.from_examples(rows)) == []


def test_long_completions_are_cut() -> None:
    (seen,) = observed([f"{n} " + "word " * 50_000 for n in range(25)])
    assert seen.severity == "warning"


@given(st.lists(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=6), min_size=20, max_size=30))
def test_shares_are_shares(rows: list[list[str]]) -> None:
    frame = find_frame("t", [" ".join(row) for row in rows])
    if frame is not None:
        assert 0 <= frame.varying <= frame.words / 2
        assert frame.words == sum(map(len, rows))
        assert frame.with_frame <= frame.rows == len(rows)
