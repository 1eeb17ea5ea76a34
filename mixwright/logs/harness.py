"""Log of any harness that writes a file per task: its files, each read by the rule of the harness, as one log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from mixwright.errors import InputError
from mixwright.logs.entries import EvaluationLog, LoggedAnswer, LoggedTask
from mixwright.logs.values import find_text, read_score


@dataclass(slots=True)
class Seen:
    """What the rows of one task show."""

    metrics: dict[str, None] = field(default_factory=dict)
    unread_value_by_metric: dict[str, str] = field(default_factory=dict)
    """Metric without a number per answer -> words on what stands there."""

    def read_scores(self, values: Mapping[str, Any]) -> dict[str, float | None]:
        """Metric -> its number; None where another value stands there, which is kept in words."""
        scores: dict[str, float | None] = {}
        for metric, value in values.items():
            score = read_score(value)
            self.metrics[metric] = None
            if isinstance(score, str):
                self.unread_value_by_metric.setdefault(metric, score)
            scores[metric] = None if isinstance(score, str) else score
        return scores


def with_text(answer: LoggedAnswer, written: Any, read: Any) -> LoggedAnswer:
    """The answer with what was written, and with what the harness read out of it, each the first text of nested lists."""
    reading = find_text(read)
    readings = {name: reading for name in answer.scores if reading is not None}
    return replace(answer, completion=find_text(written), readings=readings)


def is_drawn_at(temperature: Any) -> bool | None:
    """Whether answers at a temperature are drawn at random; None where it is no number."""
    return temperature > 0 if isinstance(temperature, int | float) else None


def order_metrics(names: Iterable[str], listed: Sequence[str]) -> tuple[str, ...]:
    """The names in the order of a list, and those that it lacks behind them."""
    return tuple(sorted(names, key=lambda name: listed.index(name) if name in listed else len(listed)))


class ReadTask(NamedTuple):
    """One task, as its file has it."""

    name: str
    """Of the task."""
    task: LoggedTask
    """How its answers came about."""
    answers: Sequence[LoggedAnswer]
    """All of them."""
    model: str
    """Name of the model; empty where nothing says it."""
    results: Path | None = None
    """File of results that was read, too."""


@dataclass(frozen=True)
class Harness:
    """Reader of one form of log: called with a file or a folder, it returns the log.

    Raises:
        InputError: with file and line what is damaged; no answers beside results; or two files of one task.
    """

    form: str
    """Name of the form."""
    list_logs: Callable[[Path], list[Path]]
    """Files of answers in a folder, or those that a file stands for."""
    read: Callable[[Path], ReadTask]
    """Reads one of them."""
    result_keys: frozenset[str] = frozenset()
    """Keys of a file of results, which says nothing of single items; empty where there is no such file."""
    list_tasks: Callable[[Mapping[str, Any]], set[str]] = set
    """Tasks that a file of results lists."""
    answers: str = "samples"
    """What the harness calls the files that have the answers."""

    def __call__(self, source: str) -> EvaluationLog:
        """See the class."""
        path = Path(source)
        files = self.list_logs(path)
        if not files:
            remedy = "Evaluate with --log_samples (lm-evaluation-harness), and name the folder with the samples."
            raise InputError("samples next to a results file", "none", remedy, file=path)
        tasks: dict[str, ReadTask] = {}
        file_by_task: dict[str, Path] = {}
        for file in files:
            found = self.read(file)
            if found.name in tasks:
                got = f"task {found.name!r} in {file_by_task[found.name].name} and {file.name}"
                raise InputError("one log of each task", got, "Name one of them, or move the other away.", file=path)
            tasks[found.name], file_by_task[found.name] = found, file
        results = dict.fromkeys(found.results for found in tasks.values() if found.results is not None)
        return EvaluationLog(
            source,
            self.form,
            ", ".join(dict.fromkeys(found.model for found in tasks.values() if found.model)),
            {name: found.task for name, found in tasks.items()},
            tuple(answer for found in tasks.values() for answer in found.answers),
            tuple(map(str, (*files, *results))),
        )
