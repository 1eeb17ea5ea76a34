"""Table of a cell's answers graded on its other prompts, which S, D and the permutation test come from.

S, the swapped success, is the mean grade of the answers to one prompt on another prompt of the cell; D = success - S is what
of success depends on the prompt (`estimates/dependence.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.estimates.dependence import Dependence, dependence, permutation_p
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
    tables = {name: grade_swapped(passes, items, name) for name in passes.names}
    dependence_by_name = {name: dependence(table) for name, table in tables.items()}
    ids = [item.id for item in items]
    pseudo_values = {
        name: dict(zip(ids, dependence_of_name.items.tolist(), strict=True))
        for name, dependence_of_name in dependence_by_name.items()
    }
    return Swaps(dependence_by_name, {name: permutation_p(table, rng) for name, table in tables.items()}, pseudo_values)


def grade_swapped(passes: Passes, items: Sequence[Example], name: str) -> np.ndarray:
    """Shape (items, items): mean grade of the answers to one item judged on another; NaN for pairs left out.

    Answers to rows with options are taken by their place among the options, so that a habit of one place is no skill.
    """
    count, shifts = len(items), list(range(len(items)))
    if count > MAX_ITEMS_ALL_PAIRS:
        shifts = [0, *np.linspace(1, count - 1, OTHER_ITEMS_PER_ITEM).astype(int).tolist()]
    table = np.full((count, count), np.nan)
    known_grades: dict[tuple[int, str, bool], bool] = {}
    for row, item in enumerate(items):
        answers = passes.rollouts[item.id].texts(name)
        for shift in shifts:
            column = (row + shift) % count
            right_count = 0.0
            for (text, cut), times in answers.items():
                moved_text = text if not shift else _move_answer(item, items[column], text)
                key = (column, moved_text, cut)
                if key not in known_grades:
                    known_grades[key] = passes.grades.grade(items[column], moved_text, cut=cut) >= RIGHT_FROM_SCORE
                right_count += times * known_grades[key]
            table[row, column] = right_count / sum(answers.values())
    return table


def _move_answer(item: Example, other_item: Example, text: str) -> str:
    """An answer as it would be given to another prompt: the option at the same place, else the same text."""
    options = item.extra.get("options", item.extra.get("choices"))
    option = option_index(options, text) if options else None
    if option is None:
        return text
    other_options = option_texts(other_item)
    return other_options[option] if option < len(other_options) else ""
