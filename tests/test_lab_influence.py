"""World of look-alikes, and gradients of single examples: by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mixwright_lab.findings.influence import gradients, hidden_states
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.sft import Batch, Schedule, fit, nll
from mixwright_lab.worlds.chain import MODULUS
from mixwright_lab.worlds.lookalikes import KNOWN, NEW, Lookalikes, language

WORLD = Lookalikes(seed=4)
PAIRS = [(str(e.prompt), str(e.target)) for e in (WORLD.make(place, 1.0 + place % 4, "train") for place in range(6))]


@pytest.mark.parametrize(("level", "wrong"), [(2.0, 0), (4.0, 1)])
def test_target_and_look_alike_use_the_same_words_and_other_permutations(level: float, wrong: int) -> None:
    for place in range(20):
        example = WORLD.make(place, level, "eval")
        start, *operations = str(example.prompt).split()
        assert set(operations) <= set(NEW)
        value, values = int(start), []
        for operation in operations:
            value = int(WORLD.meanings[wrong, NEW.index(operation), value])
            values.append(str(value))
        assert str(example.target) == " ".join((*values, "#", values[-1]))
        assert example.answer == values[-1]
    assert sorted(WORLD.meanings[wrong, 0].tolist()) == list(range(MODULUS))


def test_a_helper_has_one_known_operation_and_true_meanings() -> None:
    for place in range(20):
        example = WORLD.make(place, 3.0, "train")
        start, *operations = str(example.prompt).split()
        assert sum(operation in KNOWN for operation in operations) == 1
        assert str(example.target).split()[:3] == [str(v) for v in WORLD.values(int(start), tuple(operations))]


@pytest.fixture(scope="module")
def model() -> GPT:
    torch.manual_seed(0)
    return GPT(language(), 16)


def by_hand(model: GPT, pair: tuple[str, str], size: int, seed: int) -> np.ndarray:
    """One backward pass, and the sketch coordinate by coordinate."""
    model.zero_grad()
    nll(model, Batch([pair[0]], [pair[1]])).backward()
    flat = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).numpy()
    generator = torch.Generator().manual_seed(seed)
    places = torch.randint(size, (len(flat),), generator=generator).numpy()
    signs = torch.randint(2, (len(flat),), generator=generator).numpy() * 2.0 - 1.0
    sketch = np.zeros(size)
    np.add.at(sketch, places, flat * signs)
    model.zero_grad()
    return sketch


def test_a_gradient_is_that_of_a_backward_pass_on_its_example_alone(model: GPT) -> None:
    found = gradients(model, PAIRS, size=256, seed=3)
    for row, pair in zip(found, PAIRS, strict=True):
        assert row == pytest.approx(by_hand(model, pair, 256, 3), abs=1e-5)
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in model.parameters())


def test_a_sketch_keeps_cosines(model: GPT) -> None:
    whole, small = (gradients(model, PAIRS, size=size) for size in (1 << 20, 4096))
    exact, kept = (part @ part.T / np.outer(*[np.linalg.norm(part, axis=1)] * 2) for part in (whole, small))
    assert np.abs(exact - kept).max() < 0.1


def test_as_adam_a_gradient_is_the_change_that_one_more_step_makes() -> None:
    torch.manual_seed(1)
    model = GPT(language(), 16)
    every = Batch([prompt for prompt, _ in PAIRS], [response for _, response in PAIRS])
    sft = fit(model, lambda _: every, Schedule(6, 1e-3, warm=0, fall=0.0, clip=1e9))
    expected = gradients(model, PAIRS[:1], sft, size=512)[0]
    before = torch.cat([p.detach().flatten().clone() for p in model.parameters()])
    nll(model, Batch(*([part] for part in PAIRS[0]))).backward()
    sft.optimizer.step()
    change = (before - torch.cat([p.detach().flatten() for p in model.parameters()])) / 1e-3
    generator = torch.Generator().manual_seed(0)
    places = torch.randint(512, (len(change),), generator=generator)
    signs = torch.randint(2, (len(change),), generator=generator) * 2.0 - 1.0
    assert expected == pytest.approx(
        torch.zeros(512).index_add_(0, places, change * signs).numpy(), abs=0.1
    )  # of sums of hundreds


def test_hidden_states_are_those_of_the_last_token(model: GPT) -> None:
    (prompt, response) = PAIRS[2]
    spoken = model.language
    tokens = torch.cat((spoken.encode_prompts([prompt]), spoken.encode_responses([response])), 1)
    last = spoken.prompt_tokens + len(response.split())
    assert hidden_states(model, PAIRS)[2] == pytest.approx(model.hidden(tokens)[-1][0, last].detach().numpy(), abs=1e-5)
