"""Section of groups without signal: all rewards equal, every advantage zero.

Source: steps.jsonl of every branch.
Unit: share of groups per window of steps, mean over seeds with 95 % t interval.
Cost: reads one line per generation batch.
Blind spot: counts groups, not how informative the others are; groups that a gate refused are counted before refusing.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np

from mixwright.contracts import Section
from mixwright.estimates.intervals import mean_interval
from mixwright.runs import RunFolder
from mixwright.verdict.blocks import Block, Grid, Lines, Series
from mixwright.verdict.evidence import arm_branches, json_lines, number
from mixwright.verdict.text import percent

MOST_WINDOWS = 10
MOST_LINES_PER_CHART = 4
"""Lines in one chart; more arms get a chart each."""


class ZeroSignal(Section):
    """Zero-signal share over time, per arm."""

    ORDER: ClassVar[int] = 30
    TITLE: ClassVar[str] = "Groups without signal"

    def blocks(self, run: RunFolder) -> list[Block]:
        """One chart for all arms, or one each when there are many."""
        series = [line for arm, branches in arm_branches(run).items() if (line := _series(arm, [f for _, f in branches]))]
        if not series:
            return []
        if len(series) <= MOST_LINES_PER_CHART:
            return [_chart(tuple(series))]
        return [Grid(tuple(_chart((line,)) for line in series))]


def _chart(series: tuple[Series, ...]) -> Lines:
    ends = "; ".join(f"{line.name} from {_share_at(line, 0)} to {_share_at(line, -1)}" for line in series)
    caption = "Zero-signal share of groups" + (f": {series[0].name}" if len(series) == 1 else "")
    return Lines(caption, f"Zero-signal share over training steps: {ends}.", "step", "groups without signal, %", series)


def _share_at(line: Series, place: int) -> str:
    return percent(line.y[place])


def _series(arm: str, folders: list[Path]) -> Series | None:
    """Mean over seeds in at most ten windows of steps."""
    seeds = [_groups(folder / "steps.jsonl") for folder in folders]
    seeds = [rows for rows in seeds if rows]
    if not seeds:
        return None
    last = max(step for rows in seeds for step, _, _ in rows) + 1
    windows = int(min(MOST_WINDOWS, last))
    edges = [last * i / windows for i in range(windows + 1)]
    x: list[float] = []
    y: list[float] = []
    low: list[float] = []
    high: list[float] = []
    for start, end in pairwise(edges):
        shares = [share for rows in seeds if (share := _share(rows, start, end)) is not None]
        if shares:
            found = mean_interval(np.array(shares))
            x.append((start + end) / 2)
            y.append(found.value)
            low.append(max(found.low, 0.0))
            high.append(min(found.high, 1.0))
    return Series(arm, tuple(x), tuple(y), tuple(low), tuple(high)) if x else None


def _groups(path: Path) -> list[tuple[float, float, float]]:
    """(step, groups, groups without signal) of each line that has them."""
    found = []
    for item in json_lines(path):
        step, groups, silent = number(item, "step"), number(item, "groups"), number(item, "zero_signal")
        if step is not None and groups and silent is not None:
            found.append((step, groups, silent))
    return found


def _share(rows: list[tuple[float, float, float]], start: float, end: float) -> float | None:
    inside = [(groups, silent) for step, groups, silent in rows if start <= step < end]
    groups = sum(g for g, _ in inside)
    return sum(s for _, s in inside) / groups if groups else None
