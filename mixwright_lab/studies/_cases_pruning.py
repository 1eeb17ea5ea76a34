"""Cases of the miner `pruning`: two fifths of the labels wrong, or none, on a task that a tiny model can learn.

A row names the last of four digits; a wrong label is the first one. Held out are right rows alone. The
starting model had a short SFT on 600 other rows, all of them right.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from mixwright.runs import yaml_text
from mixwright_lab.studies._cases import Case

ROWS, HELD_OUT, WARMUP_ROWS = 1200, 100, 600


def _write(folder: Path, seed: int, *, noise: float) -> Path:
    """Rows and settings; returns run.yaml. No number is in two rows."""
    rng = random.Random(f"pruning {seed}")
    numbers = [f"{number:04d}" for number in rng.sample(range(10_000), HELD_OUT + ROWS + WARMUP_ROWS)]
    held, trained, known = numbers[:HELD_OUT], numbers[HELD_OUT : HELD_OUT + ROWS], numbers[HELD_OUT + ROWS :]
    labels = [number[0 if rng.random() < noise else 3] for number in trained]
    parts = {"train": list(zip(trained, labels, strict=True))}
    parts |= {name: [(number, number[3]) for number in own] for name, own in (("held", held), ("known", known))}
    for name, rows in parts.items():
        lines = [json.dumps({"prompt": f"{number} = ", "target": label, "answer": label}) for number, label in rows]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    path = folder / "run.yaml"
    path.write_text(yaml_text(_settings(seed)), encoding="utf-8")
    return path


def _settings(seed: int) -> dict[str, object]:
    warmup = {"steps": 45, "batch_size": 32, "learning_rate": 5e-3, "source": "known.jsonl"}
    options = {"keep": 0.5, "steps": 40, "runs": 5, "batch": 16, "learning_rate": 2e-3}
    return {
        "corpus": {"train": "train.jsonl", "eval": "held.jsonl", "grader": "exact"},
        "model": {"path": "tiny:", "width": 32, "depth": 2, "heads": 2, "vocabulary": 264, "warmup": warmup},
        "measure": {"items": HELD_OUT, "samples": 1, "max_new_tokens": 2, "probes": ["competence"]},
        "mine": {"options": {"pruning": options}},
        "plan": {"planner": "proportional"},
        "train": {"objective": "sft", "steps": 60, "prompts": 16, "learning_rate": 5e-3, "canary_every": 0},
        "trial": {"seeds": 8, "workers": 1, "progress_every": 0},
        "seed": seed,
    }


CASES = (
    Case(
        "pruning, two fifths of the labels wrong",
        "pruning",
        True,
        "A wrong label is hard for a model that has seen the others, so that the easy end has fewer of them.",
        lambda folder, seed: _write(folder, seed, noise=0.4),
    ),
    Case(
        "pruning, no label wrong",
        "pruning",
        False,
        "All rows say the same thing and are about equally hard.",
        lambda folder, seed: _write(folder, seed, noise=0.0),
    ),
)
