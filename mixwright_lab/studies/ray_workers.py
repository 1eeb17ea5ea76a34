"""Study of workers on a Ray cluster beside the local pool: branches per hour, equal results, kills, and a head that dies.

One run of tiny models (SFT; uniform, steered and frozen on two seeds, 6 branches) is measured and planned by the local pool.
Its trial is then made from copies of that folder: by the local pool with 1, 2 and 4 workers, and on clusters of 1, 2 and 4
raylets of one core each, all on this machine. So on two cores the times show what Ray adds, and nothing of how it scales:
each branch has a fresh process there, which imports torch and TRL, and takes about a second itself.

Then trials on clusters of two raylets are disturbed. In each of four, five processes that run a branch are killed at random
moments (SIGKILL), whichever branch they run. In one, this study takes memory until Ray's monitor has killed a worker for it.
In one, a raylet is killed with all its processes while branches run. In one, the head is killed with all its processes after
the second branch; then the same command is given again with a new head.

Goals, fixed before: every trial leaves what the local pool left, by value, and in the tables and weights of its branches to
the byte; nothing is lost; 20 kills were made, at least one worker was killed for memory, and a raylet died with a branch on
it; after the dead head the branches that were finished are not made again; and Ray adds at most 15 s of a worker's time to a
branch, with two workers.

Each trial is a row, kept in the folder for temporary files by commit. Needs the extra `scale`.

    python -m mixwright_lab.studies.ray_workers [--quick]
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from mixwright.estimates.intervals import share_interval
from mixwright.records import Interval
from mixwright_lab.studies import report
from mixwright_lab.studies.jobs import rows_by_job, rows_path, work_and_append
from mixwright_lab.studies.kills import ITEMS, left_in, make_inputs
from tests.ray_cluster import Cluster, end, job_processes
from tests.recorded_runs import differences

SEED, KILLS, KILLED_TRIALS, BRANCHES = 0, 5, 4, 6
SIZES = (1, 2, 4)
MAX_SECONDS_PER_BRANCH = 15.0
LONGEST_WAIT = 8.0
"""Seconds of a branch's process, its imports among them, within which a kill falls."""
MEMORY_STEP, MEMORY_ABOVE = 256 * 2**20, 1536 * 2**20
"""Bytes that are taken at a time, and by which the threshold of Ray's monitor stands above what is taken at the start."""
COMPARED = ("after.parquet", "completions.parquet", "before.parquet", "model.safetensors", "adapter_model.safetensors")
OTHER_SETTINGS = ("run.yaml/trial/workers", "run.yaml/trial/cluster")
"""Paths of values that say where the trial was made."""
DONE = "trial: {} of 6"


@dataclass(frozen=True)
class Given:
    """A trial: where its workers are, and what is done to it."""

    engine: str
    """local or ray."""
    workers: int
    """At a time; on a cluster raylets of one core."""
    struck: str = ""
    """branch, memory, raylet or head; nothing is done by default."""
    number: int = 0
    """Of those that are alike."""


@dataclass
class Command:
    """One call of `mixwright trial` while it runs."""

    process: subprocess.Popen[str]
    log: Path
    began: float

    @property
    def said(self) -> str:
        """On standard error until now."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def done(self) -> int:
        """Branches that are finished, as the progress line has it; -1 before the first line of the trial."""
        return max((number for number in range(BRANCHES + 1) if DONE.format(number) in self.said), default=-1)

    @property
    def running(self) -> bool:
        """Whether it did not end yet."""
        return self.process.poll() is None


def trials(*, quick: bool) -> list[Given]:
    """All of the study, in the order of the rows."""
    sizes = SIZES[:2] if quick else SIZES
    found = [Given(engine, size) for size in sizes for engine in ("local", "ray")]
    found += [Given("ray", 2, "branch", number) for number in range(1 if quick else KILLED_TRIALS)]
    return found + ([] if quick else [Given("ray", 2, "memory"), Given("ray", 2, "raylet"), Given("ray", 2, "head")])


def make_trial(given: Given, whole: Path, made: Path, work: Path) -> dict[str, Any]:
    """The row of one trial: what was done to it, what it took, and whether it left what the local pool left."""
    folder = work / f"{given.engine}-{given.workers}-{given.struck}-{given.number}"
    shutil.copytree(whole, folder / "out", ignore=shutil.ignore_patterns("trial", "verdict.*", "claims.json", ".lock"))
    row: dict[str, Any] = {"engine": given.engine, "workers": given.workers, "struck": given.struck, "calls": 1}
    if given.engine == "local":
        with command(folder, made, given.workers) as running:
            row |= wait(running, lambda: None)
    else:
        memory = psutil.virtual_memory()
        share = (memory.total - memory.available + MEMORY_ABOVE) / memory.total
        watched = {"RAY_memory_usage_threshold": f"{share:.4f}", "RAY_memory_monitor_refresh_ms": "100"}
        off = {"RAY_memory_monitor_refresh_ms": "0"}
        with Cluster(cores=1, environment=watched if given.struck == "memory" else off) as cluster:
            raylets = [cluster.add(cores=1) for _ in range(given.workers - 1)]
            time.sleep(5)  # they join
            with command(folder, made, given.workers, cluster) as running:
                row |= wait(running, strike(given, running, cluster, raylets, row))
        if given.struck == "head":
            finished = {path: path.stat().st_mtime_ns for path in (folder / "out" / "trial").glob("*/branch.json")}
            row |= {"first_code": row["code"], "calls": 2, "finished_before": len(finished)}
            with Cluster(cores=2, environment=off) as cluster, command(folder, made, given.workers, cluster) as running:
                row |= wait(running, lambda: None)
            row["made_again"] = sum(path.stat().st_mtime_ns != moment for path, moment in finished.items())
    found = differences(left_in(whole), left_in(folder / "out"))
    row["different"] = sorted(path for path in found if is_result(path))[:5]
    row["other_bytes"] = sorted(digests(whole).items() ^ digests(folder / "out").items())[:5]
    row["branches"] = len(list((folder / "out" / "trial").glob("*/branch.json")))
    return row | {"equal": not row["different"] and not row["other_bytes"] and row["code"] == 0}


def is_result(path: str) -> bool:
    """Whether a value says what came out: not where it was made, and not on the page, which a trial does not write."""
    return path not in OTHER_SETTINGS and not path.startswith(("verdict.", "claims.json"))


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of the tables and weights of all branches."""
    files = [path for name in COMPARED for path in (folder / "trial").glob(f"*/**/{name}")]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@contextlib.contextmanager
def command(folder: Path, made: Path, workers: int, cluster: Cluster | None = None) -> Iterator[Command]:
    """`mixwright trial` in a folder, on a cluster or here; killed at the end of the block if it still runs."""
    words = ["trial", str(made / f"trial{workers}.yaml"), "--folder", "out"]
    words += [] if cluster is None else ["--cluster", f"ray:{cluster.address}"]
    log = folder / f"{time.monotonic_ns()}.log"
    with log.open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "mixwright", *words],
            cwd=folder,
            env=None if cluster is None else cluster.environment,
            stdout=subprocess.DEVNULL,
            stderr=said,
            text=True,
        )
    try:
        yield Command(process, log, time.monotonic())
    finally:
        process.kill()
        process.wait()


def wait(running: Command, act: Callable[[], None]) -> dict[str, Any]:
    """Let it end, acting meanwhile: exit code, seconds of the command and of its trial, and lines on jobs that run again."""
    first: float | None = None
    while running.running:
        if first is None and running.done >= 0:
            first = time.monotonic()
        act()
        time.sleep(0.05)
    now = time.monotonic()
    lines = running.said.splitlines()
    print(*lines[-3:], sep="\n", file=sys.stderr)
    return {
        "code": running.process.returncode,
        "seconds": now - running.began,
        "trial_seconds": now - (first or now),
        "again": [
            line.partition(" on ")[0] + line.rpartition(". It runs again")[2] for line in lines if "runs again" in line
        ],
    }


def strike(
    given: Given, running: Command, cluster: Cluster, raylets: Sequence[subprocess.Popen[bytes]], row: dict[str, Any]
) -> Callable[[], None]:
    """What is done to a trial, called again and again; notes in the row how often it struck."""
    rng, born = random.Random(f"{SEED} {given.struck} {given.number}"), dict[int, float]()
    state: dict[str, Any] = {"wait": rng.uniform(0.0, LONGEST_WAIT), "before": -1, "struck": 0.0, "memory": []}
    row["strikes"] = 0

    def pids() -> list[int]:
        alive = list(job_processes(cluster.folder)) if running.done >= 0 else []
        for pid in alive:
            born.setdefault(pid, time.monotonic())
        return alive

    def on_branch() -> None:
        row["strikes"] = running.said.count("runs again")  # a process that had just ended is no kill
        old = [pid for pid in pids() if time.monotonic() - born[pid] >= state["wait"]]
        noticed = row["strikes"] > state["before"] or time.monotonic() > state["struck"] + LONGEST_WAIT
        if old and row["strikes"] < KILLS and noticed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(old), signal.SIGKILL)
                state.update(before=row["strikes"], struck=time.monotonic(), wait=rng.uniform(0.0, LONGEST_WAIT))

    def on_memory() -> None:
        if "memory" in running.said.partition(DONE.format(0))[2]:
            row["strikes"] = 1
            state["memory"] = []
        elif pids() and not row["strikes"]:
            state["memory"].append(b"1" * MEMORY_STEP)

    def on_part(part: subprocess.Popen[bytes]) -> Callable[[], None]:
        def act() -> None:
            if not row["strikes"] and running.done >= 2 and len(pids()) >= 2:
                row["strikes"] = 1
                end(part)

        return act

    acts = {"": lambda: None, "branch": on_branch, "memory": on_memory, "head": on_part(cluster.parts[0])}
    return acts[given.struck] if given.struck != "raylet" else on_part(raylets[0])


def measure(quick: bool) -> report.Result:
    """All trials; rows that an earlier run of the same commit made are read."""
    path = rows_path("ray_workers-quick" if quick else "ray_workers")
    given = trials(quick=quick)
    with tempfile.TemporaryDirectory(prefix="mixwright-ray-", ignore_cleanup_errors=True) as scratch:
        work = Path(scratch).resolve()
        made = work / "made"
        make_inputs(made, ITEMS)
        text = (made / "run.yaml").read_text(encoding="utf-8")
        for size in SIZES:
            (made / f"trial{size}.yaml").write_text(text.replace("workers: 2", f"workers: {size}"), encoding="utf-8")
        whole = work / "whole"
        whole.mkdir()
        words = [sys.executable, "-m", "mixwright", "run", str(made / "run.yaml"), "--folder", "out"]
        subprocess.run(words, cwd=whole, check=True, stdout=subprocess.DEVNULL)
        for one in given:
            if repr(one) not in rows_by_job(path):
                work_and_append(lambda job: make_trial(job, whole / "out", made, work), path, one)
                print(rows_by_job(path)[repr(one)], flush=True)
    rows = [rows_by_job(path)[repr(one)] for one in given]
    equal = share_interval(sum(row["equal"] for row in rows), len(rows))
    unit = "share of trials that leave what the local pool left"
    about = {"branches per trial": BRANCHES, "cores of the machine": os.cpu_count()}
    return report.Result(equal, unit, [SEED], rows, figures_of(rows), about, goals=goals_of(rows))


def figures_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Branches per hour by engine and workers, while the trial ran."""
    return {
        f"{row['engine']}, {row['workers']} workers": {
            "branches per hour": 3600 * BRANCHES / row["trial_seconds"],
            "seconds of the command": row["seconds"],
        }
        for row in rows
        if not row["struck"]
    }


def seconds_added(rows: Sequence[Mapping[str, Any]], workers: int = 2) -> float:
    """Seconds of a worker that a branch takes on Ray beyond those in the local pool."""
    undisturbed = (row for row in rows if not row["struck"] and row["workers"] == workers)
    seconds = {row["engine"]: row["trial_seconds"] for row in undisturbed}
    return (seconds["ray"] - seconds["local"]) * workers / BRANCHES


def goals_of(rows: Sequence[Mapping[str, Any]]) -> list[report.Goal]:
    """What was fixed before the run."""
    every = len(rows)
    equal, whole = sum(row["equal"] for row in rows), sum(row["branches"] == BRANCHES for row in rows)
    added = seconds_added(rows)
    strikes = {kind: [row for row in rows if row["struck"] == kind] for kind in ("branch", "memory", "raylet", "head")}
    kills = sum(row["strikes"] for row in strikes["branch"])
    wanted = KILLS * KILLED_TRIALS
    of_parts = [kind for kind in ("memory", "raylet") for row in strikes[kind] if row["strikes"] and row["again"]]
    heads = [row for row in strikes["head"] if row["finished_before"] and not row["made_again"] and row["first_code"]]

    def counted(number: int) -> Interval:
        return Interval(number, number, number, 1)

    return [
        report.Goal("equal to the local pool", share_interval(equal, every), f"{every} of {every}", equal == every),
        report.Goal("no branch is lost", share_interval(whole, every), f"{every} of {every}", whole == every),
        report.Goal("kills of branches", counted(kills), f"== {wanted}", kills == wanted),
        report.Goal("a worker killed for memory, a raylet that died", counted(len(of_parts)), "== 2", len(of_parts) == 2),
        report.Goal("after a dead head finished branches stand", counted(len(heads)), "== 1", len(heads) == 1),
        report.Goal(
            "seconds that Ray adds to a branch",
            Interval(added, added, added, 1),
            f"<= {MAX_SECONDS_PER_BRANCH:g}",
            added <= MAX_SECONDS_PER_BRANCH,
        ),
    ]


if __name__ == "__main__":
    report.run("ray_workers", __doc__, measure)
