"""Shares of the tokens in the loss, of a plan for SFT."""

from __future__ import annotations

import pytest

from mixwright.config import ModelConfig, TrainConfig
from mixwright.corpus import Corpus
from mixwright.records import Example, Plan, Stage
from mixwright.verbs.planned import loss_token_shares
from mixwright_extras.tiny.model import build_tiny


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
    shares = loss_token_shares(Plan("p", (stage,)), corpus, TrainConfig(), tiny)
    # the end token is in the loss; the row held out counts for nothing
    prompts = {"short": 0.75 * tokens("sort 1 2="), "long": 0.25 * tokens("copy=")}
    whole = {"short": 0.75 * (tokens(texts[0]) + 1), "long": 0.25 * (tokens(texts[1]) + 1)}
    loss = {task: whole[task] - prompts[task] for task in whole}
    assert loss["long"] > loss["short"]
    assert shares == pytest.approx({task: amount / sum(loss.values()) for task, amount in loss.items()}, abs=0.001)
