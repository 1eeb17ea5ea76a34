"""Regression of success on features: logistic, beta-binomial for k of n alike rollouts, evidence fading with its age.

logit mu_i = x_i . w, w ~ Normal(0, 1 / precision); k of n right is beta-binomial with mean mu_i and concentration c, so
that n rollouts of a prompt are worth n (1 + c) / (n + c) independent ones. w is fitted by Newton's method under weights
that fade; its covariance is the inverse of the curvature (Laplace). The scale of the weights and c are moved towards a
larger marginal likelihood, one factor of two at a time.

Source: MacKay 1992 (evidence framework); Williams 1975 (beta-binomial); their use for prompts inside a run is ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

SCALE_LIMITS = (0.03, 8.0)
"""Least and largest standard deviation of a weight, per standard deviation of its feature."""
START_SCALE = 0.5
"""Scale before anything was seen."""
CONCENTRATION_LIMITS = (0.5, 512.0)
MOST_NEWTON_STEPS = 12
"""Newton steps at most."""
MOST_LOGITS_PER_STEP = 6.0
"""Logits that one Newton step may move a row."""
MOST_LOGIT = 12.0


@dataclass(frozen=True)
class Shape:
    """What is not fitted at every update."""

    scales: tuple[float, ...]
    """Standard deviation of a weight, per block of features."""
    concentration: float = 8.0
    """Of the Beta distribution that prompts alike in x come from: small where they differ."""


@dataclass(frozen=True)
class Seen:
    """Groups that a regression is fitted to."""

    x: np.ndarray
    """Shape (groups, columns)."""
    wins: np.ndarray
    """Shape (groups,): right answers, perhaps partial."""
    tries: np.ndarray
    """Shape (groups,)."""
    weight: np.ndarray
    """Shape (groups,): how much each counts now, 0..1."""
    offset: np.ndarray | float = 0.0
    """Logits that are known already."""


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-logits)), without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * np.asarray(logits, dtype=float)))


def log_gamma(values: np.ndarray) -> np.ndarray:
    """Logarithm of the gamma function for values above 0, to 1e-9: Stirling's series after a shift by six."""
    shifted = values + 6
    below = values * (values + 1) * (values + 2) * (values + 3) * (values + 4) * (values + 5)
    inverse = 1 / shifted
    series = inverse * (1 / 12 - inverse**2 * (1 / 360 - inverse**2 * (1 / 1260 - inverse**2 / 1680)))
    return (shifted - 0.5) * np.log(shifted) - shifted + 0.5 * math.log(2 * math.pi) + series - np.log(below)


def log_likelihood(wins: np.ndarray, tries: np.ndarray, mean: np.ndarray, concentration: np.ndarray | float) -> np.ndarray:
    """Log probability of `wins` of `tries` in one order under a beta-binomial; wins may be partial."""
    mean = np.clip(mean, 1e-9, 1 - 1e-9)
    right, wrong = mean * concentration, (1 - mean) * concentration
    found = log_gamma(right + wins) - log_gamma(right) + log_gamma(wrong + tries - wins) - log_gamma(wrong)
    return found + log_gamma(np.asarray(concentration, dtype=float)) - log_gamma(concentration + tries)


class SuccessRegression:
    """Weights of intercepts and features with their uncertainty.

    Args:
        intercepts: leading columns, whose prior is Normal(0, 2^2) in logits.
        blocks: how many columns each block of features has; the weights of a block share a scale.
    """

    def __init__(self, intercepts: int, blocks: Sequence[int]) -> None:
        self.intercepts, self._blocks = intercepts, tuple(blocks)
        self.shape = Shape((START_SCALE,) * len(self._blocks))
        self.mean = np.zeros(intercepts + sum(blocks))
        self.root = np.diag(1 / np.sqrt(self._precision(self.shape)))
        """A square root of the covariance: root @ root.T."""

    def fit(self, seen: Seen) -> None:
        """Weights from what was seen."""
        self.mean, curvature = self._newton(seen, self.shape)
        self.root = np.ascontiguousarray(np.linalg.inv(np.linalg.cholesky(curvature)).T)  # restored in this order, too

    def reshape(self, seen: Seen) -> None:
        """Move scale and concentration to the best of their neighbours by marginal likelihood."""
        best = self._evidence(seen, self.shape)
        for shape in list(self._near(self.shape)):
            found = self._evidence(seen, shape)
            if found > best:
                best, self.shape = found, shape

    def logits(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the logit of each row."""
        return x @ self.mean, np.sqrt(((x @ self.root) ** 2).sum(-1))

    def success(self, x: np.ndarray) -> np.ndarray:
        """Expected success of each row, its uncertainty averaged out (MacKay's probit approximation)."""
        mean, spread = self.logits(x)
        return sigmoid(mean / np.sqrt(1 + math.pi / 8 * spread**2))

    def drawn(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Weights drawn from their posterior, shape (count, columns)."""
        return self.mean + rng.standard_normal((count, len(self.mean))) @ self.root.T

    def _near(self, shape: Shape) -> Iterator[Shape]:
        """Shapes that differ by a factor of two in one number."""
        for factor in (0.5, 2.0):
            if CONCENTRATION_LIMITS[0] <= shape.concentration * factor <= CONCENTRATION_LIMITS[1]:
                yield replace(shape, concentration=shape.concentration * factor)
            for place, scale in enumerate(shape.scales):
                if SCALE_LIMITS[0] <= scale * factor <= SCALE_LIMITS[1]:
                    yield replace(shape, scales=(*shape.scales[:place], scale * factor, *shape.scales[place + 1 :]))

    def _precision(self, shape: Shape) -> np.ndarray:
        """Of the prior of each weight."""
        scales = np.repeat([2.0, *shape.scales], [self.intercepts, *self._blocks])
        return 1 / scales**2

    def _newton(self, seen: Seen, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
        """Mode and curvature of the log posterior."""
        precision, weights, x = self._precision(shape), self.mean, seen.x
        counted = seen.weight * seen.tries * (1 + shape.concentration) / (seen.tries + shape.concentration)
        share = seen.wins / seen.tries
        for _ in range(MOST_NEWTON_STEPS):
            success = sigmoid(np.clip(seen.offset + x @ weights, -MOST_LOGIT, MOST_LOGIT))
            curvature = (x * (counted * success * (1 - success))[:, None]).T @ x + np.diag(precision)
            step = np.linalg.solve(curvature, x.T @ (counted * (share - success)) - precision * weights)
            most = float(np.abs(x @ step).max(initial=0.0))
            weights = weights + step * min(1.0, MOST_LOGITS_PER_STEP / max(most, 1e-12))
            if most < 1e-3:
                break
        success = sigmoid(np.clip(seen.offset + x @ weights, -MOST_LOGIT, MOST_LOGIT))
        return weights, (x * (counted * success * (1 - success))[:, None]).T @ x + np.diag(precision)

    def _evidence(self, seen: Seen, shape: Shape) -> float:
        """Log marginal likelihood by Laplace's approximation."""
        weights, curvature = self._newton(seen, shape)
        precision, success = self._precision(shape), sigmoid(seen.offset + seen.x @ weights)
        fit = float((seen.weight * log_likelihood(seen.wins, seen.tries, success, shape.concentration)).sum())
        volume = float(np.log(precision).sum()) - float(np.linalg.slogdet(curvature)[1])
        return fit - 0.5 * float(precision @ weights**2) + 0.5 * volume

    def state(self) -> dict[str, Any]:
        """Numbers as bytes, for an exact return."""
        shape = [*self.shape.scales, self.shape.concentration]
        return {"mean": self.mean.tobytes(), "root": np.ascontiguousarray(self.root).tobytes(), "shape": shape}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned."""
        self.mean = np.frombuffer(state["mean"]).copy()
        self.root = np.frombuffer(state["root"]).reshape(self.root.shape).copy()
        *scales, concentration = state["shape"]
        self.shape = Shape(tuple(scales), concentration)
