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
OWN_NULL_SUFFIX, OWN_RULE_SUFFIX = ".random_like.parquet", ".simple_rule.parquet"


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

    def content_of(self, kind: Rows) -> str:
        """Digest of all that decides which rows an arm of this kind gets."""
        return {"random_like": self.random_like_digest, "simple_rule": self.simple_rule_digest}.get(kind, self.digest)

    @property
    def size(self) -> int:
        """Rows."""
        return len(self.weights) if self.new_rows is None else len(self.new_rows)


def data_path(asked: str, run: RunFolder, base: Path = Path()) -> Path:
    """The file that `trial.data` means: a miner's name, or a path from the run folder, from `base`, or from here.

    Raises:
        InputError: there is no such file.
    """
    places = [run.path / "mine" / f"{asked}.parquet", run.path / asked, base / asked, Path(asked)]
    for place in places:
        if place.is_file():
            return place
    remedy = f"Make it with `mixwright mine RUN.YAML --miner {Path(asked).stem}`, or correct trial.data."
    raise InputError("a table of mined rows", "nothing", remedy, file=places[0])


def rule_path(path: Path) -> Path | None:
    """The table of the simple rule beside a table of mined rows; None where the miner left none."""
    beside = path.with_name(path.stem + OWN_RULE_SUFFIX)
    return beside if beside.is_file() else None


def read_data(path: Path, corpus: Corpus) -> DataTable:
    """The table. Raises InputError for what is no such table, and for rows that are not to be trained on in this corpus."""
    table, digest = _parquet(path), hashlib.sha256(path.read_bytes())
    if "prompt" not in table.column_names:
        weights = _selected(table, corpus, path)
        chosen = corpus.select(ids=list(weights))
        rows = zip(chosen.table["task"].to_pylist(), map(weights.get, chosen.table["id"].to_pylist()), strict=True)
        once = sorted(_tasks_without_repeats(chosen) & _tasks_with_repeats(corpus.select(split="train")))
        found = DataTable(path, digest.hexdigest(), _like(rows, once), weights)
        rule = rule_path(path)
        if rule is None:
            return found
        digest_of_rule = hashlib.sha256(rule.read_bytes()).hexdigest()
        return replace(found, simple_rule_weights=_selected(_parquet(rule), corpus, rule), simple_rule_digest=digest_of_rule)
    made = _made(table, corpus, path)
    beside = path.with_name(path.stem + OWN_NULL_SUFFIX)
    if not beside.is_file():
        return DataTable(path, digest.hexdigest(), _like((task, 1.0) for task in made.table["task"].to_pylist()), {}, made)
    null = _made(_parquet(beside), corpus, beside)
    digest.update(beside.read_bytes())
    return DataTable(path, digest.hexdigest(), digest.hexdigest(), {}, made, null)


def _like(rows: Iterable[tuple[str, float | None]], once: Sequence[str] = ()) -> str:
    return hashlib.sha256((repr(sorted(rows)) + repr(once) * bool(once)).encode()).hexdigest()


def rows_for(kind: Rows, corpus: Corpus, data: DataTable, seed: int) -> Corpus:
    """The training rows of an arm.

    Rows of unequal weight are resampled within their task: each gets its share of four rows per row selected, rounded
    down or up by chance. Random rows take the same number of each task, and the same weights; where no prompt of a task
    was selected twice, none is drawn twice, so that random rows are of as many prompts.

    Args:
        kind: which rows.
        corpus: of the run; its training rows are meant.
        data: the table.
        seed: of the branch.
    """
    train = corpus.select(split="train")
    if kind == "all":
        return train
    rng = np.random.default_rng([seed, DATA_ROWS_SEED])
    if data.new_rows is not None:
        counts = Counter(data.new_rows.table["task"].to_pylist())
        return (
            data.new_rows if kind == "mined" else _random(train, counts, rng) if data.null_rows is None else data.null_rows
        )
    selected = data.simple_rule_weights if kind == "simple_rule" and data.simple_rule_weights is not None else data.weights
    chosen = train.select(ids=list(selected))
    weights = np.array([selected[name] for name in chosen.table["id"].to_pylist()])
    tasks = chosen.table["task"].to_pylist()
    if kind == "random_like":
        chosen = _random(train, Counter(tasks), rng, _tasks_without_repeats(chosen))
        own: dict[str, list[float]] = {task: [] for task in tasks}
        for task, weight in zip(tasks, weights.tolist(), strict=True):
            own[task].append(weight)
        queues = {task: rng.permutation(sorted(values)).tolist() for task, values in own.items()}
        tasks = chosen.table["task"].to_pylist()
        weights = np.array([queues[task].pop() for task in tasks])
    return chosen if np.ptp(weights) < 1e-9 else _resampled(chosen, tasks, weights, rng)


def repeat_to_fill(rows: Corpus, batch: int) -> Corpus:
    """The rows, all of them repeated as often as it takes for one batch: a step must not be smaller for fewer rows."""
    times = math.ceil(batch / len(rows))
    return rows if times == 1 else _taken(rows, list(range(len(rows))) * times)


def fit_plan(plan: Plan, cells: Sequence[Cell]) -> Plan:
    """The plan over the tasks that have rows, weights scaled up to 1, without what was forecast for all rows.

    Raises:
        InputError: no task with a weight has rows.
    """
    left = {cell.task for cell in cells if cell.count}
    stages = []
    for stage in plan.stages:
        kept = {task: weight for task, weight in stage.weights.items() if task in left}
        total = sum(kept.values())
        if not total:
            remedy = "Mine rows of tasks that the plan trains on."
            raise InputError(
                f"rows of a task with a weight in stage {stage.name!r}", join_some(sorted(left)) or "none", remedy
            )
        bands = {task: band for task, band in stage.bands.items() if task in left}
        stages.append(replace(stage, weights={task: weight / total for task, weight in kept.items()}, bands=bands))
    kept_cells = tuple(cell for cell in plan.cells if cell.task in left)
    return replace(plan, stages=tuple(stages), cells=kept_cells, forecast=())


def data_notes(data: DataTable, corpus: Corpus, plan: Plan) -> list[str]:
    """What a reader of a trial over this table has to know."""
    train = corpus.select(split="train")
    there = Counter(train.table["task"].to_pylist())
    mined = Counter(_tasks(data, train))
    kind = "new rows" if data.new_rows is not None else f"of {len(train):,} training rows"
    by_task = ", ".join(f"{task} {mined[task]:,} of {there[task]:,}" for task in sorted(there))
    notes = [
        f"Trial over data: {data.path.name}, {data.size:,} {kind} ({by_task}). Plan, steps and batch are the same in every "
        "arm that trains, so tasks keep the plan's weights, and rows change within them."
    ]
    total = max(sum(mined.values()), 1)
    moved = {task: mined[task] / total - there[task] / len(train) for task in there}
    far = [task for task in sorted(moved) if abs(moved[task]) > NOTED_SHIFT_SHARE]
    if far:
        told = ", ".join(f"{task} {100 * moved[task]:+.1f}" for task in far)
        notes.append(f"Shares of tasks among these rows differ from those of the corpus, in points: {told}. Weights do not.")
    gone = [task for task in plan.stages[0].weights if plan.stages[0].weights[task] and not mined[task]]
    if gone:
        notes.append(
            f"No row of {join_some(gone)} is left: its weight goes to the other tasks in mined and random_like, not in all."
        )
    if data.new_rows is not None and data.null_rows is None:
        short = [task for task in mined if mined[task] > there[task]]
        if short:
            notes.append(f"random_like has fewer rows of {join_some(short)} than were made: all that the corpus has.")
    if data.weights and np.ptp(list(data.weights.values())) >= 1e-9:
        notes.append(
            "Rows have unequal weights: each is drawn in proportion to its own, and random rows have the same weights."
        )
    return notes


def _tasks(data: DataTable, train: Corpus) -> list[str]:
    if data.new_rows is not None:
        return data.new_rows.table["task"].to_pylist()
    return train.select(ids=list(data.weights)).table["task"].to_pylist()


def _parquet(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError("a Parquet table of mined rows", str(error)[:120], "Mine again.", file=path) from None


def _selected(table: pa.Table, corpus: Corpus, path: Path) -> dict[str, float]:
    """Id -> weight. Raises InputError for missing columns, ids that are no training rows, and weights that are none."""
    if "id" not in table.column_names:
        got = ", ".join(table.column_names[:8]) or "no column"
        raise InputError("a column id (and weight), or the columns of a corpus", got, "Mine again.", file=path)
    ids = [str(value) for value in table["id"].to_pylist()]
    given = table["weight"].to_pylist() if "weight" in table.column_names else [1.0] * len(ids)
    if twice := [name for name, count in Counter(ids).items() if count > 1]:
        raise InputError("each id once", f"{twice[0]!r} more than once", "Give it a weight instead.", file=path)
    train = set(corpus.select(split="train").table["id"].to_pylist())
    for name, weight in zip(ids, given, strict=True):
        if name not in train:
            remedy = "Select training rows of this run's corpus: held-out rows are those that arms are judged on."
            raise InputError("ids of training rows", repr(name), remedy, file=path)
        if not isinstance(weight, int | float) or not math.isfinite(weight) or weight < 0:
            raise InputError(f"a weight of 0 or more of {name!r}", repr(weight), "Correct it.", file=path)
    kept = {name: float(weight) for name, weight in zip(ids, given, strict=True) if weight > 0}
    if not kept:
        raise InputError("rows with a weight above 0", "none", "Select some.", file=path)
    return kept


def _made(table: pa.Table, corpus: Corpus, path: Path) -> Corpus:
    """New rows as a corpus. Raises InputError for columns that are none, unknown tasks, and prompts that are held out."""
    from mixwright.corpus import Corpus as Made

    try:
        named = table.select(SCHEMA.names).cast(SCHEMA).combine_chunks()
        check_saved(named)
    except (pa.ArrowException, KeyError) as error:
        remedy = f"Write the columns of a corpus: {', '.join(SCHEMA.names)}."
        raise InputError("the columns of a corpus", str(error)[:120], remedy, file=path) from None
    if not len(named):
        raise InputError("new rows", "none", "Mine some.", file=path)
    place = SCHEMA.get_field_index("split")
    named = named.set_column(place, SCHEMA.field(place), pa.array(["train"] * len(named)))
    made = Made(named, {task.name: task.grader for task in corpus.tasks.values()}, folder=path.parent)
    held_out = {prompt_key(row.prompt) for row in corpus.select(split="eval") if row.prompt}
    for row in map(decode, named.to_pylist()):
        if row.task not in corpus.tasks:
            got, remedy = f"{row.task!r} of {row.id!r}", f"It has: {', '.join(corpus.tasks)}."
            raise InputError("a task of the corpus", got, remedy, file=path)
        if row.prompt and prompt_key(row.prompt) in held_out:
            remedy = "Leave it out: arms are judged on that prompt."
            raise InputError("new rows whose prompts are not held out", repr(row.id), remedy, file=path)
    if len(set(named["id"].to_pylist())) < len(named):
        raise InputError("each id once", "one more than once", "Name new rows differently.", file=path)
    return made


def _random(
    train: Corpus, counts: Mapping[str, int], rng: np.random.Generator, once: Collection[str] = frozenset()
) -> Corpus:
    """So many random rows of each task, all of them where there are fewer; no prompt twice in the tasks of `once`."""
    codes = np.array(train.table["task"].to_pylist(), dtype=object)
    repeated = _tasks_with_repeats(train) & set(once) if once else set()
    places: list[Any] = []
    for task in sorted(counts):
        own = np.flatnonzero(codes == task)
        if task in repeated:
            prompts = np.array([prompt_key(decode(row).prompt) for row in train.table.take(pa.array(own)).to_pylist()])
            drawn = rng.permutation(len(own))
            own = own[drawn[np.sort(np.unique(prompts[drawn], return_index=True)[1])]]
        places.extend(rng.choice(own, min(counts[task], len(own)), replace=False).tolist())
    return _taken(train, sorted(places))


def _tasks_with_repeats(rows: Corpus) -> set[str]:
    """Tasks that have a prompt twice."""
    return set(rows.table["task"].to_pylist()) - _tasks_without_repeats(rows)


def _tasks_without_repeats(rows: Corpus) -> set[str]:
    """Tasks that have no prompt twice."""
    seen: dict[str, set[int]] = {}
    twice = set()
    for row in map(decode, rows.table.select(SCHEMA.names).to_pylist()):
        key, own = prompt_key(row.prompt), seen.setdefault(row.task, set())
        if key in own:
            twice.add(row.task)
        own.add(key)
    return set(seen) - twice


def _taken(rows: Corpus, places: Sequence[int]) -> Corpus:
    """The rows at these places; one that stands there more than once gets names of its own."""
    table, seen, names = rows.table.take(pa.array(places, pa.int64())), Counter[str](), []
    for name in table["id"].to_pylist():
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}~{seen[name]}")
    taken = rows.select(ids=pc.unique(table["id"]).to_pylist())
    taken.table = table.set_column(0, SCHEMA.field(0), pa.array(names, pa.string()))
    return taken


def _resampled(rows: Corpus, tasks: Sequence[str], weights: np.ndarray, rng: np.random.Generator) -> Corpus:
    """Rows repeated by weight within each task."""
    codes, places = np.array(tasks, dtype=object), []
    for task in sorted(set(tasks)):
        own = np.flatnonzero(codes == task)
        places.extend(own[resample_by_weight(weights[own], rng)].tolist())
    return _taken(rows, sorted(places))
