"""Finding on preference pairs: DPO on right and near-miss wrong chains of calls against SFT on the right ones alone.

Source: Manduzio et al., Improving small-scale large language models function calling for reasoning tasks, 2410.18890.
Unit: share of held-out questions whose greedy chain of calls gives the right number.
Cost: about 25 CPU seconds per seed.
Blind spot: one toy language; right answers are the data's targets where the model was never right, in every arm.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from mixwright.records import Example
from mixwright_lab.answer_pairs import Candidate, balance_by_length, closeness, near_misses
from mixwright_lab.contracts import Curve, Expectation, Finding, Plot, difference
from mixwright_lab.training.bases import kept
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import END
from mixwright_lab.training.sft import Schedule, Sft, fit_rows
from mixwright_lab.worlds.function_calls import KINDS, FunctionCalls, kind_of, language


@dataclass(frozen=True)
class EncodedPairs:
    """Pairs as tokens, with what the starting model says of them."""

    prompts: Int[Tensor, "pairs prompt"]
    chosen: Int[Tensor, "pairs response"]
    rejected: Int[Tensor, "pairs response"]
    start_logprobs: tuple[Float[Tensor, " pairs"], Float[Tensor, " pairs"]]
    """Log-probabilities of chosen and of rejected under the starting model, nats."""

    def loss(self, model: GPT, places: Sequence[int], beta: float) -> Float[Tensor, ""]:
        """Mean over these pairs of -log sigmoid(beta * (change of chosen - change of rejected))."""
        own = torch.as_tensor(places)
        both = torch.cat((self.chosen[own], self.rejected[own]))
        now = logprob(model, self.prompts[own].repeat(2, 1), both)
        moved = now - torch.cat([side[own] for side in self.start_logprobs])
        return -functional.logsigmoid(beta * (moved[: len(own)] - moved[len(own) :])).mean()


def read_pairs(model: GPT, pairs: Sequence[tuple[str, str, str]]) -> EncodedPairs:
    """Pairs of (prompt, chosen, rejected), read by the model that the training begins with."""
    spoken = model.language
    prompts = spoken.encode_prompts([prompt for prompt, _, _ in pairs])
    chosen, rejected = (spoken.encode_responses([pair[side] for pair in pairs]) for side in (1, 2))
    with torch.no_grad():
        start = (logprob(model, prompts, chosen), logprob(model, prompts, rejected))
    return EncodedPairs(prompts, chosen, rejected, start)


def logprob(
    model: GPT, prompts: Int[Tensor, "rows prompt"], responses: Int[Tensor, "rows response"]
) -> Float[Tensor, " rows"]:
    """Log-probability of whole responses, their end included, nats."""
    told = model.language.mask(responses)
    longest = int(told.sum(1).max())
    responses, told = responses[:, :longest], told[:, :longest]
    logits = model.logits_of(prompts, responses)
    each = functional.cross_entropy(logits.flatten(0, 1), responses.flatten(), reduction="none").view(responses.shape)
    return -(each * told).sum(1)


LENGTH_TOLERANCE_SHARE = 0.05
"""Of the share of pairs in which the longer chain is the chosen one."""
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
    pairs = balance_by_length([own for own in options if own], LENGTH_TOLERANCE_SHARE)
    every = [(place, chain) for place, own in enumerate(wrong) for chain in own]
    found: dict[str, list[Triple]] = {"mined": [], "random wrong": [], "any own wrong": []}
    for pair in pairs:
        prompt = str(rows[pair.prompt_index].prompt)
        own = wrong[pair.prompt_index] or [pair.rejected]
        order = [every[at] for at in rng.permutation(len(every)).tolist()]
        other = (chain for place, chain in order if place != pair.prompt_index and kind_of(prompt, chain) != "right")
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
        edits = [text for text in near_misses(good, rng) if set(text.split()) <= known] if not wrong else []
        for bad in wrong or [text for text in edits if kind_of(prompt, text) != "right"]:
            longer = len(good.split()) - len(bad.split())
            found.append(Candidate(place, good, bad, closeness(good, bad), longer))
    return found


BEFORE, SFT, SFT_EQUAL_TOKENS = "before", "SFT, equal steps", "SFT, equal tokens"
MINED, RANDOM, OWN = "DPO, mined pairs", "DPO, random wrong", "DPO, any own wrong"
ARMS = (BEFORE, SFT, SFT_EQUAL_TOKENS, MINED, RANDOM, OWN)


@dataclass(frozen=True)
class Settings:
    """Of base, pairs and training."""

    rows: int = 60
    """Of the short SFT of the base."""
    base: int = 200
    """Its steps."""
    prompts: int = 150
    """From which pairs are mined."""
    samples: int = 8
    steps: int = 100
    batch: int = 32
    sft_rate: float = 1e-3
    dpo_rate: float = 3e-4
    beta: float = 0.3
    tests: int = 400


class PreferencePairs(Finding):
    """A base after a short SFT goes on by SFT on right chains, or by DPO with three kinds of wrong ones beside them."""

    CLAIM = (
        "Pairs of right and near-miss wrong chains of calls teach more by DPO than the right ones do by SFT at equal "
        "tokens, and more than pairs with random wrong chains."
    )
    SOURCE = "Manduzio et al., Improving Small-Scale Large Language Models Function Calling for Reasoning Tasks, 2410.18890"
    WHAT_IT_SHOWS = (
        "Small models trained by DPO on a large model's right and wrong chains are better at logic and arithmetic by calls "
        "than before; a comparison with SFT on the right chains, and the tables, could not be read."
    )
    POPULAR_READING = "It is said that wrong answers teach what right ones cannot. Without SFT at equal tokens nobody knows."
    RUN_TWICE = (MINED,)
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(rows=40, base=40, prompts=20, samples=4, steps=5, tests=30),
        "laptop": Settings(),
    }
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 8}
    PRIMARY = "DPO on mined pairs - before"
    CONTROL = "SFT on right chains, equal tokens - before"
    EXPECT = (
        Expectation(
            "DPO on mined pairs - before", difference(MINED, BEFORE, "right"), 0.05, "DPO on mined pairs teaches nothing."
        ),
        Expectation(
            "DPO: mined pairs - random wrong chains",
            difference(MINED, RANDOM, "right"),
            0.02,
            "Which wrong chain stands beside the right one does not matter.",
        ),
        Expectation(
            "DPO on mined pairs - SFT on the same right chains, equal tokens",
            difference(MINED, SFT_EQUAL_TOKENS, "right"),
            0.05,
            "The tokens of wrong chains are better spent on right ones.",
        ),
        Expectation(CONTROL, difference(SFT_EQUAL_TOKENS, BEFORE, "right"), 0.05, "The right chains teach nothing."),
    )
    PLOTS = (
        Plot(
            "Held-out questions, by what was trained on",
            "0 before, 1 SFT, 2 SFT at equal tokens, 3 DPO mined, 4 DPO random wrong, 5 DPO any own wrong",
            "share right",
            (Curve("right", tuple((float(place), arm, "right") for place, arm in enumerate(ARMS))),),
        ),
        Plot(
            "Of the wrong chains before training, the share that is right after it, by what was wrong",
            "0 before, 1 SFT, 2 SFT at equal tokens, 3 DPO mined, 4 DPO random wrong, 5 DPO any own wrong",
            "share fixed",
            tuple(
                Curve(kind, tuple((float(place), arm, f"fixed: {kind}") for place, arm in enumerate(ARMS)))
                for kind in ("order", "value")
            ),
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Without training, SFT at two prices, and DPO with three kinds of wrong answers."""
        return ARMS

    def prepare(self, seed: int, settings: Settings) -> None:
        """The base."""
        _base(seed, settings)

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Train on what the arm takes of the same pairs, and ask held-out questions."""
        base, rng = _base(seed, settings), np.random.default_rng((seed, 1, again))
        model, pairs = copy.deepcopy(base), _pairs(base, seed, settings, arm)
        if arm in (SFT, SFT_EQUAL_TOKENS):
            paid = sum(len(side.split()) + 1 for pair in pairs for side in pair[1:])
            right = sum(len(pair[1].split()) + 1 for pair in pairs)
            steps = round(settings.steps * (paid / right if arm == SFT_EQUAL_TOKENS else 1))
            rows = [(prompt, chosen) for prompt, chosen, _ in pairs]
            fit_rows(model, rows, Schedule(steps, settings.sft_rate, warm=10), rng, count=settings.batch)
        elif arm != BEFORE:
            found, sft = read_pairs(base, pairs), Sft(model, Schedule(settings.steps, settings.dpo_rate, warm=10))
            for _ in range(settings.steps):
                places = rng.integers(len(pairs), size=settings.batch).tolist()
                sft.step(found.loss(model, places, settings.beta))
        before, after = (_kinds(one, seed, settings) for one in (base, model))
        count, fixed = Counter(before), Counter(b for b, a in zip(before, after, strict=True) if a == "right")
        told = {f"fixed: {kind}": fixed[kind] / max(count[kind], 1) for kind in KINDS}
        told |= {kind: after.count(kind) / len(after) for kind in ("right", *KINDS)}
        found = read_pairs(base, pairs)
        with torch.no_grad():
            moved = logprob(model, found.prompts, found.chosen) - found.start_logprobs[0]
        return told | {"change of log p(chosen)": float(moved.mean())}


def _draw_questions(seed: int, split: str, count: int) -> list[Example]:
    """Different questions of one to three calls."""
    world, found, index = FunctionCalls(), dict[str, Example](), 100_000 * seed
    while len(found) < count:
        example = world.make(index, 1.0 + index % 3, split)
        found.setdefault(str(example.prompt), example)
        index += 1
    return list(found.values())


def _pairs(base: GPT, seed: int, settings: Settings, arm: str) -> list[Triple]:
    """What the arm trains on; those without wrong answers of their own have the mined pairs' right ones."""
    rows = _draw_questions(seed, "train", settings.rows + settings.prompts)[settings.rows :]
    found = paired(base, rows, settings.samples, seed)
    return found[{RANDOM: "random wrong", OWN: "any own wrong"}.get(arm, "mined")]


def _base(seed: int, settings: Settings) -> GPT:
    torch.manual_seed(seed)
    rows = [(str(one.prompt), str(one.target)) for one in _draw_questions(seed, "train", settings.rows)]
    name = f"preference-pairs-{seed}-{settings.rows}-{settings.base}-{settings.batch}-{torch.__version__}"
    model, rng, schedule = GPT(language()), np.random.default_rng((seed, 0)), Schedule(settings.base, 3e-3, warm=10)
    return kept(model, name, lambda: fit_rows(model, rows, schedule, rng, count=settings.batch))


def _kinds(model: GPT, seed: int, settings: Settings) -> list[str]:
    """What each held-out question's greedy chain is wrong by."""
    tests, spoken = _draw_questions(seed, "eval", settings.tests), model.language
    made, ends = model.write([str(one.prompt) for one in tests]), spoken.index[END]
    return [kind_of(str(one.prompt), spoken.decode(own), stopped=ends in own) for one, own in zip(tests, made, strict=True)]
