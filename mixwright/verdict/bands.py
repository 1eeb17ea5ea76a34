"""The moving band: which cells were neither mastered nor out of reach, over time.

Source: `cells` of steps.jsonl (the ledger's posterior of success above luck) of the leading arm; the band of the plan.
Unit: below, in or above the band; mean over seeds.
Cost: reads one line per generation batch.
Blind spot: the posterior lags behind the model, and cells that are not drawn keep their old estimate.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

from mixwright.contracts import Section
from mixwright.records import Stage
from mixwright.runs import RunFolder
from mixwright.verdict._blocks import Block, Strips
from mixwright.verdict._evidence import arms, json_lines, lead, number, plan_of
from mixwright.verdict._text import count

WINDOWS = 24
MOST_ROWS = 30


class Bands(Section):
    """One strip per cell: thin below the band, solid in it, outlined above it."""

    ORDER: ClassVar[int] = 25
    TITLE: ClassVar[str] = "The moving band"

    def blocks(self, run: RunFolder) -> list[Block]:
        """Strips of the cells of the leading arm, those that change first."""
        folders = [folder for _, folder in arms(run).get(lead(run), [])]
        values, edges = _windows(folders)
        if not values:
            return []
        plan = plan_of(run)
        stage = plan.stages[0] if plan and plan.stages else Stage("", "grpo", 1, {})
        tasks = {cell.key: cell.task for cell in plan.cells} if plan else {}
        rows = []
        for cell, means in values.items():
            low, high = stage.band_of(tasks.get(cell, cell))
            rows.append((cell, tuple(None if mean is None else int(mean > low) + int(mean >= high) for mean in means)))
        rows.sort(key=lambda row: (-len(set(row[1]) - {None}), -sum(state == 1 for state in row[1]), row[0]))
        inside = [sum(row[1][i] == 1 for row in rows) for i in (0, -1)]
        low, high = stage.band
        own = "".join(f", {task} {low:.0%} to {high:.0%}" for task, (low, high) in sorted(stage.bands.items()))
        caption = f"Success above luck against the band from {low:.0%} to {high:.0%}{own}"
        text = f"{count(inside[0], 'cell')} of {len(rows)} in the band at the start, {inside[1]} at the end."
        if len(rows) > MOST_ROWS:
            caption += f"; {MOST_ROWS} of {len(rows)} cells"
        return [Strips(caption, text, "step", tuple(edges), tuple(rows[:MOST_ROWS]))]


def _windows(folders: list[Path]) -> tuple[dict[str, list[float | None]], list[float]]:
    """Cell -> mean success above luck per window, and the windows' edges."""
    seen = [(step, item["cells"]) for folder in folders for step, item in _steps(folder / "steps.jsonl")]
    if not seen:
        return {}, []
    last = max(step for step, _ in seen) + 1
    windows = int(min(WINDOWS, last))
    sums: dict[str, list[list[float]]] = defaultdict(lambda: [[] for _ in range(windows)])
    for step, cells in seen:
        for cell in cells:
            success = number(cells, cell)
            if success is not None:
                sums[cell][min(int(step * windows / last), windows - 1)].append(success)
    values = {cell: [fmean(v) if v else None for v in parts] for cell, parts in sorted(sums.items())}
    return values, [last * i / windows for i in range(windows + 1)]


def _steps(path: Path) -> Iterator[tuple[float, dict[str, Any]]]:
    for item in json_lines(path):
        step = number(item, "step")
        if step is not None and step >= 0 and isinstance(item.get("cells"), dict):
            yield step, item
