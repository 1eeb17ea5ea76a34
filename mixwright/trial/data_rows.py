"""Rows of a trial over data: the table that `trial.data` names, and the training rows that each arm gets of it.

A table of selected rows has the columns id, weight and reason; one of new rows has the columns of a corpus. Beside
NAME.parquet of new rows, NAME.random_like.parquet may hold the miner's own null: as many rows made without what it knows.
Beside a table of selected rows, NAME.simple_rule.parquet may hold what the simplest rule with the same knowledge selects.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mixwright.corpus.identity import prompt_key
from mixwright.corpus.rows import SCHEMA, check_saved, decode, pc
from mixwright.errors import InputError, join_some
from mixwright.mine.choosing import resample_by_weight
from mixwright.records import Plan

if TYPE_CHECKING:
    from mixwright.contracts import Rows
    from mixwright.corpus import Corpus
    from mixwright.records import Cell
    from mixwright.run.folder import RunFolder

DATA_ROWS_SEED = 4_000_037
"""Added to the run's seed and the trial seed: random rows and resampled ones are drawn by it."""
NOTED_SHIFT_SHARE = 0.02
"""Change of a task's share that is worth a note."""
NULL_TABLE_SUFFIX, RULE_TABLE_SUFFIX = ".random_like.parquet", ".simple_rule.parquet"


@dataclass(frozen=True)
class DataTable:
    """One table of mined rows, checked against the corpus."""

    path: Path
    """Of the Parquet file."""
    digest: str
    """SHA-256 of the file, and of the miner's own null where there is one."""
    random_like_digest: str
    """Of all that random rows follow: counts per task and weights. Tables of one size share these branches."""
    weights: Mapping[str, float]
    """Id -> weight above 0 of selected rows; empty for new rows."""
    new_rows: Corpus | None = None
    """New rows; None for a selection."""
    null_rows: Corpus | None = None
    """The miner's own null of new rows; None draws random rows of the corpus."""
    simple_rule_weights: Mapping[str, float] | None = None
    """Id -> weight of the rows of the miner's simple rule; None where it left none."""
    simple_rule_digest: str = ""
    """SHA-256 of the file of that rule."""

    @property
    def name(self) -> str:
        """Of the file, without its ending."""
        return self.path.stem

    def digest_of_rows(self, kind: Rows) -> str:
        """Digest of all that decides which rows an arm of this kind gets."""
        return {"random_like": self.random_like_digest, "simple_rule": self.simple_rule_digest}.get(kind, self.digest)

    @property
    def size(self) -> int:
        """Rows."""
        return len(self.weights) if self.new_rows is None else len(self.new_rows)


def data_path(table_name: str, run: RunFolder, base: Path = Path()) -> Path:
    """The file that `trial.data` means: a miner's name, or a path from the run folder, from `base`, or from here.

    Raises:
        InputError: there is no such file.
    """
    paths = [run.path / "mine" / f"{table_name}.parquet", run.path / table_name, base / table_name, Path(table_name)]
    for path in paths:
        if path.is_file():
            return path
    remedy = f"Make it with `mixwright mine RUN.YAML --miner {Path(table_name).stem}`, or correct trial.data."
    raise InputError("a table of mined rows", "nothing", remedy, file=paths[0])


def rule_path(path: Path) -> Path | None:
    """The table of the simple rule beside a table of mined rows; None where the miner left none."""
    rule_file = path.with_name(path.stem + RULE_TABLE_SUFFIX)
    return rule_file if rule_file.is_file() else None


def read_data(path: Path, corpus: Corpus) -> DataTable:
    """The table. Raises InputError for what is no such table, and for rows that are not to be trained on in this corpus."""
    table, digest = _read_parquet(path), hashlib.sha256(path.read_bytes())
    if "prompt" not in table.column_names:
        weights = _read_selection(table, corpus, path)
        selected_rows = corpus.select(ids=list(weights))
        tasks_and_weights = zip(
            selected_rows.table["task"].to_pylist(), map(weights.get, selected_rows.table["id"].to_pylist()), strict=True
        )
        unrepeated_tasks = sorted(_tasks_without_repeats(selected_rows) & _tasks_with_repeats(corpus.select(split="train")))
        selection = DataTable(path, digest.hexdigest(), _digest_counts(tasks_and_weights, unrepeated_tasks), weights)
        rule_file = rule_path(path)
        if rule_file is None:
            return selection
        digest_of_rule = hashlib.sha256(rule_file.read_bytes()).hexdigest()
        return replace(
            selection,
            simple_rule_weights=_read_selection(_read_parquet(rule_file), corpus, rule_file),
            simple_rule_digest=digest_of_rule,
        )
    new_rows = _read_new_rows(table, corpus, path)
    null_file = path.with_name(path.stem + NULL_TABLE_SUFFIX)
    if not null_file.is_file():
        return DataTable(
            path,
            digest.hexdigest(),
            _digest_counts((task, 1.0) for task in new_rows.table["task"].to_pylist()),
            {},
            new_rows,
        )
    null_rows = _read_new_rows(_read_parquet(null_file), corpus, null_file)
    digest.update(null_file.read_bytes())
    return DataTable(path, digest.hexdigest(), digest.hexdigest(), {}, new_rows, null_rows)


def _digest_counts(rows: Iterable[tuple[str, float | None]], unrepeated_tasks: Sequence[str] = ()) -> str:
    return hashlib.sha256((repr(sorted(rows)) + repr(unrepeated_tasks) * bool(unrepeated_tasks)).encode()).hexdigest()


def choose_rows(kind: Rows, corpus: Corpus, data: DataTable | None, seed: int, rehearse: Collection[str] = ()) -> Corpus:
    """The training rows of an arm in one stage; all rows are those of the corpus with what the stage rehearses.

    Rows of unequal weight are resampled within their task: each gets its share of four rows per row selected, rounded
    down or up by chance. Random rows take the same number of each task, and the same weights; where no prompt of a task
    was selected twice, none is drawn twice, so that random rows are of as many prompts.

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
    train = corpus.select(split="train")
    rng = np.random.default_rng([seed, DATA_ROWS_SEED])
    if data.new_rows is not None:
        counts = Counter(data.new_rows.table["task"].to_pylist())
        return (
            data.new_rows
            if kind == "mined"
            else _draw_random_rows(train, counts, rng)
            if data.null_rows is None
            else data.null_rows
        )
    selected_weights = (
        data.simple_rule_weights if kind == "simple_rule" and data.simple_rule_weights is not None else data.weights
    )
    chosen = train.select(ids=list(selected_weights))
    weights = np.array([selected_weights[name] for name in chosen.table["id"].to_pylist()])
    tasks = chosen.table["task"].to_pylist()
    if kind == "random_like":
        chosen = _draw_random_rows(train, Counter(tasks), rng, _tasks_without_repeats(chosen))
        weights_by_task: dict[str, list[float]] = {task: [] for task in tasks}
        for task, weight in zip(tasks, weights.tolist(), strict=True):
            weights_by_task[task].append(weight)
        queues = {task: rng.permutation(sorted(values)).tolist() for task, values in weights_by_task.items()}
        tasks = chosen.table["task"].to_pylist()
        weights = np.array([queues[task].pop() for task in tasks])
    return chosen if np.ptp(weights) < 1e-9 else _resample_rows(chosen, tasks, weights, rng)


def repeat_to_fill(rows: Corpus, batch: int) -> Corpus:
    """The rows, all of them repeated as often as it takes for one batch: a step must not be smaller for fewer rows."""
    times = math.ceil(batch / len(rows))
    return rows if times == 1 else _take_rows(rows, list(range(len(rows))) * times)


def restrict_plan(plan: Plan, cells: Sequence[Cell]) -> Plan:
    """The plan over the tasks that have rows, weights scaled up to 1.

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
    """What a reader of a trial over this table has to know."""
    train = corpus.select(split="train")
    corpus_counts = Counter(train.table["task"].to_pylist())
    mined_counts = Counter(_list_mined_tasks(data, train))
    kind = "new rows" if data.new_rows is not None else f"of {len(train):,} training rows"
    by_task = ", ".join(f"{task} {mined_counts[task]:,} of {corpus_counts[task]:,}" for task in sorted(corpus_counts))
    notes = [
        f"Trial of rows: {data.path.name}, {data.size:,} {kind} ({by_task}). Plan, steps and batch are the same in every "
        "trained arm, so tasks keep the plan's weights and only the rows within them change."
    ]
    total = max(sum(mined_counts.values()), 1)
    share_changes = {task: mined_counts[task] / total - corpus_counts[task] / len(train) for task in corpus_counts}
    shifted_tasks = [task for task in sorted(share_changes) if abs(share_changes[task]) > NOTED_SHIFT_SHARE]
    if shifted_tasks:
        changes = ", ".join(f"{task} {100 * share_changes[task]:+.1f}" for task in shifted_tasks)
        notes.append(
            f"Tasks have other shares of these rows than of the corpus, in points: {changes}. The plan's "
            "weights stay the same."
        )
    lost_tasks = [task for task in plan.stages[0].weights if plan.stages[0].weights[task] and not mined_counts[task]]
    if lost_tasks:
        weight_goes = "its weight goes" if len(lost_tasks) == 1 else "their weights go"
        notes.append(
            f"No rows of {join_some(lost_tasks)} are left, so in mined and random_like {weight_goes} to the other tasks, "
            "but not in all."
        )
    if data.new_rows is not None and data.null_rows is None:
        short_tasks = [task for task in mined_counts if mined_counts[task] > corpus_counts[task]]
        if short_tasks:
            notes.append(
                f"random_like has fewer rows of {join_some(short_tasks)} than the miner made, because the "
                "corpus has no more."
            )
    if data.weights and np.ptp(list(data.weights.values())) >= 1e-9:
        notes.append("Rows are sampled in proportion to their weights; the random rows get the same weights.")
    return notes


def _list_mined_tasks(data: DataTable, train: Corpus) -> list[str]:
    if data.new_rows is not None:
        return data.new_rows.table["task"].to_pylist()
    return train.select(ids=list(data.weights)).table["task"].to_pylist()


def _read_parquet(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError("a Parquet table of mined rows", str(error)[:120], "Mine again.", file=path) from None


def _read_selection(table: pa.Table, corpus: Corpus, path: Path) -> dict[str, float]:
    """Id -> weight. Raises InputError for missing columns, ids that are no training rows, and weights that are none."""
    if "id" not in table.column_names:
        got = ", ".join(table.column_names[:8]) or "no column"
        raise InputError("a column id (and weight), or the columns of a corpus", got, "Mine again.", file=path)
    ids = [str(value) for value in table["id"].to_pylist()]
    weights = table["weight"].to_pylist() if "weight" in table.column_names else [1.0] * len(ids)
    if repeated_ids := [name for name, count in Counter(ids).items() if count > 1]:
        raise InputError("each id once", f"{repeated_ids[0]!r} more than once", "Use a weight instead.", file=path)
    train = set(corpus.select(split="train").table["id"].to_pylist())
    for name, weight in zip(ids, weights, strict=True):
        if name not in train:
            remedy = "Select only training rows of this run: arms are judged on the held-out rows."
            raise InputError("ids of training rows", repr(name), remedy, file=path)
        if not isinstance(weight, int | float) or not math.isfinite(weight) or weight < 0:
            raise InputError(f"a weight of 0 or more of {name!r}", repr(weight), "Correct it.", file=path)
    positive_weights = {name: float(weight) for name, weight in zip(ids, weights, strict=True) if weight > 0}
    if not positive_weights:
        raise InputError("rows with a weight above 0", "none", "Select some rows.", file=path)
    return positive_weights


def _read_new_rows(table: pa.Table, corpus: Corpus, path: Path) -> Corpus:
    """New rows as a corpus. Raises InputError for columns that are none, unknown tasks, and prompts that are held out."""
    from mixwright.corpus import Corpus as LoadedCorpus

    try:
        rows = table.select(SCHEMA.names).cast(SCHEMA).combine_chunks()
        check_saved(rows)
    except (pa.ArrowException, KeyError) as error:
        remedy = f"Write the columns of a corpus: {', '.join(SCHEMA.names)}."
        raise InputError("the columns of a corpus", str(error)[:120], remedy, file=path) from None
    if not len(rows):
        raise InputError("new rows", "none", "Mine some rows.", file=path)
    split_column = SCHEMA.get_field_index("split")
    rows = rows.set_column(split_column, SCHEMA.field(split_column), pa.array(["train"] * len(rows)))
    new_rows = LoadedCorpus(rows, {task.name: task.grader for task in corpus.tasks.values()}, folder=path.parent)
    held_out = {prompt_key(row.prompt) for row in corpus.select(split="eval") if row.prompt}
    for row in map(decode, rows.to_pylist()):
        if row.task not in corpus.tasks:
            got, remedy = f"{row.task!r} of {row.id!r}", f"It has: {', '.join(corpus.tasks)}."
            raise InputError("a task of the corpus", got, remedy, file=path)
        if row.prompt and prompt_key(row.prompt) in held_out:
            remedy = "Leave it out, because arms are judged on that prompt."
            raise InputError("new rows whose prompts are not held out", repr(row.id), remedy, file=path)
    if len(set(rows["id"].to_pylist())) < len(rows):
        raise InputError("each id once", "an id more than once", "Give new rows different ids.", file=path)
    return new_rows


def _draw_random_rows(
    train: Corpus, counts: Mapping[str, int], rng: np.random.Generator, unrepeated_tasks: Collection[str] = frozenset()
) -> Corpus:
    """So many random rows of each task, all of them where there are fewer; no prompt twice in `unrepeated_tasks`."""
    tasks = np.array(train.table["task"].to_pylist(), dtype=object)
    tasks_with_repeats = _tasks_with_repeats(train) & set(unrepeated_tasks) if unrepeated_tasks else set()
    row_indices: list[Any] = []
    for task in sorted(counts):
        task_rows = np.flatnonzero(tasks == task)
        if task in tasks_with_repeats:
            prompts = np.array([prompt_key(decode(row).prompt) for row in train.table.take(pa.array(task_rows)).to_pylist()])
            order = rng.permutation(len(task_rows))
            task_rows = task_rows[order[np.sort(np.unique(prompts[order], return_index=True)[1])]]
        row_indices.extend(rng.choice(task_rows, min(counts[task], len(task_rows)), replace=False).tolist())
    return _take_rows(train, sorted(row_indices))


def _tasks_with_repeats(rows: Corpus) -> set[str]:
    """Tasks that have a prompt twice."""
    return set(rows.table["task"].to_pylist()) - _tasks_without_repeats(rows)


def _tasks_without_repeats(rows: Corpus) -> set[str]:
    """Tasks that have no prompt twice."""
    keys_by_task: dict[str, set[int]] = {}
    repeated_tasks = set()
    for row in map(decode, rows.table.select(SCHEMA.names).to_pylist()):
        key, task_keys = prompt_key(row.prompt), keys_by_task.setdefault(row.task, set())
        if key in task_keys:
            repeated_tasks.add(row.task)
        task_keys.add(key)
    return set(keys_by_task) - repeated_tasks


def _take_rows(rows: Corpus, row_indices: Sequence[int]) -> Corpus:
    """The rows at these places; one that stands there more than once gets names of its own."""
    table, copies, names = rows.table.take(pa.array(row_indices, pa.int64())), Counter[str](), []
    for name in table["id"].to_pylist():
        copies[name] += 1
        names.append(name if copies[name] == 1 else f"{name}~{copies[name]}")
    taken_rows = rows.select(ids=pc.unique(table["id"]).to_pylist())
    taken_rows.table = table.set_column(0, SCHEMA.field(0), pa.array(names, pa.string()))
    return taken_rows


def _resample_rows(rows: Corpus, tasks: Sequence[str], weights: np.ndarray, rng: np.random.Generator) -> Corpus:
    """Rows repeated by weight within each task."""
    task_of_row, row_indices = np.array(tasks, dtype=object), []
    for task in sorted(set(tasks)):
        task_rows = np.flatnonzero(task_of_row == task)
        row_indices.extend(task_rows[resample_by_weight(weights[task_rows], rng)].tolist())
    return _take_rows(rows, sorted(row_indices))
