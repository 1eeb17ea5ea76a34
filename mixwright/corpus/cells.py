"""Cells of the training data, each with its chance level: the success of the best rule without the skill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mixwright.corpus.rows import GradedRows, group_rows, pc, read_groups
from mixwright.errors import InputError, one_line
from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.chance import MAX_ROWS_TRIED, Grade, Rules, chance_level
from mixwright.graders import Grader
from mixwright.graders.choice import option_texts
from mixwright.graders.final_answer import FinalAnswer
from mixwright.records import Cell, Example, cell_key

POOLED_LEVEL = "small"
"""Stands for the level of all cells of a task that are too small for a chance level of their own."""


def find_cells(corpus: GradedRows) -> tuple[Cell, ...]:
    """Every task x level of the train split (of all rows when there is none), sorted by key, with its chance level.

    A cell of fewer than `MIN_ITEMS` rows takes the chance level of its task's rows.
    Raises InputError as `check_keys` does.
    """
    train = np.flatnonzero(pc.equal(corpus.table["split"], "train").to_numpy())
    rows_by_cell = rows_by(corpus, train if len(train) else np.arange(len(corpus.table)), "task", "level")
    check_keys(rows_by_cell)
    rows_by_task: dict[str, list[np.ndarray]] = {}
    for (task, _), members in rows_by_cell.items():
        rows_by_task.setdefault(task, []).append(members)
    rows_of_chance = {}  # the rows that each chance level is found on, once: those of a small cell with its task's
    for (task, level), members in rows_by_cell.items():
        if len(members) >= MIN_ITEMS:
            rows_of_chance[task, level] = members
        elif (task, POOLED_LEVEL) not in rows_of_chance:
            rows_of_chance[task, POOLED_LEVEL] = np.concatenate(rows_by_task[task])
    chances = {
        (task, pool): chance_level(chance_rules_of(corpus, task), rows) if corpus.tasks[task].kind == "verifiable" else None
        for (task, pool), rows in zip(rows_of_chance, sample_answered_rows(corpus, rows_of_chance.values()), strict=True)
    }
    cells = []
    for (task, level), members in rows_by_cell.items():
        chance = chances[task, level if len(members) >= MIN_ITEMS else POOLED_LEVEL]
        value, rule = (0.0, "no answers") if chance is None else (chance.value, chance.rule)
        cells.append(Cell(task, level, len(members), value, rule))
    return tuple(sorted(cells, key=lambda cell: cell.key))


def check_keys(cells: Iterable[tuple[str, float | None]]) -> None:
    """Raise InputError when two cells, each a task and its level, have one name in files, or in tables (on one line)."""
    if twice := [key for key, count in Counter(one_line(cell_key(*cell)) for cell in cells).items() if count > 1]:
        got = f"{twice[0]!r} for more than one task and level"
        raise InputError(
            "a different name for each task and level (task@level, six digits)", got, "Rename tasks or round levels."
        )


def rows_by(corpus: GradedRows, rows: np.ndarray, *columns: str) -> dict[tuple[Any, ...], np.ndarray]:
    """Values of columns -> which of these rows of the table have them, ascending; in the order of the columns, None last."""
    groups = group_rows(corpus.table.select(columns).take(rows), rows)
    known = [corpus.table[name].drop_null().unique().to_pylist() for name in columns]
    ranks = [{value: rank for rank, value in enumerate([*values, None])} for values in known]
    order = sorted(groups, key=lambda key: [rank[value] for rank, value in zip(ranks, key, strict=True)])
    return {key: groups[key] for key in order}


def chance_rules_of(corpus: GradedRows, task: str) -> Rules:
    """The rules without the skill that a task's grader and options allow. Raises InputError for a grader that fails."""
    return chance_rules(corpus.grader(task), corpus.grade)


def chance_rules(grader: Grader, grade: Grade) -> Rules:
    """The same where a grader judges, and `grade` asks it."""

    def blind(rows: Sequence[Example]) -> float | None:  # letters that prompts list can be guessed whoever judges them
        luck = grader.luck(rows)
        return FinalAnswer().luck(rows) if luck is None else luck

    return Rules(grade, blind, option_texts, grader.reading)


def sample_answered_rows(corpus: GradedRows, groups: Iterable[np.ndarray]) -> Iterator[list[Example]]:
    """Of each group of row indices at most `MAX_ROWS_TRIED` that have an answer, evenly spread."""
    thin = (members[:: max(1, -(-len(members) // MAX_ROWS_TRIED))] for members in groups)
    for rows in read_groups(corpus.table, thin):
        yield [row for row in rows if row.answer is not None]
