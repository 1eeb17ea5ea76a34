"""Log of what was drawn, in order, and the success that came of each draw.

Every draw is kept, so that a resumed run serves the same rows again and only then draws anew.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mixwright.records import GroupOutcome
    from mixwright.steer.pool import Ids

NOT_SCORED = float("nan")
"""Success of a draw whose group has not come back."""


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
        self._success = array("f")  # one per row

    def __len__(self) -> int:
        return len(self.rows)

    def read_or_draw(self, position: int, count: int) -> list[int]:
        """`count` rows from `position` (counted from `start`): what was drawn there before, or new draws."""
        first = self.start + position
        missing = first + count - len(self.rows)
        if missing > 0:
            self.rows.extend(self._draw(missing))
        return self.rows[first : first + count].tolist()

    def record_outcomes(
        self,
        position: int,
        rows: int,
        ids: tuple[str, ...] | Ids,
        groups: Sequence[GroupOutcome],
    ) -> None:
        """Note the success of groups that came back.

        Args:
            position: of the first draw of their batch, among all draws.
            rows: draws of the batch, those included that nothing was scored of.
            ids: of the pool's examples.
            groups: that came back, in the order in which they were drawn.
        """
        self._fill()
        found: defaultdict[str, list[float]] = defaultdict(list)
        for group in reversed(groups):
            found[group.example].append(sum(group.successes) / len(group.successes))
        for place in range(position, min(position + rows, len(self.rows))):
            if left := found.get(ids[self.rows[place]]):
                self._success[place] = left.pop()

    def success(self) -> np.ndarray:
        """Success that came of each draw, float32 of shape (draws,); NaN where no group came back."""
        self._fill()
        return np.array(self._success)

    def _fill(self) -> None:
        """A number for each row."""
        self._success.extend([NOT_SCORED] * (len(self.rows) - len(self._success)))

    def state(self) -> dict[str, Any]:
        """Numbers, lists and bytes, for `write_state`: 4 bytes a draw, and 4 more where groups came back."""
        known = b"" if np.isnan(self.success()).all() else self._success.tobytes()
        return {"rows": self.rows.tolist(), "start": self.start, "success": known}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned."""
        self.rows, self.start = array("i", state["rows"]), state["start"]
        self._success = array("f", state["success"])
