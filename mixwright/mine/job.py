"""Mining of a run in a worker: what the miner reads, the model if it needs one, and the table."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mixwright
from mixwright.config import MineConfig, RunConfig
from mixwright.corpus.corpus import REHEARSE_SPLIT
from mixwright.corpus.identity import build_table
from mixwright.learner.bases import base_of, build_base
from mixwright.mine.choosing import check_row_count
from mixwright.mine.own_answers import read_rows, rehearsal_rows
from mixwright.mine.stage import make_miner, mine, summary_of, write_mined
from mixwright.records import to_data
from mixwright.run.checked import CheckedRun
from mixwright.run.folder import RunFolder, write_table
from mixwright.run.workers import Job, Workers

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.mine.choosing import TrainRows

REHEARSAL_TABLE = "rehearsal"
"""Table that a plan's rows to rehearse are drawn from."""


@dataclass(frozen=True, slots=True)
class MineJob:
    """One miner on one run."""

    run: str
    """Run folder."""
    base: str
    """Checkpoint folder or hub name of the starting model."""
    config: RunConfig
    """Settings of the run."""
    miner: str
    """Name of the plug-in."""
    options: Mapping[str, Any]
    """Its keyword arguments."""


def options_of(settings: MineConfig, name: str, keep: float | None) -> dict[str, Any]:
    """Keyword arguments of a miner: those of the settings, and the share asked for."""
    return {**dict(settings.options.get(name, {})), **({} if keep is None else {"keep": keep})}


def mine_in_run(
    run: CheckedRun,
    workers: Workers,
    name: str,
    *,
    keep: float | None = None,
    say: Callable[[str], None] = lambda _: None,
    take_over: bool = False,
) -> Path:
    """Make what the miner reads, run it on the first starting model, and write mine/<name>.parquet.

    Args:
        run: checked, its folder open.
        workers: running workers.
        name: of the miner.
        keep: share of the rows to choose; None takes the settings'.
        say: told what is done.
        take_over: mine nothing where the table was made from the same rows and values by the same options.

    Raises:
        InputError: an unknown miner or option, or what the miner refuses; too few training rows before anything is made.
    """
    config, folder, options = run.config, run.folder, options_of(run.config.mine, name, keep)
    miner = make_miner(name, options)
    check_row_count(len(run.corpus.select(split="train")), miner.count_needed_rows())
    build_base(run, workers)
    start = base_of(config.model, folder)
    miner.prepare(run, workers, start, say)
    rows = miner.read_rows(run.corpus, folder, start)
    if take_over and is_mined(folder, name, mined_from_digest(rows, options, config.seed)):
        say(f"mine: {name} from an earlier run (drop --try to mine again)")
        return table_file(folder, name)
    say(f"mine: {name}")
    job = MineJob(str(folder.path), start, config, name, options)
    workers.run([Job(f"mine {name}", mine_in_worker, job)], title="mine")
    return table_file(folder, name)


def mined_from_digest(rows: TrainRows, options: Mapping[str, Any], seed: int) -> str:
    """SHA-256 of what a table is mined from: rows and values, which know corpus and model, the options, seed and version."""
    mined_from = {"rows": dict(rows.made_from), "options": to_data(dict(options)), "seed": seed}
    mined_from["version"] = mixwright.__version__
    return hashlib.sha256(json.dumps(mined_from, sort_keys=True, default=str).encode()).hexdigest()


def is_mined(folder: RunFolder, name: str, digest: str) -> bool:
    """Return whether a miner's table is there, made of this."""
    table = table_file(folder, name)
    summary = summary_of(table)
    return summary is not None and summary.mined_from == digest and table.is_file()


def mine_rehearsal(run: CheckedRun, workers: Workers, *, say: Callable[[str], None] = lambda _: None) -> None:
    """Write mine/rehearsal.parquet, the rows to rehearse, prompts among them answered by the first starting model.

    Nothing is done where the corpus has none, or where the table is newer than the corpus.
    """
    config, folder = run.config, run.folder
    table, rows = table_file(folder, REHEARSAL_TABLE), folder.corpus / "rows.parquet"
    if not len(run.corpus.select(split=REHEARSE_SPLIT)) or (
        table.exists() and table.stat().st_mtime >= rows.stat().st_mtime
    ):
        return
    build_base(run, workers)
    job = MineJob(str(folder.path), base_of(config.model, folder), config, REHEARSAL_TABLE, {})
    (notes,) = workers.run([Job("rehearsal", answer_prompts_to_rehearse, job)], title="rehearsal")
    for note in notes:
        say(f"  {note}")


def answer_prompts_to_rehearse(job: MineJob) -> list[str]:
    """Answer the prompts to rehearse and write the table; returns what was done. Runs in a worker."""
    from mixwright.corpus import Corpus
    from mixwright.learner.vllm_engine import load_writing
    from mixwright.measure.kept_answers import KeepingLearner

    run, config = RunFolder(job.run), job.config
    answers_file = run.kept_answers(job.miner)
    with contextlib.ExitStack() as stack:

        def load() -> KeepingLearner:
            return KeepingLearner(stack.enter_context(load_writing(config, job.base)), answers_file)

        rehearsal = rehearsal_rows(Corpus.load(run.corpus), load)
    write_table(table_file(run, job.miner), build_table(rehearsal.rows))  # last: by it a run knows that they were written
    run.drop_kept()
    return list(rehearsal.notes)


def with_mined_rehearsal(folder: RunFolder, corpus: Corpus) -> Corpus:
    """The corpus with the rows of mine/rehearsal.parquet, or none before they were made, as its rows to rehearse."""
    if not len(corpus.select(split=REHEARSE_SPLIT)):
        return corpus
    table = table_file(folder, REHEARSAL_TABLE)
    return corpus.with_rehearsal(read_rows(table) if table.is_file() else ())


def table_file(folder: RunFolder, name: str) -> Path:
    """Where a miner's table lies."""
    return folder.path / "mine" / f"{name}.parquet"


def mine_in_worker(job: MineJob) -> None:
    """Run the miner and write its files. Runs in a worker."""
    from mixwright.corpus import Corpus
    from mixwright.learner.vllm_engine import load_writing

    run, config = RunFolder(job.run), job.config
    corpus, miner = Corpus.load(run.corpus), make_miner(job.miner, job.options)
    rows = miner.read_rows(corpus, run, job.base)
    with load_writing(config, job.base) if miner.NEEDS_MODEL else contextlib.nullcontext() as learner:
        digest = mined_from_digest(rows, job.options, config.seed)
        mined, summary = mine(miner, job.miner, corpus, rows, learner, seed=config.seed, mined_from=digest)
    write_mined(mined, summary, table_file(run, job.miner).parent)
