"""Answers of a model to items: what it writes, or for rows with options the one that it finds likeliest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.graders.choice import Choice
from mixwright.records import Example

if TYPE_CHECKING:
    from mixwright.learner.learner import Completion, Learner

READ_TOGETHER = 64
"""Items whose options are read before they are kept; a kill loses these at most."""


def options_of(items: Sequence[Example], corpus: Corpus, config: MeasureConfig) -> dict[int, tuple[str, ...]]:
    """Index of an item -> the options that its answer is chosen from by log-probability; only the items where it is."""
    if config.options_by == "writing":
        return {}
    graders = {task: corpus.grader(task) for task in {item.task for item in items}}
    choosers = {task: grader for task, grader in graders.items() if isinstance(grader, Choice)}
    found = {place: choosers[item.task].candidates(item) for place, item in enumerate(items) if item.task in choosers}
    return {place: texts for place, texts in found.items() if len(texts) > 1}


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
    written = [place for place in range(len(items)) if place not in options]
    found: list[list[Completion]] = [[] for _ in items]
    if written:
        prompts = [items[place].prompt for place in written]
        sample_arguments |= {"count": count, "temperature": temperature, "seed": seed}
        if draw_keys is not None or options:
            sample_arguments["draw_keys"] = [draw_numbers[place] for place in written]
        for place, made in zip(written, learner.sample(prompts, **sample_arguments), strict=True):
            found[place] = made
    options_read = {} if options_read is None else options_read
    options_read |= _read(learner, items, {place: texts for place, texts in options.items() if place not in options_read})
    for place in options:
        choices = options_read[place]
        total_logprobs = [math.fsum(choice.logprobs) for choice in choices]
        if temperature == 0:
            found[place] = [choices[int(np.argmax(total_logprobs))]] * count
        else:
            found[place] = _draw(choices, np.array(total_logprobs) / temperature, count, [seed % 2**64, draw_numbers[place]])
    return found


def _draw(choices: Sequence[Completion], logits: np.ndarray, count: int, key: Sequence[int]) -> list[Completion]:
    """`count` of the choices, each in proportion to the exponential of its logit."""
    cumulated = np.exp(logits - logits.max()).cumsum()
    drawn = np.random.Generator(np.random.Philox(key=list(key))).random(count)
    return [choices[place] for place in np.searchsorted(cumulated, drawn * cumulated[-1], side="right")]


def _read(learner: Learner, items: Sequence[Example], options: Mapping[int, tuple[str, ...]]) -> dict[int, list[Completion]]:
    """The options of each item as completions with their log-probabilities; kept as the learner's other answers are."""
    from mixwright.learner.alternatives import read_alternatives
    from mixwright.learner.learner import Completion
    from mixwright.learner.warmup import completion_tokens
    from mixwright.measure.kept_answers import KeepingLearner

    tokens = {place: [completion_tokens(learner, text) for text in texts] for place, texts in options.items()}
    requests = {place: ["options", learner.encode(items[place].prompt), tokens[place]] for place in options}
    keeping = learner if isinstance(learner, KeepingLearner) else None
    missing = [place for place in options if keeping is None or not keeping.knows(requests[place])]
    missing.sort(key=lambda place: len(requests[place][1]))
    logprobs: dict[int, list[list[float]]] = {}
    for first in range(0, len(missing), READ_TOGETHER):
        part = missing[first : first + READ_TOGETHER]
        for row, read in read_alternatives(
            learner, [items[place].prompt for place in part], [tokens[place] for place in part]
        ):
            logprobs[part[row]] = read
        if keeping is not None:
            for place in part:
                keeping.remember(requests[place], lambda place=place: {"read": logprobs[place]})
    found: dict[int, list[Completion]] = {}
    for place, texts in options.items():
        known = logprobs[place] if keeping is None else keeping.remember(requests[place], dict)["read"]
        found[place] = [
            Completion(text, tuple(ids), tuple(values), True)
            for text, ids, values in zip(texts, tokens[place], known, strict=True)
        ]
    return found
