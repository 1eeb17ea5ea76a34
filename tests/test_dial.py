"""Dials: logits by hand token by token, exact ends, left padding, batches, beams, other processors; sweeps by hand."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
import trainers_tiny as tiny
from transformers import LogitsProcessorList

from mixwright.catalog import create
from mixwright.errors import InputError
from mixwright.estimates.intervals import wilson
from mixwright.learner.learner import Learner
from mixwright_extras.experts.dial import Dial, ExpertDial, Reader, complete, loss_interval, sweep

PROMPTS = ["say a=", "1+2=", "say something longer="]
NEW = 5


def learner(seed: int, spread: float = 0.3) -> Learner:
    """A model whose random weights are wide enough for its logits to differ from place to place."""
    model = tiny.model(seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for own in model.parameters():
            if own.ndim == 2:
                own.copy_(spread * torch.randn(own.shape, generator=generator))
    return Learner(model.eval(), tiny.tokenizer(), f"model {seed}")


def last(model: Any, ids: list[int]) -> torch.Tensor:
    """Logits after a row, read whole, without padding or cache."""
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids])).logits[0, -1].float()


def by_hand(own: Learner, prompt: str, mix: Any) -> list[int]:
    """Greedy tokens of one row, one whole pass per token and model."""
    ids, made = own.encode(prompt), []
    for _ in range(NEW):
        made.append(int(mix([*ids, *made]).argmax()))
        if made[-1] in own.end_ids:
            break
    return made


def generated(own: Learner, dial: Any, **options: Any) -> list[list[int]]:
    """New tokens of the padded batch, without what follows an end token."""
    ids = [own.encode(prompt) for prompt in PROMPTS]
    longest = max(map(len, ids))
    rows = torch.tensor([[0] * (longest - len(row)) + row for row in ids])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in ids])
    made = own.model.generate(
        input_ids=rows, attention_mask=mask, do_sample=False, max_new_tokens=NEW, pad_token_id=0,
        logits_processor=LogitsProcessorList([dial] if dial else []), **options,
    )[:, longest:].tolist()  # fmt: skip
    return [row[: row.index(1) + 1] if 1 in row else row for row in made]


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0, 1.5])
@pytest.mark.parametrize("writes", ["base", "tuned"])
def test_a_pair_by_hand(alpha: float, writes: str) -> None:
    base, tuned = learner(0), learner(1)
    if writes == "base":
        dial, own = Dial(alpha, tuned=Reader(tuned), pad=0), base
    else:
        dial, own = Dial(alpha, base=Reader(base), pad=0), tuned

    def mix(ids: list[int]) -> torch.Tensor:
        one, other = last(base.model, ids), last(tuned.model, ids)
        return one + alpha * (other - one)

    expected = [by_hand(base, prompt, mix) for prompt in PROMPTS]
    assert generated(own, dial) == expected
    if alpha == 0.0:
        assert expected == generated(base, None)
    if alpha == 1.0:
        assert expected == generated(tuned, None)
    assert generated(base, None) != generated(tuned, None)


@pytest.mark.parametrize("name", ["lora", "svf"])
def test_an_adapter_on_and_off(name: str) -> None:
    base = learner(0)
    model = create("adapters", name).wrap(copy.deepcopy(base.model))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for own in model.parameters():
            if own.requires_grad:
                own.add_(0.4 * torch.randn(own.shape, generator=generator))
    tuned = Learner(model.eval(), base.tokenizer, "tuned")
    for alpha in (0.0, 0.4, 1.0):
        dial = Dial(alpha, base=Reader(tuned, adapter=False), pad=0)

        def mix(ids: list[int], alpha: float = alpha) -> torch.Tensor:
            return torch.lerp(last(base.model, ids), last(tuned.model, ids), alpha)

        assert generated(tuned, dial) == [by_hand(base, prompt, mix) for prompt in PROMPTS]
    assert generated(tuned, None) != generated(base, None)


@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_an_expert_and_an_anti_expert_by_hand(alpha: float) -> None:
    own, plus, minus = learner(0), learner(1), learner(2)

    def mix(ids: list[int]) -> torch.Tensor:
        return last(own.model, ids) + alpha * (last(plus.model, ids) - last(minus.model, ids))

    dial = ExpertDial(alpha, expert=Reader(plus), anti=Reader(minus), pad=0)
    assert generated(own, dial) == [by_hand(own, prompt, mix) for prompt in PROMPTS]


def test_the_ends_are_exact_to_the_bit() -> None:
    """Numbers for which base + (tuned - base) is not tuned in float32."""
    tuned, ids = learner(1), torch.tensor([[3, 4, 5]])
    other = Reader(tuned).logits(ids, torch.ones_like(ids))
    scores = torch.linspace(-1e6, 1e6, other.shape[1])[None]
    assert not torch.equal(scores + (other - scores), other)
    assert torch.equal(Dial(1.0, tuned=Reader(tuned), pad=0)(ids, scores), other.log_softmax(-1))
    assert torch.equal(Dial(0.0, tuned=Reader(tuned), pad=0)(ids, scores), scores)
    assert torch.equal(Dial(1.0, base=Reader(tuned), pad=0)(ids, scores), scores)
    assert torch.equal(Dial(0.0, base=Reader(tuned), pad=0)(ids, scores), other.log_softmax(-1))


def test_logits_of_the_reader_do_not_depend_on_padding_batch_or_cache() -> None:
    own = learner(0)
    reader, rows = Reader(own), [[3, 4, 5, 6], [7, 8]]
    ids = torch.tensor([rows[0], [0, 0, *rows[1]]])
    calls: list[int] = []
    plain = own.forward
    own.forward = lambda ids, *args, **more: calls.append(ids.shape[1]) or plain(ids, *args, **more)  # type: ignore
    for token in (9, 10, 11):
        found = reader.logits(ids, (ids != 0).long().cummax(1).values)
        for row, logits in zip(rows, found, strict=True):
            torch.testing.assert_close(logits, last(own.model, row), atol=1e-5, rtol=1e-5)
        ids = torch.cat([ids, torch.full((2, 1), token)], 1)
        rows = [[*row, token] for row in rows]
    assert calls == [4, 1, 1], "the cache is used while rows grow"
    swapped = ids.flip(0)
    found = reader.logits(swapped, (swapped != 0).long().cummax(1).values)
    torch.testing.assert_close(found[1], last(own.model, rows[0]), atol=1e-5, rtol=1e-5)
    assert calls[-1] == ids.shape[1], "rows that were moved are read anew"


def test_beams_are_those_of_the_tuned_model() -> None:
    """alpha near 1, so that the second model is read; rows move between steps."""
    base, tuned = learner(0), learner(1)
    dial = Dial(1 - 1e-7, tuned=Reader(tuned), pad=0)
    assert generated(base, dial, num_beams=3) == generated(tuned, None, num_beams=3)


def test_a_prompt_that_begins_with_the_padding_token_needs_its_mask() -> None:
    base, tuned = learner(0), learner(1)
    ids = torch.tensor([[0, 0, 5, 6]])
    mask = torch.tensor([[0, 1, 1, 1]])
    scores = torch.zeros(1, len(tiny.CHARACTERS) + 3)
    found = Dial(0.5, tuned=Reader(tuned), pad=0, mask=mask)(ids, scores)
    torch.testing.assert_close(found[0], (last(tuned.model, [0, 5, 6]) / 2).log_softmax(-1), atol=1e-5, rtol=1e-5)
    with pytest.raises(InputError, match="an attention mask for these prompts"):
        Dial(0.5, tuned=Reader(tuned), pad=0, mask=mask)(ids[:, :2], scores)
    with pytest.raises(InputError, match="both or neither"):
        Dial(0.5, base=Reader(base), tuned=Reader(tuned), pad=0)


def test_what_another_processor_forbids_stays_forbidden() -> None:
    ids, scores = torch.tensor([[3, 4]]), torch.zeros(1, len(tiny.CHARACTERS) + 3)
    scores[0, 7] = -torch.inf
    for alpha in (0.5, 1.5):
        found = Dial(alpha, tuned=Reader(learner(1)), pad=0)(ids, scores)
        assert found[0, 7] == -torch.inf
        assert float(found.exp().sum()) == pytest.approx(1)


def test_another_vocabulary_is_refused() -> None:
    with pytest.raises(InputError, match="7 and 42 logits"):
        Dial(0.5, tuned=Reader(learner(1)), pad=0)(torch.tensor([[3]]), torch.zeros(1, 7))


def test_texts_come_in_the_order_of_the_prompts() -> None:
    base, tuned = learner(0), learner(1)
    dial = Dial(0.3, tuned=Reader(tuned), pad=0)
    whole = complete(base, PROMPTS, NEW, dial)
    assert whole == [complete(base, [prompt], NEW, dial)[0] for prompt in PROMPTS]
    assert whole != complete(base, PROMPTS, NEW)


def test_the_loss_by_hand() -> None:
    """10 items, 3 lost, 1 gained; and none lost of 10, whose upper end is not 0."""
    before, after = np.array([1.0] * 6 + [0.0] * 4), np.array([0, 0, 0, 1, 1, 1, 1, 0, 0, 0], float)
    found = loss_interval(before, after)
    low, high = wilson(np.array([3.0, 1.0]), np.array([10.0, 10.0]))
    assert found.value == pytest.approx(0.2)
    assert found.high == pytest.approx(0.2 + np.hypot(high[0] - 0.3, 0.1 - low[1]))
    assert found.low == pytest.approx(0.2 - np.hypot(0.3 - low[0], high[1] - 0.1))
    same = loss_interval(before, before)
    assert (same.value, same.n) == (0.0, 10)
    assert same.high == pytest.approx(wilson(0.0, 10.0)[1])
    scores = loss_interval(np.array([0.5, 1.5, 2.5]), np.array([0.0, 1.0, 1.0]))
    assert scores.value == pytest.approx((0.5 + 0.5 + 1.5) / 3)


def test_the_sweep_takes_the_largest_alpha_within_the_budget() -> None:
    """A share alpha / 5 of 1,000 items is lost: upper ends .054 at .2, .098 at .4, .120 at .5, .173 at .75."""

    def knowledge(alpha: float) -> np.ndarray:
        return (np.arange(1000) >= 200 * alpha).astype(float)

    def skill(alpha: float) -> np.ndarray:
        return np.array([alpha, alpha + 0.2])

    found = sweep([0.75, 0.2, 0.4, 0.5], skill, knowledge, max_loss=0.11)
    assert [each.alpha for each in found.settings] == [0.0, 0.2, 0.4, 0.5, 0.75]
    assert [each.loss.value for each in found.settings] == pytest.approx([0, 0.04, 0.08, 0.1, 0.15])
    assert found.chosen == 0.4
    assert found.settings[1].skill.value == pytest.approx(0.3)
    assert sweep([0.5], skill, knowledge, max_loss=0.05).chosen is None
