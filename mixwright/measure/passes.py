"""Passes through the model that probes share: each is made when first read and kept."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixwright.answers.table import Answers, Group, Header, short_columns
from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.corpus.timed_grades import KeptGrades, TimedGrades
from mixwright.errors import InputError
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.records import Example, plain

if TYPE_CHECKING:
    from mixwright.learner.learner import Completion, Learner

T = TypeVar("T")


@dataclass(frozen=True)
class ExampleRollouts:
    """What the model wrote for one item, judged."""

    greedy: Completion
    """The likeliest continuation."""
    greedy_score: float
    """Its score, 0..1."""
    samples: tuple[Completion, ...]
    """`config.samples` completions at `config.temperature`; empty where none are asked for."""
    scores: tuple[float, ...]
    """Their scores, 0..1."""

    @property
    def correct(self) -> NDArray[np.float64]:
        """Shape (samples,): 1 for full marks, else 0."""
        return (np.array(self.scores) >= RIGHT_FROM_SCORE).astype(float)

    def success(self, name: str) -> float:
        """Share right of what the measurement `greedy` or `pass@1` reads, 0..1."""
        return float(self.greedy_score >= RIGHT_FROM_SCORE) if name == "greedy" else float(self.correct.mean())


@dataclass
class Passes:
    """One model, the items it is measured on, and what it did there.

    Items are picked per cell by a hash of the example's id: the same before and after, whatever the seed.
    """

    learner: Learner
    """The model as it is now."""
    config: MeasureConfig
    """Items per cell, samples per item, temperature, length."""
    corpus: Corpus
    """What items are picked from: its eval split, or all of it when there is none."""
    seed: int = 0
    """Of the samples."""
    report_done: Callable[[float], None] | None = None
    """Called with the share of the work that is done, 0..1."""
    chosen: tuple[Example, ...] | None = None
    """The items themselves, where they are not to be picked: gradable rows of either split, as the scan reads them."""
    nested: bool = False
    """Whether what is sampled for an item does not depend on how many others are measured: a second, larger measuring then
    holds the first."""
    kept_grades: KeptGrades | None = None
    """Grades of earlier passes over the same rows, and where those of this one are added."""
    readings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Item -> row of `Answers` with what was read of it without writing."""

    @cached_property
    def grades(self) -> TimedGrades:
        """The corpus's graders, under the time limit of the configuration."""
        return TimedGrades(self.corpus, self.config.grader_seconds, self.config.slow_grader, self.kept_grades)

    @cached_property
    def items(self) -> tuple[Example, ...]:
        """At most `config.items` gradable examples per cell, sorted by cell and hash.

        Raises:
            InputError: nothing can be graded.
        """
        if self.chosen is not None:
            return self.chosen
        items = self.picked(lambda example: example.answer is not None)
        if not items:
            raise InputError("examples with answers to grade", "none", "Use a corpus with an answer column.")
        return items

    def picked(self, is_wanted: Callable[[Example], bool]) -> tuple[Example, ...]:
        """At most `config.items` examples per cell for which `is_wanted` is true, sorted by cell and hash."""
        most_items = self.config.items
        cells: dict[Group, list[tuple[bytes, int]]] = defaultdict(list)
        rows = self.corpus.measured()
        for index, example in enumerate(rows):
            if is_wanted(example):
                hashes_and_indices = cells[example.task, example.level]
                hashes_and_indices.append((hashlib.sha256(example.id.encode()).digest(), index))
                if len(hashes_and_indices) > 2 * most_items + 64:
                    hashes_and_indices[:] = sorted(hashes_and_indices)[:most_items]
        order = sorted(cells, key=lambda key: (key[0], -np.inf if key[1] is None else key[1]))
        return tuple(rows[index] for key in order for _, index in sorted(cells[key])[:most_items])

    @property
    def generated(self) -> bool:
        """Whether a probe has asked for completions, which only graded items get."""
        return "rollouts" in vars(self)

    @cached_property
    def cells(self) -> dict[Group, list[Example]]:
        """Items per task and level."""
        items_by_cell: dict[Group, list[Example]] = defaultdict(list)
        for item in self.items:
            items_by_cell[item.task, item.level].append(item)
        return dict(items_by_cell)

    @cached_property
    def rollouts(self) -> dict[str, ExampleRollouts]:
        """Greedy and sampled completions of every item, graded, by example id."""
        rollouts = {}
        greedy, sampled = self._write()
        for item, (best,), samples in zip(self.items, greedy, sampled, strict=True):
            score, *scores = (
                self.grades.grade(item, completion.text, cut=not completion.finished) for completion in (best, *samples)
            )
            rollouts[item.id] = ExampleRollouts(best, score, tuple(samples), tuple(scores))
        return rollouts

    @cached_property
    def answers(self) -> Answers:
        """The same as a table; the probe of competence adds what success is compared with."""
        rows = []
        for item in self.items:
            written = self.rollouts[item.id]
            parts = list(self.corpus.parts(item, written.greedy.text).items())
            rows.append(answer_row(item, written.greedy, item.answer, written.greedy_score, parts=parts))
            for number, (completion, score) in enumerate(zip(written.samples, written.scores, strict=True)):
                rows.append(answer_row(item, completion, item.answer, score, decoding="sampled", sample=number))
        return Answers.from_rows(rows, Header(template=tuple(self.learner.form.list_arguments())))

    def keep_readings(self, items: Sequence[Example], **values: Mapping[str, float]) -> None:
        """Keep what was read of items without writing: column of `Answers` -> item -> value."""
        for item in items:
            place = {"item": item.id, "task": item.task, "level": item.level}
            place |= {"prompt": plain(item.prompt), "gold": item.answer}
            own = {name: by_item[item.id] for name, by_item in values.items()}
            self.readings[item.id] = self.readings.get(item.id, place) | own

    def _write(self) -> tuple[list[list[Completion]], list[list[Completion]]]:
        """The greedy and the sampled completions of the items."""
        from mixwright.learner.generation import scale_progress  # needs torch, as the learner does

        config, items = self.config, self.items
        write = partial(self.learner.sample, [item.prompt for item in items], seed=self.seed, **completion_lengths(config))
        greedy_share = 1 / (1 + config.samples)
        greedy = write(count=1, temperature=0, progress=scale_progress(self.report_done, 0, greedy_share))
        if not config.samples:
            return greedy, [[] for _ in items]
        draw_keys = None
        if self.nested:  # draws depend on the item, whatever stands beside it
            digests = [hashlib.sha256(item.id.encode()).digest() for item in items]
            draw_keys = [int.from_bytes(digest[:4], "big") for digest in digests]
        report = scale_progress(self.report_done, greedy_share, 1 - greedy_share)
        sampled = write(count=config.samples, temperature=config.temperature, draw_keys=draw_keys, progress=report)
        return greedy, sampled


def completion_lengths(config: MeasureConfig) -> dict[str, Any]:
    """Arguments of sampling that say how long completions may be, and to how many tokens those that reach it go on."""
    return {"max_new_tokens": config.max_new_tokens, "continue_up_to": config.continued_tokens or None}


def answer_row(item: Example, completion: Completion, gold: str | None, score: float | None, **more: Any) -> dict[str, Any]:
    """One answer to an item as a row of a table; `more` are other columns."""
    row = {"item": item.id, "task": item.task, "level": item.level, "prompt": plain(item.prompt), "gold": gold}
    row |= {"decoding": "greedy", "sample": 0, "text": completion.text, "cut": not completion.finished, "score": score}
    row |= {"tokens": completion.token_ids, "logprob": math.fsum(completion.logprobs), "columns": short_columns(item.extra)}
    return row | {"right": None if score is None else float(score >= RIGHT_FROM_SCORE), **more}


def write_answers(learner: Learner, items: Sequence[Example], answer_tokens: int, seed: int) -> Answers:
    """One greedy answer per item that no grader judges, its target as the gold answer and no score."""
    if not items:
        return Answers.from_rows(())
    completions = learner.sample(
        [item.prompt for item in items], count=1, temperature=0, max_new_tokens=answer_tokens, seed=seed
    )
    rows = [
        answer_row(item, best, plain(item.target) or item.answer, None)
        for item, (best,) in zip(items, completions, strict=True)
    ]
    return Answers.from_rows(rows, Header(template=tuple(learner.form.list_arguments())))


def evenly_spread(items: Sequence[Example], count: int) -> Sequence[Example]:
    """At most `count` of the items, evenly over the levels that they are sorted by."""
    return [items[len(items) * position // count] for position in range(count)] if len(items) > count else items


def interleave(groups: Collection[Sequence[T]]) -> list[T]:
    """The first of each group, then the second of each, and so on."""
    longest = max(map(len, groups), default=0)
    return [group[position] for position in range(longest) for group in groups if position < len(group)]
