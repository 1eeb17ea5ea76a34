"""Check of completions that depend on a column that the model will not see: retrieved texts, notes, a teacher's hints.

Source: Kim et al. 2026 (arXiv 2603.24472): a teacher that knows more writes what the student cannot; the test is our own.
Unit: rows whose completion has words or numbers of the column that the prompt lacks, beyond chance.
Cost: at most 2,000 rows of a task, and of a task that is told 100,000, are read; some 5 ms for a column of 3,000 words.
Blind spot: what the model knows by itself, or could work out from the prompt, counts as unseen; paraphrases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mixwright.audit.unseen import UnseenColumn, find_unseen
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.records import Observation

MAX_PIECES_SHOWN = 3
REMEDY = (
    "Add the column to the prompt, or remove these rows (--out FOLDER lists them); keep rows whose facts the model knows."
)
NULL = "the columns of other rows"


class Unseen(Check):
    """Looks at training rows with a column that is called like a context.

    Args:
        columns: that are contexts, too, whatever their name.
    """

    def __init__(self, columns: Sequence[str] = ()) -> None:
        self.columns = tuple(columns)

    def check(self, corpus: Corpus) -> list[Observation]:
        """Return a warning for each task and column that rows depend on, and a note on the other columns."""
        found = find_unseen(corpus, self.columns)
        observations = [_observe(one) for one in found if one.is_beyond_chance]
        if sound := [one for one in found if not one.is_beyond_chance]:
            names = ", ".join(sorted({repr(one.column) for one in sound}))
            text = f"Completions do not depend on {names} in {len(sound)} of {len(found)} tasks and columns."
            observations.append(Observation("unseen", None, "info", len(sound), len(found), text, "", NULL))
        return observations


def _observe(one: UnseenColumn) -> Observation:
    count = len(one.resting)
    common = Counter(row.pieces[0] for row in one.resting)
    shown = ", ".join(repr(piece) for piece, _ in common.most_common(MAX_PIECES_SHOWN))
    text = (
        f"{count:,} of {one.read:,} rows with a column {one.column!r} ({count / one.read:.0%}) have a completion that uses "
    )
    text += (
        f"its text, which the prompt lacks, such as {shown}. A model trained without it may learn to make such things up."
    )
    evidence = tuple(
        {"id": row.id, "source": row.source, "column": one.column, "only there": ", ".join(row.pieces)}
        for row in one.resting
    )
    return Observation("unseen", one.task, "warning", count, one.read, text, REMEDY, NULL, evidence)
