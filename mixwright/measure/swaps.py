"""Table of a cell's answers graded on its other prompts, which S, D and the permutation test come from.

S, the swapped success, is the mean grade of the answers to one prompt on another prompt of the cell; D = success - S is what
of success depends on the prompt (`estimates/dependence.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.estimates.dependence import Dependence, dependence_of_shifts, permutation_p_of_shifts
from mixwright.graders.choice import option_index, option_texts
from mixwright.measure.passes import Group, Passes
from mixwright.records import Example

MAX_ITEMS_ALL_PAIRS = 100
"""Items of a cell up to which every answer is graded on every other item; of more, each on `OTHER_ITEMS_PER_ITEM` others."""
OTHER_ITEMS_PER_ITEM = 64


@dataclass(frozen=True)
class Swaps:
    """What was worked out once for a set of items."""

    dependence_by_name: Mapping[str, Dependence]
    """By measurement (greedy, pass@1); empty for fewer than three items."""
    p_by_name: Mapping[str, float]
    """Of the permutation test, by measurement."""
    pseudo_values: Mapping[str, Mapping[str, float]]
    """Measurement -> id of an item -> jackknife pseudo-value of S: their mean over items is S."""


def swap_cells(passes: Passes, cells: Mapping[Group, Sequence[Example]], rng: np.random.Generator) -> dict[Group, Swaps]:
    """Every cell by its own items; the small ones of a task together, with all of the task's items where they are few."""
    small_cell_items: dict[str, list[Example]] = defaultdict(list)
    for (task, _), items in cells.items():
        if len(items) < MIN_ITEMS:
            small_cell_items[task] += items
    swaps_by_task = {}
    for task, items in small_cell_items.items():
        if len(items) < MIN_ITEMS:
            items = [item for (cell_task, _), members in cells.items() if cell_task == task for item in members]
        swaps_by_task[task] = swap_answers(passes, items, rng)
    return {
        (task, level): swap_answers(passes, items, rng) if len(items) >= MIN_ITEMS else swaps_by_task[task]
        for (task, level), items in cells.items()
    }


def swap_answers(passes: Passes, items: Sequence[Example], rng: np.random.Generator) -> Swaps:
    """S, dependence and the permutation test of some items, both decodings; where nothing can be swapped, S is success."""
    if len(items) < 3:
        # no answer could be swapped: nothing of their success counts as dependence, so that none is claimed from them
        success = {name: {item.id: passes.rollouts[item.id].success(name) for item in items} for name in passes.names}
        return Swaps({}, {}, success)
    shifts = choose_shifts(len(items))
    tables = {name: grade_swapped(passes, items, name, shifts) for name in passes.names}
    dependence_by_name = {name: dependence_of_shifts(table, shifts) for name, table in tables.items()}
    ids = [item.id for item in items]
    pseudo_values = {
        name: dict(zip(ids, dependence_of_name.items.tolist(), strict=True))
        for name, dependence_of_name in dependence_by_name.items()
    }
    p_by_name = {name: permutation_p_of_shifts(table, shifts, rng) for name, table in tables.items()}
    return Swaps(dependence_by_name, p_by_name, pseudo_values)


def choose_shifts(count: int) -> NDArray[np.int64]:
    """How far behind an item, among so many, those are that its answers are judged on; the first is 0, the item itself."""
    if count <= MAX_ITEMS_ALL_PAIRS:
        return np.arange(count)
    return np.array([0, *np.linspace(1, count - 1, OTHER_ITEMS_PER_ITEM).astype(int)])


def grade_swapped(passes: Passes, items: Sequence[Example], name: str, shifts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Shape (items, shifts): mean grade of the answers to an item, judged on the one that is so far behind it.

    Answers to rows with options are taken by their place among the options, so that a habit of one place is no skill.
    """
    count, answers_by_row = len(items), [passes.rollouts[item.id].texts(name) for item in items]
    table = np.zeros((count, len(shifts)))
    for column, other_item in enumerate(items):
        known_grades: dict[tuple[str, bool], bool] = {}
        for place, shift in enumerate(shifts.tolist()):
            row = (column - shift) % count
            right_count = 0.0
            for (text, cut), times in answers_by_row[row].items():
                key = (text if not shift else _move_answer(items[row], other_item, text), cut)
                if key not in known_grades:
                    known_grades[key] = passes.grades.grade(other_item, key[0], cut=cut) >= RIGHT_FROM_SCORE
                right_count += times * known_grades[key]
            table[row, place] = right_count / sum(answers_by_row[row].values())
    return table


def _move_answer(item: Example, other_item: Example, text: str) -> str:
    """An answer as it would be given to another prompt: the option at the same place, else the same text."""
    options = item.extra.get("options", item.extra.get("choices"))
    option = option_index(options, text) if options else None
    if option is None:
        return text
    other_options = option_texts(other_item)
    return other_options[option] if option < len(other_options) else ""
