"""Contextual bandit with one outcome per response, a small network trained by GRPO with exploration bonuses.

A prompt is a pair of symbols, a response one outcome. The base gives the right outcome, a + b, in a quarter of the cases,
and otherwise one of `SPREAD_OUTCOMES - 1` wrong ones near it. Some of the trained prompts accept an outcome that the base
practically never gives, and so never earn a reward; nothing in the prompt shows which. Bonuses follow 2509.06941.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

SYMBOLS = 31
SPREAD_OUTCOMES = 15
"""Outcomes that the base gives, the right one in their middle."""
RIGHT_SHARE = 0.25
"""Share of the right outcome at the start."""

Bonus = Callable[
    [Int[np.ndarray, "groups count"], Float[np.ndarray, "groups count"], Int[np.ndarray, " groups"]], np.ndarray
]
"""(outcomes, rewards, prompts) -> what is added to the advantages."""


@dataclass(frozen=True)
class Settings:
    """Of a run."""

    steps: int = 1200
    prompts: int = 240
    """Per step."""
    group: int = 8
    rate: float = 3e-4
    width: int = 64
    base_steps: int = 500
    """Steps that the base is taught for."""
    harmonics: int = 3
    """Waves that symbols are described by: prompts near each other share features. 0: embeddings of their own."""


class Policy(nn.Module):
    """Features of both symbols, one hidden layer, logits of the outcomes.

    Args:
        settings: how wide it is, and whether prompts share features.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        width, waves = settings.width, settings.harmonics
        angles = torch.arange(SYMBOLS)[:, None] * torch.arange(1, waves + 1) * 2 * torch.pi / SYMBOLS
        table = torch.cat((angles.cos(), angles.sin()), 1) if waves else torch.randn(SYMBOLS, width)
        self.first, self.second = (nn.Embedding.from_pretrained(table.clone(), freeze=waves > 0) for _ in range(2))
        self.up, self.down = nn.Linear(2 * table.shape[1], 4 * width), nn.Linear(4 * width, SYMBOLS)

    def forward(self, prompts: Int[Tensor, " rows"]) -> Float[Tensor, "rows outcomes"]:
        """Logits; prompt = SYMBOLS * a + b."""
        seen = torch.cat((self.first(prompts // SYMBOLS), self.second(prompts % SYMBOLS)), -1)
        return self.down(torch.relu(self.up(seen)))


@dataclass(frozen=True)
class Prompts:
    """Which prompts are trained, which of them never earn, which are held out, and what each accepts."""

    trained: np.ndarray
    never: np.ndarray
    held_out: np.ndarray
    right_outcome: np.ndarray
    """Of every prompt."""


def prompts_of(seed: int) -> Prompts:
    """720 trained prompts, 240 of which never earn a reward, and 241 held out."""
    order = np.random.default_rng((seed, 1)).permutation(SYMBOLS**2)
    trained, held_out = order[:720], order[720:]
    accepted = (np.arange(SYMBOLS**2) // SYMBOLS + np.arange(SYMBOLS**2) % SYMBOLS) % SYMBOLS
    accepted[trained[:240]] = (accepted[trained[:240]] + SYMBOLS // 2 + 1) % SYMBOLS
    return Prompts(trained, trained[:240], held_out, accepted)


def base_policy(seed: int, settings: Settings) -> Policy:
    """The starting point: taught the spread-out distribution on every prompt."""
    torch.manual_seed(seed)
    model = Policy(settings)
    every = torch.arange(SYMBOLS**2)
    away = (torch.arange(SYMBOLS)[None] - (every // SYMBOLS + every % SYMBOLS)[:, None]) % SYMBOLS
    away = torch.minimum(away, SYMBOLS - away)
    target = torch.where(away <= SPREAD_OUTCOMES // 2, (1 - RIGHT_SHARE) / (SPREAD_OUTCOMES - 1), 0.0)
    target[away == 0] = RIGHT_SHARE
    optimiser = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=3e-3)
    for _ in range(settings.base_steps):
        loss = -(target * model(every).log_softmax(-1)).sum(-1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model


def train(
    base: Policy,
    prompts: Prompts,
    settings: Settings,
    seed: int,
    *,
    bonus: Bonus | None = None,
    bonus_in_reward: Bonus | None = None,
    beta: float = 0.0,
    beta_failed: float = 0.0,
    permute_rewards: bool = False,
) -> Policy:
    """GRPO from the base, on-policy.

    Args:
        base: left as it is.
        prompts: trained ones are drawn evenly.
        settings: of the run.
        seed: of draws and samples.
        bonus: added to normalised advantages, not in groups that are all right.
        beta: coefficient of KL(base || policy) on every prompt.
        beta_failed: the same on groups without a success only.
        permute_rewards: permute rewards within groups, the null: prompts that never earn still have no gradient of their
            own.
        bonus_in_reward: added to the rewards before they are normalised, as a further reward function would be.
    """
    model, rng = copy.deepcopy(base), np.random.default_rng((seed, 2))
    optimiser = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=settings.rate)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(settings.steps):
        drawn = rng.choice(prompts.trained, settings.prompts, replace=False)
        logits = model(torch.from_numpy(drawn))
        made = torch.multinomial(logits.softmax(-1), settings.group, replacement=True, generator=generator)
        outcomes = made.numpy()
        rewards = (outcomes == prompts.right_outcome[drawn][:, None]).astype(float)
        if permute_rewards:
            rewards = rng.permuted(rewards, axis=1)
        scored = rewards + (bonus_in_reward(outcomes, rewards, drawn) if bonus_in_reward else 0.0)
        advantages = (scored - scored.mean(1, keepdims=True)) / (scored.std(1, ddof=1, keepdims=True) + 1e-4)
        if bonus is not None:
            advantages += bonus(outcomes, rewards, drawn) * (rewards.mean(1, keepdims=True) < 1)
        logprobs = logits.log_softmax(-1)
        loss = -(torch.from_numpy(advantages).float() * logprobs.gather(1, made)).mean()
        if beta or beta_failed:
            pull = beta + beta_failed * torch.from_numpy(rewards.sum(1) == 0).float()
            loss = loss + (pull * _kl_from_base(base, drawn, logprobs)).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model


def _kl_from_base(base: Policy, drawn: np.ndarray, logprobs: Float[Tensor, "prompts outcomes"]) -> Float[Tensor, " prompts"]:
    """KL(base || policy)."""
    with torch.no_grad():
        start = base(torch.from_numpy(drawn)).log_softmax(-1)
    return (start.exp() * (start - logprobs)).sum(-1)


def distinct(probabilities: Float[np.ndarray, "prompts outcomes"], draws: int = 8) -> float:
    """Expected number of distinct outcomes among `draws`, exact, mean over prompts."""
    return float((1 - (1 - probabilities) ** draws).sum(1).mean())


@torch.no_grad()
def probabilities(model: Policy, prompts: np.ndarray, temperature: float = 1.0) -> Float[np.ndarray, "prompts outcomes"]:
    """Of every outcome."""
    return (model(torch.from_numpy(prompts)) / temperature).softmax(-1).numpy().astype(float)


def crowding(outcomes: np.ndarray, rewards: np.ndarray, prompts: np.ndarray) -> np.ndarray:
    """Batch exploration: minus the share of the group that has the same outcome."""
    same = (outcomes[:, :, None] == outcomes[:, None, :]).sum(2) - 1
    return -same / outcomes.shape[1]


class CountBonus:
    """Historical exploration: b = min(1, n ** -1/2) of an outcome's count so far, minus `centre`.

    Args:
        centre: 0 is UCB; with .5 (UCB-Con) outcomes seen more than four times are punished.
    """

    def __init__(self, centre: float = 0.0) -> None:
        self.centre, self.seen = centre, np.zeros((SYMBOLS**2, SYMBOLS))

    def __call__(self, outcomes: np.ndarray, rewards: np.ndarray, prompts: np.ndarray) -> np.ndarray:
        """The bonus of each response; counts it afterwards."""
        found = np.minimum(1.0, np.maximum(self.seen[prompts[:, None], outcomes], 1) ** -0.5) - self.centre
        np.add.at(self.seen, (prompts[:, None], outcomes), 1)
        return found
