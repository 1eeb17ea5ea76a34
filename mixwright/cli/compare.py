"""Comparison of two checkpoints, whoever trained them, on one corpus: `mixwright verdict BEFORE AFTER --corpus C`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig
from mixwright.errors import InputError, unknown_name
from mixwright.estimates.outcome import Decoding
from mixwright.records import to_data
from mixwright.runs import RunFolder, write_measurements

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.measure.stage import MeasureResult

MEASURED = ("decoding", "items", "samples", "temperature", "max_new_tokens")
"""Settings of measuring that are noted."""


def compare(
    before: str,
    after: str,
    corpus: CorpusConfig,
    folder: RunFolder,
    *,
    items: int | None = None,
    protect: Sequence[str] = (),
    decoding: Decoding = "greedy",
    say: Callable[[str], None],
) -> None:
    """Measure both checkpoints on the held-out split (all rows when there is none) and write both tables.

    Args:
        before: checkpoint folder or hub name.
        after: the same, trained further.
        corpus: what they are measured on.
        folder: where the tables go.
        items: measured per cell; None takes what the gate needs.
        protect: tasks and cells that the gate will be asked about; empty where it chooses.
        decoding: how the model will be used.
        say: called with what is being done.

    Raises:
        InputError: a checkpoint, the corpus or a protected name cannot be used; nothing is written then.
    """
    from mixwright.corpus import read_corpus
    from mixwright.learner.load import load_learner
    from mixwright.measure.stage import longest_answer, measure_learner
    from mixwright.preflight import check_items, check_model, check_settings

    _check_folder(folder)
    rows = read_corpus(corpus)
    check_items(rows)
    for note in rows.notes:
        say(f"corpus: {note}")
    wanted = _items(rows, protect, items)
    measure = MeasureConfig(items=wanted, max_new_tokens=longest_answer(rows), decoding=decoding)
    config = RunConfig(corpus, ModelConfig(path=before), measure)
    check_settings(config, rows)
    check_model(ModelConfig(path=after))
    start, end = load_learner(before), load_learner(after)
    say(f"measure: up to {wanted} items per cell, as far as the corpus has them; {decoding} decoding is judged")
    found = {}
    for name, learner, origin in (("before", start, None), ("after", end, start)):
        say(f"measure: {name}")
        found[name] = measure_learner(learner, rows, config.measure, start=origin, seed=config.seed)
    write_comparison(folder, config, after, rows, found)


def write_comparison(
    folder: RunFolder, config: RunConfig, after: str, rows: Corpus, found: Mapping[str, MeasureResult]
) -> None:
    """Write settings, manifest, both tables and the completions; nothing of an earlier comparison stays.

    What is noted is how the checkpoints were measured. How they were trained is not known here.
    """
    from mixwright.manifest import write_manifest, write_settings
    from mixwright.measure.bases import write_completions

    with folder.lock():
        clear(folder)  # first of all: what is killed half-way must not be judged with an older half
        write_settings(config, folder, ("corpus", "measure", "seed"))
        measured = {name: to_data(getattr(config.measure, name)) for name in MEASURED}
        graders = ", ".join(sorted({task.grader for task in rows.tasks.values()}))
        settings = {"checkpoint after": after, "corpus": config.corpus.train, "grader": graders, **measured}
        write_manifest(config, folder, rows, settings=settings, seeds={"measuring": config.seed})
        for name, result in found.items():
            write_measurements(folder.measurements(name), result.measurements)
        write_completions(folder.path / "completions.parquet", found)


def _check_folder(folder: RunFolder) -> None:
    """Raises InputError for a folder that holds something else than an earlier comparison: nothing of it may be lost."""
    made = [path for path in (folder.corpus, folder.plan, folder.result, folder.path / "bases") if path.exists()]
    if made:
        got = f"a run, which has {made[0].name}"
        raise InputError("a new folder, or that of an earlier comparison", got, "Choose another --folder.", file=folder.path)
    if folder.path.exists() and not folder.path.is_dir():
        raise InputError("a folder", "a file", "Choose another --folder.", file=folder.path)


def clear(folder: RunFolder) -> None:
    """Remove what an earlier comparison measured in this folder, and what was said of it."""
    measured = [folder.measurements(name) for name in ("before", "after")]
    for path in (*measured, folder.path / "completions.parquet", folder.claims, folder.page):
        path.unlink(missing_ok=True)


def _items(rows: Corpus, protect: Sequence[str], items: int | None) -> int:
    """Items per cell. Raises InputError for a protected name that the corpus does not have."""
    from mixwright.verdict.gate import items_for

    held_out = rows.select(split="eval")
    cells = (held_out if len(held_out) else rows).cells()
    known = {name for cell in cells for name in (cell.task, cell.key)}
    for name in protect:
        if name not in known:
            raise unknown_name("task or cell of the corpus (--protect)", name, known)
    chosen = [cell for cell in cells if not protect or cell.task in protect or cell.key in protect]
    return items_for(len(chosen), chosen=bool(protect)) if items is None else items
