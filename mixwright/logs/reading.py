"""Reader of any evaluation log: which form it has is seen in what it holds; folders are known by names of their files."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mixwright.corpus.cells import check_keys
from mixwright.corpus.reading import SUFFIXES, refuse_pointer, suffix_of
from mixwright.errors import InputError, one_line
from mixwright.logs import inspect_ai, lighteval, lm_eval, plain
from mixwright.logs.entries import EvaluationLog
from mixwright.logs.files import (
    PARQUET_MAGIC,
    find_columns,
    find_foreign,
    find_top_keys,
    list_files,
    read_head,
    read_object_file,
)
from mixwright.logs.values import LONGEST_NAME
from mixwright.run.folder import check_regular

Reader = Callable[[str], EvaluationLog]
FORMS = "lm-evaluation-harness, Inspect, lighteval, or JSONL with task, id and score"
FILES_OF_LOGS = (*SUFFIXES, ".eval")
LOG_SUFFIXES = (*FILES_OF_LOGS, ".csv", ".tsv", ".txt", ".html", ".zip", ".zst")
"""Suffixes of files that are logs, or are taken for some; files of settings have others."""


HARNESSES = (lm_eval.read_lm_eval, lighteval.read_lighteval, inspect_ai.read_inspect)
SHOWN_CHARACTERS = 100
"""Characters of the name of a task of which nothing was read."""
NO_LOG_MARKS = ("config.json", "adapter_config.json", "run.yaml", "manifest.json")
"""Files of folders that are checkpoints, adapters or run folders."""


def find_reader(source: str) -> Reader | None:
    """The reader of a log; None for what is none: a checkpoint, a run folder, settings, a name on the hub.

    Raises:
        InputError: a pipe, a socket or a device, a pointer of Git LFS, or a folder with logs of several harnesses.
    """
    path = Path(source)
    if not os.path.exists(source):  # noqa: PTH110 - false for a name that no file can have
        return None
    check_regular(path)
    refuse_pointer(path)
    return _reader_of_folder(path) if path.is_dir() else _reader_of_file(path)


def read_log(source: str) -> EvaluationLog:
    """The log. Raises InputError for what is no log, and with file and line for what is damaged."""
    reader = find_reader(source)
    if reader is None:
        raise InputError(f"an evaluation log ({FORMS})", "something else", "See docs/logs.md.", file=source)
    log = reader(source)
    if not log.answers:
        raise InputError("a log with answers", "none", "Run the evaluation with its samples logged.", file=source)
    check_keys((name, None) for name in log.tasks)
    for name in (name for task in log.tasks.values() for name in task.metrics if len(name) > LONGEST_NAME):
        got = f"{one_line(name, SHOWN_CHARACTERS)} in a log"
        raise InputError(f"names of metrics of at most {LONGEST_NAME} characters", got, "Rename it.", file=source)
    return replace(
        log,
        model=one_line(log.model, LONGEST_NAME),
        unread={one_line(name, SHOWN_CHARACTERS): words for name, words in _name_unread(Path(source), log).items()},
    )


def _name_unread(source: Path, log: EvaluationLog) -> dict[str, str]:
    """Files of a folder that are logs by what they hold, whatever they are called, and tasks that have results alone.

    Returns:
        Name of what was not read -> words on that, which follow the name of the log.
    """
    read = {os.path.realpath(path): Path(path) for path in log.files}
    # a copy that was stopped half-way may be hidden, and results may lie beside the folder that was named
    files = [*list_files(source, lambda _: True, hidden=True), *read.values()] if source.is_dir() else [source]
    unread: dict[str, str] = {}
    for path in {os.path.realpath(path): path for path in files}.values():
        head = read_head(path)
        keys = find_top_keys(head)
        harness = next((one for one in HARNESSES if one.result_keys and keys >= one.result_keys), None)
        harness = lm_eval.read_lm_eval if harness is None and lm_eval.RESULTS_NAME.fullmatch(path.name) else harness
        if harness is not None:  # results of another harness say nothing of the tasks that were read, even if they name them
            is_own = harness.form == log.form
            tasks = harness.list_tasks(read_object_file(path)) - (log.tasks.keys() if is_own else set())
            by = "" if is_own else f" by {harness.form}"
            unread |= dict.fromkeys(sorted(tasks), f"has its results{by} ({path.name}) but no {harness.answers}")
        elif os.path.realpath(path) in read:
            continue
        elif suffix_of(path) in FILES_OF_LOGS and (foreign := find_foreign(head)):
            unread[path.name] = f"has this file, which is {foreign[0]}"
        elif ".eval" in path.name.lower() or _reader_of_file(path) is not None:
            unread[path.name] = "has this file, which contains a log but was not read"
    return unread


def refuse_unknown_file(source: str) -> None:
    """Raises InputError for a file that is called as logs are and is none, or is not there: no checkpoint is such a file."""
    path = Path(source)
    if suffix_of(path) in FILES_OF_LOGS and not os.path.lexists(source):
        raise InputError("an evaluation log, or a model", "nothing there", "Correct the path.", file=source)
    if path.is_file() and suffix_of(path) in LOG_SUFFIXES and find_reader(source) is None:
        head = read_head(path)
        keys, remedy = find_top_keys(head), "See docs/logs.md for the forms of logs."
        shown = f"a file whose first row has the keys {', '.join(sorted(keys)[:8])}"[:160]
        got = shown if keys else "a file without rows of a log"
        if keys >= lighteval.RESULT_KEYS:
            got, remedy = "results of lighteval without the answers", "Name the folder with details, or --save-details."
        raise InputError(f"an evaluation log ({FORMS})", *(find_foreign(head) or (got, remedy)), file=source)


def _reader_of_folder(path: Path) -> Reader | None:
    if any((path / mark).exists() for mark in NO_LOG_MARKS):
        return None
    found = {harness: harness.list_logs(path) for harness in HARNESSES}
    readers = [harness for harness, files in found.items() if files]
    if len(readers) > 1:
        got = " and ".join(found[reader][0].name for reader in readers)
        raise InputError("logs of one harness", got, "Name the folder of one of them.", file=path)
    if not readers and list_files(path, lm_eval.RESULTS_NAME.fullmatch):
        return lm_eval.read_lm_eval  # which says that there are no samples
    return readers[0] if readers else None


def _reader_of_file(path: Path) -> Reader | None:
    head = read_head(path)
    is_table = head.startswith(PARQUET_MAGIC)
    if not is_table and inspect_ai.is_inspect(path):
        return inspect_ai.read_inspect
    keys = find_columns(path) if is_table else find_top_keys(head)
    is_sample = keys >= {"doc_id"} and keys & {"doc", "resps", "filtered_resps", "target"}
    if is_sample or keys >= lm_eval.RESULT_KEYS:
        return lm_eval.read_lm_eval
    if keys >= {"task", "score"}:
        return plain.read_plain
    return lighteval.read_lighteval if is_table else None
