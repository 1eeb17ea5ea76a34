"""Study of commands that are killed: kill -9 at 20 random moments, the same command again, compared with one call.

`measure --folder`, `verdict BEFORE AFTER --gate`, `run` (SFT, two arms, two seeds, requests to rehearse), `run` with two
starting models, one seed and a budget that has room for two, and `mine --miner pruning --try` each end once undisturbed.
Then each is given four times in a new folder, killed with its workers at a moment between 5 and 95 % of that duration, and
given again until it ends. Models are tiny, 12 items per task, and calls are forked from one warm process: a kill strikes
work.

Goals, fixed before: what the killed command leaves (tables, results, claims, pages, weights, what it printed last and its
exit code, without times and paths) equals the undisturbed one 20 times of 20; and of what all its calls together wrote, no
more than the batch that each killed process had begun is written twice, and no more than the one part that it had begun is
read twice, 20 times of 20. A training that was stopped begins anew, and is not counted.

Each kill is a row, kept in the folder for temporary files by commit: a study that was stopped goes on.

    python -m mixwright_lab.studies.kills [--quick]
"""

from __future__ import annotations

import json
import multiprocessing
import random
import shutil
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from mixwright.estimates.intervals import share_interval
from mixwright_lab.studies import _killed_commands as killed
from mixwright_lab.studies import report
from mixwright_lab.studies._killed_commands import Call, Command
from mixwright_lab.studies.rows import read, rows_path, work_and_append
from tests.recorded_runs import TIMES, differences, values

SEED, KILLS, QUICK_KILLS = 0, 4, 1
"""Of each command."""
EARLIEST, LATEST = 0.05, 0.95
"""Shares of the undisturbed duration between which a kill falls."""
ITEMS, MOST_CALLS, MOST_ATTEMPTS, SHOWN = 14, 3, 3, 5
KILLED = -signal.SIGKILL


@dataclass(frozen=True)
class Whole:
    """A command that nobody disturbed."""

    seconds: float
    code: int
    written: int
    read: int
    said: Sequence[str]
    values: Mapping[str, Any]


T = TypeVar("T")


def in_a_copy(work: Callable[[], T]) -> T:
    """What is made in a copy of this process, which itself runs no threads that a fork would lose."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as copies:
        return copies.submit(work).result()


def left_in(folder: Path) -> dict[str, Any]:
    """All values that a command left, without times and places."""
    return in_a_copy(partial(values, folder.resolve()))


def said(call: Call, folder: Path) -> list[str]:
    """What a call printed, without times and places, a line each."""
    text = call.said.replace(str(folder.resolve()), "FOLDER")
    return [" ".join(TIMES.sub("#", line).split()) for line in text.splitlines()]


def total(calls: Sequence[Call], what: str) -> int:
    """Completions that some calls wrote, or read."""
    return sum(sum(rows) for call in calls for rows in getattr(call, what).values())


def begun_last(call: Call, what: str) -> int:
    """Completions in the batch that each process had begun last when it was killed."""
    return sum(rows[-1] for rows in getattr(call, what).values())


def undisturbed(command: Command, work: Path) -> Whole:
    """The command, given once."""
    folder = work / "whole"
    ended = killed.call(command, folder, 0)
    if ended.code not in (0, 3, 4):
        raise RuntimeError((work / f"whole.{killed.OUTPUT}").read_text(errors="replace")[-3000:])
    counts = total([ended], "written"), total([ended], "read")
    return Whole(ended.seconds, ended.code, *counts, said(ended, folder), left_in(folder))


def kill_once(command: Command, whole: Whole, share: float, folder: Path) -> dict[str, Any]:
    """The command killed after a share of its duration, then given again until it ends."""
    calls, duration, place = list[Call](), whole.seconds, folder
    for attempt in range(MOST_ATTEMPTS):
        place = folder / str(attempt) / "out"
        calls = [killed.call(command, place, 0, share * duration)]
        if calls[0].code == KILLED:
            break
        duration = calls[0].seconds  # the machine was busier when nobody disturbed it: it ended before the kill
    folder = place
    while calls[-1].code != whole.code and len(calls) <= MOST_CALLS:
        calls.append(killed.call(command, folder, len(calls)))
    found = differences(whole.values, left_in(folder))
    if said(calls[-1], folder) != list(whole.said):
        found["printed"] = ("\n".join(whole.said), "\n".join(said(calls[-1], folder)))
    row: dict[str, Any] = {"command": command.name, "share": share, "seconds": whole.seconds, "calls": len(calls)}
    row |= {
        "codes": [call.code for call in calls],
        "struck": calls[0].code == KILLED,
        "equal": not found and calls[-1].code == whole.code,
    }
    row["different"] = {path: [str(part)[:80] for part in pair] for path, pair in list(found.items())[:SHOWN]}
    for what in ("written", "read"):
        again = total(calls, what) - getattr(whole, what)
        last = sum(begun_last(call, what) for call in calls if call.code == KILLED)
        row[what] = {"undisturbed": getattr(whole, what), "twice": again, "begun": last}
    if calls[-1].code != whole.code:
        row["failed"] = (folder.parent / f"{folder.name}.{killed.OUTPUT}").read_text(errors="replace")[-1500:]
    return row


def kills_of(command: Command, count: int) -> list[float]:
    """Shares of the duration at which a command is killed: one at random in each of as many equal parts."""
    rng, part = random.Random(f"{SEED} {command.name}"), (LATEST - EARLIEST) / count
    return [EARLIEST + part * (place + rng.random()) for place in range(count)]


def measure(quick: bool) -> report.Result:
    """All kills; rows that an earlier run of the same commit made are read."""
    count = QUICK_KILLS if quick else KILLS
    path = rows_path("kills-quick" if quick else "kills")
    killed.warm()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="mixwright-kills-", ignore_cleanup_errors=True) as scratch:
        work = Path(scratch).resolve()
        in_a_copy(partial(killed.make_inputs, work / "made", ITEMS))
        for place, command in enumerate(killed.commands(work / "made")):
            own = work / str(place)
            jobs = [(command.name, share) for share in kills_of(command, count)]
            if left := [job for job in jobs if repr(job) not in read(path)]:
                whole = undisturbed(command, own)
                for number, job in enumerate(left):
                    folder = own / f"killed{number}"
                    work_and_append(lambda job: kill_once(command, whole, job[1], folder), path, job)  # noqa: B023
                    print(json.dumps(read(path)[repr(job)]), flush=True)
                shutil.rmtree(own)
            rows += [read(path)[repr(job)] for job in jobs]
    equal = sum(row["equal"] and row["struck"] for row in rows)
    figures = {command: figures_of([row for row in rows if row["command"] == command]) for command in command_names(rows)}
    unit = "share of kills after which the command, given again, leaves what the undisturbed one leaves"
    about = {"kills per command": count, "items per task": ITEMS, "steps": killed.STEPS, "seeds": killed.SEEDS}
    return report.Result(share_interval(equal, len(rows)), unit, [SEED], rows, figures, about, goals=goals_of(rows))


def command_names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Commands, in the order in which they were killed."""
    return list(dict.fromkeys(row["command"] for row in rows))


def figures_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of one command: kills that left the same, and completions and readings twice beside those that had been begun."""
    found: dict[str, Any] = {"kills": len(rows), "equal": sum(row["equal"] for row in rows)}
    for what in ("written", "read"):
        parts = [row[what] for row in rows]
        found[what] = {name: [part[name] for part in parts] for name in ("twice", "begun")}
        found[what] |= {"undisturbed": parts[0]["undisturbed"]}
    print(rows[0]["command"], json.dumps(found), flush=True)
    return found


def goals_of(rows: Sequence[Mapping[str, Any]]) -> list[report.Goal]:
    """What was fixed before the run."""
    goals = {"what is left is equal": [row["equal"] and row["struck"] for row in rows]}
    for what in ("written", "read"):
        goals[f"{what} twice: at most what each process had begun"] = [
            row[what]["twice"] <= row[what]["begun"] for row in rows
        ]
    every = len(rows)
    return [
        report.Goal(name, share_interval(sum(held), every), f"{every} of {every}", all(held)) for name, held in goals.items()
    ]


if __name__ == "__main__":
    report.run("kills", __doc__, measure)
