"""Page of a preview: what is wrong with the labels, the facts of each task, and rows with what the loss is taken on."""

from __future__ import annotations

from collections.abc import Sequence

from mixwright.audit.learnt import Labelled, count_facts
from mixwright.records import Observation
from mixwright.verdict.audit_page import render_audit_page
from mixwright.verdict.page.blocks import Block, Part, Table


def render_preview_page(labelled: Labelled, observations: Sequence[Observation], about: str) -> str:
    """Return the page as HTML.

    Args:
        labelled: rows as the trainer labels them.
        observations: what is wrong with them.
        about: one line on what was read.
    """
    facts = [
        (one.task, f"{one.rows:,}", f"{one.tokens:,}", f"{one.targets:,}", f"{one.share:.0%}")
        for one in count_facts(labelled)
    ]
    header = ("task", "rows", "tokens", "learned", "share")
    tables: list[Block] = [Table("What is learned", header, facts, numeric=(1, 2, 3, 4))]
    row_by_number = {row.number: row for row in labelled.rows}
    for number, pieces in labelled.marked.items():
        row = row_by_number[number]
        cells = [("learned" if is_target else "read", text) for text, is_target in pieces]
        tables.append(Table(f"{row.source}, {len(row.ids):,} tokens", ("loss", "text"), cells))
    parts = [Part("rows", "Rows, as the trainer sees them", tables, f"{len(labelled.marked):,}", is_open=True)]
    return render_audit_page(observations, about, {"training": len(labelled.rows)}, parts, "Preview")
