"""Running of findings: every arm and seed is a job of its own, kept by content, so that an interrupted run goes on.

A row is kept under the digest of the finding's code, of the lab modules it imports, of its settings and of the versions of
torch, numpy and Mixwright; texts and expectations are left out. Rows lie in the folder `MIXWRIGHT_LAB_ROWS` names, else
beside other temporary files.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from mixwright import catalog
from mixwright.errors import InputError
from mixwright.run.folder import read_json, write_json
from mixwright.run.progress import Progress, format_time_left
from mixwright.run.workers import Job, Workers
from mixwright_lab.conditions import digest_of
from mixwright_lab.contracts import Finding
from mixwright_lab.judging import LARGEST_READING, Row
from mixwright_lab.promises import check_finding
from mixwright_lab.result_files import Result, result_of

SCALES = ("smoke", "laptop")
SEED_LIMIT = 2**32
"""Seeds lie below it: generators of other packages take no larger ones."""


@dataclass(frozen=True, slots=True)
class Task:
    """One arm with one seed, or what the arms of a seed share."""

    finding: str
    """Name of the finding."""
    scale: str
    """Names its settings."""
    seed: int
    """Of world, starting point and training."""
    arm: str = ""
    """Empty for what the arms share."""
    again: bool = False
    """The second run of the noise arm."""

    @property
    def name(self) -> str:
        """For progress and errors."""
        return " ".join(
            filter(None, (self.finding, self.arm or "start", f"seed {self.seed}", "again" if self.again else ""))
        )


def run(name: str, scale: str, *, seed_base: int = 0, worker_count: int = 0, workers: Workers | None = None) -> Result:
    """Run one finding, or go on with it, and judge it.

    Args:
        name: file in `findings/`.
        scale: smoke or laptop.
        seed_base: first seed.
        worker_count: processes of one thread; 0 takes one per core.
        workers: those of earlier findings, which have imported torch by then; None starts `worker_count` new ones.

    Raises:
        InputError: unknown finding or scale, a seed base or number of workers out of range, a finding that breaks a promise
            of its kind, a kept row that cannot be read, or a reading that is missing or no finite number.
        JobFailed: an arm raised.
    """
    if scale not in SCALES:
        raise InputError("scale smoke or laptop", repr(scale), "Name one of them.")
    if not 0 <= seed_base < SEED_LIMIT // 2:
        raise InputError(f"a seed base of 0 or more, below {SEED_LIMIT // 2}", f"{seed_base:.6g}", "Correct --seed-base.")
    if worker_count < 0:
        raise InputError("1 worker or more, or 0 for one per core", str(worker_count), "Correct --workers.")
    finding = load_checked(name)
    shared, tasks = tasks_of(name, finding, scale, seed_base)
    groups = [(shared, f"{name}: starting points"), (tasks, name)]
    missing = [([task for task in group if not _place(task).is_file()], title) for group, title in groups]
    with contextlib.ExitStack() as stack:
        if workers is None and any(group for group, _ in missing):
            workers = stack.enter_context(Workers(worker_count))
        for group, title in missing:
            if workers is not None and group:
                jobs = [Job(task.name, run_task, task) for task in group]
                workers.run(jobs, title=title, progress=None if sys.stderr.isatty() else print_tenths(title))
    rows = [_read(task) for task in tasks]
    return result_of(name, finding, scale, rows, sum(_read(task).seconds for task in shared))


def load_checked(name: str) -> Finding:
    """The finding of that name, if it keeps the promises of its kind: some that are broken would give a wrong word.

    Raises:
        InputError: which promise it breaks.
    """
    cls = catalog.load("findings", name)
    try:
        check_finding(cls)
    except AssertionError as broken:
        got = f"one that breaks this: {broken}"
        raise InputError(f"a finding {name} that keeps its promises", got, "Correct the finding.") from None
    finding: Finding = catalog.create("findings", name)
    return finding


def tasks_of(name: str, finding: Finding, scale: str, seed_base: int) -> tuple[list[Task], list[Task]]:
    """What arms share, one per seed, and all arms of all seeds, noise arms twice."""
    seeds = range(seed_base, seed_base + finding.SEEDS[scale])
    arms = [(arm, False) for arm in finding.arms(finding.SCALES[scale])] + [(arm, True) for arm in finding.RUN_TWICE]
    shared = [Task(name, scale, seed) for seed in seeds]
    return shared, [Task(name, scale, seed, arm, again) for seed in seeds for arm, again in arms]


def print_tenths(title: str) -> Progress:
    """A line on standard error per tenth that is done, with the time left: for logs, which hundreds of lines would fill."""
    shown = [-1]

    def show(done: float, total: int, seconds: float | None) -> None:
        if (tenth := int(10 * done / total)) > shown[0]:
            shown[0] = tenth
            left = "done" if done == total else format_time_left(seconds)
            print(f"{title}: {int(done)} of {total}, {left}", file=sys.stderr, flush=True)  # noqa: T201

    return show


def run_task(task: Task) -> None:
    """Do one task and keep its row; in a process of its own."""
    finding: Finding = catalog.create("findings", task.finding)
    settings = finding.SCALES[task.scale]
    begun, readings = time.process_time(), dict[str, float]()
    if task.arm:
        given = finding.run(task.arm, task.seed, settings, again=task.again)
        readings = {str(name): float(value) for name, value in given.items()}
        for name, value in readings.items():
            if not abs(value) <= LARGEST_READING:  # NaN is not either
                raise InputError(f"a finite {name!r} of {task.name}", str(value), "Correct the finding.")
    else:
        finding.prepare(task.seed, settings)
    row = Row(task.arm, task.seed, readings, time.process_time() - begun, task.again)
    write_json(_place(task), row)


def _read(task: Task) -> Row:
    """The kept row. Raises InputError where the file is not the row of that task: it would count for another one."""
    path = _place(task)
    try:
        row = read_json(path, Row)
    except InputError as error:
        remedy = "Remove the file and give the same command again."
        raise InputError(error.expected, error.got, remedy, file=path, line=error.line) from None
    if (row.arm, row.seed, row.again) != (task.arm, task.seed, task.again):
        got = f"that of arm {row.arm[:80]!r}, seed {row.seed}"
        raise InputError(f"the row of {task.name}", got, "Remove the file and give the same command again.", file=path)
    return row


def _place(task: Task) -> Path:
    """File of a task's row."""
    settings = catalog.load("findings", task.finding).SCALES[task.scale]
    module = catalog.find_entry("findings", task.finding).module
    code = digest_of(module, settings, task, *_foreign(module))
    root = os.environ.get("MIXWRIGHT_LAB_ROWS") or Path(tempfile.gettempdir()) / "mixwright-lab"
    return Path(root) / task.finding / f"{code}.json"


@functools.cache
def _foreign(module: str) -> tuple[str, ...]:
    """Source of a finding of another package, which the digest of the lab's own code does not see."""
    name = module.partition(":")[0]
    return () if name.startswith("mixwright_lab.") else (inspect.getsource(importlib.import_module(name)),)
