"""Form of the answers in a comparison's folder: what changed, which tasks went over to another task's form, in words."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mixwright.measure.bases import read_completion_rows
from mixwright.records import Example, plain
from mixwright.runs import RunFolder, read_json, write_json
from mixwright.verdict.evidence import version_of
from mixwright.verdict.form_changes import OWN_MARK_SHARE, FormChange, form_changes
from mixwright.verdict.marks import find_marks
from mixwright.verdict.text import count

ROWS_READ_PER_TASK = 500
"""Rows of a task whose completions are read for their marks."""
KnownForms = dict[str, dict[str, float]]
"""Task -> mark -> share of the completions in its rows that have it."""


@dataclass(frozen=True, slots=True)
class GoneOver:
    """Tasks whose answers now have the form of one other task's answers."""

    other: str
    """That other task."""
    changes: tuple[FormChange, ...]
    """One per task that went over, with its counts."""

    @property
    def shown(self) -> int:
        """Answers after that have the form."""
        return sum(change.after for change in self.changes)

    @property
    def items(self) -> int:
        """Answers of these tasks."""
        return sum(change.items for change in self.changes)

    @property
    def sentence(self) -> str:
        """`58 of 58 answers of 4 tasks now look like answers of ticket`, without a full stop."""
        one = self.changes[0].task if len(self.changes) == 1 else count(len(self.changes), "task")
        return f"{self.shown:,} of {count(self.items, 'answer')} of {one} now look like answers of {self.other}"


def grouped(changes: Iterable[FormChange]) -> list[GoneOver]:
    """The reported changes to another task's form: one per task, that of the most answers, and together what went alike."""
    best: dict[str, FormChange] = {}
    for change in changes:
        if change.reported and change.feature == "form of another task":
            known = best.setdefault(change.task, change)
            best[change.task] = change if change.after > known.after else known
    parts: dict[str, list[FormChange]] = defaultdict(list)
    for change in best.values():
        parts[change.other].append(change)
    found = [GoneOver(other, tuple(members)) for other, members in parts.items()]
    return sorted(found, key=lambda group: (-group.shown, group.other))


def form_changes_of(run: RunFolder) -> list[FormChange]:
    """What changed in the answers of a comparison; empty without completions. Raises InputError for broken ones."""
    completions, known = run.path / "completions.parquet", known_forms_file(run)
    return list(_form_changes(completions, known, (version_of(completions), version_of(known))))


@functools.lru_cache(maxsize=8)
def _form_changes(completions: Path, known: Path, _versions: tuple[object, object]) -> tuple[FormChange, ...]:
    """Kept, because the gate, the first sentence and a section of the page ask for them."""
    return tuple(form_changes(read_completion_rows(completions), read_json(known, KnownForms) if known.is_file() else {}))


def known_forms_file(run: RunFolder) -> Path:
    """Where the forms of the corpus's own completions are kept, because a comparison does not keep the corpus."""
    return run.path / "known_forms.json"


def write_known_forms(run: RunFolder, corpus: Iterable[Example]) -> None:
    """Note which marks the completions have that rows of a task are trained on; nothing where rows have none."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    rows = Counter[str]()
    for example in corpus:
        text = plain(example.target if example.target is not None else example.chosen)
        if text and rows[example.task] < ROWS_READ_PER_TASK:
            rows[example.task] += 1
            found[example.task].update(find_marks(text))
    kept = {
        task: {mark: n / rows[task] for mark, n in sorted(own.items()) if n / rows[task] >= OWN_MARK_SHARE}
        for task, own in sorted(found.items())
    }
    if any(kept.values()):
        write_json(known_forms_file(run), {task: own for task, own in kept.items() if own})
