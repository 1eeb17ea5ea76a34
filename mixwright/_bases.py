"""The models a run starts from: given checkpoints as they are, or tiny ones built and warmed up here, in parallel."""

from __future__ import annotations

import math
import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixwright.config import RunConfig
from mixwright.learner.warmup_rows import lessons
from mixwright.records import Measurement, from_data, to_data
from mixwright.runs import RunFolder
from mixwright.workers.pool import Job, Pool
from mixwright.workers.progress import report

if TYPE_CHECKING:
    from mixwright.corpus import Corpus

TINY = "tiny:"
P_VALUE = "p value"
"""Unit of a measurement that is the p value of a test."""
MARK = "config.json"
"""Written by `save_pretrained`; a base is moved to its place only when it is whole."""


@dataclass(frozen=True, slots=True)
class BaseJob:
    """One tiny base to build; plain data."""

    run: str
    """Run folder, with corpus/."""
    place: int
    """Which of the bases."""
    config: Mapping[str, Any]
    """A `RunConfig` as data."""
    base: str = ""
    """Folder that relative paths in it start from."""


def bases_of(config: RunConfig, run: RunFolder) -> list[str]:
    """Checkpoint folders or hub names of the starting models; tiny ones may not be built yet."""
    if config.model.path != TINY:
        return [config.model.path]
    return [str(run.path / "bases" / f"base-{place}") for place in range(max(1, config.model.bases))]


def build_bases(config: RunConfig, run: RunFolder, pool: Pool, base: Path) -> None:
    """Build and warm up the tiny bases that are not there yet; nothing to do for given checkpoints.

    Args:
        config: the settings.
        run: the run folder.
        pool: running workers.
        base: folder that relative paths in the settings start from.
    """
    if config.model.path != TINY:
        return
    missing = [place for place, built in enumerate(bases_of(config, run)) if not (Path(built) / MARK).is_file()]
    data, log = to_data(config), run.path / "bases" / "log.txt"
    jobs = [Job(f"base {place}", build_base, BaseJob(str(run.path), place, data, str(base)), log=log) for place in missing]
    if jobs:
        pool.run(jobs, title="warm up")


def build_base(job: BaseJob) -> str:
    """Build one tiny base, teach it what `model.warmup` says, and save it. Runs in a worker. Returns its folder."""
    from mixwright.corpus import Corpus
    from mixwright.learner.tiny import build_tiny
    from mixwright.learner.warmup import warm_up

    run, config = RunFolder(job.run), from_data(RunConfig, dict(job.config))
    corpus, seed = Corpus.load(run.corpus), config.seed + job.place
    learner = build_tiny(_texts(corpus.select(split="train")), config.model, seed)
    if config.model.warmup is not None:
        taught = lessons(config, corpus, Path(job.base))
        warm_up(learner, taught, config.model.warmup, seed=seed, progress=lambda step, steps, _: report(step / steps))
    final = Path(bases_of(config, run)[job.place])
    partial = final.with_name(f".{final.name}.partial")
    try:
        learner.save(partial)
        shutil.rmtree(final, ignore_errors=True)  # one that is not whole
        partial.rename(final)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return str(final)


@dataclass(frozen=True, slots=True)
class StartJob:
    """Settings to try before anything is written; plain data."""

    config: Mapping[str, Any]
    """A `RunConfig` as data."""
    chats: bool
    """Whether prompts are chat messages."""


def resolved_settings(job: StartJob) -> dict[str, Any]:
    """The settings that matter as the trainer resolves them, defaults included. Runs in a worker.

    Raises:
        InputError: as `check_train_settings`, or chats for a tokenizer without a chat template.
    """
    from mixwright.learner.load import check_checkpoint
    from mixwright.trainers._configs import check_train_settings

    config = from_data(RunConfig, dict(job.config))
    resolved = check_train_settings(config)
    if config.model.path != TINY:
        check_checkpoint(config.model.path, config.model.adapter, chats=job.chats)
    if config.train.objective != "grpo":
        return {name: getattr(resolved, name) for name in ("learning_rate", "bf16", "use_cpu")}
    names = (
        "loss_type",
        "scale_rewards",
        "epsilon",
        "num_iterations",
        "beta",
        "learning_rate",
        "bf16",
        "use_cpu",
        "mask_truncated_completions",
    )
    return {name: getattr(resolved, name) for name in names if hasattr(resolved, name)}


def _texts(corpus: Corpus) -> Iterable[str]:
    """What the tokenizer learns from: prompts with their answers."""
    for example in corpus:
        for text in (example.prompt, example.target if example.target is not None else example.answer):
            if isinstance(text, str):
                yield text
            elif text is not None:
                yield from (message["content"] for message in text)


def pooled(bases: Sequence[Sequence[Measurement]]) -> list[Measurement]:
    """The measurements of several bases as one: means weighted by n.

    Half-widths add as those of independent estimates do. With few bases, what differs between bases is not in the interval:
    the plan asks what these bases can do, not what others could. Of p values twice the mean is taken, which is a p value
    however they depend on each other (Vovk and Wang 2020).
    """
    if len(bases) == 1:
        return list(bases[0])
    groups: dict[tuple[Any, ...], list[Measurement]] = defaultdict(list)
    for row in (row for rows in bases for row in rows):
        groups[row.probe, row.task, row.level, row.name, row.unit, row.example].append(row)
    return [_mean(rows) for rows in groups.values()]


def _mean(rows: Sequence[Measurement]) -> Measurement:
    n = sum(row.n for row in rows)
    shares = [row.n / n for row in rows] if n else [1 / len(rows)] * len(rows)
    value = sum(share * row.value for share, row in zip(shares, rows, strict=True))
    if rows[0].unit == P_VALUE:
        value = min(1.0, 2 * value)
        return replace(rows[0], value=value, low=value, high=value, n=n)
    below = math.sqrt(sum((share * (row.value - row.low)) ** 2 for share, row in zip(shares, rows, strict=True)))
    above = math.sqrt(sum((share * (row.high - row.value)) ** 2 for share, row in zip(shares, rows, strict=True)))
    return replace(rows[0], value=value, low=value - below, high=value + above, n=n)
