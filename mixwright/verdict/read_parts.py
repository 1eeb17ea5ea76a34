"""Readers of the parts of a run folder that a verdict packs: decisions, stages, and answers.

Left out on purpose: words and formats; a record only holds what was read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from statistics import fmean
from typing import Any

from mixwright.estimates.outcome import CHANCE_MEASUREMENT, PART_PREFIX, ItemScores
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS
from mixwright.records import AnswerPair, DecisionGroup, Interval, PartChange
from mixwright.run.folder import read_json_lines, read_measurements
from mixwright.verdict.page.answers import pair_answers
from mixwright.verdict.rules.cells import CellKey
from mixwright.verdict.rules.evidence import Evidence

ALARM_PREFIX = "alarm."
"""Beginning of the names of alarms."""


def read_pairs(evidence: Evidence) -> list[AnswerPair]:
    """Return the answers before and after of the first seed; empty where none were kept."""
    folder = next(iter(evidence.leading_folders), None)
    pairs = evidence.pairs if folder is None else pair_answers(evidence.read_first_answers(folder))
    return list(pairs.values())


def read_names(evidence: Evidence) -> tuple[str, str]:
    """Return short names of the earlier model, and of the later one; of a trial its arm."""
    manifest = evidence.manifest
    after = evidence.arm or str(evidence.settings.get("checkpoint after", "after"))
    before, after = shorten_paths([manifest.parent if manifest and manifest.parent else "before", after])
    return before, after


def shorten_paths(paths: Sequence[str]) -> list[str]:
    """Return the last parts of paths, more of them where two end alike."""
    longest = max(len(PurePath(path).parts) for path in paths)
    for part_count in range(1, longest + 1):
        names = [str(PurePath(*PurePath(path).parts[-part_count:])) for path in paths]
        if len(set(names)) == len(set(paths)):
            return names
    return list(paths)


def read_chances(evidence: Evidence) -> dict[CellKey, Interval]:
    """Return the chance levels that were measured, whose intervals know whether other rows chose the rule."""
    folders = [*evidence.leading_folders, evidence.run.measurements("before").parent]
    found = _read_intervals(folders[0] / "before.parquet", CHANCE_MEASUREMENT)
    levelled = {task for task, level, _ in found if level is not None}
    return {(task, level, level is None and task in levelled): found[task, level, name] for task, level, name in found}


def read_parts(evidence: Evidence) -> dict[tuple[str, float | None], tuple[PartChange, ...]]:
    """Return the parts of answers that both models were judged by, such as fields of JSON, per task and level."""
    before, after = (_read_intervals(evidence.run.measurements(when), PART_PREFIX) for when in ("before", "after"))
    parts = defaultdict[tuple[str, float | None], tuple[PartChange, ...]](tuple)
    for (task, level, name), part in after.items():
        if (task, level, name) in before:
            parts[task, level] += (PartChange(name.removeprefix(PART_PREFIX), before[task, level, name], part),)
    return parts


def _read_intervals(path: Path, beginning: str) -> dict[tuple[str, float | None, str], Interval]:
    """Task, level and name -> estimate, of the measurements whose names begin so; none where there is no file."""
    rows = read_measurements(path) if path.is_file() else []
    return {
        (row.task, row.level, row.name): Interval(row.value, row.low, row.high, row.n)
        for row in rows
        if row.name.startswith(beginning)
    }


def read_stages(evidence: Evidence) -> dict[str, tuple[float | None, ...]]:
    """Return the success of each task after each stage, mean over seeds.

    It is empty for plans of one stage, and where nothing was graded.
    """
    plan, declared = evidence.plan, evidence.outcome
    if plan is None or len(plan.stages) < 2 or declared not in GRADED_OUTCOMES:
        return {}
    column = READINGS[declared].column
    success: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for folder in evidence.leading_folders:
        for place in range(len(plan.stages)):
            path = folder / "stages" / str(place + 1) / "measured.parquet"
            measured = evidence.read_scores(path) if path.is_file() else ItemScores()
            for task, own in measured.by_task().items():
                if values := own.column(column, own.having(column)).tolist():
                    success[task][place].append(sum(values) / len(values))
    return {
        task: tuple(fmean(by_stage[place]) if by_stage[place] else None for place in range(len(plan.stages)))
        for task, by_stage in sorted(success.items())
    }


def read_decisions(evidence: Evidence) -> tuple[DecisionGroup, ...]:
    """Return what steering decided in every seed of the leading arm, alarms first, then by how often."""
    branches, run = evidence.branches.get(evidence.arm, []), evidence.run
    files = [(seed, folder / "decisions.jsonl") for seed, folder in branches]
    if not files:
        single_files = (run.path / "steering" / "decisions.jsonl", run.path / "decisions.jsonl")
        files = [(0, path) for path in single_files if path.is_file()][:1]
    groups: dict[str, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    for seed, path in files:
        for item in read_json_lines(path):
            groups[str(item.get("what", "?"))].append((seed, item))
    decisions = [_group_decisions(name, members) for name, members in groups.items()]
    return tuple(sorted(decisions, key=lambda group: (not group.is_alarm, 0 if group.is_alarm else -group.times)))


def _group_decisions(name: str, members: list[tuple[int, dict[str, Any]]]) -> DecisionGroup:
    first = min((item for _, item in members), key=_read_step)
    last = max((item for _, item in reversed(members)), key=_read_step)
    return DecisionGroup(
        name=name,
        is_alarm=name.startswith(ALARM_PREFIX),
        times=len(members),
        seeds=len({seed for seed, _ in members}),
        first_step=_read_step(first),
        last_step=_read_step(last),
        old=_shorten_value(first.get("old")),
        new=_shorten_value(last.get("new")),
        because=str(last.get("because", "")),
    )


def _read_step(item: Mapping[str, Any]) -> float:
    step = item.get("step")
    return float(step) if isinstance(step, int | float) else 0.0


def _shorten_value(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else str(value)[:60]
    return f"{value:.3g}"
