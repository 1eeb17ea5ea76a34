"""Pairs of a right and a wrong answer of the model to one prompt: how wrong ones differ, near misses, balance by length."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mixwright.final_answer import final_answer
from mixwright.skeleton import skeleton

MAX_COMPARED_CHARACTERS = 400
"""Characters up to which texts are compared by characters; longer ones by as many words at most."""
PIECE_PATTERN = re.compile(r"\w+|[^\w\s]")
CHARACTERS_READ = 20_000
"""Characters of a text that is looked at."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to pair answers to a prompt."""

    prompt_index: int
    """Which prompt."""
    chosen: str
    """A right answer."""
    rejected: str
    """A wrong one."""
    kind: str
    """How the wrong one differs (`error_class`), or how it was made of the right one."""
    closeness: float
    """1 - edit distance over the longer length: 1 is the same text, 0 has nothing in common."""
    token_difference: int
    """Tokens of the chosen answer minus tokens of the rejected one."""


def closeness(first: str, second: str) -> float:
    """1 - Levenshtein distance / longer length, by characters, or by words where a text is long; 1 for two empty texts."""
    starts = first[:CHARACTERS_READ], second[:CHARACTERS_READ]
    by_words = max(map(len, starts)) > MAX_COMPARED_CHARACTERS
    pieces = [PIECE_PATTERN.findall(text)[:MAX_COMPARED_CHARACTERS] if by_words else list(text) for text in starts]
    size = max(map(len, pieces))
    return 1.0 if not size else 1 - distance(*pieces) / size


def distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Levenshtein distance: insertions, deletions and replacements."""
    if not first or not second:
        return max(len(first), len(second))
    codes: dict[str, int] = {}
    second_codes = np.array([codes.setdefault(mark, len(codes)) for mark in second])
    positions = np.arange(len(second) + 1)
    row = positions.copy()
    for count, mark in enumerate(first, 1):
        best = np.minimum(row[1:] + 1, row[:-1] + (second_codes != codes.get(mark, -1)))
        row = np.concatenate(([count], best))
        row = np.minimum.accumulate(row - positions) + positions  # insertions, one after another
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
    chosen_pieces, rejected_pieces = (PIECE_PATTERN.findall(text[:CHARACTERS_READ]) for text in (chosen, rejected))
    if sorted(chosen_pieces) == sorted(rejected_pieces):
        return "order" if chosen_pieces != rejected_pieces else "form"
    if skeleton(chosen[:CHARACTERS_READ]) == skeleton(rejected[:CHARACTERS_READ]):
        return "value"
    return "form" if final_answer(chosen).strip() == final_answer(rejected).strip() else "other"


def near_misses(text: str, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Texts that are one edit away, each with the edit's name, in random order; whether they are wrong a grader says."""
    pieces = [(match.start(), match.end()) for match in PIECE_PATTERN.finditer(text[:CHARACTERS_READ])]
    digit_positions = [position for position, mark in enumerate(text[:CHARACTERS_READ]) if mark.isascii() and mark.isdigit()]
    edits: list[tuple[str, str]] = []
    for position in rng.permutation(digit_positions).tolist()[:4]:
        digit = str((int(text[position]) + int(rng.integers(1, 10))) % 10)
        edits.append((text[:position] + digit + text[position + 1 :], "edited: a digit"))
    for piece_index in rng.permutation(max(len(pieces) - 1, 0)).tolist()[:4]:
        (a, b), (c, d) = pieces[piece_index], pieces[piece_index + 1]
        edits.append((text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:], "edited: two words swapped"))
    if len(pieces) > 1:
        a, b = pieces[int(rng.integers(len(pieces)))]
        edits.append((re.sub(r"\s+", " ", text[:a] + text[b:]).strip(), "edited: a word left out"))
    yield from (edit for edit in edits if edit[0] != text)


def longer_chosen_share(pairs: Sequence[Candidate]) -> float:
    """Share of the pairs in which the longer answer is the chosen one, half of the equal ones counted: .5 says nothing."""
    signs = np.sign([pair.token_difference for pair in pairs])
    return float((0.5 + signs / 2).mean()) if len(signs) else 0.5


def balance_by_length(options: Sequence[Sequence[Candidate]], tolerance: float) -> tuple[list[Candidate], int]:
    """One pair of each prompt, the closest, changed and left out so that length does not tell chosen from rejected.

    Args:
        options: candidates of each prompt, one at least.
        tolerance: distance of `longer_chosen_share` from .5 that is allowed.

    Returns:
        The pairs, in the order of the prompts, and how many prompts were left out.
    """
    ranked = [sorted(candidates, key=lambda pair: -pair.closeness) for candidates in options]
    pair_by_prompt: dict[int, Candidate] = {prompt_index: candidates[0] for prompt_index, candidates in enumerate(ranked)}
    sign = int(np.sign(longer_chosen_share(list(pair_by_prompt.values())) - 0.5))

    def is_unbalanced() -> bool:
        return bool(pair_by_prompt) and sign * (longer_chosen_share(list(pair_by_prompt.values())) - 0.5) > tolerance + 1e-12

    moves = [
        (candidates[0].closeness - other_pair.closeness, prompt_index, other_pair)
        for prompt_index, candidates in enumerate(ranked)
        if np.sign(candidates[0].token_difference) == sign
        for other_pair in [next((pair for pair in candidates if np.sign(pair.token_difference) != sign), None)]
        if other_pair is not None
    ]
    for _, prompt_index, other_pair in sorted(moves, key=lambda move: move[:2]):
        if not is_unbalanced():
            break
        pair_by_prompt[prompt_index] = other_pair
    for prompt_index in sorted(
        pair_by_prompt, key=lambda prompt_index: (pair_by_prompt[prompt_index].closeness, prompt_index)
    ):
        if not is_unbalanced():
            break
        if np.sign(pair_by_prompt[prompt_index].token_difference) == sign:
            del pair_by_prompt[prompt_index]
    return list(pair_by_prompt.values()), len(ranked) - len(pair_by_prompt)
