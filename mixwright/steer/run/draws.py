"""Log of what was drawn, in order.

Every draw is kept, so that a resumed run serves the same rows again and only then draws anew.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any


class DrawLog:
    """All draws of a run, as one growing list of rows; reading past its end draws.

    Args:
        draw: gives that many rows (pool indices); called only when a row is asked for that was never drawn.
    """

    def __init__(self, draw: Callable[[int], Sequence[int]]) -> None:
        self._draw = draw
        self.rows = array("i")
        self.start = 0
        """Where the current call of `train` began; draws before it are history."""

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, position: int, count: int) -> list[int]:
        """`count` rows from `position` (counted from `start`): what was drawn there before, or new draws."""
        first = self.start + position
        missing = first + count - len(self.rows)
        if missing > 0:
            self.rows.extend(self._draw(missing))
        return self.rows[first : first + count].tolist()

    def state(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"rows": self.rows.tolist(), "start": self.start}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        self.rows, self.start = array("i", state["rows"]), state["start"]
