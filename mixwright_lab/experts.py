"""Experts of families of operations: training one, what it costs the others, and mixtures of three on a task of none."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from mixwright.learner.mixing import mix_experts, search_weights
from mixwright.learner.singular import scales, set_scales
from mixwright_lab.training.adapted import adapted, changes, moved
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Arena, Settings
from mixwright_lab.training.rules import UniformRule
from mixwright_lab.training.sft import Batch, Schedule, fit
from mixwright_lab.worlds.chain import respond
from mixwright_lab.worlds.families import FAMILIES, LENGTH, MIXED, Families, language

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
        fit(model, model.language, batch, schedule, lambda step, _: after(step, model))
        return model
    arena = Arena(pool, model, Settings(PROMPTS_PER_STEP, ROLLOUTS_PER_PROMPT, rate, longest=LENGTH + 3), training_seed)
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
