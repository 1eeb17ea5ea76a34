"""Finding on latent ability: what a base does rarely can be brought out by four means, what it never learnt by none.

Source: Yue et al., Does RL really incentivize reasoning capacity in LLMs beyond the base model?, 2504.13837.
Unit: share of problems solved by the greedy response; pass@16 = share of problems solved by one of 16 samples.
Cost: about 120 CPU seconds per seed.
Blind spot: one skill, two formats; an answer copies the last step: its certainty tells formats apart, not right steps.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from mixwright import catalog
from mixwright.estimates.dependence import dependence
from mixwright.records import Example
from mixwright_lab.contracts import Curve, Expectation, Finding, Plot, Term, difference
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Arena, Rollouts
from mixwright_lab.training.grpo import Settings as Grpo
from mixwright_lab.training.language import END, HASH, PAD
from mixwright_lab.training.rules import UniformRule
from mixwright_lab.training.sft import Batch, Schedule, fit
from mixwright_lab.worlds.chain import respond

STRENGTH_MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Norms tried of a mean difference, as multiples of the mean norm of the stream that it is added to."""
RANDOM_DRAWS = 8
"""Random vectors, and random first tokens of each problem, of which the mean is taken."""


TRAINING_STEPS_AND_RATE = (60, 0.05)
"""Adam steps and learning rate of a trained steering vector."""


def elicited(
    model: GPT, known: Sequence[Example], traces: Sequence[str], tested: Sequence[Example], rng: np.random.Generator
) -> dict[str, float]:
    """Success with CoT-decoding, with steering vectors, and with random vectors and random first numbers.

    Args:
        model: that is decoded or steered.
        known: problems that vectors are made from.
        traces: a worked-out response to each of them.
        tested: other problems.
        rng: of what is random.
    """

    def steered(examples: Sequence[Example], vector: Tensor) -> float:
        return float(steered_paths(model, examples, vector).rewards.mean())

    vector, (direction, norm) = trained_vector(model, known, traces), direction_of(model, known)
    few = known[:: max(len(known) // 64, 1)]
    strength = norm * max(STRENGTH_MULTIPLES, key=lambda factor: steered(few, factor * norm * direction))
    drawn = torch.from_numpy(rng.normal(size=(RANDOM_DRAWS, len(vector)))).float()
    drawn = float(vector.norm()) * drawn / drawn.norm(dim=1, keepdim=True)
    numbers = torch.tensor([token for word, token in model.language.index.items() if word.isdecimal()])
    firsts = numbers[torch.from_numpy(rng.integers(len(numbers), size=(len(tested), RANDOM_DRAWS)))]
    return {
        "CoT-decoding": float(most_certain(model, tested, 2).mean()),
        "CoT-decoding, 10 paths": float(most_certain(model, tested, 10).mean()),
        "steering": steered(tested, vector),
        "strength": float(vector.norm()) / norm,
        "steering, mean difference": steered(tested, strength * direction),
        "random vector": float(np.mean([steered(tested, one) for one in drawn])),
        "random first token": float(paths(model, tested, firsts).rewards.mean()),
    }


def paths(model: GPT, examples: Sequence[Example], first: Int[Tensor, "examples paths"]) -> Rollouts:
    """Greedy continuations of given first tokens."""
    prompts, (count, longest) = _prompts(model, examples), (first.shape[1], model.language.response_tokens)
    begun = torch.cat((prompts.repeat_interleave(count, 0), first.reshape(-1, 1)), 1)
    rest = model.sample(begun, 1, longest - 1, greedy=True, generator=torch.Generator())[:, 0]
    ended = first.reshape(-1, 1) == model.language.index[END]
    rest = rest.masked_fill(ended, model.language.index[PAD])
    tokens = torch.cat((begun[:, -1:], rest), 1).view(len(prompts), count, longest)
    return Rollouts(list(examples), prompts, tokens, model.language)


@torch.no_grad()
def most_certain(model: GPT, examples: Sequence[Example], count: int) -> Float[np.ndarray, " examples"]:
    """CoT-decoding: what is earned by the continuation with the largest margin, of those of the likeliest first tokens.

    The margin is how much likelier the best token of the answer is than the second best; it is 0 without an answer.

    Args:
        model: that is decoded.
        examples: to be answered.
        count: first tokens that are tried.
    """
    prompts = _prompts(model, examples)
    found = paths(model, examples, model(prompts)[0][:, -1].topk(count).indices)
    tokens = found.tokens.flatten(0, 1)
    top = model.logits_of(prompts.repeat_interleave(count, 0), tokens).softmax(-1).topk(2).values
    answer = torch.roll(tokens == model.language.index[HASH], 1, 1)
    answer[:, 0] = False
    margin = ((top[..., 0] - top[..., 1]) * answer).sum(1) / answer.sum(1).clamp(min=1)
    best = margin.view(len(prompts), count).argmax(1).numpy()
    return found.rewards[np.arange(len(prompts)), best]


@torch.no_grad()
def steered_paths(model: GPT, examples: Sequence[Example], vector: Float[Tensor, " width"]) -> Rollouts:
    """Greedy responses of which the first token is chosen with a vector added behind the first block.

    Steering acts at the last place of the prompt alone: what is written behind the first token is the model's own.
    """
    prompts = _prompts(model, examples)
    return paths(model, examples, model(prompts, add=_at_the_end(prompts, vector))[0][:, -1:].argmax(-1))


def trained_vector(model: GPT, examples: Sequence[Example], texts: Sequence[str]) -> Float[Tensor, " width"]:
    """The vector that, added behind the first block, makes the first words of these responses likeliest."""
    prompts, first = _prompts(model, examples), model.language.encode_responses(texts)[:, 0]
    vector = torch.zeros(model.places.embedding_dim, requires_grad=True)
    optimiser = torch.optim.Adam([vector], lr=TRAINING_STEPS_AND_RATE[1])
    for _ in range(TRAINING_STEPS_AND_RATE[0]):
        logits = model(prompts, add=_at_the_end(prompts, vector))[0][:, -1]
        (vector.grad,) = torch.autograd.grad(functional.cross_entropy(logits, first), [vector])
        optimiser.step()
    return vector.detach()


@torch.no_grad()
def direction_of(model: GPT, examples: Sequence[Example]) -> tuple[Float[Tensor, " width"], float]:
    """Mean stream behind the first block where a worked-out response begins, minus where a direct one does, of unit norm.

    Both means are over the last places of the same prompts, each weighted by how likely the model begins that format there:
    what many samples per prompt would give. The second value is the mean norm of the stream.
    """
    prompts = _prompts(model, examples)
    stream = model.hidden(prompts)[0][:, -1].double()
    direct = model(prompts)[0][:, -1].double().softmax(-1)[:, model.language.index[HASH], None]
    worked = 1 - direct
    difference = (worked * stream).sum(0) / worked.sum() - (direct * stream).sum(0) / direct.sum()
    return (difference / difference.norm()).float(), float(stream.norm(dim=1).mean())


def _at_the_end(prompts: Int[Tensor, "examples prompt"], vector: Float[Tensor, " width"]) -> tuple[int, Tensor]:
    """Behind the first block, at the last place alone."""
    return 0, functional.pad(vector[None], (0, 0, prompts.shape[1] - 1, 0))


def _prompts(model: GPT, examples: Sequence[Example]) -> Int[Tensor, "examples prompt"]:
    return model.language.encode_prompts([str(example.prompt) for example in examples])


BASES = {"latent": (("direct", 0.8), ("full", 0.2)), "absent": (("direct", 1.0),)}
"""Answer styles that each base was taught, with their shares."""
SHOWN = (
    ("base", "greedy"),
    ("base", "CoT-decoding"),
    ("base", "steering"),
    ("GRPO", "greedy"),
    ("SFT on one problem", "greedy"),
)
WAYS = ("base", "GRPO", "GRPO on permuted rewards", "SFT on one problem")


@dataclass(frozen=True)
class Settings:
    """Of bases, elicitors and measurements."""

    levels: tuple[float, ...] = (3.0, 4.0)  # taught and tested, on different problems
    base: int = 1200
    """Steps of SFT of a base."""
    steps: int = 60
    """Of GRPO."""
    rate: float = 1e-3
    """Of GRPO."""
    shots: int = 10
    """Steps of SFT on the trace of one problem."""
    shot_rate: float = 1e-3
    """Of SFT on one problem."""
    problems: int = 100
    """Tested per level."""

    def recipe(self, base: str) -> Recipe:
        """Of a base."""
        return Recipe(tuple((level, 1.0) for level in self.levels), BASES[base], steps=self.base)


def _gain(way: str, reading: str) -> tuple[Term, ...]:
    """What is gained over the greedy base where the ability is latent, minus the same where it is absent."""
    return *difference(f"latent: {way}", f"absent: {way}", reading), *difference("absent: base", "latent: base", "greedy")


def _elicits(name: str, way: str, reading: str) -> Expectation:
    """Most of the gap on the latent base, and more than is gained on the absent one."""
    return Expectation(
        f"{name}: gain where latent - 60 % of the gap to pass@16 - gain where absent",
        (*_gain(way, reading), Term("latent: base", "pass@16", -0.6), Term("latent: base", "greedy", 0.6)),
        0.05,
        f"{name} leaves more than two fifths of the gap, or gains as much where the ability was never taught.",
    )


class Latent(Finding):
    """Bases that work a problem out rarely or never; decoding, steering, GRPO and SFT on one problem as elicitors."""

    CLAIM = (
        "Where a base solves problems only in a format that it rarely uses, CoT-decoding, a steering vector and GRPO each "
        "bring out most of pass@16, SFT on one problem some of it; where it was never taught to solve them, none does."
    )
    SOURCE = "Yue et al., Does RL really incentivize reasoning capacity in LLMs beyond the base model?, 2504.13837"
    WHAT_IT_SHOWS = (
        "Qwen2.5-7B on Omni-MATH: pass@1 9.9 to 26.1 by GRPO while pass@256 goes from 67.2 to 66.3. CoT-decoding "
        "(2402.10200) takes Mistral-7B on GSM8K from 9.9 to 25.1, critiques of one problem (2506.03295) give +15 on "
        "mathematics, and vectors added at 5 to 12 % of the tokens (2510.07364) recover about 76 % of what RL gives."
    )
    POPULAR_READING = (
        "It is said that steering recovers 91 % of what a reasoning model adds. That was the first version of the paper; "
        "the fourth says about 76 % after RL and 11 % after SFT on stronger traces: what is not there cannot be brought out."
    )
    FEATURES = {  # noqa: RUF012
        "probes/competence": ("base: gap from greedy to pass@16 (luck taken out), latent - absent",)
    }
    REMARKS = "The sources' forms of two elicitors fail: ten first tokens 13 % (greedy 12), mean-difference vector 19 %."
    RUN_TWICE = ("latent: GRPO",)
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings((2.0,), base=60, steps=3, shots=3, problems=24),
        "laptop": Settings(),
    }
    PRIMARY = "GRPO: gain where latent - 60 % of the gap to pass@16 - gain where absent"
    PUBLISHED = (
        "CoT-decoding: gain where latent - 60 % of the gap to pass@16 - gain where absent",
        "steering: gain where latent - 60 % of the gap to pass@16 - gain where absent",
        "SFT on one problem: gain where latent - gain where absent",
    )
    CONTROL = "base: gap from greedy to pass@16 (luck taken out), latent - absent"
    EXPECT = (
        Expectation(
            "base: gap from greedy to pass@16 (luck taken out), latent - absent",
            _gain("base", "pass@16 beyond luck"),
            0.3,
            "Samples of the base without the ability solve as many problems as those of the base that has it.",
        ),
        _elicits("CoT-decoding", "base", "CoT-decoding"),
        _elicits("steering", "base", "steering"),
        _elicits("GRPO", "GRPO", "greedy"),
        Expectation(
            "SFT on one problem: gain where latent - gain where absent",
            _gain("SFT on one problem", "greedy"),
            0.1,
            "The worked-out response to one problem helps no more where the ability is there than where it is not.",
        ),
        Expectation(
            "where latent: CoT-decoding, steering and GRPO - their random controls, mean",
            tuple(
                Term(f"latent: {way}", reading, sign / 3)
                for way, reading, sign in (
                    ("base", "CoT-decoding", 1),
                    ("base", "random first token", -1),
                    ("base", "steering", 1),
                    ("base", "random vector", -1),
                    ("GRPO", "greedy", 1),
                    ("GRPO on permuted rewards", "greedy", -1),
                )
            ),
            0.2,
            "Random first tokens, random vectors and random rewards bring out as much.",
        ),
    )
    PLOTS = (
        Plot(
            "Greedy success of base, CoT-decoding, steering, GRPO, SFT on one problem",
            "0 base, 1 CoT-decoding, 2 steering, 3 GRPO, 4 SFT on one problem",
            "problems solved",
            tuple(
                Curve(base, tuple((place, f"{base}: {way}", reading) for place, (way, reading) in enumerate(SHOWN)))
                for base in BASES
            ),
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Every way on both bases; elicitors without training are readings of each."""
        return tuple(f"{base}: {way}" for base in BASES for way in WAYS)

    def prepare(self, seed: int, settings: Settings) -> None:
        """Both bases."""
        for base in BASES:
            base_model(seed, settings.recipe(base))

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Tune the base, and measure the model with and without the elicitors that need no training."""
        base, _, way = arm.partition(": ")
        model, problems = base_model(seed, settings.recipe(base)), _problems(settings, seed, "train", 256)
        if way.startswith("GRPO"):
            options = Grpo(rate=settings.rate, longest=model.language.response_tokens, permute="permuted" in way)
            arena, rule = Arena(problems, model, options, 2 * seed + again), UniformRule(len(problems), 2 * seed + again)
            for _ in range(settings.steps):
                rule.step(arena)
            model = arena.model
        elif way != "base":
            one = str(problems[-1].prompt)
            model = copy.deepcopy(model)
            schedule = Schedule(settings.shots, settings.shot_rate, warm=0, fall=0.0)
            fit(model, lambda _: Batch([one], [respond(one, "full")]), schedule)
        return _readings(model, problems, _problems(settings, seed, "eval", settings.problems), settings, seed)


def _problems(settings: Settings, seed: int, split: str, count: int) -> list[Example]:
    """`count` of each level."""
    world = catalog.create("worlds", "chain")
    return [world.make(10_000 * seed + index, level, split) for level in settings.levels for index in range(count)]


def _readings(
    model: GPT, known: Sequence[Example], tested: Sequence[Example], settings: Settings, seed: int
) -> dict[str, float]:
    """Greedy success, pass@16, and success with each elicitor that needs no training."""
    arena = Arena(tested, model, Grpo(longest=model.language.response_tokens), seed)
    sampled = arena.look(tested, 16)
    grades = np.array([[float(example.answer in answers) for example in tested] for answers in sampled.answers])
    greedy, rng = arena.look(tested, 1, greedy=True), np.random.default_rng((seed, 6))
    return {
        "greedy": float(greedy.rewards.mean()),
        "pass@1": float(sampled.rewards.mean()),
        "pass@16": float(np.diagonal(grades).mean()),
        "pass@16 beyond luck": dependence(grades).kappa.value,
        "share full": float(np.mean([[style == "full" for style in group] for group in sampled.formats])),
        **elicited(model, known, [respond(str(example.prompt), "full") for example in known], tested, rng),
    }
