"""Finding on diversity: reward on prompts that can be solved takes answers away from prompts that never earned any.

Source: Song, Kempe, Munos, Outcome-based Exploration for LLM Reasoning, 2509.06941.
Unit: expected number of different answers among 8 samples, on prompts that never earn a reward.
Cost: about 60 CPU seconds per seed.
Blind spot: different wrong answers are of use only where the right one is among them; a bandit and a tiny model.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import comb
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mixwright.records import Example
from mixwright_lab.contracts import Expectation, Finding, Term, difference
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.grpo import Arena
from mixwright_lab.training.grpo import Settings as Grpo
from mixwright_lab.training.rules import UniformRule, drive
from mixwright_lab.worlds.chain import Chain

# A bandit with one outcome per response. A prompt is a pair of symbols. The base gives the right outcome, a + b, one time in
# four, else one of the wrong ones near it. Some of the trained prompts accept an outcome that the base practically
# never gives, and so never earn; nothing in the prompt shows which. Bonuses follow 2509.06941.
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
class BanditSettings:
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

    def __init__(self, settings: BanditSettings) -> None:
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


def base_policy(seed: int, settings: BanditSettings) -> Policy:
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
    settings: BanditSettings,
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


NEVER = "none"
"""An answer that nothing can be."""


@dataclass(frozen=True)
class Settings:
    """Of both runs."""

    bandit: BanditSettings
    base: Recipe
    model: Grpo
    rollouts: int
    """Of the language model."""
    problems: int
    """Of its pool, a third of which never earns; as many are read."""
    samples: int = 32
    """Per problem that is read."""


BASE = Recipe(steps=700, styles=(("full", 0.7), ("direct", 0.3)))
ARMS: Mapping[str, Mapping[str, Any]] = {
    "bandit, start": {},
    "bandit, GRPO": {},
    "bandit, permuted": {"permute": True},
    "bandit, UCB": {"count": 0.0},
    "bandit, UCB-Con": {"count": 0.5},
    "bandit, batch": {"crowded": True},
    "bandit, batch in the reward": {"in_reward": True},
    "bandit, KL on failed groups": {"beta_failed": 1.0},
    "bandit, KL": {"beta": 0.02},
    "bandit, own features, GRPO": {"harmonics": 0},
    "bandit, own features, permuted": {"harmonics": 0, "permute": True},
    "model, start": {},
    "model, GRPO": {},
    "model, permuted": {"permute": True},
}
"""What each arm differs in."""


class Diversity(Finding):
    """A bandit whose prompts share features, and a tiny model of chain arithmetic; a third of the prompts never earns."""

    CLAIM = "Reward on solved prompts lowers the number of different answers on prompts that never earned a reward."
    SOURCE = "Song, Kempe, Munos, Outcome-based Exploration for LLM Reasoning, 2509.06941"
    WHAT_IT_SHOWS = (
        "Llama-3.1-8B and Qwen-2.5-7B on MATH: different answers among 8 on unsolved questions 4.8 under GRPO, 5.4 with a "
        "penalty on answers that a group has twice, 4.9 with counts over the run. Temperatures are not swept."
    )
    POPULAR_READING = (
        "The loss on unsolved prompts is put down to the reward; steps along permuted rewards are not compared."
    )
    REMARKS = (
        "Prompts that never earn are ordinary ones whose key is broken, so that GRPO also gets better at them and the "
        "loss is in part success: not the source's unsolved questions. Permuted rewards raise diversity of the model over "
        "its start (as they ruin it); start - GRPO is +2.0. Without shared features permuted - GRPO is +0.1 [-0.2, 0.5]: "
        "then it is drift."
    )
    RUN_TWICE = ("model, GRPO", "bandit, GRPO")
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(BanditSettings(20, 40, base_steps=20), replace(BASE, steps=15), Grpo(4, 4), 32, 12, 8),
        "laptop": Settings(BanditSettings(), BASE, Grpo(16, 8, rate=3e-4, longest=7), 12_800, 600),
    }
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 8}
    PRIMARY = "model: start - GRPO, different answers where nothing is earned"
    PUBLISHED = (
        "bandit: start - GRPO, different answers where nothing is earned",
        "bandit: penalty on answers of one group - GRPO",
    )
    CONTROL = "model: permuted rewards - GRPO"
    EXPECT = (
        Expectation(
            "bandit: start - GRPO, different answers where nothing is earned",
            difference("bandit, start", "bandit, GRPO", "never"),
            1.0,
            "Prompts that never earn keep their answers.",
            "answers of 8",
        ),
        Expectation(
            "bandit: permuted rewards - GRPO",
            difference("bandit, permuted", "bandit, GRPO", "never"),
            0.5,
            "Steps along permuted rewards take as many answers: the loss is drift, not reward.",
            "answers of 8",
        ),
        Expectation(
            "bandit: start at temperature 0.7 - GRPO at 1.3",
            (Term("bandit, start", "never, T .7"), Term("bandit, GRPO", "never, T 1.3", -1.0)),
            0.5,
            "A higher temperature gives the answers back.",
            "answers of 8",
        ),
        Expectation(
            "bandit: penalty on answers of one group - GRPO",
            difference("bandit, batch", "bandit, GRPO", "never"),
            0.1,
            "The penalty keeps no more answers.",
            "answers of 8",
        ),
        Expectation(
            "model: start - GRPO, different answers where nothing is earned",
            difference("model, start", "model, GRPO", "model, never"),
            0.5,
            "A language model keeps its answers.",
            "answers of 8",
        ),
        Expectation(
            "model: permuted rewards - GRPO",
            difference("model, permuted", "model, GRPO", "model, never"),
            0.25,
            "Steps along permuted rewards take as many answers.",
            "answers of 8",
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Of the bandit and of the model."""
        return tuple(ARMS)

    def prepare(self, seed: int, settings: Settings) -> None:
        """The model that all arms of the seed start from."""
        base_model(seed, settings.base)

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Different answers of 8 and success on trained prompts that never earn, on others, and on held-out ones."""
        own = dict(ARMS[arm])
        train_seed = seed + 10_000 * again
        if arm.startswith("model"):
            return _model(arm, own, seed, train_seed, settings)
        setting = replace(settings.bandit, harmonics=own.pop("harmonics", settings.bandit.harmonics))
        prompts, policy = prompts_of(seed), base_policy(seed, setting)
        if arm != "bandit, start":
            policy = train(policy, prompts, setting, train_seed, **_bonuses(own))
        solved, found = np.setdiff1d(prompts.trained, prompts.never), {}
        for name, temperature in (("never, T .7", 0.7), ("never", 1.0), ("never, T 1.3", 1.3)):
            found[name] = distinct(probabilities(policy, prompts.never, temperature))
        for name, some in (("solved", solved), ("held out", prompts.held_out)):
            chances = probabilities(policy, some)
            found[name] = distinct(chances)
            found[f"success, {name}"] = float(chances[np.arange(len(some)), prompts.right_outcome[some]].mean())
        return found


def _bonuses(own: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `train`; every bonus has the weight 0.2."""
    found = {name: own[name] for name in ("beta", "beta_failed") if name in own}
    if "permute" in own:
        found["permute_rewards"] = own["permute"]
    if "count" in own:
        counts = CountBonus(own["count"])
        found["bonus"] = lambda *seen: 0.2 * counts(*seen)
    if "crowded" in own:
        found["bonus"] = lambda *seen: 0.2 * crowding(*seen)
    if "in_reward" in own:
        found["bonus_in_reward"] = lambda *seen: 0.2 * crowding(*seen)
    return found


def _model(arm: str, own: Mapping[str, Any], seed: int, train_seed: int, settings: Settings) -> dict[str, float]:
    """The language model: what it reads like after its rollouts."""
    world, rng = Chain(), np.random.default_rng((seed, 0xD1))
    made = [world.make(int(rng.integers(2**31)), float(3 + n % 3), "train") for n in range(settings.problems)]
    pool = [replace(one, answer=NEVER) if n % 3 == n // 3 % 3 else one for n, one in enumerate(made)]
    model = base_model(seed, settings.base)
    arena = Arena(pool, model, replace(settings.model, permute=own.get("permute", False)), train_seed)
    if arm != "model, start":
        drive(arena, UniformRule(len(pool), train_seed), settings.rollouts, settings.rollouts, lambda _: {})
    never = [one for one in pool if one.answer == NEVER]
    solved = [one for one in pool if one.answer != NEVER]
    return {
        "model, never": _distinct(arena, never, settings.samples),
        "model, solved": _distinct(arena, solved, settings.samples),
        "model, success": float(arena.look(solved, 4).rewards.mean()),
    }


def _distinct(arena: Arena, examples: list[Example], samples: int, draws: int = 8) -> float:
    """Different answers among `draws` samples, without bias from `samples` of them, mean over examples."""
    found = []
    for answers in arena.look(examples, samples).answers:
        counts = [answers.count(answer) for answer in set(answers)]
        found.append(sum(1 - comb(samples - count, draws) / comb(samples, draws) for count in counts))
    return float(np.mean(found))
