"""Workers on a Ray cluster: the jobs of `mixwright.run.workers`, each in a fresh process of a machine that has room.

Ray schedules, and runs a job again whose worker or machine dies, up to `MAX_DEATHS` times. It writes the same files by the
same seeds, and takes over what it finds of an earlier attempt, so its result is the one that an undisturbed job has. All
machines have the same packages, and see the files of the command under the same path.
"""

from __future__ import annotations

import importlib
import logging
import os
import platform
import socket
import sys
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mixwright import __version__
from mixwright.config import TrialConfig
from mixwright.errors import InputError, one_line
from mixwright.run.workers import ONE_THREAD, Job, Workers, format_log_tail, longest_first, read_outcome, run_job

MAX_DEATHS = 5
"""Times that a job whose worker died is begun again."""
SECONDS_FOR_AN_ANSWER = 10.0
"""Longest wait for a cluster."""
SECONDS_TO_END = 10.0
"""Longest wait for jobs that are stopped."""
REASON_CHARACTERS = 160
"""Of what Ray says of a death."""
SHARED = "Every machine must see the same files under the same path."
MEMORY_REMEDY = "Out of memory? Run fewer workers per machine: raise gpus_per_worker, or lower trial.workers."

_log = logging.getLogger("mixwright")


def start_workers(settings: TrialConfig) -> Workers:
    """The worker processes that every heavy stage shares, here or on a cluster; a context that ends them."""
    if not settings.cluster:
        return Workers(settings.workers)
    return RayWorkers(settings.cluster, settings.workers, gpus_per_worker=settings.gpus_per_worker)


class RayWorkers(Workers):
    """Workers of a Ray cluster for several batches of jobs; a cluster that was started here ends with the `with` block."""

    def __init__(self, cluster: str, workers: int = 0, *, gpus_per_worker: float = 0.0) -> None:
        """Name the cluster.

        Args:
            cluster: `ray` for the one that this machine belongs to, or else for one that is started here; `ray:ADDRESS`.
            workers: jobs at a time; 0 takes as many as the cluster has room for.
            gpus_per_worker: GPUs that each takes, beside one CPU core.
        """
        self._address = cluster.partition(":")[2] or None
        self._limit, self._gpus = workers, gpus_per_worker
        self._running: dict[Any, int] = {}

    def __enter__(self) -> RayWorkers:
        """Connect, or start a cluster. Raises InputError where nobody answers, or none of our own has that many GPUs."""
        self._ray = _import_ray()
        if self._address is not None:
            _check_somebody_answers(self._address)
        try:
            self._ray.init(self._address, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, self._ray.exceptions.RayError) as error:
            remedy = "It needs the same versions of Ray and Python. If it asks for a token, set RAY_AUTH_MODE=token."
            raise InputError("a Ray cluster that accepts this machine", one_line(str(error)), remedy) from None
        try:
            places = self._count_places()
            self.count = min(self._limit, places) if self._limit else places
            options = {"num_cpus": 1, "num_gpus": self._gpus, "max_calls": 1, "max_retries": MAX_DEATHS}
            self._task = self._ray.remote(**options, runtime_env={"env_vars": ONE_THREAD})(work_remotely)
        except BaseException:
            self._ray.shutdown()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop(kill=kind is not None)
        self._ray.shutdown()

    def _count_places(self) -> int:
        """Jobs that the cluster has room for now; 1 where it has to grow first."""
        resources = self._ray.cluster_resources()
        places = int(resources.get("CPU", 0))
        if self._gpus:
            places = min(places, int(resources.get("GPU", 0) / self._gpus + 1e-9))
        if not places:
            _log.warning("the cluster has no room for a worker of 1 core and %g GPUs: waiting for it to grow", self._gpus)
        return max(places, 1)

    def _work_off(self, jobs: Sequence[Job]) -> Iterator[tuple[int, bool, Any]]:
        origin, waiting = (str(Path.cwd()), tuple(sys.path), __version__), deque(longest_first(jobs))
        while waiting or self._running:
            while waiting and (not self._limit or len(self._running) < self._limit):
                job_index = waiting.popleft()
                payload = self._ray.cloudpickle.dumps(jobs[job_index])
                self._running[self._task.remote(payload, *origin)] = job_index
            (reference,), _ = self._ray.wait(list(self._running))
            job = jobs[job_index := self._running.pop(reference)]
            try:
                machine, outcome = self._ray.get(reference)
            except self._ray.exceptions.RayError as death:
                got = f"{MAX_DEATHS + 1} workers that died, {job.name}: {one_line(str(death))[:REASON_CHARACTERS]}"
                remedy = f"{MEMORY_REMEDY} Finished work is reused. {format_log_tail(job)}"
                raise InputError("a worker that finishes", got, remedy) from None
            kind, value = self._ray.cloudpickle.loads(outcome)
            if kind == "input" and machine != platform.node():
                value.got, value.remedy = f"{value.got} (on {machine})", f"{value.remedy} {SHARED}"
            yield job_index, True, read_outcome(job, kind, value, f" on {machine}")

    def _stop(self, *, kill: bool) -> None:
        """End what still runs, and wait until it has ended: somebody may tidy up after it."""
        for reference in self._running if kill else ():
            self._ray.cancel(reference, force=True)
        if kill and self._running:
            self._ray.wait(list(self._running), num_returns=len(self._running), timeout=SECONDS_TO_END)
        self._running = {}


def _import_ray() -> Any:
    """Ray. Raises InputError where the extra is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else a worker without GPUs of Ray's sees none
    try:
        return importlib.import_module("ray")
    except ImportError:
        remedy = "Install it on every machine: pip install 'mixwright[scale]'."
        raise InputError("Ray, for workers on a cluster", "an environment without it", remedy) from None


def _check_somebody_answers(address: str) -> None:
    """Raises InputError where nobody does: Ray itself would try for two minutes, and then end this process."""
    host, colon, port = address.rpartition(":")
    try:
        if not colon:
            raise ValueError("no port")
        with socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS_FOR_AN_ANSWER):
            pass
    except (OSError, ValueError) as error:
        remedy = "`ray start --head` prints the address; inside a Ray job, the environment variable RAY_ADDRESS has it."
        raise InputError("HOST:PORT of a Ray cluster", f"{address}: {error}", remedy) from None


def work_remotely(payload: bytes, folder: str, module_paths: Sequence[str], version: str) -> tuple[str, bytes]:
    """Run one job in a fresh process of a cluster. Returns the machine's name and, pickled, what `run_job` sent last.

    Args:
        payload: the job, pickled.
        folder: current folder of the process that gives jobs, from which relative paths start.
        module_paths: where that looks for modules.
        version: its version of Mixwright.
    """
    cloudpickle = _import_ray().cloudpickle
    machine, said = platform.node(), list[bytes]()

    def send(word: tuple[str, Any]) -> None:
        if word[0] != "share":  # how much of a job is done stays here
            said[:] = [cloudpickle.dumps(word)]

    try:
        _become_like(folder, module_paths, version)
        job = cloudpickle.loads(payload)
    except InputError as error:
        return machine, cloudpickle.dumps(("input", error))
    except Exception:  # the job's function cannot be imported here
        return machine, cloudpickle.dumps(("error", traceback.format_exc()))
    run_job(job, send)
    return machine, said[0]


def _become_like(folder: str, module_paths: Sequence[str], version: str) -> None:
    """Take over folder and module paths. Raises InputError where this machine has another version, or not that folder."""
    if version != __version__:
        expected = f"Mixwright {version}, as on the machine that sends the jobs"
        raise InputError(expected, f"Mixwright {__version__}", "Install the same on every machine.")
    try:
        os.chdir(folder)
    except OSError as error:
        raise InputError("the folder in which the command was given", str(error), SHARED) from None
    sys.path[:] = [*module_paths, *(path for path in sys.path if path not in module_paths)]
