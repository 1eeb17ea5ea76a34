"""Budget of a command: the time that it may take, and what is measured so that it ends within it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

from mixwright.errors import InputError
from mixwright.workers.progress import format_duration

if TYPE_CHECKING:
    from mixwright.cli.direct import Ready, Say
    from mixwright.measure.fitting import Sizes

BEGAN = monotonic()
"""When the command line was loaded, about when the command was given."""
FIRST_SHARE = 0.3
"""Share of the items after which the time is taken: what is left is chosen by it."""
RESERVE = 0.08
"""Share of the budget that is kept for what follows measuring: answers that were lost, the page."""
TIMED_ITEMS = 64
"""Items that are read to see how long that takes, where none are written."""
Z = 1.96
"""Half-width of a 95 % interval, standard errors."""


def parse_duration(text: str) -> float:
    """Seconds of `90s`, `20m`, `1h30m`. Raises InputError for anything else, and for nothing."""
    parts = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", text.strip().lower())
    seconds = (
        sum(float(part) * unit for part, unit in zip(parts.groups(), (3600, 60, 1), strict=True) if part) if parts else 0
    )
    if not 0 < seconds < math.inf:
        raise InputError("a duration such as 90s, 20m or 1h30m (--budget)", repr(text), "Correct it.")
    return seconds


@dataclass(frozen=True, slots=True)
class Budget:
    """Time that a command may take, from when it began."""

    seconds: float
    """In all."""
    began: float
    """Reading of the clock, seconds."""

    @property
    def left(self) -> float:
        """Seconds."""
        return self.seconds - self.spent

    @property
    def spent(self) -> float:
        """Seconds."""
        return monotonic() - self.began


def start_budget(text: str) -> Budget:
    """The budget of the command that was given. Raises InputError as `parse_duration`."""
    return Budget(parse_duration(text), BEGAN)


def fit_to_budget(ready: Ready, budget: Budget, measured: Sequence[int], say: Say) -> Ready:
    """Settings with as many items as the budget allows; a first part of them is measured, by whose time the rest is chosen.

    What the first part wrote is kept, so that nothing is written twice.

    Args:
        ready: models and rows; its items and samples are what would be measured without a budget.
        budget: of the whole command.
        measured: numbers of the models that are measured.
        say: told what was chosen, and why.

    Raises:
        InputError: too short for any cell to be judged.
    """
    from mixwright.measure.fitting import Sizes, count_items, fit_sizes, least_items, most_items_within

    config, counts = ready.config.measure, cell_counts(ready)
    wanted, fewest = Sizes(config.items, config.samples), int(config.decoding == "sampled")
    if not ready.completion_seconds:  # nothing is written: how long reading takes is seen from a few items
        ready = _timed(ready, counts, budget, measured)
    left = budget.left - RESERVE * budget.seconds
    sizes = fit_sizes(counts, left, ready.completion_seconds, wanted=wanted, fewest_samples=fewest)
    if sizes is None:
        least = count_items(counts, least_items(counts)) * (1 + fewest) * ready.completion_seconds
        needed = (budget.spent + least) / (1 - RESERVE)
        expected = f"a budget of {format_duration(needed)} or more, for {least_items(counts)} items of each cell"
        remedy = "Fewer are never judged. Allow more time, leave tasks out, or give --max-new-tokens a smaller number."
        raise InputError(expected, format_duration(budget.seconds), remedy)
    first = max(1, most_items_within(counts, FIRST_SHARE * count_items(counts, sizes.items)))
    began = budget.spent
    _measure(_sized(ready, Sizes(first, sizes.samples)), measured, "first part")
    pace = (budget.spent - began) / count_items(counts, first)
    more = (budget.left - RESERVE * budget.seconds) / max(pace, 1e-12)
    each = max(first, most_items_within(counts, count_items(counts, first) + more))
    say(_chosen(counts, Sizes(each, sizes.samples), first, pace, budget))
    return replace(_sized(ready, Sizes(each, sizes.samples)), pace=pace / len(measured))


def _timed(ready: Ready, counts: Sequence[int], budget: Budget, measured: Sequence[int]) -> Ready:
    from mixwright.measure.fitting import Sizes, count_items

    few, began = max(1, TIMED_ITEMS // max(len(counts), 1)), budget.spent
    _measure(_sized(ready, Sizes(few, ready.config.measure.samples)), measured, "a few items")
    completions = count_items(counts, few) * (1 + ready.config.measure.samples)
    return replace(ready, completion_seconds=(budget.spent - began) / completions)


def cell_counts(ready: Ready) -> list[int]:
    """Items that can be graded, or read, of each cell."""
    from mixwright.measure.passes import Passes

    rows = ready.corpus
    everything = Passes(ready.learners[0], None, replace(ready.config.measure, items=len(rows)), rows)
    if not ready.graded:
        everything.chosen = everything.picked(lambda _: True)
    return [len(items) for items in everything.cells.values()]


def _sized(ready: Ready, sizes: Sizes) -> Ready:
    measure = replace(ready.config.measure, items=sizes.items, samples=sizes.samples)
    noted = {**ready.noted, "items": sizes.items, **({"samples": sizes.samples} if "samples" in ready.noted else {})}
    return replace(ready, config=replace(ready.config, measure=measure), noted=noted)


def _measure(ready: Ready, measured: Sequence[int], title: str) -> None:
    from mixwright.cli.direct import measure_with_progress

    for number in measured:
        start = ready.learners[0] if number else None
        measure_with_progress(f"{title}, model {number + 1}", ready.learners[number], ready, start=start)


def _chosen(counts: Sequence[int], sizes: Sizes, first: int, pace: float, budget: Budget) -> str:
    """What is measured, what it will see, and what twice the time would buy."""
    from mixwright.measure.fitting import count_items, most_items_within

    items, whole = count_items(counts, sizes.items), count_items(counts, max(counts))
    ends = budget.spent + (items - count_items(counts, first)) * pace + RESERVE * budget.seconds
    told = f"budget: {items:,} items, greedy{f' and {sizes.samples} samples' if sizes.samples else ' alone'}"
    told += f", in all {format_duration(ends)}; success over all to within {100 * half_width(items):.0f} points"
    if items == whole:
        return f"{told}; these are all items that there are"
    doubled = count_items(counts, most_items_within(counts, items + budget.seconds / max(pace, 1e-12)))
    return f"{told}; twice the time would measure {doubled:,}, to within {100 * half_width(doubled):.0f}"


def half_width(items: int) -> float:
    """Half a 95 % interval of a success of one half over so many items; a share."""
    return Z * math.sqrt(0.25 / max(items, 1))
