"""Section of cells' states over time: out of reach, worth training, or mastered, as the run saw them.

Source: `states` of steps.jsonl (the run's own evidence) of the leading arm.
Unit: state, the commonest over the steps and seeds of a window.
Cost: reads one line per generation batch.
Blind spot: the run's evidence lags behind the model, and cells that are not drawn keep their old state.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, cast

from mixwright.contracts import Section
from mixwright.records import CellState
from mixwright.runs import RunFolder
from mixwright.verdict.blocks import Block, Strips, Terms
from mixwright.verdict.evidence import arm_branches, headline_arm, json_lines, number
from mixwright.verdict.text import count

MOST_WINDOWS = 24
MOST_ROWS = 30
CODE_BY_STATE: dict[CellState, int] = {"hopeless": 0, "lucky": 0, "unknown": 1, "reachable": 1, "mastered": 2}
CODE_NAMES = ("hopeless or lucky", "reachable or unknown", "mastered")


class Bands(Section):
    """One strip per cell: thin where it is hopeless or lucky, solid where it is worth training, outlined when mastered."""

    ORDER: ClassVar[int] = 25
    TITLE: ClassVar[str] = "States of cells over time"

    def blocks(self, run: RunFolder) -> list[Block]:
        """Strips of the cells of the leading arm, those that change first."""
        states, edges = _windows([folder for _, folder in arm_branches(run).get(headline_arm(run), [])])
        if not states:
            return []
        rows = sorted(
            ((cell, tuple(codes)) for cell, codes in states.items()),
            key=lambda row: (-len(set(row[1]) - {None}), -sum(code == 1 for code in row[1]), row[0]),
        )
        ready = [sum(codes[place] == 1 for _, codes in rows) for place in (0, -1)]
        text = f"{count(ready[0], 'cell')} of {len(rows)} reachable or unknown at the start, {ready[1]} at the end."
        caption = "State of each cell"
        if len(rows) > MOST_ROWS:
            caption += f"; {MOST_ROWS} of {len(rows)} cells"
        strips = Strips(caption, text, "step", tuple(edges), tuple(rows[:MOST_ROWS]), CODE_NAMES)
        return [strips, Terms(("hopeless", "lucky", "reachable", "unknown", "mastered"))]


def _windows(folders: list[Path]) -> tuple[dict[str, list[int | None]], list[float]]:
    """Cell -> commonest state per window, and the windows' edges."""
    seen = [(step, item) for folder in folders for step, item in _steps(folder / "steps.jsonl")]
    if not seen:
        return {}, []
    last = max(step for step, _ in seen) + 1
    windows = int(min(MOST_WINDOWS, last))
    counts: dict[str, list[Counter[int]]] = defaultdict(lambda: [Counter() for _ in range(windows)])
    for step, states in seen:
        place = min(int(step * windows / last), windows - 1)
        for cell, state in states.items():
            if state in CODE_BY_STATE:
                counts[cell][place][CODE_BY_STATE[cast("CellState", state)]] += 1
    codes = {cell: [_commonest(part) for part in parts] for cell, parts in sorted(counts.items())}
    return codes, [last * i / windows for i in range(windows + 1)]


def _commonest(states: Counter[int]) -> int | None:
    return max(states, key=lambda state: (states[state], state)) if states else None


def _steps(path: Path) -> Iterator[tuple[float, dict[str, Any]]]:
    for item in json_lines(path):
        step = number(item, "step")
        if step is not None and step >= 0 and isinstance(item.get("states"), dict):
            yield step, item["states"]
