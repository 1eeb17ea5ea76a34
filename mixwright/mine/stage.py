"""Stage that mines: a miner over training rows, what its choice does to the mix, and the files that trainers read."""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mixwright import catalog
from mixwright.corpus.identity import build_table
from mixwright.errors import InputError
from mixwright.records import Example, MinedRow, MiningResult, MiningSummary, TaskRows
from mixwright.run.folder import read_json, write_json, write_table

if TYPE_CHECKING:
    from mixwright.contracts import Miner
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner
    from mixwright.mine.choosing import TrainRows

MINE_SEED = 6_000_011
"""Added to the run's seed: what a miner draws."""
NOTED_SHIFT_SHARE = 0.02
"""Change of a task's share that is never silent."""
MIN_TASK_ROWS = 20
"""Rows that a task keeps at least, as far as its share of the rows that are kept goes."""


def make_miner(name: str, options: Mapping[str, Any]) -> Miner:
    """The miner of that name. Raises InputError for an unknown miner or option."""
    return catalog.create("miners", name, dict(options))


def mine(
    miner: Miner,
    name: str,
    corpus: Corpus,
    rows: TrainRows,
    learner: Learner | None,
    *,
    seed: int = 0,
    mined_from: str = "",
) -> tuple[MiningResult, MiningSummary]:
    """Run a miner, put back rows of tasks that it would prune below what is safe, and count; what was mined, and a summary.

    Args:
        miner: the plug-in.
        name: of it.
        corpus: its training rows may be chosen; held-out rows are refused.
        rows: those that may be chosen, with their columns.
        learner: for miners that read the model.
        seed: of the run.
        mined_from: digest of what it is mined from.

    Raises:
        InputError: what the miner refuses, or rows that are no training rows of the corpus.
    """
    begun = time.process_time()
    mined = miner.mine(corpus, rows, learner, np.random.default_rng([seed, MINE_SEED, zlib.crc32(name.encode())]))
    seconds = time.process_time() - begun
    task_by_id = dict(zip(rows.ids, rows.tasks.tolist(), strict=True))
    unknown_ids = [row.id for row in (*mined.rows, *mined.simple_rule_rows) if row.id not in task_by_id]
    if unknown_ids:
        raise InputError("training rows of this corpus from the miner", f"{unknown_ids[0]!r}", "Correct the miner.")
    counts = Counter(task_by_id.values())
    if mined.rows:
        mined = with_min_rows(mined, task_by_id)
    mined_counts = (
        Counter(task_by_id[row.id] for row in mined.rows) if mined.rows else Counter(row.task for row in mined.new_rows)
    )
    tasks = {task: TaskRows(counts[task], mined_counts[task]) for task in sorted({*counts, *mined_counts})}
    training_rows = corpus.table["split"].to_pylist().count("train")
    partial_note = [f"{len(task_by_id)} of {training_rows} training rows were scanned; the others were not considered."]
    notes = (*mined.notes, *partial_note[: training_rows > len(task_by_id)], *_note_shifts(tasks))
    cost = f"{seconds:.3g} CPU seconds"
    summary = MiningSummary(
        name,
        "new rows" if mined.new_rows else "chosen rows",
        len(mined.new_rows or mined.rows),
        training_rows=counts.total(),
        tasks=tasks,
        simple_rule=mined.simple_rule_description,
        notes=notes,
        price=f"{mined.rollouts:,} rollouts, {cost}" if mined.rollouts else cost,
        mined_from=mined_from,
    )
    return mined, summary


def _note_shifts(tasks: Mapping[str, TaskRows]) -> list[str]:
    """Say which tasks' shares of the training rows and of the mined rows differ by over `NOTED_SHIFT_SHARE`."""
    before = max(sum(rows.training_rows for rows in tasks.values()), 1)
    after = max(sum(rows.mined_rows for rows in tasks.values()), 1)
    shares = {task: (rows.training_rows / before, rows.mined_rows / after) for task, rows in tasks.items()}
    return [
        f"Task {task} has {mined:.1%} of the mined rows and {training:.1%} of the training rows."
        for task, (training, mined) in shares.items()
        if abs(mined - training) > NOTED_SHIFT_SHARE
    ]


def with_min_rows(mined: MiningResult, tasks: Mapping[str, str]) -> MiningResult:
    """What was mined, with rows put back where a task has too few, first of the corpus first.

    What is put back takes the place of rows chosen last from tasks that have more than enough, so that as many rows are kept
    as were chosen. A task of which any were chosen keeps `MIN_TASK_ROWS`, but no larger share of its rows than is kept of
    all rows.

    Args:
        mined: chosen rows.
        tasks: task of each training row.
    """
    chosen_counts, kept_ids = Counter(tasks[row.id] for row in mined.rows), {row.id for row in mined.rows}
    ids_by_task: dict[str, list[str]] = {}
    for name, task in tasks.items():
        ids_by_task.setdefault(task, []).append(name)
    rows_put_back, notes, min_rows, to_replace = list[MinedRow](), list[str](), dict[str, int](), 0
    for task, task_ids in ids_by_task.items():
        count = len(task_ids)
        share = count * len(mined.rows) // len(tasks)
        min_rows[task] = min(MIN_TASK_ROWS, share) if chosen_counts[task] else 0
        missing = max(min_rows[task] - chosen_counts[task], 0)
        if ids_put_back := [name for name in task_ids if name not in kept_ids][:missing]:
            why = "the task would have too few rows"
            rows_put_back += [MinedRow(name, f"put back: {why}") for name in ids_put_back]
            notes.append(
                f"Task {task} would have kept {chosen_counts[task]} of {count} rows; {len(ids_put_back)} were put back: "
                f"{why}."
            )
            to_replace += len(ids_put_back)
    rows = list[MinedRow]()
    for row in reversed(mined.rows):
        if to_replace and chosen_counts[tasks[row.id]] > min_rows[tasks[row.id]]:
            chosen_counts[tasks[row.id]] -= 1
            to_replace -= 1
        else:
            rows.append(row)
    return replace(mined, rows=(*reversed(rows), *rows_put_back), notes=(*mined.notes, *notes))


def write_mined(mined: MiningResult, summary: MiningSummary, folder: Path) -> Path:
    """Write `<miner>.parquet` and `<miner>.json`, the summary, into a folder; returns the table's path.

    Chosen rows have the columns id and reason; new rows have the columns of a corpus. The null of new rows stands in
    `<miner>.random_like.parquet`, rows of the simplest rule with the same knowledge in `<miner>.simple_rule.parquet`.
    """
    kinds = {"": mined.new_rows or mined.rows, ".random_like": mined.null_rows, ".simple_rule": mined.simple_rule_rows}
    for kind, rows in kinds.items():
        path = folder / f"{summary.miner}{kind}.parquet"
        if rows or not kind:
            write_table(path, _make_table(rows))
        else:
            path.unlink(missing_ok=True)  # of an earlier mining
    write_json(folder / f"{summary.miner}.json", summary)
    return folder / f"{summary.miner}.parquet"


def summary_of(table: Path) -> MiningSummary | None:
    """What the miner of a table left beside it; None where there is nothing, or what is no such summary."""
    try:
        return read_json(table.with_suffix(".json"), MiningSummary)
    except InputError:
        return None


def _make_table(rows: Sequence[MinedRow] | Sequence[Example]) -> Any:
    """New rows with the columns of a corpus, chosen ones with id and reason."""
    examples = [row for row in rows if isinstance(row, Example)]
    if examples:
        return build_table(examples)
    schema = pa.schema([("id", pa.string()), ("reason", pa.string())])
    return pa.table({name: [getattr(row, name) for row in rows] for name in schema.names}, schema=schema)
