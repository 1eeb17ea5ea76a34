"""Section of what steering changed and of its alarms, grouped: how often, when, and why.

Source: decisions.jsonl of every branch of the leading arm (or of steering/ in the run folder).
Unit: decisions.
Cost: reads one line per decision.
Blind spot: shows the first and the last reason of each group; all of them are in the files.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from mixwright.contracts import Section
from mixwright.runs import RunFolder
from mixwright.verdict.blocks import Block, Fold, Paragraph, Table
from mixwright.verdict.evidence import arm_branches, headline_arm, json_lines, number
from mixwright.verdict.text import NO_VALUE_SIGN, count

MOST_GROUPS_OPEN = 12
"""Groups that stay open."""

MEANING_BY_PREFIX = {
    "refuse.": "refuse.X says what the gates answered for groups of cell X: refused groups do not teach, admitted ones do.",
    "lr_factor": "lr_factor to 0 stands for steps that were skipped: steps.jsonl calls them skip_step and keeps the factor.",
}
"""Beginning of a decision's name -> what it means."""


@dataclass(slots=True)
class _DecisionGroup:
    times: int
    first: float
    last: float
    old: Any
    new: Any
    because: str
    seeds: set[int]


class Decisions(Section):
    """Alarms first, then decisions by how often they were taken."""

    ORDER: ClassVar[int] = 40
    TITLE: ClassVar[str] = "Decisions and alarms"
    UNGRADED: ClassVar[bool] = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """One table of alarms, one of decisions, the long tail folded."""
        arm = headline_arm(run)
        branches = arm_branches(run).get(arm, [])
        if not branches:
            branches = [(0, path) for path in (run.path / "steering", run.path) if (path / "decisions.jsonl").is_file()][:1]
        groups: dict[str, _DecisionGroup] = {}
        for seed, folder in branches:
            _collect(groups, seed, folder / "decisions.jsonl")
        if not groups:
            files = any((folder / "decisions.jsonl").is_file() for _, folder in branches)
            return [Paragraph(f"{arm or 'The run'} took no decision and raised no alarm.")] if files else []
        alarms = [(what, group) for what, group in groups.items() if what.startswith("alarm.")]
        others = sorted(
            ((w, g) for w, g in groups.items() if not w.startswith("alarm.")),
            key=lambda item: -item[1].times,
        )
        total = sum(group.times for _, group in others)
        over = f" over {count(len(branches), 'seed')} of arm {arm}" if arm else ""
        rung = sum(group.times for _, group in alarms)
        blocks: list[Block] = [Paragraph(f"{count(total, 'decision')} and {count(rung, 'alarm')}{over}.")]
        if alarms:
            blocks.append(_table("Alarms", alarms))
        if others:
            blocks.append(_table("Decisions", others[:MOST_GROUPS_OPEN]))
        if others[MOST_GROUPS_OPEN:]:
            blocks.append(
                Fold(f"{len(others) - MOST_GROUPS_OPEN} more kinds", (_table("Rarer decisions", others[MOST_GROUPS_OPEN:]),))
            )
        return [
            *blocks,
            *(Paragraph(text) for begin, text in MEANING_BY_PREFIX.items() if any(w.startswith(begin) for w, _ in others)),
        ]


def _collect(groups: dict[str, _DecisionGroup], seed: int, path: Path) -> None:
    for item in json_lines(path):
        what, step = str(item.get("what", "?")), number(item, "step") or 0.0
        because, old, new = str(item.get("because", "")), item.get("old"), item.get("new")
        group = groups.setdefault(what, _DecisionGroup(0, step, step, old, new, because, set()))
        group.times += 1
        group.seeds.add(seed)
        if step < group.first:
            group.first, group.old = step, old
        last = max(step, number(item, "last") or 0.0)
        if last >= group.last:
            group.last, group.new, group.because = last, new, because


def _table(caption: str, groups: list[tuple[str, _DecisionGroup]]) -> Table:
    rows = [
        (
            what,
            str(g.times),
            str(len(g.seeds)),
            f"{g.first:g} to {g.last:g}",
            f"{_short(g.old)} → {_short(g.new)}",
            g.because,
        )
        for what, g in groups
    ]
    return Table(caption, ("what", "times", "seeds", "steps", "first → last", "because (last)"), rows, (1, 2, 3))


def _short(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NO_VALUE_SIGN if value is None else str(value)[:60]
    return f"{value:.3g}"
