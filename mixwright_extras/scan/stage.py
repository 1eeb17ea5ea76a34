"""Stage that scans a corpus with every starting model: shards over workers, resumed after a kill, time left shown."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mixwright.extend import (
    CheckedRun,
    Corpus,
    Example,
    InputError,
    Job,
    Learner,
    RunConfig,
    RunFolder,
    TrainingRow,
    Workers,
    base_name,
    base_of,
    build_base,
    load_base,
    plain_source,
    read_training_rows,
    report_share,
    row_token_limit,
    run_engine,
    target_of,
)
from mixwright_extras.scan.contract import Columns, Pass
from mixwright_extras.scan.passes import ScanPasses
from mixwright_extras.scan.sketch_calibration import (
    CALIBRATION_ROWS,
    SketchSettings,
    calibrate,
    load_calibration,
    save_calibration,
)
from mixwright_extras.scan.table import (
    OWN_COLUMNS,
    SHARD_ROWS,
    column_groups,
    made_from,
    missing_groups,
    sampled_rows,
    scan_folder,
    shard_file,
    write_shard,
)

SCAN_SEED = 2_000_003
"""Added to the run's seed for the rollouts of the scan; training and measuring never use these numbers."""


@dataclass(frozen=True, slots=True)
class ScanJob:
    """What one base is scanned for, or some shards of it."""

    run: str
    """Run folder, with corpus/."""
    base: str
    """Checkpoint folder or hub name."""
    config: RunConfig
    """Settings of the run."""
    columns: tuple[str, ...]
    """Groups of columns."""
    sample: int | None
    """Rows by a hash of their ids; None for all."""
    key: Mapping[str, Any] = field(default_factory=dict)
    """What shards are made from; empty for the job that works it out."""
    shards: tuple[int, ...] = ()
    """Numbers of the shards to make."""


@dataclass(frozen=True, slots=True)
class ScanResult:
    """What was scanned."""

    base_name: str
    """Of the starting model, in files."""
    rows: int
    """Examples."""
    shards: int
    """Shards that the table has."""
    made: int
    """Of them, those that were made or completed now."""
    notes: tuple[str, ...]
    """What a reader of the table has to know."""


def scan_bases(
    run: CheckedRun,
    workers: Workers,
    *,
    columns: Sequence[str] | None = None,
    sample: int | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[ScanResult]:
    """Scan the corpus of a run with its starting model; writes scan/<base>/part-00000.parquet ...

    Args:
        run: checked, its folder open.
        workers: running workers.
        columns: groups or columns; None takes the cheap ones, `all` every one.
        sample: so many rows by a hash of their ids; None takes all.
        say: told what is done.

    Raises:
        InputError: an unknown column, or data or a model that cannot be used.
    """
    groups, config, folder = column_groups(columns), run.config, run.folder
    build_base(run, workers)
    paths = [base_of(config.model, folder)]
    jobs = [ScanJob(str(folder.path), path, config, tuple(groups), sample) for path in paths]
    keys = workers.run([Job(f"prepare {base_name(job.base)}", prepare_scan, job) for job in jobs], title="prepare scan")
    worker_jobs: list[ScanJob] = []
    columns_of = {name: group.NAMES for name, group in groups.items()}
    for job, key in zip(jobs, keys, strict=True):
        shard_folder = scan_folder(folder, base_name(job.base))
        for line in _remove_stale_shards(shard_folder, key):
            say(line)
        missing_shards = [
            number for number in range(key["shards"]) if missing_groups(shard_file(shard_folder, number), key, columns_of)
        ]
        worker_count = min(workers.count, len(missing_shards))
        worker_jobs += [
            replace(job, key=key, shards=tuple(missing_shards[worker::worker_count])) for worker in range(worker_count)
        ]
    names = ", ".join(name for group in groups.values() for name in group.NAMES)
    say(f"scan: {keys[0]['rows']:,} rows, columns {names}")
    jobs_to_run = [Job(f"scan {base_name(job.base)}", scan_shards, job, cost=len(job.shards)) for job in worker_jobs]
    kinds_by_base, made = defaultdict[str, Counter[str]](Counter), Counter[str]()
    for job, kinds in zip(worker_jobs, workers.run(jobs_to_run, title="scan") if jobs_to_run else (), strict=True):
        kinds_by_base[job.base].update(kinds)
        made[job.base] += len(job.shards)
    return [
        ScanResult(
            base_name(job.base),
            key["rows"],
            key["shards"],
            made[job.base],
            _format_notes(kinds_by_base[job.base], key["limit"]),
        )
        for job, key in zip(jobs, keys, strict=True)
    ]


def _remove_stale_shards(folder: Path, key: Mapping[str, Any]) -> Iterator[str]:
    """Remove what was left of a write that was killed, and shards of other things, saying so.

    Raises:
        InputError: a scan of more rows is there, which holds what is asked for.
    """
    for leftover in folder.glob(".*.parquet.*"):
        leftover.unlink()
    key_by_shard = {path: made_from(path) for path in sorted(folder.glob("part-*.parquet"))}
    stale_shards = {path: shard_key for path, shard_key in key_by_shard.items() if shard_key != key}
    for shard_key in stale_shards.values():
        different_keys = [name for name in key if shard_key.get(name) != key[name]]
        if set(different_keys) <= {"rows", "shards"} and shard_key["rows"] > key["rows"]:
            expected = f"at least the {shard_key['rows']:,} rows that were scanned"
            raise InputError(expected, f"--sample {key['rows']}", "Leave --sample out, or remove that folder.", file=folder)
        yield f"scan: {folder.name} was scanned from other {', '.join(different_keys)}; scanning again"
        break
    for path in stale_shards:
        path.unlink()


def prepare_scan(job: ScanJob) -> dict[str, Any]:
    """What the shards are made from; the directions of gradient sketches are found, where they are asked for."""
    corpus, config, learner, groups = _load_job(job)
    row_indices = sampled_rows(corpus, job.sample)
    limit, measure_names = row_token_limit(config.train, learner), ("samples", "temperature", "max_new_tokens")
    key = {
        "corpus": corpus.digest(),
        "weights": weights_digest(learner.model),
        "objective": config.train.objective,
        "limit": limit,
        "measure": {name: getattr(config.measure, name) for name in measure_names}
        | {"seed": config.seed, **config.measure.noted_engine},
        "rows": len(row_indices),
        "shards": -(-len(row_indices) // SHARD_ROWS),
    }
    path = _directions_file(job)
    if any("gradients" in group.PASSES for group in groups.values()) and load_calibration(path, key) is None:
        rows = _calibration_rows(learner, corpus, row_indices, _tokenising_options(key))
        calibration = calibrate(learner, rows, SketchSettings())
        save_calibration(path, calibration, key)
    return key


def scan_shards(job: ScanJob) -> Counter[str]:
    """Make or complete the shards of one job, in a worker; return the kinds of their rows, see `_format_notes`."""
    corpus, config, learner, groups = _load_job(job)
    with run_engine(config, learner, None if config.model.adapter else plain_source(job.base)):
        return _scan_shards(job, corpus, learner, groups)


def _scan_shards(job: ScanJob, corpus: Corpus, learner: Learner, groups: Mapping[str, Columns]) -> Counter[str]:
    config = job.config
    row_indices, folder = sampled_rows(corpus, job.sample), _directions_file(job).parent
    calibration = load_calibration(_directions_file(job), job.key)
    kinds, columns_of = Counter[str](), {name: group.NAMES for name, group in groups.items()}
    for shards_done, number in enumerate(job.shards):
        missing_column_groups = {
            name: groups[name] for name in missing_groups(shard_file(folder, number), job.key, columns_of)
        }
        examples = [corpus[int(row_index)] for row_index in row_indices[number * SHARD_ROWS : (number + 1) * SHARD_ROWS]]
        rows = list(read_training_rows(learner, examples, **_tokenising_options(job.key)))
        passes_needed: frozenset[Pass] = frozenset(name for group in missing_column_groups.values() for name in group.PASSES)
        seed = config.seed + SCAN_SEED + number

        def report_shard_share(share: float, shards_done: int = shards_done) -> None:
            report_share((shards_done + share) / len(job.shards))

        passes = ScanPasses(learner, rows, passes_needed, corpus, config.measure, seed, calibration, report_shard_share)
        values_by_column = {
            name: values for group in missing_column_groups.values() for name, values in group.compute(rows, passes).items()
        }
        example_columns = {name: [getattr(row.example, name) for row in rows] for name in OWN_COLUMNS}
        write_shard(shard_file(folder, number), job.key, example_columns, values_by_column)
        kinds.update(_target_kind(row.example) for row in rows)
        kinds["cut"] += sum(row.cut_tokens > 0 for row in rows)
    return kinds


def _load_job(job: ScanJob) -> tuple[Corpus, RunConfig, Learner, dict[str, Columns]]:
    """What a job works on."""
    config = job.config
    learner = load_base(config.model, job.base)
    return Corpus.load(RunFolder(job.run).corpus), config, learner, column_groups(job.columns)


def _directions_file(job: ScanJob) -> Path:
    """File of the directions of gradient sketches, beside the shards."""
    return scan_folder(RunFolder(job.run), base_name(job.base)) / "sketch.safetensors"


def _tokenising_options(key: Mapping[str, Any]) -> dict[str, Any]:
    """How rows are tokenised and where they are cut."""
    return {"tokenise_together": key["objective"] == "sft", "limit": key["limit"]}


def weights_digest(model: Any) -> str:
    """SHA-256 of names, shapes and values of all parameters, in hex."""
    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        digest.update(f"{name} {tuple(parameter.shape)} {parameter.dtype}".encode())
        digest.update(parameter.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _calibration_rows(
    learner: Learner, corpus: Corpus, row_indices: np.ndarray, tokenising_options: Mapping[str, Any]
) -> list[TrainingRow]:
    """`CALIBRATION_ROWS` rows with targets, by a hash of their ids; all where there are fewer."""
    order = sorted(row_indices.tolist(), key=lambda row_index: hashlib.sha256(corpus[row_index].id.encode()).digest())
    targets = (example for example in map(corpus.__getitem__, order) if target_of(example) is not None)
    rows = read_training_rows(learner, targets, **tokenising_options)
    return list(itertools.islice((row for row in rows if row.target), CALIBRATION_ROWS))


def _target_kind(example: Example) -> str:
    """What of an example is read as its target, as `target_of` takes it."""
    return next((name for name in ("target", "answer", "chosen") if getattr(example, name) is not None), "none")


def _format_notes(kinds: Mapping[str, int], limit: int | None) -> tuple[str, ...]:
    """What a reader of the table has to know of the rows that were scanned now, one line each."""
    notes_by_kind = {
        "answer": "have no target, so their answer is used as the target",
        "chosen": "are pairs, so the chosen answer is used as the target",
        "none": "have neither target nor answer: NaN in every column that needs a target",
        "cut": f"are longer than {limit} tokens and are cut, as in training",
    }
    rows = sum(count for kind, count in kinds.items() if kind != "cut")
    return tuple(f"{kinds[kind]:,} of {rows:,} rows {meaning}" for kind, meaning in notes_by_kind.items() if kinds.get(kind))
