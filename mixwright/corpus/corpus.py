"""Class `Corpus`: rows of examples in Arrow, the tasks they belong to, and the graders that judge them."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mixwright.config import CorpusConfig, sources_of
from mixwright.corpus.cells import find_cells, rows_by
from mixwright.corpus.columns import RowReader
from mixwright.corpus.identity import build_table
from mixwright.corpus.levels import bin_levels
from mixwright.corpus.masks import MASK_COLUMN, mask_of
from mixwright.corpus.reading import folder_of, read_rows
from mixwright.corpus.rows import BATCH_ROWS, SCHEMA, decode, pc, pick_rows, read_groups, store_batches, texts, with_column
from mixwright.corpus.timed_grades import SECONDS_PER_GRADE, TimedGrades
from mixwright.corpus.tool_messages import has_structures, tools_of
from mixwright.errors import InputError, missing_extra, one_line, unknown_name
from mixwright.graders import Grader, code_digest, load_grader
from mixwright.graders.choice import option_texts
from mixwright.records import Cell, Example, Task, messages, plain
from mixwright.run.folder import read_json, replacing, write_json
from mixwright.thoughts import drop_thoughts
from mixwright.tool_calls import find_calls

if TYPE_CHECKING:
    import datasets

__all__ = ["Corpus", "plain", "read_corpus", "read_source", "texts"]

REHEARSE_SPLIT = "rehearse"
"""Split of the rows of `corpus.rehearse`, which only a plan that names their task draws."""
SHUFFLE_SEED = 3_000_017
"""Added to the run's seed where levels are shuffled."""
NO_CALL = "no call where none is right"
"""Part of an item beside tools whose gold answer calls none: its share is 1 less that of over-calling."""
MAX_ANSWERS_CHECKED = 200
"""Answers per task that reading tries on the grader."""


@dataclass(frozen=True, slots=True)
class _SavedTasks:
    """tasks.json of a saved corpus."""

    graders: dict[str, str]
    notes: tuple[str, ...] = ()


class Corpus:
    """Rows of examples in Arrow with the tasks they belong to.

    Args:
        table: columns of `mixwright.corpus.rows.SCHEMA`; may be memory-mapped.
        graders: task -> grader, exact where it says nothing.
        notes: what a reader of the corpus should know, such as a task whose items ran out.
        folder: where the rows come from; graders are never imported from there.
    """

    def __init__(
        self,
        table: pa.Table,
        graders: Mapping[str, str] | None = None,
        *,
        notes: Sequence[str] = (),
        folder: Path | None = None,
    ) -> None:
        self.table = table
        self.tasks = _tasks(table, graders or {})
        self.notes = tuple(notes)
        self._folder = folder
        self._graders: dict[str, Grader] = {}
        self._cells: tuple[Cell, ...] | None = None

    def __len__(self) -> int:
        return self.table.num_rows

    def __getitem__(self, index: int) -> Example:
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return decode(self.table.slice(index % len(self), 1).to_pylist()[0])

    def __iter__(self) -> Iterator[Example]:
        for batch in self.batches():
            yield from map(decode, batch.to_pylist())

    def __repr__(self) -> str:
        return f"Corpus({len(self)} examples, tasks {', '.join(self.tasks)})"

    def batches(self, size: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows in order, at most `size` at a time: bounded memory. `texts(batch, "prompt")` reads text columns."""
        yield from self.table.to_batches(max_chunksize=size)

    def select(
        self, *, split: str | None = None, tasks: Collection[str] | None = None, ids: Collection[str] | None = None
    ) -> Corpus:
        """The rows that meet every condition given, in order, with the shares of their tasks worked out anew."""
        conditions_by_column = {"task": tasks, "id": ids, "split": None if split is None else [split]}
        conditions = [
            (name, pa.array(list(values), pa.string()))
            for name, values in conditions_by_column.items()
            if values is not None
        ]

        def chosen() -> Iterator[pa.RecordBatch]:
            for batch in self.batches():
                masks = [pc.is_in(batch.column(name), value_set=values) for name, values in conditions]
                yield batch.filter(functools.reduce(pc.and_, masks))

        return self._with_table(store_batches(chosen()) if conditions else self.table)

    def take(self, numbers: np.ndarray) -> Corpus:
        """The rows of these ascending positions (int64), with the shares of their tasks worked out anew."""
        return self._with_table(pick_rows(self.table, numbers))

    def measured(self) -> Corpus:
        """The rows that are measured: those held out, or all of them when there are none."""
        held_out = self.select(split="eval")
        return held_out if len(held_out) else self

    @property
    def graders(self) -> dict[str, str]:
        """Task -> name of its grader."""
        return {name: task.grader for name, task in self.tasks.items()}

    def with_graders(self, graders: Mapping[str, str]) -> Corpus:
        """The same rows, these tasks judged by other graders."""
        return Corpus(self.table, self.graders | dict(graders), notes=self.notes, folder=self._folder)

    def _with_table(self, table: pa.Table) -> Corpus:
        return Corpus(table, self.graders, notes=self.notes, folder=self._folder)

    def grader(self, task: str) -> Grader:
        """The grader of a task. Raises InputError when it cannot be loaded or the corpus has no such task."""
        if task not in self.tasks:
            raise InputError("a task of the corpus", repr(task), f"It has: {', '.join(self.tasks)}.")
        name = self.tasks[task].grader
        if name not in self._graders:
            self._graders[name] = load_grader(name, never_import_from=self._folder)
        return self._graders[name]

    def grade(self, example: Example, completion: str, *, cut: bool = False) -> float:
        """Score of a completion, 0..1, by the grader of the example's task; `cut` where it ran into the limit of tokens.

        Only functions of the user's see what a model thinks before its answer. Raises InputError when there is no answer.
        """
        if example.answer is None:
            got = f"{example.id!r} without one"
            raise InputError("an example with an answer", got, "Name the answer's column: corpus.columns.")
        grader = self.grader(example.task)
        if not grader.reads_thoughts:
            completion = drop_thoughts(completion)
        try:
            return grader.grade_cut(example, completion) if cut else grader.grade(example, completion)
        except Exception as error:
            error.add_note(f"Grader {self.tasks[example.task].grader}, item {example.id!r} ({one_line(example.source)}).")
            raise

    def parts(self, example: Example, completion: str) -> Mapping[str, bool]:
        """Return what the grader of the example's task finds in an answer, thoughts as little as its score does.

        Of a row with tools whose gold answer calls none, whichever the grader: whether the answer calls none either.
        """
        grader, answer = self.grader(example.task), drop_thoughts(completion)
        found = grader.parts(example, completion if grader.reads_thoughts else answer)
        if example.tools and not find_calls(example.answer or ""):
            found = {**found, NO_CALL: not find_calls(answer, example.tools)}
        return found

    def cells(self) -> tuple[Cell, ...]:
        """Every task x level of the train split (of all rows when there is none), sorted by key, with its chance level."""
        if self._cells is None:
            self._cells = find_cells(self)
        return self._cells

    def cells_with_rehearsal(self) -> tuple[Cell, ...]:
        """The cells with the rows to rehearse of each counted, those among them that have no training rows, too."""
        rows = self.select(split=REHEARSE_SPLIT).table
        counts = Counter(zip(rows["task"].to_pylist(), rows["level"].to_pylist(), strict=True))
        cells = [replace(cell, rehearsal_rows=counts.pop((cell.task, cell.level), 0)) for cell in self.cells()]
        cells += [Cell(task, level, 0, rehearsal_rows=count) for (task, level), count in counts.items()]
        return tuple(sorted(cells, key=lambda cell: cell.key))

    def training(self, rehearse: Collection[str] = ()) -> Corpus:
        """Training rows, and the rows to rehearse of these tasks."""
        train = self.select(split="train")
        if not rehearse:
            return train
        rehearsal_rows = self.select(split=REHEARSE_SPLIT, tasks=rehearse)
        table = store_batches([*train.table.to_batches(), *rehearsal_rows.table.to_batches()])
        return self._with_table(with_column(table, "split", pa.array(["train"] * len(table), pa.string())))

    def with_shuffled_levels(self, seed: int) -> Corpus:
        """The corpus with levels permuted within each task, among rows of each split separately; nothing else changes.

        Cells then say nothing about difficulty. `seed` is that of the run: a trial has one permutation for all its seeds.
        """
        rng, source = np.random.default_rng(seed + SHUFFLE_SEED), np.arange(len(self))
        for _, rows in sorted(rows_by(self, np.arange(len(self)), "split", "task").items()):
            source[rows] = rng.permutation(rows)
        return self._with_table(with_column(self.table, "level", self.table["level"].take(source)))

    def without_rehearsal(self) -> Corpus:
        """The corpus without its rows to rehearse; itself where it has none."""
        is_kept = pc.not_equal(self.table["split"], REHEARSE_SPLIT)
        return self if not len(self) or pc.all(is_kept).as_py() else self._with_table(self.table.filter(is_kept))

    def with_rehearsal(self, rows: Iterable[Example]) -> Corpus:
        """The corpus with these rows as its rows to rehearse, in place of those that it was read with."""
        added = build_table(replace(row, split=REHEARSE_SPLIT) for row in rows)
        return self._with_table(store_batches([*self.without_rehearsal().table.to_batches(), *added.to_batches()]))

    def digest(self) -> str:
        """SHA-256 of rows, graders and their code, in hex; the same wherever rows were read from and however chunked."""
        codes = {grader: code_digest(grader) for grader in self.graders.values()}
        graders_and_codes = [[task, grader, *filter(None, [codes[grader]])] for task, grader in self.graders.items()]
        digest = hashlib.sha256(json.dumps(graders_and_codes).encode())
        for batch in self.batches():
            for row in batch.drop_columns(["source"]).to_pylist():
                digest.update(json.dumps(row, sort_keys=True).encode())
        return digest.hexdigest()

    def save(self, folder: Path) -> None:
        """Write rows.parquet and tasks.json, each whole or not at all."""
        with replacing(folder / "rows.parquet") as temporary, pq.ParquetWriter(temporary, SCHEMA) as writer:
            for batch in self.batches():
                writer.write_batch(batch)
        write_json(folder / "tasks.json", _SavedTasks(self.graders, self.notes))

    @classmethod
    def load(cls, folder: Path) -> Corpus:
        """Read what `save` wrote. Raises InputError when it is missing or not such a folder."""
        settings = read_json(folder / "tasks.json", _SavedTasks)
        path = folder / "rows.parquet"
        try:
            with pq.ParquetFile(path) as file:
                if not file.schema_arrow.equals(SCHEMA):
                    raise pa.ArrowInvalid("other columns")
                table = store_batches(file.iter_batches(BATCH_ROWS))
        except (OSError, pa.ArrowException) as error:
            raise InputError("rows.parquet of a saved corpus", str(error)[:120], "Save it again.", file=path) from None
        return cls(table, settings.graders, notes=settings.notes, folder=folder)

    def to_datasets(self) -> datasets.Dataset:
        """A `datasets.Dataset` with id, task, level, prompt and those of completion, answer, chosen and rejected that occur,
        named as TRL wants them, the masks where any row has one, and the options where every row has some; rows of plain
        text without prompts get TRL's `text`. Needs the extra `train`.
        """
        try:
            from datasets import Dataset
        except ImportError:
            raise missing_extra("Corpus.to_datasets", ["datasets"], "train") from None
        names = {"target": "completion", "answer": "answer", "chosen": "chosen", "rejected": "rejected"}
        if len(self) and not any(any(texts(batch, "prompt")) for batch in self.batches()):
            columns = {"target": "text"}
        else:
            columns = {"prompt": "prompt"} | {n: new for n, new in names.items() if self.table[n].null_count < len(self)}
        rows: list[dict[str, Any]] = [
            {"id": example.id, "task": example.task, "level": example.level}
            | {new: messages(text) if (text := getattr(example, name)) else text for name, new in columns.items()}
            for example in self
        ]
        added: dict[str, list[Any]] = {"tools": [tools_of(example).get("tools") for example in self]}
        if "target" in columns:
            added[MASK_COLUMN] = [list(map(list, mask_of(example))) for example in self]
        if "answer" in columns:
            added["options"] = [option_texts(example) for example in self]
        for name, values in added.items():
            if (all if name == "options" else any)(values):
                for row, value in zip(rows, values, strict=True):
                    row[name] = value
        return Dataset.from_list(rows, on_mixed_types="use_json" if any(map(has_structures, self)) else None)

    @classmethod
    def from_examples(cls, examples: Iterable[Example], graders: Mapping[str, str] | None = None) -> Corpus:
        """A corpus of these examples; those with an empty id are named by their content.

        Raises:
            InputError: two examples with one id, or a field of the wrong type.
        """
        return cls(build_table(examples), graders)


def read_corpus(config: CorpusConfig | str | Path, *, relative_to: Path = Path()) -> Corpus:
    """All rows in one corpus (column `split`: train, eval, and rehearse for those of `config.rehearse`).

    Without `config.eval`, prompts are split by their hash, so that no prompt is in both; rows with a `split` column keep it.

    Args:
        config: sources, columns and graders; or the path or name of examples, all of them training rows.
        relative_to: folder that relative paths start from.

    Raises:
        InputError: with file, line and remedy for whatever cannot be read.
    """
    if not isinstance(config, CorpusConfig):
        config = CorpusConfig(str(config), eval_share=0.0)
    notes: list[str] = []
    sources = [(config.train, "train" if config.eval is not None else "", config)]
    if config.eval is not None:
        sources.append((config.eval, "eval", config))
    if config.rehearse is not None:  # rows that name no task are one of their own
        sources.append((config.rehearse, REHEARSE_SPLIT, replace(config, task=REHEARSE_SPLIT)))
    examples = (
        read_source(source, split=split, config=settings, relative_to=relative_to, notes=notes)
        for source, split, settings in sources
    )
    table = build_table(itertools.chain.from_iterable(examples), config.eval_share)
    table = _with_one_form(table, notes)
    folder = None if find_generator(config.train) is not None else folder_of(config.train, relative_to)
    table = _with_bins(table, notes)
    names = pc.unique(table["task"]).to_pylist()
    for task in config.graders:
        if task not in names:
            raise unknown_name("task in corpus.graders", task, names)
    corpus = Corpus(table, dict.fromkeys(names, config.grader) | dict(config.graders), notes=notes, folder=folder)
    for task in corpus.tasks.values():
        corpus.grader(task.name)
    _check_answers(corpus, split_from_own_file=config.eval is not None or config.rehearse is not None)
    return corpus


def _with_one_form(table: pa.Table, notes: list[str]) -> pa.Table:
    """The table, its plain rows to train on or to rehearse as messages where training rows are chats."""
    trained = pc.not_equal(table["split"], "eval")
    has_chats = pc.any(pc.and_(pc.equal(table["split"], "train"), table["chat"])).as_py()
    is_plain = pc.and_(pc.and_(trained, pc.invert(table["chat"])), pc.not_equal(table["prompt"], ""))
    if not has_chats or not pc.any(is_plain).as_py():
        return table
    notes.append(
        f"{pc.sum(is_plain).as_py():,} rows of plain text are turned into chat messages, like the other training rows"
    )
    rows = (decode(row) for batch in table.to_batches(BATCH_ROWS) for row in batch.to_pylist())
    return build_table(  # with its prompt, the whole row becomes a chat
        replace(row, prompt=({"role": "user", "content": row.prompt},))
        if row.split != "eval" and isinstance(row.prompt, str) and row.prompt
        else row
        for row in rows
    )


@functools.cache
def find_generator(source: str) -> EntryPoint | None:
    """Return the function of another package that makes the rows of a source `NAME:...`; None for what is read.

    It stands at the entry point `NAME` of `mixwright.sources`, and takes the source, the split (empty: both), the share to
    hold out and a list for notes, and yields examples.
    """
    name, colon, _ = source.partition(":")
    return next(iter(entry_points(group="mixwright.sources", name=name)), None) if colon else None


def read_source(
    source: str, *, split: str, config: CorpusConfig, relative_to: Path = Path(), notes: list[str] | None = None
) -> Iterator[Example]:
    """The examples of one source, one at a time; the id is empty where the row has none.

    Args:
        source: file, `datasets` folder, hub name or `reasoning-gym:...`.
        split: train, eval or rehearse, which `Example.split` says; empty leaves it to the row, and takes both halves of a
            generated task.
        config: columns, task name and graders.
        relative_to: folder that relative paths start from.
        notes: what the reader should know is appended here, such as a task whose items ran out.

    Raises:
        InputError: as `read_corpus` does, when the row is reached.
    """
    notes = [] if notes is None else notes
    if (generator := find_generator(source)) is not None:
        yield from generator.load()(source, split, config.eval_share, notes)
        return
    names = [os.path.normpath(name) for name in sources_of(source)]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError("each file once", f"{twice[0]} twice", "Leave one out.")
    reader, before = RowReader(config, split), len(notes)
    try:
        for row, location in read_rows(source, split, relative_to=relative_to, notes=notes):
            example = reader.read(row, location)
            if example is not None:
                yield example
    finally:
        notes[before:before] = reader.notes(", ".join(sources_of(source)))
    if not reader.kept_count:
        got = f"{reader.row_count:,} rows that are labelled false or have weight 0"
        raise InputError("rows to train on", got, "Correct the column label or weight.", file=source)


def _with_bins(table: pa.Table, notes: list[str]) -> pa.Table:
    """The table with many-valued levels binned by the training split's quantiles; a note for each task."""
    if table["level"].null_count == len(table):
        return table
    levels = table["level"].to_numpy(zero_copy_only=False)
    codes = table["task"].combine_chunks().dictionary_encode()
    train = pc.equal(table["split"], "train").to_numpy(zero_copy_only=False)
    tasks = np.array(codes.dictionary.to_pylist(), dtype=object)[codes.indices.to_numpy()]
    binned, bin_notes = bin_levels(tasks, levels, train)
    notes += bin_notes
    return with_column(table, "level", pa.chunked_array([pa.array(binned, from_pandas=True)])) if bin_notes else table


def _tasks(table: pa.Table, graders: Mapping[str, str]) -> dict[str, Task]:
    counts = table.group_by("task").aggregate([("id", "count"), ("answer", "count"), ("chosen", "count")]).to_pylist()
    tasks = {}
    for row in sorted(counts, key=lambda row: row["task"]):
        name, total = row["task"], row["id_count"]
        kind = "verifiable" if row["answer_count"] else "preference" if row["chosen_count"] else "text"
        tasks[name] = Task(name, graders.get(name, "exact"), kind, share=total / len(table))
    return tasks


def _check_answers(corpus: Corpus, *, split_from_own_file: bool) -> None:
    """Raise InputError when rows of a verifiable task lack answers, or its grader refuses one of the first answers.

    A split from a file of its own (`split_from_own_file`) may lack them altogether: eval with answers can be compared with
    train without. Rows to rehearse may have them or not: the model answers those without a completion itself.
    A function of the user's may want more than the bare answer (a box around it), so only its failing counts.
    """
    verifiable = pa.array([name for name, task in corpus.tasks.items() if task.kind == "verifiable"], pa.string())
    judged = pc.not_equal(corpus.table["split"], REHEARSE_SPLIT)  # rows to rehearse are never graded
    rows = pc.indices_nonzero(pc.and_(judged, pc.is_in(corpus.table["task"], value_set=verifiable))).to_numpy()
    answered = pc.is_valid(corpus.table["answer"]).to_numpy()
    groups = rows_by(corpus, rows, "task", *(["split"] if split_from_own_file else []))
    for (name, *_), members in groups.items():
        lacking = members[~answered[members]]
        if len(lacking) and (len(lacking) < len(members) or not split_from_own_file):
            got = f"{len(lacking)} rows without, the first at {corpus.table['source'][int(lacking[0])].as_py()}"
            expected = f"an answer in every row of task {name!r} or in none"
            raise InputError(expected, got, "Add the answers, or give these rows another task.")
    first_answered = read_groups(
        corpus.table, (members[answered[members]][:MAX_ANSWERS_CHECKED] for members in groups.values())
    )
    for (name, *_), examples in zip(groups, first_answered, strict=True):
        grader, grades = corpus.tasks[name].grader, TimedGrades(corpus, SECONDS_PER_GRADE, "stop")
        for example in examples:
            score = grades.grade(example, example.answer or "")
            if score != 1.0 and ":" not in grader:
                got = f"{example.answer!r:.60} at {example.source}, which gets {score:g}"
                remedy = "Correct the answer or name another grader: corpus.graders."
                raise InputError(f"answers that grader {grader} can give 1.0", got, remedy)
