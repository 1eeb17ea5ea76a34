"""What success is compared with: answers graded on other prompts of their cell, and what a rule without the skill earns.

S, the swapped success, is the mean grade of the answers to one prompt on another prompt of the cell; D = success - S is what
of success depends on the prompt (`estimates/dependence.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mixwright.answers.table import Answers, CellNull, Group, SwapTest
from mixwright.corpus.rows import pc
from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.chance import RIGHT_FROM_SCORE, Rules, chance_level
from mixwright.estimates.dependence import dependence_of_shifts, permutation_p_of_shifts
from mixwright.graders.choice import option_index, option_texts, options_of
from mixwright.records import Example

MAX_ITEMS_ALL_PAIRS = 100
"""Items of a cell up to which every answer is graded on every other item; of more, each on `OTHER_ITEMS_PER_ITEM` others."""
OTHER_ITEMS_PER_ITEM = 64


class Grade(Protocol):
    """Score of a text as the answer to an example, 0..1."""

    def __call__(self, example: Example, completion: str, *, cut: bool = False) -> float:
        """Grade it; `cut`: it reached the limit of tokens."""
        ...


def add_nulls(
    answers: Answers,
    examples: Sequence[Example],
    grade: Grade,
    rules_of: Callable[[str], Rules],
    train_rows: Mapping[Group, Sequence[Example]],
    rng: np.random.Generator,
) -> Answers:
    """Fill the columns `swapped` and `chance`, and the header's nulls.

    Args:
        answers: graded.
        examples: their items, in the order of the table.
        grade: grades other answers to them.
        rules_of: task -> rules without the skill.
        train_rows: cell -> rows that rules are chosen on, before the items themselves.
        rng: of the permutation tests.
    """
    texts, known = {decoding: texts_of(answers, decoding) for decoding in answers.decodings}, _known_grades(answers)
    swapped = {decoding: np.full(len(examples), np.nan) for decoding in answers.decodings}
    tests: dict[Group, dict[str, SwapTest]] = defaultdict(dict)
    for places, cells in pool_cells(answers.cells):
        is_own = np.isin(places, np.concatenate([answers.cells[cell] for cell in cells]))
        shifts, own = choose_shifts(len(places)), [examples[place] for place in places]
        for decoding in answers.decodings:
            if len(places) > 2:
                table = grade_swapped(own, [texts[decoding][place] for place in places], grade, known, shifts)
                found = dependence_of_shifts(table, shifts)
                p, values = permutation_p_of_shifts(table, shifts, rng), found.items
                for cell in cells:
                    tests[cell][decoding] = SwapTest(found.swapped, found.dependence, found.kappa, p)
            else:  # no answer could be swapped: nothing of their success counts as dependence, so that none is claimed
                values = answers.by_decoding[decoding].success[places]
            swapped[decoding][places[is_own]] = values[is_own]
    chance, nulls = np.full(len(examples), np.nan), list[CellNull]()
    for (task, level), places in answers.cells.items():
        items = [examples[place] for place in places]
        rows = _rows_to_choose_on((task, level), len(items), examples, train_rows)
        level_found = chance_level(rules_of(task), items, rows)
        chance[places] = level_found.hits
        nulls.append(CellNull(task, level, level_found.interval, level_found.rule, tests[task, level]))
    swapped_by_row = np.full(len(answers.table), np.nan)
    for decoding, values in swapped.items():
        own_rows = answers.by_decoding[decoding].rows
        swapped_by_row[own_rows] = values[answers.place[own_rows]]
    header = replace(answers.header, nulls=tuple(nulls))
    return answers.with_columns(header, swapped=swapped_by_row, chance=chance[answers.place])


def texts_of(answers: Answers, decoding: str) -> list[Texts]:
    """What is graded of each item's answers."""
    found: list[Texts] = [Counter() for _ in range(answers.item_count)]
    rows = answers.by_decoding[decoding].rows
    for place, text, cut in zip(answers.place[rows].tolist(), *_graded_columns(answers, rows), strict=True):
        found[place][text, cut] += 1
    return found


def _known_grades(answers: Answers) -> dict[tuple[str, str, bool], bool]:
    """Item, text and whether it was cut -> whether it is right there."""
    rows = np.arange(len(answers.table))
    right: dict[tuple[str, str, bool], list[float]] = defaultdict(list)
    columns = (answers.table["item"].to_pylist(), *_graded_columns(answers, rows), answers.column("right").tolist())
    for item, text, cut, score in zip(*columns, strict=True):
        right[item, text, cut].append(score)
    return {key: sum(scores) / len(scores) >= RIGHT_FROM_SCORE for key, scores in right.items()}


def _graded_columns(answers: Answers, rows: NDArray[np.int64]) -> tuple[list[str], list[bool]]:
    table = answers.table.select(["read", "text", "cut"]).take(rows)
    return pc.coalesce(table["read"], table["text"], "").to_pylist(), table["cut"].to_pylist()


def _rows_to_choose_on(
    cell: Group, count: int, examples: Sequence[Example], train_rows: Mapping[Group, Sequence[Example]]
) -> Sequence[Example]:
    """Training rows of the cell, else of its task; else, if the cell is small, the task's other items."""
    task, level = cell
    rows = train_rows.get(cell, ())
    if len(rows) < MIN_ITEMS:
        rows = [row for (other, _), own in train_rows.items() if other == task for row in own]
    if len(rows) < MIN_ITEMS:
        rows = [item for item in examples if count < MIN_ITEMS and item.task == task and item.level != level]
    return rows


def pool_cells(cells: Mapping[Group, NDArray[np.int64]]) -> list[tuple[NDArray[np.int64], list[Group]]]:
    """Items that are judged for dependence together, and the cells that they are judged for.

    Each cell by its own items; the small ones of a task together, with all of the task's items if they are few.
    """
    small: dict[str, list[Group]] = defaultdict(list)
    for cell, places in cells.items():
        if len(places) < MIN_ITEMS:
            small[cell[0]].append(cell)
    pools = []
    for task, own in small.items():
        places = np.concatenate([cells[cell] for cell in own])
        if len(places) < MIN_ITEMS:
            places = np.concatenate([places for cell, places in cells.items() if cell[0] == task])
        pools.append((places, own))
    return pools + [(places, [cell]) for cell, places in cells.items() if len(places) >= MIN_ITEMS]


def choose_shifts(count: int) -> NDArray[np.int64]:
    """How far behind an item, among so many, those are that its answers are judged on; the first is 0, the item itself."""
    if count <= MAX_ITEMS_ALL_PAIRS:
        return np.arange(count)
    return np.array([0, *np.linspace(1, count - 1, OTHER_ITEMS_PER_ITEM).astype(int)])


Texts = Counter[tuple[str, bool]]
"""What is graded of the answers to an item, each with whether it was cut -> how often it was given."""


def grade_swapped(
    examples: Sequence[Example],
    texts: Sequence[Texts],
    grade: Grade,
    known: Mapping[tuple[str, str, bool], bool],
    shifts: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Shape (items, shifts): mean grade of the answers to an item, judged on the one that is so far behind it.

    Answers to rows with options are taken by their place among the options, so that a habit of one place is no skill.

    Args:
        examples: the items.
        texts: their answers.
        grade: grades an answer on an item that it was not given to.
        known: id of an item, text and whether it was cut -> whether it is right there.
        shifts: see `choose_shifts`.
    """
    count = len(examples)
    table = np.zeros((count, len(shifts)))
    for column, example in enumerate(examples):
        grades: dict[tuple[str, bool], bool] = {}
        for place, shift in enumerate(shifts.tolist()):
            row = (column - shift) % count
            right_count = 0.0
            for (text, cut), times in texts[row].items():
                key = (text if not shift else _move_answer(examples[row], example, text), cut)
                if key not in grades:
                    own = known.get((example.id, *key))
                    grades[key] = grade(example, key[0], cut=cut) >= RIGHT_FROM_SCORE if own is None else own
                right_count += times * grades[key]
            table[row, place] = right_count / sum(texts[row].values())
    return table


def _move_answer(item: Example, other_item: Example, text: str) -> str:
    """An answer as it would be given to another prompt: the option at the same place, else the same text."""
    option = option_index(options_of(item.extra), text)
    if option is None:
        return text
    other_options = option_texts(other_item)
    return other_options[option] if option < len(other_options) else ""
