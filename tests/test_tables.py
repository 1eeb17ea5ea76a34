"""The world of tables: known answers, shares, splits; and that frequency alone rescues a rare task in a small model."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from mixwright.errors import InputError
from mixwright.records import Plan, Stage
from mixwright.steer.engine import Engine
from mixwright_lab.training.tables import ROW_TOKENS, Data, Model, Training, accuracies
from mixwright_lab.worlds.tables import Tables


def test_answers_are_the_tables_entries_and_simple_ones_ignore_the_second_symbol():
    world = Tables(tasks=4, symbols=3, seed=5)
    for level, tasks in ((1.0, (0, 2)), (2.0, (1, 3))):
        for index in range(36):
            example = world.make(index, level, "train")
            name, first, second = example.task, int(example.prompt[4]), int(example.prompt[7])
            task = int(name[1:]) - 1
            assert task in tasks
            assert example.prompt.startswith(f"{name}({first}, {second}) ~")
            assert example.answer == str(world.tables[task, first, second])
    assert (world.tables[0] == world.tables[0][:, :1]).all()
    assert not (world.tables[1] == world.tables[1][:, :1]).all()


def test_every_entry_comes_equally_often():
    world = Tables(tasks=2, symbols=3)
    made = [world.make(index, 2.0, "train") for index in range(27)]
    entries = Counter((example.knobs["first"], example.knobs["second"]) for example in made)
    assert len(entries) == 9
    assert set(entries.values()) == {3}
    assert len({example.prompt for example in made}) == 27


def test_shares_fall_as_a_power_of_the_rank_and_the_corpus_has_them():
    shares = Tables(tasks=3, power=1.0).shares()
    assert shares == pytest.approx({"f01": 6 / 11, "f02": 3 / 11, "f03": 2 / 11})
    counts = Counter(example.task for example in Tables(tasks=3, power=1.0).corpus(1100))
    assert counts == {"f01": 600, "f02": 300, "f03": 200}
    rare = [Tables().shares()[f"f{rank}"] for rank in (20, 22, 24)]
    assert sum(rare) == pytest.approx(0.0205, abs=0.0001)
    assert max(rare) < 0.01


def test_sizes_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="at least 2"):
        Tables(tasks=1)


def test_tokens_and_compute_are_counted_by_hand():
    world = Tables(tasks=4, symbols=3)
    data = Data(world, world.corpus(200))
    model = Model(8, 4, 3, seed=0)
    assert model.size == 7 * 8 + 3 * 8 + 2 * 64 + 8 * 16 + 8 * 32 * 2 + 8 * 3
    assert data.ids[0].tolist() == [0, 0, 3]
    training = Training(model, 1e-3, 10)
    training.learn(data, lambda: [0, 1, 2, 3], 5)
    assert training.flops == 5 * 6 * model.size * ROW_TOKENS * 4


def trained(weights: dict[str, float], seed: int) -> np.ndarray:
    world = Tables(tasks=6, symbols=4, power=2.0, seed=seed)
    data = Data(world, world.corpus(2000))
    stage = Stage("s", "sft", 150, {task: share / sum(weights.values()) for task, share in weights.items()})
    engine = Engine(Plan("p", (stage,)), data.pool, seed=seed)
    training = Training(Model(16, 6, 4, seed), 6e-3, 150)
    training.learn(data, lambda: engine.draw(32), 150)
    return accuracies(training.model, world)


@pytest.mark.slow
def test_weight_rescues_the_rare_complex_task_of_a_small_model():
    natural = Tables(tasks=6, power=2.0).shares()
    raised = natural | {"f06": 8 * natural["f06"]}
    without, given = (np.mean([trained(weights, seed)[5] for seed in range(3)]) for weights in (natural, raised))
    assert without < 0.7
    assert given > without + 0.2
