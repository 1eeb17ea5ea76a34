"""Study of commands that are killed: kill -9 at 20 random moments, the same command again, compared with one call.

`measure --folder`, `verdict BEFORE AFTER --gate`, `run` (SFT, two arms, two seeds, requests to rehearse), `run` with two
starting models, one seed and a budget that has room for two, and `mine --miner pruning --try` each end once undisturbed.
Then each is given four times in a new folder, killed with its workers at a moment between 5 and 95 % of that duration, and
given again until it ends. Models are tiny, 12 items per task. Calls are forked from one warm process, their workers from the
call, so that a kill strikes work and seldom an import. Before a batch of completions is written, or log-probabilities are
read, their number is appended to a file with the id of the process.

Goals, fixed before: what the killed command leaves (tables, results, claims, pages, weights, what it printed last and its
exit code, without times and paths) equals the undisturbed one 20 times of 20; and of what all its calls together wrote, no
more than the batch that each killed process had begun is written twice, and no more than the one part that it had begun is
read twice, 20 times of 20. A training that was stopped begins anew, and is not counted.

Each kill is a row, kept in the folder for temporary files by commit: a study that was stopped goes on.

    python -m mixwright_lab.studies.kills [--quick]
"""

from __future__ import annotations

import contextlib
import importlib
import io
import itertools
import json
import multiprocessing
import os
import pkgutil
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

import mixwright
from mixwright.config import ModelConfig, WarmupConfig
from mixwright.corpus import Corpus
from mixwright.estimates.intervals import share_interval
from mixwright.learner import learner as learners
from mixwright.learner import shared_generation
from mixwright.records import Example
from mixwright.run import workers
from mixwright.run.folder import yaml_text
from mixwright.verbs import ready
from mixwright_extras.tiny.model import build_tiny
from mixwright_extras.tiny.warmup import warm_up
from mixwright_lab.studies import report
from mixwright_lab.studies.jobs import rows_by_job, rows_path, work_and_append
from tests.recorded_runs import TIMES, differences, values

TASKS = ("copy", "double", "next")
TEMPLATE = (
    "{% for message in messages %}say {{ message['content'] }}{% endfor %}{% if add_generation_prompt %} : {% endif %}"
)
"""Of the checkpoints: prompts as plain text are another form, which measuring asks a few items in."""
STEPS, SEEDS, LARGE_BUDGET_MINUTES = 4, 2, 600
FEW_ROWS = 12
"""Completions that are written side by side where no batch size is given, so that they end at many moments."""
CALL_SECONDS = 120.0
"""Longest that a call which nobody kills may take."""
OUTPUT = "stderr"
"""End of the name of the file with what all calls of a command said on standard error."""


@dataclass(frozen=True)
class Command:
    """One command line."""

    name: str
    words: tuple[str, ...]
    """Paths under MADE are those of the models and rows; it runs in a folder of its own."""


@dataclass(frozen=True)
class Call:
    """How a call ended."""

    code: int
    said: str
    """On standard output."""
    seconds: float
    written: Mapping[int, Sequence[int]]
    """Process -> completions of each batch that it began."""
    read: Mapping[int, Sequence[int]]
    """Process -> completions whose log-probabilities were read together."""


def warm() -> None:
    """Import what the commands will, once; workers fork."""
    for found in pkgutil.walk_packages(mixwright.__path__, "mixwright."):
        importlib.import_module(found.name)
    for name in ("datasets", "trl.trainer.sft_trainer", "trl.trainer.grpo_trainer", "pyarrow.parquet"):
        importlib.import_module(name)
    workers._start = _forked_worker
    shared_generation.MAX_ROWS = FEW_ROWS
    ready.monotonic = lambda: 0.0  # seconds per item stand in the manifest and on the page: a clock gives them, no result


def _forked_worker() -> workers._Worker:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, ours), daemon=True)
    process.start()
    theirs.close()
    return workers._Worker(process, ours)


def _work(link: Connection, other_end: Connection) -> None:
    other_end.close()  # else it would never see the link close
    workers._work(link)


def answer(task: str, number: int) -> str:
    """What is right."""
    return str({"copy": number, "double": 2 * number, "next": number + 1}[task])


def make_inputs(made: Path, items: int) -> None:
    """Rows, requests to rehearse, two checkpoints, and the settings of two runs."""
    rng = random.Random(0)
    numbers = {task: rng.sample(range(10, 100), 60) for task in TASKS}
    rows = {
        split: [
            {
                "id": f"{task}-{n}",
                "task": task,
                "prompt": f"{task} {n}",
                "completion": answer(task, n),
                "answer": answer(task, n),
            }
            for task, n in itertools.chain.from_iterable(((task, n) for n in numbers[task][part]) for task in TASKS)
        ]
        for split, part in (("train", slice(0, 40)), ("eval", slice(40, 40 + items)))
    }
    asked = [{"id": f"r{n}", "task": "former", "prompt": f"former {n}"} for n in range(200, 224)]
    graded = [{name: row[name] for name in ("id", "task", "prompt", "answer")} for row in rows["eval"]]
    made.mkdir(parents=True, exist_ok=True)
    for name, lines in {**rows, "graded": graded, "requests": asked}.items():
        (made / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    examples = [
        Example(str(row["id"]), str(row["task"]), str(row["prompt"]), answer=str(row["answer"]), split="train")
        for row in rows["train"]
    ]
    corpus = Corpus.from_examples(examples)
    learner = build_tiny((f"say {row.prompt} : {row.answer}" for row in examples), _size(), 0)
    learner.tokenizer.chat_template = TEMPLATE
    learner = learners.Learner(learner.model, learner.tokenizer, "made")
    for name, steps in (("before", 80), ("after", 40)):
        warm_up(learner, corpus, WarmupConfig(steps=steps, batch_size=16, learning_rate=5e-3), seed=len(name))
        learner.save(made / name)
    for name, other in settings_of(made).items():
        (made / f"{name}.yaml").write_text(yaml_text(other), encoding="utf-8")


def _size() -> ModelConfig:
    return ModelConfig(width=32, depth=2, heads=2, vocabulary=300)


def settings_of(made: Path) -> dict[str, dict[str, Any]]:
    """Settings of the runs: from the checkpoint with requests to rehearse, and from a tiny model under a budget."""
    corpus = {"train": str(made / "train.jsonl"), "eval": str(made / "eval.jsonl")}
    shared: dict[str, Any] = {
        "measure": {"items": 12, "samples": 2, "max_new_tokens": 4, "continued_tokens": 8},
        "train": {"objective": "sft", "steps": STEPS, "prompts": 8, "learning_rate": 1e-3},
        "trial": {"arms": ["uniform", "steered"], "seeds": SEEDS, "workers": 2},
    }
    given = {"corpus": corpus | {"rehearse": str(made / "requests.jsonl")}, "model": {"path": str(made / "before")}}
    size = _size()
    tiny: dict[str, Any] = {"width": size.width, "depth": size.depth, "heads": size.heads, "vocabulary": size.vocabulary}
    tiny |= {"warmup": {"steps": 40, "batch_size": 16}}
    timed = shared["trial"] | {"seeds": SEEDS // 2, "budget_minutes": LARGE_BUDGET_MINUTES}  # twice as many fit
    mined = {"corpus": corpus, "model": {"path": str(made / "before")}, "mine": {"options": {"pruning": {"end": "hard"}}}}
    return {
        "run": shared | given,
        "budget": shared | {"corpus": corpus, "model": tiny, "trial": timed},
        "mine": shared | mined,
    }


def commands(made: Path) -> list[Command]:
    """The command lines, in the order of their length."""
    before, after, graded = str(made / "before"), str(made / "after"), str(made / "graded.jsonl")
    measuring = ("--eval", graded, "--items", "12", "--samples", "2", "--batch-size", "12", "--folder", "out")
    return [
        Command("measure", ("measure", before, *measuring)),
        Command("verdict --gate", ("verdict", before, after, *measuring, "--gate", "--protect", "copy")),
        Command("run", ("run", str(made / "run.yaml"), "--folder", "out")),
        Command("run, with a budget", ("run", str(made / "budget.yaml"), "--folder", "out")),
        Command(
            "mine --try",
            ("mine", str(made / "mine.yaml"), "--miner", "pruning", "--keep", "0.5", "--try", "--folder", "out"),
        ),
    ]


def call(command: Command, folder: Path, number: int, stop: float | None = None) -> Call:
    """Give a command in a folder, in a process group of its own, which is killed after `stop` seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    log, began = folder.parent / f"{folder.name}.{number}.log", time.monotonic()
    child = os.fork()
    if child == 0:
        _inside(command, folder, log)
    deadline = began + (CALL_SECONDS if stop is None else stop)
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            break
        if time.monotonic() >= deadline:
            os.killpg(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
            break
        time.sleep(0.002)
    seconds = time.monotonic() - began
    _wait_for_group(child)
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []
    parts: dict[str, dict[int, list[int]]] = {"written": {}, "read": {}}
    for line in lines:
        parts[line["what"]].setdefault(line["process"], []).append(line["rows"])
    out = log.with_suffix(".stdout")
    said = out.read_text(encoding="utf-8", errors="replace") if out.exists() else ""
    return Call(os.waitstatus_to_exitcode(status), said, seconds, parts["written"], parts["read"])


def _wait_for_group(group: int) -> None:
    """Until the workers of a call are gone, so that the next one finds the folder free."""
    until = time.monotonic() + 5
    with contextlib.suppress(ProcessLookupError, PermissionError):
        while time.monotonic() < until:
            os.killpg(group, 0)
            time.sleep(0.005)


def _inside(command: Command, folder: Path, log: Path) -> None:
    """The forked child: never returns."""
    code: object = 1
    try:
        os.setpgid(0, 0)
        for number, path in ((1, log.with_suffix(".stdout")), (2, folder.parent / f"{folder.name}.{OUTPUT}")):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
        sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False), write_through=True)
        sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", closefd=False), write_through=True)
        os.chdir(folder)
        count_into(log)
        from mixwright.__main__ import main

        main(command.words)
        code = 0
    except SystemExit as leaving:
        code = leaving.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code if isinstance(code, int) else 1)


def count_into(log: Path) -> None:
    """Append the number of completions that ended together before they are kept, and before log-probabilities are read."""
    write, read = learners.generate, learners.Learner.logprobs

    def note(what: str, rows: int) -> None:
        line = json.dumps({"what": what, "rows": rows, "process": os.getpid()}) + "\n"
        place = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(place, line.encode())
        os.close(place)

    def counted(*asked: Any) -> Any:
        for made in write(*asked):
            note("written", sum(map(len, made.values())))
            yield made

    def counted_reading(learner: learners.Learner, prompts: Any, completions: Any) -> Any:
        note("read", len(prompts))  # a learner that keeps what it read comes here with what is new alone
        return read(learner, prompts, completions)

    learners.generate = counted  # type: ignore[assignment]
    learners.Learner.logprobs = counted_reading  # type: ignore[method-assign]


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
    ended = call(command, folder, 0)
    if ended.code not in (0, 3, 4):
        raise RuntimeError((work / f"whole.{OUTPUT}").read_text(errors="replace")[-3000:])
    counts = total([ended], "written"), total([ended], "read")
    return Whole(ended.seconds, ended.code, *counts, said(ended, folder), left_in(folder))


def kill_once(command: Command, whole: Whole, share: float, folder: Path) -> dict[str, Any]:
    """The command killed after a share of its duration, then given again until it ends."""
    calls, duration, place = list[Call](), whole.seconds, folder
    for attempt in range(MOST_ATTEMPTS):
        place = folder / str(attempt) / "out"
        calls = [call(command, place, 0, share * duration)]
        if calls[0].code == KILLED:
            break
        duration = calls[0].seconds  # the machine was busier when nobody disturbed it: it ended before the kill
    folder = place
    while calls[-1].code != whole.code and len(calls) <= MOST_CALLS:
        calls.append(call(command, folder, len(calls)))
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
        row["failed"] = (folder.parent / f"{folder.name}.{OUTPUT}").read_text(errors="replace")[-1500:]
    return row


def kills_of(command: Command, count: int) -> list[float]:
    """Shares of the duration at which a command is killed: one at random in each of as many equal parts."""
    rng, part = random.Random(f"{SEED} {command.name}"), (LATEST - EARLIEST) / count
    return [EARLIEST + part * (place + rng.random()) for place in range(count)]


def measure(quick: bool) -> report.Result:
    """All kills; rows that an earlier run of the same commit made are read."""
    count = QUICK_KILLS if quick else KILLS
    path = rows_path("kills-quick" if quick else "kills")
    warm()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="mixwright-kills-", ignore_cleanup_errors=True) as scratch:
        work = Path(scratch).resolve()
        in_a_copy(partial(make_inputs, work / "made", ITEMS))
        for place, command in enumerate(commands(work / "made")):
            own = work / str(place)
            jobs = [(command.name, share) for share in kills_of(command, count)]
            if left := [job for job in jobs if repr(job) not in rows_by_job(path)]:
                whole = undisturbed(command, own)
                for number, job in enumerate(left):
                    folder = own / f"killed{number}"
                    work_and_append(lambda job: kill_once(command, whole, job[1], folder), path, job)  # noqa: B023
                    print(json.dumps(rows_by_job(path)[repr(job)]), flush=True)
                shutil.rmtree(own)
            rows += [rows_by_job(path)[repr(job)] for job in jobs]
    equal = sum(row["equal"] and row["struck"] for row in rows)
    figures = {command: figures_of([row for row in rows if row["command"] == command]) for command in command_names(rows)}
    unit = "share of kills after which the command, given again, leaves what the undisturbed one leaves"
    about = {"kills per command": count, "items per task": ITEMS, "steps": STEPS, "seeds": SEEDS}
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
