"""Measurements of the starting models, made once per base and shared by every branch that starts from it."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mixwright.answers.table import Answers
from mixwright.config import RunConfig
from mixwright.corpus import Corpus
from mixwright.corpus.shuffled_levels import shuffle_levels
from mixwright.errors import one_line
from mixwright.estimates.readings import GRADED_OUTCOMES, outcome_of
from mixwright.learner.bases import bases_of, build_bases
from mixwright.measure.kept_folder import ANSWERS_FOLDER, drop_kept
from mixwright.measure.notes import UNREAD_NOTE, WARNING_CUT_SHARE, note_nothing_right, write_notes
from mixwright.measure.other_form import other_form_notes
from mixwright.measure.passes import Passes
from mixwright.measure.stage import measure_learner
from mixwright.records import Measurement, Observation, RunManifest
from mixwright.run.checked import CheckedRun
from mixwright.run.folder import RunFolder, read_json, read_measurements, write_measurements
from mixwright.run.progress import report_share
from mixwright.run.workers import Job, Workers

ITEMS_PER_PART = 64
"""Fewest held-out items for which another process loads the model."""
P_VALUE_UNIT = "p value"
"""Unit of a measurement that is the p value of a test."""
MEASURE_SEED = 1_000_003
"""Added to the run's seed for the measuring before; training never uses these numbers."""


@dataclass(frozen=True, slots=True)
class MeasureJob:
    """One base to measure."""

    run: str
    """Run folder."""
    base: str
    """Checkpoint folder or hub name."""
    name: str
    """Name of the base in files."""
    config: RunConfig
    """Settings of the run."""
    shuffled: bool = False
    """Measure by the cells of shuffled levels."""
    part: tuple[int, int] | None = None
    """Which of how many parts of the items is answered, and not measured; None measures all."""


def seed_after(run_seed: int, seed: int) -> int:
    """Sampling seed of the measurement after training: the same in all arms of a trial seed, another one before the run.

    So sampled success is drawn anew for every seed, of the frozen starting model too.
    """
    return run_seed + MEASURE_SEED + 1 + seed


def shuffled_name(name: str) -> str:
    """What the measurement of a base by shuffled levels is called in files."""
    return f"{name}.shuffled"


def base_name(base: str | Path) -> str:
    """What a base is called in file names: the last part of its path."""
    return Path(base).name or "base"


def parts_folder(run: RunFolder, base: str) -> Path:
    """Where the answers to parts of the items lie; a base may be called as a file is."""
    return run.path / ANSWERS_FOLDER / f"parts-{hashlib.sha256(base.encode()).hexdigest()[:16]}"


def measure_base(job: MeasureJob) -> tuple[float, list[Observation]]:
    """Measure one base on the held-out items and write measure/<name>.parquet and its completions; of a part of the items
    the answers alone.

    What it wrote stays until all bases are measured, see `drop_kept`: a stopped run measures them again from there.
    Returns the share of completions that were cut, and notes on answers that were not read.
    """
    from mixwright.learner.vllm_engine import load_writing
    from mixwright.measure.kept_answers import KeepingLearner

    run, config, parts = RunFolder(job.run), job.config, parts_folder(RunFolder(job.run), job.base)
    name, corpus = shuffled_name(job.name) if job.shuffled else job.name, Corpus.load(run.corpus)
    corpus = shuffle_levels(corpus, config.seed) if job.shuffled else corpus
    answers_file = run.path / ANSWERS_FOLDER / f"{name}.jsonl" if job.part is None else parts / f"{job.part[0]}.jsonl"
    with load_writing(config, job.base) as base:
        learner = KeepingLearner(base, answers_file, others=sorted(parts.glob("*.jsonl")))
        if job.part is not None:
            passes = Passes(learner, config.measure, corpus, config.seed + MEASURE_SEED, report_share)
            passes.write(range(job.part[0], len(passes.items), job.part[1]))
            return 0.0, []
        result = measure_learner(learner, corpus, config.measure, seed=config.seed + MEASURE_SEED, report_done=report_share)
        result.answers.write(run.answers(name))
        write_measurements(run.measurements(name), result.measurements)
        if job.shuffled:
            return result.cut, []
        length, chosen = config.measure.longest_completion, config.model.chat_template is not None
        notes = [note for note in note_nothing_right([result], corpus) if note.check == UNREAD_NOTE]
        return result.cut, notes + other_form_notes(learner, corpus, result, length, chosen=chosen)


def part_jobs(jobs: Sequence[MeasureJob], parts: int) -> list[Job]:
    """The jobs that write the answers of so many parts of each model's items, before it is measured."""
    return [
        Job(f"{job.name}, part {number} of {parts}", measure_base, replace(job, part=(number, parts)))
        for number in range(parts)
        for job in jobs
    ]


def count_parts(config: RunConfig, corpus: Corpus, workers: int, bases: int) -> int:
    """Parts of a starting model's items that are written side by side, each by a process that loads the model.

    More than one only where the settings name workers or a cluster: copies of a model have to fit.
    """
    measure, trial = config.measure, config.trial
    writes = outcome_of(measure.probes, measure.decoding) in GRADED_OUTCOMES
    if not writes or not (trial.cluster or trial.workers):
        return 1
    graded = [row for row in corpus.measured() if row.answer is not None and corpus.tasks[row.task].kind == "verifiable"]
    items = sum(min(count, measure.items) for count in Counter((row.task, row.level) for row in graded).values())
    return max(1, min(workers // bases, items // ITEMS_PER_PART))


def pool_measurements(bases: Sequence[Sequence[Measurement]]) -> list[Measurement]:
    """The measurements of several bases as one: means weighted by n.

    Half-widths add as those of independent estimates do. With few bases, what differs between bases is not in the interval:
    the plan asks what these bases can do, not what others could. Of p values twice the mean is taken, which is a p value
    however they depend on each other (Vovk and Wang 2020).
    """
    if len(bases) == 1:
        return list(bases[0])
    groups: dict[tuple[Any, ...], list[Measurement]] = defaultdict(list)
    for row in (row for rows in bases for row in rows):
        groups[row.probe, row.task, row.level, row.name, row.unit].append(row)
    return [_mean(rows) for rows in groups.values()]


def _mean(rows: Sequence[Measurement]) -> Measurement:
    total_n = sum(row.n for row in rows)
    shares = [row.n / total_n for row in rows] if total_n else [1 / len(rows)] * len(rows)
    value = sum(share * row.value for share, row in zip(shares, rows, strict=True))
    if rows[0].unit == P_VALUE_UNIT:
        value = min(1.0, 2 * value)
        return replace(rows[0], value=value, low=value, high=value, n=total_n)
    shares_and_rows = list(zip(shares, rows, strict=True))
    below = math.sqrt(sum((share * (row.value - row.low)) ** 2 for share, row in shares_and_rows))
    above = math.sqrt(sum((share * (row.high - row.value)) ** 2 for share, row in shares_and_rows))
    return replace(rows[0], value=value, low=value - below, high=value + above, n=total_n)


def measure_bases(run: CheckedRun, workers: Workers, *, say: Callable[[str], None] = lambda _: None) -> list[Measurement]:
    """Build and measure every starting model; writes measure/<base>.parquet and, all together, before.parquet."""
    config, folder = run.config, run.folder
    if read_json(folder.manifest, RunManifest).settings.get("use_cpu"):
        say(
            "  on this CPU: float32 without gradient checkpointing; TRL's defaults, made for GPUs, are "
            "about 4 times slower here"
        )
    if engine := read_json(folder.manifest, RunManifest).settings.get("engine"):
        say(f"  engine: {engine} generates the completions")
    build_bases(run, workers)
    bases = bases_of(config.model, folder)
    measure_jobs = [MeasureJob(str(folder.path), b, base_name(b), config) for b in bases]
    parts = count_parts(config, run.corpus, workers.count, len(bases))
    if parts > 1:
        workers.run(part_jobs(measure_jobs, parts), title="write")
    jobs = [Job(f"measure {job.name}", measure_base, job) for job in measure_jobs]
    notes: list[Observation] = []
    for path, (cut, doubts) in zip(bases, workers.run(jobs, title="measure"), strict=True):
        if cut > WARNING_CUT_SHARE:
            length = config.measure.longest_completion
            cut_text = f"{cut:.1%} of completions of {base_name(path)} were cut at {length:,} tokens"
            say(f"  warning: {cut_text}; change it with measure.max_new_tokens")
        for note in doubts:
            say(one_line(f"  warning: {note.message}. {note.remedy}"))
        notes += doubts
    folder.notes.unlink(missing_ok=True)
    if notes:
        write_notes(folder, notes)
    rows = pool_measurements([read_measurements(folder.measurements(base_name(b))) for b in bases])
    first, *others = (Answers.read(folder.answers(base_name(b))) for b in bases)
    first.followed_by(*others).write(folder.answers("before"))
    write_measurements(folder.measurements("before"), rows)  # last: whoever finds it finds the answers
    drop_kept(folder.path)
    return rows
