"""Parts that every study shares: its command line, what it ran on, its intervals, and where its result goes.

The last line printed is one JSON object (name, value or ratio, low, high, seeds, unit, quick, goals). A full run also writes
`results/studies/NAME.json` with the raw rows, the versions, the processor, the commit and whether the tree differed; a
quick run only prints.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mixwright.estimates.intervals import mean_interval
from mixwright.records import Interval
from mixwright.run.folder import write_json
from mixwright_lab.conditions import conditions

RESULTS = Path(__file__).parent.parent / "results" / "studies"


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal that was fixed before, and what came out."""

    name: str
    found: Interval
    """What came out, with its 95 % interval."""
    goal: str
    """As a condition on the value, such as ">= 0.9"."""
    reached: bool

    @staticmethod
    def at_least(name: str, found: Interval, limit: float) -> Goal:
        """Return the goal that the value reaches a limit."""
        return Goal(name, found, f">= {limit:g}", found.value >= limit)

    @staticmethod
    def at_most(name: str, found: Interval, limit: float) -> Goal:
        """Return the goal that the value stays within a limit."""
        return Goal(name, found, f"<= {limit:g}", found.value <= limit)

    @staticmethod
    def above_zero(name: str, found: Interval) -> Goal:
        """Return the goal that the whole interval is above 0."""
        return Goal(name, found, "low > 0", found.low > 0)

    @staticmethod
    def not_under(name: str, found: Interval, limit: float) -> Goal:
        """Return the goal that the whole interval reaches a limit."""
        return Goal(name, found, f"low >= {limit:g}", found.low >= limit)

    def record(self) -> dict[str, Any]:
        """As a table row."""
        found = {"value": self.found.value, "low": self.found.low, "high": self.found.high, "times": self.found.n}
        return {"name": self.name} | found | {"goal": self.goal, "reached": self.reached}


@dataclass(frozen=True)
class Result:
    """What a study found."""

    value: Interval
    """The headline figure with its 95 % interval."""
    unit: str
    """What it is a figure of, in words."""
    seeds: Sequence[int]
    """Seeds that it rests on."""
    rows: Sequence[Mapping[str, Any]]
    """Raw measurements, one per repetition: every figure can be recomputed from them."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """All other figures."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What has to be known to repeat the run."""
    kind: Literal["value", "ratio"] = "value"
    """Name of the headline figure in the last line."""
    goals: Sequence[Goal] = ()
    """Fixed before the run."""


def interval(differences: Sequence[float]) -> Interval:
    """Mean of paired differences (or of repetitions) with its 95 % t interval.

    Raises:
        ValueError: fewer than two, which say nothing about their spread.
    """
    if len(differences) < 2:
        raise ValueError(f"{len(differences)} repetition(s) have no interval; run at least two")
    return mean_interval(np.array(differences, dtype=float))


def rounded(values: Sequence[float], digits: int = 2) -> dict[str, float]:
    """Mean of repetitions with its interval, as `interval` gives it, for a table of figures."""
    found = interval(values)
    return {name: round(getattr(found, name), digits) for name in ("value", "low", "high")}


def run(name: str, about: str | None, measure: Callable[..., Result], *, kept: bool = False) -> None:
    """The command line of a study.

    Args:
        name: of the module, and of the file under `results/studies/`.
        about: the module's docstring; shown by `--help`.
        measure: does the work; True asks for the quick version.
        kept: its rows are kept, and `--report` has it write its result from those that are there (`begin=False`).
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m mixwright_lab.studies.{name}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer repetitions, at most 5 minutes on two cores; only prints"
    )
    if kept:
        parser.add_argument("--report", action="store_true", help="run nothing: the result of the rows that are there")
    given = parser.parse_args()
    quick = given.quick
    made = conditions()
    wall, cpu = time.perf_counter(), _cpu_seconds()
    result = measure(quick, begin=False) if kept and given.report else measure(quick)
    seconds = {"wall": time.perf_counter() - wall, "cpu": _cpu_seconds() - cpu}
    value = result.value
    line = {
        "name": name,
        result.kind: value.value,
        "low": value.low,
        "high": value.high,
        "seeds": list(result.seeds),
        "unit": result.unit,
        "quick": quick,
        "goals": [goal.record() for goal in result.goals],
    }
    if not quick:
        details = {"figures": result.figures, "settings": result.settings, "rows": list(result.rows)}
        write_json(RESULTS / f"{name}.json", line | {"n": value.n, "seconds": seconds} | made | details)
    print(json.dumps(line, allow_nan=False), flush=True)


def _cpu_seconds() -> float:
    """CPU time until now, of this process and of those that it has waited for."""
    return sum(os.times()[:4])
