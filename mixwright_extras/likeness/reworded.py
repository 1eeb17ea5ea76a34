"""Search for held-out items that stand in train in other words, with other names and numbers, or in another language.

Each held-out row is compared with all train rows in three views (`likeness.py`). What likeness is normal for a task is read
from train itself: rows of the task, and the rows that its items are most like, are looked up among all other train rows in
the same way. An item is told where hardly any of them has so near a neighbour. So templates, passages with several
questions, and rows that train repeats in other words explain themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixwright.extend import Corpus, Leaks, Reader, Row, draw_sample, find_leaks, positions_by_code, rows
from mixwright_extras.likeness.features import TEMPLATE, VIEWS, WORDS, Features, Rarity, Texts, Tokens, find_names
from mixwright_extras.likeness.index import ViewIndex

SAMPLE_ROWS = 20_000
"""Rows of either split in which features are counted."""
MOST_COMPARED_ROWS, LEAST_COMPARED_ROWS, COMPARED_ROWS_TOGETHER = 2000, 300, 20_000
"""Train rows of a task that say what is normal for it: at most, at least, and of all tasks together."""
CHANCE = 0.0025
"""Share of train rows with so near a neighbour, in a view, up to which an item is told."""
MARGIN, LEAST_LIKENESS = 1.05, 2.0
"""How much nearer than these it must be, as a factor, and the least likeness that is told."""
ROWS_OF_TASK_COUNTED = 50
"""Held-out rows of a task, from which on what they have in common weighs little."""
BATCH_ROWS = 1024
"""Rows compared at a time, which bounds the memory of what they share with texts."""


@dataclass(frozen=True)
class Likenesses:
    """What the items of one task are like; arrays of shape (held-out rows of the task that were looked for,)."""

    task: str
    """Its name."""
    numbers: np.ndarray
    """int64: row numbers of the items."""
    partner: np.ndarray
    """int64 of shape (3, items): the likest train row in each view; -1 without any."""
    likeness: np.ndarray
    """float32 of the same shape."""
    normal: tuple[np.ndarray, ...]
    """By view, ascending: likeness of train rows and their neighbours."""
    of_other_tasks: bool
    """Whether these are rows of all tasks, because the task itself has too few."""

    def threshold(self, view: int) -> float:
        """Likeness from which on an item is told: above nearly all train rows, by a margin."""
        normal = self.normal[view]
        passed = max(int(CHANCE * (1 + len(normal)) + 1e-9) - 1, 0)
        return max(LEAST_LIKENESS, MARGIN * float(normal[-1 - passed]) if passed < len(normal) else 0.0)

    def is_told(self, view: int) -> np.ndarray:
        """Whether hardly any train row has so near a neighbour, bool of shape (items,)."""
        return self.likeness[view] > self.threshold(view)

    def expected(self, views: Sequence[int]) -> float:
        """Items that chance alone tells in these views, with one more train row than were so near."""
        near = [1 + int((self.normal[view] > self.threshold(view)).sum()) for view in views]
        return sum(near) * len(self.numbers) / (1 + len(self.normal[WORDS]))

    @property
    def can_tell(self) -> bool:
        """Whether there are rows enough to say what is normal."""
        return len(self.normal[WORDS]) >= LEAST_COMPARED_ROWS


def find_likenesses(corpus: Corpus) -> list[Likenesses]:
    """What held-out items are like that do not stand in train as they are, task by task. Reads train twice."""
    leaks, reader = find_leaks(corpus), Reader(corpus)
    sought = _sought(leaks)
    if not len(sought) or not len(leaks.overlap.train):
        return []
    sample = reader.sample(leaks.overlap.train, SAMPLE_ROWS)
    names = find_names(row.prompt for row in (*sample, *reader.sample(sought, SAMPLE_ROWS)))
    tokens = Tokens(names)
    rarity = _count([*sample], tokens)
    by_task = positions_by_code(leaks.overlap.task[sought])
    first = _Search(tokens, rarity, reader.rows(sought))
    first.look_through(corpus)
    most = min(MOST_COMPARED_ROWS, max(COMPARED_ROWS_TOGETHER // len(by_task), 1))
    train = leaks.overlap.train
    train_by_task, nothing = positions_by_code(leaks.overlap.task[train]), np.zeros(0, np.int64)
    partner, best = first.partner, first.best  # made anew at each reading
    compared = [
        _compared(train[train_by_task.get(code, nothing)], partner[:, places], most) for code, places in by_task.items()
    ]
    task_of = np.repeat([leaks.tasks[code] for code in by_task], [len(one) for one in compared])
    scale = len(task_of) / len(sought)
    second = _Search(tokens, rarity, reader.rows(np.concatenate(compared)), task_of.tolist(), first.common, scale)
    second.look_through(corpus)
    second_best = second.best
    everywhere = tuple(np.sort(second_best[view]) for view in VIEWS)
    found, start = [], 0
    for (code, places), own in zip(by_task.items(), compared, strict=True):
        normal = tuple(np.sort(second_best[view, start : start + len(own)]) for view in VIEWS)
        start += len(own)
        few = len(own) < LEAST_COMPARED_ROWS
        found.append(
            Likenesses(
                leaks.tasks[code],
                sought[places],
                partner[:, places],
                best[:, places],
                everywhere if few else normal,
                few,
            )
        )
    return found


def _sought(leaks: Leaks) -> np.ndarray:
    """Held-out rows that no other check lists as copies, int64."""
    wrapped = [leaks.rows[at].number for at in leaks.wrapped]
    return np.setdiff1d(leaks.overlap.held_out[leaks.overlap.partner < 0], np.array(wrapped, np.int64))


def _compared(train: np.ndarray, partners: np.ndarray, most: int) -> np.ndarray:
    """Of a task's train rows those that say what is normal for it: half its own, half those that its items are like."""
    own = draw_sample(train, most)
    alike = np.unique(partners[partners >= 0])
    return np.union1d(draw_sample(alike, most // 2), own[: max(most // 2, most - len(alike))] if len(alike) else own)


def _count(sample: Sequence[Row], tokens: Tokens) -> tuple[Rarity, ...]:
    texts = _read_texts(sample, tokens)
    return tuple(Rarity.of(texts.views[view], len(sample)) for view in VIEWS)


def _read_texts(texts: Sequence[Row], tokens: Tokens) -> Texts:
    """Features of many rows, batch by batch."""
    parts = [tokens.read(texts[start : start + BATCH_ROWS]) for start in range(0, max(len(texts), 1), BATCH_ROWS)]
    views = [
        Features(
            np.concatenate([part.views[view].row + BATCH_ROWS * at for at, part in enumerate(parts)]),
            np.concatenate([part.views[view].code for part in parts]),
        )
        for view in VIEWS
    ]
    answers, hashes = (np.concatenate([getattr(part, name) for part in parts]) for name in ("answer", "text"))
    return Texts((views[0], views[1], views[2]), answers, hashes)


class _Search:
    """Texts that train rows are compared with, in all views.

    Args:
        tokens: how texts are read.
        rarity: of features in train, by view.
        texts: what is looked for.
        tasks: task of each text, whose common features weigh little; its own without it.
        common: of tasks, by view and name, where it is known.
        scale: texts for each held-out row.
    """

    def __init__(
        self,
        tokens: Tokens,
        rarity: Sequence[Rarity],
        texts: Sequence[Row],
        tasks: Sequence[str] | None = None,
        common: dict[tuple[int, str], Rarity] | None = None,
        scale: float = 1.0,
    ) -> None:
        self._tokens = tokens
        self._texts = _read_texts(texts, tokens)
        self._own = np.array([row.number for row in texts], np.int64)
        task_of = [row.task for row in texts] if tasks is None else tasks
        places: dict[str, list[int]] = defaultdict(list)
        for place, task in enumerate(task_of):
            places[task].append(place)
        self.common = common or self._count_common(places)
        self._indices = []
        for view in VIEWS:
            features = self._texts.views[view]
            share = rarity[view].share(features.code)
            starts = np.searchsorted(features.row, np.arange(len(texts) + 1))
            for task, members in places.items():
                if (counted := self.common.get((view, task))) is None:
                    continue
                chosen = np.concatenate([np.arange(starts[at], starts[at + 1]) for at in members])
                share[chosen] = np.maximum(share[chosen], counted.share(features.code[chosen]))
            weights = -np.log(np.minimum(share, 1.0)).astype(np.float32)
            self._indices.append(ViewIndex(features, weights, len(texts), view != TEMPLATE, scale))

    def _count_common(self, places: dict[str, list[int]]) -> dict[tuple[int, str], Rarity]:
        common: dict[tuple[int, str], Rarity] = {}
        for view in VIEWS:
            features = self._texts.views[view]
            for task, members in places.items():
                if len(members) >= ROWS_OF_TASK_COUNTED:
                    mine = np.isin(features.row, members)
                    common[view, task] = Rarity.of(Features(features.row[mine], features.code[mine]), len(members))
        return common

    @property
    def best(self) -> np.ndarray:
        """float32 of shape (3, texts): likeness of the likest row in each view."""
        return np.stack([index.best for index in self._indices])

    @property
    def partner(self) -> np.ndarray:
        """int64 of shape (3, texts): that row; -1 without any."""
        return np.stack([index.partner for index in self._indices])

    def look_through(self, corpus: Corpus) -> None:
        """Compare all train rows."""
        batch: list[Row] = []
        for row in rows(corpus.batches()):
            if row.split != "eval":
                batch.append(row)
            if len(batch) == BATCH_ROWS:
                self._look_at(batch)
                batch = []
        if batch:
            self._look_at(batch)

    def _look_at(self, batch: Sequence[Row]) -> None:
        read, numbers = self._tokens.read(batch), np.array([row.number for row in batch], np.int64)
        for index, features in zip(self._indices, read.views, strict=True):
            index.search(read, features, numbers, self._texts, self._own)
