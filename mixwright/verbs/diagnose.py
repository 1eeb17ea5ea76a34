"""Verb `diagnose`: why an RL run does not learn, from its rollouts."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from mixwright.errors import InputError
from mixwright.logs.diagnosis import diagnose as diagnose_log
from mixwright.logs.diagnosis import summarise
from mixwright.logs.rollouts import find_files, read_rollouts
from mixwright.records import Observation
from mixwright.run.trackers import check_tracker, log_report
from mixwright.verbs import output
from mixwright.verbs.options import FailOn, Full, Json, LogTo
from mixwright.verbs.report import show_findings

COLUMNS = ("severity", "check", "task", "count", "total", "message", "remedy")
"""Columns of the table for a tracker: fields of a finding."""

GROWTH = 1.1
"""Size of the files, as a ratio to that of the last reading, from which on they are read again: all readings together then
cost as much as ten of the whole run, whatever its length."""
FOLLOW_HELP = "Look for more rollouts every so many seconds and print new findings; Ctrl-C ends with the whole report."


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Findings in rollouts."""

    observations: list[Observation]
    """Errors first."""
    read: str
    """Rollouts that were read, in one line."""


def diagnose(rollouts: str | Path, *, log_to: LogTo = None) -> Diagnosis:
    """Find out why an RL run does not learn. Reads its rollouts; needs no model.

    Examples:
        >>> for seen in diagnose("rollouts.jsonl").observations:
        ...     print(seen.severity, seen.check, seen.task, seen.count, "of", seen.total)
        error groups sum 30 of 30

    Args:
        rollouts: Rollouts of an RL run: a file or folder of TRL, ms-swift, verl, verifiers, NeMo Gym or Tinker, or JSONL; a
            database of trackio.
        log_to: Also log the findings as a table to this tracker, and errors as an alert.

    Raises:
        InputError: no such file, none with rollouts, a damaged row, or a tracker that is not installed.
    """
    check_tracker(log_to)
    log = read_rollouts(str(rollouts))
    found = Diagnosis(diagnose_log(log), summarise(log))
    if log_to is not None:
        errors = [seen.message for seen in found.observations if seen.severity == "error"]
        figures = {"diagnose/findings": len(found.observations), "diagnose/errors": len(errors)}
        title = f"diagnose {Path(rollouts).name}"
        log_report(log_to, title, figures, COLUMNS, found.observations, alarm="; ".join(errors), say=output.say)
    return found


def show(
    found: Diagnosis,
    *,
    rollouts: str,
    follow: Annotated[int | None, typer.Option(min=1, metavar="SECONDS", help=FOLLOW_HELP)] = None,
    fail_on: FailOn = "never",
    full: Full = False,
    as_json: Json = False,
) -> int:
    """Print the findings, and return the exit code."""

    def print_findings(found: Diagnosis) -> int:
        return show_findings(rollouts, found.read, found.observations, full=full, as_json=as_json, fail_on=fail_on)

    return print_findings(found if follow is None else _follow(rollouts, found, follow, print_findings))


def _follow(rollouts: str, found: Diagnosis, seconds: int, print_findings: Callable[[Diagnosis], int]) -> Diagnosis:
    """Print the findings, and new ones as the files grow, until an interrupt; return the last diagnosis."""
    told, size = set[tuple[str, str | None, str]](), 0
    with suppress(KeyboardInterrupt):
        while True:
            new = [one for one in found.observations if (one.check, one.task, one.severity) not in told]
            told |= {(one.check, one.task, one.severity) for one in new}
            if new or not size:
                print_findings(Diagnosis(new, found.read))
            else:
                output.say(found.read)
            size = _size_of(rollouts)
            while _size_of(rollouts) < GROWTH * size:
                time.sleep(seconds)
            found = _read_again(rollouts, found)
    return _read_again(rollouts, found)


def _size_of(rollouts: str) -> int:
    return sum(file.stat().st_size for file in find_files(Path(rollouts)))


def _read_again(rollouts: str, found: Diagnosis) -> Diagnosis:
    """Return the diagnosis of all that is there now; the former one while a file is incomplete."""
    try:
        return diagnose(rollouts)
    except InputError:
        return found
