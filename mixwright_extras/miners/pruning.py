"""Miner that keeps the hard or the easy rows of each task, whichever short trainings of this model show to be better.

Rows are ranked by EL2N within their task (within each answer where a task has ten or fewer, with rows enough). Which end to
keep depends on how abundant and how clean the data are for this model, so copies of it are trained on the hard, the easy and
random rows and read on training rows that are held back. An end is kept only where it beats random rows beyond chance, by
seeds and by rows; else all rows are kept.

Source: Sorscher et al., 2206.14486 (which end depends on abundance; metrics differ); EL2N: Paul et al., 2107.07075.
    Ayed and Hayou, 2302.06960: at 30 % or less random rows are hard to beat, and a share at random helps (`random_share`).
Unit: EL2N, mean over target tokens of the length of (probabilities - one-hot).
Cost: 7 x `runs` short trainings of `steps` steps (4 x `runs` where one fraction is tried), beyond the scan.
Blind spot: the proxy is short: where a whole run is far longer, data are less abundant for it than for the proxy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.random import Generator

from mixwright.extend import (
    RIGHT_FROM_SCORE,
    InputError,
    MinedRow,
    MiningResult,
    TrainRows,
    check_range,
    join_some,
    plain,
)
from mixwright_extras.miners._scanned import ScanMiner
from mixwright_extras.mining.crossover import PruningWord, crossover, kept_rows
from mixwright_extras.mining.proxies import MIN_TRAINING_ROWS, Sizes, choose_held_back, make_proxy_trainer
from mixwright_extras.mining.trainings import SHORT_TRAINING_LIMITS

if TYPE_CHECKING:
    from mixwright.extend import Corpus, Learner

RANDOM_HARD_TO_BEAT_SHARE, SECOND_KEEP_SHARE = 0.3, 0.5
"""Share of kept rows up to which random rows are hard to beat; the other fraction that is tried, to see how near the
crossover is."""
MAX_ANSWER_GROUPS = 10
"""Answers up to which a task is pruned within each answer, so that no end holds one answer only; as long as each answer has
rows enough."""
LABEL_CHECK_SHARE = 0.01
"""Share of the rows, of the highest scores, whose labels are looked at (ten at least)."""


@dataclass(kw_only=True, eq=False)
class Pruning(ScanMiner):
    """The harder or the easier share of each task, or all of it.

    Args:
        keep: share of each task's rows to keep; 1 keeps all, and neither scores nor trains anything.
        end: hard, easy, or auto: the crossover test decides.
        random_share: share of the kept rows that is drawn at random all the same.
        steps: optimiser steps of each short training.
        runs: seeds of the test.
        batch: rows per step.
        learning_rate: of the short trainings; take the run's own.
    """

    COLUMNS = ("el2n",)
    OPTIONAL_COLUMNS = ("pass_1", "outcomes")

    keep: float = 0.5
    end: Literal["auto", "hard", "easy"] = "auto"
    random_share: float = 0.0
    steps: int = 100
    runs: int = 4
    batch: int = 16
    learning_rate: float = 5e-4

    def __post_init__(self) -> None:
        check_range("mine.options.pruning", vars(self), keep=(1e-6, 1), **SHORT_TRAINING_LIMITS, random_share=(0, 1))
        self.NEEDS_MODEL = self.end == "auto" and self.keep < 1
        if self.keep == 1:
            self.COLUMNS = ()

    def count_needed_rows(self) -> int:
        """Those that the crossover test takes, where it decides."""
        return MIN_TRAINING_ROWS if self.NEEDS_MODEL else 0

    @property
    def _fractions(self) -> tuple[float, ...]:
        """Kept shares of the crossover test; the first decides."""
        return tuple(dict.fromkeys((self.keep, SECOND_KEEP_SHARE)))

    def mine(self, corpus: Corpus, rows: TrainRows, learner: Learner | None, rng: Generator) -> MiningResult:
        """Kept rows. Raises InputError without a model where the test is to decide, or with too few rows for it."""
        if self.keep == 1:
            return _keep_all_rows(rows, ["All rows are kept, as requested (keep is 1)."])
        scores = rows.columns["el2n"].astype(float)
        groups, notes, end = pruning_groups(corpus, rows, self.keep), [], self.end
        if end == "auto":
            if learner is None:
                raise InputError("a model for the crossover test", "none", "Name a model, or set end to hard or easy.")
            end, notes = self._run_crossover(corpus, learner, rows, scores, groups, rng)
            if end == "keep all":
                return _keep_all_rows(
                    rows, [*notes, "Neither hard nor easy rows beat random rows beyond chance: all rows are kept."]
                )
        if self.keep <= RANDOM_HARD_TO_BEAT_SHARE:
            share_described = f"{RANDOM_HARD_TO_BEAT_SHARE:.0%} of the rows or less"
            notes.append(f"If you keep {share_described}, random rows are hard to beat: test it before use.")
        notes += self._warn_of_labels(corpus, rows, scores, end)
        chosen = kept_rows(scores, groups, self.keep, end, rng, random_share=self.random_share)
        ranked_rows = set(kept_rows(scores, groups, self.keep, end, rng).tolist())  # without the share at random
        reasons = {
            at: f"el2n {scores[at]:.3g}: among the {end} of its task" for at in ranked_rows if scores[at] == scores[at]
        }
        mined_rows = tuple(MinedRow(rows.ids[at], reasons.get(at, "drawn at random")) for at in chosen.tolist())
        return MiningResult("pruning", mined_rows, notes=tuple(notes))

    def _run_crossover(
        self,
        corpus: Corpus,
        learner: Learner,
        rows: TrainRows,
        scores: np.ndarray,
        groups: np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[PruningWord, list[str]]:
        """The word of the crossover test, and what it saw."""
        is_held_back = choose_held_back(rows.tasks, rng)
        usable = ~np.isnan(scores)
        trainable, items = np.flatnonzero(~is_held_back & usable), np.flatnonzero(is_held_back & usable)
        strata = np.unique(rows.tasks[items], return_inverse=True)[1]
        sizes = Sizes(self.steps, self.batch, self.learning_rate, self.runs)
        result = crossover(
            scores[trainable],
            groups[trainable],
            make_proxy_trainer(learner, corpus, rows.corpus_indices[trainable], rows.corpus_indices[items], sizes),
            strata,
            fractions=self._fractions,
            seeds=rng.integers(2**31, size=self.runs).tolist(),
            random_share=self.random_share,
        )
        summary = f"{result.trainings} short trainings of {self.steps} steps, read on {len(items)} held-back training rows."
        return result.word, [summary, *result.notes("(1 - probability per token)")]

    def _warn_of_labels(self, corpus: Corpus, rows: TrainRows, scores: np.ndarray, end: str) -> list[str]:
        """Warnings of wrong labels among the rows with the highest scores."""
        order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")
        highest = order[: max(round(LABEL_CHECK_SHARE * len(order)), min(10, len(order)))].tolist()
        notes = []
        if disputed := find_disputed(corpus, rows, highest):
            disputed_described = f"the grader or the model disagrees with {len(disputed)}: {join_some(disputed)}"
            notes.append(f"Of the {len(highest)} hardest rows, {disputed_described}.")
        if end == "hard":
            first_ids = ", ".join(rows.ids[at] for at in highest[:5])
            notes.append(f"Check the hardest rows for wrong labels first: {first_ids}.")
        return notes


def _keep_all_rows(rows: TrainRows, notes: Sequence[str]) -> MiningResult:
    """All rows as they stand."""
    all_rows = tuple(MinedRow(name, "all rows are kept") for name in rows.ids)
    return MiningResult("pruning", all_rows, notes=tuple(notes))


def pruning_groups(corpus: Corpus, rows: TrainRows, keep: float) -> np.ndarray:
    """Group of each row that pruning keeps the shares of: its task, and its answer where the task has few answers and each
    has a whole row at this share.
    """
    texts = corpus.table.select(["target", "answer"]).take(rows.corpus_indices).to_pylist()
    answers = np.array([row["answer"] if row["answer"] is not None else row["target"] or "" for row in texts], dtype=object)
    keys: list[tuple[str, str]] = [(task, "") for task in rows.tasks.tolist()]
    for task, task_rows in rows.by_task().items():
        counts = Counter(answers[task_rows].tolist())
        if len(counts) <= MAX_ANSWER_GROUPS and keep * min(counts.values()) >= 1:
            for at in task_rows.tolist():
                keys[at] = (task, str(answers[at]))
    numbers = {key: number for number, key in enumerate(sorted(set(keys)))}
    return np.array([numbers[key] for key in keys], dtype=np.int64)


def find_disputed(corpus: Corpus, rows: TrainRows, highest: Sequence[int]) -> list[str]:
    """Ids, of the rows with the highest scores, whose label a verifier or the model itself speaks against.

    The grader refuses the target beside the row's own answer; or, where rollouts were scanned, every sample says the same
    and is refused.
    """
    refused_by_samples = np.zeros(len(rows.ids), dtype=bool)
    if rows.columns.keys() >= {"pass_1", "outcomes"}:
        refused_by_samples = (rows.columns["pass_1"] == 0) & (rows.columns["outcomes"] == 1)
    disputed = []
    for at in highest:
        example = corpus[int(rows.corpus_indices[at])]
        has_both = example.answer is not None and example.target is not None
        if refused_by_samples[at] or (has_both and corpus.grade(example, plain(example.target)) < RIGHT_FROM_SCORE):
            disputed.append(rows.ids[at])
    return disputed
