"""Held-out items that the training data holds too: exact, normalised and near-duplicate.

Source: Li & Flanigan 2023 (arXiv 2312.16337) for task seen against item seen; the nulls and the template mask are our own.
Unit: held-out rows with a partner in train, of the task's held-out rows.
Cost: two passes over the rows, 29 bytes per row, and an index of at most 5000 held-out rows.
Blind spot: paraphrases, translations, and items of which the held-out row quotes only a part.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.audit._chance import chance_explains
from mixwright.audit._near import NearIndex, search
from mixwright.audit._overlap import Case, overlap
from mixwright.audit._rows import fingerprints, sample
from mixwright.contracts import Check
from mixwright.records import Observation, Severity

if TYPE_CHECKING:
    from mixwright.corpus import Corpus

INDEXED = 5000
"""Held-out rows that near-duplicates are looked for."""
REMEDY = "Remove these rows from train or split by prompt."
SEEDS = " Seed generators by a hash, never by seed + 1."


class Contamination(Check):
    """Compares the eval split with the train split.

    Args:
        tolerated: share of a task's held-out rows, 0..1, up to which an overlap that chance explains is only a warning.
        similarity: least Jaccard similarity of word runs for a near-duplicate, 0..1.
    """

    def __init__(self, *, tolerated: float = 0.02, similarity: float = 0.7) -> None:
        self.tolerated = tolerated
        self.similarity = similarity

    def check(self, corpus: Corpus) -> list[Observation]:
        """Item leaks, prompts with two answers, near-duplicates and tasks seen, per task of the eval split."""
        prints = fingerprints(corpus)
        found = overlap(prints)
        if not len(found.held_out) or not len(found.train):
            missing = "train" if len(found.held_out) else "eval"
            text = f"There is no {missing} split, so contamination was not looked for."
            return [Observation("contamination", None, "info", 0, len(corpus), text, "")]
        index = NearIndex(sample(corpus, found.held_out[found.partner < 0], INDEXED), self.similarity)
        near = search(index, corpus)
        seen: list[Observation] = []
        for code in np.unique(found.task[found.held_out]):
            case = Case(corpus, found, int(code), prints.tasks[code])
            seen += [*self._items(case), *self._other_answers(case), *self._near(case, index, near), *self._task_seen(case)]
        return seen

    def _items(self, case: Case) -> list[Observation]:
        shared = case.mine & case.found.shared
        count = int(shared.sum())
        if not count:
            return []
        exact = int((shared & case.found.exact).sum())
        text = f"{count} of {case.total} held-out items stand in train too ({exact} to the character)."
        shift = case.shift(shared)
        if shift is not None:
            text += f" They come in the same order, shifted by {shift}"
            text += ", as generators with neighbouring seeds make them." if shift else "."
        remedy = REMEDY + SEEDS if shift else REMEDY
        severity = self._severity(count, case.total, case.expected)
        return [_observe(case, severity, count, case.total, text, case.show(shared), remedy=remedy)]

    def _other_answers(self, case: Case) -> list[Observation]:
        other = case.mine & case.found.other_answer
        count = int(other.sum())
        text = f"{count} of {case.total} held-out prompts stand in train with another answer."
        remedy = "Find out which answer is right; if both are, keep the prompt in one split."
        seen = _observe(case, "warning", count, case.total, text, case.show(other), remedy=remedy)
        return [seen] if count else []

    def _near(self, case: Case, index: NearIndex, near: dict[int, int]) -> list[Observation]:
        rows = [row.number for row in index.rows if row.task == case.name]
        partners = [(row, near[row]) for row in rows if row in near]
        if not partners:
            return []
        within = index.pairs_within(case.name) / max(math.comb(len(rows), 2), 1)
        expected = len(rows) * -math.expm1(-within * case.train_rows)
        text = f"{len(partners)} of {len(rows)} held-out items nearly stand in train: same numbers and answer, like words."
        null = f"{expected:.3g} rows, were train rows as near to held-out rows as those are to each other"
        severity = self._severity(len(partners), len(rows), expected)
        return [_observe(case, severity, len(partners), len(rows), text, case.pairs(partners), null=null)]

    def _task_seen(self, case: Case) -> list[Observation]:
        count, looked = case.worded_alike()
        text = f"{count} of {looked} held-out prompts are worded like training prompts: the task is seen in training."
        if not count:
            text = "No held-out prompt is worded like a training prompt: this task is new to the model."
        return [
            Observation(
                "contamination",
                case.name,
                "info",
                count,
                looked,
                text,
                "",
                "seeing a task is what training is for; it is no item leak",
            )
        ]

    def _severity(self, count: int, total: int, expected: float) -> Severity:
        return "warning" if chance_explains(count, expected) and count <= self.tolerated * total else "error"


def _observe(
    case: Case,
    severity: Severity,
    count: int,
    total: int,
    text: str,
    shown: tuple[dict[str, Any], ...],
    *,
    remedy: str = REMEDY,
    null: str = "",
) -> Observation:
    return Observation("contamination", case.name, severity, count, total, text, remedy, null or case.null, shown)
