"""Jobs of studies: in two processes of one thread each, and rows that are kept, so that a study that was stopped goes on."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from mixwright.run import workers
from mixwright.run.folder import write_text
from mixwright_lab.conditions import CPU, conditions, device

WORKER_COUNT = 2
Job = TypeVar("Job")
Answer = TypeVar("Answer")


def run_in_processes(
    work: Callable[[Job], Answer], jobs: Sequence[Job], *, say: str = "job", chunk: int = 1
) -> list[Answer]:
    """What `work` answers for each job, in their order. `work` is a function of a module; what it prints is not shown.

    Args:
        work: done once per job, in a process with one thread.
        jobs: in any order; seeds belong into them.
        say: what the lines on stderr call a job.
        chunk: jobs that are sent at once, where each takes milliseconds.
    """
    parts = [jobs[place : place + chunk] for place in range(0, len(jobs), chunk)]
    asked = [workers.Job(say, partial(_all, work), part) for part in parts]
    if not asked:
        return []
    with workers.Workers(min(WORKER_COUNT, len(asked))) as started:
        found = started.run(asked, title=say)
    return [answer for answers in found for answer in answers]


def _all(work: Callable[[Job], Answer], jobs: Sequence[Job]) -> list[Answer]:
    return [work(job) for job in jobs]


def resumed(name: str, work: Callable[[Job], Mapping[str, Any]], jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """The row of each job, in their order; those that an earlier run of the same commit made are read.

    Args:
        name: of the study.
        work: makes a row that JSON can hold, in a process of its own.
        jobs: with a `repr` that names all they depend on.
    """
    path = rows_path(name)
    done = rows_by_job(path)
    run_in_processes(partial(work_and_append, work, path), [job for job in jobs if repr(job) not in done], say="run")
    done = rows_by_job(path)
    return [done[repr(job)] for job in jobs]


def rows_path(name: str) -> Path:
    """File of the rows that this commit made; without any where the tree differs from it: nobody knows what made those."""
    made = conditions()
    path = Path(tempfile.gettempdir()) / "mixwright-rows" / f"{name}-{made['commit']}.jsonl"
    path.parent.mkdir(exist_ok=True)
    if made["tree"] != "as committed":
        path.unlink(missing_ok=True)
    return path


def rows_by_job(path: Path) -> dict[str, dict[str, Any]]:
    """Rows that `work_and_append` wrote, by job."""
    return {kept["job"]: kept["row"] for kept in read_rows(path)}


def work_and_append(work: Callable[[Job], Mapping[str, Any]], path: Path, job: Job) -> None:
    """Work, and append the row under its job."""
    append_row(path, {"job": repr(job), "row": work(job)})


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a JSONL file, none where there is no file; a line that was cut is left out."""
    found = []
    for line in path.read_text(encoding="utf-8").split("\n") if path.exists() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write a JSONL file, whole or not at all, for processes side by side may write the same; returns its path."""
    write_text(path, "".join(json.dumps(row) + "\n" for row in rows))
    return path


def row_of(began: float) -> dict[str, Any]:
    """Return what each row of a training says of its run: commit, device, and the seconds since `began`."""
    seconds = round(time.monotonic() - began)
    return {"commit": conditions()["commit"], "device": device(), "seconds": seconds}


def without_answers(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows as a result has them: answers and settings are in the file of the rows."""
    return [{name: value for name, value in row.items() if name not in ("answers", "settings")} for row in rows]


def rows_by_seed(rows: Iterable[Mapping[str, Any]]) -> dict[int, dict[str, Mapping[str, Any]]]:
    """Seed -> arm -> its row; where two devices made an arm, that of the device which made more arms of the seed."""
    made: dict[int, dict[str, dict[str, Mapping[str, Any]]]] = {}
    for row in rows:
        made.setdefault(row["seed"], {}).setdefault(row.get("device", CPU), {})[row["arm"]] = row
    found = {}
    for seed, by_device in made.items():
        ordered = sorted(by_device.values(), key=len)  # the last one wins
        found[seed] = {arm: row for arms in ordered for arm, row in arms.items()}
    return found


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    """Append a row in one write, for two processes may share the file; after a line that was cut it begins anew."""
    cut = path.exists() and path.read_bytes()[-1:] not in (b"", b"\n")
    line = "\n" * cut + json.dumps(row, ensure_ascii=False) + "\n"
    place = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(place, line.encode())
    finally:
        os.close(place)
