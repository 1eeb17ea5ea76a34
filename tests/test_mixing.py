"""Mixtures of SVF experts: the merged vectors by hand, and the search against known optima."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import trainers_tiny as tiny

from mixwright.catalog import create
from mixwright.errors import InputError
from mixwright_extras.experts.mixing import mix_experts, search_weights
from mixwright_extras.experts.singular import scales, set_scales

OFFSETS = np.linspace(-1, 1, 10)


def near(*optimum: float) -> Any:
    """Score with its one highest point at the optimum; items differ by a constant each."""
    return lambda weights: OFFSETS - ((weights - np.array(optimum)) ** 2).sum()


def test_mixed_vectors_by_hand() -> None:
    one, two = {"a": torch.tensor([1.0, -2.0])}, {"a": torch.tensor([4.0, 0.5])}
    assert torch.equal(mix_experts([one, two], [0.5, 2.0])["a"], torch.tensor([8.5, 0.0]))
    assert torch.equal(mix_experts([one, two], [1.0, 0.0])["a"], one["a"])


def test_a_mixture_scales_the_weights_by_the_product_of_powers() -> None:
    """exp(sum alpha z) is the product of exp(z) ** alpha: merged weights against the formula, in one matrix."""
    model = create("adapters", "svf", {"targets": ["layers.0.mlp.down_proj"]}).wrap(tiny.model())
    name = "model.layers.0.mlp.down_proj"
    experts = [{name: torch.linspace(-0.5, 0.5, 32)}, {name: torch.linspace(0.3, -0.2, 32)}]
    set_scales(model, mix_experts(experts, [0.25, 0.75]))
    module = model.get_submodule(name)
    u, s, v = torch.linalg.svd(module.weight.detach(), full_matrices=False)
    factors = experts[0][name].exp() ** 0.25 * experts[1][name].exp() ** 0.75
    torch.testing.assert_close(module.merged().weight.detach(), u @ torch.diag(s * factors) @ v, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(scales(model)[name], factors.log())


def test_the_known_optimum_is_found() -> None:
    found = search_weights(near(0.7, 0.2, 0.0), 3, iterations=30, seed=1)
    np.testing.assert_allclose(found.weights, (0.7, 0.2, 0.0), atol=0.02)
    assert found.gain.value == pytest.approx(0.7**2 + 0.2**2, abs=1e-3)
    assert found.over_single.value == pytest.approx(0.3**2 + 0.2**2, abs=1e-3)
    assert (found.single, found.evaluated) == (0, 30 * 32)
    assert len(found.warnings) == 1, found.warnings
    assert "too high" in found.warnings[0]


def test_same_seed_same_weights() -> None:
    one, again, other = (search_weights(near(0.4, 0.6), 2, iterations=3, seed=seed).weights for seed in (1, 1, 2))
    assert one == again != other


def test_an_optimum_at_one_expert_is_told() -> None:
    found = search_weights(near(0.0, 1.0), 2, check=near(0.0, 1.0))
    assert found.weights == (0.0, 1.0)
    assert (found.single, found.over_single.value) == (1, 0.0)
    assert any("100% of the weight" in line for line in found.warnings)
    assert any("best single expert" in line for line in found.warnings)
    assert not any("too high" in line or "without experts" in line for line in found.warnings)


def test_a_gain_within_the_noise_is_told_on_other_items() -> None:
    """A score that any weights raise on the chosen items; on others the change is noise around 0."""
    noise = np.array([1.0, -1.0] * 5)
    found = search_weights(near(0.5, 0.5), 2, check=lambda weights: noise * weights.sum())
    assert found.gain.value == pytest.approx(0, abs=1e-9)
    assert found.gain.low < 0 < found.gain.high
    assert any("without experts" in line for line in found.warnings)


def test_one_item_has_no_interval() -> None:
    found = search_weights(lambda weights: np.array([weights.sum()]), 1, population=4, iterations=2)
    assert found.weights == (1.0,)
    assert any("without experts" in line for line in found.warnings)


def test_what_is_refused() -> None:
    z = {"a": torch.zeros(2)}
    with pytest.raises(InputError, match="a weight per expert"):
        mix_experts([z], [1.0, 2.0])
    with pytest.raises(InputError, match="the same matrices"):
        mix_experts([z, {"a": torch.zeros(3)}], [1.0, 2.0])
    wrong: Any
    for wrong in ({"population": 3}, {"elite": 0.0}, {"iterations": 0}):
        with pytest.raises(InputError, match="population of at least"):
            search_weights(near(0.0, 0.0), 2, **wrong)
