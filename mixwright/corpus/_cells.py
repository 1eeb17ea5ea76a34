"""Cells of the training data, each with its chance level: what somebody without the skill would score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mixwright.corpus._rows import decode, pc, pick
from mixwright.estimates.cell_states import FEWEST_ITEMS
from mixwright.estimates.chance import ROWS, Chance, Rules, chance_level
from mixwright.graders.choice import option_texts
from mixwright.records import Cell, Example

if TYPE_CHECKING:
    from mixwright.corpus import Corpus

READ = 10_000
"""Rows that are read at once, however many cells they are of."""


def find_cells(corpus: Corpus) -> tuple[Cell, ...]:
    """Every task x level of the train split (of all rows when there is none), sorted by key, with its chance level.

    A cell of fewer than `FEWEST_ITEMS` rows takes the chance level of its task's rows.
    """
    train = np.flatnonzero(pc.equal(corpus.table["split"], "train").to_numpy())
    places = members_of(corpus, train if len(train) else np.arange(len(corpus.table)))
    levels: dict[str, list[np.ndarray]] = {}
    for (task, _), members in places.items():
        levels.setdefault(task, []).append(members)
    scored: dict[Any, np.ndarray] = {}  # what a chance level is worked out on: a cell, or the whole of a task with few rows
    for (task, level), members in places.items():
        enough = len(members) >= FEWEST_ITEMS
        scored[(task, level) if enough else task] = members if enough else np.concatenate(levels[task])
    chances = _chances(corpus, scored)
    cells = []
    for (task, level), members in places.items():
        chance = chances[(task, level) if (task, level) in scored else task]
        if chance is None:
            cells.append(Cell(task, level, len(members), 0.0, "no answers"))
        else:
            error = (chance.high - chance.low) / 2
            cells.append(Cell(task, level, len(members), chance.value, chance.rule, error))
    return tuple(sorted(cells, key=lambda cell: cell.key))


def members_of(corpus: Corpus, rows: np.ndarray) -> dict[tuple[str, float | None], np.ndarray]:
    """(task, level) -> which of these rows of the table belong to it, ascending."""
    return rows_by(corpus, rows, "task", "level")


def rows_by(corpus: Corpus, rows: np.ndarray, one: str, other: str) -> dict[tuple[str, Any], np.ndarray]:
    """(value of a column, value of another or None) -> which of these rows of the table have them, ascending."""
    names, name_of = _codes(corpus.table[one])
    values, value_of = _codes(corpus.table[other])
    found, codes = np.unique(name_of[rows] * (len(values) + 1) + value_of[rows], return_inverse=True)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(found) + 1))
    named = [(names[code // (len(values) + 1)], [*values, None][code % (len(values) + 1)]) for code in found.tolist()]
    return {name: rows[order[bounds[at] : bounds[at + 1]]] for at, name in enumerate(named)}


def rules_of(corpus: Corpus, task: str) -> Rules:
    """The rules without the skill that a task's grader and options allow. Raises InputError for a grader that fails."""
    return Rules(corpus.grade, corpus.grader(task).luck, option_texts)


def answered(corpus: Corpus, members: np.ndarray) -> list[Example]:
    """At most `ROWS` of these rows that have an answer, evenly spread."""
    rows = pick(corpus.table, _thinned(members)).to_pylist()
    return [row for row in map(decode, rows) if row.answer is not None]


def _thinned(members: np.ndarray) -> np.ndarray:
    return members[:: max(1, -(-len(members) // ROWS))]


def _chances(corpus: Corpus, scored: dict[Any, np.ndarray]) -> dict[Any, Chance | None]:
    """Chance levels of these groups of rows (key: a task, or task and level); about `READ` rows are read at a time."""
    found: dict[Any, Chance | None] = {}
    waiting: dict[Any, np.ndarray] = {}
    for last, (key, members) in enumerate(scored.items(), 1):
        task = key if isinstance(key, str) else key[0]
        found[key] = None
        if corpus.tasks[task].kind == "verifiable":
            waiting[key] = _thinned(np.sort(members))
        if waiting and (last == len(scored) or sum(map(len, waiting.values())) >= READ):
            wanted = np.unique(np.concatenate(list(waiting.values())))
            rows = dict(zip(wanted.tolist(), map(decode, pick(corpus.table, wanted).to_pylist()), strict=True))
            for group, own in waiting.items():
                name = group if isinstance(group, str) else group[0]
                known = [rows[at] for at in own.tolist() if rows[at].answer is not None]
                found[group] = chance_level(rules_of(corpus, name), known)
            waiting = {}
    return found


def _codes(column: pa.ChunkedArray) -> tuple[list[Any], np.ndarray]:
    """The different values of a column and each row's index among them; one past the last for null."""
    values = column.drop_null().unique()
    codes = pc.index_in(column, value_set=values).fill_null(len(values)).to_numpy()
    return values.to_pylist(), codes.astype(np.int64)
