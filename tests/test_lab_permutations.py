"""The world of permutations by hand, its ways to spoil traces, and that the finding on traces reads what it says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mixwright import catalog
from mixwright.errors import InputError
from mixwright_lab.findings import traces
from mixwright_lab.training.gpt import GPT
from mixwright_lab.worlds import permutations
from mixwright_lab.worlds.permutations import EMPTY, LETTERS, SPOILINGS, Permutations


def test_each_letter_permutes_and_the_trace_carries_the_digit():
    world = Permutations(seed=2)
    assert (np.sort(world.tables, axis=1) == np.arange(10)).all()
    for index in range(20):
        example = world.make(index, 5.0, "train")
        start, *letters = str(example.prompt).split()
        digit, expected = int(start), []
        for letter in letters:
            digit = int(world.tables[LETTERS.index(letter)][digit])
            expected += [letter, str(digit)]
        assert len(letters) == 5
        assert str(example.target).split() == [*expected, "#", str(digit)]
        assert example.answer == str(digit)


def test_the_order_of_letters_matters():
    tables = Permutations().tables
    assert any(a[b].tolist() != b[a].tolist() for a in tables for b in tables)


@pytest.mark.parametrize("length", [1, 6])
def test_splits_share_no_problem_and_leave_a_seventh_to_eval(length: int):
    world, rng, found = Permutations(), np.random.default_rng(0), {}
    for split in ("train", "eval"):
        starts, letters = world.problems(300, length, split, rng)
        number = np.array([sum(int(letter) * 6**place for place, letter in enumerate(row)) for row in letters])
        found[split] = {(int(start), tuple(row.tolist())) for start, row in zip(starts, letters, strict=True)}
        assert set((number % 7 == starts % 7).tolist()) == {split == "eval"}
    assert not found["train"] & found["eval"]


@pytest.fixture
def made() -> tuple[np.ndarray, np.ndarray]:
    world = Permutations(seed=1)
    starts, letters = world.problems(2000, 6, "train", np.random.default_rng(3))
    return letters, world.states(starts, letters)


def test_damage_to_content_leaves_letters_and_damages_as_many_digits_as_it_says(made: tuple[np.ndarray, np.ndarray]):
    letters, states = made
    for way, share, wrong in (
        ("clean", 1.0, 0.0),
        ("uniform", 0.5, 0.45),
        ("systematic", 0.5, 0.5),
        ("systematic", 1.0, 1.0),
    ):
        kept, changed = permutations.spoiled(letters, states, way, share, np.random.default_rng(0))
        assert (kept == letters).all()
        assert (changed != states).mean() == pytest.approx(wrong, abs=0.02), way
        if way == "systematic":
            assert set(np.unique((changed - states) % 10)) <= {0, 1}


def test_shuffled_steps_are_the_same_steps_in_another_order(made: tuple[np.ndarray, np.ndarray]):
    letters, states = made
    for share, places in ((0.33, 2), (0.67, 4), (1.0, 6)):
        moved, digits = permutations.spoiled(letters, states, "shuffle", share, np.random.default_rng(0))
        steps = np.sort(letters * 10 + states, axis=1)
        assert (np.sort(moved * 10 + digits, axis=1) == steps).all()
        away = (moved * 10 + digits != letters * 10 + states).sum(1)
        assert away.max() == places


def test_steps_are_left_out_and_replaced(made: tuple[np.ndarray, np.ndarray]):
    letters, states = made
    out, _ = permutations.spoiled(letters, states, "delete", 0.67, np.random.default_rng(0))
    assert (out == EMPTY).mean() == pytest.approx(0.67, abs=0.02)
    assert (out == letters)[out != EMPTY].all()
    other, digits = permutations.spoiled(letters, states, "insert", 0.67, np.random.default_rng(0))
    # A foreign step is the same one in 1 of 6 * 10 cases.
    assert ((other != letters) | (digits != states)).mean() == pytest.approx(0.67 * 59 / 60, abs=0.02)
    assert permutations.texts(out[:1] * 0 + EMPTY, states[:1], states[:1, -1]) == [f"# {states[0, -1]}"]


def test_the_originals_are_left_as_they_are(made: tuple[np.ndarray, np.ndarray]):
    letters, states = (array.copy() for array in made)
    for way in SPOILINGS:
        permutations.spoiled(*made, way, 1.0, np.random.default_rng(0))
    assert (made[0] == letters).all()
    assert (made[1] == states).all()


def test_what_there_is_not_is_refused(made: tuple[np.ndarray, np.ndarray]):
    with pytest.raises(InputError, match="one of clean"):
        permutations.spoiled(*made, "blur", 0.5, np.random.default_rng(0))


def test_a_model_that_writes_right_traces_is_read_as_right():
    """Weights stay as drawn; the sampler is replaced by one that writes the true trace, or one with a wrong answer."""
    finding = catalog.create("findings", "traces")
    settings = finding.SCALES["smoke"]
    world, language = Permutations(seed=4), permutations.language()

    class Scribe(GPT):
        def sample(self, prompts: torch.Tensor, *_: object, greedy: bool, **__: object) -> torch.Tensor:
            rows = [language.decode(row).split() for row in prompts.tolist()]
            starts, letters = (
                np.array([int(row[0]) for row in rows]),
                np.array([[LETTERS.index(x) for x in r[1:]] for r in rows]),
            )
            states = world.states(starts, letters)
            answers = (states[:, -1] + (0 if greedy else 1)) % 10
            return language.encode_responses(permutations.texts(letters, states, answers))[:, None]

    found = traces.readings(Scribe(language, 16), world, 4, settings)
    assert found["greedy"] == found["all steps right, greedy"] == found["all steps right, sampled"] == 1.0
    assert found["sampled"] == 0.0
