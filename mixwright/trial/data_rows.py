"""Rows of a trial over data: the table that `trial.data` names, and the training rows that each arm gets of it.

A table of selected rows has the columns id, weight and reason; one of new rows has the columns of a corpus. Next to
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
from mixwright.mine.choosing import resample_by_weight

if TYPE_CHECKING:
    from mixwright.contracts import Rows
    from mixwright.records import Cell, Plan
    from mixwright.run.folder import RunFolder

DATA_ROWS_SEED = 4_000_037
"""Added to the run's seed and the trial seed: random rows and resampled ones are drawn by it."""
BESIDE: tuple[Rows, ...] = ("random_like", "simple_rule")
"""Tables that a miner may leave next to its own."""


@dataclass(frozen=True)
class WeightedRows:
    """Rows of one file, checked against the corpus."""

    rows: Corpus
    """Training rows of the corpus, or new ones."""
    weights: Sequence[float]
    """Weight of each, above 0; 1 for new rows."""
    digest: str
    """SHA-256 of the file."""

    @property
    def tasks(self) -> list[str]:
        """Task of each row."""
        return self.rows.table["task"].to_pylist()

    @property
    def are_weighted(self) -> bool:
        """Whether the weights differ."""
        return max(self.weights) - min(self.weights) > 1e-9


@dataclass(frozen=True)
class DataTable:
    """One table of mined rows, and what the miner left next to it."""

    path: Path
    """Parquet file."""
    new_rows: bool
    """Whether its rows are new, not selected ones of the corpus."""
    rows_by_kind: Mapping[Rows, WeightedRows]
    """`mined`, the table itself, and where the miner left them `random_like` (else rows of the corpus are drawn) and
    `simple_rule`."""

    @property
    def mined(self) -> WeightedRows:
        """Rows of the table."""
        return self.rows_by_kind["mined"]

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.mined.rows)

    def digest_of_rows(self, kind: Rows) -> str:
        """Return a digest of all that decides which rows an arm of this kind gets.

        Random rows follow the counts and weights per task alone, so tables of one size share their branches.
        """
        if kind in self.rows_by_kind:
            return self.rows_by_kind[kind].digest
        counts = sorted(zip(self.mined.tasks, self.mined.weights, strict=True))
        return hashlib.sha256(repr((counts, sorted(_tasks_without_repeats(self.mined.rows)))).encode()).hexdigest()


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
    for kind in BESIDE:
        files[kind] = table_beside(path, kind)
    rows_by_kind: dict[Rows, WeightedRows] = {
        kind: _read_rows(file, corpus) for kind, file in files.items() if file.is_file()
    }
    return DataTable(path, "prompt" in pq.read_schema(path).names, rows_by_kind)


def choose_rows(kind: Rows, corpus: Corpus, data: DataTable | None, seed: int, rehearse: Collection[str] = ()) -> Corpus:
    """Return the training rows of an arm in one stage; all rows are those of the corpus with what the stage rehearses.

    Rows of unequal weight are resampled within their task: each gets its share of four rows per row selected, rounded
    down or up by chance. Random rows take the same number of each task, and the same weights; where no prompt of a task
    was mined twice, none is drawn twice, so that random rows are of as many prompts.

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
    rng = np.random.default_rng([seed, DATA_ROWS_SEED])
    chosen = data.rows_by_kind.get(kind)
    if chosen is None:
        chosen = _draw_rows_like(data.mined, corpus.select(split="train"), rng)
    return _resample_rows(chosen, rng) if chosen.are_weighted else chosen.rows


def repeat_to_fill(rows: Corpus, batch: int) -> Corpus:
    """Return the rows, all of them repeated as often as it takes for one batch: fewer rows must not make smaller steps."""
    times = math.ceil(batch / len(rows))
    return rows if times == 1 else _take_rows(rows, np.repeat(np.arange(len(rows)), times))


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
        stages.append(replace(stage, weights={task: weight / total for task, weight in weights.items()}, bands=bands))
    kept_cells = tuple(cell for cell in plan.cells if cell.task in tasks_with_rows)
    return replace(plan, stages=tuple(stages), cells=kept_cells)


def data_notes(data: DataTable, corpus: Corpus, plan: Plan) -> list[str]:
    """Say what a reader of a trial over this table has to know."""
    corpus_counts = Counter(corpus.select(split="train").table["task"].to_pylist())
    mined_counts, rows = Counter(data.mined.tasks), corpus_counts.total()
    kind = "new rows" if data.new_rows else f"of {rows:,} training rows"
    by_task = ", ".join(f"{task} {mined_counts[task]:,} of {count:,}" for task, count in sorted(corpus_counts.items()))
    notes = [
        f"Trial of rows: {data.path.name}, {data.size:,} {kind} ({by_task}). Plan, steps and batch are the same in every "
        "trained arm, so tasks keep the plan's weights and only the rows within them change."
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
    if data.mined.are_weighted:
        notes.append("Rows are sampled in proportion to their weights; the random rows get the same weights.")
    return notes


def _read_rows(path: Path, corpus: Corpus) -> WeightedRows:
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError("a Parquet table of mined rows", str(error)[:120], "Mine again.", file=path) from None
    if "prompt" in table.column_names:
        rows = _read_new_rows(table, corpus, path)
        weights = [1.0] * len(rows)
    else:
        weight_by_id = _read_selection(table, corpus, path)
        rows = corpus.select(ids=list(weight_by_id))
        weights = [weight_by_id[name] for name in rows.table["id"].to_pylist()]
    return WeightedRows(rows, weights, hashlib.sha256(path.read_bytes()).hexdigest())


def _read_selection(table: pa.Table, corpus: Corpus, path: Path) -> dict[str, float]:
    """Return id -> weight. Raises InputError for missing columns, ids that are no training rows, and bad weights."""
    if "id" not in table.column_names:
        got = ", ".join(table.column_names[:8]) or "no column"
        raise InputError("a column id (and weight), or the columns of a corpus", got, "Mine again.", file=path)
    ids = [str(value) for value in table["id"].to_pylist()]
    weights = table["weight"].to_pylist() if "weight" in table.column_names else [1.0] * len(ids)
    train = set(corpus.select(split="train").table["id"].to_pylist())
    weight_by_id: dict[str, float] = {}
    for name, weight in zip(ids, weights, strict=True):
        if name in weight_by_id:
            raise InputError("each id once", f"{name!r} more than once", "Use a weight instead.", file=path)
        if name not in train:
            remedy = "Select only training rows of this run: arms are judged on the held-out rows."
            raise InputError("ids of training rows", repr(name), remedy, file=path)
        if not isinstance(weight, int | float) or not math.isfinite(weight) or weight < 0:
            raise InputError(f"a weight of 0 or more of {name!r}", repr(weight), "Correct it.", file=path)
        weight_by_id[name] = float(weight)
    positive_weights = {name: weight for name, weight in weight_by_id.items() if weight > 0}
    if not positive_weights:
        raise InputError("rows with a weight above 0", "none", "Select some rows.", file=path)
    return positive_weights


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


def _draw_rows_like(mined: WeightedRows, train: Corpus, rng: np.random.Generator) -> WeightedRows:
    """Draw as many random rows of each task as were mined, all of them where there are fewer, with the same weights."""
    unrepeated_tasks = _tasks_without_repeats(mined.rows)
    tasks, mined_tasks = np.array(train.table["task"].to_pylist(), dtype=object), np.array(mined.tasks, dtype=object)
    prompt_keys = _read_prompt_keys(train)
    weight_by_row: dict[int, float] = {}
    for task in sorted(set(mined.tasks)):
        task_rows = rng.permutation(np.flatnonzero(tasks == task)).tolist()
        if task in unrepeated_tasks:
            task_rows = list({prompt_keys[row]: row for row in task_rows}.values())
        task_weights = rng.permutation(np.array(mined.weights)[mined_tasks == task]).tolist()
        weight_by_row |= dict(zip(task_rows, task_weights, strict=False))
    numbers = sorted(weight_by_row)
    return WeightedRows(train.take(np.array(numbers)), [weight_by_row[number] for number in numbers], "")


def _tasks_without_repeats(rows: Corpus) -> set[str]:
    """Return the tasks that have no prompt twice."""
    tasks = rows.table["task"].to_pylist()
    counts = Counter(zip(tasks, _read_prompt_keys(rows), strict=True))
    return set(tasks) - {task for (task, _), count in counts.items() if count > 1}


def _read_prompt_keys(rows: Corpus) -> list[int]:
    return [prompt_key(row.prompt) for row in rows]


def _take_rows(rows: Corpus, numbers: np.ndarray) -> Corpus:
    """Return the rows at these ascending places; copies get ids of their own."""
    taken_rows, copies, ids = rows.take(numbers), Counter[str](), []
    for name in taken_rows.table["id"].to_pylist():
        copies[name] += 1
        ids.append(name if copies[name] == 1 else f"{name}~{copies[name]}")
    taken_rows.table = with_column(taken_rows.table, "id", pa.array(ids, pa.string()))
    return taken_rows


def _resample_rows(chosen: WeightedRows, rng: np.random.Generator) -> Corpus:
    """Repeat rows by weight within each task."""
    tasks, weights = np.array(chosen.tasks, dtype=object), np.array(chosen.weights)
    numbers = []
    for task in sorted(set(chosen.tasks)):
        task_rows = np.flatnonzero(tasks == task)
        numbers.append(task_rows[resample_by_weight(weights[task_rows], rng)])
    return _take_rows(chosen.rows, np.sort(np.concatenate(numbers)))
