"""Opening of a run folder: what can be refused is refused before anything is written; then the folder is locked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mixwright.config import RunConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.trainable import check_training
from mixwright.errors import InputError
from mixwright.manifest import check_changed_sections, settings_for_reader, write_manifest, write_settings
from mixwright.mine.job import REHEARSAL_MINER, table_file, with_mined_rehearsal
from mixwright.preflight import check_rows, check_settings, check_warmup
from mixwright.records import Plan, to_data
from mixwright.runs import RunFolder, read_plan
from mixwright.trainers.configs import StartJob, resolved_settings
from mixwright.trial.stage import check_trial, check_tried
from mixwright.workers.local import Job, Workers


@contextlib.contextmanager
def open_run_folder(
    config: RunConfig,
    folder: RunFolder,
    *,
    base: Path = Path(),
    workers: Workers | None = None,
    whole: bool = False,
    trains: bool = False,
    after: Path | None = None,
) -> Iterator[Corpus]:
    """The run's corpus with the folder locked. Everything that can be refused is refused before the folder is made.

    A folder that was begun with other settings takes the new ones where nothing that was finished rests on them.

    Args:
        config: the settings.
        folder: the run folder.
        base: folder that relative paths in the settings start from.
        workers: running ones, which try the settings of training on the trainer, once; None leaves that to the stages.
        whole: refuse what no trial could come of, too.
        trains: refuse rows that lack what the objective needs, too.
        after: what an earlier stage has to have written.

    Raises:
        InputError: wrong settings or data, a folder of another run or in use, or an earlier stage that did not run.
    """
    if after is not None and not after.exists():
        remedy = "Run `mixwright plan` first." if after == folder.plan else "Run `mixwright measure` first."
        raise InputError("a file of an earlier stage", "nothing", remedy, file=after)
    corpus, held, changed = _known(config, folder, base, whole=whole, trains=trains)
    fits = held and not changed
    resolved = {} if fits or workers is None else resolve_training_settings(config, corpus, workers)
    with folder.lock():
        if not held:
            corpus.save(folder.corpus)
        if not fits:
            seeds = {"run": config.seed, "trial seeds": config.trial.seeds, "bases": config.model.bases}
            write_manifest(config, folder, corpus, base=base, settings=settings_for_reader(config, resolved), seeds=seeds)
        write_settings(config, folder)
        yield corpus


def known_corpus(
    config: RunConfig, folder: RunFolder, *, base: Path = Path(), whole: bool = False, trains: bool = False
) -> Corpus:
    """The corpus that the folder holds, or that it would hold; nothing is written. Arguments and errors as of
    `open_run_folder`.
    """
    return _known(config, folder, base, whole=whole, trains=trains)[0]


def _known(
    config: RunConfig, folder: RunFolder, base: Path, *, whole: bool, trains: bool
) -> tuple[Corpus, bool, frozenset[str]]:
    """The checked corpus, whether it is the one that the folder holds, and the sections of the settings that changed."""
    changed = check_changed_sections(config, folder, base)
    held = folder.manifest.exists() and "corpus" not in changed
    corpus = Corpus.load(folder.corpus) if held else read_corpus(config.corpus, base=base)
    check_settings(config, corpus)
    if not held or changed:  # else it was checked when the run began, and a source may be long
        check_warmup(config, corpus, base)
    if whole:
        check_trial(config, corpus)
        check_rows(config, corpus)
    elif trains:
        check_training(config.train.objective, corpus)
    return corpus, held, changed


def check_plan(config: RunConfig, folder: RunFolder, corpus: Corpus) -> Plan:
    """plan.yaml, perhaps edited by hand, which must fit the data and the settings. Raises InputError with its name."""
    plan = read_plan(folder.plan)
    rows = table_file(folder, REHEARSAL_MINER)
    if any(stage.rehearse for stage in plan.stages) and not rows.is_file():
        remedy = "Go on with `mixwright run`, which writes them again."
        raise InputError("the rows to rehearse that the plan draws", "none", remedy, file=rows)
    try:
        check_tried(config, plan, with_mined_rehearsal(folder, corpus))
    except InputError as error:
        raise error.with_place(folder.plan) from None
    return plan


def resolve_training_settings(config: RunConfig, corpus: Corpus, workers: Workers) -> dict[str, Any]:
    """The settings of training as the trainer resolves them. Raises InputError for what trainer or tokenizer refuses."""
    chats = any(corpus.table["chat"].to_pylist())
    job = Job("settings", resolved_settings, StartJob(to_data(config), chats))
    (found,) = workers.run([job], progress=lambda done, jobs, left: None)
    return found


def start_workers(config: RunConfig) -> Workers:
    """The worker processes that every heavy stage shares; a context that ends them."""
    return Workers(config.trial.workers)


@contextlib.contextmanager
def open_with_workers(
    config: RunConfig, folder: RunFolder, *, base: Path = Path(), whole: bool = False, planned: bool = False
) -> Iterator[tuple[Workers, Corpus]]:
    """Running workers, and the corpus as `open_run_folder` yields it; with `planned` the plan has to be there and to fit.

    Arguments and errors as of `open_run_folder`, and as of `check_plan`.
    """
    after = folder.plan if planned else None
    with start_workers(config) as workers:
        how = {"base": base, "workers": workers, "whole": whole, "after": after}
        with open_run_folder(config, folder, **how) as corpus:
            if planned:
                check_plan(config, folder, corpus)
            yield workers, corpus
