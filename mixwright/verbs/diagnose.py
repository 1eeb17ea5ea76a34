"""Verb `diagnose`: why an RL run does not learn, from its rollouts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mixwright.logs.diagnosis import diagnose as diagnose_log
from mixwright.logs.diagnosis import summarise
from mixwright.logs.rollouts import read_rollouts
from mixwright.records import Observation
from mixwright.run.trackers import check_tracker, log_report
from mixwright.verbs import output
from mixwright.verbs.options import FailOn, Full, Json, LogTo
from mixwright.verbs.report import show_findings

COLUMNS = ("severity", "check", "task", "count", "total", "message", "remedy")
"""Columns of the table for a tracker: fields of a finding."""


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
        rollouts: Rollouts of an RL run: a file or folder of TRL, verl, verifiers or NeMo Gym, or JSONL.
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


def show(found: Diagnosis, *, rollouts: str, fail_on: FailOn = "never", full: Full = False, as_json: Json = False) -> int:
    """Print the findings, and return the exit code."""
    if as_json:
        output.out_json({"read": found.read, "observations": found.observations})
    else:
        show_findings(rollouts, found.read, found.observations, full=full)
    return output.exit_code_of(found.observations, fail_on)
