"""Probability of the gold answer: by token, only where one string is right; and success adjusted by it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mixwright.answers.score import scores_of_items
from mixwright.config import MeasureConfig, ModelConfig
from mixwright.corpus import Corpus
from mixwright.estimates.adjusted import adjusted_change, estimate_adjusted
from mixwright.estimates.crossed import estimate_crossed
from mixwright.estimates.items import Item, Items
from mixwright.estimates.outcome import ItemScores
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


def world(rng: np.random.Generator, items: int) -> tuple[np.ndarray, np.ndarray]:
    """Change of greedy success and of the gold answer's probability, with a true mean of 0."""
    before = rng.normal(0.5, 2, items)
    after, turned = before + rng.normal(0, 1, items), rng.random(items) < 0.5
    sides = [np.where(turned, one, other) for one, other in ((before, after), (after, before))]
    right = [(side > 0).astype(float) for side in sides]
    chance = [1 / (1 + np.exp(-side)) for side in sides]
    return right[1] - right[0], chance[1] - chance[0]


def test_the_adjusted_change_is_unbiased_narrower_and_covers() -> None:
    rng, within, widths, values = np.random.default_rng(0), 0, np.zeros(2), []
    for _ in range(300):
        success, chance = world(rng, 1000)
        cells = np.arange(1000) % 4
        found = estimate_adjusted(success[:200], chance[:200], cells[:200], chance[200:], cells[200:])
        plain = estimate_crossed(success[:200], cells[:200])
        assert found is not None
        within += found.low <= 0 <= found.high
        widths += [found.high - found.low, plain.high - plain.low]
        values.append(found.value)
    assert within / 300 >= 0.93
    assert widths[0] < 0.9 * widths[1]
    assert abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(300)


def test_without_more_items_or_a_covariate_that_differs_it_is_the_plain_change() -> None:
    rng = np.random.default_rng(1)
    success, chance = world(rng, 100)
    cells, none = np.zeros(100, dtype=np.int64), np.zeros(0)
    plain = estimate_crossed(success, cells)
    for found in (
        estimate_adjusted(success, chance, cells, none, none.astype(np.int64)),
        estimate_adjusted(success, 0 * chance, cells, np.zeros(900), np.zeros(900, dtype=np.int64)),
    ):
        assert found is not None
        assert (found.low, found.high) == pytest.approx((plain.low, plain.high), abs=0.002)
    assert estimate_adjusted(success[:24], chance[:24], cells[:24], chance, cells) is None


def test_it_needs_the_probability_of_every_answered_item_and_of_others() -> None:
    items: list[Item] = [("t", None, f"{n:03}") for n in range(60)]
    greedy = {item: float(n % 2) for n, item in enumerate(items[:40])}
    before = ItemScores.of({"greedy": greedy, "gold": dict.fromkeys(items, 0.5)})
    after = ItemScores.of({"greedy": dict.fromkeys(items[:40], 1.0), "gold": dict.fromkeys(items, 0.75)})
    answered = Items.of(items[:40])
    found = adjusted_change(before, after, answered)
    assert found is not None
    assert found.value == pytest.approx(0.5)
    for known in (items[:40], items[5:]):
        few = ItemScores.of({"greedy": dict.fromkeys(items[:40], 1.0), "gold": dict.fromkeys(known, 0.5)})
        assert adjusted_change(before, few, answered) is None
