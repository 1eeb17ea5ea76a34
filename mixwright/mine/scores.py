"""Scores of pruning, high is hard: EL2N, forgetting over checkpoints, distance to prototypes; and rows in dispute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from mixwright.errors import InputError
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.measure.scan import Scan
from mixwright.records import plain

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.mine.choosing import TrainRows

Score = Literal["el2n", "forgetting", "prototypes"]
COLUMNS_BY_SCORE: dict[str, tuple[str, ...]] = {"el2n": ("el2n",), "forgetting": ("greedy",), "prototypes": ("hidden",)}
"""Columns of the scan that each score reads."""
MOST_ANSWER_GROUPS = 10
"""Answers up to which a task is pruned within each answer, so that no end holds one answer only."""
KMEANS_ROUNDS = 20
"""Rounds of k-means."""
MOST_PROTOTYPES = 64


def score_of(
    name: Score, corpus: Corpus, scan: Scan, rows: TrainRows, checkpoints: Sequence[str], rng: np.random.Generator
) -> NDArray[np.float64]:
    """The score of each training row, high is hard, NaN where there is none; shape (rows,).

    Args:
        name: of the score.
        corpus: the rows.
        scan: of the starting model.
        rows: those that may be chosen.
        checkpoints: names of other scans of the run. EL2N is their mean with this one; forgetting reads them in this order.
        rng: where prototypes begin.

    Raises:
        InputError: forgetting with fewer than two checkpoints, or a scan that is not there.
    """
    if name == "prototypes":
        vectors = rows.column(scan, "hidden").astype(float)
        return prototype_distance(vectors, list(rows.by_task().values()), rng)
    others = [Scan(scan.folder.parent.parent, base) for base in checkpoints]
    if name == "el2n":
        return np.mean([_column_for_rows(found, rows, "el2n") for found in (scan, *others)], axis=0)
    if len(others) < 2:
        remedy = "Scan checkpoints of one training, and name them in order: mine.options.pruning.checkpoints."
        raise InputError("two checkpoints or more for forgetting", str(len(others)), remedy)
    return forgetting(np.array([_column_for_rows(found, rows, "greedy") for found in others]))


def _column_for_rows(scan: Scan, rows: TrainRows, name: str) -> NDArray[np.float64]:
    """A column of another scan for the same rows; NaN for those that it lacks."""
    values, places = scan.column(name).astype(float), {own: place for place, own in enumerate(scan.ids)}
    return np.array([values[places[own]] if own in places else np.nan for own in rows.ids])


def forgetting(right: NDArray[np.float64]) -> NDArray[np.float64]:
    """How often each row was right and then wrong; a row that was never right counts as often as it was read.

    Args:
        right: 1 where the checkpoint's answer was right, else 0; NaN where it was not graded. Shape (checkpoints, rows).
    """
    lost = ((right[:-1] == 1) & (right[1:] == 0)).sum(0).astype(float)
    never = np.where((right == 1).any(0), lost, float(len(right)))
    return np.where(np.isnan(right).any(0), np.nan, never)


def prototype_distance(
    vectors: NDArray[np.float64], tasks: Sequence[NDArray[np.int64]], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Cosine distance of each row to the nearest of its task's prototypes: k-means on directions, sqrt(rows) of them."""
    found = np.full(len(vectors), np.nan)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    for own in tasks:
        usable = own[(lengths[own, 0] > 0) & np.isfinite(lengths[own, 0])]
        if not len(usable):
            continue
        points = unit[usable]
        centres = points[rng.choice(len(points), min(max(round(len(points) ** 0.5), 1), MOST_PROTOTYPES), replace=False)]
        for _ in range(KMEANS_ROUNDS):
            nearest = (points @ centres.T).argmax(1)
            sums = np.zeros_like(centres)
            np.add.at(sums, nearest, points)
            norms = np.linalg.norm(sums, axis=1, keepdims=True)
            centres = np.where(norms > 0, sums / np.maximum(norms, 1e-12), centres)
        found[usable] = 1 - (points @ centres.T).max(1)
    return found


def pruning_groups(corpus: Corpus, rows: TrainRows) -> NDArray[np.int64]:
    """Group of each row that pruning keeps the shares of: its task, and its answer where the task has few answers."""
    texts = corpus.table.select(["target", "answer"]).take(rows.numbers).to_pylist()
    answers = np.array([row["answer"] if row["answer"] is not None else row["target"] or "" for row in texts], dtype=object)
    keys: list[tuple[str, str]] = [(task, "") for task in rows.tasks.tolist()]
    for task, own in rows.by_task().items():
        if len(set(answers[own].tolist())) <= MOST_ANSWER_GROUPS:
            for at in own.tolist():
                keys[at] = (task, str(answers[at]))
    numbers = {key: number for number, key in enumerate(sorted(set(keys)))}
    return np.array([numbers[key] for key in keys], dtype=np.int64)


def find_disputed(corpus: Corpus, scan: Scan, rows: TrainRows, highest: Sequence[int]) -> list[str]:
    """Ids, of the rows with the highest scores, whose label a verifier or the model itself speaks against.

    The grader refuses the target beside the row's own answer; or, where rollouts were scanned, every sample says the same
    and is refused.
    """
    sure = np.zeros(len(rows.ids), dtype=bool)
    if {"pass_1", "outcomes"} <= set(scan.names):
        sure = (rows.column(scan, "pass_1") == 0) & (rows.column(scan, "outcomes") == 1)
    found = []
    for at in highest:
        example = corpus[int(rows.numbers[at])]
        both = example.answer is not None and example.target is not None
        if sure[at] or (both and corpus.grade(example, plain(example.target)) < RIGHT_FROM_SCORE):
            found.append(rows.ids[at])
    return found
