"""Budget of a command: the time that it may take, from when it was given."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from mixwright.errors import InputError

BEGAN = monotonic()
"""Reading of the clock when the verb was loaded, which is soon after the command was given."""
MIN_BUDGET_SECONDS = 1.0
"""Shortest budget of a command: nothing can be measured in less."""
RESERVED_SHARE = 0.08
"""Share of the budget that is kept for what follows measuring: BEFORE's answers read by AFTER, the page, files."""


def parse_duration(text: str) -> float:
    """Seconds of `90s`, `20m`, `1h30m`. Raises InputError for anything else, and for what nothing can be measured in."""
    match = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", text.strip().lower())
    hours, minutes, seconds = map(float, (number or 0 for number in match.groups())) if match else (0.0, 0.0, 0.0)
    total = 3600 * hours + 60 * minutes + seconds
    if not MIN_BUDGET_SECONDS <= total < math.inf:
        expected = f"a duration such as 90s, 20m or 1h30m (--budget), of {MIN_BUDGET_SECONDS:g} s or more"
        raise InputError(expected, repr(text), "Correct it.")
    return total


@dataclass(frozen=True, slots=True)
class Budget:
    """Time that a command may take, from when it began."""

    seconds: float
    """In all."""
    began: float
    """Reading of the clock, seconds."""

    @property
    def seconds_left(self) -> float:
        """Seconds."""
        return self.seconds - self.seconds_spent

    @property
    def seconds_spent(self) -> float:
        """Seconds."""
        return monotonic() - self.began


def start_budget(text: str) -> Budget:
    """The budget of the command that was given. Raises InputError as `parse_duration`."""
    return Budget(parse_duration(text), BEGAN)


def as_budget(budget: Budget | str | None) -> Budget | None:
    """Return a budget; one in words begins now."""
    return Budget(parse_duration(budget), monotonic()) if isinstance(budget, str) else budget


def time_left(budget: Budget | None) -> Callable[[], float] | None:
    """Return a function that gives the seconds which models may still take; None without a budget."""
    return None if budget is None else lambda: budget.seconds_left - RESERVED_SHARE * budget.seconds
