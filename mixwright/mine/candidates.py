"""Candidate answers to one prompt, which one a statistic picks, and which source short trainings show to be in reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.crossed import Estimate, estimate_crossed
from mixwright.estimates.intervals import COVERAGE, holm
from mixwright.records import plain

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.mine.choosing import TrainRows

ShortTrainingScore = Callable[[NDArray[np.int64], int], NDArray[np.float64]]
"""(places of the rows that are trained on, seed) -> 1 where the answer to a held-back prompt is right after that, else 0."""


@dataclass(frozen=True)
class Candidates:
    """Rows that may be chosen, by the prompt that they answer and the source that they come from."""

    prompt_ids: NDArray[np.int64]
    """Number of each row's prompt: rows of one task with the same text share it. Shape (rows,)."""
    sources: NDArray[np.str_]
    """Name of each row's source, shape (rows,)."""
    tasks: NDArray[np.str_]
    """Name of each row's task, shape (rows,)."""

    @property
    def source_names(self) -> list[str]:
        """Sources, sorted."""
        return sorted({str(name) for name in self.sources})

    @property
    def has_alternatives(self) -> NDArray[np.bool_]:
        """Which rows belong to a prompt with more than one candidate, shape (rows,)."""
        return np.bincount(self.prompt_ids)[self.prompt_ids] > 1


def candidates_of(corpus: Corpus, rows: TrainRows, column: str) -> Candidates:
    """Training rows by prompt and source: the column that names it, else the file that the row comes from."""
    numbers: dict[tuple[str, str], int] = {}
    prompts, sources = [], []
    for number, task in zip(rows.numbers.tolist(), rows.tasks.tolist(), strict=True):
        row = corpus[number]
        prompts.append(numbers.setdefault((task, plain(row.prompt).strip()), len(numbers)))
        named = row.extra.get(column)
        sources.append(str(named) if named is not None else row.source.rpartition(":")[0] or "unnamed")
    return Candidates(np.array(prompts, dtype=np.int64), np.array(sources).astype(str), rows.tasks)


def lowest_per_prompt(values: NDArray[np.float64], prompts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Place of the row with the lowest value of each prompt, sorted; rows of NaN last, the first of equal ones."""
    order = np.lexsort((np.nan_to_num(values, nan=np.inf), prompts))
    return np.sort(order[np.unique(prompts[order], return_index=True)[1]])


def random_per_prompt(prompts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Place of a random row of each prompt, sorted."""
    return lowest_per_prompt(rng.random(len(prompts)), prompts)


@dataclass(frozen=True)
class SourceTrials:
    """What short trainings showed in one task."""

    accuracy_before: float
    """Accuracy without training."""
    mix_accuracy: float
    """Accuracy after training on a random candidate per prompt."""
    accuracy: dict[str, float]
    """Source -> accuracy after training on it alone."""
    gains: dict[str, Estimate]
    """Source -> its accuracy minus that of the mix."""
    p: dict[str, float]
    """Source -> two-sided p value of that, by Holm over the sources."""

    @property
    def order(self) -> list[str]:
        """Sources, the most accurate first."""
        return sorted(self.accuracy, key=lambda name: (-self.accuracy[name], name))

    def format_accuracy(self, name: str) -> str:
        """Accuracy after training on a source, and on the mix of all."""
        if name not in self.accuracy:
            return "not tried in this task"
        gain = self.gains[name]
        return f"{self.accuracy[name]:.2f} right, {gain.value:+.2f} [{gain.low:+.2f}, {gain.high:+.2f}] against a mix"

    @property
    def winner(self) -> str | None:
        """The most accurate source, where it beats the mix beyond chance."""
        best = self.order[0]
        return best if self.gains[best].value > 0 and self.p[best] < 1 - COVERAGE else None

    @property
    def worse_than_mix(self) -> list[str]:
        """Sources that are worse than the mix beyond chance."""
        return [name for name in self.order if self.gains[name].value < 0 and self.p[name] < 1 - COVERAGE]


def train_on_each_source(
    candidates: Candidates,
    usable: NDArray[np.bool_],
    train: ShortTrainingScore,
    before: NDArray[np.float64],
    strata: NDArray[np.str_],
    seeds: Sequence[int],
) -> dict[str, SourceTrials]:
    """Train on every source alone and on a mix of them with every seed; what that did for each task.

    Args:
        candidates: the rows.
        usable: which of them may be trained on: those whose prompt is not held back, and has several candidates.
        train: a short training, read on the prompts held back.
        before: what `train` would give without training, shape (items,).
        strata: task of each prompt held back, shape (items,).
        seeds: of the trainings; the mix is drawn anew with each.
    """
    places = np.flatnonzero(usable)
    arms: Mapping[str, Callable[[int], NDArray[np.int64]]] = {
        name: lambda _, name=name: places[candidates.sources[places] == name]
        for name in candidates.source_names
        if (candidates.sources[places] == name).any()
    }
    right = {name: np.array([train(rows(seed), seed) for seed in seeds]) for name, rows in arms.items()}
    drawn = [places[random_per_prompt(candidates.prompt_ids[places], np.random.default_rng([seed, 1]))] for seed in seeds]
    mix = np.array([train(rows, seed) for rows, seed in zip(drawn, seeds, strict=True)])
    found = {}
    for task in np.unique(strata):
        own = strata == task
        there = [name for name in right if (candidates.tasks[places[candidates.sources[places] == name]] == task).any()]
        gains = {name: estimate_crossed((right[name] - mix)[:, own], np.zeros(int(own.sum()), dtype=int)) for name in there}
        adjusted = dict(zip(gains, holm([gain.p for gain in gains.values()]), strict=True))
        accuracy = {name: float(right[name][:, own].mean()) for name in there}
        found[str(task)] = SourceTrials(float(before[own].mean()), float(mix[:, own].mean()), accuracy, gains, adjusted)
    return found
