"""The world of look-ups by hand, and that its finding trains and probes what it says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mixwright import catalog
from mixwright.errors import InputError
from mixwright_lab.findings import self_conditioning
from mixwright_lab.training.gpt import GPT
from mixwright_lab.worlds import lookups
from mixwright_lab.worlds.lookups import KEYS, TURNS, Lookups


def test_answers_are_the_tables_values_and_errors_the_next_number():
    world = Lookups(share=1.0, rate=0.5, seed=3)
    seen = 0
    for index in range(30):
        example = world.make(index, 4.0, "train")
        words = str(example.prompt).split()
        assert len(words) == 7
        table = {f"k{'abcdefghij'[key]}": int(world.table[key]) for key in range(KEYS)}
        shifts = [(int(value) - table[key]) % KEYS for key, value in zip(words[:6:2], words[1:6:2], strict=True)]
        assert set(shifts) <= {0, 1}
        assert sum(shifts) == example.knobs["wrong before"]
        assert example.answer == str(table[words[-1]])
        seen += sum(shifts)
    assert 25 < seen < 65  # 90 turns, half of them wrong: mean 45, standard deviation 4.7
    assert sorted(world.table) == list(range(KEYS))


def test_splits_are_told_apart_by_the_sum_of_the_keys():
    world, rng = Lookups(), np.random.default_rng(0)
    assert (world.documents(np.zeros(50), rng, "eval").keys.sum(1) % 5 == 0).all()
    assert (world.documents(np.zeros(50), rng, "train").keys.sum(1) % 5 != 0).all()


def test_clustered_and_spread_errors_are_as_many_and_only_the_former_stand_together():
    between = {}
    for share, rate in ((0.5, 0.7), (1.0, 0.35)):
        world, rng = Lookups(share=share, rate=rate), np.random.default_rng(1)
        wrong = world.documents(world.rates(4000, rng), rng).wrong
        assert wrong.mean() == pytest.approx(0.35, abs=0.02)
        between[share] = wrong.mean(1).var()
    # Variance of the share of wrong turns: .35 * .65 / 16 where spread; with clusters .7 * .3 / 16 / 2 + .35 ** 2.
    assert between[1.0] == pytest.approx(0.35 * 0.65 / TURNS, rel=0.1)
    assert between[0.5] == pytest.approx(0.7 * 0.3 / TURNS / 2 + 0.35**2, rel=0.1)


def test_more_errors_contain_the_fewer_on_the_same_keys():
    few, many = (Lookups().documents(np.full(100, rate), np.random.default_rng(4)) for rate in (0.25, 0.75))
    assert (few.keys == many.keys).all()
    assert many.wrong[few.wrong].all()
    assert many.wrong.sum() > few.wrong.sum() > 0


def test_a_share_beyond_one_is_refused():
    with pytest.raises(InputError, match="0 to 1"):
        Lookups(rate=1.5)


@pytest.mark.parametrize("arm", ["then errors, wrong turns masked", "then recovery pairs", "then errors, all trained"])
def test_only_the_turns_of_an_arm_are_trained(arm: str, monkeypatch: pytest.MonkeyPatch):
    seen = []
    monkeypatch.setattr(self_conditioning, "fit", lambda model, batches, plan: seen.append(batches(0)))
    finding = catalog.create("findings", "self_conditioning")
    settings = finding.SCALES["smoke"]
    model = GPT(lookups.language(), settings.width)
    self_conditioning.train(model, arm, 5, settings, again=False)
    words, world = model.language.words, Lookups(seed=5)
    for row, weights in zip(seen[0].responses.tolist(), seen[0].weights, strict=True):
        assert weights[::2].sum() == 0
        keys, values = [words[token] for token in row[::2]], [int(words[token]) for token in row[1::2]]
        wrong = [value != world.table[ord(key[1]) - ord("a")] for key, value in zip(keys, values, strict=True)]
        trained = [bool(weight) for weight in weights[1::2]]
        if arm == "then errors, all trained":
            assert all(trained)
        elif arm == "then recovery pairs":
            assert sum(trained) <= 1
        if arm != "then errors, all trained":
            assert not any(w and t for w, t in zip(wrong, trained, strict=True))


def test_the_probe_reads_the_right_value_at_the_last_turn():
    model, world = GPT(lookups.language(), 16), Lookups(seed=6)
    documents = world.documents(np.ones(20), np.random.default_rng(0), "eval")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.head.bias[model.language.index["3"]] = 50.0
    probability, greedy = self_conditioning.right(model, documents, TURNS - 1, 6)
    expected = float(np.mean(world.table[documents.keys[:, -1]] == 3))
    assert (probability, greedy) == (pytest.approx(expected), pytest.approx(expected))
