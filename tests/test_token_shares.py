"""A plan for SFT says what its shares of rows are in tokens, and in tokens of the loss."""

from __future__ import annotations

import re

import pytest

from mixwright.cli.token_shares import count_token_shares, with_token_shares
from mixwright.config import ModelConfig, TrainConfig
from mixwright.corpus import Corpus
from mixwright.learner.tiny import build_tiny
from mixwright.records import Example, Plan, Stage


def shares_told(plan: Plan) -> dict[str, tuple[float, float]]:
    found = {}
    for key, reason in plan.why.items():
        numbers = re.fullmatch(r"(?:.*; )?([\d.]+)% of the tokens, ([\d.]+)% of those in the loss", reason)
        assert numbers is not None
        found[key.removeprefix("stages.0.weights.")] = (float(numbers[1]) / 100, float(numbers[2]) / 100)
    return found


def test_a_task_of_long_answers_takes_most_of_the_loss() -> None:
    texts = ["sort 1 2=12", "copy=1 2 3 4 5 6 7"]
    tiny = build_tiny(texts, ModelConfig(width=16, depth=2, heads=2, vocabulary=300), seed=0)

    def tokens(text: str) -> int:
        return len(tiny.tokenizer(text)["input_ids"])

    rows = [Example(f"a{n}", "short", "sort 1 2=", target="12", split="train") for n in range(4)]
    rows += [Example(f"b{n}", "long", "copy=", target="1 2 3 4 5 6 7", split="train") for n in range(3)]
    rows.append(Example("c", "long", "copy=", target="1" * 20, split="eval"))
    corpus = Corpus.from_examples(rows)
    stage = Stage("sft", "sft", 10, {"short": 0.75, "long": 0.25, "none": 0.0})
    plan = Plan("p", (stage,), why={"stages.0.weights.short": "new"})
    plan = with_token_shares(plan, count_token_shares(plan, corpus, TrainConfig(), tiny))
    assert plan.why["stages.0.weights.short"].startswith("new; ")
    # the end token is in the loss; the row held out counts for nothing
    prompts = {"short": 0.75 * tokens("sort 1 2="), "long": 0.25 * tokens("copy=")}
    whole = {"short": 0.75 * (tokens(texts[0]) + 1), "long": 0.25 * (tokens(texts[1]) + 1)}
    loss = {task: whole[task] - prompts[task] for task in whole}
    assert loss["long"] > loss["short"]
    told = shares_told(plan)
    assert set(told) == {"short", "long"}
    for task in told:
        assert told[task] == pytest.approx((whole[task] / sum(whole.values()), loss[task] / sum(loss.values())), abs=0.001)
