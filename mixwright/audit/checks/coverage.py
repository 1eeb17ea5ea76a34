"""Check of what held-out rows need and no training row has: levels, skills, their order and number, formats, lengths.

Source: Zhao et al. 2025 (arXiv 2508.01191): few rows of a missing composition repair it; the null is our own.
Unit: held-out rows of a task that need something which train lacks; each row is told the first thing only.
Cost: one pass beside the search for leaks; held-out rows are kept as a few numbers and words each.
Blind spot: skills that nobody names and no parser reads, and whether the model can do it without training rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from mixwright.audit.holes import Coverage as Found
from mixwright.audit.holes import Hole, Kind, find_coverage
from mixwright.audit.rows import MAX_NAMES_SHOWN, has_held_out
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.records import Observation

IDS_SHOWN = 20
"""Held-out rows named as evidence of one hole."""
REMEDY = "Add about 100 rows of each to train, or document why they are missing."
LACKS: dict[Kind, str] = {
    "level": "are at levels that train lacks",
    "skill": "need a skill that no training row has",
    "detail": "have an argument or a key that no training row has",
    "pair": "need two skills in a row that no training row combines, although train has each of them",
    "steps": "need a number of skills in a row that no training row of the task has",
    "form": "have an answer in a format that no training answer of the task has",
    "length": "have a longer answer than any training row of the task",
}


class Coverage(Check):
    """Compares what held-out rows need with what training rows have."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Return a warning for each kind of gap of a task, and a note on what is covered."""
        if not has_held_out(corpus):
            text = "There is no eval split, so coverage was not checked."
            return [Observation("coverage", None, "info", 0, 0, text, "")]
        found = find_coverage(corpus)
        by_kind: dict[tuple[str, Kind], list[Hole]] = defaultdict(list)
        for hole in found.holes:
            if hole.is_hole and hole.kind in LACKS:
                by_kind[hole.task, hole.kind].append(hole)
        return [*(_observe(task, kind, holes) for (task, kind), holes in by_kind.items()), _observe_cells(found)]


def _observe(task: str, kind: Kind, holes: Sequence[Hole]) -> Observation:
    count, total = len({need.id for hole in holes for need in hole.rows}), holes[0].total
    names = ", ".join(f"{hole.what} ({len(hole.rows)})" for hole in holes[:MAX_NAMES_SHOWN])
    more = f" and {len(holes) - MAX_NAMES_SHOWN} more" if len(holes) > MAX_NAMES_SHOWN else ""
    text = f"{count} of {total} held-out rows {LACKS[kind]}: {names}{more}."
    chances = [hole.chance for hole in holes if hole.chance is not None]
    null = (
        f"train would lack the likeliest of them in {max(chances):.1g} of cases, if both were drawn alike" if chances else ""
    )
    evidence = tuple(
        {
            "kind": hole.kind,
            "missing": hole.what,
            "levels": sorted({need.level for need in hole.rows if need.level is not None}),
            "held_out_rows": len(hole.rows),
            "of": hole.total,
            "chance": hole.chance,
            "held_out_sources": [need.source or need.id for need in hole.rows[:IDS_SHOWN]],
        }
        for hole in holes
    )
    return Observation(
        "coverage", task, "warning", count, total, text, REMEDY, null or "none: train has it or not", evidence
    )


def _observe_cells(found: Found) -> Observation:
    covered, total = sum(word == "covered" for word in found.cells.values()), len(found.cells)
    by_chance = sum(not hole.is_hole for hole in found.holes)
    text = f"Training rows cover {covered} of {total} held-out tasks and levels."
    if by_chance:
        text += f" Chance explains {by_chance} other skills, formats or lengths that only held-out rows have."
    evidence = tuple({"cell_task": task, "level": level, "word": word} for (task, level), word in found.cells.items())
    null = "rows dealt out at random"
    return Observation("coverage", None, "info", covered, total, text, "", null, evidence)
