"""Stage that scans a corpus with every starting model: shards over workers, resumed where it was killed, time left shown."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.config import RunConfig
from mixwright.errors import InputError
from mixwright.learner.bases import bases_of, build_bases
from mixwright.measure.bases import base_name
from mixwright.measure.scan import OWN, SHARD, groups_of, lacking, part, sampled_rows, scan_folder, write_part
from mixwright.records import from_data, to_data
from mixwright.runs import RunFolder
from mixwright.workers.local import Job, Workers, processors
from mixwright.workers.progress import report

if TYPE_CHECKING:
    from mixwright.contracts import Columns
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner
    from mixwright.measure.scan_rows import ScanRow
    from mixwright.measure.sketch_calibration import Calibration

SCAN_SEED = 2_000_003
"""Added to the run's seed for the rollouts of the scan; training and measuring never use these numbers."""


@dataclass(frozen=True, slots=True)
class ScanJob:
    """Some shards of one base; plain data."""

    run: str
    """Run folder, with corpus/."""
    base: str
    """Checkpoint folder or hub name."""
    config: Mapping[str, Any]
    """A `RunConfig` as data."""
    columns: tuple[str, ...]
    """Groups of columns."""
    sample: int | None
    """Rows by a hash of their ids; None for all."""
    moments: str | None
    """File of second moments for gradient sketches."""
    turn: int = 0
    """Shards are dealt out in turns: this job does those whose number leaves `turn` when divided by `turns`."""
    turns: int = 1
    """Jobs of this base."""
    prepare: bool = False
    """Only what the shards share: the calibration of gradient sketches."""


@dataclass(frozen=True, slots=True)
class ScanResult:
    """What was scanned."""

    base: str
    """Name of the starting model."""
    rows: int
    """Examples."""
    shards: int
    """Shards that the table has."""
    made: int
    """Of them, those that were made or completed now."""
    tokens: int
    """Tokens of prompts and targets in those."""
    notes: tuple[str, ...]
    """What a reader of the table has to know."""


def scan_bases(
    config: RunConfig,
    folder: RunFolder,
    pool: Workers,
    *,
    columns: Sequence[str] | None = None,
    sample: int | None = None,
    moments: Path | None = None,
    base: Path = Path(),
    say: Callable[[str], None] = lambda _: None,
) -> list[ScanResult]:
    """Scan the corpus of a run with each of its starting models; writes scan/<base>/part-00000.parquet ...

    Args:
        config: the settings.
        folder: the run folder, open, with its corpus.
        pool: running workers.
        columns: groups or columns; None takes the cheap ones, `all` every one.
        sample: so many rows by a hash of their ids; None takes all.
        moments: second moments of a warm-up, for gradient sketches.
        base: folder that relative paths in the settings start from.
        say: told what is done.

    Raises:
        InputError: an unknown column, or data or a model that cannot be used.
    """
    groups = groups_of(columns)
    build_bases(config, folder, pool, base)
    rows = _count(folder, sample)
    turns = max(1, min(config.trial.workers or processors(), -(-rows // SHARD)))
    shared = (to_data(config), tuple(groups), sample, str(moments.resolve()) if moments else None)
    paths = bases_of(config, folder)
    if any("gradients" in group.PASSES for group in groups.values()):
        jobs = [
            Job(f"directions {base_name(p)}", scan_base, ScanJob(str(folder.path), p, *shared, prepare=True)) for p in paths
        ]
        pool.run(jobs, title="directions of gradients")
    jobs = [
        Job(f"scan {base_name(p)} {turn + 1}", scan_base, ScanJob(str(folder.path), p, *shared, turn, turns))
        for p in paths
        for turn in range(turns)
    ]
    say(f"scan: {rows:,} rows, columns {', '.join(name for group in groups.values() for name in group.NAMES)}")
    found = pool.run(jobs, title="scan")
    return [_together(found[i * turns : (i + 1) * turns]) for i in range(len(paths))]


def _count(folder: RunFolder, sample: int | None) -> int:
    import pyarrow.parquet as pq

    rows = pq.ParquetFile(folder.corpus / "rows.parquet").metadata.num_rows
    return rows if sample is None else min(sample, rows)


def _together(found: Sequence[ScanResult]) -> ScanResult:
    notes = tuple(dict.fromkeys(note for result in found for note in result.notes))
    first = found[0]
    made, tokens = sum(result.made for result in found), sum(result.tokens for result in found)
    return ScanResult(first.base, first.rows, first.shards, made, tokens, notes)


def scan_base(job: ScanJob) -> ScanResult:
    """Make the shards of one job that are not there yet. Runs in a worker."""
    from mixwright.corpus import Corpus
    from mixwright.learner.load import load_learner
    from mixwright.measure.scan_passes import ScanPasses
    from mixwright.measure.scan_rows import longest_row, scan_rows

    run, config = RunFolder(job.run), from_data(RunConfig, dict(job.config))
    corpus, folder = Corpus.load(run.corpus), scan_folder(run, base_name(job.base))
    learner, groups = load_learner(job.base, adapter=config.model.adapter), groups_of(job.columns)
    places, limit = sampled_rows(corpus, job.sample), longest_row(config, learner)
    read = {"joined": config.train.objective == "sft", "limit": limit}
    key = _key(config, job, corpus, learner, len(places), limit)
    if job.prepare:
        rows = _first_rows(learner, corpus, places, read)
        _calibration(job, key, folder, learner, rows)
        return ScanResult(base_name(job.base), len(places), key["shards"], 0, 0, ())
    mine = range(job.turn, key["shards"], job.turns)
    open_ = [number for number in mine if lacking(part(folder, number), key, groups)]
    tokens, notes = 0, _Notes(limit)
    for done, number in enumerate(open_):
        wanted = {name: groups[name] for name in lacking(part(folder, number), key, groups)}
        examples = [corpus[int(place)] for place in places[number * SHARD : (number + 1) * SHARD]]
        rows = list(scan_rows(learner, examples, **read))
        passes = ScanPasses(
            learner,
            rows,
            frozenset(name for group in wanted.values() for name in group.PASSES),
            corpus,
            config.measure,
            seed=config.seed + SCAN_SEED + number,
            calibration=_calibration(job, key, folder, learner) if _needs_gradients(wanted) else None,
            done=lambda share, done=done: report((done + share) / len(open_)),
        )
        found = {name: values for group in wanted.values() for name, values in group.read(rows, passes).items()}
        own = {name: [getattr(row.example, name) for row in rows] for name in OWN}
        write_part(part(folder, number), key, own, found)
        tokens += sum(len(row.prompt) + len(row.target) for row in rows)
        notes.see(rows)
    return ScanResult(base_name(job.base), len(places), key["shards"], len(open_), tokens, notes.lines())


def _key(config: RunConfig, job: ScanJob, corpus: Corpus, learner: Learner, rows: int, limit: int | None) -> dict[str, Any]:
    """What a shard is made from: two shards of one key hold the same rows, and may hold each other's columns."""
    measured = {name: getattr(config.measure, name) for name in ("samples", "temperature", "max_new_tokens")}
    moments = Path(job.moments) if job.moments else None
    if moments is not None and not moments.is_file():
        raise InputError("a file of second moments", "nothing", "Correct --moments.", file=moments)
    return {
        "corpus": corpus.digest(),
        "weights": weights_digest(learner.model),
        "objective": config.train.objective,
        "limit": limit,
        "measure": {**measured, "seed": config.seed},
        "moments": hashlib.sha256(moments.read_bytes()).hexdigest() if moments else None,
        "rows": rows,
        "shards": -(-rows // SHARD),
    }


def weights_digest(model: Any) -> str:
    """SHA-256 of names, shapes and values of all parameters, in hex."""
    import torch

    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        digest.update(f"{name} {tuple(parameter.shape)} {parameter.dtype}".encode())
        digest.update(parameter.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _needs_gradients(groups: Mapping[str, Columns]) -> bool:
    return any("gradients" in group.PASSES for group in groups.values())


def _first_rows(learner: Learner, corpus: Corpus, places: np.ndarray, read: Mapping[str, Any]) -> list[ScanRow]:
    """Rows with targets that directions are found from, by a hash of their ids; as many as that takes."""
    from mixwright.measure.scan_rows import scan_rows, target_of
    from mixwright.measure.sketch_calibration import ROWS

    order = sorted(places.tolist(), key=lambda place: zlib.crc32(corpus.table["id"][place].as_py().encode()))
    chosen = (corpus[place] for place in order)
    rows: list[ScanRow] = []
    for row in scan_rows(learner, (example for example in chosen if target_of(example) is not None), **read):
        rows += [row] if row.target else []
        if len(rows) == ROWS:
            break
    return rows


def _calibration(
    job: ScanJob, key: Mapping[str, Any], folder: Path, learner: Learner, rows: Sequence[ScanRow] | None = None
) -> Calibration:
    """The calibration of this scan, found from `rows` when it is not there yet."""
    from mixwright.measure.sketch_calibration import (
        SketchSettings,
        calibrate,
        load_calibration,
        load_moments,
        save_calibration,
    )

    path = folder / "sketch.safetensors"
    found = load_calibration(path, key)
    if found is None:
        moments = load_moments(Path(job.moments)) if job.moments else None
        found = calibrate(learner, rows or (), SketchSettings(), moments)
        save_calibration(path, found, key)
    return found


class _Notes:
    """Counts of what a reader of the table has to know."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._answers = self._chosen = self._none = self._cut = self._rows = 0

    def see(self, rows: Sequence[ScanRow]) -> None:
        """Count some rows."""
        for row in rows:
            example = row.example
            self._rows += 1
            self._answers += example.target is None and example.answer is not None
            self._chosen += example.target is None and example.answer is None and example.chosen is not None
            self._none += not row.target and not row.cut
            self._cut += row.cut > 0

    def lines(self) -> tuple[str, ...]:
        """One line each; of the rows that were scanned now."""
        told = (
            (self._answers, "have no target; their answer is read as the target"),
            (self._chosen, "are pairs; the chosen answer is read as the target"),
            (self._none, "have nothing to be read as a target: NaN in every column that needs one"),
            (self._cut, f"are longer than {self._limit} tokens and are cut there, as training cuts them"),
        )
        return tuple(f"{count:,} of {self._rows:,} rows {what}" for count, what in told if count)
