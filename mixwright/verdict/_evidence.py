"""What the sections read from a run folder; a missing file is an empty answer, a broken one an `InputError`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mixwright.errors import InputError
from mixwright.records import Measurement, Plan, TrialResult
from mixwright.runs import RunFolder, read_json, read_measurements, read_plan

SUCCESS = "pass@1"
"""The measurement that claims, heat map and forecast are about."""

Cells = dict[tuple[str, float | None], dict[str, tuple[float, float]]]
"""(task, level) -> example id -> (success before, success after)."""


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON-lines file, one at a time; none when there is no file. Raises InputError with file and line."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, text in enumerate(file, start=1):
            if not text.strip():
                continue
            try:
                item = json.loads(text)
            except (json.JSONDecodeError, RecursionError) as error:
                raise InputError(
                    "one JSON object per line", str(error)[:120], "Remove the line.", file=path, line=number
                ) from None
            if not isinstance(item, dict):
                raise InputError("a JSON object", type(item).__name__, "Remove the line.", file=path, line=number)
            yield item


def number(item: dict[str, Any], name: str) -> float | None:
    """A finite number of a JSON object, or None."""
    value = item.get(name)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def trial_of(run: RunFolder) -> TrialResult | None:
    """The trial's result, if there was one."""
    return read_json(run.result, TrialResult) if run.result.is_file() else None


def plan_of(run: RunFolder) -> Plan | None:
    """The plan, if there is one."""
    return read_plan(run.plan) if run.plan.is_file() else None


def arms(run: RunFolder) -> dict[str, list[tuple[int, Path]]]:
    """Arm -> its (seed, branch folder), in the trial's order of arms, else alphabetically."""
    found: dict[str, list[tuple[int, Path]]] = {}
    for arm, seed, folder in run.branches():
        found.setdefault(arm, []).append((seed, folder))
    result = trial_of(run)
    order = list(result.arms) if result else []
    return dict(sorted(found.items(), key=lambda item: (order.index(item[0]) if item[0] in order else len(order), item[0])))


def lead(run: RunFolder) -> str:
    """The arm that the first screen is about: the first that is neither a null nor the reference; empty without a trial."""
    result = trial_of(run)
    names = list(result.arms) if result else list(arms(run))
    if not names:
        return ""
    others = {effect.against for effect in result.effects} | set(result.nulls) if result else {"uniform"}
    others |= {name for name in names if name.startswith("permuted")}
    candidates = [name for name in names if name not in others]
    return "steered" if "steered" in candidates else (candidates or names)[0]


def whose(run: RunFolder) -> str:
    """` (arm steered against its start)` where claims are about an arm of a trial, else nothing."""
    arm = lead(run) if trial_of(run) is not None else ""
    return f" (arm {arm} against its start)" if arm else ""


def pairs(before: list[Measurement], after: list[Measurement]) -> Cells:
    """Success of the items that both measured, by cell."""
    old = _items(before)
    found: Cells = {}
    for (task, level, example), value in _items(after).items():
        if (task, level, example) in old:
            found.setdefault((task, level), {})[example] = (old[task, level, example], value)
    return found


def _items(rows: list[Measurement]) -> dict[tuple[str, float | None, str], float]:
    return {(r.task, r.level, r.example): r.value for r in rows if r.name == SUCCESS and r.example is not None}


def lucks(rows: list[Measurement]) -> dict[tuple[str, float | None], float]:
    """(task, level) -> luck: the null of success that was measured with it."""
    found: dict[tuple[str, float | None], float] = {}
    for row in rows:
        if row.name == SUCCESS and row.null is not None:
            found.setdefault((row.task, row.level), row.null)
        elif row.name == "luck" and row.example is None:
            found[row.task, row.level] = row.value
    return found


def comparisons(run: RunFolder) -> dict[str, list[tuple[Cells, dict[tuple[str, float | None], float]]]]:
    """Arm -> (paired items, luck) per seed; the arm of a plain before and after is the empty name."""
    found: dict[str, list[tuple[Cells, dict[tuple[str, float | None], float]]]] = {}
    places = {arm: [folder for _, folder in branches] for arm, branches in arms(run).items()}
    files = {arm: [(f / "before.parquet", f / "after.parquet") for f in folders] for arm, folders in places.items()}
    if not files:
        files = {"": [(run.measurements("before"), run.measurements("after"))]}
    for arm, both in files.items():
        for before, after in both:
            if before.is_file() and after.is_file():
                old = read_measurements(before)
                found.setdefault(arm, []).append((pairs(old, read_measurements(after)), lucks(old)))
    return found
