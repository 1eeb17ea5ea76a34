"""Pairs of right and wrong chains of calls that a tiny model wrote itself, chosen by the product's rule or at random."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from mixwright.mine.pairing import Candidate, balanced, closeness, error_class, near_misses
from mixwright.records import Example
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import END
from mixwright_lab.worlds.function_calls import kind_of

LENGTH_TOLERANCE_SHARE = 0.05
"""Of the share of pairs in which the longer chain is the chosen one, as the miner `pairs` has it."""
Triple = tuple[str, str, str]
"""Prompt, chosen, rejected."""


def paired(model: GPT, rows: Sequence[Example], samples: int, seed: int) -> dict[str, list[Triple]]:
    """Pairs of the same prompts and right chains, by how the wrong one was chosen: mined, random wrong, any own wrong.

    Args:
        model: writes the chains.
        rows: questions, with the target that is chosen where the model was never right.
        samples: chains per question.
        seed: of all that is drawn.
    """
    rng = np.random.default_rng((seed, 2))
    right, wrong = _written(model, rows, samples, seed)
    options = [_options(n, row, right[n] or [str(row.target)], wrong[n], model, rng) for n, row in enumerate(rows)]
    pairs, _ = balanced([own for own in options if own], LENGTH_TOLERANCE_SHARE)
    every = [(place, chain) for place, own in enumerate(wrong) for chain in own]
    found: dict[str, list[Triple]] = {"mined": [], "random wrong": [], "any own wrong": []}
    for pair in pairs:
        prompt = str(rows[pair.place].prompt)
        own = wrong[pair.place] or [pair.rejected]
        order = [every[at] for at in rng.permutation(len(every)).tolist()]
        other = (chain for place, chain in order if place != pair.place and kind_of(prompt, chain) != "right")
        found["mined"].append((prompt, pair.chosen, pair.rejected))
        found["any own wrong"].append((prompt, pair.chosen, own[int(rng.integers(len(own)))]))
        found["random wrong"].append((prompt, pair.chosen, next(other, pair.rejected)))
    return found


def _written(model: GPT, rows: Sequence[Example], samples: int, seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Different chains of each question that came to their end: right ones, and wrong ones."""
    spoken, generator = model.language, torch.Generator().manual_seed(seed)
    prompts = spoken.encode_prompts([str(row.prompt) for row in rows])
    made = model.sample(prompts, samples, spoken.response_tokens, greedy=False, generator=generator).tolist()
    right, wrong = [], []
    for row, own in zip(rows, made, strict=True):
        chains = list(dict.fromkeys(spoken.decode(one) for one in own if spoken.index[END] in one))
        good = [chain for chain in chains if kind_of(str(row.prompt), chain) == "right"]
        right.append(good)
        wrong.append([chain for chain in chains if chain not in good])
    return right, wrong


def _options(
    place: int, row: Example, right: Sequence[str], wrong: Sequence[str], model: GPT, rng: np.random.Generator
) -> list[Candidate]:
    """Every pair of one question; where the model was never wrong, right chains are edited."""
    found = []
    for good in right:
        known, prompt = set(model.language.words), str(row.prompt)
        edits = [text for text, _ in near_misses(good, rng) if set(text.split()) <= known] if not wrong else []
        for bad in wrong or [text for text in edits if kind_of(prompt, text) != "right"]:
            longer = len(good.split()) - len(bad.split())
            found.append(Candidate(place, good, bad, error_class(good, bad), closeness(good, bad), longer, bool(wrong)))
    return found
