"""Commands of `kills`: tiny models and rows for them, one call in a process group of its own, what it wrote.

A call is forked from one warm process, its workers from the call, so that a kill strikes work and seldom an import. Before
a batch of completions is written, or log-probabilities are read, their number is appended to a file with the process's id.
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
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import mixwright
from mixwright.cli import ready
from mixwright.config import ModelConfig, WarmupConfig
from mixwright.corpus import Corpus
from mixwright.learner import learner as learners
from mixwright.learner import shared_generation
from mixwright.learner.tiny import build_tiny
from mixwright.learner.warmup import warm_up
from mixwright.records import Example
from mixwright.runs import yaml_text
from mixwright.workers import local

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
    local._start = _forked_worker
    shared_generation.MOST_ROWS = FEW_ROWS
    ready.monotonic = lambda: 0.0  # seconds per item stand in the manifest and on the page: a clock gives them, no result


def _forked_worker() -> local._Worker:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, ours), daemon=True)
    process.start()
    theirs.close()
    return local._Worker(process, ours)


def _work(link: Connection, other_end: Connection) -> None:
    other_end.close()  # else it would never see the link close
    local._work(link)


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
    """Settings of the runs: from the checkpoint with requests to rehearse, and from two tiny models under a budget."""
    corpus = {"train": str(made / "train.jsonl"), "eval": str(made / "eval.jsonl")}
    shared: dict[str, Any] = {
        "measure": {"items": 12, "samples": 2, "max_new_tokens": 4, "continued_tokens": 8},
        "train": {"objective": "sft", "steps": STEPS, "prompts": 8, "learning_rate": 1e-3, "canary_every": 2},
        "trial": {"arms": ["uniform", "steered"], "seeds": SEEDS, "workers": 2},
    }
    given = {"corpus": corpus | {"rehearse": str(made / "requests.jsonl")}, "model": {"path": str(made / "before")}}
    size = _size()
    tiny: dict[str, Any] = {"width": size.width, "depth": size.depth, "heads": size.heads, "vocabulary": size.vocabulary}
    tiny |= {"bases": 2, "warmup": {"steps": 40, "batch_size": 16}}
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
    measuring = ("--corpus", graded, "--items", "12", "--samples", "2", "--batch-size", "12", "--folder", "out")
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
