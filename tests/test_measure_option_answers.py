"""Answers by likelihood: options read beside the whole sequence, the likeliest, draws, and rows that are still written."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_call import Call, write
from test_direct import FAST, checkpoint, manifest
from trainers_tiny import model, tokenizer

from mixwright.answers.table import Answers
from mixwright.config import CorpusConfig, MeasureConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.graders.choice import Choice
from mixwright.learner.alternatives import read_alternatives
from mixwright.learner.learner import Learner
from mixwright.learner.warmup import completion_tokens
from mixwright.measure.kept_answers import KeepingLearner
from mixwright.measure.option_answers import answer_items, options_of
from mixwright.measure.passes import Passes
from mixwright.measure.room import find_room
from mixwright.records import Example
from mixwright.run.folder import RunFolder

PROMPTS = ["1+1=", "12+3=", "7", "99+1="]
LIKELIHOOD = MeasureConfig(options_by="likelihood", max_new_tokens=3, samples=4)


def learner() -> Learner:
    return Learner(model().eval(), tokenizer(), "chars")


def corpus(folder: Path) -> Corpus:
    rows: list[dict[str, Any]] = [
        {"task": "sums", "prompt": prompt, "answer": answer, "options": options}
        for prompt, answer, options in zip(
            PROMPTS,
            ["2", "b", "7", "100"],
            [["1", "2"], {"a": "15", "b": "16", "c": "9"}, ["7", "8"], ["100", "10", "1"]],
            strict=True,
        )
    ]
    rows.append({"task": "words", "prompt": "9+1=", "answer": "10"})
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return read_corpus(CorpusConfig(str(path), eval_share=0.0, graders={"sums": "choice", "words": "exact"}))


def in_order(rows: Corpus) -> list[Example]:
    """Rows as they were written; reading has added the options to prompts."""
    return sorted(rows, key=lambda row: [*PROMPTS, "9+1="].index(str(row.prompt).partition("\n")[0]))


def test_alternatives_are_read_as_the_whole_sequences_are() -> None:
    one = learner()
    completions = [
        [completion_tokens(one, text) for text in own] for own in (["2", "15"], ["1"], ["123", "4", "56"], ["7", "8"])
    ]
    found = dict(read_alternatives(one, PROMPTS, completions))
    for place, own in enumerate(completions):
        whole = one.logprobs([PROMPTS[place]] * len(own), own)
        for read, expected in zip(found[place], whole, strict=True):
            np.testing.assert_allclose(read, expected, atol=1e-5)


def test_candidates_are_texts_or_labels_as_the_answer_is() -> None:
    def row(answer: str) -> Example:
        return Example("a", "t", "p", None, answer, extra={"options": ["Paris", "Rome", "paris "]})

    assert Choice().candidates(row("rome")) == ("Paris", "Rome"), "the same option twice is one"
    assert Choice().candidates(row("B")) == ("A", "B")
    assert Choice().candidates(row("1")) == ("A", "B"), "a place"
    assert all(Choice().grade(row(answer), right) == 1 for answer, right in (("rome", "Rome"), ("B", "B"), ("1", "B")))


def test_the_likeliest_option_is_the_answer_and_other_rows_are_written(tmp_path: Path) -> None:
    one, rows = learner(), corpus(tmp_path)
    items = in_order(rows)
    found = answer_items(one, items, rows, LIKELIHOOD, count=2, temperature=0.0, seed=1, max_new_tokens=3)
    for item, made, options in zip(
        items, found, (["1", "2"], ["a", "b", "c"], ["7", "8"], ["100", "10", "1"]), strict=False
    ):
        read = one.logprobs([item.prompt] * len(options), [completion_tokens(one, text) for text in options])
        best = options[int(np.argmax([math.fsum(own) for own in read]))]
        assert [each.text for each in made] == [best, best]
        assert made[0].finished
    (written,) = one.sample(["9+1="], count=2, temperature=0.0, seed=1, max_new_tokens=3)
    assert found[-1] == written
    assert not options_of(items, rows, MeasureConfig()), "by default everything is written"


def test_options_are_drawn_as_often_as_they_are_probable_and_alike_in_any_order(tmp_path: Path) -> None:
    one, rows = learner(), corpus(tmp_path)
    items = in_order(rows)[:4]
    many = answer_items(one, items, rows, LIKELIHOOD, count=4000, temperature=2.0, seed=1, max_new_tokens=3)
    options = ["100", "10", "1"]
    read = one.logprobs([items[3].prompt] * 3, [completion_tokens(one, text) for text in options])
    weights = np.exp(np.array([math.fsum(own) for own in read]) / 2)
    drawn = [sum(made.text == text for made in many[3]) / 4000 for text in options]
    np.testing.assert_allclose(drawn, weights / weights.sum(), atol=0.03)
    alone = answer_items(
        one, items[3:], rows, LIKELIHOOD, count=4000, temperature=2.0, seed=1, draw_keys=[3], max_new_tokens=3
    )
    assert [made.text for made in alone[0]] == [made.text for made in many[3]]


def count_read_items(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Items of each reading from now on."""
    sizes = list[int]()

    def counted(one: Any, prompts: Any, completions: Any) -> Any:
        sizes.append(len(prompts))
        return read_alternatives(one, prompts, completions)

    monkeypatch.setattr("mixwright.learner.alternatives.read_alternatives", counted)
    return sizes


def test_what_was_read_is_kept_and_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = corpus(tmp_path)
    first = Passes(KeepingLearner(learner(), tmp_path / "kept.jsonl"), None, LIKELIHOOD, rows).rollouts

    one, items = KeepingLearner(learner(), None), in_order(rows)
    asked: dict[str, Any] = {"count": 1, "temperature": 0.0, "seed": 1, "max_new_tokens": 3}
    sizes = count_read_items(monkeypatch)
    answer_items(one, items[:2], rows, LIKELIHOOD, **asked)
    answer_items(one, items, rows, LIKELIHOOD, **asked)
    assert sizes == [2, 2], "of four items two were known"

    def read_again(*_: Any) -> Any:
        raise AssertionError("options were read again")

    monkeypatch.setattr("mixwright.learner.alternatives.read_alternatives", read_again)
    second = Passes(KeepingLearner(learner(), tmp_path / "kept.jsonl"), None, LIKELIHOOD, rows).rollouts
    assert {key: own.samples for key, own in first.items()} == {key: own.samples for key, own in second.items()}


def test_options_are_read_once_for_the_greedy_answer_and_all_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, sizes = corpus(tmp_path), count_read_items(monkeypatch)
    found = Passes(learner(), None, LIKELIHOOD, rows).rollouts
    assert sizes == [4]
    assert {len(own.samples) for own in found.values()} == {4}


def test_the_room_comes_from_the_items_that_are_written(tmp_path: Path) -> None:
    """Four of five items have options: one is completed. Where all have, none is, and the room is that of the answers."""
    rows, one, said = corpus(tmp_path), learner(), list[str]()
    find_room([one], rows, LIKELIHOOD, said.append)
    assert any("1 item" in line for line in said), said
    room = find_room([one], rows.select(tasks=["sums"]), LIKELIHOOD, said.append)
    assert room.continued == 0
    assert "options" in room.why


def test_measure_takes_the_likeliest_option_where_it_is_asked_to_and_says_so(call: Call) -> None:
    checkpoint("now")
    rows = [{"prompt": f"{n}+1=", "answer": str(n + 1), "options": [str(n + 1), str(n)]} for n in range(12)]
    how = ("measure", "now", "--eval", write("a.jsonl", rows), "--items", "5", "--options-by", "likelihood", *FAST)
    code, _, err = call(*how, "--folder", "kept", "--grader", "choice")
    assert code == 0, err
    assert "is the option with the highest log-probability" in err
    assert manifest("kept").settings["options_by"] == "likelihood"
    written = Answers.read(RunFolder("kept").answers("now")).first_rows()
    options = {row["prompt"]: row["options"] for row in rows}
    assert len(written) == 5
    assert all(row["completion"] in options[row["prompt"].partition("\n")[0]] for row in written)
    code, _, err = call(*how, "--grader", "exact")
    assert code == 1
    assert "a task with options and the grader choice" in err


def test_a_task_of_few_answers_is_read_by_the_likelihood_of_each(tmp_path: Path) -> None:
    rows = [{"task": "signs", "prompt": f"{n}+1=", "answer": "yes" if n % 2 else "no"} for n in range(8)]
    rows += [{"task": "sums", "prompt": f"{n}+2=", "answer": str(n + 2)} for n in range(8)]
    path = tmp_path / "closed.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    closed = read_corpus(CorpusConfig(str(path), eval_share=0.0))
    found = options_of(list(closed), closed, LIKELIHOOD)
    assert {closed[place].task: texts for place, texts in found.items()} == {"signs": ("no", "yes")}
    assert len(found) == 8
