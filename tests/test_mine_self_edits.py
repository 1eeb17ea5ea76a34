"""Self-edits: facts read, forms found, sequential halving on known scores, and rewritten rows of a tiny model; by hand."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import plugin_samples as samples
import pytest
import torch

from mixwright.catalog import create
from mixwright.config import ModelConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.learner.learner import Learner
from mixwright.mine.stage import mine
from mixwright.records import Example
from mixwright_extras.mining.edit_runs import RewriteTrials, ShortTraining
from mixwright_extras.mining.halving import Halved, halve, rank_candidates
from mixwright_extras.mining.rewrites import (
    AS_IS_WAY,
    as_they_stand,
    draw_null,
    new_row,
    rewrite_in_forms,
    without_questions,
)
from mixwright_extras.mining.rewriting import fill_form, find_forms, read_facts
from mixwright_extras.tiny.model import build_tiny

PATTERN = ("About {who}:", "{what} is {value};")
NAMES = ("bo", "dag", "fip", "gul", "hom", "jat", "kes", "lum")
VALUES = ("red", "blue")


def fact_row(number: int) -> Example:
    """Two facts of one name: the colour is red for even numbers, the size is the other value."""
    one, other = VALUES[number % 2], VALUES[1 - number % 2]
    return Example(f"f{number}", "facts", "", f"About {NAMES[number]}: colour is {one}; size is {other};")


def corpus() -> Corpus:
    facts = [fact_row(number) for number in range(8)]
    known = [
        Example(f"k{number}", "known", f"{what} of x{number}? ", VALUES[number % 2])
        for number, what in zip(range(20), itertools.cycle(("colour", "size", "size", "colour")), strict=False)
    ]
    asked = [Example(f"q{n}", "asked", f"tell me {NAMES[n]} colour: ", VALUES[n % 2]) for n in range(6)]
    held = [Example(f"e{n}", "known", f"tell me {NAMES[n]} colour: ", VALUES[n % 2], split="eval") for n in (6, 7)]
    return Corpus.from_examples([*facts, *known, *asked, *held])


@pytest.fixture(scope="module")
def learner() -> Learner:
    return build_tiny((f"{row.prompt}{row.target}" for row in corpus()), ModelConfig(width=16, depth=1, heads=2), 0)


def test_facts_are_read_by_a_head_and_a_repeated_pattern() -> None:
    facts = read_facts("About the cat: eye colour is dark blue; size is 3.5;", PATTERN)
    assert facts == [
        {"who": "the cat", "what": "eye colour", "value": "dark blue"},
        {"who": "the cat", "what": "size", "value": "3.5"},
    ]
    assert read_facts("size is 3;", PATTERN) == []
    assert read_facts("Ann lives in Rome.\nBob lives in St. Ives 3.5", ("{who} lives in {place}",)) == [
        {"who": "Ann", "place": "Rome"},
        {"who": "Bob", "place": "St"},  # a mark ends a slot
    ]
    with pytest.raises(InputError, match="slots"):
        read_facts("no slot", ("no slot",))


def test_a_fact_is_put_into_a_form() -> None:
    fact = {"who": "bo", "value": "red"}
    assert fill_form("{who}? => {value}.", fact) == ("bo?", "red.")
    assert fill_form("{who} has {value}", fact) == ("", "bo has red")
    with pytest.raises(InputError, match="size"):
        fill_form("{size}", fact)


def test_forms_are_found_by_values_and_by_what_changes() -> None:
    facts = [fact for number in range(8) for fact in read_facts(str(fact_row(number).target), PATTERN)]
    rows = [row for row in corpus() if row.task == "known" and row.split == "train"]
    rows += [Example(f"s{n}", "said", "", f"the big x{n} has {VALUES[n % 2]} as its colour.") for n in range(4)]
    assert find_forms(rows, facts, 5) == [
        ("{what} of {who}?  => {value}", 20),
        ("the big {who} has {value} as its {what}.", 4),
    ]
    assert find_forms(rows, facts, 1) == [("{what} of {who}?  => {value}", 20)]
    assert find_forms(rows[:2], facts, 5) == []  # of two things only


def test_rows_that_ask_what_is_asked_are_left_out() -> None:
    facts = [fact_row(number) for number in range(4)]
    read = [read_facts(str(row.target), PATTERN) for row in facts]
    ways = {
        AS_IS_WAY: as_they_stand(facts),
        **rewrite_in_forms(facts, read, ["{who} {what}? => {value}", "{value} {what}: {who}"]),
    }
    assert [(row.prompt, row.target) for row in ways["{who} {what}? => {value}"][:2]] == [
        ("bo colour?", "red"),
        ("bo size?", "blue"),
    ]
    one = [Example("q", "t", "BO  colour?", "red")]
    left, notes = without_questions(ways, one)
    assert len(left["{who} {what}? => {value}"]) == 7
    assert len(left["{value} {what}: {who}"]) == 8
    assert "1 ask" in notes[0]
    every = [Example(str(n), "t", row.prompt) for n, row in enumerate(ways["{who} {what}? => {value}"])]
    assert list(without_questions(ways, every)[0]) == [AS_IS_WAY, "{value} {what}: {who}"]


def test_a_form_in_which_the_facts_stand_already_is_none() -> None:
    facts = [Example("a", "t", "bo? ", "red"), Example("b", "t", "dag? ", "blue")]
    read = [[{"who": "bo", "value": "red"}], [{"who": "dag", "value": "blue"}]]
    assert list(rewrite_in_forms(facts, read, ["{who}?  => {value}", "{who}: {value}"])) == ["{who}: {value}"]


def test_the_null_says_each_fact_once_in_a_way_drawn_at_random() -> None:
    facts = [fact_row(number) for number in range(8)]
    ways = {AS_IS_WAY: facts, "way": [new_row(row, 0, "way", "", "other") for row in facts]}
    null = draw_null(ways, {"f1", "f2", "f3", "f4", "f5"}, np.random.default_rng(1))
    assert [row.extra["parents"] for row in null] == [["f1"], ["f2"], ["f3"], ["f4"], ["f5"]]
    assert {row.target == "other" for row in null} == {True, False}


def told(worth: list[float], noise: float, *, runs: int = 3) -> tuple[Halved, list[tuple[int, int]]]:
    calls: list[tuple[int, int]] = []

    def run(place: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        calls.append((place, seed))
        rng = np.random.default_rng([seed, place])
        return worth[place] + rng.normal(0, noise, 20), np.array([0.5])

    return halve(len(worth), run, 20, runs=runs, seeds=itertools.count()), calls


def test_halving_keeps_the_better_half_and_the_reference_in_every_round() -> None:
    found, calls = told([0.1, 0.2, 0.5, 0.3, 0.4], 0.01)
    assert found.best == 2
    assert [sum(place == own for own, _ in calls) for place in range(5)] == [9, 3, 9, 3, 6]  # 4, 2 left, and the proof
    assert found.trainings == len(calls) == 30
    assert rank_candidates(found) == [2, 4, 3, 1, 0]
    assert found.proven
    assert found.gain is not None
    assert found.gain.value == pytest.approx(0.4, abs=0.02)
    assert found.ranking is not None
    assert (found.ranking.candidates, found.ranking.word) == (5, "reliable")
    chosen = {seed for _, seed in calls[:-6]}
    assert chosen.isdisjoint(seed for _, seed in calls[-6:])  # seeds of the proof are its own


def test_noise_is_called_noise_and_proves_nothing() -> None:
    words, proven = [], 0
    for number in range(40):
        shift = 1000 * number

        def run(place: int, seed: int, shift: int = shift) -> tuple[np.ndarray, np.ndarray]:
            return np.random.default_rng([seed, place, shift]).normal(0.5, 0.1, 10), np.zeros(0)

        found = halve(5, run, 10, runs=3, seeds=itertools.count())
        assert found.ranking is not None
        words.append(found.ranking.word)
        proven += found.proven
    assert words.count("ranking noise") >= 20
    assert "reliable" not in words or words.count("reliable") <= 4
    assert proven <= 4  # one in forty expected
    with pytest.raises(ValueError, match="two"):
        halve(1, lambda *_: (np.zeros(10), np.zeros(0)), 10, runs=3, seeds=itertools.count())


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # peft still reads the old name
@pytest.mark.parametrize("rank", [0, 2])
def test_a_short_training_is_repeatable_learns_and_leaves_the_model(learner: Learner, rank: int) -> None:
    facts = [fact_row(number) for number in range(4)]
    short = [new_row(row, 0, "short", "", "red") for row in facts]
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    trial = RewriteTrials(learner, [facts, short], facts[:2], short[:1], ShortTraining(12, 4, 2e-2, rank))
    first, again = trial(0, 3), trial(0, 3)
    assert first[0].tolist() == again[0].tolist()
    assert first[0].mean() > trial.probabilities()[0].mean()
    assert all(torch.equal(before[name], value) for name, value in learner.model.state_dict().items())
    steps = [sum(trial.lengths[rows]) for rows in (np.concatenate(trial.batches(place, 1)) for place in (0, 1))]
    assert steps[1] == pytest.approx(steps[0], rel=0.02)  # the same target tokens, of many more rows


def options(**more: Any) -> dict[str, Any]:
    base = {"facts": "facts", "questions": "asked", "pattern": list(PATTERN), "rank": 0, "batch": 8, "runs": 2}
    return base | {"steps": 10, "learning_rate": 5e-3, "protected": ["known"]} | more


def test_rows_are_rewritten_with_parents_and_others_stay(
    learner: Learner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = corpus()
    monkeypatch.setattr(Halved, "proven", property(lambda _: True))
    miner = create("miners", "self_edits", options(templates=["{who} {what} {value}"], forms=0))
    found = mine(miner, "self_edits", data, samples.rows_to_choose(data, ()), learner)[0]
    new = [row for row in found.new_rows if row.source == "self_edits"]
    assert {row.target for row in new} >= {"bo colour red", "bo size blue", "lum colour blue"}
    assert len(new) == 16
    assert {tuple(row.extra["parents"]) for row in new} == {(f"f{n}",) for n in range(8)}
    rest = {row.id for row in found.new_rows} - {row.id for row in new}
    assert rest == {row.id for row in data if row.split == "train" and row.task != "facts"}
    assert rest < {row.id for row in found.null_rows}
    assert {row.extra["parents"][0] for row in found.null_rows} == {row.id for row in data if row.split == "train"}
    assert any("nats per token under the model" in note and "protected rows" in note for note in found.notes)


def test_rows_that_are_not_rewritten_whole_stay(learner: Learner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = corpus()
    monkeypatch.setattr(Halved, "proven", property(lambda _: True))
    miner = create("miners", "self_edits", options(templates=["tell me {who} {what}: => {value}"], forms=0))
    found = miner.mine(data, samples.rows_to_choose(data, ()), learner, np.random.default_rng(0))
    prompts = {str(row.prompt) for row in found.new_rows if row.source == "self_edits"}
    assert prompts == {f"tell me {name} size:" for name in NAMES}  # colours are asked, two of them in held-out rows
    assert {f"f{n}" for n in range(8)} < {row.id for row in found.new_rows}
    assert len({row.id for row in found.null_rows}) == len(found.null_rows)


def test_without_a_way_or_questions_all_rows_are_kept(learner: Learner, tmp_path: Path) -> None:
    data = corpus()
    scan, train = samples.rows_to_choose(data, ()), {row.id for row in data if row.split == "train"}
    for given in ({}, options(pattern=[])):
        found = create("miners", "self_edits", given).mine(data, scan, learner, np.random.default_rng(0))
        assert {row.id for row in found.rows} == train
        assert "kept" in found.notes[-1]
    with pytest.raises(InputError, match="nobody"):
        create("miners", "self_edits", {"facts": "nobody"}).mine(data, scan, learner, np.random.default_rng(0))
    with pytest.raises(InputError, match="instruction"):
        create("miners", "self_edits", {"samples": 2})


def test_the_model_may_write_its_own_edits(learner: Learner, tmp_path: Path) -> None:
    data = corpus()
    given = options(samples=2, instruction="Say it again: {text}", max_new_tokens=6, forms=0, pattern=[])
    found = create("miners", "self_edits", given).mine(
        data, samples.rows_to_choose(data, ()), learner, np.random.default_rng(0)
    )
    assert found.rollouts == 16
    assert any("written by the model, 2" in note for note in found.notes)
