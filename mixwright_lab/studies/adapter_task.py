"""Tasks and trainings of the study of adapters: facts and a skill that a tiny model knows, and a new skill."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from mixwright.config import ModelConfig
from mixwright.learner.adapting import count_trainable
from mixwright.learner.learner import Learner
from mixwright.learner.tiny import build_tiny

LETTERS = "abcdefghijklmnopqrstuvwxyz"
FACTS, HELD, LENGTH = 96, 192, 3
SIZES = ModelConfig(width=64, depth=2, heads=4, vocabulary=259)
BASE_STEPS, BATCH, EVERY = 700, 48, 10
BASE_RATE = 3e-3

Pairs = list[tuple[str, str]]
"""Prompts with their answers; all prompts are of one length, and all answers."""


@dataclass(frozen=True)
class Tasks:
    """What is known before, and what is to be learnt."""

    facts: Pairs
    """Known by heart."""
    old: Pairs
    """Held-out rows of the skill that was learnt before: writing backward."""
    new: Pairs
    """Held-out rows of the new skill: the first letter goes to the end."""
    words: list[str]
    """Of both skills' training rows."""

    def held(self) -> dict[str, Pairs]:
        """What is measured as a training goes on."""
        return {"skill": self.new, "facts": self.facts, "old": self.old}


def tasks(seed: int) -> Tasks:
    """The tasks of a seed."""
    rng = np.random.default_rng((seed, 1))
    places = rng.choice(26**LENGTH, 4000, replace=False)
    words = ["".join(LETTERS[place // 26**power % 26] for power in range(LENGTH)) for place in places]
    keys = [f"{place:0{LENGTH}d}" for place in rng.choice(10**LENGTH, FACTS, replace=False)]
    values, held, rest = words[:FACTS], words[200 : 200 + HELD], words[600:]
    facts = [(f"f:{key}=", value) for key, value in zip(keys, values, strict=True)]
    return Tasks(facts, [backward(word) for word in held], [rotated(word) for word in held], rest)


def backward(word: str) -> tuple[str, str]:
    """A row of the skill that is learnt before."""
    return f"b:{word}=", word[::-1]


def rotated(word: str) -> tuple[str, str]:
    """A row of the new skill."""
    return f"r:{word}=", word[1:] + word[:1]


def encoded(learner: Learner, pairs: Pairs) -> Tensor:
    """Token ids of prompt, answer and end token, shape (rows, time)."""
    end = [learner.tokenizer.eos_token_id]
    return torch.tensor([learner.encode(prompt) + learner.encode(answer) + end for prompt, answer in pairs])


def answer_logits(model: Any, ids: Tensor) -> Tensor:
    """Logits of the answers' tokens, shape (rows, answer tokens, vocabulary)."""
    return model(input_ids=ids, use_cache=False, logits_to_keep=LENGTH + 2).logits[:, :-1]


def right(logits: Tensor, ids: Tensor) -> np.ndarray:
    """1 per row whose answer greedy decoding gives: each token is the likeliest after the right ones."""
    return (logits.argmax(-1) == ids[:, -LENGTH - 1 :]).all(1).double().numpy()


def known(model: Any, ids: Tensor) -> float:
    """Share of rows that are answered."""
    model.eval()
    with torch.no_grad():
        return float(right(answer_logits(model, ids), ids).mean())


def nats(model: Any, ids: Tensor) -> float:
    """Mean cross-entropy per answer token: it tells apart what is all forgotten by the share of answers."""
    model.eval()
    with torch.no_grad():
        return float(loss_of(answer_logits(model, ids), ids))


def batches(seed: int, sets: list[Tensor], rows_of: list[int] | None = None) -> Iterator[Tensor]:
    """Batches with so many rows of each set, or an even share."""
    rng = np.random.default_rng((seed, 2))
    counts = rows_of or [BATCH // len(sets)] * len(sets)
    while True:
        yield torch.cat([rows[rng.integers(len(rows), size=count)] for rows, count in zip(sets, counts, strict=True)])


def base_of(seed: int, given: Tasks, steps: int = BASE_STEPS) -> Learner:
    """A tiny model that knows the facts and the old skill."""
    learner = build_tiny([prompt + answer for prompt, answer in given.facts], SIZES, seed)
    sets = [encoded(learner, given.facts), encoded(learner, [backward(word) for word in given.words])]
    optimiser = torch.optim.AdamW(learner.model.parameters(), lr=BASE_RATE, betas=(0.9, 0.99), fused=True)
    learner.model.train()
    for step, rows in zip(range(steps), batches(seed, sets), strict=False):
        for group in optimiser.param_groups:
            group["lr"] = BASE_RATE * min(1.0, (step + 1) / 50, 3 * (1 - step / steps))
        loss = loss_of(answer_logits(learner.model, rows), rows)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    learner.model.eval()
    return learner


def loss_of(logits: Tensor, ids: Tensor) -> Tensor:
    """Mean cross-entropy of the answers' tokens."""
    return functional.cross_entropy(logits.flatten(0, 1), ids[:, -LENGTH - 1 :].flatten())


def divergence(logits: Tensor, base: Tensor) -> Tensor:
    """Mean KL(these || base) per answer token, nats."""
    own = logits.log_softmax(-1)
    return (own.exp() * (own - base.log_softmax(-1))).sum(-1).mean()


def draws_of(learner: Learner, given: Tasks, seed: int, rehearsed: float) -> Iterator[Tensor]:
    """Batches of the new skill, with that share of facts and training rows of the old skill, half of it each."""
    sets = [encoded(learner, [rotated(word) for word in given.words])]
    if not rehearsed:
        return batches(seed + 1, sets)
    sets += [encoded(learner, given.facts), encoded(learner, [backward(word) for word in given.words])]
    again = round(rehearsed * BATCH / 2)
    return batches(seed + 1, sets, [BATCH - 2 * again, again, again])


@dataclass(frozen=True)
class Trained:
    """A model, and how it got there."""

    model: Any
    curve: list[dict[str, float]]
    """Step, CPU seconds of the steps alone, share of each held row's set, nats of the facts, every `EVERY` steps."""
    parameters: int


def train(
    learner: Learner,
    held: Mapping[str, Pairs],
    draws: Iterator[Tensor],
    wrap: Callable[[Any], Any],
    rate: float,
    steps: int,
    *,
    until: float = 2.0,
    penalty: float = 0.0,
) -> Trained:
    """Train a copy, measuring as it goes.

    Args:
        learner: the base; only read.
        held: rows that are measured; `skill` is what is learnt, and `facts` what is known.
        draws: batches of token ids.
        wrap: an adapter's.
        rate: of AdamW; constant after 20 steps.
        steps: at most.
        until: skill at which it stops.
        penalty: coefficient of KL(model || base) on the training rows.
    """
    model = wrap(copy.deepcopy(learner.model))
    rows_of: Mapping[str, Tensor] = {name: encoded(learner, pairs) for name, pairs in held.items()}
    free = [own for own in model.parameters() if own.requires_grad]
    optimiser = torch.optim.AdamW(free, lr=rate, betas=(0.9, 0.99), weight_decay=0.0)
    curve: list[dict[str, float]] = []
    seconds = 0.0
    for step in range(steps + 1):
        if step % EVERY == 0:
            seen = {name: known(model, rows) for name, rows in rows_of.items()}
            curve.append({"step": step, "seconds": seconds, "nats": nats(model, rows_of["facts"])} | seen)
            if step == steps or seen["skill"] >= until:
                break
        begun = time.process_time()
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 20)
        loss = penalised_loss(model, learner.model, next(draws), penalty)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        seconds += time.process_time() - begun
    return Trained(model.eval(), curve, count_trainable(model))


def penalised_loss(model: Any, base: Any, rows: Tensor, penalty: float) -> Tensor:
    """Cross-entropy of the answers, and the penalty times KL(model || base) where there is one."""
    logits = answer_logits(model, rows)
    if not penalty:
        return loss_of(logits, rows)
    with torch.no_grad():
        before = answer_logits(base, rows)
    return loss_of(logits, rows) + penalty * divergence(logits, before)
