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
from mixwright.records import SEVERITIES, Interval, Observation, cell_key
from mixwright.run.folder import RunFolder, read_list
from mixwright.verdict.page.blocks import Block, Fold, Paragraph, Table
from mixwright.verdict.page.text import format_count, format_share
from mixwright.verdict.rules.cells import chance_levels
from mixwright.verdict.rules.spared import ClaimKey

MAX_OBSERVATIONS_SHOWN = 200
"""Observations that a table shows; the others are counted."""
MAX_ERRORS_OPEN = 4
"""Errors that stay open per file."""


class AuditSection(Section):
    """Errors of the audit in full, warnings and infos folded."""

    ORDER = 12
    TITLE = "Data"
    SHOWN_UNGRADED = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """One group per audit file."""
        files = sorted(run.path.glob("audit*.json"), key=lambda path: (path.name != "audit.json", path.name))
        errors: list[Block] = []
        other_blocks: list[Block] = []
        for path in files:
            name = path.stem.removeprefix("audit").strip("_-. ").replace("_", " ")
            prefix = f"Other data ({name}), not this run's: " if name else ""
            chance_by_claim = {} if name else chance_levels(run)
            observations = [_with_chance_level(observation, chance_by_claim) for observation in read_list(path, Observation)]
            observations.sort(key=lambda observation: SEVERITIES.index(observation.severity))
            open_errors = [observation for observation in observations if observation.severity == "error"][:MAX_ERRORS_OPEN]
            for observation in open_errors:
                check_text = f"{observation.check} in {observation.task}" if observation.task else observation.check
                errors.append(Paragraph(f"{prefix}{check_text}: {observation.message} {observation.remedy}".strip(), "bad"))
            other_blocks.append(_fold_observations(prefix, observations[len(open_errors) :]))
        return [*(errors or [Paragraph("No error found.")]), *other_blocks] if files else []


def _fold_observations(prefix: str, observations: list[Observation]) -> Block:
    """What does not stand open: warnings, then infos."""
    rows = [
        (
            observation.severity,
            observation.check,
            observation.task or "all",
            f"{observation.count:,} of {observation.total:,}",
            observation.message,
            observation.remedy,
        )
        for observation in observations[:MAX_OBSERVATIONS_SHOWN]
    ]
    counts = Counter(observation.severity for observation in observations)
    summary = ", ".join(format_count(counts[word], word) for word in SEVERITIES if counts[word])
    table = Table("Observations of the audit", ("severity", "check", "task", "seen", "what", "remedy"), rows)
    hidden_count = len(observations) - len(rows)
    rest_note = Paragraph(f"{hidden_count:,} more observations stand in the audit's JSON file." if hidden_count else "")
    return Fold(f"{prefix}{summary}", (table, rest_note))


def _with_chance_level(observation: Observation, chance_by_claim: Mapping[ClaimKey, Interval]) -> Observation:
    """An observation of a cell's chance level with the level that the page has; the audit's own is that of training rows."""
    details = observation.evidence[0] if observation.check == "difficulty" and observation.evidence else {}
    chance = chance_by_claim.get((observation.task or "", details.get("level"), False)) if "chance" in details else None
    if chance is None:
        return observation
    name, answer, rows = cell_key(observation.task or "", details.get("level")), details.get("answer"), details.get("rows")
    text = f"{name}: a rule without the skill is right in {format_share(chance)} points of the held-out items."
    return replace(
        observation, message=f"{text} The majority answer is {answer!r}: {rows} of {observation.total} training rows."
    )
