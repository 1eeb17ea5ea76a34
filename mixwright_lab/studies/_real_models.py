"""Real fine-tunes of `real_gate`, each judged by the gate in three ways; one process makes all of one folder.

Of one seed and one kind of new task the model before is measured once in each way. Models that are made already are taken
over, so that a stopped run goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mixwright.measure.former import FormerAnswers, former_file
from mixwright.records import Claim
from mixwright.runs import RunFolder, read_list
from mixwright_lab.demo.by_hand import scale_adapter
from mixwright_lab.demo.files import ITEMS_PER_TASK, TRAIN_ROWS, write_files
from mixwright_lab.demo.steps import COMPLETION_TOKENS, MARGIN_POINTS, MODEL, PROTECTED, command, read_answers
from mixwright_lab.demo.tables import NEW_TASK
from mixwright_lab.demo.training import Training, fine_tune

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
        rows, given = self.files.train, {}
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
        sizes = ("--steps", how.steps, "--batch", how.batch, "--rehearse", self.own_answers())
        command("plan", MODEL, *data, *sizes, *self.measured_options("includes"), "--output", out)
        return out

    def comparison_folder(self, way: str, name: str) -> Path:
        """Folder of a comparison."""
        return self.folder / way / name.replace(" ", "-")

    def measured_options(self, way: str) -> list[object]:
        """Options that take the model before over from the comparison of the narrow model, which is judged first."""
        first = self.comparison_folder(way, RUINED)
        return ["--measured", first] if (first / "manifest.json").is_file() else []

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
            "--gate",
        ]
        asked += [part for task in PROTECTED for part in ("--protect", task)]
        fitting = [f"{task}=includes" for task in PROTECTED]
        asked += [part for grader in {"includes": fitting, "exact": ["exact"]}.get(way, []) for part in ("--grader", grader)]
        asked += self.measured_options(way) if name != RUINED else []
        code = command("verdict", MODEL, model, *asked)
        return self._row(way, name, folder, code) | {"seconds": round(time.monotonic() - began)}

    def _row(self, way: str, name: str, folder: Path, code: int) -> dict[str, Any]:
        told = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))["recommendation"]
        gate = json.loads((folder / "gate.json").read_text(encoding="utf-8"))
        run = RunFolder(folder)
        former = {one.task: [one.change, one.low, one.high] for one in read_list(former_file(run), FormerAnswers)}
        changes = {one.task: [one.before, one.after, one.difference.low, one.difference.high] for one in _claims(run)}
        when = ("before", "after") if name == RUINED else ("after",)
        keys = ("when", "task", "prompt", "answer", "completion", "score")
        answers = [[row[key] for key in keys] for row in read_answers(folder) if row["when"] in when]
        about = {"seed": self.seed, "kind": self.kind, "model": name, "way": way, "settings": settings()}
        found = {"code": code, "sentence": told["sentence"], "advice": told["advice"], "protect": gate["protect"]}
        return about | found | {"changes": changes, "former": former, "answers": answers}


def _claims(run: RunFolder) -> list[Claim]:
    return read_list(run.claims, Claim)


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Append a row in one write: two processes share the file."""
    place = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(place, (json.dumps(row, ensure_ascii=False) + "\n").encode())
    finally:
        os.close(place)


def known_rows(path: Path) -> list[dict[str, Any]]:
    """Finished rows of these settings."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [row for row in map(json.loads, lines) if row["settings"] == settings()]


def main() -> None:
    """Make and judge all models of one seed and kind; each finished row is appended."""
    parser = argparse.ArgumentParser(prog="python -m mixwright_lab.studies._real_models", description=__doc__)
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="where everything is written")
    parser.add_argument("--rows", type=Path, required=True, help="JSONL that finished rows are appended to")
    parser.add_argument("--items", type=int, help="items of a task, in every way of judging")
    parser.add_argument("--model", action="append", help="only these models; repeatable")
    asked = parser.parse_args()
    models = RealModels(asked.folder, asked.kind, asked.seed, asked.items)
    known = {(row["seed"], row["kind"], row["model"], row["way"]) for row in known_rows(asked.rows)}
    for name in asked.model or MODELS[asked.kind]:
        for way in WAYS:
            if (asked.seed, asked.kind, name, way) not in known:
                append(asked.rows, models.judge(way, name))


if __name__ == "__main__":
    main()
