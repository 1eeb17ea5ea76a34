"""What the worlds of `fault_costs` share: a row, an item, what an arm has, and how the product reads rows.

Source: ours.
Unit: a row to train on (id, task, prompt, completion; further columns say what was planted) and an item (id, task, prompt,
answer, cell).
Cost: none.
Blind spot: nothing is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mixwright.audit.rows import list_for_files
from mixwright.audit.stage import run_audit
from mixwright.corpus import Corpus
from mixwright.records import Example, Observation

ROWS, ITEMS = 1000, 200
FROZEN, AS_IT_IS, RANDOM_ROWS = "frozen", "as it is", "random rows"
MASK, CONTEXT = "mask", "context"
"""Columns of a row: parts of the completion that are not trained on, and what whoever wrote the completion saw."""
Row = dict[str, Any]


class Made(NamedTuple):
    """What a world has of one seed for one arm."""

    rows: list[Row]
    """To train on."""
    items: list[Row]
    """To ask."""
    remarks: dict[str, Any]
    """What was planted, and what a check said."""


def make_row(world: str, place: int | str, prompt: str, completion: str) -> Row:
    """A row to train on; a number as its place makes the id."""
    name = f"row{place}" if isinstance(place, int) else place
    return {"id": name, "task": world, "prompt": prompt, "completion": completion}


def make_item(world: str, place: int, prompt: str, answer: str, cell: str) -> Row:
    """An item to ask."""
    return {"id": f"item{place}", "task": world, "prompt": prompt, "answer": answer, "cell": cell}


def corpus_of(rows: Sequence[Row], items: Sequence[Row] = ()) -> Corpus:
    """What a check of the product reads: prompts, completions, contexts and answers, nothing of what was planted."""
    train = [
        Example(
            row["id"],
            row["task"],
            row["prompt"],
            target=row["completion"],
            extra={CONTEXT: row[CONTEXT]} if CONTEXT in row else {},
        )
        for row in rows
    ]
    held_out = [Example(one["id"], one["task"], one["prompt"], answer=one["answer"], split="eval") for one in items]
    return Corpus.from_examples([*train, *held_out])


def warnings_of(rows: Sequence[Row], check: str) -> list[Observation]:
    """What a check of the product warns of, all rows listed."""
    with list_for_files():
        return [one for one in run_audit(corpus_of(rows), [check]) if one.severity == "warning"]


def listed_spans(rows: Sequence[Row], check: str) -> dict[str, list[list[int]]]:
    """Id of each row that a check lists with a warning -> the parts of its completion that are wrong, [start, end)."""
    found: dict[str, set[tuple[int, int]]] = {}
    for one in warnings_of(rows, check):
        for evidence in one.evidence:
            if "start" in evidence:
                found.setdefault(evidence["id"], set()).add((evidence["start"], evidence["end"]))
    return {name: [list(span) for span in sorted(spans)] for name, spans in found.items()}


def listed_rows(rows: Sequence[Row], check: str) -> set[str]:
    """Ids of the rows that a check lists with a warning."""
    return {evidence["id"] for one in warnings_of(rows, check) for evidence in one.evidence}
