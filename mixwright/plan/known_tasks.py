"""Known tasks: those whose success before a run is shown to lie above the chance level."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mixwright.estimates.crossed import estimate_crossed
from mixwright.records import Measurement

SUCCESS_NAMES = ("greedy", "pass@1")
"""Names of success, the declared decoding's first."""


def evidence_above_chance(competence: Sequence[Measurement]) -> dict[str, str]:
    """Task -> what shows that success lies above the chance level, empty where that is not shown; every measured task.

    Of each item the chance rule's score is taken off, so that the interval holds both errors.
    """
    rows = [row for row in competence if row.probe == "competence" and row.name in SUCCESS_NAMES]
    name = next((name for name in SUCCESS_NAMES if any(row.name == name for row in rows)), "")
    found = {}
    for task in sorted({row.task for row in rows}):
        own = [row for row in rows if row.task == task and row.name == name]
        items = [row for row in own if row.example is not None and row.null is not None]
        whole = next((row for row in own if row.example is None and row.level is None), None)
        if items:
            value, chance = (float(np.mean([getattr(row, part) for row in items])) for part in ("value", "null"))
            gaps = [row.value - (row.null or 0.0) for row in items]
            low = estimate_crossed(np.array([gaps]), _level_codes([row.level for row in items])).low
            count = len(items)
        elif whole is not None:
            value, chance, low, count = whole.value, whole.null or 0.0, whole.low - (whole.null or 0.0), whole.n
        else:
            continue
        found[task] = f"{value:.0%} right of {count} before, chance level {chance:.0%}" if low > 0 else ""
    return found


def _level_codes(levels: Sequence[float | None]) -> list[int]:
    known: dict[float | None, int] = {}
    return [known.setdefault(level, len(known)) for level in levels]
