"""Many-valued levels in bins by quantile: few rows apart in each, medians as names, a note per task."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mixwright.config import CorpusConfig
from mixwright.corpus import read_corpus
from mixwright.corpus.levels import MAX_BINS, MAX_LEVELS, MIN_ROWS_PER_BIN, bin_levels


def test_few_levels_stay_as_they_are():
    tasks, levels = np.array(["a"] * 120), np.repeat(np.arange(12.0), 10)
    binned, notes = bin_levels(tasks, levels)
    assert binned is levels
    assert notes == []


def test_many_levels_are_binned_by_hand():
    tasks = np.array(["few"] * 100 + ["many"] * 100)
    levels = np.r_[np.repeat([1.0, 2.0], 50), np.arange(100.0)]
    binned, notes = bin_levels(tasks, levels)
    assert binned[:100].tolist() == levels[:100].tolist()
    names, counts = np.unique(binned[100:], return_counts=True)
    assert counts.tolist() == [20] * 5  # 100 rows of at least 20 a bin
    assert names.tolist() == [9, 29, 49, 69, 89]  # the lower median of 0..19, 20..39, ...
    assert notes == [
        "many: 100 different levels were grouped into 5 bins of about equal size by quantile, each named by its median level"
    ]


@given(st.lists(st.floats(-1e6, 1e6), min_size=13, max_size=300), st.booleans())
def test_bins_keep_the_order_and_are_not_many(values, missing):
    levels = np.array([*values, *([np.nan] if missing else [])])
    binned, notes = bin_levels(np.zeros(len(levels), dtype=int), levels)
    known = ~np.isnan(levels)
    assert (np.isnan(binned) == ~known).all()
    different = len(np.unique(levels[known]))
    assert bool(notes) == (different > MAX_LEVELS)
    if notes:
        assert len(np.unique(binned[known])) <= max(1, min(MAX_BINS, len(values) // MIN_ROWS_PER_BIN))
        assert set(binned[known]) <= set(levels[known])
        order = np.argsort(levels[known], kind="stable")
        assert (np.diff(binned[known][order]) >= 0).all()


def test_bins_are_those_of_the_rows_that_count_and_others_go_to_the_nearest():
    levels = np.r_[np.arange(100.0), -50.0, 1000.0, 30.0]
    counted = np.arange(103) < 100
    binned, _ = bin_levels(np.zeros(103, dtype=int), levels, counted)
    assert binned[100:].tolist() == [9, 89, 29]


def test_a_corpus_with_a_level_of_its_own_for_every_row_has_cells_that_can_be_judged(tmp_path):
    rows = [
        {"prompt": f"q{i}", "answer": str(i % 10), "level": i / 7, "split": "eval" if i % 5 == 0 else "train"}
        for i in range(400)
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus = read_corpus(CorpusConfig(train=str(path), task="t"))
    assert [cell.count for cell in corpus.cells()] == [40] * 8
    assert all(cell.chance < 0.3 for cell in corpus.cells())  # one-row cells would have a constant that is always right
    assert {row.level for row in corpus if row.split == "eval"} <= {cell.level for cell in corpus.cells()}
    assert corpus.notes[0].startswith("t: 320 different levels were grouped into 8 bins of about equal size by quantile")
