"""Answers of a model to items: what it writes, or of rows with options, and tasks of few answers, the likeliest one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.corpus.proposed_graders import find_labels
from mixwright.graders.choice import Choice
from mixwright.records import Example

if TYPE_CHECKING:
    from mixwright.learner.learner import Completion, Learner

READ_BATCH_ITEMS = 64
"""Items whose options are read before they are kept; a kill loses these at most."""


def options_of(items: Sequence[Example], corpus: Corpus, config: MeasureConfig) -> dict[int, tuple[str, ...]]:
    """Index of an item -> the options that its answer is chosen from by log-probability; only the items where it is."""
    if config.options_by == "writing":
        return {}
    graders = {task: corpus.grader(task) for task in {item.task for item in items}}
    choosers = {task: grader for task, grader in graders.items() if isinstance(grader, Choice)}
    labels = {task: find_labels(corpus, task) for task in graders if task not in choosers}
    options_by_index = {
        item_index: choosers[item.task].candidates(item) if item.task in choosers else labels[item.task]
        for item_index, item in enumerate(items)
    }
    return {item_index: texts for item_index, texts in options_by_index.items() if len(texts) > 1}


def answer_items(
    learner: Learner,
    items: Sequence[Example],
    corpus: Corpus,
    config: MeasureConfig,
    *,
    count: int,
    temperature: float,
    seed: int,
    draw_keys: Sequence[int] | None = None,
    options_read: dict[int, list[Completion]] | None = None,
    **sample_arguments: Any,
) -> list[list[Completion]]:
    """`count` answers per item, as `Learner.sample` gives them.

    Where `config.options_by` is `likelihood`, the answer to an item with options is one of them: the likeliest at
    temperature 0, else one drawn in proportion to exp(log-probability / temperature), with a number that depends on the
    seed, the item and the sample alone. Log-probabilities are summed over an option's tokens, so that a longer one is rarer.

    `options_read` holds, by index of the item, the options that an earlier call of the same model and items read; what is
    read here is added.

    Raises:
        InputError: as `Learner.sample` does.
    """
    draw_numbers = list(range(len(items)) if draw_keys is None else draw_keys)
    options = options_of(items, corpus, config)
    completions: list[list[Completion]] = [[] for _ in items]
    if written := [item_index for item_index in range(len(items)) if item_index not in options]:
        prompts, numbers = [items[item_index].prompt for item_index in written], [draw_numbers[i] for i in written]
        how = {"count": count, "temperature": temperature, "seed": seed, "draw_keys": numbers, **sample_arguments}
        for item_index, own in zip(written, learner.sample(prompts, **how), strict=True):
            completions[item_index] = own
    options_read = {} if options_read is None else options_read
    if unread := {item_index: texts for item_index, texts in options.items() if item_index not in options_read}:
        options_read |= _read(learner, items, unread)
    for item_index in options:
        choices = options_read[item_index]
        total_logprobs = [math.fsum(choice.logprobs) for choice in choices]
        if temperature == 0:
            completions[item_index] = [choices[int(np.argmax(total_logprobs))]] * count
        else:
            completions[item_index] = _draw(
                choices, np.array(total_logprobs) / temperature, count, [seed % 2**64, draw_numbers[item_index]]
            )
    return completions


def _draw(choices: Sequence[Completion], logits: np.ndarray, count: int, key: Sequence[int]) -> list[Completion]:
    """`count` of the choices, each in proportion to the exponential of its logit."""
    cumulated = np.exp(logits - logits.max()).cumsum()
    uniforms = np.random.Generator(np.random.Philox(key=list(key))).random(count)
    return [choices[choice_index] for choice_index in np.searchsorted(cumulated, uniforms * cumulated[-1], side="right")]


def _read(learner: Learner, items: Sequence[Example], options: Mapping[int, tuple[str, ...]]) -> dict[int, list[Completion]]:
    """The options of each item as completions with their log-probabilities; kept as the learner's other answers are."""
    from mixwright.learner.alternatives import read_alternatives
    from mixwright.learner.learner import Completion
    from mixwright.learner.warmup import completion_tokens
    from mixwright.measure.kept_answers import KeepingLearner

    tokens = {item_index: [completion_tokens(learner, text) for text in texts] for item_index, texts in options.items()}
    requests = {
        item_index: ["options", learner.encode(items[item_index].prompt), tokens[item_index]] for item_index in options
    }
    keeping = learner if isinstance(learner, KeepingLearner) else KeepingLearner(learner, None)
    missing_indices = [item_index for item_index in options if not keeping.knows(requests[item_index])]
    missing_indices.sort(key=lambda item_index: len(requests[item_index][1]))
    for first in range(0, len(missing_indices), READ_BATCH_ITEMS):
        batch = missing_indices[first : first + READ_BATCH_ITEMS]
        prompts = [items[item_index].prompt for item_index in batch]
        found = dict(read_alternatives(learner, prompts, [tokens[item_index] for item_index in batch]))
        for row, item_index in enumerate(batch):
            keeping.remember(requests[item_index], lambda row=row, found=found: {"read": found[row]})
    completions: dict[int, list[Completion]] = {}
    for item_index, texts in options.items():
        own = zip(texts, tokens[item_index], keeping.remember(requests[item_index], dict)["read"], strict=True)
        completions[item_index] = [Completion(text, tuple(ids), tuple(values), True) for text, ids, values in own]
    return completions
