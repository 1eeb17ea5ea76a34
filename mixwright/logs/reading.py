"""Reader of any evaluation log: which form it has is seen in what it holds; folders are known by names of their files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from mixwright.corpus.reading import SUFFIXES, refuse_pointer, suffix_of
from mixwright.errors import InputError, one_line
from mixwright.logs import inspect_ai, lighteval, lm_eval, plain
from mixwright.logs.entries import EvaluationLog, LoggedAnswer
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
LOG_SUFFIXES = (*SUFFIXES, ".eval", ".csv", ".tsv", ".txt", ".html", ".zip", ".zst")
"""Suffixes of files that are logs, or are taken for some; files of settings have others."""


class _Results(NamedTuple):
    """Results of a harness, which say nothing of single items."""

    keys: frozenset[str]
    """What such a file has."""
    list_tasks: Callable[[Mapping[str, Any]], set[str]]
    """Tasks that it has results of."""
    answers: str
    """What the harness calls the files that have the answers."""


RESULTS = {
    lm_eval.FORM: _Results(lm_eval.RESULT_KEYS, lm_eval.list_tasks, "samples"),
    lighteval.FORM: _Results(lighteval.RESULT_KEYS, lighteval.list_tasks, "details"),
}
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
    try:
        if not path.exists():
            return None
    except (OSError, ValueError):  # a name that no file can have
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
    if Path(source).is_dir():
        log = replace(log, unread={**log.unread, **_name_unread(Path(source), log)})
    if not log.answers:
        raise InputError("a log with answers", "none", "Run the evaluation with its samples logged.", file=source)
    for name in (name for task in log.tasks.values() for name in task.metrics if len(name) > LONGEST_NAME):
        got = f"{one_line(name, SHOWN_CHARACTERS)} in a log"
        raise InputError(f"names of metrics of at most {LONGEST_NAME} characters", got, "Rename it.", file=source)
    return replace(
        log,
        model=one_line(log.model, LONGEST_NAME),
        answers=tuple(map(_mend_texts, log.answers)),
        unread={one_line(name, SHOWN_CHARACTERS): words for name, words in log.unread.items()},
    )


def _name_unread(folder: Path, log: EvaluationLog) -> dict[str, str]:
    """Files of a folder that are logs by what they hold, whatever they are called, and tasks that have results alone.

    Returns:
        Name of what was not read -> words on that, which follow the name of the log.
    """
    read = {os.path.realpath(path) for path in log.files}
    unread: dict[str, str] = {}
    for path in list_files(folder, lambda _: True, hidden=True):  # a copy that was stopped half-way may be hidden
        keys = find_top_keys(read_head(path))
        form = next((form for form, known in RESULTS.items() if keys >= known.keys), None)
        form = lm_eval.FORM if form is None and lm_eval.is_results_name(path.name) else form
        if form is not None:  # results of another harness say nothing of the tasks that were read, even if they name them
            tasks = RESULTS[form].list_tasks(read_object_file(path)) - (log.tasks.keys() if form == log.form else set())
            by = "" if form == log.form else f" by {form}"
            unread |= dict.fromkeys(sorted(tasks), f"has its results{by} ({path.name}) but no {RESULTS[form].answers}")
        elif os.path.realpath(path) in read or path.name in log.unread:
            continue
        elif path.name.lower().endswith(".eval") or _reader_of_file(path) is not None:
            unread[path.name] = "has this file, which contains a log but was not read"
    return unread


def _mend_texts(answer: LoggedAnswer) -> LoggedAnswer:
    """The answer without halves of characters, which JSON can hold and no file of ours: a cut completion may end in one."""
    texts = (answer.prompt, answer.gold, answer.completion, *answer.readings.values(), *answer.options)
    try:
        "".join(text for text in texts if text is not None).encode("utf-8")
    except UnicodeEncodeError:
        return replace(
            answer,
            prompt=_mend(answer.prompt),
            gold=_mend(answer.gold),
            completion=_mend(answer.completion),
            readings={name: _mend(text) or "" for name, text in answer.readings.items()},
            options=tuple(_mend(text) or "" for text in answer.options),
        )
    return answer


def _mend(text: str | None) -> str | None:
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8")


def refuse_unknown_file(source: str) -> None:
    """Raises InputError for a file that is called as logs are and is none, or is not there: no checkpoint is such a file."""
    path = Path(source)
    if suffix_of(path) in (*SUFFIXES, ".eval") and not os.path.lexists(source):
        raise InputError("an evaluation log, or a model", "nothing there", "Correct the path.", file=source)
    if path.is_file() and suffix_of(path) in LOG_SUFFIXES and find_reader(source) is None:
        head = read_head(path)
        keys = sorted(find_top_keys(head))[:8]
        got = f"a file whose first row has the keys {', '.join(keys)}"[:160] if keys else "a file without rows of a log"
        remedy = "See docs/logs.md for the forms of logs."
        if find_top_keys(head) >= lighteval.RESULT_KEYS:
            got, remedy = "results of lighteval without the answers", "Name the folder with details, or --save-details."
        raise InputError(f"an evaluation log ({FORMS})", *(find_foreign(path, head) or (got, remedy)), file=source)


def _reader_of_folder(path: Path) -> Reader | None:
    if any((path / mark).exists() for mark in NO_LOG_MARKS):
        return None
    found: dict[Reader, list[Path]] = {
        lm_eval.read_lm_eval: list_files(path, lm_eval.is_sample_name),
        lighteval.read_lighteval: list_files(path, lighteval.is_details_name),
        inspect_ai.read_inspect: inspect_ai.find_logs(path),
    }
    readers = [reader for reader, files in found.items() if files]
    if len(readers) > 1:
        got = " and ".join(found[reader][0].name for reader in readers)
        raise InputError("logs of one harness", got, "Name the folder of one of them.", file=path)
    if not readers and list_files(path, lm_eval.is_results_name):
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
