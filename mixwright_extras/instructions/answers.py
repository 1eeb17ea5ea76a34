"""Whether two instructions ask for different things, as the answers of other inputs say, where their words do not.

Source: two-sample tests by a classifier (Lopez-Paz and Oquab 2017, arXiv 1610.06545); the classifier is naive Bayes.
Inputs that stand under one of two instructions alone, or have two answers, show what it asks for: their answers tell which
instruction they stand under, while their inputs do not.
Left out on purpose: instructions all of whose inputs stand under both with one answer. Nothing in such rows tells a second
wording from a second request.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from mixwright.extend import hypergeometric_tail
from mixwright_extras.instructions.wording import words_of

LEAST_ALONE = 8
"""Rows under each of two instructions that show what it asks for, at least."""
LEAST_TOLD, MOST_TOLD_BY_INPUTS = 0.8, 0.65
"""Share of rows whose answers tell their instruction, mean over both; and most whose inputs tell it."""
ALPHA = 0.0001
"""Probability of so much, did answers not depend on the instruction; up to a hundred pairs of instructions are read."""
WORDS_READ = 40
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Answered(NamedTuple):
    """An input, and its answer."""

    input: str
    answer: str


def what_answers_show(first: Sequence[Answered], second: Sequence[Answered]) -> str:
    """Why two instructions ask for different things, in words for a message; empty where answers do not show it.

    Args:
        first: rows under the first instruction alone, or whose answer is another one under the second.
        second: the same of the second.
    """
    if min(len(first), len(second)) < LEAST_ALONE:
        return ""
    inputs = [[_words_in(row.input) for row in rows] for rows in (first, second)]
    if _mean_told(_count_told(*inputs), inputs) > MOST_TOLD_BY_INPUTS:
        return ""
    answers = [[describe_answer(row) for row in rows] for rows in (first, second)]
    told, rows = _count_told(*answers), len(first) + len(second)
    chance = hypergeometric_tail(told[0], len(first), told[0] + len(second) - told[1], rows)  # Fisher's exact test
    if _mean_told(told, answers) >= LEAST_TOLD and chance < ALPHA:
        return f"the answers of {rows:,} other rows give their instruction away in {sum(told):,} cases"
    return ""


def describe_answer(row: Answered) -> frozenset[str]:
    """What an answer looks like, and how it stands to its input."""
    answer, text = row.answer.casefold().strip(), row.input.casefold().strip()
    words = words_of(answer)
    found = {f"word {word}" for word in words[:WORDS_READ]} | {f"length {len(words).bit_length()}"}
    if words:
        found |= {f"first {words[0]}", f"last {words[-1]}"}
    if len(text) > 0:
        found.add(f"ratio {round(2 * math.log2((len(answer) + 1) / (len(text) + 1)))}")
    found |= {f"ends {answer[-1:]}"} if answer[-1:] and not answer[-1].isalnum() else set()
    return frozenset(found | _place(answer, text) | _numbers(answer, text))


def _place(answer: str, text: str) -> set[str]:
    """Where an answer stands in its input, and beside which words."""
    match = re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text) if answer else None
    if not match:
        return {"not in input"}
    before, after = words_of(text[: match.start()]), words_of(text[match.end() :])
    place = "start" if not before else "end" if not after else f"third {3 * len(before) // (len(before) + len(after))}"
    return {"in input", place, f"behind {before[-1] if before else ''}", f"before {after[0] if after else ''}"}


def _numbers(answer: str, text: str) -> set[str]:
    """The size of a number, and how it stands to the numbers of its input."""
    own, given = ([float(one) for one in _NUMBER.findall(part)[:WORDS_READ]] for part in (answer, text))
    if len(own) > 1 and own[0] != own[-1]:
        return {"numbers rise" if own[0] < own[-1] else "numbers fall"}
    if len(own) != 1:
        return set()
    (number,) = own
    found = {f"size {round(2 * math.log2(number + 1))}"}
    if given:
        nearest = min(given, key=lambda one: abs(one - number))
        found |= {f"{name} number" for name, one in (("largest", max(given)), ("smallest", min(given))) if one == number}
        found |= {f"{name} of numbers" for name, one in (("first", given[0]), ("last", given[-1])) if one == number}
        found |= {"above" if number > nearest else "below" if number < nearest else "equal"}
        found |= {f"times {round(2 * math.log2((number + 0.5) / (nearest + 0.5)))}"}
    return found


def _words_in(text: str) -> frozenset[str]:
    words = words_of(text)
    return frozenset([*words, f"length {len(words).bit_length()}"])


def _count_told(first: Sequence[frozenset[str]], second: Sequence[frozenset[str]]) -> tuple[int, int]:
    """Rows of either set that naive Bayes of all other rows gives to their own."""
    counts = [Counter(one for row in rows for one in row) for rows in (first, second)]
    sizes = [len(first), len(second)]
    told = [0, 0]
    for side, rows in enumerate((first, second)):
        for row in rows:
            total = 0.0
            for one in row:
                own = (counts[side][one] - 1 + 0.5) / sizes[side]
                other = (counts[1 - side][one] + 0.5) / (sizes[1 - side] + 1)
                total += math.log(own / other)
            told[side] += total > 0
    return told[0], told[1]


def _mean_told(told: Sequence[int], rows: Sequence[Sequence[frozenset[str]]]) -> float:
    return sum(count / len(own) for count, own in zip(told, rows, strict=True)) / 2
