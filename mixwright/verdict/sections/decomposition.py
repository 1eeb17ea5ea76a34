"""Section of where the difference lies: per cell what any prompt would earn (S) and what depends on the prompt (D).

Source: after of the leading arm and of each reference, per seed; before and after where there was no trial.
Unit: differences of success, S and D in points with 95 % interval over seeds and items.
Cost: reads the measurements of two arms at a time.
Blind spot: words are corrected by Holm within one table, so that a small difference in one of many cells gets no word.
"""

from __future__ import annotations

from typing import ClassVar

from mixwright.contracts import Section
from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.judgement import format_word
from mixwright.estimates.readings import Outcome
from mixwright.records import TrialResult
from mixwright.runs import RunFolder
from mixwright.verdict.arm_words import effect_of, format_change, format_outcome
from mixwright.verdict.blocks import Block, Fold, Table, Terms
from mixwright.verdict.claims import Compared, compare_cells, interval
from mixwright.verdict.evidence import Sides, comparisons, decoding_of, headline_arm, paired_scores, trial_of
from mixwright.verdict.text import level

PARTS = ("change of success", "= change of S", "+ change of D")


class Decomposition(Section):
    """A table of cells per reference."""

    ORDER: ClassVar[int] = 22
    TITLE: ClassVar[str] = "Where the difference lies"

    def blocks(self, run: RunFolder) -> list[Block]:
        """The first reference open, the others folded; of a plain before and after, one table."""
        result, arm = trial_of(run), headline_arm(run)
        decoding = result.decoding if result else decoding_of(run)
        sides: dict[str, Sides] = {}
        for against in result.references if result else ():
            both = paired_scores(run, arm, against) if against != arm else None
            if both:
                sides[f"{arm} against {against}"] = both
        if not sides and arm in (plain := comparisons(run)):
            sides = {"After against before": plain[arm]}
        parts = [_parts(result, arm)] if result else []
        tables = [table for name, both in sides.items() if (table := _table(name, both, decoding)).rows]
        if not tables:
            return []
        return [Terms(("S", "D")), *parts, *tables[:1], *(Fold(table.caption, (table,)) for table in tables[1:])]


def _parts(result: TrialResult, arm: str) -> Table:
    """The primary outcome of the leading arm against each reference, and what stands beside it."""
    rows = []
    for effect in (found for against in result.references if (found := effect_of(result, arm, against))):
        sampled = effect.sampled if result.decoding == "greedy" else effect.difference
        items = effect_of(result, arm, effect.against, "success.items")
        numbers = (effect.difference, effect.swapped, effect.dependence, sampled, items.difference if items else None)
        rows.append((f"against {effect.against}", *map(format_change, numbers)))
    columns = ("", *PARTS, "sampled success", "mean over items")
    return Table(f"{arm}: points; {format_outcome(result.decoding)}", columns, rows, (1, 2, 3, 4, 5))


def _table(name: str, sides: Sides, decoding: Outcome) -> Table:
    columns = ("cell", "items", *PARTS, "word")
    rows = [_row(part) for part in compare_cells(sides, decoding) if len(part.change.items) >= MIN_ITEMS]
    return Table(f"{name}: change in points, success {decoding}", columns, rows, (1, 2, 3, 4))


def _row(part: Compared) -> tuple[str, ...]:
    name = " ".join((part.task, level(part.level) or ("all levels" if part.whole else ""))).strip()
    numbers = (
        interval(found) if found is not None else None for found in (part.change.success, part.swapped, part.dependence)
    )
    return (name, str(len(part.change.items)), *map(format_change, numbers), format_word(part.word))
