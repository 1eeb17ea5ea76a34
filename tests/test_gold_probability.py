"""Probability of the gold answer: by token, only where one string is right."""

from __future__ import annotations

import math

import pytest

from mixwright.answers.score import scores_of_items
from mixwright.config import MeasureConfig, ModelConfig
from mixwright.corpus import Corpus
from mixwright.graders.exact import Exact
from mixwright.learner.tiny import build_tiny
from mixwright.measure.stage import measure_learner
from mixwright.records import Example


def test_each_answer_and_its_end_is_read_on_more_items_than_are_answered() -> None:
    rows = [Example(f"s{n}", "sum", f"{n}+1=", answer=f"{n + 1}") for n in range(12)]
    rows += [Example(f"n{n}", "numbers", f"{n}+2=", answer=f"{n + 2}") for n in range(12)]
    corpus = Corpus.from_examples(rows, {"sum": "exact", "numbers": "numeric"})
    texts = [f"{row.prompt}{row.answer}" for row in rows]
    learner = build_tiny(texts, ModelConfig(width=16, depth=1, heads=2, vocabulary=264), 0)
    config = MeasureConfig(items=3, samples=0, probes=("competence", "gold"), options={"gold": {"times": 3}})
    found = measure_learner(learner, corpus, config, seed=0)
    scores = scores_of_items(found.answers)
    own = scores.by_item("gold")
    assert {task for task, _, _ in own} == {"sum"}, "a number can be written in more than one way"
    assert len(own) == 9
    answered = {item for item in scores.by_item("greedy") if item[0] == "sum"}
    assert answered < scores.by_item("gold").keys()
    ((_, _, item), value), *_ = own.items()
    example = next(row for row in rows if row.id == item)
    ids = [*learner.tokenizer(example.answer, add_special_tokens=False)["input_ids"], learner.tokenizer.eos_token_id]
    assert value == pytest.approx(math.exp(sum(learner.logprobs([example.prompt], [ids])[0])), rel=1e-5)


def test_a_grader_of_one_string_says_so() -> None:
    assert Exact().accepts_gold_only
    assert not Exact(ignore_case=True).accepts_gold_only
