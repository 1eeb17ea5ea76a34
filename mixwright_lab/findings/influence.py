"""Finding on influence: gradients tell rows that help from rows that only look alike, words and hidden states do not.

Source: Xia et al., LESS: Selecting influential data for targeted instruction tuning, 2402.04333.
Unit: share of held-out problems of the target solved by the greedy response; area under the ROC curve.
Cost: about 75 CPU seconds per seed.
Blind spot: one target whose facts stand in the helpers word by word; all gradients of a whole small model, no LoRA.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from scipy.stats import mannwhitneyu
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from mixwright_extras.mining.relevance import bm25, choose_in_turn, cosines
from mixwright_lab.contracts import Curve, Expectation, Finding, Plot, difference
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.sft import Schedule, Sft, fit_rows
from mixwright_lab.worlds.lookalikes import KINDS, Lookalikes

CHUNK_ROWS = 64
SKETCH_PLACES = 4096
"""Places of the sketch."""
Pairs = Sequence[tuple[str, str]]
"""Prompts and responses."""


def gradients(
    model: GPT, pairs: Pairs, sft: Sft | None = None, *, size: int = SKETCH_PLACES, seed: int = 0
) -> Float[np.ndarray, "rows size"]:
    """Gradient of the mean loss over the response tokens of each pair, in a count sketch of one seed.

    Args:
        model: is left as it is.
        pairs: examples.
        sft: a training whose Adam state turns each gradient into the step that it would make; None leaves them plain.
        size: places of the sketch.
        seed: of the sketch; vectors of one seed and model can be compared.
    """
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    count = sum(parameter.numel() for parameter in weights.values())
    generator = torch.Generator().manual_seed(seed)
    places = torch.randint(size, (count,), generator=generator)
    signs = torch.randint(2, (count,), generator=generator) * 2.0 - 1.0
    steps = None if sft is None else _moments(model, sft)
    grad = torch.func.vmap(torch.func.grad(_loss(model)), in_dims=(None, 0, 0))
    found = []
    for start in range(0, len(pairs), CHUNK_ROWS):
        own = pairs[start : start + CHUNK_ROWS]
        prompts = model.language.encode_prompts([prompt for prompt, _ in own])
        responses = model.language.encode_responses([response for _, response in own])
        with sdpa_kernel(SDPBackend.MATH):  # the others have no rule for vmap
            flat = torch.cat([part.flatten(1) for part in grad(weights, prompts, responses).values()], 1)
        if steps is not None:
            flat = _as_adam(flat, *steps)
        found.append(torch.zeros(len(own), size).index_add_(1, places, flat * signs))
    return torch.cat(found).numpy()


def hidden_states(model: GPT, pairs: Pairs) -> Float[np.ndarray, "rows width"]:
    """Stream behind the last block at the last token of each pair."""
    spoken = model.language
    prompts, responses = ([pair[side] for pair in pairs] for side in (0, 1))
    tokens = torch.cat((spoken.encode_prompts(prompts), spoken.encode_responses(responses)), 1)
    ends = spoken.prompt_tokens + spoken.mask(tokens[:, spoken.prompt_tokens :]).sum(1) - 1
    with torch.no_grad():
        return model.hidden(tokens)[-1][torch.arange(len(tokens)), ends].numpy()


def _loss(model: GPT):
    def loss(weights: dict[str, Tensor], prompt: Tensor, response: Tensor) -> Tensor:
        tokens = torch.cat((prompt, response[:-1]))[None]
        logits = torch.func.functional_call(model, weights, (tokens,))[0][0, len(prompt) - 1 :]
        each = functional.cross_entropy(logits, response, reduction="none")
        told = model.language.mask(response).float()
        return (each * told).sum() / told.sum()

    return loss


def _moments(model: GPT, sft: Sft) -> tuple[Tensor, Tensor, int]:
    state = sft.optimizer.state
    first, second = (torch.cat([state[p][name].flatten() for p in model.parameters()]) for name in ("exp_avg", "exp_avg_sq"))
    return first, second, sft.done


def _as_adam(flat: Tensor, first: Tensor, second: Tensor, done: int) -> Tensor:
    """Step of Adam with this gradient, bias-corrected; betas of the schedule's default."""
    low, high = 0.9, 0.95
    m = (low * first + (1 - low) * flat) / (1 - low ** (done + 1))
    v = (high * second + (1 - high) * flat**2) / (1 - high ** (done + 1))
    return m / (v.sqrt() + 1e-8)


SELECTED = ("LESS", "plain gradients", "no warm-up", "BM25", "hidden states", "random")
WITHOUT_SUFFIX = ", no look-alikes"
"""Arms on a pool in which known rows stand for the look-alikes."""
CLEAN_ARMS = tuple(f"{way}{WITHOUT_SUFFIX}" for way in ("LESS", "random", "all rows"))


@dataclass(frozen=True)
class Settings:
    """Of base, pool and training."""

    base: int = 500
    """Steps of SFT of the base on known operations."""
    known: int = 1600
    """Rows of the pool of which nothing is to be learnt."""
    rows_per_kind: int = 200
    """Helpers, as many look-alikes, and as many rows that are selected."""
    shots: int = 60
    warm: int = 150
    """Steps of warm-up, on a tenth of the pool."""
    steps: int = 200
    rate: float = 2e-3
    tests: int = 300


class Influence(Finding):
    """SFT on a tenth of a pool of 2,000 rows, chosen by six rules, against all rows, helpers alone and the shots alone."""

    CLAIM = (
        "Gradient similarity after a warm-up selects rows that help a target and leaves out rows that only look like it; "
        "what it selects beats random rows, and beats all rows only where look-alikes are among them."
    )
    SOURCE = "Xia et al., LESS: Selecting Influential Data for Targeted Instruction Tuning, 2402.04333, ICML 2024"
    WHAT_IT_SHOWS = (
        "Llama-2-7B, 5 % of 270,000 instructions, MMLU and BBH: 50.2, 41.5; random rows 46.5, 38.9; all rows 51.6, 43.2; "
        "level with random rows without warm-up. A re-study (2602.14696): +2.5 points over random, hidden states no worse."
    )
    POPULAR_READING = "It is said that 5 % of the data beat all of it. In the source that holds for one of three targets."
    FEATURES = {"miners/influence": ("target: LESS - random rows", "target: LESS - hidden states")}  # noqa: RUF012
    REMARKS = "The shots alone teach more (53 %) than LESS's rows (31 %); LESS costs known problems 59 points."
    REAL = (
        "Of 1,500 tool calls the half by influence ended 19 points [11, 27] under a random half, and 7.3 [-3.9, "
        "18.5] where a third was wrong (study real_mine)."
    )
    RUN_TWICE = ("LESS",)
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(base=40, known=80, rows_per_kind=20, shots=8, warm=5, steps=8, tests=24),
        "laptop": Settings(),
    }
    PRIMARY = "target: LESS - random rows"
    PUBLISHED = (
        "target: LESS - hidden states",
        "target: all rows - LESS, without look-alikes",
        "target: LESS - the same without warm-up",
    )
    CONTROL = "helpers above look-alikes: LESS - BM25"
    EXPECT = (
        Expectation(
            "helpers above look-alikes: LESS - BM25",
            difference("LESS", "BM25", "area under ROC"),
            0.3,
            "Gradients confuse helpers and look-alikes as words do.",
        ),
        Expectation(
            "target: LESS - random rows",
            difference("LESS", "random", "target"),
            0.05,
            "Selected rows teach no more than random ones.",
        ),
        Expectation(
            "target: LESS - hidden states",
            difference("LESS", "hidden states", "target"),
            0.05,
            "Rows that the model represents alike help as much.",
        ),
        Expectation(
            "target: LESS - all rows, where look-alikes are among them",
            difference("LESS", "all rows", "target"),
            0.05,
            "Rows that contradict the target do no harm that a selection could prevent.",
        ),
        Expectation(
            "target: all rows - LESS, without look-alikes",
            difference(f"all rows{WITHOUT_SUFFIX}", f"LESS{WITHOUT_SUFFIX}", "target"),
            0.01,
            "A tenth of the rows is better than all of them even where none is wrong.",
        ),
        Expectation(
            "target: LESS - the same without warm-up",
            difference("LESS", "no warm-up", "target"),
            0.03,
            "Gradients of the model as it is select as well.",
        ),
    )
    PLOTS = (
        Plot(
            "Target, by what was trained on",
            "0 LESS, 1 plain, 2 no warm-up, 3 BM25, 4 hidden, 5 random, 6 all rows, 7 helpers, 8 shots",
            "problems solved",
            (
                Curve(
                    "with look-alikes",
                    tuple(
                        (float(place), arm, "target")
                        for place, arm in enumerate((*SELECTED, "all rows", "helpers alone", "shots alone"))
                    ),
                ),
            ),
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Six ways to select, and what is trained on without a selection."""
        return (*SELECTED, "all rows", "helpers alone", "shots alone", "before training", *CLEAN_ARMS)

    def prepare(self, seed: int, settings: Settings) -> None:
        """The base."""
        _base(seed, settings)

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Score the pool, train on what is selected, and solve the target."""
        way, base = arm.removesuffix(WITHOUT_SUFFIX), _base(seed, settings)
        world, rng = Lookalikes(seed=1000 + seed), np.random.default_rng((seed, again))
        fourth = 1.0 if arm.endswith(WITHOUT_SUFFIX) else 4.0
        levels = np.repeat([1.0, 3.0, fourth], [settings.known, settings.rows_per_kind, settings.rows_per_kind])
        pool = [_pair(world, place, level, "train") for place, level in enumerate(levels)]
        shots = [_pair(world, 50_000 + place, 2.0, "train") for place in range(settings.shots)]
        found, rows = {}, {"all rows": pool, "shots alone": shots, "before training": []}.get(way)
        if rows is None:
            scores = _scores(way, base, pool, shots, settings, rng) if way in SELECTED else (levels == 3.0)[:, None] * 1.0
            chosen = choose_in_turn(scores, settings.rows_per_kind)
            rows, found = [pool[place] for place in chosen], _shares_chosen(scores.mean(1), levels, chosen)
        model = copy.deepcopy(base)
        if rows:
            fit_rows(model, rows, Schedule(settings.steps, settings.rate, warm=5), rng)
        return found | {name: _solved(model, world, level, settings) for name, level in (("target", 2.0), ("known", 1.0))}


def _base(seed: int, settings: Settings) -> GPT:
    return base_model(seed, Recipe(((1, 1.0),), (("full", 1.0),), steps=settings.base, world="lookalikes"))


def _pair(world: Lookalikes, index: int, level: float, split: str) -> tuple[str, str]:
    example = world.make(index, level, split)
    return str(example.prompt), str(example.target)


def _scores(way: str, base: GPT, pool: Pairs, shots: Pairs, settings: Settings, rng: np.random.Generator) -> np.ndarray:
    """Relevance of each row to each shot, shape (rows, shots)."""
    if way == "random":
        return rng.random((len(pool), 1))
    if way == "BM25":
        return bm25(*([" ".join(pair).split() for pair in part] for part in (pool, shots)))
    if way == "hidden states":
        return cosines(hidden_states(base, pool), hidden_states(base, shots))
    model, sft = copy.deepcopy(base), None
    if way != "no warm-up":
        tenth = [pool[place] for place in rng.permutation(len(pool))[: len(pool) // 10]]
        sft = fit_rows(model, tenth, Schedule(settings.warm, 1e-3, warm=5, fall=0.0), rng)
    return cosines(gradients(model, pool, sft if way == "LESS" else None), gradients(model, shots))


def _shares_chosen(scores: np.ndarray, levels: np.ndarray, chosen: np.ndarray) -> dict[str, float]:
    found = {f"{KINDS[level]} chosen": float((levels[chosen] == level).mean()) for level in (1.0, 3.0, 4.0)}
    if (levels == 4.0).any():
        helpers, others = scores[levels == 3.0], scores[levels == 4.0]
        found["area under ROC"] = float(mannwhitneyu(helpers, others).statistic) / (len(helpers) * len(others))
    return found


def _solved(model: GPT, world: Lookalikes, level: float, settings: Settings) -> float:
    tests = [_pair(world, place, level, "eval") for place in range(settings.tests)]
    answers = [model.language.decode(own).split()[-1:] for own in model.write([prompt for prompt, _ in tests])]
    return float(np.mean([own == response.split()[-1:] for own, (_, response) in zip(answers, tests, strict=True)]))
