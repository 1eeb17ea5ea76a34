"""Experts of the laboratory: families of operations by hand, adapters on its GPT, what they change, and mixtures of it."""

import copy

import numpy as np
import pytest
import torch

from mixwright_extras.experts.mixing import mix_experts
from mixwright_extras.experts.singular import scales, set_scales
from mixwright_lab.findings.adapters import MATRICES, adapted, changes, loss_at, mixtures, moved, rows_of, success, trained
from mixwright_lab.training.gpt import GPT
from mixwright_lab.worlds.chain import OPERATIONS
from mixwright_lab.worlds.families import FAMILIES, MIXED, Families, language

WORLD = Families()
CASES = (("full", {}), ("lora", {"rank": 1, "targets": ["down"]}), ("lora", {"rank": 4}), ("svf", {}))


@pytest.fixture(scope="module")
def base() -> GPT:
    torch.manual_seed(0)
    return GPT(language(), 16, 2)


def made(level: float, split: str = "train", count: int = 200) -> list:
    return [WORLD.make(index, level, split) for index in range(count)]


def turned(base: GPT, adapter: str, options: dict, seed: int = 1) -> GPT:
    """As after a training: every parameter that trains is moved at random."""
    model, generator = adapted(base, adapter, options), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for own in model.parameters():
            if own.requires_grad:
                own += 0.3 * torch.randn(own.shape, generator=generator)
    return model


def test_families_share_no_operation_and_the_mixed_task_has_all_of_them():
    assert sorted(operation for family in FAMILIES for operation in family) == sorted(OPERATIONS)
    for level in (1, 2, 3, MIXED):
        for example in made(level):
            start, *operations = str(example.prompt).split()
            families = {number for number, family in enumerate(FAMILIES, 1) for word in operations if word in family}
            assert families == ({1, 2, 3} if level == MIXED else {level})
            assert len(operations) == 4
            assert 0 <= int(start) < 16


def test_answers_are_worked_out_modulo_sixteen():
    example = made(3, count=1)[0]
    value, *operations = str(example.prompt).split()
    for operation in operations:
        value = int(value) * int(operation[1:]) % 16
    assert example.answer == str(value)


@pytest.mark.parametrize(("adapter", "options"), CASES)
def test_an_adapted_model_writes_as_its_base_until_it_is_trained(base, adapter, options):
    tokens = torch.arange(12).view(2, 6)
    model = adapted(base, adapter, options)
    assert model is not base
    assert isinstance(model, GPT)
    torch.testing.assert_close(model(tokens)[0], base(tokens)[0], rtol=0, atol=1e-6)
    assert all(float(change.abs().max()) < 1e-5 for change in changes(base, model).values())


def test_parameters_are_those_that_the_adapter_has_at_this_width(base):
    counts = {
        name: sum(own.numel() for own in adapted(base, adapter, options).parameters() if own.requires_grad)
        for name, adapter, options in (("svf", "svf", {}), ("small", "lora", {"rank": 1, "targets": ["qkv"]}))
    }
    assert counts == {"svf": 2 * 4 * 16, "small": 2 * (16 + 3 * 16)}  # both 4 x width per block


@pytest.mark.parametrize(("adapter", "options"), CASES)
def test_a_base_with_all_of_the_change_is_the_trained_model(base, adapter, options):
    model = turned(base, adapter, options)
    if adapter == "full":  # biases, embeddings and the head are not among the matrices
        held = dict(base.named_parameters())
        with torch.no_grad():
            for name, own in model.named_parameters():
                if not name.endswith(tuple(f"{last}.weight" for last in MATRICES)):
                    own.copy_(held[name])
    found, tokens = changes(base, model), torch.arange(12).view(2, 6)
    assert found.keys() == {f"blocks.{block}.{name}" for block in range(2) for name in MATRICES}
    again = moved(base, [found], [1.0], copy.deepcopy(base))
    assert float((model(tokens)[0] - base(tokens)[0]).detach().abs().max()) > 0.05
    torch.testing.assert_close(again(tokens)[0], model(tokens)[0], rtol=1e-3, atol=1e-4)


def test_weights_of_a_mixture_are_sums_of_changes(base):
    pair = [changes(base, turned(base, "lora", {"rank": 1}, seed)) for seed in (1, 2)]
    model = moved(base, pair, [0.25, 0.5], copy.deepcopy(base))
    name = "blocks.1.down"
    expected = base.get_submodule(name).weight + 0.25 * pair[0][name] + 0.5 * pair[1][name]
    torch.testing.assert_close(model.get_submodule(name).weight, expected)
    left = moved(base, pair, [0.0, 0.0], model)
    torch.testing.assert_close(left.get_submodule(name).weight, base.get_submodule(name).weight)


def test_scales_of_experts_add_up_where_their_changes_multiply(base):
    """exp(a + b) is what the product's mixture makes of z = a and z = b: not the sum of both changes."""
    pair = [turned(base, "svf", {}, seed) for seed in (1, 2)]
    both = adapted(base, "svf", {})
    set_scales(both, mix_experts([scales(model) for model in pair], [1.0, 1.0]))
    name = "blocks.0.up"
    values = torch.linalg.svdvals(changes(base, both)[name].double() + base.get_submodule(name).weight.double())
    factors = torch.stack([scales(model)[name] for model in pair]).sum(0).exp()
    wanted = torch.linalg.svdvals(base.get_submodule(name).weight.double()) * factors
    np.testing.assert_allclose(sorted(values.detach()), sorted(wanted.detach()), rtol=1e-3)


def test_the_loss_of_others_is_read_where_the_gain_is_first_reached():
    path = [(0.0, 0.0), (0.02, 0.1), (0.06, 0.3), (0.01, 0.9)]
    assert loss_at(path, 0.05) == pytest.approx({"lost by others at equal gain": 0.1 + 0.75 * 0.2, "reached": 1.0})
    assert loss_at(path, 0.5) == {"lost by others at equal gain": 0.9, "reached": 0.0}


def test_success_is_the_probability_of_the_whole_right_response(base):
    rows = rows_of(2, 7, 3, "eval")
    found, spoken = success(base, rows), language()
    for place in range(3):
        prompt, response = (part[place] for part in rows)
        chance = 1.0
        for step, token in enumerate(response.tolist()):
            logits, _ = base(torch.cat((prompt, response[:step]))[None])
            chance *= float(logits[0, -1].detach().softmax(-1)[token])
        assert found[place] == pytest.approx(chance, rel=1e-4)
        assert int(response[-1]) == spoken.index["."]


def test_experts_that_learnt_nothing_mix_to_the_base(base):
    test = rows_of(MIXED, 0, 8, "eval")
    for name, svf in (("svf", True), ("lora", False)):
        found = mixtures(base, [adapted(base, name, {})] * 3, svf, test, seed=0, rounds=1)
        told = [value for key, value in found.items() if "weights" not in key]
        assert told == pytest.approx([float(success(base, test).mean())] * len(told), rel=1e-4)
        assert any("shuffled" in key for key in found) is svf


@pytest.mark.parametrize("sft", [True, False])
def test_training_an_expert_changes_its_scales_alone(base, sft):
    looks: list[int] = []
    model = trained(adapted(base, "svf", {}), 0, sft, 2, 1e-2, 0, lambda step, _: looks.append(step))
    assert looks == [1, 2]
    assert any(float(z.abs().max()) > 0 for z in scales(model).values())
    torch.testing.assert_close(model.tokens.weight, base.tokens.weight, rtol=0, atol=0)
