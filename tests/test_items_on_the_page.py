"""Items of a comparison on its page: listed by change and by task, and a page that stays small however many there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mixwright.measure.bases import read_completion_rows, write_completion_rows
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.blocks import Fold, Table, Texts
from mixwright.verdict.sections.completions import MAX_ARTICLES, MAX_ROWS, MAX_TEXT, Completions


def folder_of(place: Path, items: list[tuple[str, float, float, str, str]]) -> RunFolder:
    """A comparison of (task, score before, score after, text before, text after)."""
    rows: list[dict[str, Any]] = []
    for n, (task, *scores_and_texts) in enumerate(items):
        for side, when in enumerate(("before", "after")):
            row = {"example": str(n), "task": task, "level": None, "prompt": f"q{n}", "answer": "a", "when": when}
            row |= {"completion": scores_and_texts[2 + side], "score": scores_and_texts[side], "cut": False, "tokens": [1]}
            rows.append(row | {"logprob": -1.0})
    write_completion_rows(place / "completions.parquet", rows)
    return RunFolder(place)


def folds(folder: RunFolder) -> dict[str, Fold]:
    return {block.summary: block for block in Completions().blocks(folder) if isinstance(block, Fold)}


def test_every_item_is_listed_by_change_and_task(tmp_path: Path) -> None:
    items = [("a", 1.0, 0.0, "x", "y")] * 2 + [("b", 1.0, 0.0, "x", "y")] + [("a", 0.0, 1.0, "x", "y")] * 2
    items += [("a", 1.0, 1.0, "x", "y")] + [("b", 0.0, 0.0, "x", "x")] * 3
    found = folds(folder_of(tmp_path, items))
    assert list(found) == [
        "3 items lost: the score fell",
        "2 items gained: the score rose",
        "1 item with another text at the same score",
        "3 items unchanged",
    ]
    lost = found["3 items lost: the score fell"].blocks
    assert [block.summary for block in lost if isinstance(block, Fold)] == ["a: 2 items", "b: 1 item"]
    (texts,) = found["2 items gained: the score rose"].blocks
    assert isinstance(texts, Texts)
    assert [pair.prompt for pair in texts.pairs] == ["q3", "q4"]
    (table,) = found["3 items unchanged"].blocks
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == ["q6", "q7", "q8"]


def test_a_completion_that_was_cut_is_marked_in_tables_too(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, [("a", 1.0, 1.0, "x", "whole"), ("a", 1.0, 1.0, "x", "not whole")])
    path = tmp_path / "completions.parquet"
    rows = [row | {"cut": row["completion"] == "not whole"} for row in read_completion_rows(path)]
    write_completion_rows(path, rows)
    (table,) = folds(folder)["2 items with another text at the same score"].blocks
    assert isinstance(table, Table)
    assert [row[1] for row in table.rows] == ["whole", "not whole (cut off)"]


def test_long_lists_say_what_they_leave_out(tmp_path: Path) -> None:
    """Tasks take turns, so that one with few items is not crowded out by one with many."""
    text = "x" * 1000
    items = [("many", 1.0, 0.0, text, text)] * 1000 + [("few", 1.0, 0.0, text, text)] * 2
    items += [("many", 1.0, 1.0, text, text)] * (MAX_ROWS + 5)
    found = folds(folder_of(tmp_path, items))
    lost = found["1,002 items lost: the score fell"].blocks
    assert getattr(lost[0], "text", "") == f"{1002 - MAX_ARTICLES} items of these are in completions.parquet alone."
    assert [block.summary for block in lost if isinstance(block, Fold)] == [
        "few: 2 items",
        f"many: {MAX_ARTICLES - 2} items",
    ]
    (inner,) = next(block for block in lost if isinstance(block, Fold)).blocks
    assert isinstance(inner, Texts)
    assert {len(pair.before) for pair in inner.pairs} == {MAX_TEXT + 2}
    note, table = found[f"{MAX_ROWS + 5:,} items unchanged"].blocks
    assert getattr(note, "text", "") == "5 items of these are in completions.parquet alone."
    assert isinstance(table, Table)
    assert len(table.rows) == MAX_ROWS
