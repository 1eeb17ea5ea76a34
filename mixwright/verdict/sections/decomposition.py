"""Section of where the difference lies: per cell what any prompt would earn (S) and what depends on the prompt (D).

Source: after of the leading arm and of each reference, per seed; before and after where there was no trial.
Unit: differences of success, S and D in points with 95 % interval over seeds and items.
Cost: reads the measurements of two arms at a time.
Blind spot: words are corrected by Holm within one table, so that a small difference in one of many cells gets no word.
"""

from __future__ import annotations

from mixwright.contracts import Section
from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.judgement import format_word
from mixwright.estimates.readings import Outcome
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.blocks import Block, Fold, Table, Terms
from mixwright.verdict.page.text import cell_name, format_change
from mixwright.verdict.rules.claims import compare_cells, to_interval
from mixwright.verdict.rules.evidence import Sides, headline_arm, leading_sides, paired_scores, read_outcome, trial_of

COLUMNS = ("cell", "items", "change of success", "= change of S", "+ change of D", "word")


class Decomposition(Section):
    """A table of cells per reference."""

    ORDER = 22
    TITLE = "Where the difference lies"

    def blocks(self, run: RunFolder) -> list[Block]:
        """The first reference open, the others folded; of a plain before and after, one table."""
        result, arm = trial_of(run), headline_arm(run)
        outcome = result.decoding if result else read_outcome(run)
        other_references = [name for name in result.references if name != arm] if result else []
        sides = {
            f"{arm} against {name}": arm_sides for name in other_references if (arm_sides := paired_scores(run, arm, name))
        }
        if not sides and (plain_sides := leading_sides(run)):
            sides = {"After against before": plain_sides}
        tables = [table for name, arm_sides in sides.items() if (table := _table(name, arm_sides, outcome)).rows]
        if not tables:
            return []
        return [Terms(("S", "D")), tables[0], *(Fold(table.caption, (table,)) for table in tables[1:])]


def _table(name: str, sides: Sides, outcome: Outcome) -> Table:
    rows = []
    for comparison in compare_cells(sides, outcome):
        estimates = (comparison.change.estimate, comparison.swapped, comparison.dependence)
        changes = (format_change(to_interval(estimate) if estimate is not None else None) for estimate in estimates)
        if len(items := comparison.change.items) >= MIN_ITEMS:
            cell = cell_name(comparison.task, comparison.level, whole_task=comparison.is_whole_task)
            rows.append((cell, str(len(items)), *changes, format_word(comparison.word)))
    return Table(f"{name}: change in points, success {outcome}", COLUMNS, rows, (1, 2, 3, 4))
