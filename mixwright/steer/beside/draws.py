"""Log of what was drawn, in order, with what was thought of each draw and what came of it.

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

Predictions = tuple[np.ndarray, np.ndarray]
"""Of some draws: success predicted, NaN where nothing was, and whether each was drawn evenly."""
NO_PREDICTION = float("nan")


class DrawLog:
    """All draws of a run, as one growing list of rows; reading past its end draws.

    Args:
        draw: gives that many rows (pool indices); called only when a row is asked for that was never drawn.
        last_predictions: what is predicted of the rows that `draw` gave last; None where nothing ever is.
    """

    def __init__(
        self, draw: Callable[[int], Sequence[int]], last_predictions: Callable[[], Predictions] | None = None
    ) -> None:
        self._draw, self._last_predictions = draw, last_predictions
        self.rows = array("i")
        self.start = 0
        """Where the current call of `train` began; draws before it are history."""
        self._columns = {"predicted": array("f"), "even": array("b"), "success": array("f")}  # a number each per row

    def __len__(self) -> int:
        return len(self.rows)

    def read_or_draw(self, position: int, count: int) -> list[int]:
        """`count` rows from `position` (counted from `start`): what was drawn there before, or new draws."""
        first = self.start + position
        missing = first + count - len(self.rows)
        if missing > 0:
            self.rows.extend(self._draw(missing))
            if self._last_predictions is not None:
                self._fill(len(self.rows) - missing)
                for name, values in zip(("predicted", "even"), self._last_predictions(), strict=True):
                    self._columns[name].extend(values.tolist())
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
        self._fill(len(self.rows))
        found: defaultdict[str, list[float]] = defaultdict(list)
        for group in reversed(groups):
            found[group.example].append(sum(group.successes) / len(group.successes))
        for place in range(position, min(position + rows, len(self.rows))):
            if left := found.get(ids[self.rows[place]]):
                self._columns["success"][place] = left.pop()

    def columns(self) -> dict[str, np.ndarray]:
        """Per draw: `predicted` success, NaN where nothing was; whether `even`; `success` that came, NaN for none."""
        self._fill(len(self.rows))
        return {name: np.array(values).astype(bool if name == "even" else "f") for name, values in self._columns.items()}

    def _fill(self, rows: int) -> None:
        """A number for each of so many rows: those of which nothing was said are even draws without prediction."""
        for name, values in self._columns.items():
            values.extend([1 if name == "even" else NO_PREDICTION] * (rows - len(values)))

    def state(self) -> dict[str, Any]:
        """Numbers, lists and bytes, for `write_state`: 4 bytes a draw, and 9 more where groups came back."""
        is_default = {
            name: values.all() if name == "even" else np.isnan(values).all() for name, values in self.columns().items()
        }
        columns = {name: values.tobytes() for name, values in self._columns.items() if not is_default[name]}
        return {"rows": self.rows.tolist(), "start": self.start, "columns": columns}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned."""
        self.rows, self.start = array("i", state["rows"]), state["start"]
        self._columns = {name: array(kept.typecode, state["columns"].get(name, b"")) for name, kept in self._columns.items()}
