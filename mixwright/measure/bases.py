"""Measurements of the starting model, made once and shared by every branch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mixwright.answers.table import Answers
from mixwright.config import RunConfig
from mixwright.corpus import Corpus
from mixwright.errors import one_line
from mixwright.learner.bases import base_of, build_base
from mixwright.measure.notes import UNREAD_NOTE, WARNING_CUT_SHARE, note_nothing_right
from mixwright.measure.other_form import other_form_notes
from mixwright.measure.stage import measure_learner
from mixwright.records import Measurement, Observation, RunManifest
from mixwright.run.checked import CheckedRun
from mixwright.run.folder import RunFolder, read_json, read_measurements, write_json, write_measurements
from mixwright.run.progress import report_share
from mixwright.run.workers import Job, Workers

MEASURE_SEED = 1_000_003
"""Added to the run's seed for the measuring before; training never uses these numbers."""


@dataclass(frozen=True, slots=True)
class MeasureJob:
    """A base to measure."""

    run: str
    """Run folder."""
    base: str
    """Checkpoint folder or hub name."""
    config: RunConfig
    """Settings of the run."""
    shuffled: bool = False
    """Measure by the cells of shuffled levels."""


def seed_after(run_seed: int, seed: int) -> int:
    """Sampling seed of the measurement after training: the same in all arms of a trial seed, another one before the run.

    So sampled success is drawn anew for every seed, of the frozen starting model too.
    """
    return run_seed + MEASURE_SEED + 1 + seed


def base_name(base: str | Path, *, shuffled: bool = False) -> str:
    """What a base is called in file names, the last part of its path, or its measurement by shuffled levels."""
    return (Path(base).name or "base") + (".shuffled" if shuffled else "")


def measure_base(job: MeasureJob) -> tuple[float, list[Observation]]:
    """Measure the base on the held-out items and write measure/<name>.parquet and its completions.

    Its answers stay until the caller drops them (`drop_kept`): a stopped run goes on from there.
    Returns the share of completions that were cut, and notes on answers that were not read.
    """
    from mixwright.learner.vllm_engine import load_writing
    from mixwright.measure.kept_answers import KeepingLearner

    run, config = RunFolder(job.run), job.config
    name, corpus = base_name(job.base, shuffled=job.shuffled), Corpus.load(run.corpus)
    corpus = corpus.with_shuffled_levels(config.seed) if job.shuffled else corpus
    with load_writing(config, job.base) as base:
        learner = KeepingLearner(base, run.kept_answers(name))
        result = measure_learner(learner, corpus, config.measure, seed=config.seed + MEASURE_SEED, report_done=report_share)
        result.answers.write(run.answers(name))
        write_measurements(run.measurements(name), result.measurements)
        if job.shuffled:
            return result.cut, []
        length, chosen = config.measure.longest_completion, config.model.chat_template is not None
        notes = [note for note in note_nothing_right([result], corpus) if note.check == UNREAD_NOTE]
        return result.cut, notes + other_form_notes(learner, corpus, result, length, chosen=chosen)


def measure_start(run: CheckedRun, workers: Workers, *, say: Callable[[str], None] = lambda _: None) -> list[Measurement]:
    """Build and measure the starting model; writes measure/<base>.parquet and before.parquet."""
    config, folder = run.config, run.folder
    noted = read_json(folder.manifest, RunManifest).settings
    if noted.get("use_cpu"):
        say(
            "  on this CPU: float32 without gradient checkpointing; TRL's defaults, made for GPUs, are "
            "about 4 times slower here"
        )
    if engine := noted.get("engine"):
        say(f"  engine: {engine} generates the completions")
    build_base(run, workers)
    base = base_of(config.model, folder)
    name = base_name(base)
    job = MeasureJob(str(folder.path), base, config)
    ((cut, notes),) = workers.run([Job(f"measure {name}", measure_base, job)], title="measure")
    if cut > WARNING_CUT_SHARE:
        cut_text = f"{cut:.1%} of completions of {name} were cut at {config.measure.longest_completion:,} tokens"
        say(f"  warning: {cut_text}; change it with measure.max_new_tokens")
    for note in notes:
        say(one_line(f"  warning: {note.message}. {note.remedy}"))
    folder.notes.unlink(missing_ok=True)
    if notes:
        write_json(folder.notes, notes)
    rows = read_measurements(folder.measurements(name))
    Answers.read(folder.answers(name)).write(folder.answers("before"))
    write_measurements(folder.measurements("before"), rows)  # last: whoever finds it finds the answers
    folder.drop_kept()
    return rows
