"""Section of what steering changed and of its alarms, grouped: how often, when, and why.

Source: decisions.jsonl of every branch of the leading arm (or of steering/ in the run folder).
Unit: decisions.
Cost: reads one line per decision.
Blind spot: shows the first and the last reason of each group; all of them are in the files.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from mixwright.contracts import Section
from mixwright.run.folder import RunFolder, read_json_lines
from mixwright.verdict.page.blocks import Block, Fold, Paragraph, Table
from mixwright.verdict.page.text import NO_VALUE_SIGN, format_count
from mixwright.verdict.rules.evidence import arm_branches, headline_arm

MAX_GROUPS_OPEN = 12
"""Groups that stay open."""
MEANING_BY_PREFIX = {
    "refuse.": "refuse.X says what the gates answered for groups of cell X: refused groups do not teach, admitted ones do.",
    "skip_step": "skip_step stands for steps that were not taken; the learning-rate factor stayed as it was.",
}
"""Beginning of a decision's name -> what it means."""


TakenDecisions = list[tuple[int, dict[str, Any]]]
"""Decisions of one name, each with its seed."""


class Decisions(Section):
    """Alarms first, then decisions by how often they were taken."""

    ORDER = 40
    TITLE = "Decisions and alarms"
    SHOWN_UNGRADED = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """One table of alarms, one of decisions, the long tail folded."""
        arm = headline_arm(run)
        files = [(seed, folder / "decisions.jsonl") for seed, folder in arm_branches(run).get(arm, [])]
        if not files:
            single_files = (run.path / "steering" / "decisions.jsonl", run.path / "decisions.jsonl")
            files = [(0, path) for path in single_files if path.is_file()][:1]
        groups: dict[str, TakenDecisions] = defaultdict(list)
        for seed, path in files:
            for item in read_json_lines(path):
                groups[str(item.get("what", "?"))].append((seed, item))
        if not groups:
            has_files = any(path.is_file() for _, path in files)
            return [Paragraph(f"{arm or 'The run'} took no decision and raised no alarm.")] if has_files else []
        alarms = [
            (decision_name, decisions) for decision_name, decisions in groups.items() if decision_name.startswith("alarm.")
        ]
        changes = [
            (decision_name, decisions)
            for decision_name, decisions in groups.items()
            if not decision_name.startswith("alarm.")
        ]
        changes.sort(key=lambda group: -len(group[1]))
        decision_count, alarm_count = (
            sum(len(decisions) for _, decisions in groups_of_kind) for groups_of_kind in (changes, alarms)
        )
        seeds_text = f" over {format_count(len(files), 'seed')} of arm {arm}" if arm else ""
        rare_changes = changes[MAX_GROUPS_OPEN:]
        return [
            Paragraph(f"{format_count(decision_count, 'decision')} and {format_count(alarm_count, 'alarm')}{seeds_text}."),
            _table("Alarms", alarms),
            _table("Decisions", changes[:MAX_GROUPS_OPEN]),
            Fold(f"{len(rare_changes)} more kinds", (_table("Rarer decisions", rare_changes),)),
            *(
                Paragraph(text)
                for begin, text in MEANING_BY_PREFIX.items()
                if any(decision_name.startswith(begin) for decision_name, _ in changes)
            ),
        ]


def _table(caption: str, groups: Iterable[tuple[str, TakenDecisions]]) -> Table:
    rows = []
    for decision_name, decisions in groups:
        first_decision = min((item for _, item in decisions), key=_first_step)
        last_decision = max((item for _, item in reversed(decisions)), key=_last_step)
        seeds, change_text = (
            len({seed for seed, _ in decisions}),
            f"{_shorten_value(first_decision.get('old'))} → {_shorten_value(last_decision.get('new'))}",
        )
        reason = str(last_decision.get("because", ""))
        rows.append(
            (
                decision_name,
                str(len(decisions)),
                str(seeds),
                f"{_first_step(first_decision):g} to {_last_step(last_decision):g}",
                change_text,
                reason,
            )
        )
    return Table(caption, ("what", "times", "seeds", "steps", "first → last", "because (last)"), rows, (1, 2, 3))


def _first_step(item: dict[str, Any]) -> float:
    return _finite_number(item, "step") or 0.0


def _last_step(item: dict[str, Any]) -> float:
    """Step at which a decision was last taken."""
    return max(_first_step(item), _finite_number(item, "last") or 0.0)


def _shorten_value(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NO_VALUE_SIGN if value is None else str(value)[:60]
    return f"{value:.3g}"


def _finite_number(item: dict[str, Any], name: str) -> float | None:
    """A finite number of a JSON object, or None."""
    value = item.get(name)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
