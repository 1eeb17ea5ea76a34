"""Detectors of task contamination in a model of documents: each says whether a task's rows were trained on."""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from scipy.stats import binomtest, mannwhitneyu
from torch import Tensor

from mixwright import catalog
from mixwright.corpus import Corpus
from mixwright.records import Example
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import HASH
from mixwright_lab.worlds.classification import LABELS

FALSE_ALARM_SHARE = 0.05
"""Share of false alarms that each test allows."""
LOWEST_TOKENS_SHARE = 0.2
"""Share of a document's tokens, the least probable ones, whose mean is its membership score."""


@dataclass(frozen=True)
class Suspect:
    """A benchmark's task, and what an investigator has of it."""

    name: str
    published: Sequence[Example]
    """Rows of its train split, which may have been trained on."""
    fresh: Sequence[Example]
    """As many rows of the same kind that nobody has trained on."""
    tests: Sequence[Example]
    """Rows of its test split."""


def document(example: Example) -> str:
    """A labelled row as text."""
    return f"{example.prompt} {HASH} {example.answer}"


@torch.no_grad()
def log_probabilities(model: GPT, examples: Sequence[Example]) -> Float[Tensor, "rows tokens"]:
    """Of every token of these documents but their end; rows of one length."""
    spoken = model.language
    tokens = spoken.encode_responses([document(example) for example in examples])
    tokens = tokens[:, : len(document(examples[0]).split())]
    logits = model.logits_of(spoken.encode_prompts([""] * len(tokens)), tokens)
    return logits.log_softmax(-1).gather(2, tokens[..., None])[..., 0]


@torch.no_grad()
def rights(model: GPT, examples: Sequence[Example]) -> np.ndarray:
    """Whether the more probable label is the right one, bool of shape (examples,)."""
    scores = [log_probabilities(model, [replace(one, answer=label) for one in examples])[:, -1] for label in LABELS]
    wanted = np.array([LABELS.index(str(example.answer)) for example in examples])
    return torch.stack(scores).argmax(0).numpy() == wanted


def above_majority(right: np.ndarray, examples: Sequence[Example]) -> bool:
    """Whether a model is right more often than who always gives the commonest label of these examples."""
    yes = sum(example.answer == LABELS[1] for example in examples) / len(examples)
    return bool(binomtest(int(right.sum()), len(right), max(yes, 1 - yes), "greater").pvalue < FALSE_ALARM_SHARE)


def improved(before: np.ndarray, after: np.ndarray) -> bool:
    """Chronology: whether a later model is right more often on the same examples (McNemar's exact test)."""
    won, lost = int((after & ~before).sum()), int((before & ~after).sum())
    return _more(won, lost)


def membership(model: GPT, suspect: Suspect) -> tuple[float, bool]:
    """Min-20 %: the area under the ROC curve of published against fresh rows, and whether it is above one half."""
    own, other = (_lowest(log_probabilities(model, rows)) for rows in (suspect.published, suspect.fresh))
    found = mannwhitneyu(own, other, alternative="greater")
    return float(found.statistic) / (len(own) * len(other)), bool(found.pvalue < FALSE_ALARM_SHARE)


def extracted(model: GPT, suspect: Suspect) -> tuple[float, bool]:
    """Share of published rows whose second half the model writes, greedily, and whether fresh ones are fewer."""
    own, other = (_completed(model, rows) for rows in (suspect.published, suspect.fresh))
    return own / len(suspect.published), _more(own, other)


def inspected(corpus: Sequence[Example], suspects: Sequence[Suspect]) -> set[str]:
    """Tasks of which the product's check finds published rows in this part of the training data."""
    known = [replace(example, id=f"train {place}", split="train") for place, example in enumerate(corpus)]
    sought = [replace(example, split="eval") for suspect in suspects for example in suspect.published]
    seen = catalog.create("checks", "contamination").check(Corpus.from_examples([*known, *sought]))
    return {str(observation.task) for observation in seen if observation.severity == "error"}


def _lowest(scores: Float[Tensor, "rows tokens"]) -> np.ndarray:
    count = max(round(LOWEST_TOKENS_SHARE * scores.shape[1]), 1)
    return scores.sort(1).values[:, :count].mean(1).numpy()


def _completed(model: GPT, rows: Sequence[Example]) -> int:
    spoken = model.language
    wanted = spoken.encode_responses([document(row) for row in rows])
    given = len(str(rows[0].prompt).split()) // 2 + 1  # the name and half of the letters
    start = torch.cat((spoken.encode_prompts([""] * len(rows)), wanted[:, :given]), 1)
    made = model.sample(start, 1, spoken.response_tokens - given, greedy=True, generator=torch.Generator())[:, 0]
    return sum(
        spoken.decode(own) == spoken.decode(row) for own, row in zip(made.tolist(), wanted[:, given:].tolist(), strict=True)
    )


def _more(own: int, other: int) -> bool:
    return own + other > 0 and bool(binomtest(own, own + other, 0.5, "greater").pvalue < FALSE_ALARM_SHARE)
