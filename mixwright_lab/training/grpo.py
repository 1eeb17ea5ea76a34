"""GRPO loop in bare torch: rollouts are charged as they are made, and a step uses those that are handed in."""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from mixwright.records import Example, GroupOutcome
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import Language

Reward = Callable[[Example, str], float]
"""What a response to an example earns."""


def answer_of(text: str) -> str:
    """What follows the last "#", "" where there is none."""
    return text.rpartition("#")[2].strip() if "#" in text else ""


def reward_accepted(example: Example, text: str) -> float:
    """1 for a right answer; an example may accept several, by `extra["accepted"]`."""
    return float(answer_of(text) in example.extra.get("accepted", (example.answer,)))


@dataclass(frozen=True)
class Settings:
    """Of a GRPO run: on-policy, one update per batch, temperature 1, Adam without weight decay."""

    prompts: int = 12
    """Groups per step."""
    group: int = 8
    """Rollouts per group."""
    rate: float = 5e-4
    """Learning rate, constant."""
    beta: float = 0.0
    """Coefficient of KL(policy || start), whose gradient is TRL's with `use_bias_correction_kl=False`."""
    longest: int = 11
    """Tokens of a response at most, its end included; no more than the language has places for."""
    loss: Literal["dapo", "grpo"] = "dapo"
    """Token normalisation: over the batch, as TRL's default, or per response."""
    permute: bool = False
    """Train on rewards permuted within each group: the null of every reward."""


@dataclass(frozen=True)
class Rollouts:
    """Groups of responses. The same problem may stand in it twice."""

    examples: Sequence[Example]
    """One per group."""
    prompts: Int[Tensor, "groups prompt"]
    tokens: Int[Tensor, "groups count response"]
    language: Language
    reward: Reward = reward_accepted

    @cached_property
    def texts(self) -> list[list[str]]:
        """Responses as text, per group."""
        return [[self.language.decode(response) for response in group] for group in self.tokens.tolist()]

    @cached_property
    def answers(self) -> list[list[str]]:
        """What follows the last "#", "" where there is none."""
        return [[answer_of(text) for text in group] for group in self.texts]

    @cached_property
    def formats(self) -> list[list[str]]:
        """Answer style of each response."""
        return [[self.language.style_of(text) for text in group] for group in self.texts]

    @cached_property
    def lengths(self) -> Int[np.ndarray, "groups count"]:
        """Response tokens, the end included."""
        return self.language.mask(self.tokens).sum(-1).numpy()

    @cached_property
    def rewards(self) -> Float[np.ndarray, "groups count"]:
        """What each response earned."""
        pairs = zip(self.examples, self.texts, strict=True)
        return np.array([[self.reward(example, text) for text in group] for example, group in pairs], dtype=float)

    def outcomes(self, step: int) -> list[GroupOutcome]:
        """As the engine sees them."""
        columns = zip(self.examples, self.rewards, self.answers, strict=True)
        return [
            GroupOutcome(example.id, example.task, example.level, step, tuple(rewards.tolist()), tuple(answers))
            for example, rewards, answers in columns
        ]


@dataclass(frozen=True)
class Learnt:
    """What an update showed, both in nats per token."""

    kl: float
    """KL(policy || start); 0 where beta is."""
    entropy: float
    """Of the next-token distribution."""


class Arena:
    """One student and its budget.

    Args:
        examples: the pool; rollouts are asked for by index into it.
        model: where the student starts; copied.
        settings: of the run.
        seed: of every sample.
        reward: of a response; 1 for an accepted answer by default.
    """

    def __init__(
        self, examples: Sequence[Example], model: GPT, settings: Settings, seed: int, *, reward: Reward | None = None
    ) -> None:
        self.examples, self.settings, self.reward = examples, settings, reward or reward_accepted
        self.language = model.language
        self.model, self.start = copy.deepcopy(model), copy.deepcopy(model).requires_grad_(False)
        self.charged = 0
        """Rollouts made so far, whatever for."""
        self.steps = 0
        """Steps taken, skipped ones included."""
        self._prompts = self.language.encode_prompts([str(example.prompt) for example in examples])
        self._generator = torch.Generator().manual_seed(seed)
        self._optimiser = torch.optim.Adam(self.model.parameters(), lr=settings.rate, betas=(0.9, 0.95))
        self._rng = np.random.default_rng((seed, 1))

    def roll(self, indices: Sequence[int], count: int, *, greedy: bool = False) -> Rollouts:
        """`count` rollouts of each of these examples, charged."""
        self.charged += len(indices) * count
        return self._roll([self.examples[index] for index in indices], self._prompts[list(indices)], count, greedy)

    def learn(
        self,
        rollouts: Rollouts,
        admitted: Sequence[bool] | None = None,
        *,
        lr_factor: float = 1.0,
        beta: float | None = None,
    ) -> Learnt:
        """One update. A group that is not admitted has zero advantage and stays in every average, as in TRL.

        Args:
            rollouts: groups of equal size.
            admitted: per group; all by default.
            lr_factor: factor on the learning rate; 0 skips the step (and leaves the optimiser's momentum alone).
            beta: coefficient of the KL; the settings' by default.
        """
        self.steps += 1
        rewards = rollouts.rewards
        if self.settings.permute:
            rewards = self._rng.permuted(rewards, axis=1)
        spread = rewards.std(1, ddof=1, keepdims=True)
        advantages = (rewards - rewards.mean(1, keepdims=True)) / (spread + 1e-4)
        if admitted is not None:
            advantages *= np.array(admitted, dtype=float)[:, None]
        return self.update(rollouts, advantages, lr_factor=lr_factor, beta=self.settings.beta if beta is None else beta)

    def update(
        self, rollouts: Rollouts, advantages: Float[np.ndarray, "groups count"], *, lr_factor: float = 1.0, beta: float = 0.0
    ) -> Learnt:
        """One policy-gradient step on given advantages."""
        count = rollouts.tokens.shape[1]
        prompts, responses = rollouts.prompts.repeat_interleave(count, 0), rollouts.tokens.flatten(0, 1)
        mask = self.language.mask(responses).float()
        logprobs = self.model.logits_of(prompts, responses).log_softmax(-1)
        chosen = logprobs.gather(-1, responses[..., None])[..., 0]
        scale = torch.tensor(advantages, dtype=torch.float32).flatten()[:, None]
        terms, kl = -scale * torch.exp(chosen - chosen.detach()), torch.zeros(())
        if beta:
            with torch.no_grad():
                reference = self._logprobs(self.start, prompts, responses)
            away = reference - chosen
            distance = torch.exp(away) - away - 1
            terms, kl = terms + beta * distance, (distance.detach() * mask).sum() / mask.sum()
        if self.settings.loss == "grpo":
            loss = ((terms * mask).sum(1) / mask.sum(1)).mean()
        else:
            loss = (terms * mask).sum() / mask.sum()
        if lr_factor:
            self._optimiser.param_groups[0]["lr"] = self.settings.rate * lr_factor
            self._optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self._optimiser.step()
        entropy = -(logprobs.detach().exp() * logprobs.detach()).sum(-1)
        return Learnt(float(kl), float((entropy * mask).sum() / mask.sum()))

    def look(self, examples: Sequence[Example], samples: int = 4, *, greedy: bool = False) -> Rollouts:
        """The experimenter's view of any examples: not charged, and it leaves the run's own chance alone."""
        state = self._generator.get_state()
        self._generator.manual_seed(0x10C + self.steps)
        try:
            prompts = self.language.encode_prompts([str(example.prompt) for example in examples])
            return self._roll(examples, prompts, 1 if greedy else samples, greedy)
        finally:
            self._generator.set_state(state)

    @torch.no_grad()
    def drift(self, rollouts: Rollouts) -> Float[np.ndarray, " groups"]:
        """Nats per response by which the student likes its own responses better than the start did, mean per group."""
        count = rollouts.tokens.shape[1]
        prompts, responses = rollouts.prompts.repeat_interleave(count, 0), rollouts.tokens.flatten(0, 1)
        mask = self.language.mask(responses).float()
        away = self._logprobs(self.model, prompts, responses) - self._logprobs(self.start, prompts, responses)
        return (away * mask).sum(1).view(-1, count).mean(1).numpy()

    def _logprobs(self, model: GPT, prompts: Tensor, responses: Tensor) -> Tensor:
        """Log-probability of each response token."""
        return model.logits_of(prompts, responses).log_softmax(-1).gather(-1, responses[..., None])[..., 0]

    def _roll(self, examples: Sequence[Example], prompts: Tensor, count: int, greedy: bool) -> Rollouts:
        longest = min(self.settings.longest, self.language.response_tokens)
        tokens = self.model.sample(prompts, count, longest, greedy=greedy, generator=self._generator)
        return Rollouts(list(examples), prompts, tokens, self.language, self.reward)
