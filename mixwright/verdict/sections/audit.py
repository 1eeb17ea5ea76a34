"""Section of what is wrong with the data: errors first, and every other observation behind them.

Source: every audit*.json of the run folder.
Unit: rows, cells or pairs, as each check counts them.
Cost: reads small files.
Blind spot: what no check looks for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from mixwright.contracts import Section
from mixwright.records import Interval, Observation, cell_key
from mixwright.run.folder import RunFolder, read_list
from mixwright.verdict.page.blocks import Block, Fold, Paragraph, Table
from mixwright.verdict.page.text import count, format_share
from mixwright.verdict.rules.cells import chance_levels
from mixwright.verdict.rules.spared import Place

MOST_OBSERVATIONS_SHOWN = 200
"""Observations that a table shows; the others are counted."""
MOST_ERRORS_OPEN = 4
"""Errors that stay open per file."""
SEVERITIES = ("error", "warning", "info")


class AuditSection(Section):
    """Errors of the audit in full, warnings and infos folded."""

    ORDER = 12
    TITLE = "Data"
    SHOWN_UNGRADED = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """One group per audit file."""
        files = sorted(run.path.glob("audit*.json"), key=lambda path: (path.name != "audit.json", path.name))
        errors: list[Block] = []
        others: list[Block] = []
        for path in files:
            name = path.stem.removeprefix("audit").strip("_-. ").replace("_", " ")
            about = f"Other data ({name}), not this run's: " if name else ""
            levels = {} if name else chance_levels(run)
            seen = [_with_chance_level(one, levels) for one in read_list(path, Observation)]
            seen.sort(key=lambda one: SEVERITIES.index(one.severity))
            opened = [one for one in seen if one.severity == "error"][:MOST_ERRORS_OPEN]
            for one in opened:
                where = f"{one.check} in {one.task}" if one.task else one.check
                errors.append(Paragraph(f"{about}{where}: {one.message} {one.remedy}".strip(), "bad"))
            others.append(_folded(about, seen[len(opened) :]))
        return [*(errors or [Paragraph("No error found.")]), *others] if files else []


def _folded(about: str, observations: list[Observation]) -> Block:
    """What does not stand open: warnings, then infos."""
    rows = [
        (o.severity, o.check, o.task or "all", f"{o.count:,} of {o.total:,}", o.message, o.remedy)
        for o in observations[:MOST_OBSERVATIONS_SHOWN]
    ]
    counts = Counter(o.severity for o in observations)
    summary = ", ".join(count(counts[word], word) for word in SEVERITIES if counts[word])
    table = Table("Observations of the audit", ("severity", "check", "task", "seen", "what", "remedy"), rows)
    beyond = len(observations) - len(rows)
    rest = Paragraph(f"{beyond:,} more observations stand in the audit's JSON file." if beyond else "")
    return Fold(f"{about}{summary}", (table, rest))


def _with_chance_level(seen: Observation, levels: Mapping[Place, Interval]) -> Observation:
    """An observation of a cell's chance level with the level that the page has; the audit's own is that of training rows."""
    about = seen.evidence[0] if seen.check == "difficulty" and seen.evidence else {}
    level = levels.get((seen.task or "", about.get("level"), False)) if "chance" in about else None
    if level is None:
        return seen
    name, answer, rows = cell_key(seen.task or "", about.get("level")), about.get("answer"), about.get("rows")
    text = f"{name}: a rule without the skill is right in {format_share(level)} points of the held-out items."
    return replace(seen, message=f"{text} The majority answer is {answer!r}: {rows} of {seen.total} training rows.")
