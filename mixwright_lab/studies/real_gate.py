"""Study of the gate on real fine-tunes of SmolLM2-135M-Instruct: ruined ones never pass, and harmless ones do.

Ruined are LoRA adapters trained on one new task alone, 20 steps of 16 rows: tool calls of the demo, or ticket lines of a
help desk. Harmless are three trainings beside the tool calls: at a rate of 1e-5, on the model's own answers to ordinary
requests, and the demo's plan, which rehearses these; and the model itself, as an adapter of zeros, is a control. Each is
judged three times over the four old tasks of the demo, `--protect`ed: by `includes` with `--margin 15`; by `exact`, which
fits no answer of the old tasks before or after; and by loss, from rows whose completions nothing can grade.

Settings were chosen on the demo's seeds and on 100, which decides nothing. Goals, fixed before seeds 41 and 42 were run: a
ruined model leaves with exit code 3 in every way of judging, its first sentence says "Do not ship" and names a reason; by
`includes` at least five of the six harmless models leave with 0, each kind on one seed at least, and both controls; where
no grader fits nothing harmless leaves with 3, and nothing with 0, because nothing was judged.

Each finished row, all answers with it, is kept in `real_gate.rows.jsonl`: a run that was stopped goes on. Two
processes of one thread run at once. The test items of the two seeds are drawn from the same small tables.

    python -m mixwright_lab.studies.real_gate [--quick]
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mixwright.estimates.intervals import share_interval
from mixwright.records import Interval
from mixwright_lab.demo.tables import NEW_TASK
from mixwright_lab.studies._real_models import HARMLESS, KINDS, RUINED, SAME, WAYS, known_rows, settings
from mixwright_lab.studies.report import RESULTS, Goal, Result, run

SEEDS, QUICK = (41, 42), (100,)
ROWS = RESULTS / "real_gate.rows.jsonl"
PLACE = Path("runs") / "real_gate"
RUNS_AT_ONCE = 2
QUICK_ITEMS, QUICK_MODELS = 10, (RUINED, "own answers", SAME)
REASONS = {
    "success lost": ("is damaged", "are damaged", "is worse by"),
    "form of another task": ("now look like answers of",),
    "former answers unlikely": ("became far less likely",),
    "loss rose": ("held-out loss rose far",),
    "dependence lost": ("depend less on their prompts",),
}
"""Reason -> what a first sentence says that names it."""


def reason(row: Mapping[str, Any]) -> str:
    """The reason that the first sentence names; empty for none."""
    return next((name for name, said in REASONS.items() if any(part in row["sentence"] for part in said)), "")


def make_and_judge(seed: int, kind: str, rows: Path, *, quick: bool) -> None:
    """Make and judge the models of one seed and kind in a process of its own, with one thread."""
    folder = PLACE / f"{'quick-' if quick else ''}{kind}-{seed}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "mixwright_lab.studies._real_models", "--kind", kind, "--seed", str(seed)]
    command += ["--folder", str(folder), "--rows", str(rows)]
    if quick:
        models = QUICK_MODELS if kind == NEW_TASK else (RUINED,)
        command += ["--items", str(QUICK_ITEMS), *(part for name in models for part in ("--model", name))]
    with folder.with_suffix(".log").open("a", encoding="utf-8") as out:
        subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=out, stderr=subprocess.STDOUT, check=True)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: a line per seed and model, the exit code in each way, and the reason of a 3."""
    lines = [f"| seed | new task | model | {' | '.join(WAYS)} |", "|---" * (3 + len(WAYS)) + "|"]
    for seed, kind, model in dict.fromkeys((row["seed"], row["kind"], row["model"]) for row in rows):
        own = {row["way"]: row for row in rows if (row["seed"], row["kind"], row["model"]) == (seed, kind, model)}
        cells = [_cell(own[way]) if way in own else "" for way in WAYS]
        lines.append(f"| {seed} | {kind} | {model} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(row: Mapping[str, Any]) -> str:
    return f"{row['code']}, {reason(row) or 'no reason'}" if row["code"] == 3 else str(row["code"])


def goals_of(rows: Sequence[Mapping[str, Any]]) -> list[Goal]:
    """What was fixed before the runs."""
    ruined = [row for row in rows if row["model"] == RUINED]
    harmless = [row for row in rows if row["model"] in HARMLESS]
    same = [row for row in rows if row["model"] == SAME]
    passed = [row["model"] for row in harmless if row["way"] == "includes" and row["code"] == 0]
    fitting, blind = (
        [row for row in harmless if row["way"] == "includes"],
        [r for r in harmless + same if r["way"] != "includes"],
    )
    every = all(name in passed for name in HARMLESS)
    shipped = [row for row in ruined if not row["sentence"].startswith("Do not ship")]
    return [
        _all("ruined: exit code 3", ruined, [row for row in ruined if row["code"] == 3]),
        _goal("ruined: first sentence is not 'Do not ship'", ruined, shipped, "== 0", not shipped),
        _all("ruined: a reason in the first sentence", ruined, [row for row in ruined if reason(row)]),
        _goal(
            "harmless by includes: exit code 0",
            fitting,
            passed,
            ">= 5 of 6, each kind once",
            6 * len(passed) >= 5 * len(fitting) and every,
        ),
        _all(
            "the same model by includes: exit code 0",
            [row for row in same if row["way"] == "includes"],
            [row for row in same if row["way"] == "includes" and row["code"] == 0],
        ),
        _none("harmless or the same, no grader fits: exit code 3", blind, 3),
        _none("harmless or the same, no grader fits: exit code 0", blind, 0),
    ]


def _goal(name: str, asked: Sequence[object], found: Sequence[object], goal: str, reached: bool) -> Goal:
    share = share_interval(len(found), len(asked)) if asked else Interval(0.0, 0.0, 1.0, 0)
    return Goal(name, share, goal, reached and bool(asked))


def _all(name: str, asked: Sequence[object], found: Sequence[object]) -> Goal:
    return _goal(name, asked, found, f"{len(asked)} of {len(asked)}", len(found) == len(asked))


def _none(name: str, asked: Sequence[Mapping[str, Any]], code: int) -> Goal:
    found = [row for row in asked if row["code"] == code]
    return _goal(name, asked, found, f"0 of {len(asked)}", not found)


def success(row: Mapping[str, Any], when: str, task: str) -> float | None:
    """Share of right answers of a graded row; None where there are none."""
    scores = [score for side, own, *_, score in row["answers"] if (side, own) == (when, task) and score is not None]
    return sum(scores) / len(scores) if scores else None


def figures_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of each model over its seeds, by `includes`: success after per task; and the range of its former answers' change."""
    found: dict[str, Any] = {}
    for kind, model in dict.fromkeys((row["kind"], row["model"]) for row in rows):
        own = [row for row in rows if (row["kind"], row["model"]) == (kind, model)]
        graded = [row for row in own if row["way"] == "includes"]
        tasks = list(dict.fromkeys(task for row in graded for task in row["changes"]))
        after = {task: [success(row, "after", task) for row in graded] for task in tasks}
        former = [row["former"][task][0] for row in own for task in row["protect"] if task in row["former"]]
        codes = {way: [row["code"] for row in own if row["way"] == way] for way in WAYS}
        about = {"codes": codes, "success after": after}
        found[f"{kind}, {model}"] = about | ({"former answers": [min(former), max(former)]} if former else {})
    return found


def measure(quick: bool) -> Result:
    """All seeds, or one that settings were chosen on; the headline is the share of ruined models that leave with 3."""
    seeds = QUICK if quick else SEEDS
    path = PLACE / "quick.rows.jsonl" if quick else ROWS
    if quick:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
    with ThreadPoolExecutor(RUNS_AT_ONCE) as workers:
        for done in [workers.submit(make_and_judge, seed, kind, path, quick=quick) for kind in KINDS for seed in seeds]:
            done.result()
    order = {name: place for place, name in enumerate((RUINED, *HARMLESS, SAME))}
    rows = sorted(known_rows(path), key=lambda row: (row["seed"], row["kind"], order[row["model"]]))
    print(table(rows))
    ruined = [row for row in rows if row["model"] == RUINED]
    found = share_interval(sum(row["code"] == 3 for row in ruined), len(ruined))
    short = [{name: value for name, value in row.items() if name not in ("answers", "settings")} for row in rows]
    unit = "share of verdicts on ruined models that leave with exit code 3"
    about = settings() | {"answers": ROWS.name}
    return Result(found, unit, seeds, short, figures_of(rows), about, goals=goals_of(rows))


if __name__ == "__main__":
    run("real_gate", __doc__, measure)
