"""Miner of rows whose gradients point where a few rows of the target tasks want the model to go.

A few rows of each target task are its shots. Target tasks choose in turn the row that is nearest to their shots on average,
and not yet chosen. Shots are training rows, never held-out ones; those of named targets are kept, too. Words (BM25) and
hidden states can stand for gradients: cheaper, and in a re-study no worse on one of two pools. A trial also compares with
the rows of the named targets alone, which needs no scan.

Source: LESS, 2402.04333 (cosines, no products; without a warm-up it was level with random rows).
Unit: cosine of gradients, mean over shots.
Cost: none beyond the scan's gradient sketch (words and hidden states: the scan's cheaper columns or none).
Blind spot: first order, so that rows which say the same again are all chosen; the pool may hold none like the shots.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from mixwright.extend import InputError, MinedRow, MiningResult, TrainRows, check_range, join_some, plain
from mixwright_extras.miners._scanned import ScanMiner
from mixwright_extras.mining.relevance import bm25, choose_in_turn, cosines

if TYPE_CHECKING:
    from mixwright.extend import Corpus, Learner

COLUMNS_BY_WAY = {"gradients": ("sketch",), "hidden": ("hidden",), "words": ()}
"""What is compared, and the columns that it takes."""


def count_to_keep(count: int, keep: float) -> int:
    """How many of `count` rows a share is: one at least."""
    return min(max(round(keep * count), 1), count)


@dataclass(kw_only=True, eq=False)
class Influence(ScanMiner):
    """The rows that help the target tasks by their gradients.

    Args:
        targets: tasks; empty for all.
        shots: rows per target task; those of named targets are at most half of what is kept.
        keep: share of the training rows to choose, kept shots among them.
        by: what is compared: gradients, hidden states or words.
    """

    targets: Sequence[str] = ()
    shots: int = 32
    keep: float = 0.05
    by: Literal["gradients", "hidden", "words"] = "gradients"

    def __post_init__(self) -> None:
        check_range("mine.options.influence", vars(self), shots=(1, 10_000), keep=(1e-6, 1))
        self.COLUMNS = COLUMNS_BY_WAY[self.by]

    def mine(self, corpus: Corpus, rows: TrainRows, learner: Learner | None, rng: np.random.Generator) -> MiningResult:
        """Rows in the order in which they were chosen. Raises InputError for an unknown task."""
        count = count_to_keep(len(rows.ids), self.keep)
        shots = self._target_shots(rows, count)
        pool = np.setdiff1d(np.arange(len(rows.ids)), shots)
        if not len(pool):
            raise InputError("training rows besides the example rows (shots)", "none", "Lower the number of shots.")
        scores = self._scores(corpus, rows, pool, shots)
        mean_by_target = np.stack(
            [scores[:, rows.tasks[shots] == task].mean(1) for task in dict.fromkeys(rows.tasks[shots])], 1
        )
        target_rows = [MinedRow(rows.ids[row_index], "a row of the targets") for row_index in shots.tolist() if self.targets]
        mean, unit = scores.mean(1), "BM25" if self.by == "words" else "cosine"
        chosen_rows = target_rows + [
            MinedRow(rows.ids[pool[row_index]], f"{unit} {mean[row_index]:.3g} with the targets' rows")
            for row_index in choose_in_turn(mean_by_target, min(max(count - len(target_rows), 1), len(pool))).tolist()
        ]
        compared_with = f"the {len(shots)} shots, training rows of the targets"
        notes = [
            f"Compared with {compared_with}; "
            + ("they are kept, too." if self.targets else "they are not chosen themselves.")
        ]
        if self.by == "gradients":
            notes.append("Without a warm-up on such rows, gradients chose no better than chance (arXiv 2402.04333).")
        rows_of_targets = (
            _first_by_hash(rows, self.targets, len(rows.ids)).tolist() if set(self.targets) < set(rows.by_task()) else []
        )
        rule_rows = tuple(MinedRow(rows.ids[row_index], "a row of the targets") for row_index in rows_of_targets)
        rule_description = f"the {len(rule_rows)} training rows of {join_some(self.targets)} alone" if rule_rows else ""
        simple_rule = {"simple_rule_rows": rule_rows, "simple_rule_description": rule_description}
        return MiningResult("influence", tuple(chosen_rows), notes=tuple(notes), **simple_rule)

    def _target_shots(self, rows: TrainRows, count: int) -> np.ndarray:
        """Rows of the targets, for each of them at most so many that half of `count` are left to choose."""
        if not self.targets:
            return _first_by_hash(rows, tuple(rows.by_task()), self.shots, 0.25)
        return _first_by_hash(rows, self.targets, min(self.shots, max(count // (2 * len(self.targets)), 1)))

    def _scores(self, corpus: Corpus, rows: TrainRows, pool: np.ndarray, shots: np.ndarray) -> np.ndarray:
        if self.by == "words":
            examples = [
                [corpus[int(rows.corpus_indices[row_index])] for row_index in row_indices] for row_indices in (pool, shots)
            ]
            words = [
                [f"{plain(e.prompt)} {plain(e.target or e.answer or '')}".lower().split() for e in part_examples]
                for part_examples in examples
            ]
            return bm25(*words)
        vectors = rows.columns[COLUMNS_BY_WAY[self.by][0]]
        return cosines(np.nan_to_num(vectors[pool]), np.nan_to_num(vectors[shots]))


def _first_by_hash(rows: TrainRows, tasks: Sequence[str], limit: int, share: float = 1.0) -> np.ndarray:
    """Rows of each task in an order by a hash of their ids, so many at most and no larger share of the task's."""
    rows_by_task, chosen = rows.by_task(), []
    for task in tasks:
        if task not in rows_by_task:
            raise InputError(f"a task with training rows: {', '.join(rows_by_task)}", repr(task), "Correct the task's name.")
        order = sorted(rows_by_task[task].tolist(), key=lambda at: hashlib.sha256(rows.ids[at].encode()).digest())
        chosen += order[: min(limit, max(int(share * len(order)), 1))]
    return np.array(chosen, dtype=np.int64)
