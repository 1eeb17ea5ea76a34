import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mixwright.errors import InputError
from mixwright.run.progress import format_time_left, progress_line, report_share
from mixwright.run.workers import Job, JobFailed, Workers

pytestmark = pytest.mark.spawned


def double(number):
    return 2 * number


def whoami(_):
    return os.getpid(), os.environ["OMP_NUM_THREADS"]


def fail(_):
    sys.stdout.write("what the job printed before it failed")
    raise ValueError("no such luck")


def refuse(_):
    raise InputError("a plan", "nothing", "Write one.", file="plan.yaml", line=3)


def die(_):
    os.kill(os.getpid(), signal.SIGKILL)


def sleep(seconds):
    time.sleep(seconds)


def report_quarters(_):
    for quarter in (1, 2, 3):
        report_share(quarter / 4)


def unsendable(_):
    return lambda: None


def quiet(done, total, left):
    pass


def run_jobs(jobs, workers=1, progress=quiet):
    with Workers(workers) as started:
        return started.run(jobs, progress=progress)


def test_results_come_in_the_order_of_the_jobs_and_long_ones_start_first(tmp_path):
    seen = []
    jobs = [Job(str(n), double, n, cost=n + 1) for n in range(5)] + [Job("me", whoami, None)] * 2
    results = run_jobs(jobs, workers=1, progress=lambda *state: seen.append(state))
    assert results[:5] == [0, 2, 4, 6, 8]
    assert results[5] == results[6]  # one long-lived worker
    assert results[5][0] != os.getpid()
    assert results[5][1] == "1"
    assert [done for done, _, _ in seen] == list(range(8))
    assert seen[0][2] is None
    assert seen[-1] == (7, 7, 0.0)
    # cost 5 of 17 ran first: what is left is 12/5 of what has passed, so more than what the last but one job leaves
    assert seen[1][2] > seen[6][2]
    assert multiprocessing.active_children() == []
    assert run_jobs([], workers=2, progress=quiet) == []


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (fail, JobFailed, ["broken", "no such luck", "what the job printed before it failed"]),
        (die, InputError, ["broken", "SIGKILL", "memory"]),
        (unsendable, JobFailed, ["broken", "pickle"]),
        (refuse, InputError, ["plan.yaml, line 3", "Write one."]),
    ],
)
def test_a_failing_job_stops_everything_and_is_named(tmp_path, function, error, words):
    jobs = [Job("broken", function, None, cost=9, log=tmp_path / "log.txt"), Job("long", sleep, 600, cost=5)]
    with pytest.raises(error) as caught:
        run_jobs(jobs, workers=2, progress=quiet)
    for word in words:
        assert word in str(caught.value)
    assert multiprocessing.active_children() == []


def test_ctrl_c_stops_all_workers():
    def interrupt(done, total, left):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_jobs([Job("quick", double, 1, cost=2), Job("long", sleep, 600)], workers=2, progress=interrupt)
    assert multiprocessing.active_children() == []


def test_a_pool_keeps_its_workers_between_batches():
    with Workers(1) as workers:
        first = workers.run([Job("one", whoami, None)], progress=quiet)
        assert workers.run([Job("two", whoami, None)], progress=quiet) == first
        assert workers.run([], progress=quiet) == []
    assert multiprocessing.active_children() == []


def test_a_worker_ends_when_its_parent_is_gone():
    with Workers(1) as workers:
        workers.run([Job("one", double, 1)], progress=quiet)
        (child,) = multiprocessing.active_children()
        workers._workers[0].link.close()  # what the death of the parent does
        child.join(10)
        assert child.exitcode == 0


KILLED = """
import os, signal, test_workers as jobs
if __name__ == "__main__":
    with jobs.Workers(1) as workers:
        print(workers.run([jobs.Job("who", jobs.whoami, None)], progress=jobs.quiet)[0][0], flush=True)
        workers.run([jobs.Job("long", jobs.sleep, 600)], progress=jobs.quiet)
"""


def test_a_busy_worker_ends_when_its_parent_is_killed(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(KILLED, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, env=environment, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        worker = int(parent.stdout.readline())
    time.sleep(0.5)  # it sleeps in its job
    parent.kill()
    parent.wait()
    until = time.monotonic() + 10
    while (gone := not Path(f"/proc/{worker}/cmdline").is_file()) is False and time.monotonic() < until:
        time.sleep(0.05)
    if not gone:
        os.kill(worker, signal.SIGKILL)
    assert gone


def test_the_environment_of_this_process_is_left_alone(monkeypatch):
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    run_jobs([Job("quick", double, 1)], progress=quiet)
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def test_jobs_under_way_count_in_part_and_make_the_time_left_known():
    seen = []
    jobs = [Job("long", report_quarters, None, cost=3), Job("short", double, 1)]
    assert run_jobs(jobs, workers=1, progress=lambda *state: seen.append(state)) == [None, 2]
    assert [done for done, _, _ in seen] == [0, 0.25, 0.5, 0.75, 1, 2]
    assert seen[0][2] is None
    assert all(left is not None and left > 0 for _, _, left in seen[1:-1])
    report_share(0.5)  # outside a worker nobody listens


def test_without_a_terminal_parts_of_jobs_are_a_line_per_tenth_of_all(capsys):
    with progress_line("warm up") as show:
        show(0, 2, None)
        for part in range(1, 20):
            show(part / 20, 2, 60.0)
        show(1, 2, 30.0)
        show(2, 2, 0.0)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) <= 8
    assert "warm up: 0 of 2 (10%), about 60 s left" in lines
    assert lines[-2:] == ["warm up: 1 of 2, about 30 s left", "warm up: 2 of 2, done"]


def test_time_left():
    assert [format_time_left(s) for s in (0.2, 89, 90, 600, 7200)] == [
        "about 1 s left",
        "about 89 s left",
        "about 2 min left",
        "about 10 min left",
        "about 2.0 h left",
    ]
