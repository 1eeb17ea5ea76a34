"""Files of the demo, with the flaws of real ones: test items in the training file, and rows twice. Both are planted."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixwright_lab.demo.tables import NEW_TASK, OLD_TASKS, questions, requests

ITEMS_PER_TASK = 30
"""Test items of each task, after the leaked ones have left."""
TRAIN_ROWS = 180
"""Training rows, all of the new task."""
LEAKED_ITEMS, REPEATED_ROWS = 12, 8
"""Test items planted in the training file; rows planted twice."""
PROMPTS = {"capitals": 12, "opposites": 12, "past_tenses": 12, "sums": 12}
"""Kinds of ordinary requests of which there are prompts without answers; the others are measured and never rehearsed."""


@dataclass(frozen=True, slots=True)
class DemoFiles:
    """JSONL files of one demo."""

    train: Path
    """Requests with their tool calls, as delivered."""
    delivered: Path
    """Test items of every task, as delivered: some of the new task stand in the training file."""
    held_out: Path
    """Test items without these."""
    prompts: Path
    """Ordinary requests without answers, none of them a test item."""
    answered: Path
    """The same with the answers of the tables, as somebody would write them who mixes by hand."""


def write_files(folder: Path, seed: int) -> DemoFiles:
    """Write the files; the same seed gives the same bytes.

    Args:
        folder: made where it is missing.
        seed: of which questions are test items, of the wording of requests, and of the order of rows.
    """
    rng = random.Random(seed)
    calls = list(requests(rng))
    test, train, leaked = (
        calls[:ITEMS_PER_TASK],
        calls[ITEMS_PER_TASK : ITEMS_PER_TASK + TRAIN_ROWS],
        calls[ITEMS_PER_TASK : ITEMS_PER_TASK + LEAKED_ITEMS],
    )
    rows = [{"task": NEW_TASK, "prompt": prompt, "completion": call} for prompt, call in [*train, *train[-REPEATED_ROWS:]]]
    held_out = [{"task": NEW_TASK, "prompt": prompt, "answer": call} for prompt, call in test]
    answered = []
    for task in OLD_TASKS:
        asked = questions(task)
        rng.shuffle(asked)
        held_out += [{"task": task, "prompt": prompt, "answer": answer} for prompt, answer in asked[:ITEMS_PER_TASK]]
        more = asked[ITEMS_PER_TASK : ITEMS_PER_TASK + PROMPTS.get(task, 0)]
        answered += [{"task": task, "prompt": prompt, "completion": answer} for prompt, answer in more]
    delivered = [*held_out, *({"task": NEW_TASK, "prompt": prompt, "answer": call} for prompt, call in leaked)]
    folder.mkdir(parents=True, exist_ok=True)
    parts = {"train": rows, "delivered": delivered, "held_out": held_out, "answered": answered}
    for part in parts.values():
        rng.shuffle(part)
    parts["prompts"] = [{"task": row["task"], "prompt": row["prompt"]} for row in answered]
    return DemoFiles(**{name: _write(folder / f"{name}.jsonl", part) for name, part in parts.items()})


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
