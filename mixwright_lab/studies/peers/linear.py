"""Rule of a linear regression: success of a prompt from counts of its tokens, drawn nearest to one half.

Bayesian linear regression, with identity link, of the success of each observed group on the counts of the prompt's tokens
(words between spaces), their number and an intercept. What was seen fades by `FADE` per step, the prior stays. A prompt of
the next batch is that of `CANDIDATES` random ones whose success under one draw from the posterior is nearest to one half.

Source: our pilot; the rule of MoPPS 2507.04632 (Thompson draws, nearest to one half) on a regression across prompts.
Unit: success, 0..1.
Cost: none beyond the rollouts learnt from; a solve per step in as many unknowns as there are different tokens.
Blind spot: takes what is right by luck half the time for what teaches most; a token that was never seen is anything.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixwright_lab.training.grpo import Arena, Learnt
from mixwright_lab.training.rules import Rule

FADE, CANDIDATES, MIDDLE = 0.97, 256, 0.5
NOISE = 0.05
"""Variance of a group's success about the regression: of eight rollouts, and of what the counts do not say."""


class Linear(Rule):
    """Draws by regression.

    Args:
        prompts: of the arena's examples, in their order.
        seed: of its draws.
    """

    def __init__(self, prompts: Sequence[str], seed: int) -> None:
        super().__init__()
        self._rng = np.random.default_rng((seed, 10))
        self._columns = columns_of(prompts)
        width = self._columns.shape[1]
        self._precision, self._moment = np.zeros((width, width)), np.zeros(width)
        """Of what was seen, without the prior."""

    def step(self, arena: Arena) -> Learnt:
        """Draw, learn, and note what each group showed."""
        drawn = self.draw(arena.settings.prompts)
        rollouts = arena.roll(drawn, arena.settings.group)
        self.record_update(rollouts)
        self.observe(drawn, rollouts.rewards.mean(1))
        return arena.learn(rollouts)

    def draw(self, count: int) -> list[int]:
        """Prompts of a batch, none twice, each by a draw of its own from the posterior."""
        mean, covariance = self.posterior()
        weights = self._rng.multivariate_normal(mean, covariance, count, method="cholesky")
        found: list[int] = []
        for drawn in weights:
            candidates = self._rng.choice(len(self._columns), min(CANDIDATES, len(self._columns)), replace=False)
            away = np.abs(self._columns[candidates] @ drawn)
            away[np.isin(candidates, found)] = np.inf
            found.append(int(candidates[away.argmin()]))
        return found

    def observe(self, drawn: Sequence[int], success: np.ndarray) -> None:
        """Let the past fade by a step and add these groups, which may be any number."""
        seen = self._columns[list(drawn)]
        self._precision = FADE * self._precision + seen.T @ seen / NOISE
        self._moment = FADE * self._moment + seen.T @ (success - MIDDLE) / NOISE

    def posterior(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of the weights; the prior is standard normal, for success above one half."""
        covariance = np.linalg.inv(self._precision + np.eye(len(self._moment)))
        return covariance @ self._moment, (covariance + covariance.T) / 2


def columns_of(prompts: Sequence[str]) -> np.ndarray:
    """Intercept, number of tokens and counts of each token, all but the intercept standardised over the prompts."""
    words = sorted({word for prompt in prompts for word in prompt.split()})
    place = {word: number for number, word in enumerate(words)}
    counts = np.zeros((len(prompts), len(words) + 1))
    for row, prompt in enumerate(prompts):
        tokens = prompt.split()
        counts[row, -1] = len(tokens)
        np.add.at(counts[row], [place[word] for word in tokens], 1)
    spread = counts.std(0)
    standard = (counts - counts.mean(0))[:, spread > 0] / spread[spread > 0]
    return np.concatenate((np.ones((len(prompts), 1)), standard), axis=1)
