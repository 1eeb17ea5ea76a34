"""Long-lived local worker processes, one thread each; `run/ray_workers.py` has those of a cluster.

Below four million parameters two processes of one thread beat one process of two; imports are paid once per worker.
Workers are spawned (no torch state is forked) and run module-level functions on frozen records. Longest jobs start first.
The first job that fails, or whose worker dies, stops the others and is reported: nothing hangs, nothing is retried
silently.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixwright.errors import InputError, disk_full_error, system_error
from mixwright.run.progress import Progress, listen_with, progress_line

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess


ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
"""Environment of every worker, set before it imports anything."""
REMEDY_BY_SIGNAL: dict[int, str] = {
    signal.SIGKILL: "Out of memory? Lower trial.workers. Finished work is reused.",
    signal.SIGTERM: "The process was ended from outside. Finished work is reused.",
    signal.SIGBUS: "Is the disk full, or was a memory-mapped file truncated? Free some space and give the command again.",
}
"""Signal that ended a worker -> what to do."""
LOG_TAIL_CHARACTERS = 2000
"""Characters of a failed job's log that its error shows."""


@dataclass(frozen=True, slots=True)
class Job:
    """One call in a worker."""

    name: str
    """What the progress line and errors call it."""
    function: Callable[[Any], Any]
    """Module-level function; it and its result travel by pickle between own processes."""
    argument: Any
    """Its one argument, a frozen record."""
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
    job_index: int | None = None
    """Index of the job it has."""


def count_cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """Workers that live as long as the `with` block, for several batches of jobs. All are gone after it (Ctrl-C too).

    Args:
        workers: processes; 0 takes one per CPU core this process may use.
    """

    def __init__(self, workers: int = 0) -> None:
        self.count = workers or count_cores()
        """Jobs that run at a time."""
        self._workers: list[_Worker] = []

    def __enter__(self) -> Workers:
        try:
            with _environment(ONE_THREAD):
                for _ in range(self.count):
                    self._workers.append(_start())
        except BaseException:
            self._stop(kill=True)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop(kill=kind is not None)

    def run(self, jobs: Sequence[Job], *, title: str = "", progress: Progress | None = None) -> list[Any]:
        """Run all jobs; results in the order of `jobs`. After an error the workers are stopped and of no further use.

        Args:
            jobs: what to run.
            title: what the default progress line is called.
            progress: called after every job and whenever one reports a share of itself; None shows a line on the terminal.

        Raises:
            InputError: a job found something the user can fix.
            JobFailed: a job raised anything else, or its worker died.
        """
        try:
            if progress is not None:
                return self._run(jobs, progress)
            with progress_line(title) as show:
                return self._run(jobs, show)
        except BaseException:
            self._stop(kill=True)
            raise

    def _run(self, jobs: Sequence[Job], show_progress: Progress) -> list[Any]:
        total_cost = sum(job.cost for job in jobs)
        results: dict[int, Any] = {}
        shares: dict[int, float] = {}
        start = time.monotonic()
        show_progress(0, len(jobs), None)
        for job_index, finished, value in self._work_off(jobs):
            if finished:
                results[job_index] = value
                shares.pop(job_index, None)
            else:
                shares[job_index] = value
            finished_cost = sum(jobs[done].cost for done in results)
            finished_cost += sum(jobs[running].cost * share for running, share in shares.items())
            spent, unfinished_cost = time.monotonic() - start, total_cost - finished_cost
            seconds_left = spent * unfinished_cost / finished_cost if finished_cost else None
            show_progress(len(results) + sum(shares.values()), len(jobs), seconds_left)
        return [results[job_index] for job_index in range(len(jobs))]

    def _work_off(self, jobs: Sequence[Job]) -> Iterator[tuple[int, bool, Any]]:
        """Run the jobs, long ones first: each time one says something its index, whether it is finished, and its result or
        the share of it that is done. Raises what `run` raises.
        """
        waiting = deque(longest_first(jobs))
        for worker in self._workers:
            _send_next_job(worker, jobs, waiting)
        while any(worker.job_index is not None for worker in self._workers):
            for worker, job_index in _wait_for_answers(self._workers):
                finished, value = _receive(worker, jobs[job_index])
                if finished:
                    _send_next_job(worker, jobs, waiting)
                yield job_index, finished, value

    def _stop(self, *, kill: bool) -> None:
        """End all workers: idle ones when their link closes, busy ones by force."""
        for worker in self._workers:
            worker.link.close()
            if kill:
                worker.process.terminate()
        for worker in self._workers:
            worker.process.join(5)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.process.close()
        self._workers = []


def longest_first(jobs: Sequence[Job]) -> list[int]:
    """Indices of the jobs in the order in which they start."""
    return sorted(range(len(jobs)), key=lambda job_index: -jobs[job_index].cost)


def _start() -> _Worker:
    """One running worker."""
    context = multiprocessing.get_context("spawn")
    own_end, worker_end = context.Pipe()
    process = context.Process(target=_work, args=(worker_end,), daemon=True)
    process.start()
    worker_end.close()
    return _Worker(process, own_end)


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables for what is started inside the block."""
    environment = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(environment)


def _send_next_job(worker: _Worker, jobs: Sequence[Job], waiting: deque[int]) -> None:
    """Send the next job, if there is one. A worker that is already dead is noticed on receiving."""
    worker.job_index = waiting.popleft() if waiting else None
    if worker.job_index is not None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            worker.link.send(jobs[worker.job_index])


def _wait_for_answers(workers: Sequence[_Worker]) -> list[tuple[_Worker, int]]:
    """Workers that answered or died, with the job they had; waits for the first."""
    busy = [(worker, worker.job_index) for worker in workers if worker.job_index is not None]
    readable = connection.wait([worker.link for worker, _ in busy])
    return [(worker, job_index) for worker, job_index in busy if worker.link in readable]


def _receive(worker: _Worker, job: Job) -> tuple[bool, Any]:
    """Whether the worker's job is finished, and its result or the share done so far. Raises what `Workers.run` raises."""
    try:
        outcome, value = worker.link.recv()
    except (EOFError, ConnectionResetError):
        worker.process.join(5)
        code = worker.process.exitcode
        if code is not None and (remedy := REMEDY_BY_SIGNAL.get(-code)):
            got = f"{signal.Signals(-code).name} from the system during {job.name}"
            raise InputError("a worker that finishes", got, remedy) from None
        main = "A script that starts a trial must do it under `if __name__ == '__main__':`. " if code == 1 else ""
        raise JobFailed(f"{job.name}: its worker died (exit code {code}). {main}{format_log_tail(job)}") from None
    return outcome == "done", read_outcome(job, outcome, value)


def read_outcome(job: Job, outcome: str, value: Any, machine: str = "") -> Any:
    """What `run_job` sent of a job. Raises InputError for what a user can fix, and JobFailed; both name another machine."""
    if outcome == "input":
        raise value
    if outcome == "error":
        raise JobFailed(f"{job.name}{machine}: {value}{format_log_tail(job)}")
    return value


def format_log_tail(job: Job) -> str:
    """The end of a job's log, for its error."""
    if job.log is None or not job.log.is_file():
        return ""
    text = job.log.read_text(encoding="utf-8", errors="replace")[-LOG_TAIL_CHARACTERS:]
    return f"\nend of {job.log}:\n{text}" if text.strip() else ""


def _work(link: Connection) -> None:
    """Body of a worker: run what arrives until the link closes. Ctrl-C is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            job = link.recv()
        except EOFError:
            return
        except Exception:  # the job's function cannot be imported here: report it, do not die
            link.send(("error", traceback.format_exc()))
            continue
        with contextlib.suppress(BrokenPipeError):
            run_job(job, link.send)


def _end_with_parent() -> None:
    """Leave at once when the parent is killed, in the middle of a job too: a next run may take over the same folder."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def run_job(job: Job, send: Callable[[tuple[str, Any]], None]) -> None:
    """Run one job in a worker and send what it says: ("share", done so far), and at the end ("done", result), ("input",
    an `InputError`) or ("error", traceback). A result that cannot travel is an error of that job.
    """
    try:
        with _printing_to(job.log), listen_with(lambda share: send(("share", share))):
            if (torch := sys.modules.get("torch")) is not None:
                torch.set_num_threads(1)
            value = job.function(job.argument)
        send(("done", value))
    except InputError as error:
        send(("input", error))
    except Exception as error:
        user_error = system_error(error) if isinstance(error, OSError) else disk_full_error(error)
        send(("error", traceback.format_exc()) if user_error is None else ("input", user_error))


@contextlib.contextmanager
def _printing_to(log: Path | None) -> Iterator[None]:
    """Send standard output and error, C libraries' too, to a file, so that workers do not write over the progress line."""
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
    saved_descriptors = [os.dup(1), os.dup(2)]
    target = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(target, 1)
        os.dup2(target, 2)
        yield
    finally:
        with contextlib.suppress(OSError):  # a full disk under the log must not hide what the job found
            sys.stdout.flush()
            sys.stderr.flush()
        for number, copy in zip((1, 2), saved_descriptors, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(target)
