"""Running of findings: every arm and seed is a job of its own, kept by content, so that an interrupted run goes on.

A row is kept under the digest of the finding's code, of the lab modules it imports, of its settings and of the versions of
torch, numpy and Mixwright; texts and expectations are left out. Rows lie in the folder `MIXWRIGHT_LAB_ROWS` names, else
beside other temporary files.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from mixwright import catalog
from mixwright.contracts import Finding
from mixwright.errors import InputError
from mixwright.runs import read_json, write_json
from mixwright.workers.local import Job, run_jobs
from mixwright.workers.progress import Progress, time_left
from mixwright_lab.conditions import digest_of
from mixwright_lab.judging import Row
from mixwright_lab.result_files import Result, result_of

SCALES = ("smoke", "laptop")


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


def run(name: str, scale: str, *, seed_base: int = 0, workers: int = 0) -> Result:
    """Run one finding, or go on with it, and judge it.

    Args:
        name: file in `findings/`.
        scale: smoke or laptop.
        seed_base: first seed.
        workers: processes of one thread; 0 takes one per core.

    Raises:
        InputError: unknown finding or scale, a seed base below 0, or a reading that is missing or no finite number.
        JobFailed: an arm raised.
    """
    if scale not in SCALES:
        raise InputError("scale smoke or laptop", repr(scale), "Name one of them.")
    if seed_base < 0:
        raise InputError("a seed base of 0 or more", str(seed_base), "Correct --seed-base.")
    finding: Finding = catalog.create("findings", name)
    shared, tasks = tasks_of(name, finding, scale, seed_base)
    for group, title in ((shared, f"{name}: starting points"), (tasks, name)):
        missing = [task for task in group if not _place(task).is_file()]
        jobs = [Job(task.name, work, task) for task in missing]
        run_jobs(jobs, workers=workers, title=title, progress=None if sys.stderr.isatty() else tenths(title))
    rows = [_read(task) for task in tasks]
    return result_of(name, finding, scale, rows, sum(_read(task).seconds for task in shared))


def tasks_of(name: str, finding: Finding, scale: str, seed_base: int) -> tuple[list[Task], list[Task]]:
    """What arms share, one per seed, and all arms of all seeds, noise arms twice."""
    seeds = range(seed_base, seed_base + finding.SEEDS[scale])
    arms = [(arm, False) for arm in finding.arms(finding.SCALES[scale])] + [(arm, True) for arm in finding.NOISE]
    shared = [Task(name, scale, seed) for seed in seeds]
    return shared, [Task(name, scale, seed, arm, again) for seed in seeds for arm, again in arms]


def tenths(title: str) -> Progress:
    """A line on standard error per tenth that is done, with the time left: for logs, which hundreds of lines would fill."""
    shown = [-1]

    def show(done: float, total: int, seconds: float | None) -> None:
        if (tenth := int(10 * done / total)) > shown[0]:
            shown[0] = tenth
            left = "done" if done == total else time_left(seconds)
            print(f"{title}: {int(done)} of {total}, {left}", file=sys.stderr, flush=True)  # noqa: T201

    return show


def work(task: Task) -> None:
    """Do one task and keep its row; in a process of its own."""
    finding: Finding = catalog.create("findings", task.finding)
    settings = finding.SCALES[task.scale]
    begun, readings = time.process_time(), dict[str, float]()
    if task.arm:
        readings = {
            name: float(value) for name, value in finding.run(task.arm, task.seed, settings, again=task.again).items()
        }
    else:
        finding.prepare(task.seed, settings)
    row = Row(task.arm, task.seed, readings, time.process_time() - begun, task.again)
    path = _place(task)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, row)


def _read(task: Task) -> Row:
    return read_json(_place(task), Row)


def _place(task: Task) -> Path:
    """File of a task's row."""
    settings = catalog.load("findings", task.finding).SCALES[task.scale]
    code = digest_of(catalog.known("findings", task.finding).module, settings, task)
    root = os.environ.get("MIXWRIGHT_LAB_ROWS") or Path(tempfile.gettempdir()) / "mixwright-lab"
    return Path(root) / task.finding / f"{code}.json"
