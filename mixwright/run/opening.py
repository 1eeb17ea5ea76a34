"""Opening of a run folder: what can be refused is refused before anything is written; then the folder is locked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mixwright.config import RunConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.trainable import check_training, leave_out_bare
from mixwright.errors import InputError
from mixwright.learner.engines import engine_name
from mixwright.records import from_data, to_data
from mixwright.run.checked import CheckedRun
from mixwright.run.folder import RunFolder
from mixwright.run.manifest import check_changed_sections, digests_of, settings_for_reader, write_manifest, write_settings
from mixwright.run.preflight import check_rows, check_settings, check_trial, check_warmup
from mixwright.run.ray_workers import start_workers
from mixwright.run.workers import Job, Workers
from mixwright.trainers.configs import SettingsJob, resolve_settings


@contextlib.contextmanager
def open_run_folder(
    config: RunConfig,
    folder: RunFolder,
    *,
    relative_to: Path = Path(),
    workers: Workers | None = None,
    for_trial: bool = False,
    for_training: bool = False,
    required_file: Path | None = None,
) -> Iterator[CheckedRun]:
    """The checked run with the folder locked. Everything that can be refused is refused before the folder is made.

    A folder that was begun with other settings takes the new ones where nothing that was finished rests on them.

    Args:
        config: the settings.
        folder: the run folder.
        relative_to: folder that relative paths in the settings start from.
        workers: running ones, which try the settings of training on the trainer, once; None leaves that to the stages.
        for_trial: refuse what no trial could come of, too.
        for_training: refuse rows that lack what the objective needs, too.
        required_file: what an earlier stage has to have written.

    Raises:
        InputError: wrong settings or data, a folder of another run or in use, or an earlier stage that did not run.
    """
    if required_file is not None and not required_file.exists():
        remedy = "Run `mixwright plan` first." if required_file == folder.plan else "Run `mixwright measure` first."
        raise InputError("a file of an earlier stage", "nothing", remedy, file=required_file)
    run = validate_run(config, folder, relative_to=relative_to, for_trial=for_trial, for_training=for_training)
    is_up_to_date = run.holds_rows and not run.changed_sections
    resolved = {} if is_up_to_date or workers is None else resolve_training_settings(run, workers)
    with folder.lock():
        if not run.holds_rows:
            run.corpus.save(folder.corpus)
        if not is_up_to_date:
            seeds = {"run": config.seed, "trial_seed_count": config.trial.seeds}
            settings = settings_for_reader(config.train, config.planner, resolved)
            if config.measure.engine == "vllm":
                settings |= {"engine": engine_name()}
            inputs = digests_of(run.corpus, config.corpus, relative_to)
            write_manifest(folder, inputs, config.model.path, settings=settings, seeds=seeds)
        write_settings(config, folder)
        yield run


def validate_run(
    config: RunConfig, folder: RunFolder, *, relative_to: Path = Path(), for_trial: bool = False, for_training: bool = False
) -> CheckedRun:
    """The one check of settings and data; nothing is written. Arguments and errors as of `open_run_folder`.

    The corpus is the one that the folder holds, or that it would hold.
    """
    changed_sections = check_changed_sections(config, folder, relative_to)
    holds_rows = folder.manifest.exists() and "corpus" not in changed_sections
    if holds_rows:
        corpus = Corpus.load(folder.corpus)
    else:
        corpus = leave_out_bare(read_corpus(config.corpus, relative_to=relative_to))
    check_settings(config, corpus)
    if not holds_rows or changed_sections:  # else it was checked when the run began, and a source may be long
        check_warmup(config.model, config.corpus, corpus, relative_to)
    if for_trial:
        check_trial(config, corpus)
        check_rows(config, corpus)
    elif for_training:
        check_training(config.train.objective, corpus)
    # made in code, or changed by an option: in the bounds of run.yaml, too
    checked_config = from_data(RunConfig, to_data(config))
    return CheckedRun(checked_config, folder, corpus, relative_to, holds_rows, changed_sections)


def resolve_training_settings(run: CheckedRun, workers: Workers) -> dict[str, Any]:
    """The settings of training as the trainer resolves them. Raises InputError for what trainer or tokenizer refuses."""
    has_chats = any(run.corpus.table["chat"].to_pylist())
    job = Job("settings", resolve_settings, SettingsJob(run.config, has_chats))
    (settings,) = workers.run([job], progress=lambda done, jobs, seconds_left: None)
    return settings


@contextlib.contextmanager
def open_with_workers(
    config: RunConfig, folder: RunFolder, relative_to: Path = Path(), *, for_trial: bool = False, needs_plan: bool = False
) -> Iterator[tuple[Workers, CheckedRun]]:
    """Running workers, and the run as `open_run_folder` yields it; with `needs_plan` the plan has to be there.

    Arguments and errors as of `open_run_folder`.
    """
    required_file = folder.plan if needs_plan else None
    with start_workers(config.trial) as workers:
        options = {"relative_to": relative_to, "workers": workers, "for_trial": for_trial, "required_file": required_file}
        with open_run_folder(config, folder, **options) as run:
            yield workers, run
