"""A local pool of long-lived worker processes, one thread each.

Below four million parameters two processes of one thread beat one process of two; imports are paid once per worker.
Workers are spawned (no torch state is forked) and run module-level functions on plain data. Longest jobs start first.
The first job that fails, or whose worker dies, stops the others and is reported: nothing hangs, nothing is retried
silently.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixwright.errors import InputError
from mixwright.trial._progress import Progress, progress_line

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
"""Environment of every worker, set before it imports anything."""
TAIL = 2000
"""Characters of a failed job's log that its error shows."""


@dataclass(frozen=True, slots=True)
class Job:
    """One call in a worker."""

    name: str
    """What the progress line and errors call it."""
    function: Callable[[Any], Any]
    """Module-level function; it and its result travel by pickle between own processes."""
    argument: Any
    """Its one argument, plain data."""
    cost: float = 1.0
    """Expected duration relative to the other jobs; long ones start first."""
    log: Path | None = None
    """File that takes what the job prints; None throws it away."""


class JobFailed(RuntimeError):
    """A job raised, or its worker died. The message has the job's name, the error and the end of its log."""


@dataclass
class _Worker:
    process: BaseProcess
    link: Connection
    place: int | None = None
    """Index of the job it has."""


def run_jobs(jobs: Sequence[Job], *, workers: int = 0, title: str = "", progress: Progress | None = None) -> list[Any]:
    """Run all jobs; results in the order of `jobs`.

    Args:
        jobs: what to run.
        workers: processes; 0 takes one per CPU core this process may use.
        title: what the default progress line is called.
        progress: called with (done, total, seconds left or None) after every job; None shows a line on the terminal.

    Raises:
        InputError: a job found something the user can fix.
        JobFailed: a job raised anything else, or its worker died.
    """
    if not jobs:
        return []
    count = min(workers or len(os.sched_getaffinity(0)), len(jobs))
    order = deque(sorted(range(len(jobs)), key=lambda place: -jobs[place].cost))
    results: dict[int, Any] = {}
    start = time.monotonic()
    with contextlib.ExitStack() as stack:
        show = progress or stack.enter_context(progress_line(title))
        show(0, len(jobs), None)
        pool = stack.enter_context(_started(count))
        for worker in pool:
            _give(worker, jobs, order)
        while len(results) < len(jobs):
            for worker in _ready(pool):
                assert worker.place is not None
                results[worker.place] = _receive(worker, jobs[worker.place])
                _give(worker, jobs, order)
                done = sum(jobs[place].cost for place in results)
                left = (time.monotonic() - start) * (sum(job.cost for job in jobs) - done) / done if done else None
                show(len(results), len(jobs), left)
    return [results[place] for place in range(len(jobs))]


@contextlib.contextmanager
def _started(count: int) -> Iterator[list[_Worker]]:
    """`count` running workers; all are gone when the block ends, however it ends (Ctrl-C too)."""
    context = multiprocessing.get_context("spawn")
    pool: list[_Worker] = []
    finished = False
    try:
        with _environment(ONE_THREAD):
            for _ in range(count):
                ours, theirs = context.Pipe()
                process = context.Process(target=_work, args=(theirs,), daemon=True)
                process.start()
                theirs.close()
                pool.append(_Worker(process, ours))
        yield pool
        finished = True
    finally:
        for worker in pool:
            worker.link.close()  # an idle worker ends when its link closes
            if not finished:
                worker.process.terminate()
        for worker in pool:
            worker.process.join(5)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.process.close()


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables for what is started inside the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _give(worker: _Worker, jobs: Sequence[Job], order: deque[int]) -> None:
    """Send the next job, if there is one. A worker that is already dead is noticed on receiving."""
    worker.place = order.popleft() if order else None
    if worker.place is not None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            worker.link.send(jobs[worker.place])


def _ready(pool: Sequence[_Worker]) -> list[_Worker]:
    """Busy workers that answered or died; waits for the first."""
    busy = [worker for worker in pool if worker.place is not None]
    answered = connection.wait([worker.link for worker in busy])
    return [worker for worker in busy if worker.link in answered]


def _receive(worker: _Worker, job: Job) -> Any:
    """The result of the worker's job. Raises what `run_jobs` raises."""
    try:
        outcome, value = worker.link.recv()
    except (EOFError, ConnectionResetError):
        worker.process.join(5)
        code = worker.process.exitcode
        hint = "Out of memory? Fewer workers need less. " if code in (-signal.SIGKILL, 137) else ""
        main = "A script that starts a trial must do it under `if __name__ == '__main__':`. " if code == 1 else ""
        raise JobFailed(f"{job.name}: its worker died (exit code {code}). {hint}{main}{_tail(job)}") from None
    if outcome == "input":
        raise InputError(**value)
    if outcome == "error":
        raise JobFailed(f"{job.name}: {value}{_tail(job)}")
    return value


def _tail(job: Job) -> str:
    """The end of a job's log, for its error."""
    if job.log is None or not job.log.is_file():
        return ""
    text = job.log.read_text(encoding="utf-8", errors="replace")[-TAIL:]
    return f"\nend of {job.log}:\n{text}" if text.strip() else ""


def _work(link: Connection) -> None:
    """Body of a worker: run what arrives until the link closes. Ctrl-C is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            job = link.recv()
        except EOFError:
            return
        except Exception:  # the job's function cannot be imported here: report it, do not die
            link.send(("error", traceback.format_exc()))
            continue
        with contextlib.suppress(BrokenPipeError):
            _answer(link, job)


def _answer(link: Connection, job: Job) -> None:
    """Run one job and send its outcome; a result that cannot travel is an error of that job."""
    try:
        with _printing_to(job.log):
            if (torch := sys.modules.get("torch")) is not None:
                torch.set_num_threads(1)
            value = job.function(job.argument)
        link.send(("done", value))
    except InputError as error:
        names = ("expected", "got", "remedy", "file", "line")
        link.send(("input", {name: getattr(error, name) for name in names}))
    except Exception:
        link.send(("error", traceback.format_exc()))


@contextlib.contextmanager
def _printing_to(log: Path | None) -> Iterator[None]:
    """Send standard output and error, C libraries' too, to a file, so that workers do not write over the progress line."""
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
    kept = [os.dup(1), os.dup(2)]
    target = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(target, 1)
        os.dup2(target, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(target)
