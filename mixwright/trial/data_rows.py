"""Rows of a trial over data: the table that `trial.data` names, and the training rows that each arm gets of it.

A table of selected rows has the columns id and reason; one of new rows has the columns of a corpus. Next to
NAME.parquet, NAME.random_like.parquet may hold the miner's own null (as many rows made without what it knows), and
NAME.simple_rule.parquet what the simplest rule with the same knowledge selects.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mixwright.corpus import Corpus
from mixwright.corpus.identity import prompt_key
from mixwright.corpus.rows import SCHEMA, with_column
from mixwright.errors import InputError, join_some

if TYPE_CHECKING:
    from mixwright.contracts import Rows
    from mixwright.records import Cell, Plan
    from mixwright.run.folder import RunFolder

DATA_ROWS_SEED = 4_000_037
"""Second number of the seed that random rows are drawn by, after the seed of the branch."""
BESIDE: tuple[Rows, ...] = ("random_like", "simple_rule")
"""Tables that a miner may leave next to its own."""


@dataclass(frozen=True)
class DataTable:
    """One table of mined rows, and what the miner left next to it."""

    path: Path
    """Parquet file."""
    new_rows: bool
    """Whether its rows are new, not selected ones of the corpus."""
    rows_by_kind: Mapping[Rows, Corpus]
    """`mined`, the table itself, and where the miner left them `random_like` (else rows of the corpus are drawn) and
    `simple_rule`."""

    @property
    def mined(self) -> Corpus:
        """Rows of the table."""
        return self.rows_by_kind["mined"]

    def digest_of_rows(self, kind: Rows) -> str:
        """Return a digest of all that decides which rows an arm of this kind gets.

        Random rows follow the counts per task alone, so tables of one size share their branches.
        """
        if kind in self.rows_by_kind:
            return self.rows_by_kind[kind].digest()
        deciding = sorted(_count_tasks(self.mined).items()), sorted(_tasks_without_repeats(self.mined))
        return hashlib.sha256(repr(deciding).encode()).hexdigest()


def data_path(table_name: str, run: RunFolder, base: Path = Path()) -> Path:
    """Return the file that `trial.data` means: a miner's name, or a path from the run folder, from `base`, or from here.

    Raises:
        InputError: there is no such file.
    """
    paths = [run.path / "mine" / f"{table_name}.parquet", run.path / table_name, base / table_name, Path(table_name)]
    for path in paths:
        if path.is_file():
            return path
    remedy = f"Make it with `mixwright mine RUN.YAML --miner {Path(table_name).stem}`, or correct trial.data."
    raise InputError("a table of mined rows", "nothing", remedy, file=paths[0])


def table_beside(path: Path, kind: str) -> Path:
    """Return where the miner of a table leaves another one, if it does."""
    return path.with_name(f"{path.stem}.{kind}.parquet")


def read_data(path: Path, corpus: Corpus) -> DataTable:
    """Read the table and those next to it. Raises InputError for rows that are not to be trained on in this corpus."""
    files: dict[Rows, Path] = {"mined": path}
    files |= {kind: table_beside(path, kind) for kind in BESIDE}
    rows_by_kind: dict[Rows, Corpus] = {kind: _read_rows(file, corpus) for kind, file in files.items() if file.is_file()}
    return DataTable(path, "prompt" in pq.read_schema(path).names, rows_by_kind)


def choose_rows(kind: Rows, corpus: Corpus, data: DataTable | None, seed: int, rehearse: Collection[str] = ()) -> Corpus:
    """Return the training rows of an arm in one stage; all rows are those of the corpus with what the stage rehearses.

    Random rows are as many of each task as were mined; where no prompt of a task was mined twice, none is drawn twice, so
    that random rows are of as many prompts.

    Args:
        kind: which rows.
        corpus: of the run; its training rows are meant.
        data: the table; all rows need none.
        seed: of the branch.
        rehearse: tasks whose rows to rehearse belong to all rows.

    Raises:
        InputError: rows of a table, without one.
    """
    if kind == "all":
        return corpus.training(rehearse)
    if data is None:
        raise InputError(f"a table of mined rows (trial.data) for an arm that trains on {kind}", "none", "Name one.")
    if (chosen := data.rows_by_kind.get(kind)) is not None:
        return chosen
    return _draw_rows_like(data.mined, corpus.select(split="train"), np.random.default_rng([seed, DATA_ROWS_SEED]))


def repeat_to_fill(rows: Corpus, batch: int) -> Corpus:
    """Return the rows, all of them repeated as often as it takes for one batch: fewer rows must not make smaller steps.

    Copies get ids of their own.
    """
    times = math.ceil(batch / len(rows))
    if times == 1:
        return rows
    repeated = rows.take(np.repeat(np.arange(len(rows)), times))
    ids = [f"{name}~{copy + 1}" if copy else name for name in rows.table["id"].to_pylist() for copy in range(times)]
    repeated.table = with_column(repeated.table, "id", pa.array(ids, pa.string()))
    return repeated


def restrict_plan(plan: Plan, cells: Sequence[Cell]) -> Plan:
    """Return the plan over the tasks that have rows, weights scaled up to 1.

    Raises:
        InputError: no task with a weight has rows.
    """
    tasks_with_rows = {cell.task for cell in cells if cell.count}
    stages = []
    for stage in plan.stages:
        weights = {task: weight for task, weight in stage.weights.items() if task in tasks_with_rows}
        total = sum(weights.values())
        if not total:
            remedy = "Mine rows of tasks in the plan."
            raise InputError(
                f"rows of a task with a weight in stage {stage.name!r}", join_some(sorted(tasks_with_rows)) or "none", remedy
            )
        bands = {task: band for task, band in stage.bands.items() if task in tasks_with_rows}
        weights = {task: weight / total for task, weight in weights.items()}
        rehearse = tuple(task for task in stage.rehearse if task in tasks_with_rows)
        expected = {task: success for task, success in stage.expected.items() if task in tasks_with_rows}
        stages.append(replace(stage, weights=weights, bands=bands, rehearse=rehearse, expected=expected))
    kept_cells = tuple(cell for cell in plan.cells if cell.task in tasks_with_rows)
    return replace(plan, stages=tuple(stages), cells=kept_cells)


def data_notes(data: DataTable, corpus: Corpus, plan: Plan) -> list[str]:
    """Say what a reader of a trial over this table has to know."""
    corpus_counts, mined_counts = _count_tasks(corpus.select(split="train")), _count_tasks(data.mined)
    rows = corpus_counts.total()
    kind = "new rows" if data.new_rows else f"of {rows:,} training rows"
    by_task = ", ".join(f"{task} {mined_counts[task]:,} of {count:,}" for task, count in sorted(corpus_counts.items()))
    notes = [
        f"Trial of rows: {data.path.name}, {len(data.mined):,} {kind} ({by_task}). Plan, steps and batch are the same in "
        "every trained arm, so tasks keep the plan's weights and only the rows within them change."
    ]
    lost_tasks = [task for task, weight in plan.stages[0].weights.items() if weight and not mined_counts[task]]
    if lost_tasks:
        weight_goes = "its weight goes" if len(lost_tasks) == 1 else "their weights go"
        notes.append(
            f"No rows of {join_some(lost_tasks)} are left, so in mined and random_like {weight_goes} to the other tasks, "
            "but not in all."
        )
    short_tasks = [task for task in mined_counts if mined_counts[task] > corpus_counts[task]]
    if short_tasks and "random_like" not in data.rows_by_kind:
        notes.append(
            f"random_like has fewer rows of {join_some(short_tasks)} than the miner made, because the corpus has no more."
        )
    return notes


def _read_rows(path: Path, corpus: Corpus) -> Corpus:
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError("a Parquet table of mined rows", str(error)[:120], "Mine again.", file=path) from None
    return _read_new_rows(table, corpus, path) if "prompt" in table.column_names else _read_selection(table, corpus, path)


def _read_selection(table: pa.Table, corpus: Corpus, path: Path) -> Corpus:
    """Return the selected rows. Raises InputError for a missing column, weights, and ids that are no training rows."""
    if "id" not in table.column_names:
        got = ", ".join(table.column_names[:8]) or "no column"
        raise InputError("a column id, or the columns of a corpus", got, "Mine again.", file=path)
    if "weight" in table.column_names and len(table["weight"].unique()) > 1:
        remedy = "Leave the column out: selected rows are trained on equally often."
        raise InputError("rows that count the same", "a column weight with different values", remedy, file=path)
    counts = Counter(map(str, table["id"].to_pylist()))
    train = set(corpus.select(split="train").table["id"].to_pylist())
    for name, count in counts.items():
        if count > 1:
            raise InputError("each id once", f"{name!r} more than once", "Name it once.", file=path)
        if name not in train:
            remedy = "Select only training rows of this run: arms are judged on the held-out rows."
            raise InputError("ids of training rows", repr(name), remedy, file=path)
    if not counts:
        raise InputError("selected rows", "none", "Select some rows.", file=path)
    return corpus.select(ids=list(counts))


def _read_new_rows(table: pa.Table, corpus: Corpus, path: Path) -> Corpus:
    """Return new rows as a corpus. Raises InputError for wrong columns, unknown tasks, and prompts that are held out."""
    try:
        rows = table.select(SCHEMA.names).cast(SCHEMA).combine_chunks()
    except (pa.ArrowException, KeyError) as error:
        remedy = f"Write the columns of a corpus: {', '.join(SCHEMA.names)}."
        raise InputError("the columns of a corpus", str(error)[:120], remedy, file=path) from None
    if not len(rows):
        raise InputError("new rows", "none", "Mine some rows.", file=path)
    rows = with_column(rows, "split", pa.array(["train"] * len(rows), pa.string()))
    new_rows = Corpus(rows, corpus.graders, folder=path.parent)
    held_out = {prompt_key(row.prompt) for row in corpus.select(split="eval") if row.prompt}
    for row in new_rows:
        if row.task not in corpus.tasks:
            got, remedy = f"{row.task!r} of {row.id!r}", f"It has: {', '.join(corpus.tasks)}."
            raise InputError("a task of the corpus", got, remedy, file=path)
        if row.prompt and prompt_key(row.prompt) in held_out:
            remedy = "Leave it out, because arms are judged on that prompt."
            raise InputError("new rows whose prompts are not held out", repr(row.id), remedy, file=path)
    if len(set(rows["id"].to_pylist())) < len(rows):
        raise InputError("each id once", "an id more than once", "Give new rows different ids.", file=path)
    return new_rows


def _draw_rows_like(mined: Corpus, train: Corpus, rng: np.random.Generator) -> Corpus:
    """Draw as many random rows of each task as were mined, all of them where there are fewer."""
    unrepeated_tasks = _tasks_without_repeats(mined)
    tasks, prompt_keys = np.array(train.table["task"].to_pylist(), dtype=object), _read_prompt_keys(train)
    drawn: list[int] = []
    for task, count in sorted(_count_tasks(mined).items()):
        task_rows = rng.permutation(np.flatnonzero(tasks == task)).tolist()
        if task in unrepeated_tasks:
            task_rows = list({prompt_keys[row]: row for row in task_rows}.values())
        drawn += task_rows[:count]
    return train.take(np.sort(drawn))


def _count_tasks(rows: Corpus) -> Counter[str]:
    return Counter(rows.table["task"].to_pylist())


def _tasks_without_repeats(rows: Corpus) -> set[str]:
    """Return the tasks that have no prompt twice."""
    tasks = rows.table["task"].to_pylist()
    counts = Counter(zip(tasks, _read_prompt_keys(rows), strict=True))
    return set(tasks) - {task for (task, _), count in counts.items() if count > 1}


def _read_prompt_keys(rows: Corpus) -> list[int]:
    return [prompt_key(row.prompt) for row in rows]
