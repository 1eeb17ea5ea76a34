"""The bare SFT loop: its schedule by hand, its step and weighted loss against torch, base models, and what it refuses."""

import tempfile
from dataclasses import replace

import pytest
import torch

from mixwright.errors import InputError
from mixwright_lab.training import bases
from mixwright_lab.training.bases import CHAIN, Recipe, base_model
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.sft import Batch, Schedule, Sft, fit, nll
from mixwright_lab.worlds.chain import respond

PROMPTS = ["7 +3", "1 *5"]
RESPONSES = [respond(prompt, style) for prompt, style in zip(PROMPTS, ("full", "direct"), strict=True)]


@pytest.fixture
def model() -> GPT:
    torch.manual_seed(0)
    return GPT(CHAIN, 16, 1, 2)


def test_the_rate_rises_stays_and_falls():
    schedule = Schedule(steps=20, rate=1.0, warm=4, fall=0.25)
    assert [schedule.rate_at(step) for step in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert [schedule.rate_at(step) for step in range(14, 20)] == pytest.approx([1.0, 1.0, 0.8, 0.6, 0.4, 0.2])
    assert {Schedule(20, 0.5, warm=0, fall=0.0).rate_at(step) for step in range(20)} == {0.5}
    assert [Schedule(10, 1.0, warm=0, fall=1.0).rate_at(step) for step in (0, 5, 9)] == pytest.approx([1.0, 0.5, 0.1])


def test_a_step_is_one_of_adamw_at_the_rate_of_the_schedule():
    """The first step of Adam moves a weight by the rate, whatever its gradient; weight decay takes rate x decay of it."""
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(layer.weight, 2.0)
    sft = Sft(layer, Schedule(10, 0.1, warm=2, fall=0.0, weight_decay=0.5))
    assert sft.step(7 * layer.weight.sum()) == pytest.approx(14.0)
    assert float(layer.weight.detach()) == pytest.approx(2.0 * (1 - 0.05 * 0.5) - 0.05)
    assert sft.done == 1
    assert layer.weight.grad is None
    before = sft.seconds
    sft.step(lambda: 7 * layer.weight.sum())
    assert sft.optimizer.param_groups[0]["lr"] == pytest.approx(0.1)
    assert sft.seconds >= before


def test_gradients_are_clipped():
    layer = torch.nn.Linear(2, 1, bias=False)
    sft, kept = Sft(layer, Schedule(1, 0.1, clip=0.5)), []
    sft.optimizer.register_step_pre_hook(lambda *_: kept.append(layer.weight.grad.clone()))
    sft.step((layer.weight * torch.tensor([3.0, 4.0])).sum())
    assert torch.allclose(kept[0], torch.tensor([[0.3, 0.4]]), atol=1e-5)


def test_the_schedule_ends():
    sft = Sft(torch.nn.Linear(1, 1), Schedule(1, 0.1))
    sft.step(sft.model.weight.sum())
    with pytest.raises(InputError, match="1 steps, as the schedule has, got one more"):
        sft.step(sft.model.weight.sum())


def test_the_loss_is_the_weighted_mean_over_response_tokens(model: GPT):
    """Written out: logits of whole forward passes, one row and one place at a time."""
    weights = torch.zeros(2, CHAIN.response_tokens)
    weights[0, :3] = torch.tensor([1.0, 0.0, 0.5])
    weights[1, :4] = torch.tensor([2.0, 1.0, 1.0, 9.0])  # the fourth place is padding: no weight counts there
    prompts, responses = CHAIN.encode_prompts(PROMPTS), CHAIN.encode_responses(RESPONSES)
    total = share = plain = count = 0.0
    for row, length in enumerate((4, 3)):
        for place in range(length):
            shown = torch.cat((prompts[row], responses[row, :place]))[None]
            lost = -float(model(shown)[0][0, -1].log_softmax(0)[responses[row, place]].detach())
            total, share = total + float(weights[row, place]) * lost, share + float(weights[row, place])
            plain, count = plain + lost, count + 1
    for batch, expected in (
        (Batch(PROMPTS, RESPONSES, weights), total / share),
        (Batch(PROMPTS, RESPONSES), plain / count),
        (Batch(prompts, responses), plain / count),
    ):
        assert nll(model, batch).item() == pytest.approx(expected, abs=1e-5)
    with pytest.raises(InputError, match="a weight above 0"):
        nll(model, Batch(PROMPTS, RESPONSES, 0 * weights))


def test_a_fit_learns_its_rows_and_tells_of_each_step(model: GPT):
    seen: list[tuple[int, float]] = []
    batches = [Batch(PROMPTS, RESPONSES), Batch(PROMPTS[:1], RESPONSES[:1])]
    sft = fit(model, lambda step: batches[step % 2], Schedule(120, 1e-2), lambda step, loss: seen.append((step, loss)))
    assert [step for step, _ in seen] == list(range(1, 121))
    assert seen[-1][1] < 0.1 < seen[0][1]
    assert sft.done == 120
    assert sft.seconds > 0
    made = model.sample(CHAIN.encode_prompts(PROMPTS), 1, 5, greedy=True, generator=torch.Generator())
    assert [CHAIN.decode(group[0].tolist()) for group in made] == RESPONSES


def test_a_base_is_trained_once_for_each_seed_and_recipe(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    taught: list[int] = []
    teach = bases.teach
    monkeypatch.setattr(bases, "teach", lambda model, seed, recipe: (taught.append(seed), teach(model, seed, recipe)))
    recipe = Recipe(levels=((1, 1.0),), steps=3, batch=4, width=8, layers=1, world="operators")
    first, again = base_model(5, recipe), base_model(5, recipe)
    assert taught == [5]
    assert all(torch.equal(one, two) for one, two in zip(first.parameters(), again.parameters(), strict=True))
    base_model(6, recipe)
    base_model(5, replace(recipe, rate=1e-3))
    assert taught == [5, 6, 5]
    assert (len(first.blocks), first.head.in_features, first.language) == (1, 8, CHAIN)


def test_a_world_that_cannot_be_taught_is_refused():
    with pytest.raises(InputError, match="can be taught on, got tables"):
        base_model(0, Recipe(world="tables"))
    with pytest.raises(InputError, match="chains"):
        base_model(0, Recipe(world="chains"))
