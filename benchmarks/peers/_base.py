"""Starting model of every arm of a seed: a tiny GPT trained by SFT on chain arithmetic, kept on disk between arms."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional

from benchmarks.peers._gpt import GPT, INDEX, LONGEST_RESPONSE, PAD, encode_prompts, encode_responses
from mixwright_lab.worlds import chain, operators

WORLDS = {"chain": chain.Chain, "operators": operators.Operators}
SOURCES = (Path(chain.__file__), Path(operators.__file__), Path(__file__), Path(__file__).with_name("_gpt.py"))


@dataclass(frozen=True)
class Recipe:
    """What a base model was trained on."""

    levels: tuple[tuple[int, float], ...] = ((1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0), (5, 0.5), (6, 0.5))
    """Level (in `chain` the number of operations) and relative share of its problems."""
    styles: tuple[tuple[str, float], ...] = (("full", 0.8), ("direct", 0.2))
    """Answer style and relative share."""
    plain: int = 0
    """Levels up to this one are always answered in the first of `styles`: they are mastered."""
    noise: tuple[tuple[str, float], ...] = ()
    """Style -> share of running values that are written wrong (and calculated on from there)."""
    steps: int = 1200
    """Optimiser steps."""
    batch: int = 64
    """Problems per step."""
    rate: float = 3e-3
    """Peak learning rate of AdamW; 50 steps warm-up, flat half the way, then linear to 0."""
    width: int = 48
    """Of the model."""
    world: str = "chain"
    """Which of `WORLDS` the problems are from."""


def base_model(seed: int, recipe: Recipe) -> GPT:
    """The base of a seed and recipe, trained now or read from the folder for temporary files."""
    torch.manual_seed(seed)
    model = GPT(recipe.width)
    path = _place(seed, recipe)
    if not path.exists():
        _teach(model, seed, recipe)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        save_file(model.state_dict(), fresh)
        fresh.replace(path)
    model.load_state_dict(load_file(path))
    return model


def _place(seed: int, recipe: Recipe) -> Path:
    digest = hashlib.blake2b(repr((seed, recipe, torch.__version__)).encode(), digest_size=12)
    for source in SOURCES:
        digest.update(source.read_bytes())
    return Path(tempfile.gettempdir()) / "mixwright-bases" / f"{digest.hexdigest()}.safetensors"


def _teach(model: GPT, seed: int, recipe: Recipe) -> None:
    """SFT on fresh problems."""
    rng = np.random.default_rng((seed, 0xBA5E))
    optimiser = torch.optim.AdamW(model.parameters(), lr=recipe.rate, betas=(0.9, 0.95), weight_decay=0.0)
    for step in range(recipe.steps):
        left = (recipe.steps - step) / (recipe.steps / 2)
        optimiser.param_groups[0]["lr"] = recipe.rate * min(1.0, (step + 1) / 50, left)
        prompts, responses = _problems(recipe, rng)
        longest = int((responses != INDEX[PAD]).sum(1).max())
        responses = responses[:, :longest]
        logits = model.logits_of(prompts, responses)
        loss = functional.cross_entropy(logits.flatten(0, 1), responses.flatten(), ignore_index=INDEX[PAD])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()


def _problems(recipe: Recipe, rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """A batch of prompts of the train split and of responses, as tokens."""
    world, noise = WORLDS[recipe.world](), dict(recipe.noise)
    prompts, responses = [], []
    for level, style in zip(_drawn(recipe.levels, recipe.batch, rng), _drawn(recipe.styles, recipe.batch, rng), strict=True):
        style = recipe.styles[0][0] if int(level) <= recipe.plain else style
        prompt = str(world.make(int(rng.integers(2**31)), float(level), "train").prompt)
        prompts.append(prompt)
        responses.append(chain.respond(prompt, str(style), _slipped(prompt, noise.get(str(style), 0.0), rng)))
    return encode_prompts(prompts), encode_responses(responses)[:, :LONGEST_RESPONSE]


def _drawn(shares: tuple[tuple[int | str, float], ...], count: int, rng: np.random.Generator) -> list[int | str]:
    weights = np.array([share for _, share in shares])
    return [shares[place][0] for place in rng.choice(len(shares), count, p=weights / weights.sum())]


def _slipped(prompt: str, noise: float, rng: np.random.Generator) -> list[int]:
    """Running values, some of them wrong; what follows is calculated from what was written."""
    if not noise:
        return chain.running_values(prompt)
    start, *operations = prompt.split()
    values, value = [], int(start)
    for operation in operations:
        value = chain.running_values(f"{value} {operation}")[0]
        if rng.random() < noise:
            value = int(rng.integers(chain.MODULUS))
        values.append(value)
    return values
