"""Section of what is wrong with the data: errors first, and every other observation behind them.

Source: every audit*.json of the run folder.
Unit: rows, cells or pairs, as each check counts them.
Cost: reads small files.
Blind spot: what no check looks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from mixwright.contracts import Section
from mixwright.records import Interval, Observation, cell_key
from mixwright.runs import RunFolder, read_list
from mixwright.verdict.blocks import Block, Fold, Paragraph, Table
from mixwright.verdict.chance_levels import Place, chance_levels
from mixwright.verdict.text import count, format_share

MOST_OBSERVATIONS_SHOWN = 200
"""Observations that a table shows; the others are counted."""
MOST_ERRORS_OPEN = 4
"""Errors that stay open per file."""


class AuditSection(Section):
    """Errors of the audit in full, warnings and infos folded."""

    ORDER: ClassVar[int] = 12
    TITLE: ClassVar[str] = "Data"
    UNGRADED: ClassVar[bool] = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """One group per audit file."""
        files = sorted(run.path.glob("audit*.json"), key=lambda path: (path.name != "audit.json", path.name))
        if not files:
            return []
        levels = chance_levels(run)
        errors: list[Block] = []
        others: list[Block] = []
        for path in files:
            name = path.stem.removeprefix("audit").strip("_-. ").replace("_", " ")
            about = f"Other data ({name}), not this run's: " if name else ""
            observations = read_list(path, Observation)
            if not name:
                observations = [_with_chance_level(seen, levels) for seen in observations]
            wrong = [o for o in observations if o.severity == "error"]
            errors += [
                Paragraph(f"{about}{_place(o)}{o.message} {o.remedy}".strip(), "bad") for o in wrong[:MOST_ERRORS_OPEN]
            ]
            others += _others(about, wrong[MOST_ERRORS_OPEN:] + [o for o in observations if o.severity != "error"])
        return [*(errors or [Paragraph("No error found.")]), *others]


def _others(about: str, observations: list[Observation]) -> list[Block]:
    """What does not stand open: warnings, then infos."""
    if not observations:
        return []
    order = ("error", "warning", "info")
    rows = [
        (o.severity, o.check, o.task or "all", f"{o.count:,} of {o.total:,}", o.message, o.remedy)
        for o in sorted(observations, key=lambda o: order.index(o.severity))[:MOST_OBSERVATIONS_SHOWN]
    ]
    counts = {word: sum(o.severity == word for o in observations) for word in order}
    summary = ", ".join(count(number, word) for word, number in counts.items() if number)
    columns = ("severity", "check", "task", "seen", "what", "remedy")
    beyond = len(observations) - len(rows)
    rest = (Paragraph(f"{beyond:,} more observations stand in the audit's JSON file."),) if beyond else ()
    return [Fold(f"{about}{summary}", (Table("Observations of the audit", columns, rows), *rest))]


def _place(observation: Observation) -> str:
    return f"{observation.check} in {observation.task}: " if observation.task else f"{observation.check}: "


def _with_chance_level(seen: Observation, levels: Mapping[Place, Interval]) -> Observation:
    """An observation of a cell's chance level with the level that the page has; the audit's own is that of training rows."""
    about = seen.evidence[0] if seen.check == "difficulty" and seen.evidence else {}
    level = levels.get((seen.task or "", about.get("level"), False)) if "chance" in about else None
    if level is None:
        return seen
    name, answer, rows = cell_key(seen.task or "", about.get("level")), about.get("answer"), about.get("rows")
    text = f"{name}: a rule without the skill is right in {format_share(level)} points of the held-out items."
    text += f" The majority answer is {answer!r}: {rows} of {seen.total} training rows."
    return replace(seen, message=text)
