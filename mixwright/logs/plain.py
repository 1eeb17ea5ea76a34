"""Reader of plain logs: a JSON object per line, of any harness that writes its scores down.

Source: keys of our own records: `task`, `id` and `score`; and perhaps `prompt`, `completion`, `answer`, `level`, `sample`,
    `seed`, `temperature`, `tokens`, `gold_logprob`, `options` and `cut`. Other keys are not read.
Unit: `score` in its own: 0 or 1 (false or true) is a success, null an answer that nobody scored; `gold_logprob` in nats.
Cost: reads the file once; the answers are in memory.
Blind spot: says nothing about few-shot examples or the grader, and of decoding the temperature alone, if that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mixwright.corpus.reading import RowLocation
from mixwright.logs.entries import EvaluationLog, LoggedAnswer, LoggedTask
from mixwright.logs.files import read_log_rows
from mixwright.logs.values import (
    MAX_LEVEL,
    join_messages,
    read_count,
    read_logprob,
    read_name,
    read_number,
    read_object,
    read_score,
    read_text,
)

FORM = "plain JSONL"
METRIC = "score"
NEEDED_KEYS = ("task", "id", METRIC)


def read_plain(source: str) -> EvaluationLog:
    """The log. Raises InputError with file and line for what is damaged."""
    rows = tuple(_read_rows(read_log_rows(Path(source))))
    answers, temperatures = tuple(answer for answer, _ in rows), defaultdict[str, set[float | None]](set)
    for answer, temperature in rows:
        temperatures[answer.task].add(temperature)
    tasks = {task: _describe_task(found) for task, found in temperatures.items()}
    return EvaluationLog(source, FORM, "", tasks, answers, (source,))


def _describe_task(temperatures: set[float | None]) -> LoggedTask:
    """How a task was decoded, where all of its rows say so."""
    known = [value for value in temperatures if value is not None]
    if len(known) < len(temperatures):
        return LoggedTask((METRIC,))
    return LoggedTask((METRIC,), {"temperature": ", ".join(f"{value:g}" for value in sorted(known))}, max(known) > 0)


def _read_rows(rows: Iterable[tuple[Any, RowLocation]]) -> Iterable[tuple[LoggedAnswer, float | None]]:
    for value, location in rows:
        row = read_object(value, f"a row with {', '.join(NEEDED_KEYS)}", location)
        missing = [key for key in NEEDED_KEYS if key not in row]
        if missing:
            got = f"keys {', '.join(map(repr, list(row)[:8]))}"[:160]
            raise location.error(f"the key {missing[0]!r} in every row", got, "Add it; null means no score.")
        temperature = row.get("temperature")
        yield _read_row(row, location), None if temperature is None else read_number(temperature, "temperature", location)


def _read_row(row: dict[str, Any], location: RowLocation) -> LoggedAnswer:
    given = {key: value for key, value in row.items() if value is not None}
    score = read_score(row[METRIC])
    if isinstance(score, str):
        raise location.error("a number, true, false or null in score", score, "Write one score per answer.")
    if "cut" in given and not isinstance(given["cut"], bool):
        raise location.error("true or false in cut", repr(given["cut"])[:40], "Correct it.")
    level = read_number(given["level"], "level", location) if "level" in given else None
    if level is not None and abs(level) > MAX_LEVEL:
        raise location.error("a level of at most 2^53", f"{level:g}", "Correct it.")
    answer = given.get("answer")
    return LoggedAnswer(
        read_name(row["task"], "task", location),
        read_name(row["id"], "id", location),
        {METRIC: score},
        location,
        sample=" ".join(f"{key} {read_name(given[key], key, location)}" for key in ("sample", "seed") if key in given),
        prompt=join_messages(given["prompt"], "prompt", location) if "prompt" in given else None,
        gold=None if answer is None else _read_answer(answer, location),
        completion=read_text(given["completion"], "completion", location) if "completion" in given else None,
        options=_read_options(given["options"], location) if "options" in given else (),
        level=level,
        tokens=read_count(given["tokens"], "tokens", location) if "tokens" in given else None,
        gold_logprob=read_logprob(given["gold_logprob"], "gold_logprob", location) if "gold_logprob" in given else None,
        cut=bool(given.get("cut", False)),
    )


def _read_options(value: Any, location: RowLocation) -> tuple[str, ...]:
    """The texts of the options."""
    if not isinstance(value, list):
        raise location.error("a list in options", repr(value)[:40], "Correct it.")
    return tuple(read_text(option, "options", location) for option in value)


def _read_answer(value: Any, location: RowLocation) -> str:
    """The gold answer; numbers are written as JSON has them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value}" if isinstance(value, int) else f"{read_number(value, 'answer', location)}"
    return read_text(value, "answer", location)
