"""Base models: tiny GPTs taught by SFT on a world's problems, one per seed and recipe, kept on disk between runs."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from mixwright import catalog
from mixwright.errors import InputError
from mixwright.records import Example
from mixwright_lab.contracts import World
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import Language
from mixwright_lab.training.sft import Batch, Schedule, fit
from mixwright_lab.worlds import chain

CHAIN = chain.language()
"""Language of chain arithmetic."""


@runtime_checkable
class Teachable(Protocol):
    """What the module of a world offers, so that a base can be taught on it."""

    def language(self) -> Language:
        """What is read and written in this world."""
        ...

    def write_solution(self, example: Example, style: str, noise: float, rng: np.random.Generator) -> str:
        """A response to learn from.

        Args:
            example: of the world's train split.
            style: one of those that the world answers in.
            noise: share of the steps of a response that are wrong, with what follows from them.
            rng: of the noise; nothing is drawn where that is 0.
        """
        ...


@dataclass(frozen=True)
class Recipe:
    """What a base model was trained on."""

    levels: tuple[tuple[float, float], ...] = ((1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0), (5, 0.5), (6, 0.5))
    """Level (in `chain` the number of operations) and relative share of its problems."""
    styles: tuple[tuple[str, float], ...] = (("full", 0.8), ("direct", 0.2))
    """Answer style and relative share."""
    plain: int = 0
    """Levels up to this one are always answered in the first of `styles`: they are mastered."""
    noise: tuple[tuple[str, float], ...] = ()
    """Style -> share of steps (in `chain` of running values) that are written wrong, and gone on from."""
    steps: int = 1200
    """Optimiser steps."""
    batch: int = 64
    """Problems per step."""
    rate: float = 3e-3
    """Peak learning rate of AdamW; 50 steps warm-up, flat half the way, then linear to 0."""
    width: int = 48
    """Of the model."""
    layers: int = 2
    """Of the model."""
    world: str = "chain"
    """Name of a world whose module is `Teachable`."""
    options: tuple[tuple[str, Any], ...] = ()
    """Of the world."""


def base_model(seed: int, recipe: Recipe) -> GPT:
    """The base of a seed and recipe, trained now or read from the folder for temporary files."""
    torch.manual_seed(seed)
    model = GPT(teachable(recipe.world).language(), recipe.width, recipe.layers)
    return kept(model, _digest(seed, recipe), lambda: teach(model, seed, recipe))


def kept(model: GPT, name: str, train: Callable[[], object]) -> GPT:
    """A model as it was after its training, which is done now or was done before.

    Args:
        model: as it is before its training; changed in place.
        name: under which it is kept in the folder for temporary files; another one for other code or settings.
        train: trains it in place.
    """
    path = Path(tempfile.gettempdir()) / "mixwright-bases" / f"{name}.safetensors"
    if not path.exists():
        train()
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        save_file(model.state_dict(), fresh)
        fresh.replace(path)
    model.load_state_dict(load_file(path))
    return model


def teach(model: GPT, seed: int, recipe: Recipe) -> None:
    """SFT on fresh problems."""
    rng = np.random.default_rng((seed, 0xBA5E))
    world = catalog.create("worlds", recipe.world, dict(recipe.options))
    fit(model, lambda _: _problems(world, recipe, rng), Schedule(recipe.steps, recipe.rate))


def teachable(world: str) -> Teachable:
    """The module of a world. Raises InputError for an unknown name, or a world without `language` and `write_solution`."""
    module = sys.modules[catalog.load("worlds", world).__module__]
    if not isinstance(module, Teachable):
        raise InputError("a world that a model can be taught on", world, "Give its module `language` and `write_solution`.")
    return module


def _digest(seed: int, recipe: Recipe) -> str:
    """Name that a base is kept under: another one for another recipe, another torch, or other sources."""
    digest = hashlib.blake2b(repr((seed, recipe, torch.__version__)).encode(), digest_size=12)
    here = Path(__file__)
    sources = {here.with_name(f"{name}.py") for name in ("bases", "gpt", "language", "sft")}
    own = Path(str(vars(teachable(recipe.world))["__file__"]))
    for source in sorted({*sources, own, *Path(chain.__file__).parent.glob("*.py")}):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _problems(world: World, recipe: Recipe, rng: np.random.Generator) -> Batch:
    """Problems of the train split with responses."""
    module, noise = teachable(recipe.world), dict(recipe.noise)
    prompts, responses = [], []
    for level, style in zip(_drawn(recipe.levels, recipe.batch, rng), _drawn(recipe.styles, recipe.batch, rng), strict=True):
        style = recipe.styles[0][0] if float(level) <= recipe.plain else str(style)
        example = world.make(int(rng.integers(2**31)), float(level), "train")
        prompts.append(str(example.prompt))
        responses.append(module.write_solution(example, style, noise.get(style, 0.0), rng))
    return Batch(prompts, responses)


def _drawn(shares: tuple[tuple[float | str, float], ...], count: int, rng: np.random.Generator) -> list[float | str]:
    weights = np.array([share for _, share in shares])
    return [shares[place][0] for place in rng.choice(len(shares), count, p=weights / weights.sum())]
