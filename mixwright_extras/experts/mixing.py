"""Mixtures of experts of the adapter `svf`: z = sum of weight x z, and a search of the weights on a few scored items."""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mixwright.extend import InputError, Interval, mean_interval
from mixwright_extras.experts.singular import Scales

Weights = Float[np.ndarray, " experts"]
Score = Callable[[Weights], Float[np.ndarray, " items"]]
"""Scores of the same items, in the same order, of the model with the mixture of these weights; higher is better."""

SINGLE_EXPERT_SHARE = 0.95
"""Share of the weights above which a mixture is one expert."""
GAIN_STANDARD_ERRORS = 2.0
"""Standard errors that a gain has to exceed."""
FIRST_WEIGHT_SPREAD, ADDED_WEIGHT_SPREAD = 0.5, 0.05
"""Standard deviation of the first weights that are drawn; what is added to that of the elite, less with each round."""


@dataclass(frozen=True)
class Mixed:
    """Weights that were found, and what they are worth."""

    weights: tuple[float, ...]
    """One per expert, within 0..1; they need not sum to 1."""
    gain: Interval
    """Mean over items of the score with the mixture minus that without any expert; items are the unit."""
    over_single: Interval
    """The same, minus that of the best single expert."""
    single: int
    """Place of that expert."""
    warnings: tuple[str, ...]
    """Why the mixture may be worth less than it seems, a sentence each."""
    evaluated: int
    """Weights that were scored."""


def mix_experts(experts: Sequence[Scales], weights: Sequence[float]) -> dict[str, Float[Tensor, " values"]]:
    """The merged expert z = sum_k weight_k z_k, for `mixwright_extras.experts.singular.set_scales`.

    Raises:
        InputError: experts of different matrices, or not one weight per expert.
    """
    if not experts or len(experts) != len(weights):
        raise InputError("a weight per expert", f"{len(weights)} for {len(experts)}", "Correct the weights.")
    shapes = [{name: z.shape for name, z in expert.items()} for expert in experts]
    if any(expert_shapes != shapes[0] for expert_shapes in shapes):
        remedy = "Mix experts of the same base and with the same targets."
        raise InputError("experts with the same matrices", "others", remedy)
    mixture = {}
    for name in experts[0]:
        terms = [float(weight) * expert[name] for expert, weight in zip(experts, weights, strict=True)]
        mixture[name] = torch.stack(terms).sum(0)
    return mixture


def search_weights(
    score: Score,
    experts: int,
    *,
    population: int = 32,
    elite: float = 0.2,
    iterations: int = 20,
    seed: int = 0,
    check: Score | None = None,
) -> Mixed:
    """Weights within 0..1 by the cross-entropy method: draw, keep the best, draw around them.

    The first draws contain each expert alone and the even mixture, so the weights found score no lower than these on the
    items of `score`. They were chosen on these items: gains on them are too high, those of `check` are not.

    Args:
        score: of the items that the weights are chosen on.
        experts: how many.
        population: weights drawn per iteration.
        elite: share of them that the next draws are made around.
        iterations: rounds.
        seed: of the draws.
        check: of other items, which the gains are then measured on.

    Raises:
        InputError: sizes that make no search.
    """
    if experts < 1 or iterations < 1 or not 0 < elite <= 1 or population < experts + 2:
        got = f"experts {experts}, population {population}, elite {elite:g}, iterations {iterations}"
        remedy = "Correct these arguments."
        raise InputError("experts, iterations of at least 1, population of at least experts + 2, elite in 0..1", got, remedy)
    rng, singles = np.random.default_rng(seed), list(np.eye(experts))
    best, highest = singles[0], -np.inf
    centre, spread = np.full(experts, 1 / experts), np.full(experts, FIRST_WEIGHT_SPREAD)
    for round_index in range(iterations):
        candidates = np.clip(rng.normal(centre, spread, (population, experts)), 0.0, 1.0)
        if not round_index:
            candidates[: experts + 1] = [*singles, centre]
        means = np.array([float(np.mean(score(weights))) for weights in candidates])
        order = np.argsort(-means, kind="stable")
        if means[order[0]] > highest:
            best, highest = candidates[order[0]].copy(), float(means[order[0]])
        elite_weights = candidates[order[: max(2, round(elite * population))]]
        centre, spread = (
            elite_weights.mean(0),
            elite_weights.std(0) + ADDED_WEIGHT_SPREAD * (1 - (round_index + 1) / iterations),
        )
    single = int(np.argmax([np.mean(score(weights)) for weights in singles]))
    measured = check or score
    values = [np.asarray(measured(weights), float) for weights in (best, np.zeros(experts), singles[single])]
    gain, over = (_gain(values[0] - baseline) for baseline in values[1:])
    warnings = _warnings(best, gain, over, chosen_on_them=check is None)
    return Mixed(tuple(best.tolist()), gain[0], over[0], single, warnings, population * iterations)


def _gain(changes: Float[np.ndarray, " items"]) -> tuple[Interval, bool]:
    """Mean over items with its interval, and whether it exceeds `GAIN_STANDARD_ERRORS` standard errors."""
    interval = mean_interval(changes, bound=float(np.finfo(np.float64).max))
    error = float(changes.std(ddof=1)) / len(changes) ** 0.5 if len(changes) > 1 else np.inf
    return interval, bool(interval.value > GAIN_STANDARD_ERRORS * error)


def _warnings(
    weights: Weights, gain: tuple[Interval, bool], over: tuple[Interval, bool], *, chosen_on_them: bool
) -> tuple[str, ...]:
    """What has to be known of a mixture."""
    warnings = []
    for (interval, clear), baseline in ((gain, "the base model without experts"), (over, "the best single expert")):
        if not clear:
            warnings.append(
                f"The gain over {baseline} is not above {GAIN_STANDARD_ERRORS:g} standard errors: "
                f"{interval.value:+.3g} on {interval.n} items."
            )
    total = float(weights.sum())
    if total > 0 and len(weights) > 1 and weights.max() / total > SINGLE_EXPERT_SHARE:
        warnings.append(f"One expert has {weights.max() / total:.0%} of the weight: use it alone.")
    if chosen_on_them:
        warnings.append("The gains are too high, because they are measured on the items that chose the weights.")
    return tuple(warnings)
