"""Pairs of a right and a wrong answer to one prompt: how wrong ones differ, near misses, and pairs balanced by length."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mixwright.final_answer import final_answer
from mixwright.skeleton import skeleton

MOST_COMPARED_CHARACTERS = 400
"""Characters up to which texts are compared by characters; longer ones by as many words at most."""
PIECE_PATTERN = re.compile(r"\w+|[^\w\s]")
CHARACTERS_READ = 20_000
"""Characters of a text that is looked at."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to pair answers to a prompt."""

    place: int
    """Which prompt."""
    chosen: str
    """A right answer."""
    rejected: str
    """A wrong one."""
    kind: str
    """How the wrong one differs (`error_class`), or how it was made of the right one."""
    closeness: float
    """1 - edit distance over the longer length: 1 is the same text, 0 has nothing in common."""
    longer: int
    """Tokens of the chosen answer minus tokens of the rejected one."""
    own: bool
    """Whether the model wrote both."""


def closeness(one: str, other: str) -> float:
    """1 - Levenshtein distance / longer length, by characters, or by words where a text is long; 1 for two empty texts."""
    first, second = one[:CHARACTERS_READ], other[:CHARACTERS_READ]
    long = max(len(first), len(second)) > MOST_COMPARED_CHARACTERS
    parts = [PIECE_PATTERN.findall(text)[:MOST_COMPARED_CHARACTERS] if long else list(text) for text in (first, second)]
    size = max(map(len, parts))
    return 1.0 if not size else 1 - distance(*parts) / size


def distance(one: Sequence[str], other: Sequence[str]) -> int:
    """Levenshtein distance: insertions, deletions and replacements."""
    if not one or not other:
        return max(len(one), len(other))
    codes: dict[str, int] = {}
    right = np.array([codes.setdefault(mark, len(codes)) for mark in other])
    places = np.arange(len(other) + 1)
    row = places.copy()
    for count, mark in enumerate(one, 1):
        best = np.minimum(row[1:] + 1, row[:-1] + (right != codes.get(mark, -1)))
        row = np.concatenate(([count], best))
        row = np.minimum.accumulate(row - places) + places  # insertions, one after another
    return int(row[-1])


def error_class(chosen: str, rejected: str, *, cut: bool = False) -> str:
    """How a wrong answer differs from a right one: cut, empty, order, value, form or other.

    cut: it ran into the limit of tokens. empty: nothing was said. order: the same words in another order. value: the same
    form, other contents. form: the same final answer in another form. other: both differ.
    """
    if cut:
        return "cut"
    if not rejected.strip():
        return "empty"
    one, other = (PIECE_PATTERN.findall(text[:CHARACTERS_READ]) for text in (chosen, rejected))
    if sorted(one) == sorted(other):
        return "order" if one != other else "form"
    if skeleton(chosen[:CHARACTERS_READ]) == skeleton(rejected[:CHARACTERS_READ]):
        return "value"
    return "form" if final_answer(chosen).strip() == final_answer(rejected).strip() else "other"


def near_misses(text: str, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Texts that are one edit away, each with the edit's name, in random order; whether they are wrong a grader says."""
    pieces = [(found.start(), found.end()) for found in PIECE_PATTERN.finditer(text[:CHARACTERS_READ])]
    digits = [place for place, mark in enumerate(text[:CHARACTERS_READ]) if mark.isascii() and mark.isdigit()]
    made: list[tuple[str, str]] = []
    for place in rng.permutation(digits).tolist()[:4]:
        other = str((int(text[place]) + int(rng.integers(1, 10))) % 10)
        made.append((text[:place] + other + text[place + 1 :], "edited: a digit"))
    for at in rng.permutation(max(len(pieces) - 1, 0)).tolist()[:4]:
        (a, b), (c, d) = pieces[at], pieces[at + 1]
        made.append((text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:], "edited: two words swapped"))
    if len(pieces) > 1:
        a, b = pieces[int(rng.integers(len(pieces)))]
        made.append((re.sub(r"\s+", " ", text[:a] + text[b:]).strip(), "edited: a word left out"))
    yield from (found for found in made if found[0] != text)


def length_tells(pairs: Sequence[Candidate]) -> float:
    """Share of the pairs in which the longer answer is the chosen one, half of the equal ones counted: .5 says nothing."""
    signs = np.sign([pair.longer for pair in pairs])
    return float((0.5 + signs / 2).mean()) if len(signs) else 0.5


def balanced(options: Sequence[Sequence[Candidate]], tolerance: float) -> tuple[list[Candidate], int]:
    """One pair of each prompt, the closest, changed and left out so that length does not tell chosen from rejected.

    Args:
        options: candidates of each prompt, one at least.
        tolerance: distance of `length_tells` from .5 that is allowed.

    Returns:
        The pairs, in the order of the prompts, and how many prompts were left out.
    """
    ranked = [sorted(own, key=lambda pair: -pair.closeness) for own in options]
    taken: dict[int, Candidate] = {place: own[0] for place, own in enumerate(ranked)}
    sign = int(np.sign(length_tells(list(taken.values())) - 0.5))

    def tells() -> bool:
        return bool(taken) and sign * (length_tells(list(taken.values())) - 0.5) > tolerance + 1e-12

    moves = [
        (own[0].closeness - other.closeness, place, other)
        for place, own in enumerate(ranked)
        if np.sign(own[0].longer) == sign
        for other in [next((pair for pair in own if np.sign(pair.longer) != sign), None)]
        if other is not None
    ]
    for _, place, other in sorted(moves, key=lambda move: move[:2]):
        if not tells():
            break
        taken[place] = other
    for place in sorted(taken, key=lambda place: (taken[place].closeness, place)):
        if not tells():
            break
        if np.sign(taken[place].longer) == sign:
            del taken[place]
    return list(taken.values()), len(ranked) - len(taken)
