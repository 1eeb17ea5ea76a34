"""Cases of the miner `influence`: few trusted rows, and a pool of which half has another convention, or none.

A row names the last of four digits. The user has 160 trusted rows and 1,200 scraped ones, of which every second names the
first digit instead, in the same words, or none does. The starting model had a short SFT on both, as the source's warm-up.
Held out are trusted rows alone.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from benchmarks._cases import Case
from mixwright.runs import yaml_text

TRUSTED, SCRAPED, HELD_OUT = 160, 1200, 100
LAST, FIRST = 3, 0
"""Place of the digit that a row names."""


def _write(folder: Path, seed: int, *, other: bool) -> Path:
    """Rows and settings; returns run.yaml. No number is in two rows."""
    rng = random.Random(f"influence {seed}")
    numbers = [f"{number:04d}" for number in rng.sample(range(10_000), HELD_OUT + TRUSTED + SCRAPED)]
    held, trusted, pool = numbers[:HELD_OUT], numbers[HELD_OUT : HELD_OUT + TRUSTED], numbers[HELD_OUT + TRUSTED :]
    lines = [_row(number, LAST, "trusted") for number in trusted]
    lines += [_row(number, FIRST if other and at % 2 else LAST, "scraped") for at, number in enumerate(pool)]
    rng.shuffle(lines)
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "held.jsonl").write_text("\n".join(_row(number, LAST, "trusted") for number in held) + "\n", encoding="utf-8")
    path = folder / "run.yaml"
    path.write_text(yaml_text(_settings(seed)), encoding="utf-8")
    return path


def _row(number: str, place: int, task: str) -> str:
    return json.dumps({"prompt": f"{number} = ", "target": number[place], "answer": number[place], "task": task})


def _settings(seed: int) -> dict[str, object]:
    warmup = {"steps": 150, "batch_size": 32, "learning_rate": 5e-3}
    return {
        "corpus": {"train": "train.jsonl", "eval": "held.jsonl", "grader": "exact"},
        "model": {"path": "tiny:", "width": 32, "depth": 2, "heads": 2, "vocabulary": 264, "warmup": warmup},
        "measure": {"items": HELD_OUT, "samples": 1, "max_new_tokens": 2, "decoding": "greedy", "probes": ["competence"]},
        "mine": {"options": {"influence": {"targets": ["trusted"], "shots": 40, "keep": 0.25}}},
        "plan": {"planner": "proportional"},
        "train": {"objective": "sft", "steps": 40, "prompts": 16, "learning_rate": 5e-3, "canary_every": 0},
        "trial": {"seeds": 8, "workers": 1, "progress_every": 0},
        "seed": seed,
    }


CASES = (
    Case(
        "influence, half of the pool under another convention",
        "influence",
        True,
        "Every second scraped row names the first digit, in the same words as those that name the last.",
        lambda folder, seed: _write(folder, seed, other=True),
    ),
    Case(
        "influence, all of the pool under one convention",
        "influence",
        False,
        "Every scraped row is right and of one kind, so that it cannot matter which of them are taken.",
        lambda folder, seed: _write(folder, seed, other=False),
    ),
)
