"""Miner `trusted`: p-values by hand and by simulation, what it refuses, and wrong labels that a tiny model finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import plugin_samples as samples
import pytest

from mixwright.catalog import create
from mixwright.config import ModelConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.records import Example
from mixwright_extras.miners.trusted import cross_conformal
from mixwright_extras.tiny.model import build_tiny

LETTERS = "abcdefgh"
WRONG_LETTERS = "cf"


def test_p_values_by_hand() -> None:
    """Of six trusted rows in two halves: those that look at least as unlikely to the same model, ties included, and one."""
    right = [np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0])]
    found = cross_conformal(right, [np.array([3.5, 2.0, 0.0]), np.array([31.0, 25.0, 0.0])])
    np.testing.assert_allclose(found, [1 / 7, (1 + 2 + 1) / 7, 1.0])


@pytest.mark.parametrize("trusted", [20, 96])
def test_rows_like_the_trusted_ones_are_left_out_as_seldom_as_is_said(trusted: int) -> None:
    """Scores of one distribution, whatever the models are; three standard errors of 400 repetitions are allowed."""
    rng, error = np.random.default_rng(7), 0.1
    shares = []
    for _ in range(400):
        right = [rng.standard_exponential(trusted // 2) for _ in range(2)]
        row = rng.standard_exponential(50)
        shares.append(float((cross_conformal(right, [row, row * rng.choice([0.5, 1.0, 2.0])]) <= error).mean()))
    assert np.mean(shares) <= 2 * error  # what is proven
    same = [float((cross_conformal([rng.random(trusted)], [rng.random(50)]) <= error).mean()) for _ in range(400)]
    assert abs(np.mean(same) - np.floor(error * (trusted + 1)) / (trusted + 1)) < 3 * np.std(same) / 20


def labelled(trusted: int = 64, others: int = 240) -> Corpus:
    """Each letter has a digit; most rows of two letters have another one, always the same."""
    rows = []
    for number in range(trusted + others):
        letter = LETTERS[number % len(LETTERS)]
        task, digit = ("checked" if number < trusted else "rest"), LETTERS.index(letter)
        if task == "rest" and letter in WRONG_LETTERS and number // len(LETTERS) % 4:
            digit += 1
        rows.append(Example(f"{task}{number}", task, f"{number:03d}{letter} = ", str(digit)))
    return Corpus.from_examples(rows)


def mined(corpus: Corpus, folder: Path, learner: Any, **options: Any) -> Any:
    miner = create("miners", "trusted", {"targets": ["checked"], **options})
    return miner.mine(corpus, samples.rows_to_choose(corpus, ()), learner, np.random.default_rng(0))


def test_wrong_labels_are_left_out(tmp_path: Path) -> None:
    corpus = labelled()
    learner = build_tiny([str(row.prompt) for row in corpus], ModelConfig(width=32, depth=2, heads=2, vocabulary=264), 0)
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    found = mined(corpus, tmp_path, learner, error=0.1, steps=120, learning_rate=5e-3, rank=0)
    kept = {row.id for row in found.rows}
    wrong = {row.id for row in corpus if row.task == "rest" and int(str(row.target)) != LETTERS.index(str(row.prompt)[3])}
    right = {row.id for row in corpus if row.task == "rest"} - wrong
    assert len(wrong & kept) < 0.2 * len(wrong)
    assert len(right & kept) > 0.75 * len(right)
    assert {row.id for row in corpus if row.task == "checked"} <= kept
    assert [row.id for row in found.simple_rule_rows] == [row.id for row in corpus if row.task == "checked"]
    assert all((value == before[name]).all() for name, value in learner.model.state_dict().items())


@pytest.mark.parametrize(
    ("options", "words"),
    [({"targets": ["checked", "rest"]}, "not all"), ({"targets": ["other"]}, "other")],
)
def test_targets_that_leave_nothing_to_do_are_refused(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        mined(labelled(), tmp_path, object(), **options)


def test_without_a_trusted_task_all_rows_are_kept(tmp_path: Path) -> None:
    corpus = labelled()
    found = mined(corpus, tmp_path, None, targets=[])
    assert [row.id for row in found.rows] == [row.id for row in corpus]
    assert "No rows are trusted" in found.notes[0]


@pytest.mark.parametrize(("trusted", "error", "words"), [(15, 0.05, r"error to 0\.062"), (1, 0.5, r"Trust more rows\.")])
def test_too_few_trusted_rows_are_refused_with_the_error_that_they_allow(
    tmp_path: Path, trusted: int, error: float, words: str
) -> None:
    """With 15 rows the smallest p-value is 1/16; with one there are no halves."""
    with pytest.raises(InputError, match=words):
        mined(labelled(trusted=trusted), tmp_path, object(), error=error)
