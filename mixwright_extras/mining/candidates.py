"""Candidate answers to one prompt, and which of their sources short trainings of a student show to be in reach.

A student is judged by its greedy answers to prompts held back. Loss on a source's own text would not do: short and
compressed texts have a low one, whatever a student learns of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixwright.extend import COVERAGE, Estimate, RowLosses, TimedGrades, estimate_crossed, holm, plain
from mixwright_extras.mining.proxies import (
    Sizes,
    choose_held_back,
    count_answer_tokens,
    grade_greedy_answers,
    make_copy_trainer,
    shared_room,
)

if TYPE_CHECKING:
    from mixwright.extend import Corpus, Learner, TrainRows

SECONDS_PER_GRADE = 5.0
"""For the grade of one answer; slower ones count as wrong."""
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
    for corpus_index, task in zip(rows.corpus_indices.tolist(), rows.tasks.tolist(), strict=True):
        row = corpus[corpus_index]
        prompts.append(numbers.setdefault((task, plain(row.prompt).strip()), len(numbers)))
        source_name = row.extra.get(column)
        sources.append(str(source_name) if source_name is not None else row.source.rpartition(":")[0] or "unnamed")
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
    p_by_source: dict[str, float]
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
        return f"{self.accuracy[name]:.2f} right, {gain.value:+.2f} [{gain.low:+.2f}, {gain.high:+.2f}] against a random mix"

    @property
    def winner(self) -> str | None:
        """The most accurate source, where it beats the mix beyond chance."""
        best = self.order[0]
        return best if self.gains[best].value > 0 and self.p_by_source[best] < 1 - COVERAGE else None

    @property
    def worse_than_mix(self) -> list[str]:
        """Sources that are worse than the mix beyond chance."""
        return [name for name in self.order if self.gains[name].value < 0 and self.p_by_source[name] < 1 - COVERAGE]


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
    row_indices = np.flatnonzero(usable)
    rows_by_source = {
        str(name): row_indices[candidates.sources[row_indices] == name]
        for name in np.unique(candidates.sources[row_indices])
    }
    right_by_source = {
        name: np.array([train(source_rows, seed) for seed in seeds]) for name, source_rows in rows_by_source.items()
    }
    mix_rows_by_seed = [
        row_indices[random_per_prompt(candidates.prompt_ids[row_indices], np.random.default_rng([seed, 1]))]
        for seed in seeds
    ]
    right_after_mix = np.array([train(mix_rows, seed) for mix_rows, seed in zip(mix_rows_by_seed, seeds, strict=True)])
    trials = {}
    for task in np.unique(strata):
        in_task = strata == task
        task_sources = [name for name in right_by_source if (candidates.tasks[rows_by_source[name]] == task).any()]
        gains = {
            name: estimate_crossed(
                (right_by_source[name] - right_after_mix)[:, in_task], np.zeros(int(in_task.sum()), dtype=int)
            )
            for name in task_sources
        }
        adjusted = dict(zip(gains, holm([gain.p for gain in gains.values()]), strict=True))
        accuracy = {name: float(right_by_source[name][:, in_task].mean()) for name in task_sources}
        trials[str(task)] = SourceTrials(
            float(before[in_task].mean()), float(right_after_mix[:, in_task].mean()), accuracy, gains, adjusted
        )
    return trials


def try_sources(
    corpus: Corpus,
    learner: Learner,
    rows: TrainRows,
    candidates: Candidates,
    sizes: Sizes,
    max_new_tokens: int,
    rng: np.random.Generator,
) -> tuple[dict[str, SourceTrials], list[str], int]:
    """What short trainings showed of each task that a grader judges, what was done, and the rollouts that it took.

    Args:
        corpus: with its graders.
        learner: copied, never changed.
        rows: that may be chosen.
        candidates: the same rows as candidates.
        sizes: of the trainings.
        max_new_tokens: longest answer.
        rng: which prompts are held back, and the seeds.

    Raises:
        InputError: too few prompts to hold some back.
    """
    rows_with_alternatives = [
        corpus[int(rows.corpus_indices[row_index])] for row_index in np.flatnonzero(candidates.has_alternatives)
    ]
    is_judgeable = _find_judgeable_rows(corpus, rows, candidates)
    judged_rows = lowest_per_prompt(np.where(is_judgeable, 0.0, np.nan), candidates.prompt_ids)
    judged_rows = judged_rows[is_judgeable[judged_rows]]  # a row of each prompt that can be judged
    if not len(judged_rows):
        return {}, [], 0
    held_back = judged_rows[choose_held_back(rows.tasks[judged_rows], rng)]
    usable = candidates.has_alternatives & ~np.isin(candidates.prompt_ids, candidates.prompt_ids[held_back])
    items, grades = (
        [corpus[int(rows.corpus_indices[row_index])] for row_index in held_back],
        TimedGrades(corpus, SECONDS_PER_GRADE, "wrong"),
    )
    longest_known_tokens = max(
        count_answer_tokens(learner, plain(row.target if row.target is not None else row.answer))
        for row in rows_with_alternatives
    )
    room_tokens = shared_room(learner, items, min(longest_known_tokens + 1, max_new_tokens))
    train_copy = make_copy_trainer(learner, RowLosses(learner, corpus), rows.corpus_indices, sizes)

    def grade_answers(model: Any) -> np.ndarray:
        return grade_greedy_answers(learner, model, items, grades, room_tokens)

    before, seeds = grade_answers(learner.model), rng.integers(2**31, size=sizes.runs).tolist()
    trials_by_task = train_on_each_source(
        candidates,
        usable,
        lambda row_indices, seed: grade_answers(train_copy(row_indices, seed)),
        before,
        rows.tasks[held_back],
        seeds,
    )
    trainings = sizes.runs * (len({*candidates.sources[usable].tolist()}) + 1)
    note = f"{trainings} short trainings of {sizes.steps} steps, each tested on {len(items)} held-back training prompts."
    return trials_by_task, [note], len(items) * (trainings + 1)


def _find_judgeable_rows(corpus: Corpus, rows: TrainRows, candidates: Candidates) -> np.ndarray:
    """Rows of prompts that have several candidates, and one answer that a grader compares with."""
    answers: dict[int, set[str | None]] = {}
    for corpus_index, prompt in zip(rows.corpus_indices.tolist(), candidates.prompt_ids.tolist(), strict=True):
        answers.setdefault(prompt, set()).add(corpus[corpus_index].answer)
    has_grader = np.array([corpus.tasks[task].kind == "verifiable" for task in rows.tasks.tolist()])
    has_one_answer = np.array(
        [answers[prompt] != {None} and len(answers[prompt]) == 1 for prompt in candidates.prompt_ids.tolist()]
    )
    return candidates.has_alternatives & has_grader & has_one_answer
