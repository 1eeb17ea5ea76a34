"""Reader of plain logs: a JSON object per line, of any harness that writes its scores down.

Source: keys of our own records: `task`, `id` and `score`; and perhaps `prompt`, `completion`, `answer`, `level`, `sample`,
    `seed`, `temperature`, `options` and `cut`. Other keys are not read.
Unit: `score` in its own: 0 or 1 (false or true) is a success, null an answer that nobody scored.
Cost: reads the file once; the answers are in memory.
Blind spot: says nothing about few-shot examples or the grader, and of decoding the temperature alone, if that.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from mixwright.corpus.reading import RowLocation, read_number
from mixwright.logs.entries import EvaluationLog, LoggedAnswer, LoggedTask
from mixwright.logs.files import read_log_rows
from mixwright.logs.values import (
    MAX_LEVEL,
    join_messages,
    read_name,
    read_object,
    read_score,
    read_text,
)

FORM = "plain JSONL"
METRIC = "score"
NEEDED_KEYS = ("task", "id", METRIC)


def read_plain(source: str) -> EvaluationLog:
    """The log. Raises InputError with file and line for what is damaged."""
    answers, temperatures = list[LoggedAnswer](), defaultdict[str, set[float | None]](set)
    for value, location in read_log_rows(Path(source)):
        row = read_object(value, f"a row with {', '.join(NEEDED_KEYS)}", location)
        answers.append(_read_row(row, location))
        given = row.get("temperature")
        temperatures[answers[-1].task].add(None if given is None else read_number(given, "temperature", location))
    tasks = {task: _describe_task(found) for task, found in temperatures.items()}
    return EvaluationLog(source, FORM, "", tasks, tuple(answers), (source,))


def _describe_task(temperatures: set[float | None]) -> LoggedTask:
    """How a task was decoded, where all of its rows say so."""
    known = [value for value in temperatures if value is not None]
    if len(known) < len(temperatures):
        return LoggedTask((METRIC,))
    return LoggedTask((METRIC,), {"temperature": ", ".join(f"{value:g}" for value in sorted(known))}, max(known) > 0)


def _read_row(row: dict[str, Any], location: RowLocation) -> LoggedAnswer:
    if missing := [key for key in NEEDED_KEYS if key not in row]:
        got = f"keys {', '.join(map(repr, list(row)[:8]))}"[:160]
        raise location.error(f"the key {missing[0]!r} in every row", got, "Add it; null means no score.")
    given = {key: value for key, value in row.items() if value is not None}
    score = read_score(row[METRIC])
    if isinstance(score, str):
        raise location.error("a number, true, false or null in score", score, "Write one score per answer.")
    names = [f"{key} {read_name(given[key], key, location)}" for key in ("sample", "seed") if key in given]
    found: dict[str, Any] = {name: read(given[name], name, location) for name, read in READERS.items() if name in given}
    gold, task, item = found.pop("answer", None), *(read_name(row[key], key, location) for key in ("task", "id"))
    return LoggedAnswer(task, item, {METRIC: score}, location, sample=" ".join(names), gold=gold, **found)


def _read_options(value: Any, key: str, location: RowLocation) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise location.error(f"a list in {key}", repr(value)[:40], "Correct it.")
    return tuple(read_text(option, key, location) for option in value)


def _read_flag(value: Any, key: str, location: RowLocation) -> bool:
    if not isinstance(value, bool):
        raise location.error(f"true or false in {key}", repr(value)[:40], "Correct it.")
    return value


def _read_level(value: Any, key: str, location: RowLocation) -> float:
    level = read_number(value, key, location)
    if abs(level) > MAX_LEVEL:
        raise location.error("a level of at most 2^53", f"{level:g}", "Correct it.")
    return level


def _read_answer(value: Any, key: str, location: RowLocation) -> str:
    """The gold answer; numbers are written as JSON has them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value}"
    return f"{read_number(value, key, location)}" if isinstance(value, float) else read_text(value, key, location)


READERS = {
    "prompt": join_messages,
    "answer": _read_answer,
    "completion": read_text,
    "options": _read_options,
    "level": _read_level,
    "cut": _read_flag,
}
"""Key that a row may have -> its reader."""
