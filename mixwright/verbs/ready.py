"""Models and rows that are ready to be measured without a YAML, the measuring, and its budget.

With a budget ever more items are measured and timed, until no more fit into the time.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, Any

from mixwright.config import RunConfig
from mixwright.corpus import Corpus
from mixwright.corpus.timed_grades import KeptGrades
from mixwright.errors import InputError
from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.measure.passes import Passes
from mixwright.measure.stage import MeasureResult, measure_learner
from mixwright.records import Observation
from mixwright.run.progress import format_duration, share_line
from mixwright.verbs.budget import RESERVED_SHARE, Budget
from mixwright.verbs.output import say

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner
    from mixwright.measure.kept_answers import KeepingLearner

GROWTH_FACTOR = 4
"""Times as many items as were timed that may follow untimed: larger batches are quicker, so the first items say little."""
Z_95 = 1.96
"""Half-width of a 95 % interval, standard errors."""


@dataclass(frozen=True, slots=True)
class PreparedModels:
    """Models and rows, checked and loaded."""

    config: RunConfig
    """Settings of what is measured; those of training are defaults and nothing is said of them."""
    corpus: Corpus
    """Rows that can be graded, or compared without."""
    learners: tuple[KeepingLearner, ...]
    """In the order of the paths."""
    settings: Mapping[str, Any]
    """How it is measured, by name, for the manifest."""
    graded: bool = True
    """Whether completions are written and graded; else probabilities of the rows' own targets or pairs are read."""
    notes: tuple[Observation, ...] = ()
    """Graders that were changed because of the first model's first completions."""
    nested: bool = False
    """Whether what is sampled for an item does not depend on how many others are measured."""
    seconds_per_item: float = 0.0
    """Seconds per item of one model, where a part was measured before; 0 where nobody took the time."""
    kept_grades: KeptGrades = field(default_factory=dict)
    """Grades so far: the next interim analysis grades new answers alone."""

    def with_items(self, items: int) -> PreparedModels:
        """The same with so many items of a cell."""
        config = replace(self.config, measure=replace(self.config.measure, items=items))
        return replace(self, config=config, settings={**self.settings, "items": items})


def measure_with_progress(title: str, learner: Learner, ready: PreparedModels) -> MeasureResult:
    """Measure one model, with a progress line on stderr that says how much time is left."""
    config, start_time = ready.config.measure, monotonic()
    passes = Passes(learner, config, ready.corpus)
    item_count = len(passes.items if ready.graded else passes.picked(lambda _: True))
    with share_line(f"{title}, {item_count:,} items", item_count) as show:
        options = {"seed": ready.config.seed, "nested": ready.nested, "report_done": show, "kept_grades": ready.kept_grades}
        result = measure_learner(learner, ready.corpus, config, **options)
    return replace(result, seconds_per_item=ready.seconds_per_item or (monotonic() - start_time) / max(item_count, 1))


def measure_both(ready: PreparedModels, title: str = "") -> dict[str, MeasureResult]:
    """Measure the models of a comparison, on the same items."""
    sides = zip(("before", "after"), ready.learners, strict=True)
    return {side: measure_with_progress(f"measure {side}{title}", learner, ready) for side, learner in sides}


def fit_to_budget(ready: PreparedModels, budget: Budget | None) -> PreparedModels:
    """Return settings with as many items as the budget allows, by the time that the first items take.

    What is measured on the way is kept in the store, so nothing is written twice.

    Args:
        ready: models and rows.
        budget: of the whole command; without one nothing is timed.

    Raises:
        InputError: too short for any cell to be judged.
    """
    if budget is None:
        return ready
    counts, items, new_items = _count_items_by_cell(ready), 1, 0
    while True:
        start, measured = budget.seconds_spent, new_items
        new_items = count_items(counts, items)
        for number, learner in enumerate(ready.learners):
            measure_with_progress(f"first items, model {number + 1}", learner, ready.with_items(items))
        seconds_per_item = max(budget.seconds_spent - start, 1e-9) / (new_items - measured)
        seconds_left = budget.seconds_left - RESERVED_SHARE * budget.seconds
        fitting = most_items_within(counts, new_items + seconds_left / seconds_per_item)
        if fitting < (fewest := min(MIN_ITEMS, max(counts))):
            needed_seconds = (budget.seconds_spent + count_items(counts, fewest) * seconds_per_item) / (1 - RESERVED_SHARE)
            expected = f"a budget of {format_duration(needed_seconds)} or more, for {fewest} items per task and level"
            remedy = "With fewer items nothing is judged. Allow more time, leave tasks out, or lower --max-new-tokens."
            raise InputError(expected, format_duration(budget.seconds), remedy)
        if fitting <= GROWTH_FACTOR * items:
            break
        items *= GROWTH_FACTOR
    chosen = max(fitting, items)
    items, all_items = count_items(counts, chosen), count_items(counts, max(counts))
    precision = f"{100 * half_width(items):.0f} points"
    say(f"budget: {items:,} of {all_items:,} items fit, which gives average success to within {precision}")
    return replace(ready.with_items(chosen), seconds_per_item=seconds_per_item / len(ready.learners))


def _count_items_by_cell(ready: PreparedModels) -> list[int]:
    """Items that can be graded, or read, of each cell."""
    rows = ready.corpus
    all_passes = Passes(ready.learners[0], replace(ready.config.measure, items=len(rows)), rows)
    if not ready.graded:
        all_passes.chosen = all_passes.picked(lambda _: True)
    return [len(items) for items in all_passes.cells.values()]


def half_width(items: int) -> float:
    """Return half a 95 % interval of a success of one half over so many items; a share."""
    return Z_95 * math.sqrt(0.25 / max(items, 1))


def count_items(counts: Sequence[int], most_per_cell: int) -> int:
    """Items over all cells of these counts, at most `most_per_cell` of one cell."""
    return sum(min(count, most_per_cell) for count in counts)


def most_items_within(counts: Sequence[int], items: float) -> int:
    """The largest number per cell with which at most so many items are measured over all cells; 0 where one is too many."""
    return max(0, bisect_right(range(max(counts) + 1), items, key=lambda most: count_items(counts, most)) - 1)
