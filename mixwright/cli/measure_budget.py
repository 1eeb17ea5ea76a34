"""Budget of a measuring without a YAML: parts of the items are measured and timed, then their number is chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from mixwright.cli.budget import Budget
from mixwright.cli.output import say
from mixwright.cli.ready import PreparedModels, measure_with_progress
from mixwright.errors import InputError
from mixwright.measure.fitting import ItemCost, Sizes, count_items, fit_sizes, least_items, most_items_within
from mixwright.measure.passes import Passes
from mixwright.run.progress import format_duration

FIRST_PART_SHARE = 0.3
"""Share of the items after which the time is taken: what is left is chosen by it."""
RESERVED_SHARE = 0.08
"""Share of the budget that is kept for what follows measuring: BEFORE's answers read by AFTER, the page."""
PART_TITLES = ("first part", "second part", "third part", "fourth part")
"""Parts that are timed at most: a further one where the one before was much quicker than expected."""
MUCH_QUICKER_FACTOR = 0.75
"""Times as long as expected, from which down a part was much quicker."""
FEW_COMPLETIONS = 8
"""Completions under which the time of the first part says nothing."""
MAX_SLOWDOWN_FACTOR = 5.0
"""Times that the first part is taken to have been quicker or slower than expected, at most."""
TIMED_ITEMS = 64
"""Items that are read to see how long that takes, where none are written."""
Z_95 = 1.96
"""Half-width of a 95 % interval, standard errors."""


def fit_to_budget(ready: PreparedModels, budget: Budget, model_indices: Sequence[int]) -> PreparedModels:
    """Settings with as many items as the budget allows; parts of them are measured, by whose time the rest is chosen.

    What the first part wrote is kept, so that nothing is written twice.

    Args:
        ready: models and rows; its items and samples are what would be measured without a budget.
        budget: of the whole command.
        model_indices: numbers of the models that are measured.

    Raises:
        InputError: too short for any cell to be judged.
    """
    config, counts = ready.config.measure, _count_items_by_cell(ready)
    wanted_sizes, min_samples = Sizes(config.items, config.samples), int(config.decoding == "sampled")
    cost = ready.cost if ready.free_answers else ItemCost(_time_reading(ready, counts, budget, model_indices), 0.0)
    seconds = budget.seconds_left - RESERVED_SHARE * budget.seconds
    sizes = fit_sizes(counts, seconds, cost, wanted_sizes=wanted_sizes, fewest_samples=min_samples)
    if sizes is None:
        min_seconds = count_items(counts, least_items(counts)) * cost.item_seconds(min_samples)
        needed_seconds = (budget.seconds_spent + min_seconds) / (1 - RESERVED_SHARE)
        expected = f"a budget of {format_duration(needed_seconds)} or more, for {least_items(counts)} items of each cell"
        remedy = "Fewer are never judged. Allow more time, leave tasks out, or give --max-new-tokens a smaller number."
        raise InputError(expected, format_duration(budget.seconds), remedy)
    chosen_sizes, end_seconds = sizes, budget.seconds
    for title in PART_TITLES:
        first_items = max(1, most_items_within(counts, FIRST_PART_SHARE * count_items(counts, sizes.items)))
        part_start, written_before = budget.seconds_spent, _count_written(ready, model_indices)
        written_share = ready.free_answers[0].written_share if ready.free_answers else 1.0
        _measure_models(_with_sizes(ready, Sizes(first_items, sizes.samples)), model_indices, title)
        part_seconds = budget.seconds_spent - part_start
        new_completions = _count_written(ready, model_indices) - written_before
        answered = new_completions / written_share if written_share else 0  # as if the others were written, too
        slowdown = _estimate_slowdown(
            cost, part_seconds, answered, count_items(counts, first_items), sizes.samples, len(model_indices)
        )
        cost = cost.scaled(slowdown)
        done_seconds = count_items(counts, first_items) * cost.item_seconds(sizes.samples)
        chosen_sizes = _refit(
            counts,
            done_seconds + budget.seconds_left - RESERVED_SHARE * budget.seconds,
            cost,
            sizes,
            wanted_sizes,
            first_items,
        )
        end_seconds = (
            budget.seconds_spent
            + count_items(counts, chosen_sizes.items) * cost.item_seconds(chosen_sizes.samples)
            - done_seconds
        )
        if slowdown > MUCH_QUICKER_FACTOR or chosen_sizes.items <= first_items:
            break
        sizes = chosen_sizes  # many more items than were timed: a part of them shows what they take
    say(_format_sizes(counts, chosen_sizes, cost, end_seconds + RESERVED_SHARE * budget.seconds, budget))
    return replace(
        _with_sizes(ready, chosen_sizes), seconds_per_item=cost.item_seconds(chosen_sizes.samples) / len(model_indices)
    )


def _estimate_slowdown(
    cost: ItemCost, seconds: float, new_completions: float, items: int, samples: int, models: int
) -> float:
    """Times as long as expected that the first part took; what was known before it, to find the room, took no time.

    Args:
        cost: as expected.
        seconds: that the part took.
        new_completions: completions that were written; 0 where rows are only read.
        items: of the part.
        samples: of each.
        models: that were measured.
    """
    greedy_completions = max(new_completions / models - samples * items, 0.0) if new_completions else float(items)
    expected = greedy_completions * cost.greedy_seconds + samples * items * cost.sample_seconds
    is_too_few = greedy_completions + samples * items < FEW_COMPLETIONS
    if is_too_few or expected <= 0:
        return 1.0
    return min(max(seconds / expected, 1 / MAX_SLOWDOWN_FACTOR), MAX_SLOWDOWN_FACTOR)


def _refit(
    counts: Sequence[int], seconds: float, cost: ItemCost, sizes: Sizes, wanted_sizes: Sizes, first_items: int
) -> Sizes:
    """The sizes that a time allows now that it is known how long an item takes; samples only where none were drawn yet."""
    if not sizes.samples:
        refitted = fit_sizes(counts, seconds, cost, wanted_sizes=wanted_sizes)
        if refitted is not None and refitted.items >= first_items:
            return refitted
    return Sizes(
        max(first_items, most_items_within(counts, seconds / max(cost.item_seconds(sizes.samples), 1e-12))), sizes.samples
    )


def _time_reading(ready: PreparedModels, counts: Sequence[int], budget: Budget, model_indices: Sequence[int]) -> float:
    """Seconds per item of reading a few of them, all models together, where nothing is written."""
    items_per_cell, start_seconds = max(1, TIMED_ITEMS // max(len(counts), 1)), budget.seconds_spent
    _measure_models(_with_sizes(ready, Sizes(items_per_cell, ready.config.measure.samples)), model_indices, "a few items")
    return (budget.seconds_spent - start_seconds) / count_items(counts, items_per_cell)


def _count_items_by_cell(ready: PreparedModels) -> list[int]:
    """Items that can be graded, or read, of each cell."""
    rows = ready.corpus
    all_passes = Passes(ready.learners[0], None, replace(ready.config.measure, items=len(rows)), rows)
    if not ready.graded:
        all_passes.chosen = all_passes.picked(lambda _: True)
    return [len(items) for items in all_passes.cells.values()]


def _with_sizes(ready: PreparedModels, sizes: Sizes) -> PreparedModels:
    measure = replace(ready.config.measure, items=sizes.items, samples=sizes.samples)
    manifest_settings = {
        **ready.manifest_settings,
        "items": sizes.items,
        **({"samples": sizes.samples} if "samples" in ready.manifest_settings else {}),
    }
    return replace(ready, config=replace(ready.config, measure=measure), manifest_settings=manifest_settings)


def _measure_models(ready: PreparedModels, model_indices: Sequence[int], title: str) -> None:
    for number in model_indices:
        start = ready.learners[0] if number else None
        measure_with_progress(f"{title}, model {number + 1}", ready.learners[number], ready, start=start)


def _count_written(ready: PreparedModels, model_indices: Sequence[int]) -> int:
    """Completions that the models wrote so far."""
    return sum(getattr(ready.learners[number], "written", 0) for number in model_indices)


def _format_sizes(counts: Sequence[int], sizes: Sizes, cost: ItemCost, end_seconds: float, budget: Budget) -> str:
    """What is measured, what it will see, and what twice the time would buy."""
    items, all_items = count_items(counts, sizes.items), count_items(counts, max(counts))
    text = f"budget: {items:,} items, greedy{f' and {sizes.samples} sampled' if sizes.samples else ' alone'}"
    text += f", in all {format_duration(end_seconds)}; success over all to within {100 * half_width(items):.0f} points"
    if items == all_items:
        return f"{text}; these are all items that there are"
    further_items = budget.seconds / max(cost.item_seconds(sizes.samples), 1e-12)
    doubled_items = count_items(counts, most_items_within(counts, items + further_items))
    return f"{text}; twice the time would measure {doubled_items:,}, to within {100 * half_width(doubled_items):.0f}"


def half_width(items: int) -> float:
    """Half a 95 % interval of a success of one half over so many items; a share."""
    return Z_95 * math.sqrt(0.25 / max(items, 1))
