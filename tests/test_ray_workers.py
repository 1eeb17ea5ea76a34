"""Workers on a real Ray cluster of this machine: results, deaths that are survived, and errors that name a machine."""

from __future__ import annotations

import importlib.util
import logging
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ray_cluster import Cluster

from mixwright.errors import InputError
from mixwright.run import ray_workers
from mixwright.run.ray_workers import MAX_DEATHS, RayWorkers
from mixwright.run.workers import Job, JobFailed

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="no Ray (make ray)"),  # it reads settings on import
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray's
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as started, pytest.MonkeyPatch.context() as patch:
        for name, value in started.settings.items():
            patch.setenv(name, value)
        yield started


@pytest.fixture
def workers(cluster: Cluster) -> Iterator[RayWorkers]:
    with RayWorkers(f"ray:{cluster.address}") as started:
        yield started


def double(number: int) -> int:
    return 2 * number


def whoami(_: object) -> tuple[int, str, str, str]:
    environment = Path("/proc/self/environ").read_text()
    return os.getpid(), os.environ["OMP_NUM_THREADS"], str("MKL_NUM_THREADS=1" in environment), str(Path.cwd())


def fail(_: object) -> None:
    sys.stdout.write("what the job printed before it failed")
    raise ValueError("no such luck")


def refuse(_: object) -> None:
    raise InputError("a plan", "nothing", "Write one.", file="plan.yaml", line=3)


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def die_until(given: tuple[Path, int]) -> int:
    """Dies in each of the first attempts; returns how many attempts there were."""
    path, deaths = given
    with path.open("a") as file:
        file.write("x")
    attempts = len(path.read_text())
    if attempts <= deaths:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    return attempts


def quiet(done: float, total: int, left: float | None) -> None:
    pass


def test_results_come_in_order_each_from_a_fresh_process_of_one_thread(workers: RayWorkers) -> None:
    seen: list[float] = []
    jobs = [Job(str(n), double, n, cost=n + 1) for n in range(3)] + [Job("me", whoami, None)] * 2
    results = workers.run(jobs, progress=lambda done, total, left: seen.append(done))
    assert results[:3] == [0, 2, 4]
    assert results[3][0] != results[4][0]
    assert results[3][1:] == results[4][1:] == ("1", "True", str(Path.cwd()))
    assert seen[0] == 0
    assert seen[-1] == 5
    assert workers.count == 2
    assert workers.run([], progress=quiet) == []


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (fail, JobFailed, ["broken", platform.node(), "no such luck", "what the job printed before it failed"]),
        (refuse, InputError, ["plan.yaml, line 3", "Write one."]),
    ],
)
def test_a_failing_job_stops_everything_and_is_named(
    cluster: Cluster, tmp_path: Path, function: object, error: type[Exception], words: list[str]
) -> None:
    jobs = [Job("broken", function, None, cost=9, log=tmp_path / "log.txt"), Job("long", sleep, 600, cost=5)]  # type: ignore[arg-type]
    with RayWorkers(f"ray:{cluster.address}") as workers, pytest.raises(error) as caught:
        workers.run(jobs, progress=quiet)
    for word in words:
        assert word in str(caught.value)


def test_what_a_user_can_fix_on_another_machine_names_it(workers: RayWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_workers.platform, "node", lambda: "here")  # the worker's own is as it was
    with pytest.raises(InputError, match=r"nothing \(on .+\)\. Write one\. Every machine must see"):
        workers.run([Job("broken", refuse, None)], progress=quiet)


def test_a_job_whose_worker_dies_runs_again(workers: RayWorkers, tmp_path: Path) -> None:
    jobs = [Job("mortal", die_until, (tmp_path / "attempts", MAX_DEATHS)), Job("other", double, 4)]
    assert workers.run(jobs, progress=quiet) == [MAX_DEATHS + 1, 8]


def test_a_job_that_always_dies_is_given_up(workers: RayWorkers, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"{MAX_DEATHS + 1} workers that died, mortal.*memory"):
        workers.run([Job("mortal", die_until, (tmp_path / "attempts", 99))], progress=quiet)
    assert len((tmp_path / "attempts").read_text()) == MAX_DEATHS + 1


def test_a_machine_that_dies_takes_no_job_with_it(cluster: Cluster, tmp_path: Path) -> None:
    from ray_cluster import end

    raylet = cluster.add(cores=1)
    with RayWorkers(f"ray:{cluster.address}") as workers:
        for _ in range(100):
            if workers._count_places() == 3:
                break
            time.sleep(0.2)
        threading.Timer(3.0, end, (raylet,)).start()
        assert workers.run([Job(str(n), sleep, 6) for n in range(3)], progress=quiet) == [None] * 3


def test_another_version_elsewhere_is_refused(workers: RayWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_workers, "__version__", "0.0.1")
    with pytest.raises(InputError, match=r"Mixwright 0\.0\.1, as on the machine that sends the jobs"):
        workers.run([Job("any", double, 1)], progress=quiet)


def test_nobody_at_the_address_is_said_at_once() -> None:
    for address in ("127.0.0.1:1", "nowhere"):
        with pytest.raises(InputError, match="HOST:PORT of a Ray cluster"), RayWorkers(f"ray:{address}"):
            pass


def test_more_gpus_than_there_are_are_waited_for_and_this_is_said(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), RayWorkers(f"ray:{cluster.address}", gpus_per_worker=0.5) as workers:
        assert workers.count == 1
    assert "no room for a worker of 1 core and 0.5 GPUs" in caplog.text
