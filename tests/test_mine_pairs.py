"""Pairs of right and wrong answers: distances, classes of errors, near misses, balance of lengths, the null; by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from mixwright.catalog import create
from mixwright.conformance import samples
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.learner.learner import Completion
from mixwright.mine.pairing import (
    Candidate,
    balance_by_length,
    closeness,
    distance,
    error_class,
    longer_chosen_share,
    measure_margins,
    near_misses,
)
from mixwright.mine.stage import mine, write_mined
from mixwright.records import Example


def pair(place: int, near: float, longer: int) -> Candidate:
    return Candidate(place, f"right {place}", f"wrong {place} {near} {longer}", "value", near, longer, model_wrote_both=True)


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "abc", 0), ("flaw", "lawn", 2), ("abcd", "bcda", 2)],
)
def test_the_edit_distance_is_levenshteins(one: str, other: str, edits: int) -> None:
    assert distance(list(one), list(other)) == edits == distance(list(other), list(one))
    assert closeness(one, other) == pytest.approx(1 - edits / max(len(one), len(other)))


def test_long_texts_are_compared_by_words() -> None:
    words = [f"word{n}" for n in range(200)]
    assert closeness(" ".join(words), " ".join(["other", *words[1:]])) == pytest.approx(1 - 1 / 200)


@pytest.mark.parametrize(
    ("chosen", "rejected", "cut", "kind"),
    [
        ("add(3, 5)", "add(3, 6)", False, "value"),
        ("sub(3, 5)", "sub(5, 3)", False, "order"),
        ("42", "", False, "empty"),
        ("42", "4", True, "cut"),
    ],
)
def test_wrong_answers_have_a_class(chosen: str, rejected: str, cut: bool, kind: str) -> None:
    assert error_class(chosen, rejected, cut=cut) == kind


def test_near_misses_are_one_edit_away_and_say_which() -> None:
    found = list(near_misses("add(31, 5)", np.random.default_rng(0)))
    kinds = {kind for _, kind in found}
    assert kinds == {"edited: a digit", "edited: two words swapped", "edited: a word left out"}
    assert all(text != "add(31, 5)" for text, _ in found)
    assert all(len(text) == 10 for text, kind in found if kind == "edited: a digit")
    assert list(near_misses("", np.random.default_rng(0))) == []


def test_the_closest_pair_is_taken_where_length_says_nothing() -> None:
    options = [[pair(0, 0.2, 1), pair(0, 0.9, 1)], [pair(1, 0.8, -1)]]
    found, left_out = balance_by_length(options, 0.0)
    assert [(p.prompt_index, p.closeness) for p in found] == [(0, 0.9), (1, 0.8)]
    assert (left_out, longer_chosen_share(found)) == (0, 0.5)


def test_pairs_are_changed_before_they_are_left_out() -> None:
    options = [[pair(n, 0.9, 3), pair(n, 0.9 - 0.1 * n, -2)] for n in range(4)]
    found, left_out = balance_by_length(options, 0.0)
    assert left_out == 0
    assert [p.token_difference for p in found] == [-2, -2, 3, 3]  # where the least closeness is given up
    alone, left_out = balance_by_length([[pair(n, 0.1 * n, 2)] for n in range(6)] + [[pair(6, 0.5, -1)]], 0.0)
    assert left_out == 5
    assert [p.prompt_index for p in alone] == [5, 6]


@pytest.mark.parametrize("tolerance", [0.0, 0.05, 0.3])
def test_length_never_tells_more_than_is_allowed(tolerance: float) -> None:
    rng = np.random.default_rng(1)
    options = [[pair(n, float(rng.random()), int(rng.integers(-2, 6))) for _ in range(3)] for n in range(60)]
    found, _ = balance_by_length(options, tolerance)
    assert abs(longer_chosen_share(found) - 0.5) <= tolerance + 1 / len(found)


class Words:
    """A learner that answers what it is told, per prompt."""

    context = 200

    def __init__(self, said: dict[str, list[str]]) -> None:
        self.said = said
        self.tokenizer = type(
            "T", (), {"eos_token_id": 0, "__call__": lambda _, text, **__: {"input_ids": [*map(ord, text)]}}
        )()

    def encode(self, prompt: str) -> list[int]:
        return [1] * len(prompt)

    def sample(self, prompts: list[str], *, count: int, **_: Any) -> list[list[Completion]]:
        return [[Completion(text, (1,), (0.0,), text != "...") for text in self.said[prompt]] for prompt in prompts]

    def logprobs(self, prompts: list[str], completions: list[list[Any]]) -> list[list[float]]:
        return [[-1.0] * len(own) for own in completions]


def corpus() -> Corpus:
    rows = [Example(f"r{n}", "add", f"{n} + 1 =", answer=str(n + 1)) for n in range(10, 16)]
    return Corpus.from_examples([*rows, Example("e", "add", "70 + 1 =", answer="71", split="eval")], {"add": "numeric"})


def said() -> dict[str, list[str]]:
    told = {f"{n} + 1 =": [str(n + 1), str(n + 2), "99"] for n in range(10, 14)}
    return told | {"14 + 1 =": ["12", "..."], "15 + 1 =": ["16", "16"]}


def test_pairs_are_right_and_wrong_answers_to_one_prompt(tmp_path: Path) -> None:
    data = corpus()
    learner: Any = Words(said())
    found = mine(create("miners", "pairs"), "pairs", data, samples.scan(data, tmp_path, ("n_tokens",)), learner)
    made = {example.extra["parents"][0]: example for example in found.mined.new_rows}
    assert set(made) == {f"r{n}" for n in range(10, 16)}  # the held-out row is not among them
    for example in made.values():
        assert example.split == "train"
        assert data.grade(example, str(example.chosen)) == 1.0
        assert data.grade(example, str(example.rejected)) == 0.0
    assert (made["r11"].chosen, made["r11"].rejected) == ("12", "13")  # nearer than 99
    assert (made["r14"].chosen, made["r14"].rejected) == ("15", "12")  # the data's answer; what was cut is left out
    assert str(made["r15"].extra["error_class"]).startswith("edited")  # never wrong: the right answer is edited
    assert made["r11"].extra["margin"] == 0.0  # both have three tokens, the end token included
    assert found.mined.rollouts == 6 * 8
    path = write_mined(found, tmp_path / "mine")
    assert json.loads(path.with_suffix(".json").read_text())["price"].startswith("48 rollouts")


def test_a_margin_is_above_zero_where_the_right_answer_is_likelier() -> None:
    learner: Any = Words({})  # a nat per token
    row = Example("r", "add", "3 + 1 =", answer="4")
    pairs = [
        Candidate(0, "4", "444", "value", 0.5, -2, model_wrote_both=True),
        Candidate(0, "444", "4", "value", 0.5, 2, model_wrote_both=True),
    ]
    assert measure_margins(learner, [row], pairs).tolist() == [2.0, -2.0]


def test_the_null_has_the_same_prompts_and_chosen_answers(tmp_path: Path) -> None:
    data = corpus()
    learner: Any = Words(said())
    found = mine(create("miners", "pairs"), "pairs", data, samples.scan(data, tmp_path, ("n_tokens",)), learner)
    null = found.mined.null_rows
    assert [(row.prompt, row.chosen) for row in null] == [(row.prompt, row.chosen) for row in found.mined.new_rows]
    wrong = {text for own in said().values() for text in own}
    assert all(row.rejected in wrong and data.grade(row, str(row.rejected)) == 0.0 for row in null)
    path = write_mined(found, tmp_path / "mine")
    assert pq.read_table(path.with_name("pairs.random_like.parquet")).num_rows == len(null) == 6


def test_without_any_pair_the_miner_says_so(tmp_path: Path) -> None:
    data = corpus()
    learner: Any = Words({example.prompt: ["7"] for example in data if isinstance(example.prompt, str)})
    scan, miner = samples.scan(data, tmp_path, ("n_tokens",)), create("miners", "pairs", {"targets": False})
    with pytest.raises(InputError, match="right and a wrong answer"):
        miner.mine(data, scan, learner, np.random.default_rng(0))
    with pytest.raises(InputError, match="a model"):
        miner.mine(data, scan, None, np.random.default_rng(0))
