"""The retention probe: on models whose forgetting is known, on a tiny language model, and as the planner reads it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import plugin_samples as samples
import pytest
import torch
from promise_samples import passes
from torch import Tensor, nn

from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.records import Measurement
from mixwright.run.preflight import check_settings
from mixwright_extras.orders.bursts import MAX_TIMES_WATCHED, Burst, half_life, watch_bursts
from mixwright_extras.probes.retention import Retention, rarest
from mixwright_extras.tiny.model import build_tiny

ROWS = {"common": np.arange(100), "rare": np.arange(100, 110)}
SIZES = Burst(steps=20, after=40, batch=8, learning_rate=0.05)


def test_readings_lie_closer_right_after_the_burst():
    assert SIZES.times == [0, 2, 6, 14, 26, 40]
    assert Burst(15, 2, 8, 0.1).times == [0, 1, 2]


@pytest.mark.parametrize("true", [2.0, 20.0, 150.0])
def test_a_half_life_is_found_again(true):
    curve = 0.7 * 2.0 ** -(np.array(SIZES.times) / true)
    assert half_life(curve, SIZES.times) == pytest.approx(true, rel=0.01)


def test_a_gain_that_stays_has_the_longest_half_life_that_can_be_told():
    assert half_life(np.full(6, 0.4), SIZES.times) == pytest.approx(MAX_TIMES_WATCHED * 40)


class Weights(nn.Module):
    """`size` numbers, all 0."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.numbers = nn.Parameter(torch.zeros(size))


def watched(size: int, losses: Callable[[nn.Module, np.ndarray], Tensor]) -> tuple[dict[str, Measurement], Weights]:
    model = Weights(size)
    found = watch_bursts(model, losses, ROWS, ROWS, ["rare"], SIZES, np.random.default_rng(0))
    return {(row.name if row.task != "common" else f"common {row.name}"): row for row in found}, model


def apart(model: nn.Module, rows: np.ndarray) -> Tensor:
    """Each task has a number of its own, which should be 1."""
    return (model.get_parameter("numbers")[torch.as_tensor(rows >= 100).long()] - 1) ** 2


def against(model: nn.Module, rows: np.ndarray) -> Tensor:
    """One number for both: the rare task wants it large, the common one at -0.2."""
    number = model.get_parameter("numbers")[0]
    return torch.where(torch.as_tensor(rows >= 100), 2 - number, (number + 0.2) ** 2)


def test_what_nothing_overwrites_is_kept_and_what_is_shared_is_lost():
    kept, model = watched(2, apart)
    assert kept["burst_gain"].value > 0.5
    assert kept["retained@40"].value == pytest.approx(1, abs=1e-6)
    assert kept["half_life"].value == pytest.approx(MAX_TIMES_WATCHED * 40)
    assert kept["common_rise"].value == 0
    lost, _ = watched(1, against)
    assert lost["burst_gain"].value == pytest.approx(0.45, abs=0.1)  # 20 steps of half of 0.05, the first 5 shorter
    assert lost["retained@2"].value > 0.8
    assert abs(lost["retained@40"].value) < 0.2
    assert 2 < lost["half_life"].value < 20
    assert lost["common_rise"].value == pytest.approx(0.65**2 - 0.04, abs=0.15)
    assert model.numbers.tolist() == [0, 0]
    assert model.numbers.grad is None


def test_losses_gains_and_costs_are_told_by_hand():
    found, _ = watched(2, apart)
    assert found["common loss"].value == found["loss"].value == 1.0
    assert found["burst_rows"].value == 20 * 8
    assert found["rows_trained"].value == 8 * (20 + 40 + 40)
    assert found["rows_read"].value == 110 + 2 * 6 * 10 + 2 * 32
    assert found["burst_gain"].null == 0.0
    assert found["retained@2"].null == 1.0


def test_a_burst_that_gains_nothing_has_no_share_that_is_kept():
    found, _ = watched(1, lambda model, rows: model.get_parameter("numbers")[0] * 0 + torch.ones(len(rows)))
    assert found["burst_gain"].value == 0
    assert not any("retained" in name or name == "half_life" for name in found)


def test_the_rarest_tasks_are_chosen_and_some_are_left_to_train_on():
    rows = {name: np.arange(count) for name, count in {"a": 90, "b": 6, "c": 3, "d": 1}.items()}
    assert rarest(rows, rows, 0.05, 8) == ["d", "c"]
    assert rarest(rows, rows, 0.05, 1) == ["d"]
    assert rarest(rows, rows, 0.001, 8) == ["d"]
    held_out = {name: found for name, found in rows.items() if name != "d"}
    assert rarest(rows, held_out, 0.05, 8) == ["c"]
    assert rarest({"a": rows["a"]}, rows, 0.5, 8) == []


def test_it_is_not_asked_for_by_default():
    assert "retention" not in MeasureConfig().probes


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"retention": {"burst": 0}}, "options.retention"),
        ({"retention": {"burts": 20}}, "burts"),
        ({"drift": {}}, "drift"),
    ],
)
def test_its_options_come_from_the_settings_and_are_checked_before_a_run(options, said):
    measure = MeasureConfig(probes=("retention",), options=options)
    with pytest.raises(InputError, match=said):
        check_settings(RunConfig(CorpusConfig("rows.jsonl"), measure=measure), samples.corpus())


def test_on_a_language_model_it_measures_the_gain_of_a_burst():
    corpus = samples.corpus()
    texts = [f"{example.prompt} {example.answer}" for example in corpus]
    learner = build_tiny(texts, ModelConfig(width=16, depth=1, heads=2, vocabulary=300), seed=0)
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    probe = Retention(burst=15, after=10, batch=4, learning_rate=1e-2, items=6)
    found = probe.measure(passes(learner, corpus), corpus, np.random.default_rng(0))
    assert all(torch.equal(before[name], value) for name, value in learner.model.state_dict().items())
    tasks = {row.task for row in found if row.name == "burst_gain"}
    assert tasks == {"add"}  # all are as common: the first by name
    gain = next(row for row in found if row.name == "burst_gain")
    assert gain.low > 0
    start = {row.task: row.value for row in found if row.name == "loss"}
    assert start["add"] == pytest.approx(np.log(len(learner.tokenizer)), rel=0.1)


def test_a_corpus_without_targets_is_refused():
    empty = Corpus.from_examples([])
    texts = [f"{example.prompt} {example.answer}" for example in samples.corpus()]
    learner = build_tiny(texts, ModelConfig(width=16, depth=1, heads=2, vocabulary=300), seed=0)
    with pytest.raises(InputError, match="rows with targets"):
        Retention().measure(passes(learner, empty), empty, np.random.default_rng(0))
    with pytest.raises(InputError, match=r"options\.retention"):
        Retention(burst=0)
