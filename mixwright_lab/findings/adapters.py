"""Finding on adapters: what singular-value scales gain, what they cost other tasks, and whether such experts mix.

Source: Sun et al., Transformer-squared: Self-adaptive LLMs, 2501.06252.
Unit: probability of the right response when sampling, mean over held-out problems and over three experts.
Cost: about 130 CPU seconds per seed.
Blind spot: chains of look-ups in a tiny GPT whose matrices have 48 singular values; routing by prompt is not tried.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mixwright import catalog
from mixwright_extras.experts.mixing import mix_experts, search_weights
from mixwright_extras.experts.singular import scales, set_scales
from mixwright_lab.contracts import Curve, Expectation, Finding, Plot, Term, difference
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Arena
from mixwright_lab.training.grpo import Settings as Grpo
from mixwright_lab.training.rules import UniformRule
from mixwright_lab.training.sft import Batch, Schedule, fit
from mixwright_lab.worlds.chain import respond
from mixwright_lab.worlds.families import FAMILIES, LENGTH, MIXED, Families, language

MATRICES = ("qkv", "out", "up", "down")
"""Last names of the matrices of a block: what adapters act on where they are not told otherwise."""
Changes = Mapping[str, Float[Tensor, "outputs inputs"]]
"""What training added to each matrix, by its name in the base."""


def adapted(base: GPT, adapter: str, options: Mapping[str, Any]) -> GPT:
    """A copy of a base, with an adapter in place and all else frozen; it writes as the base does until it is trained.

    Args:
        base: only read.
        adapter: its name in the catalogue.
        options: of the adapter; `targets` are all of `MATRICES` by default.
    """
    model = copy.deepcopy(base)
    if adapter == "full":
        return catalog.create("adapters", adapter, dict(options)).wrap(model)
    setattr(model, "prepare_inputs_for_generation", None)  # noqa: B010 - PEFT looks for it, this GPT has its own sampler
    catalog.create("adapters", adapter, {"targets": list(MATRICES)} | dict(options)).wrap(model)  # in place, all of them
    return model


@torch.no_grad()
def changes(base: GPT, model: GPT) -> dict[str, Float[Tensor, "outputs inputs"]]:
    """What a model adds to each of the base's `MATRICES`, whatever adapter it has; its biases are left out."""
    found = {}
    for name in (f"blocks.{number}.{last}" for number in range(len(base.blocks)) for last in MATRICES):
        weight = _weight(base, name)
        rows = torch.cat((torch.eye(weight.shape[1]), torch.zeros(1, weight.shape[1])))
        read = model.get_submodule(name)(rows)
        found[name] = (read[:-1] - read[-1]).T - weight
    return found


@torch.no_grad()
def moved(base: GPT, experts: Sequence[Changes], weights: Sequence[float], model: GPT) -> GPT:
    """Give a plain copy of a base its weights plus the weighted sum of the changes; returns that copy."""
    for name in experts[0]:
        parts = [float(weight) * expert[name] for expert, weight in zip(experts, weights, strict=True)]
        _weight(model, name).copy_(_weight(base, name) + torch.stack(parts).sum(0))
    return model


def _weight(model: GPT, name: str) -> Float[Tensor, "outputs inputs"]:
    return model.get_parameter(f"{name}.weight")


POOL_PROBLEMS, BATCH_ROWS, PROMPTS_PER_STEP, ROLLOUTS_PER_PROMPT = 256, 32, 12, 8
"""Problems that an expert is trained on; rows of a step of SFT; prompts and rollouts of each in a step of GRPO."""
SHOTS = (10, 64)
MIXED_BY, SINGLE = "mixture by", "single expert by"
Rows = tuple[Tensor, Tensor]
"""Prompts and right responses as tokens."""


@torch.no_grad()
def success(model: GPT, rows: Rows) -> np.ndarray:
    """Probability of sampling each right response, float64 of shape (rows,)."""
    each = model.logits_of(*rows).log_softmax(-1).gather(-1, rows[1][..., None])[..., 0]
    return each.sum(1).exp().double().numpy()


def rows_of(level: int, first: int, count: int, split: str) -> Rows:
    """Problems of a family, or of the mixed task."""
    spoken = language()
    prompts = [str(Families().make(first + place, float(level), split).prompt) for place in range(count)]
    responses = spoken.encode_responses([respond(prompt, "full") for prompt in prompts])
    return spoken.encode_prompts(prompts), responses[:, : LENGTH + 3]  # the rest is padding


def held_out(seed: int, count: int) -> list[Rows]:
    """Held-out problems of each family, and of the mixed task."""
    return [rows_of(level, 1000 * seed, count, "eval") for level in (*range(1, len(FAMILIES) + 1), MIXED)]


def trained(
    model: GPT, family: int, sft: bool, steps: int, rate: float, training_seed: int, after: Callable[[int, GPT], None]
) -> GPT:
    """A model after training on one family.

    Args:
        model: trained in place by SFT; by GRPO it is copied.
        family: place of it in `FAMILIES`.
        sft: SFT on right responses, else GRPO with a reward of 1 for a right answer.
        steps: of the optimiser.
        rate: learning rate, constant behind a short warm-up.
        training_seed: of the problems and of every draw.
        after: called after each step with the steps taken and the model.
    """
    pool = [Families().make(100_000 * training_seed + place, family + 1.0, "train") for place in range(POOL_PROBLEMS)]
    if sft:
        rng = np.random.default_rng((training_seed, 3))

        def batch(_: int) -> Batch:
            prompts = [str(pool[place].prompt) for place in rng.integers(POOL_PROBLEMS, size=BATCH_ROWS)]
            return Batch(prompts, [respond(prompt, "full") for prompt in prompts])

        schedule = Schedule(steps, rate, warm=5, fall=0.0)
        fit(model, batch, schedule, lambda step, _: after(step, model))
        return model
    arena = Arena(pool, model, Grpo(PROMPTS_PER_STEP, ROLLOUTS_PER_PROMPT, rate, longest=LENGTH + 3), training_seed)
    rule = UniformRule(POOL_PROBLEMS, training_seed)
    for step in range(steps):
        rule.step(arena)
        after(step + 1, arena.model)
    return arena.model


def loss_at(path: Sequence[tuple[float, float]], gain: float) -> dict[str, float]:
    """Loss of others where a training first has a gain, linear between two looks, and whether it ever has.

    Args:
        path: gain on the own family and loss of the others at each look, (0, 0) first.
        gain: wanted.

    Returns:
        The loss, that of the last look where the gain is never reached; 1 or 0 for whether it is.
    """
    name = "lost by others at equal gain"
    for (gain_before, lost_before), (gain_after, lost_after) in itertools.pairwise(path):
        if gain_after >= gain:
            share = (gain - gain_before) / (gain_after - gain_before)
            return {name: lost_before + share * (lost_after - lost_before), "reached": 1.0}
    return {name: path[-1][1], "reached": 0.0}


def mixtures(base: GPT, experts: Sequence[GPT], svf: bool, test: Rows, seed: int, rounds: int) -> dict[str, float]:
    """Success on the mixed task with single experts, their mean, their sum, and mixtures found on few examples.

    Args:
        base: of all experts.
        experts: one per family.
        svf: mix scales of singular values, else what each expert changed of the weights; of scales also in random places.
        test: problems of the mixed task; those that the search reads are others.
        seed: of these others and of the search.
        rounds: of the search.
    """
    if not svf:
        plain, parts = copy.deepcopy(base), [changes(base, expert) for expert in experts]
        return _mixed(lambda weights: moved(base, parts, weights, plain), "", test, seed, rounds)
    model, drawn = adapted(base, "svf", {}), torch.Generator().manual_seed(seed)
    own = [scales(expert) for expert in experts]
    places = [{name: torch.randperm(len(z), generator=drawn) for name, z in each.items()} for each in own]
    shuffled = [{name: z[at[name]] for name, z in each.items()} for each, at in zip(own, places, strict=True)]
    found: dict[str, float] = {}
    for way, vectors in (("", own), ("shuffled, ", shuffled)):

        def put(weights: Sequence[float], vectors: list[dict[str, Tensor]] = vectors) -> GPT:
            set_scales(model, mix_experts(vectors, weights))
            return model

        found |= _mixed(put, way, test, seed, rounds)
    return found


def _mixed(put: Callable[[Sequence[float]], GPT], way: str, test: Rows, seed: int, rounds: int) -> dict[str, float]:
    count = len(FAMILIES)
    singles = [float(success(put(weights.tolist()), test).mean()) for weights in np.eye(count)]
    found = {f"single {place}": value for place, value in enumerate(singles, 1)}
    found |= {
        name: float(success(put([weight] * count), test).mean()) for name, weight in (("even", 1 / count), ("sum", 1.0))
    }
    for shots in SHOTS:
        rows = rows_of(MIXED, 9_000_000 + 100 * seed, shots, "train")
        best = search_weights(
            lambda weights, rows=rows: success(put(weights.tolist()), rows), count, iterations=rounds, seed=seed
        )
        found[f"{MIXED_BY} {shots}"] = float(success(put(best.weights), test).mean())
        found[f"{SINGLE} {shots}"] = singles[best.single]
        found[f"weights by {shots}"] = sum(best.weights)
    return {f"unseen, {way}{name}": value for name, value in found.items()}


ADAPTERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "full": ("full", {}),
    "LoRA": ("lora", {"rank": 4}),
    "small LoRA": ("lora", {"rank": 1, "targets": ["down"]}),
    "SVF": ("svf", {}),
}
"""Small LoRA has 240 parameters in a block, SVF 192."""
SFT, REWARDS, BEFORE = "SFT", "policy gradient", "before training"
GAIN, LOST, AT, UNSEEN = "gain", "lost by others", "lost by others at equal gain", "unseen"


@dataclass(frozen=True)
class Settings:
    """Of base, experts and mixtures."""

    base: int = 260
    """Steps of SFT of the base, which then solves a good quarter of the problems."""
    steps: int = 160
    """Of each expert."""
    rates: tuple[tuple[str, float], ...] = (
        *(("full, SFT", 1e-4), ("LoRA, SFT", 3e-4), ("small LoRA, SFT", 3e-3), ("SVF, SFT", 3e-3)),
        *(("full, policy gradient", 3e-4), ("LoRA, policy gradient", 3e-3)),
        *(("small LoRA, policy gradient", 1e-2), ("SVF, policy gradient", 1e-2)),
    )
    """Tried on two other seeds: of SFT the lowest that reaches the gain, of rewards the one that gains most."""
    every: int = 5
    """Steps between readings."""
    gain: float = 0.05
    """On the own family, at which losses are compared."""
    tested: int = 128
    """Held-out problems of each family, and of the mixed task."""
    rounds: int = 10
    """Of the search of a mixture."""


class Adapters(Finding):
    """An expert per family of operations, by four adapters with SFT and with GRPO, and mixtures of the three experts."""

    CLAIM = (
        "Scales of singular values trained by policy gradient gain more than LoRA, cost other tasks less at the same gain, "
        "and experts made of them mix: on a task that none was trained on, a mixture found on ten examples beats the best "
        "single expert."
    )
    SOURCE = "Sun et al., Transformer-squared: Self-adaptive LLMs, 2501.06252"
    WHAT_IT_SHOWS = (
        "Llama3-8B: GSM8K 75.9 -> 79.2 (LoRA 77.2), MBPP-Pro 64.7 -> 66.7 (LoRA 67.7); unseen tasks by ten-shot mixing: "
        "MATH 24.5 -> 25.5, HumanEval 61.0 -> 63.0, ARC-C 80.6 -> 82.6; 0.16 to 0.58 million parameters, LoRA 7 to 35."
    )
    POPULAR_READING = (
        "It is said that singular-value experts compose where LoRA does not. The paper gives no seeds and no intervals, "
        "takes the best of several ways of mixing on the test, and has no LoRA of the same number of parameters."
    )
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "adapters/lora": (
            "-gain by policy gradient: SVF - LoRA",
            "-lost by other families at equal gain, SFT: small LoRA - SVF",
        ),
        "adapters/svf": (
            "gain by policy gradient: SVF - LoRA",
            "lost by other families at equal gain, SFT: small LoRA - SVF",
            "lost by other families at equal gain, SFT: full - SVF",
            "unseen task: SVF's mixture found on ten examples - the single expert chosen on them",
        ),
    }
    REMARKS = (
        "A LoRA of as many parameters costs others more than SVF, but training all weights costs them less at the same "
        "gain, so that few parameters are not what protects. By policy gradient LoRA of rank 4 gains three times as much as "
        "SVF, and LoRA of SVF's size 1.1 points less. The mixture beats the base by 1.5 points, the even mean of the same "
        "experts by 2.0, so the search was worse than none; the single expert chosen on ten examples is 2.2 below the base, "
        "which is what the mixture is compared with. The plain mean of three fully trained experts beats the base by 5."
    )
    RUN_TWICE = ("SVF, SFT",)
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(base=10, steps=4, every=2, tested=8, rounds=1),
        "laptop": Settings(),
    }
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 6}
    PRIMARY = "gain by policy gradient: SVF - LoRA"
    CONTROL = "gain by policy gradient: SVF - before"
    PUBLISHED = ("unseen task: SVF's mixture found on ten examples - the base",)
    EXPECT = (
        Expectation(
            "lost by other families at equal gain, SFT: small LoRA - SVF",
            difference("small LoRA, SFT", "SVF, SFT", AT),
            0.01,
            "LoRA of as many parameters costs others no more.",
        ),
        Expectation(
            "lost by other families at equal gain, SFT: full - SVF",
            difference("full, SFT", "SVF, SFT", AT),
            0.01,
            "Training all weights costs others no more.",
        ),
        Expectation(
            "gain by policy gradient: SVF - LoRA",
            difference("SVF, policy gradient", "LoRA, policy gradient", GAIN),
            0.02,
            "LoRA gains as much from the same rollouts.",
        ),
        Expectation(
            "unseen task: SVF's mixture found on ten examples - the single expert chosen on them",
            (Term("SVF, SFT", f"{UNSEEN}, {MIXED_BY} 10"), Term("SVF, SFT", f"{UNSEEN}, {SINGLE} 10", -1.0)),
            0.02,
            "One expert does as well as a mixture.",
        ),
        Expectation(
            "unseen task: SVF's mixture found on ten examples - the base",
            (Term("SVF, SFT", f"{UNSEEN}, {MIXED_BY} 10"), Term(BEFORE, UNSEEN, -1.0)),
            0.02,
            "No expert does as well as a mixture.",
        ),
        Expectation(CONTROL, (Term("SVF, policy gradient", GAIN),), 0.02, "SVF learns nothing by policy gradient."),
    )
    PLOTS = (
        Plot(
            "Own family and others after training",
            "SFT: full, LoRA, small, SVF; then by rewards",
            "change of right responses",
            (
                Curve("own: gain", tuple((float(n), arm, GAIN) for n, arm in enumerate(dict(Settings.rates), 1))),
                Curve("others: loss", tuple((float(n), arm, LOST) for n, arm in enumerate(dict(Settings.rates), 1))),
            ),
        ),
        Plot(
            "Unseen task, by what SVF experts are mixed by",
            "base; one, mixture by 10; by 64; even; sum",
            "right responses, sampled",
            (
                Curve(
                    "SVF, SFT",
                    (
                        (0.0, BEFORE, UNSEEN),
                        *(
                            (float(n), "SVF, SFT", f"{UNSEEN}, {way}")
                            for n, way in enumerate((f"{SINGLE} 10", f"{MIXED_BY} 10", f"{MIXED_BY} 64", "even", "sum"), 1)
                        ),
                    ),
                ),
            ),
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Four adapters with two objectives, and the base."""
        return (*dict(settings.rates), BEFORE)

    def prepare(self, seed: int, settings: Settings) -> None:
        """The base."""
        _base(seed, settings)

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Train an expert per family, read what it changed, and mix the three."""
        base, held = _base(seed, settings), held_out(seed, settings.tested)
        before = [float(success(base, rows).mean()) for rows in held]
        if arm == BEFORE:
            return {UNSEEN: before[-1]} | {f"family {place}": value for place, value in enumerate(before[:-1], 1)}
        adapter, objective = arm.split(", ")
        name, options = ADAPTERS[adapter]
        number = 2 * seed + again
        options = dict(options) | ({"seed": number} if name == "lora" else {})
        experts, read = [], []
        for family in range(len(FAMILIES)):
            path = [(0.0, 0.0)]

            def look(step: int, model: GPT, family: int = family, path: list[tuple[float, float]] = path) -> None:
                if step % settings.every == 0:
                    after = [float(success(model, held[place]).mean()) - before[place] for place in range(len(FAMILIES))]
                    own = after.pop(family)
                    path.append((own, -sum(after) / len(after)))

            model, rate = adapted(base, name, options), dict(settings.rates)[arm]
            experts.append(trained(model, family, objective == SFT, settings.steps, rate, number, look))
            read.append(loss_at(path, settings.gain) | {GAIN: path[-1][0], LOST: path[-1][1]})
        found = {key: sum(each[key] for each in read) / len(read) for key in read[0]}
        return found | mixtures(base, experts, adapter == "SVF", held[-1], seed, settings.rounds)


def _base(seed: int, settings: Settings) -> GPT:
    return base_model(seed, Recipe(((float(LENGTH), 1.0),), (("full", 1.0),), steps=settings.base))
