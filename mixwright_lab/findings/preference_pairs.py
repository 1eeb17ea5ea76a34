"""Finding on preference pairs: DPO on right and near-miss wrong chains of calls against SFT on the right ones alone.

Source: Manduzio et al., Improving small-scale large language models function calling for reasoning tasks, 2410.18890.
Unit: share of held-out questions whose greedy chain of calls gives the right number.
Cost: about 25 CPU seconds per seed.
Blind spot: one toy language; right answers are the data's targets where the model was never right, in every arm.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from mixwright.contracts import Finding
from mixwright.records import Curve, Example, Expectation, Plot, difference
from mixwright_lab.paired_calls import Triple, paired
from mixwright_lab.training.bases import kept
from mixwright_lab.training.dpo import logprob, read_pairs
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import END
from mixwright_lab.training.sft import Batch, Schedule, Sft, fit
from mixwright_lab.worlds.function_calls import KINDS, FunctionCalls, kind_of, language

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
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "miners/pairs": (
            "DPO on mined pairs - before",
            "DPO: mined pairs - random wrong chains",
            "DPO on mined pairs - SFT on the same right chains, equal tokens",
        ),
    }
    RUN_TWICE = (MINED,)
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(rows=40, base=40, prompts=20, samples=4, steps=5, tests=30),
        "laptop": Settings(),
    }
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 8}
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
            _sft(model, [(prompt, chosen) for prompt, chosen, _ in pairs], steps, settings.batch, settings.sft_rate, rng)
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
    model, rng = GPT(language()), np.random.default_rng((seed, 0))
    return kept(model, name, lambda: _sft(model, rows, settings.base, settings.batch, 3e-3, rng))


def _sft(model: GPT, rows: Sequence[tuple[str, str]], steps: int, batch: int, rate: float, rng: np.random.Generator) -> None:
    def drawn(_: int) -> Batch:
        own = [rows[place] for place in rng.integers(len(rows), size=batch)]
        return Batch([prompt for prompt, _ in own], [response for _, response in own])

    fit(model, model.language, drawn, Schedule(steps, rate, warm=10))


def _kinds(model: GPT, seed: int, settings: Settings) -> list[str]:
    """What each held-out question's greedy chain is wrong by."""
    tests, spoken = _draw_questions(seed, "eval", settings.tests), model.language
    prompts = spoken.encode_prompts([str(one.prompt) for one in tests])
    made = model.sample(prompts, 1, spoken.response_tokens, greedy=True, generator=torch.Generator())[:, 0].tolist()
    ends = spoken.index[END]
    return [kind_of(str(one.prompt), spoken.decode(own), stopped=ends in own) for one, own in zip(tests, made, strict=True)]
