"""Pairs of a right and a wrong answer of the model to one prompt: how close they are, near misses, balance by length."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

PIECE_PATTERN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to pair answers to a prompt."""

    prompt_index: int
    """Which prompt."""
    chosen: str
    """A right answer."""
    rejected: str
    """A wrong one."""
    closeness: float
    """1 - edit distance over the longer length: 1 is the same text, 0 has nothing in common."""
    token_difference: int
    """Tokens of the chosen answer minus tokens of the rejected one."""


def closeness(first: str, second: str) -> float:
    """1 - Levenshtein distance / longer length, by characters; 1 for two empty texts."""
    size = max(len(first), len(second))
    return 1 - distance(first, second) / size if size else 1.0


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


def near_misses(text: str, rng: np.random.Generator) -> list[str]:
    """Texts that are one edit away: a digit, two words swapped, a word left out; whether they are wrong a grader says."""
    pieces = [(match.start(), match.end()) for match in PIECE_PATTERN.finditer(text)]
    digit_positions = [position for position, mark in enumerate(text) if mark.isascii() and mark.isdigit()]
    edits: list[str] = []
    for position in rng.permutation(digit_positions).tolist()[:4]:
        digit = str((int(text[position]) + int(rng.integers(1, 10))) % 10)
        edits.append(text[:position] + digit + text[position + 1 :])
    for piece_index in rng.permutation(max(len(pieces) - 1, 0)).tolist()[:4]:
        (a, b), (c, d) = pieces[piece_index], pieces[piece_index + 1]
        edits.append(text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:])
    if len(pieces) > 1:
        a, b = pieces[int(rng.integers(len(pieces)))]
        edits.append(re.sub(r"\s+", " ", text[:a] + text[b:]).strip())
    return [edit for edit in edits if edit != text]


def longer_chosen_share(pairs: Sequence[Candidate]) -> float:
    """Share of the pairs in which the longer answer is the chosen one, half of the equal ones counted: .5 says nothing."""
    signs = np.sign([pair.token_difference for pair in pairs])
    return float((0.5 + signs / 2).mean()) if len(signs) else 0.5


def balance_by_length(options: Sequence[Sequence[Candidate]], tolerance: float) -> list[Candidate]:
    """One pair of each prompt, the closest, changed and left out so that length does not tell chosen from rejected.

    Args:
        options: candidates of each prompt, one at least.
        tolerance: distance of `longer_chosen_share` from .5 that is allowed.

    Returns:
        The pairs, in the order of the prompts.
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
    return list(pair_by_prompt.values())
