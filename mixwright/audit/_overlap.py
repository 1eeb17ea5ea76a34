"""Which held-out rows stand in train too: by 64-bit fingerprints, whatever the tasks are called.

Left out on purpose: judging. An overlap is a leak or chance only beside its null, which `Case` works out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.audit._chance import Template
from mixwright.audit._rows import SAMPLE, SHOWN, Fingerprints, evidence, sample

if TYPE_CHECKING:
    from mixwright.corpus import Corpus


@dataclass(frozen=True)
class Overlap:
    """Held-out rows against train rows; arrays of shape (held-out rows,) unless said otherwise."""

    held_out: np.ndarray
    """int64: their row numbers in the corpus."""
    train: np.ndarray
    """int64 of shape (train rows,): row numbers of train."""
    task: np.ndarray
    """int32 of shape (rows,): the fingerprints' task codes."""
    shared: np.ndarray
    """bool: the item, prompt and answer, stands in train (an answer missing on either side agrees with any)."""
    exact: np.ndarray
    """bool: shared, and the prompt is the same to the character."""
    other_answer: np.ndarray
    """bool: the prompt stands in train, only ever with other answers."""
    partner: np.ndarray
    """int64: row number of the first train row with that prompt (and answer, where shared); -1 without any."""


def overlap(prints: Fingerprints) -> Overlap:
    """Compare the splits."""
    held_out, train = np.flatnonzero(prints.held_out), np.flatnonzero(~prints.held_out)
    pair = prints.pair(prints.normal)
    by_prompt = _first(prints.normal[train], prints.normal[held_out])
    by_item = _first(pair[train], pair[held_out])
    open_ended = train[prints.answer[train] == 0]
    by_open = _first(prints.normal[open_ended], prints.normal[held_out])
    unanswered = (prints.answer[held_out] == 0) & (by_prompt >= 0)
    shared = (by_item >= 0) | (by_open >= 0) | unanswered
    partner = np.full(len(held_out), -1, np.int64)
    for where, rows in ((by_prompt, train), (by_open, open_ended), (by_item, train)):  # the best match is written last
        partner[where >= 0] = rows[where[where >= 0]]
    return Overlap(
        held_out=held_out,
        train=train,
        task=prints.task,
        shared=shared,
        exact=shared & (_first(prints.exact[train], prints.exact[held_out]) >= 0),
        other_answer=(by_prompt >= 0) & ~shared,
        partner=partner,
    )


class Case:
    """One task of the eval split beside the train rows it is compared with: those of its partners' tasks.

    `mine` (bool, shape (held-out rows,)) marks its rows; `expected` is how many of them chance alone puts in train.
    """

    def __init__(self, corpus: Corpus, found: Overlap, code: int, name: str) -> None:
        self.corpus, self.found, self.name = corpus, found, name
        self.mine = found.task[found.held_out] == code
        self.total = int(self.mine.sum())
        related = np.unique(found.task[found.partner[self.mine & (found.partner >= 0)]])
        self._train = found.train[np.isin(found.task[found.train], related if len(related) else [code])]
        self.train_rows = len(self._train)
        train = self._train if len(self._train) else found.train
        self._seen = [row.prompt for row in sample(corpus, train, SAMPLE)]
        self._asked = [row.prompt for row in sample(corpus, found.held_out[self.mine], SAMPLE)]
        self._template = Template.learn(self._seen, self._asked)
        self.expected = self._template.expected_shared(self._seen, self._asked, self.train_rows, self.total)
        space = self.total * self.train_rows / self.expected if self.expected else float("inf")
        self.null = f"by chance {self.expected:.3g} rows: two prompts of this task agree once in {space:.3g} pairs"

    def worded_alike(self) -> tuple[int, int]:
        """Of the held-out rows looked at, how many have the wording of a train row, slots apart; and how many were."""
        known = set(map(self._template.wording, self._seen))
        return sum(self._template.wording(prompt) in known for prompt in self._asked), len(self._asked)

    def shift(self, which: np.ndarray) -> int | None:
        """Rows between held-out items and their partners, if 9 of 10 have the same distance: neighbouring seeds do that."""
        mine, train = self.found.held_out[self.mine], self._train
        distances = np.searchsorted(train, self.found.partner[which]) - np.searchsorted(mine, self.found.held_out[which])
        if len(distances) < 10:
            return None
        shift, times = Counter(distances.tolist()).most_common(1)[0]
        return shift if times >= 0.9 * len(distances) else None

    def show(self, which: np.ndarray) -> tuple[dict[str, Any], ...]:
        """The first few of the held-out rows marked, each with its partner in train."""
        at = np.flatnonzero(which)[:SHOWN]
        return self.pairs(zip(self.found.held_out[at].tolist(), self.found.partner[at].tolist(), strict=True))

    def pairs(self, rows: Any) -> tuple[dict[str, Any], ...]:
        """The first few pairs of row numbers (held-out, train) as evidence."""
        kept = list(rows)[:SHOWN]
        return tuple(evidence(self.corpus, a, "eval_") | evidence(self.corpus, b, "train_") for a, b in kept)


def _first(known: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Position in `known` of the first value equal to each of `wanted`; -1 where there is none."""
    if not len(known):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(known, kind="stable")
    at = np.searchsorted(known, wanted, sorter=order)
    found = order[np.minimum(at, len(known) - 1)]
    return np.where(known[found] == wanted, found, -1)
