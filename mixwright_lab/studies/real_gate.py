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

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mixwright.estimates.intervals import share_interval
from mixwright.measure.former import former_file
from mixwright.records import Claim, FormerAnswers, Interval
from mixwright.run.folder import RunFolder, read_list
from mixwright_lab.demo.by_hand import scale_adapter
from mixwright_lab.demo.files import ITEMS_PER_TASK, TRAIN_ROWS, write_files
from mixwright_lab.demo.steps import COMPLETION_TOKENS, MARGIN_POINTS, MODEL, PROTECTED, command, read_answers
from mixwright_lab.demo.tables import NEW_TASK
from mixwright_lab.demo.training import Training, fine_tune
from mixwright_lab.studies.jobs import append_row, read_rows
from mixwright_lab.studies.report import RESULTS, Goal, Result, run

TICKETS = "tickets"
KINDS = (NEW_TASK, TICKETS)
"""New tasks; each has files of its own."""
LOW_RATE, OWN, PLANNED, SAME = "low rate", "own answers", "planned", "the same model"
RUINED, HARMLESS = "narrow", (LOW_RATE, OWN, PLANNED)
MODELS = {NEW_TASK: (RUINED, LOW_RATE, OWN, PLANNED, SAME), TICKETS: (RUINED,)}
"""Kind of new task -> models that are made; harmless ones only beside tool calls."""
TRAININGS = {
    RUINED: Training(),
    LOW_RATE: Training(learning_rate=1e-5),
    OWN: Training(steps=10, learning_rate=2e-4),
    PLANNED: Training(),
}
"""How each is trained; the same model is the narrow adapter times 0."""
WAYS = {"includes": 30, "exact": 15, "loss": 15}
"""Ways of judging, and items of a task: a grader that fits, one that fits no answer of the old tasks, and targets alone."""
REQUESTS = (
    ("I would like an offer for {} chairs.", "SALES|{}|normal"),
    ("Can you send me a price for {} desks?", "SALES|{}|normal"),
    ("We want to buy {} lamps today.", "SALES|{}|high"),
    ("My parcel {} has not arrived.", "SHIPPING|{}|high"),
    ("Where is order {} now?", "SHIPPING|{}|normal"),
    ("Please deliver order {} to another address.", "SHIPPING|{}|normal"),
    ("Invoice {} shows the wrong amount.", "BILLING|{}|high"),
    ("Please send me invoice {} again.", "BILLING|{}|low"),
    ("I paid bill {} twice.", "BILLING|{}|high"),
    ("Printer {} does not start any more.", "SUPPORT|{}|high"),
    ("How do I reset device {}?", "SUPPORT|{}|low"),
    ("The screen of laptop {} flickers.", "SUPPORT|{}|normal"),
)
"""Requests to a help desk and their ticket lines: team, number, priority."""
STATED = {
    "capitals": ("What is the capital of ", "?", "The capital of {} is {}."),
    "opposites": ("Give me the opposite of the word ", ".", "The opposite of {} is {}."),
    "past_tenses": ("What is the past tense of the verb ", "?", "The past tense of {} is {}."),
    "sums": ("What is ", "?", "{} = {}."),
}
"""Old task -> what stands before and after the thing asked about, and a sentence that answers."""


@dataclass(frozen=True, slots=True)
class RealFiles:
    """Files of one seed and kind."""

    train: Path
    """Rows that the narrow model is trained on, all of the new task."""
    prompts: Path
    """Ordinary requests without answers."""
    graded: Path
    """Test items of the four protected tasks and the new one, with answers."""
    targets: Path
    """The same with a completion in a sentence, as somebody has them who trains on them; no answers."""


def tickets(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Requests and their ticket lines, each once, in an order drawn by `rng`."""
    every = [(form.format(n), line.format(n)) for form, line in REQUESTS for n in range(100, 1000, 7)]
    rng.shuffle(every)
    yield from every


def answer_sentence(row: Mapping[str, str]) -> str:
    """A test item's answer in a sentence; that of a new task as it is."""
    if row["task"] not in STATED:
        return row["answer"]
    begin, end, form = STATED[row["task"]]
    return form.format(row["prompt"].removeprefix(begin).removesuffix(end), row["answer"])


def write_real_files(folder: Path, kind: str, seed: int) -> RealFiles:
    """Write the files; the same seed and kind give the same bytes."""
    demo = write_files(folder / "demo", seed)
    held_out = [row for row in _rows(demo.held_out) if row["task"] in (*PROTECTED, NEW_TASK)]
    train = demo.train
    if kind == TICKETS:
        made = list(tickets(random.Random(seed)))
        held_out = [row for row in held_out if row["task"] != NEW_TASK]
        held_out += [{"task": TICKETS, "prompt": prompt, "answer": line} for prompt, line in made[:ITEMS_PER_TASK]]
        rows = [
            {"task": TICKETS, "prompt": prompt, "completion": line}
            for prompt, line in made[ITEMS_PER_TASK : ITEMS_PER_TASK + TRAIN_ROWS]
        ]
        train = _write(folder / "train.jsonl", rows)
    targets = [{"task": row["task"], "prompt": row["prompt"], "completion": answer_sentence(row)} for row in held_out]
    parts = {"graded": held_out, "targets": targets}
    return RealFiles(train, demo.prompts, **{name: _write(folder / f"{name}.jsonl", part) for name, part in parts.items()})


def _rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def settings() -> dict[str, Any]:
    """What has to be the same for rows to stand in one table."""
    return {
        "trainings": {name: asdict(how) for name, how in TRAININGS.items()},
        "items": dict(WAYS),
        "margin": MARGIN_POINTS,
        "room": COMPLETION_TOKENS,
        "protected": list(PROTECTED),
    }


class RealModels:
    """Models of one seed and kind, in a folder.

    Args:
        folder: where everything is written.
        kind: the new task.
        seed: of the files and of the trainings.
        items: items of a task in every way of judging; None takes those of `WAYS`.
    """

    def __init__(self, folder: Path, kind: str, seed: int, items: int | None = None) -> None:
        self.folder, self.kind, self.seed, self.items = folder, kind, seed, items
        key = json.dumps([kind, seed, items, settings()])
        path = folder / "key.json"
        if not path.is_file() or path.read_text(encoding="utf-8") != key:  # what other settings left is no part of this
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            path.write_text(key, encoding="utf-8")
        self.files = write_real_files(folder / "files", kind, seed)

    def model(self, name: str) -> Path:
        """Folder of an adapter, made where it is not there."""
        out = self.folder / "models" / name.replace(" ", "-")
        if not (out / "adapter_model.safetensors").is_file():
            self._train(name, out)
        return out

    def _train(self, name: str, out: Path) -> None:
        if name == SAME:
            scale_adapter(self.model(RUINED), out, 0.0)
            return
        rows = self.files.train
        given: dict[str, Any] = {}
        if name == OWN:
            rows = self.own_answers()
        if name == PLANNED:
            given = {"rehearsal": self.own_answers(), "plan": self.plan()}
        fine_tune(MODEL, rows, out, TRAININGS[name], seed=self.seed, **given)

    def own_answers(self) -> Path:
        """The model's own answers to the ordinary requests, as rows to train on."""
        rows = self.folder / "rehearsal" / "rehearsal.jsonl"
        if not rows.is_file():
            data = ("--corpus", self.files.train, "--eval", self.files.graded)
            asked = ("--miner", "rehearsal", "--rehearse", self.files.prompts, "--export-to", rows.parent)
            command("mine", MODEL, *data, *asked)
        return rows

    def plan(self) -> Path:
        """The plan of the demo: own answers rehearsed."""
        out, how = self.folder / "plan.yaml", TRAININGS[PLANNED]
        data = ("--corpus", self.files.train, "--eval", self.files.graded, "--objective", "sft")
        sizes = ("--steps", how.steps, "--batch", how.batch, "--replay", self.own_answers())
        command("plan", MODEL, *data, *sizes, "--samples", 0, "--max-new-tokens", COMPLETION_TOKENS, "--output", out)
        return out

    def comparison_folder(self, way: str, name: str) -> Path:
        """Folder of a comparison."""
        return self.folder / way / name.replace(" ", "-")

    def judge(self, way: str, name: str) -> dict[str, Any]:
        """Ask the gate of a model in one way: a finished row."""
        model, folder, began, graded = self.model(name), self.comparison_folder(way, name), time.monotonic(), way != "loss"
        asked: list[object] = ["--corpus", self.files.graded if graded else self.files.targets, "--folder", folder]
        asked += [
            "--items",
            self.items or WAYS[way],
            "--samples",
            0,
            "--max-new-tokens",
            COMPLETION_TOKENS,
            "--margin",
            MARGIN_POINTS,
        ]
        asked += [part for task in PROTECTED for part in ("--protect", task)]
        fitting = [f"{task}=includes" for task in PROTECTED]
        asked += [part for grader in {"includes": fitting, "exact": ["exact"]}.get(way, []) for part in ("--grader", grader)]
        code = command("verdict", MODEL, model, *asked)
        return self._row(way, name, folder, code) | {"seconds": round(time.monotonic() - began)}

    def _row(self, way: str, name: str, folder: Path, code: int) -> dict[str, Any]:
        told = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
        gate = json.loads((folder / "gate.json").read_text(encoding="utf-8"))
        run = RunFolder(folder)
        former = {one.task: [one.change, one.low, one.high] for one in read_list(former_file(run), FormerAnswers)}
        changes = {one.task: [one.before, one.after, one.difference.low, one.difference.high] for one in _claims(run)}
        when = ("before", "after") if name == RUINED else ("after",)
        keys = ("when", "task", "prompt", "answer", "completion", "score")
        answers = [[row[key] for key in keys] for row in read_answers(folder) if row["when"] in when]
        about = {"seed": self.seed, "kind": self.kind, "model": name, "way": way, "settings": settings()}
        found = {"code": code, "sentence": told["headline"], "reason": told["reason"], "protect": gate["protect"]}
        return about | found | {"changes": changes, "former": former, "answers": answers}


def _claims(run: RunFolder) -> list[Claim]:
    return read_list(run.claims, Claim)


def known_rows(path: Path) -> list[dict[str, Any]]:
    """Finished rows of these settings."""
    return [row for row in read_rows(path) if row["settings"] == settings()]


def judge_models(kind: str, seed: int, folder: str, rows: str, items: int | None, names: Sequence[str]) -> None:
    """Make and judge models of one seed and kind; each finished row is appended.

    Of one seed and kind the model before is measured once in each way. Models that are made already are taken over.

    Args:
        kind: of new task.
        seed: of rows, requests and training.
        folder: where everything is written.
        rows: JSONL that finished rows are appended to.
        items: of a task, in every way of judging; None is as many as the way has.
        names: of the models.
    """
    models = RealModels(Path(folder), kind, seed, items)
    known = {(row["seed"], row["kind"], row["model"], row["way"]) for row in known_rows(Path(rows))}
    for name in names:
        for way in WAYS:
            if (seed, kind, name, way) not in known:
                append_row(Path(rows), models.judge(way, name))


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
    names = (QUICK_MODELS if kind == NEW_TASK else (RUINED,)) if quick else MODELS[kind]
    given = (kind, seed, str(folder), str(rows), QUICK_ITEMS if quick else None, names)
    command = [sys.executable, "-c", f"from mixwright_lab.studies.real_gate import judge_models; judge_models(*{given!r})"]
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
