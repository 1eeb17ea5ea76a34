"""Finding on adapters: what singular-value scales gain, what they cost other tasks, and whether such experts mix.

Source: Sun et al., Transformer-squared: Self-adaptive LLMs, 2501.06252.
Unit: probability of the right response when sampling, mean over held-out problems and over three experts.
Cost: about 100 CPU seconds per seed.
Blind spot: skills are look-ups in a tiny GPT whose matrices have 48 singular values; routing by prompt is not tried.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from mixwright.contracts import Finding
from mixwright.learner.mixing import mixture, search
from mixwright.learner.singular import Scales, scales, set_scales
from mixwright.records import Curve, Example, Expectation, Plot, Term, difference
from mixwright_lab.training.adapted import adapted, changes, moved
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Arena
from mixwright_lab.training.grpo import Settings as Grpo
from mixwright_lab.training.rules import Plain
from mixwright_lab.training.sft import Batch, Schedule, fit
from mixwright_lab.worlds.chain import respond
from mixwright_lab.worlds.families import FAMILIES, LENGTH, MIXED, Families

ADAPTERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "full": ("full", {}),
    "LoRA": ("lora", {"rank": 4}),
    "small LoRA": ("lora", {"rank": 1, "targets": ["qkv"]}),
    "SVF": ("svf", {}),
}
SFT, RL = "SFT", "policy gradient"


@dataclass(frozen=True)
class Settings:
    """Of base, experts and mixtures."""

    base: int = 260
    steps: int = 60
    rates: tuple[tuple[str, float], ...] = (
        *(("full, SFT", 3e-4), ("LoRA, SFT", 1e-3), ("small LoRA, SFT", 1e-2), ("SVF, SFT", 1e-2)),
        *(("full, policy gradient", 3e-4), ("LoRA, policy gradient", 1e-3)),
        *(("small LoRA, policy gradient", 1e-2), ("SVF, policy gradient", 1e-2)),
    )
    every: int = 5
    gain: float = 0.05
    batch: int = 32
    prompts: int = 12
    group: int = 8
    pool: int = 256
    tested: int = 128
    shots: int = 10
    rounds: int = 10


class Adapters(Finding):
    """x."""

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        base, held = _base(seed, settings), _held(seed, settings)
        before = [float(_success(base, rows).mean()) for rows in held]
        adapter, objective = arm.split(", ")
        name, options = ADAPTERS[adapter]
        number = 2 * seed + again
        options = dict(options) | ({"seed": number} if name == "lora" else {})
        experts, found = [], {}
        for family in range(len(FAMILIES)):
            curve = [[0.0, 0.0]]

            def look(step: int, model: GPT, family: int = family, curve: list = curve) -> None:
                if step % settings.every == 0:
                    after = [float(_success(model, rows).mean()) - b for rows, b in zip(held, before)]
                    others = [after[f] for f in range(3) if f != family]
                    curve.append([after[family], -float(np.mean(others))])

            model = adapted(base, name, options)
            rate = dict(settings.rates)[arm]
            experts.append(_trained(model, objective, family, rate, settings, number, look))
            print(arm, rate, "family", family, [(round(g, 2), round(l, 2)) for g, l in curve[::3]])
            values = {"gain": curve[-1][0], "lost": curve[-1][1], "reached": any(g >= settings.gain for g, _ in curve), "lost at gain": _at(curve, settings.gain)}
            for key, v in values.items():
                found[key] = found.get(key, 0.0) + float(v) / 3
        found["unseen, frozen"] = before[3]
        found |= _mixtures(base, experts, adapter, held[3], seed, settings)
        return found


def _at(curve, gain):
    for (g0, l0), (g1, l1) in zip(curve, curve[1:]):
        if g1 >= gain:
            return l0 + (gain - g0) / (g1 - g0) * (l1 - l0)
    return curve[-1][1]


def _trained(model, objective, family, rate, settings, number, look):
    world = Families()
    pool = [world.make(100_000 * number + i, family + 1.0, "train") for i in range(settings.pool)]
    if objective == SFT:
        rng = np.random.default_rng((number, 3))

        def batch(_):
            rows = [str(pool[p].prompt) for p in rng.integers(len(pool), size=settings.batch)]
            return Batch(rows, [respond(r, "full") for r in rows])

        fit(model, model.language, batch, Schedule(settings.steps, rate, warm=5, fall=0.0), lambda step, _: look(step, model))
        return model
    arena = Arena(pool, model, Grpo(settings.prompts, settings.group, rate, longest=LENGTH + 3), number)
    rule = Plain(len(pool), number)
    for step in range(settings.steps):
        rule.step(arena)
        look(step + 1, arena.model)
    return arena.model


def _mixtures(base, experts, adapter, test, seed, settings):
    number = 1000 + seed
    found = {}
    world = Families()
    if adapter == "SVF":
        ways = {"": [scales(m) for m in experts]}
        g = torch.Generator().manual_seed(number)
        ways["shuffled, "] = [{n: z[torch.randperm(len(z), generator=g)] for n, z in e.items()} for e in ways[""]]
        model = adapted(base, "svf", {})
        put = lambda parts, w: (set_scales(model, mixture(parts, w)), model)[1]
    else:
        ways = {"": [changes(base, m) for m in experts]}
        model = copy.deepcopy(base)
        put = lambda parts, w: moved(base, parts, w, model)
    for way, parts in ways.items():
        at = lambda w: float(_success(put(parts, w), test).mean())
        singles = [at(w) for w in np.eye(3)]
        found |= {f"unseen, {way}single {i}": s for i, s in enumerate(singles)}
        found[f"unseen, {way}even"] = at([1 / 3] * 3)
        found[f"unseen, {way}sum"] = at([1.0] * 3)
        for shots in (settings.shots, 64):
            rows = _rows([world.make(9_000_000 + 100 * seed + i, MIXED, "train") for i in range(shots)], base)
            out = search(lambda w: _success(put(parts, w), rows), 3, iterations=settings.rounds, seed=seed)
            found[f"unseen, {way}{shots} shots"] = at(out.weights)
            found[f"unseen, {way}single by {shots}"] = singles[out.single]
            found[f"{way}{shots} weight"] = sum(out.weights)
    return found


def _base(seed, settings):
    return base_model(seed, Recipe(((4, 1.0),), (("full", 1.0),), steps=settings.base))


def _held(seed, settings):
    base = _base(seed, settings)
    return [_rows([Families().make(1000 * seed + i, f, "eval") for i in range(settings.tested)], base) for f in (1.0, 2.0, 3.0, 4.0)]


def _rows(examples, model):
    prompts = [str(e.prompt) for e in examples]
    return model.language.encode_prompts(prompts), model.language.encode_responses([respond(p, "full") for p in prompts])[:, : LENGTH + 3]


@torch.no_grad()
def _success(model, rows):
    prompts, responses = rows
    each = model.logits_of(prompts, responses).log_softmax(-1).gather(-1, responses[..., None])[..., 0]
    return each.sum(1).exp().double().numpy()
