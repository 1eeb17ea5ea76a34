"""Stages as functions, for notebooks and scripts: each does what the verb of its name does on the command line.

    from mixwright.api import audit, measure, plan, run, trial, verdict

`audit`, `measure` and `plan` take and return records and write no file; `run`, `trial` and `verdict` work on a run folder.
A corpus is a `Corpus`, the path or name of examples (all of them, nothing is held out), or a `CorpusConfig`. `run` and
`trial` start worker processes, so a script calls them under `if __name__ == "__main__":`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mixwright import pipeline
from mixwright.audit.stage import run_audit
from mixwright.config import CorpusConfig, MeasureConfig, PlanConfig, RunConfig, TrainConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.graded import read_graded
from mixwright.corpus.trainable import NEEDED_COLUMNS, check_training
from mixwright.errors import InputError
from mixwright.measure.fitting import usual_items
from mixwright.measure.free_answers import find_room
from mixwright.measure.room import keep_fitting_corpus
from mixwright.measure.stage import measure_learner
from mixwright.opening import open_with_workers
from mixwright.plan.stage import make_plan
from mixwright.preflight import check_items, check_settings
from mixwright.records import Measurement, Observation, Plan, TrialResult
from mixwright.runs import RunFolder, read_yaml
from mixwright.trial.stage import checked_trial, try_plan
from mixwright.verdict.stage import render, summarise

if TYPE_CHECKING:
    from rich.console import Console

    from mixwright.learner.learner import Learner

__all__ = ["audit", "measure", "plan", "run", "trial", "verdict"]

IN_MEMORY = CorpusConfig("corpus in memory")
"""Stands in settings for rows that were read already."""


def run(
    config: RunConfig | str | Path,
    folder: RunFolder | str | Path | None = None,
    *,
    say: Callable[[str], None] = lambda line: None,
    console: Console | None = None,
) -> Path:
    """The whole line, corpus to verdict; goes on where an earlier call stopped. Returns the page.

    >>> page = run("run.yaml")
    >>> page.as_posix()
    'runs/run/verdict.html'

    Args:
        config: a settings file, or settings; relative paths start from the file's folder, or from the current one.
        folder: where everything is written; by default `runs/` and the name of the settings file.
        say: told what is being done, line by line.
        console: where the first screen of the page is printed, too; None prints nothing.

    Raises:
        InputError: something in the settings or the data, before the folder is made where that can be known.
    """
    settings, place, base = _settings(config, folder)
    page = pipeline.run(settings, place, base=base, say=say)
    if console is not None:
        summarise(place, console)
    return page


def audit(corpus: Corpus | CorpusConfig | str | Path, *, checks: Sequence[str] | None = None) -> list[Observation]:
    """What is in the data, and what should not be: errors, then warnings, then infos. No model needed.

    >>> for seen in audit("train.jsonl", checks=["duplicates"]):
    ...     print(seen.severity, seen.task, seen.count, "of", seen.total)
    info sum 1 of 41

    Args:
        corpus: what is looked at; contamination needs both splits, so a `CorpusConfig` with `eval`.
        checks: names of checks; None for all.

    Raises:
        InputError: data that cannot be read, or an unknown check.
    """
    return run_audit(_as_corpus(corpus), checks)


def measure(
    checkpoint: Learner | str | Path,
    corpus: Corpus | CorpusConfig | str | Path,
    *,
    start: Learner | str | Path | None = None,
    settings: MeasureConfig | None = None,
    seed: int = 0,
) -> list[Measurement]:
    """What a model can do now, per task and level and per item, each number with its interval and its null.

    >>> rows = measure("checkpoint", "train.jsonl", settings=MeasureConfig(items=8, samples=2, probes=("competence",)))
    >>> [(row.task, row.n) for row in rows if row.name == "pass@1" and row.example is None]
    [('sum', 16)]

    Args:
        checkpoint: a folder, a hub name, or a loaded model, which is left as it was.
        corpus: its held-out rows are measured (all of them when there are none).
        start: the model that training began with, for drift.
        settings: probes and sizes; None takes as many items as the command does, completes a few freely and leaves the room
            that their answers need, and takes the defaults otherwise.
        seed: of samples; the same before and after couples the two.

    Raises:
        InputError: no such model, nothing to grade, or an unknown probe.
    """
    from mixwright.learner.learner import Learner
    from mixwright.learner.load import load_learner

    rows = _read_graded_corpus(corpus)
    check_items(rows)
    chosen = settings or MeasureConfig(items=usual_items(rows))
    check_settings(RunConfig(IN_MEMORY, measure=chosen), rows)
    now, first = (
        model if model is None or isinstance(model, Learner) else load_learner(str(model)) for model in (checkpoint, start)
    )
    assert now is not None
    if settings is None:
        rows, notes = keep_fitting_corpus([now], rows, chosen)
        for note in notes:
            logging.getLogger("mixwright").warning(note)
        room, continued, _ = find_room([now], rows, chosen, logging.getLogger("mixwright").info)
        chosen = replace(chosen, max_new_tokens=room.tokens, continued_tokens=continued)
    return list(measure_learner(now, rows, chosen, start=first, seed=seed).measurements)


def plan(
    corpus: Corpus | CorpusConfig | str | Path,
    measured: Sequence[Measurement],
    *,
    settings: PlanConfig | None = None,
    train: TrainConfig | None = None,
) -> Plan:
    """Weights, band and levers with a reason for each number, from what was measured. Pure: no model, no torch.

    >>> rows = measure("checkpoint", "train.jsonl", settings=MeasureConfig(items=8, samples=2, probes=("competence",)))
    >>> made = plan("train.jsonl", rows, train=TrainConfig(steps=20))
    >>> made.stages[0].steps, dict(made.stages[0].weights)
    (20, {'sum': 1.0})

    Args:
        corpus: what is to be trained on, the one that was measured.
        measured: what `measure` returned for the model that training begins with.
        settings: the planner, its options, and what you want otherwise.
        train: objective, steps, prompts per step and beta are read.

    Raises:
        InputError: an unknown planner or option, rows that the objective cannot be trained on, or a planner that lacks
            what it plans by.
    """
    config = RunConfig(IN_MEMORY, plan=settings or PlanConfig(), train=train or TrainConfig())
    rows = _read_graded_corpus(corpus)
    if config.train.objective in NEEDED_COLUMNS:  # others are refused with the plan
        check_training(config.train.objective, rows)
    return make_plan(config, rows, measured)


def trial(
    config: RunConfig | str | Path,
    folder: RunFolder | str | Path | None = None,
    *,
    say: Callable[[str], None] = lambda line: None,
) -> TrialResult:
    """Try the plan of a run folder against simpler choices, paired by seed; where it helps, against its nulls.

    >>> result = trial("run.yaml")
    >>> sorted({effect.against for effect in result.effects if effect.arm == "steered"})
    ['frozen', 'uniform']

    Args:
        config: as `run` takes them.
        folder: as `run` takes it; measured and planned already. What is finished is not trained again.
        say: told what is being done, and before the first branch what the trial can see.

    Raises:
        InputError: something in the settings, the data or the plan, or a folder without a plan.
    """
    settings, place, base = _settings(config, folder)
    with open_with_workers(settings, place, base=base, whole=True, planned=True) as (workers, checked):
        return try_plan(checked, checked_trial(checked), workers, say=say)


def verdict(folder: RunFolder | str | Path, console: Console | None = None) -> Path:
    """Judge what a run folder holds: what was learnt, what was damaged, which lever worked. Returns the page. No torch.

    >>> verdict("runs/run").name
    'verdict.html'

    Args:
        folder: of a run, or of a comparison of two checkpoints.
        console: where the first screen of the page is printed, too; None prints nothing.

    Raises:
        InputError: no run, or a file in it is broken.
    """
    run = _folder(folder)
    page = render(run)
    if console is not None:
        summarise(run, console)
    return page


def _settings(config: RunConfig | str | Path, folder: RunFolder | str | Path | None) -> tuple[RunConfig, RunFolder, Path]:
    """Settings, run folder, and the folder that relative paths start from; nothing is made."""
    if isinstance(config, RunConfig):
        if folder is None:
            raise InputError("a folder beside settings that no file names", "none", "Name one: folder='runs/mine'.")
        return config, _folder(folder), Path()
    path = Path(config)
    return read_yaml(path, RunConfig), _folder(folder or Path("runs") / path.stem), path.parent


def _folder(folder: RunFolder | str | Path) -> RunFolder:
    return folder if isinstance(folder, RunFolder) else RunFolder(folder)


def _as_corpus(corpus: Corpus | CorpusConfig | str | Path) -> Corpus:
    """The corpus, read where it is not yet."""
    return corpus if isinstance(corpus, Corpus) else read_corpus(corpus)


def _read_graded_corpus(corpus: Corpus | CorpusConfig | str | Path) -> Corpus:
    """The same; of a path, which names no graders, with those that its answers look like."""
    if not isinstance(corpus, str | Path):
        return _as_corpus(corpus)
    return read_graded(CorpusConfig(str(corpus), eval_share=0.0), named=False).corpus
