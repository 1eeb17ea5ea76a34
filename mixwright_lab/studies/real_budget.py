"""Study of budgets: eleven jobs of different kinds are given 1 to 60 minutes, on SmolLM2-135M-Instruct and a tiny model.

Eight can be done, and end within a quarter of their budget with what they promised: five seeds or more of every arm, eight
items or more of every cell. Three budgets are too small to be of use, and the command has to say so (exit code 1, with
the budget that would do). Mining by `pruning` on SmolLM2 was one of the possible jobs at first: in 19 of its 30 minutes
the first of 28 short trainings had not ended, and nobody had said so. It has to be refused now, and a tiny model is mined
instead, with the end that is kept named, so that there is always something to try. Each job is a command line of
`mixwright` in a process of its own, alone on the machine; a `run` is written by `run --init --budget` first, whose own time
stands in its row beside it. Rows, items and the fine-tuned model are those of the demo (seed 61); the tiny model learns
sums and reversed words.

Goals were fixed before the first run that is reported. Each finished row is kept in `real_budget.rows.jsonl`: a run
that was stopped goes on with the jobs that are left. A row with `beside` names what else ran then; it stays and does not
count. Weights of SmolLM2 are Q4_1, dequantised.

    python -m mixwright_lab.studies.real_budget [--quick]
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mixwright.config import MineConfig, RunConfig
from mixwright.estimates.intervals import share_interval
from mixwright.records import TrialResult, to_data
from mixwright.run.folder import RunFolder, read_json, read_yaml, write_text, yaml_text
from mixwright_lab.demo.training import Training, fine_tune
from mixwright_lab.studies.jobs import append_row, read_rows
from mixwright_lab.studies.questions import QuestionFiles, write_files
from mixwright_lab.studies.report import RESULTS, Goal, Result, run

SEED = 61
ROWS_FILE = RESULTS / "real_budget.rows.jsonl"
PLACE = Path("runs") / "real_budget"
MODEL = "smollm2"
WITHIN_SHARE = 0.25
MIN_SEEDS, MIN_ITEMS = 5, 8


@dataclass(frozen=True)
class BudgetJob:
    """One command with a budget."""

    name: str
    minutes: float
    """Of the budget."""
    possible: bool = True
    """Whether anything of use can be done in it."""


JOBS = (
    BudgetJob("measure, SmolLM2", 5),
    BudgetJob("verdict too short, SmolLM2", 1, possible=False),
    BudgetJob("run too short, SmolLM2", 5, possible=False),
    BudgetJob("measure, tiny", 2),
    BudgetJob("trial, tiny", 5),
    BudgetJob("verdict, SmolLM2", 12),
    BudgetJob("run GRPO, tiny", 10),
    BudgetJob("mine --try, tiny", 10),
    BudgetJob("mine too short, SmolLM2", 30, possible=False),
    BudgetJob("run GRPO, SmolLM2", 30),
    BudgetJob("run SFT, SmolLM2", 60),
)
QUICK_JOBS = (BudgetJob("run GRPO, tiny", 2), BudgetJob("run too short, SmolLM2", 5, possible=False))


class Files:
    """What the jobs work on; made once."""

    def __init__(self, place: Path) -> None:
        """Write the demo's rows and the tiny model's, under `place`."""
        self.place = place
        self.demo: QuestionFiles = write_files(place / "demo", SEED)
        self.asked = self._write("asked.jsonl", self._as_questions(self.demo.answered))
        questions = tiny_rows(600, SEED)
        self.train = self._write("tiny.jsonl", questions)
        demonstrations = [{"task": row["task"], "prompt": row["prompt"], "completion": row["answer"]} for row in questions]
        self.demonstrations = self._write("tiny_demonstrations.jsonl", demonstrations)
        self.held_out = self._write("tiny_eval.jsonl", tiny_rows(200, SEED + 1000))
        self.many = self._write("tiny_many.jsonl", tiny_rows(60_000, SEED + 2000, largest=9999, letters=6))

    def _write(self, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
        path = self.place / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    @staticmethod
    def _as_questions(path: Path) -> list[dict[str, Any]]:
        """Rows with answers in place of completions, for rewards."""
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [{"task": row["task"], "prompt": row["prompt"], "answer": row["completion"]} for row in rows]

    @property
    def tuned(self) -> Path:
        """The demo's fine-tune on tool calls alone; trained when first asked for."""
        folder = self.place / "tuned"
        if not (folder / "adapter_config.json").is_file():
            process = multiprocessing.get_context("spawn").Process(target=_tune, args=(self.demo.train, folder))
            process.start()
            process.join()
        return folder

    @property
    def tiny(self) -> Path:
        """A run of a tiny model with a plan, and its starting model; made when first asked for."""
        folder = self.place / "tiny_run"
        if not (folder / "plan.yaml").is_file():
            settings = self.place / "tiny_run.yaml"
            settings.unlink(missing_ok=True)
            rows = [str(self.train), "--eval", str(self.held_out)]
            _call(["run", *rows, "--init", "--output", str(settings)], self.place / "tiny_run.log", check=True)
            for verb in ("measure", "plan"):
                _call([verb, str(settings), "--folder", str(folder)], self.place / "tiny_run.log", check=True)
        return folder


def tiny_rows(count: int, seed: int, *, largest: int = 99, letters: int = 4) -> list[dict[str, Any]]:
    """Sums of two numbers, and words backward, half of each, none twice."""
    rng, rows = random.Random(seed), {}
    while len(rows) < count:
        one, other = rng.randint(0, largest), rng.randint(0, largest)
        word = "".join(rng.choice("abcdefgh") for _ in range(letters))
        rows[f"{one}+{other}="] = {"task": "sums", "prompt": f"{one}+{other}=", "answer": str(one + other)}
        rows[word] = {"task": "backward", "prompt": f"{word} backward: ", "answer": word[::-1]}
    return list(rows.values())[:count]


def _tune(train: Path, folder: Path) -> None:
    """Fine-tune as the demo does, on all cores, in a process of its own: it leaves no memory behind."""
    import torch

    torch.set_num_threads(os.cpu_count() or 1)
    fine_tune(MODEL, train, folder, Training(), seed=SEED)


def _call(arguments: Sequence[str], log: Path, *, check: bool = False) -> tuple[int, float]:
    """Exit code and seconds of a command line of mixwright, on all cores; what it prints is added to a log."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}  # of the reports
    began = time.monotonic()
    with log.open("a", encoding="utf-8") as out:
        out.write(f"$ mixwright {' '.join(arguments)}\n")
        out.flush()
        code = subprocess.run(
            [sys.executable, "-m", "mixwright", *arguments], stdout=out, stderr=out, check=check, env=environment
        ).returncode
    return code, time.monotonic() - began


def do_job(job: BudgetJob, files: Files) -> dict[str, Any]:
    """Run one job and return its row: exit code, seconds, and what it did."""
    place = files.place / re.sub(r"[^a-z0-9]+", "-", job.name.lower())
    place.mkdir(parents=True, exist_ok=True)
    log, limit = place / "log.txt", ["--budget", f"{60 * job.minutes:g}s"]
    folder = place / "out"
    verb, extra = job.name.partition(",")[0], {"init seconds": 0.0}
    rows = ["--eval", str(files.demo.held_out), "--folder", str(folder)]
    if verb == "measure":
        tiny = job.name.endswith("tiny")
        model = str(files.tiny / "bases" / "base-0") if tiny else MODEL
        rows = ["--eval", str(files.many), "--folder", str(folder)] if tiny else rows
        code, seconds = _call(["measure", model, *rows, *limit], log)
    elif verb.startswith("verdict"):
        code, seconds = _call(["verdict", MODEL, str(files.tuned), *rows, *limit], log)
    elif verb == "trial":
        settings = files.place / "tiny_run.yaml"
        code, seconds = _call(["run", str(settings), "--only", "trial", "--folder", str(files.tiny), *limit], log)
        folder = files.tiny
    elif verb.startswith("mine"):
        settings = _init(files, place, log, [], job.name)[2]
        if job.possible:
            named_end = replace(read_yaml(settings, RunConfig), mine=MineConfig(options={"pruning": {"end": "hard"}}))
            write_text(settings, yaml_text(to_data(named_end)))
        call = ["mine", str(settings), "--miner", "pruning", "--keep", "0.3", "--try", "--folder", str(folder)]
        code, seconds = _call([*call, *limit], log)
    else:
        code, extra["init seconds"], settings = _init(files, place, log, limit, job.name)
        seconds = extra["init seconds"]
        if code == 0:
            code, seconds = _call(["run", str(settings), "--folder", str(folder)], log)
    return {"name": job.name, "minutes": job.minutes, "possible": job.possible, "code": code, "seconds": seconds} | (
        extra | _outcome(RunFolder(folder), log)
    )


def _init(
    files: Files, place: Path, log: Path, limit: Sequence[str], name: str = "run SFT, SmolLM2"
) -> tuple[int, float, Path]:
    """Exit code, seconds and file of `run --init` for the rows of a job."""
    settings = place / "run.yaml"
    settings.unlink(missing_ok=True)
    held_out, model = files.demo.held_out, ["--model", MODEL]
    train = files.asked if "GRPO" in name else files.demo.train
    if name.endswith("tiny"):
        train = files.demonstrations if name.startswith("mine") else files.train
        held_out, model = files.held_out, []
    call = ["run", str(train), "--init", "--eval", str(held_out), *model, "--output", str(settings), *limit]
    return *_call(call, log), settings


def _outcome(folder: RunFolder, log: Path) -> dict[str, Any]:
    """What was promised and what came of it, from the files that were left and the lines that were printed."""
    text = log.read_text(encoding="utf-8")
    told = re.findall(r"^(?:budget: .*|Budget: .*|error: .*|.*seeds? instead of .*)$", text, re.MULTILINE)
    found: dict[str, Any] = {"told": told, "items": None, "seeds": None}
    settings = folder.path / "run.yaml"
    if settings.is_file():
        found["items"] = read_yaml(settings, RunConfig).measure.items
    if folder.result.is_file():
        found["seeds"] = len(read_json(folder.result, TrialResult).seeds)
    return found


def goals_of(rows: Sequence[Mapping[str, Any]]) -> list[Goal]:
    """What was fixed before the runs."""
    done = [row for row in rows if row["possible"]]
    short = [row for row in rows if not row["possible"]]
    ended = [
        row for row in done if row["code"] in (0, 3, 4) and abs(row["seconds"] / 60 / row["minutes"] - 1) <= WITHIN_SHARE
    ]
    kept = [row for row in done if (row["seeds"] or MIN_SEEDS) >= MIN_SEEDS and (row["items"] or 0) >= MIN_ITEMS]
    refused = [row for row in short if row["code"] == 1 and any("expected a budget of" in line for line in row["told"])]
    return [
        _goal("ended within a quarter of the budget", done, ended),
        _goal("five seeds of every arm, eight items of every cell", done, kept),
        _goal("too short, and said so", short, refused),
    ]


def _goal(name: str, asked: Sequence[object], found: Sequence[object]) -> Goal:
    share = share_interval(len(found), max(len(asked), 1))
    return Goal(name, share, f"{len(asked)} of {len(asked)}", bool(asked) and len(found) == len(asked))


def measure(quick: bool) -> Result:
    """Do the jobs that are left."""
    place, kept, jobs = (PLACE / "quick", None, QUICK_JOBS) if quick else (PLACE, ROWS_FILE, JOBS)
    place.mkdir(parents=True, exist_ok=True)
    rows = [] if kept is None else [row for row in read_rows(kept) if not row.get("beside")]
    files = Files(place)
    for job in jobs:
        if job.name in [row["name"] for row in rows]:
            continue
        rows.append(do_job(job, files))
        if kept is not None:
            append_row(kept, rows[-1])
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    goals = goals_of(rows)
    ratios = {row["name"]: round(row["seconds"] / 60 / row["minutes"], 3) for row in rows}
    return Result(
        goals[0].found,
        "share of possible jobs that ended within a quarter of their budget",
        [SEED],
        rows,
        figures={"seconds over budget": ratios},
        settings={"model": "SmolLM2-135M-Instruct, Q4_1 weights, dequantised; a tiny model of the defaults"},
        goals=goals,
    )


if __name__ == "__main__":
    run("real_budget", __doc__, measure)
