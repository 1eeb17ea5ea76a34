"""Rows of a study kept as they come, in the folder for temporary files, so that an interrupted run goes on."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from mixwright_lab.conditions import conditions
from mixwright_lab.workers import run_in_processes

Job = TypeVar("Job")


def resumed(name: str, work: Callable[[Job], Mapping[str, Any]], jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """The row of each job, in their order; those that an earlier run of the same commit made are read.

    Args:
        name: of the study.
        work: makes a row that JSON can hold, in a process of its own.
        jobs: with a `repr` that names all they depend on.
    """
    path = rows_path(name)
    done = read(path)
    run_in_processes(partial(work_and_append, work, path), [job for job in jobs if repr(job) not in done], say="run")
    done = read(path)
    return [done[repr(job)] for job in jobs]


def rows_path(name: str) -> Path:
    """File of the rows that this commit made; without any where the tree differs from it: nobody knows what made those."""
    made = conditions()
    path = Path(tempfile.gettempdir()) / "mixwright-rows" / f"{name}-{made['commit']}.jsonl"
    path.parent.mkdir(exist_ok=True)
    if made["tree"] != "as committed":
        path.unlink(missing_ok=True)
    return path


def read(path: Path) -> dict[str, dict[str, Any]]:
    """Rows of such a file, by job; a line that was cut is left out."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            kept = json.loads(line)
        except ValueError:
            continue
        found[kept["job"]] = kept["row"]
    return found


def work_and_append(work: Callable[[Job], Mapping[str, Any]], path: Path, job: Job) -> None:
    """Work, and append the row in one write: two processes share the file."""
    line = json.dumps({"job": repr(job), "row": work(job)}, allow_nan=False)
    place = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(place, f"\n{line}\n".encode())  # begins anew after a line that was cut
    finally:
        os.close(place)
