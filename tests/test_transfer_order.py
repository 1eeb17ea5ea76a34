"""Orders of tasks: expected success by hand, the test against no effect, the planner on made-up matrices, and the probe."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from mixwright.catalog import create
from mixwright.config import MeasureConfig, ModelConfig, WarmupConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.learner.learner import Learner
from mixwright.measure.stage import measure_learner, settings_after
from mixwright.records import Cell, Example, Measurement, Plan, TrainingSetup
from mixwright_extras.orders.effects import (
    GAIN_MEASUREMENT,
    PLACE_MEASUREMENT,
    Effects,
    choose_order,
    effects_of,
    expected_success,
)
from mixwright_extras.orders.transfers import RunSizes, measure_transfer
from mixwright_extras.planners.transfer_order import TransferOrder
from mixwright_extras.tiny.model import build_tiny
from mixwright_extras.tiny.warmup import warm_up

TASKS = ("a", "b", "c")


def effects(later: list[list[float]], error: float, earlier: list[list[float]] | None = None) -> Effects:
    size = len(later)
    none = np.zeros((size, size))
    return Effects(np.full(size, 0.8), np.array(later), none if earlier is None else np.array(earlier), none + error)


def rows(
    later: dict[tuple[str, str], float], error: float = 0.02, own: float = 0.8, over: tuple[float, float] = (0.2, 0.05)
) -> list[Measurement]:
    """What the probe says: (trained first, by) -> change; no task is helped by an earlier one.

    `over`: by how much the best order, tried anew, ended above all tasks together, and the lower end of it.
    """
    found = [Measurement("transfer", t, f"success after {t}", own, own, own, 100, "share") for t in TASKS]

    def change(task: str, name: str, value: float) -> Measurement:
        return Measurement("transfer", task, name, value, value - 1.96 * error, value + 1.96 * error, 100, "share")

    for first, second in itertools.permutations(TASKS, 2):
        found.append(change(first, f"change by {second}", later.get((first, second), 0.0)))
        found.append(change(second, f"change from {first}", 0.0))
    for place, task in enumerate(choose_order(effects_of(found, TASKS)).order):
        found.append(Measurement("transfer", TASKS[task], PLACE_MEASUREMENT, place + 1, place + 1, place + 1, 1, "place"))
    value, low = over
    return [*found, Measurement("transfer", "*", GAIN_MEASUREMENT, value, low, 2 * value - low, 100, "share", null=0.0)]


CELLS = [Cell(task, None, 100, 0.1, "constant") for task in TASKS]


def planned(measured: list[Measurement], **options: object) -> Plan:
    return create("planners", "transfer_order", options).plan(CELLS, measured, TrainingSetup(90, "sft", 8))


def test_expected_success_adds_what_comes_before_and_after() -> None:
    known = effects([[0, -0.3, 0], [0, 0, -0.1], [-0.2, 0, 0]], 0.0, [[0, 0.1, 0], [0, 0, 0], [0, 0, 0]])
    # a first: .8 - .3 (b after) + 0 (c after); b: .8 + .1 (a before) - .1 (c after); c: .8.
    assert expected_success(known, (0, 1, 2)) == pytest.approx([0.5, 0.8, 0.8])
    assert expected_success(known, (2, 1, 0)) == pytest.approx([0.8, 0.8, 0.6])
    assert expected_success(known, (0, 1))[:2] == pytest.approx([0.5, 0.9])
    assert np.isnan(expected_success(known, (0, 1))[2])


def test_the_best_order_has_most_expected_success() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        known = Effects(np.full(4, 0.5), rng.normal(0, 0.03, (4, 4)), rng.normal(0, 0.03, (4, 4)), np.zeros((4, 4)))
        np.fill_diagonal(known.later, 0)
        np.fill_diagonal(known.earlier, 0)
        every = {order: expected_success(known, order).mean() for order in itertools.permutations(range(4))}
        choice = choose_order(known, rng)
        assert every[choice.order] == pytest.approx(max(every.values()))
        assert choice.gain == pytest.approx(max(every.values()) - np.mean(list(every.values())))


def test_many_tasks_are_ordered_by_local_search() -> None:
    size = 11
    later = np.where(np.subtract.outer(np.arange(size), np.arange(size)) > 0, -0.05, 0.0)  # later ones lose to earlier ones
    names = np.random.default_rng(1).permutation(size)
    known = effects(later[np.ix_(names, names)].tolist(), 0.0)
    assert [names[place] for place in choose_order(known, np.random.default_rng(0)).order] == list(range(size))


@pytest.mark.slow
def test_noise_alone_is_seldom_called_an_effect_of_order() -> None:
    """Where there is none, certainty is uniform: over .9 in a tenth of matrices, within what 200 of them show."""
    rng, over = np.random.default_rng(2), 0
    for _ in range(200):
        noise = rng.normal(0, 0.1, (3, 3))
        np.fill_diagonal(noise, 0)
        over += choose_order(effects(noise.tolist(), 0.1), rng).certainty >= 0.9
    assert 8 <= over <= 35


def test_one_way_damage_gives_stages_in_the_order_that_loses_nothing() -> None:
    later = {("a", "b"): -0.4, ("c", "b"): -0.4, ("a", "c"): -0.3}  # b first, then c, then a
    plan = planned(rows(later))
    assert [(stage.name, stage.steps, stage.weights) for stage in plan.stages] == [
        ("b", 30, {"b": 1.0}),
        ("c", 30, {"c": 1.0}),
        ("a", 30, {"a": 1.0}),
    ]
    assert [stage.expected for stage in plan.stages] == [{"b": 0.8}, {"b": 0.8, "c": 0.8}, {"a": 0.8, "b": 0.8, "c": 0.8}]
    assert "+18.3 points" in plan.why["stages"], "half of 1.1 points of success lost, over three tasks"


def test_an_order_that_is_not_shown_to_beat_all_tasks_together_is_not_planned() -> None:
    """What decides is the order tried anew beside all tasks together: above 0 for certain, and by two points or more."""
    later = {("a", "b"): -0.4, ("c", "b"): -0.4, ("a", "c"): -0.3}
    for over, stages in (((0.2, 0.05), 3), ((0.03, 0.001), 3), ((0.2, -0.01), 1), ((0.015, 0.01), 1), ((-0.5, -0.6), 1)):
        plan = planned(rows(later, over=over))
        assert len(plan.stages) == stages, over
    assert "orders differ but none" in planned(rows(later, over=(-0.5, -0.6))).why["stages"]
    assert "no order is shown to be better than the others" in planned(rows({})).why["stages"]
    untried = planned([row for row in rows(later) if row.name != GAIN_MEASUREMENT])
    assert "not compared with all tasks together" in untried.why["stages"], "what was not measured is not planned"
    assert len(untried.stages) == 1
    with pytest.raises(InputError, match=f"no {PLACE_MEASUREMENT}"):
        planned([row for row in rows(later) if row.name != PLACE_MEASUREMENT])


@pytest.mark.parametrize(
    "measured",
    [
        rows(dict.fromkeys(itertools.permutations(TASKS, 2), -0.4)),
        rows({}),
        rows({("a", "b"): -0.4}, error=0.4),
        rows({("a", "b"): -0.01}, error=0.001),
    ],
    ids=["damage both ways", "none", "noise", "too little"],
)
def test_all_tasks_are_trained_together_where_order_is_not_shown_to_matter(measured: list[Measurement]) -> None:
    (stage,) = planned(measured).stages
    assert stage.weights == pytest.approx(dict.fromkeys(TASKS, 1 / 3), abs=1e-3)
    assert stage.steps == 90


def test_what_the_planner_refuses() -> None:
    with pytest.raises(InputError, match="the probe transfer"):
        planned([])
    with pytest.raises(InputError, match="a step for each"):
        TransferOrder().plan(CELLS, rows({}), TrainingSetup(2, "sft", 8))
    pairs = [row for row in rows({("a", "b"): -0.2}) if "change from" not in row.name]
    single = [replace(row, name=row.name.replace("change by", "change at the start by")) for row in pairs]
    assert effects_of(single, TASKS).later[0, 1] == pytest.approx(-0.2)
    assert not effects_of(single, TASKS).earlier.any()


@pytest.mark.parametrize("conflict", [True, False])
def test_the_best_order_is_tried_longer_where_orders_differ_and_only_there(conflict: bool) -> None:
    """A weight per task, which its rows take to 1; rows of `b` take that of `a` to -1, and rows of both end at 0.

    So `a` after `b` succeeds in all tasks, and all tasks together fail in `a` alone.
    """
    train = {task: np.arange(10 * place, 10 * place + 10) for place, task in enumerate(TASKS)}
    seen: list[int] = []

    def losses(model: nn.Module, numbers: np.ndarray) -> torch.Tensor:
        seen.append(len(numbers))
        (weight,) = model.parameters()
        task = torch.from_numpy(numbers // 10)
        return (weight[task] - 1) ** 2 + conflict * (task == 1) * (weight[0] + 1) ** 2

    def read(model: nn.Module) -> dict[str, dict[str, np.ndarray]]:
        (weight,) = model.parameters()
        return {"success": {task: np.full(40, float(weight[place] > 0.5)) for place, task in enumerate(TASKS)}}

    model = nn.ParameterList([torch.zeros(3)])
    sizes = RunSizes(steps=30, batch=12, learning_rate=0.1, seeds=3, pairs=True, confirm_steps_factor=4)
    found = measure_transfer(model, losses, read, train, sizes, np.random.default_rng(0))
    rows = {(row.task, row.name): row for row in found}
    assert rows["a", "change by b"].value == pytest.approx(-float(conflict))
    short, tried = 3 * (3 + 6 + 3) * 30, 3 * (3 + 3) * 4 * 30
    assert len(seen) == short + conflict * tried
    assert rows["*", "rows_trained"].value == 12 * len(seen)
    assert rows["b", PLACE_MEASUREMENT].value < rows["a", PLACE_MEASUREMENT].value or not conflict
    assert (("*", GAIN_MEASUREMENT) in rows) == conflict
    if conflict:
        assert rows["*", GAIN_MEASUREMENT].value == pytest.approx(1 / 3)
        assert [rows[task, "success after the best order"].value for task in TASKS] == pytest.approx([1, 1, 1])
        assert [rows[task, "success after all tasks together"].value for task in TASKS] == pytest.approx([0, 1, 1])
        assert [stage.name for stage in planned(found).stages][-1] != "b"
    assert len(planned(found).stages) == (3 if conflict else 1)


@pytest.mark.parametrize("name", ["all tasks together", "the best order", "a, then b"])
def test_a_task_that_measurements_would_be_mistaken_for_is_refused(name: str) -> None:
    rows = [
        Example(f"{task} {number}", task, f"{task} {number} = ", target="1", answer="1", split=("train", "eval")[number % 2])
        for task in (name, "other")
        for number in range(20)
    ]
    corpus = Corpus.from_examples(rows)
    size = ModelConfig(width=16, depth=1, heads=1, vocabulary=264)
    learner = build_tiny([row.prompt for row in corpus], size, seed=0)
    config = MeasureConfig(items=10, samples=1, max_new_tokens=2, probes=("transfer",))
    with pytest.raises(InputError, match=f"got '{name}'. Rename"):
        measure_learner(learner, corpus, config, seed=0)


def taught() -> tuple[Learner, Corpus]:
    """A model that knows three tasks on one digit each; rows of `b` hold those of `a`, and those of `c` hold neither."""
    rng, found = random.Random(1), []

    def add(name: str, label: str, task: str, split: str) -> None:
        value = f"{rng.randrange(1000):03d}"
        digit = value[TASKS.index(task)]
        found.append(Example(name, label, f"{task} {value} = ", target=digit, answer=digit, split=split))

    for task in TASKS:
        for number in range(150):
            add(f"{task}{number}", task, task, "eval" if number >= 120 else "train")
    for number in range(120):
        add(f"ba{number}", "b", "a", "train")
    corpus = Corpus.from_examples(found)
    size = ModelConfig(width=32, depth=2, heads=2, vocabulary=264)
    learner = build_tiny([f"{row.prompt}{row.target}" for row in corpus], size, seed=0)
    warm_up(learner, corpus.select(split="train"), WarmupConfig(steps=300, batch_size=32, learning_rate=5e-3), seed=0)
    return learner, corpus


@pytest.mark.slow
def test_the_probe_sees_damage_where_there_is_some_and_leaves_the_model_alone() -> None:
    learner, corpus = taught()
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    options = {"transfer": {"steps": 60, "learning_rate": 3e-3, "items": 30, "seeds": 2}}
    config = MeasureConfig(items=30, samples=1, max_new_tokens=2, probes=("transfer",), options=options)
    found = {(row.task, row.name): row for row in measure_learner(learner, corpus, config, seed=0).measurements}
    assert all(value.equal(before[name]) for name, value in learner.model.state_dict().items())
    assert found["a", "success at the start"].value > 0.5
    assert found["a", "change by c"].value < -0.05, "rows of c hold none of a"
    assert found["a", "change by b"].value > found["a", "change by c"].value, "rows of b do"
    assert found["c", "success after a, then c"].value > 0.8
    assert found["a", "success after a, then c"].value == pytest.approx(
        found["a", "success after a"].value + found["a", "change by c"].value
    )
    assert found["*", "rows_trained"].value == 2 * (3 + 6 + 3) * 60 * 16
    together = [found[task, "success after all tasks together"] for task in TASKS]
    assert together[0].value > found["a", "success after a, then c"].value + 0.3, "rows of all tasks hold those of a"
    assert found["c", "change at the start by all tasks together"].value == pytest.approx(
        together[2].value - found["c", "success at the start"].value
    )
    assert 0 <= found["a", "entropy after b"].value < 2
    assert sorted(found[task, PLACE_MEASUREMENT].value for task in TASKS) == [1, 2, 3]
    assert settings_after(MeasureConfig(probes=("competence", "transfer"))).probes == ("competence",)
