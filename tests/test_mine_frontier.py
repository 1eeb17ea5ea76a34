"""Miner `frontier`: candidates of one prompt, what short trainings choose, and a null of as many prompts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plugin_samples as samples
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mixwright.catalog import create
from mixwright.config import ModelConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.mine.choosing import TrainRows, train_rows
from mixwright.mine.stage import mine
from mixwright.records import Example
from mixwright.trial.data_rows import choose_rows, read_data
from mixwright_extras.miners import frontier
from mixwright_extras.mining.candidates import (
    Candidates,
    candidates_of,
    lowest_per_prompt,
    random_per_prompt,
    train_on_each_source,
)
from mixwright_extras.tiny.model import build_tiny

PROMPTS = 80


def two_sources(*, answers: bool = True) -> Corpus:
    """80 prompts with an answer of each of two sources, one with a single answer, and held-out ones."""
    rows = []
    for number in range(PROMPTS + 8):
        prompt, gold = f"{number:02d} last = ", str(number % 10)
        split = "train" if number < PROMPTS else "eval"
        for source, text in (("long", f"{number:02d}: {gold}"), ("short", gold)):
            made = {"task": "last", "prompt": prompt, "target": text, "answer": gold if answers else None}
            rows.append(Example(f"{source}{number}", split=split, extra={"source": source}, **made))
    rows.append(Example("alone", "last", "7 alone = ", "7", "7" if answers else None, extra={"source": "long"}))
    return Corpus.from_examples(rows)


def rows_of(corpus: Corpus, **values: Any) -> TrainRows:
    """Rows whose columns are functions of the row's id."""
    rows = train_rows(corpus)
    return replace(rows, columns={name: np.array([value(own) for own in rows.ids]) for name, value in values.items()})


def mined_by(corpus: Corpus, rows: TrainRows, learner: Any = None, **options: Any) -> Any:
    return create("miners", "frontier", options).mine(corpus, rows, learner, np.random.default_rng(0))


def test_candidates_share_a_task_and_a_prompt(tmp_path: Path) -> None:
    texts = [("a", "1 ", "x"), ("a", "1", "y"), ("b", "1", "x"), ("a", "2", None)]
    rows = [Example(str(n), t, p, "1", source="f.jsonl:3", extra={"who": s}) for n, (t, p, s) in enumerate(texts)]
    corpus = Corpus.from_examples(rows)
    found = candidates_of(corpus, samples.rows_to_choose(corpus, ("nll",)), "who")
    assert found.prompt_ids.tolist() == [0, 0, 1, 2]
    assert found.sources.tolist() == ["x", "y", "x", "f.jsonl"]
    assert found.has_alternatives.tolist() == [True, True, False, False]


def test_the_lowest_of_each_prompt() -> None:
    values, prompts = np.array([2.0, 1.0, np.nan, 5.0, np.nan, 3.0, 3.0]), np.array([0, 0, 1, 1, 2, 3, 3])
    assert lowest_per_prompt(values, prompts).tolist() == [1, 3, 4, 5]
    drawn = Counter(int(random_per_prompt(np.zeros(4, dtype=int), np.random.default_rng(seed))[0]) for seed in range(200))
    assert min(drawn[place] for place in range(4)) > 30


def made_up(chances: dict[str, float], seeds: int = 4) -> Any:
    """`train_on_each_source` of two sources whose copies are right that often; a mix is right half of the times."""
    sources = np.array(["x", "y"] * 40)
    found = Candidates(np.repeat(np.arange(40), 2), sources, np.array(["t"] * 80))

    def train(places: np.ndarray, seed: int) -> np.ndarray:
        own = set(sources[places].tolist())
        chance = chances[own.pop()] if len(own) == 1 else 0.5
        return (np.random.default_rng([seed, len(places), int(places.sum())]).random(60) < chance).astype(float)

    return train_on_each_source(found, np.ones(80, dtype=bool), train, np.zeros(60), np.array(["t"] * 60), range(seeds))["t"]


def test_a_source_wins_where_its_copies_beat_those_of_a_mix() -> None:
    told = made_up({"x": 0.9, "y": 0.1})
    assert (told.winner, told.worse_than_mix, told.order) == ("x", ["y"], ["x", "y"])
    assert told.gains["x"].value == pytest.approx(0.4, abs=0.1)
    even = made_up({"x": 0.5, "y": 0.5})
    assert (even.winner, even.worse_than_mix) == (None, [])
    assert made_up({"x": 0.5, "y": 0.1}).winner is None
    assert made_up({"x": 0.1, "y": 0.1}).winner is None


def test_of_a_task_with_a_winner_its_rows_are_kept_and_of_others_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = two_sources()
    rows = rows_of(corpus, nll=lambda _: 1.0, nll_max=lambda own: 4.0 if own.startswith("short") else 9.0)
    told = made_up({"x": 0.9, "y": 0.1})
    names = {"x": "short", "y": "long"}
    renamed = {
        field: {names[key]: value for key, value in getattr(told, field).items()}
        for field in ("accuracy", "gains", "p_by_source")
    }
    won = type(told)(told.accuracy_before, told.mix_accuracy, **renamed)
    monkeypatch.setattr(frontier, "try_sources", lambda *_: ({"last": won}, ["how"], 7))
    found = mined_by(corpus, rows, object())
    assert {row.id for row in found.rows} == {f"short{n}" for n in range(PROMPTS)} | {"alone"}
    assert found.rollouts == 7
    assert any("median nll_max 9 against 4" in note for note in found.notes)
    even = {
        "accuracy": dict.fromkeys(won.accuracy, 0.5),
        "gains": won.gains,
        "p_by_source": dict.fromkeys(won.p_by_source, 1.0),
    }
    monkeypatch.setattr(frontier, "try_sources", lambda *_: ({"last": type(told)(0.1, 0.5, **even)}, [], 7))
    assert len(mined_by(corpus, rows, object()).rows) == 2 * PROMPTS + 1
    monkeypatch.setattr(frontier, "try_sources", lambda *_: ({}, [], 0))
    found = mined_by(corpus, rows, object())
    assert len(found.rows) == PROMPTS + 1
    assert any("no answers to grade" in note for note in found.notes)


def test_short_trainings_of_a_real_model(tmp_path: Path) -> None:
    corpus = two_sources()
    learner = build_tiny([str(row.prompt) for row in corpus], ModelConfig(width=16, depth=1, heads=2, vocabulary=264), 0)
    rows = rows_of(corpus, nll=lambda _: 1.0, nll_max=lambda _: 2.0)
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    found = [mined_by(corpus, rows, learner, steps=2, runs=2, batch=4) for _ in range(2)]
    assert found[0] == found[1]
    assert all(bool((value == before[name]).all()) for name, value in learner.model.state_dict().items())
    assert found[0].rollouts == 16 * (2 * 3 + 1)
    assert found[0].notes[0] == "6 short trainings of 2 steps, each tested on 16 held-back training prompts."
    miner = create("miners", "frontier", {"steps": 2, "runs": 2, "batch": 4})
    assert mine(miner, "frontier", corpus, rows, learner)[1].tasks["last"].training_rows == 2 * PROMPTS + 1
    ungraded = mined_by(two_sources(answers=False), rows, learner, steps=2)
    assert (ungraded.rollouts, len(ungraded.rows)) == (0, PROMPTS + 1)


def test_what_cannot_be_chosen_between_is_said(tmp_path: Path) -> None:
    corpus = samples.minable()
    found = mined_by(corpus, samples.rows_to_choose(corpus, ("nll", "nll_max")))
    assert len(found.rows) == 96
    assert "No prompt has two candidates" in found.notes[0]
    other = two_sources()
    rows = rows_of(other, nll=lambda _: 1.0, nll_max=lambda _: 2.0)
    with pytest.raises(InputError, match="one source"):
        mined_by(other, rows, object(), source="nobody")
    with pytest.raises(InputError, match="a model for short trainings"):
        mined_by(other, rows)


def test_random_rows_are_of_as_many_prompts(tmp_path: Path) -> None:
    corpus = two_sources()
    ids = [f"short{n}" for n in range(PROMPTS)]
    pq.write_table(pa.table({"id": ids}), tmp_path / "x.parquet")
    pq.write_table(pa.table({"id": [*ids[:-1], "long0"]}), tmp_path / "y.parquet")
    once, twice = (read_data(tmp_path / f"{name}.parquet", corpus) for name in "xy")
    assert once.digest_of_rows("random_like") != twice.digest_of_rows("random_like")
    for seed in range(5):
        drawn = choose_rows("random_like", corpus, once, seed)
        prompts = {row.prompt for row in drawn}
        assert len(drawn) == len(prompts) == PROMPTS
        assert 20 < sum(row.extra["source"] == "short" for row in drawn) < 60
    assert len({row.prompt for row in choose_rows("random_like", corpus, twice, 0)}) < PROMPTS
