"""Passes over the rows of a corpus as a map over shards and a merge: in this process, or in workers, with equal findings.

A shard is a run of rows. What a pass learns of a shard does not depend on the others, and the merge goes through the shards
in the order of the rows, so what comes first in the file comes first here, too. Without workers all rows are one shard, and
the code is the same.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from mixwright.config import TrialConfig, check_cluster
from mixwright.corpus import Corpus
from mixwright.corpus.rows import BATCH_ROWS
from mixwright.errors import InputError
from mixwright.run.ray_workers import start_workers
from mixwright.run.workers import Job, Workers

MIN_BATCHES, SHARDS_PER_WORKER = 25, 4
"""Batches of a shard at least, about 50,000 rows, beside which the start of a process is little; and shards of each worker
at most, so that the last one does not keep the others waiting."""
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class ShardJob:
    """One pass over one shard."""

    file: str
    """Arrow IPC, a record batch for each of the corpus's batches; workers map it into memory."""
    start: int
    """First of its record batches."""
    stop: int
    """One past the last."""
    function: Callable[..., Any]
    """Function of a module: what it learns of these rows."""
    arguments: tuple[Any, ...]
    """Behind the batches."""


@contextmanager
def audited_by(workers: int, cluster: str, corpus: Corpus) -> Iterator[None]:
    """Inside it the passes over this corpus are made by so many processes; by this one where there is neither.

    Args:
        workers: processes; 0 takes one per CPU core, or as many as the cluster has room for. 1 starts none here.
        cluster: `ray`, `ray:HOST:PORT`, or nothing for processes of this machine. It sees the current folder.
        corpus: read already.

    Raises:
        InputError: another cluster, or one that cannot be used.
    """
    if workers == 1 and not cluster:
        yield
        return
    try:
        placed = TrialConfig(workers=workers, cluster=check_cluster(cluster))
    except ValueError as error:
        raise InputError(f"--cluster {error}", cluster, "Use for example --cluster ray.") from None
    folder = Path() if cluster else Path(tempfile.gettempdir())
    with start_workers(placed) as started, in_shards(corpus, started, folder):
        yield


@contextmanager
def in_shards(corpus: Corpus, workers: Workers, folder: Path) -> Iterator[None]:
    """Inside it the passes over this corpus are made by the workers.

    Args:
        corpus: read already; others, such as a selection of its rows, are passed over in this process.
        workers: running.
        folder: that all of them see; a copy of the rows stands there meanwhile.
    """
    with tempfile.TemporaryDirectory(prefix=".mixwright-", dir=folder) as scratch:
        file, starts = (Path(scratch) / "rows.arrow").resolve(), [0]
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, corpus.table.schema) as writer:
            for batch in corpus.batches(BATCH_ROWS):
                writer.write_batch(batch)
                starts.append(starts[-1] + batch.num_rows)
        count = len(starts) - 1
        size = max(MIN_BATCHES, -(-count // (SHARDS_PER_WORKER * workers.count)))

        def map_in_workers(function: Callable[..., Any], argument: Any, what: str, *of_rows: np.ndarray) -> list[Any]:
            jobs = list[Job]()
            for start in range(0, count, size):
                stop = min(start + size, count)
                own = (values[starts[start] : starts[stop]] for values in of_rows)
                job = ShardJob(str(file), start, stop, function, (argument, *own))
                jobs.append(Job(f"{what}, shard {len(jobs) + 1}", work_on_shard, job, cost=stop - start))
            return list(zip(starts[:count:size], workers.run(jobs, title=what), strict=True))

        corpus.map_in_workers = map_in_workers
        try:
            yield
        finally:
            corpus.map_in_workers = None


def map_shards(
    corpus: Corpus, function: Callable[..., Answer], argument: Any, what: str, *of_rows: np.ndarray
) -> list[tuple[int, Answer]]:
    """What `function` learns of each shard, with the number of the shard's first row, in the order of the rows.

    Args:
        corpus: whose rows are read.
        function: of a module; called with the record batches of a shard, `argument` and the shard's part of `of_rows`. It
            numbers the rows of its shard from 0.
        argument: of bounded size.
        what: name of the pass on the progress line.
        of_rows: arrays with a value for each row of the corpus.
    """
    if corpus.map_in_workers is None or not len(corpus):
        return [(0, function(list(corpus.batches()), argument, *of_rows))]
    return corpus.map_in_workers(function, argument, what, *of_rows)


def work_on_shard(job: ShardJob) -> Any:
    """Make one pass over one shard, in a worker."""
    with pa.memory_map(job.file) as source:
        reader = pa.ipc.open_file(source)
        return job.function([reader.get_batch(number) for number in range(job.start, job.stop)], *job.arguments)
