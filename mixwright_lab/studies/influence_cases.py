"""Cases of the miner `influence`: few trusted rows, and a pool of which half follows another convention, or none.

A row is a number of five digits from 0 to 4 and the digit that a table has for its last two; every second scraped row, where
another convention is in the pool, is of another table for its first two, in the same words. Twelve trusted rows hold less
than half of the 25 entries. The starting model had SFT on both kinds, as the source's warm-up. Held out are rows like the
trusted ones. In the last case the answer is the last of four digits (first, in the other convention) and 160 rows are
trusted: whoever has learnt both conventions needs a few rows to choose one.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mixwright.runs import yaml_text
from mixwright_lab.studies._cases import Case

HELD_OUT = 100
Row = Callable[[str, bool], str]
"""A number, and whether it follows the trusted convention -> the digit."""


def _tables(folder: Path, seed: int, *, other: bool) -> Path:
    rng = random.Random(f"influence {seed}")
    last = {"".join(key): str(rng.randrange(10)) for key in itertools.product("01234", repeat=2)}
    first = {key: str(rng.randrange(10)) for key in last}
    numbers = rng.sample(["".join(digits) for digits in itertools.product("01234", repeat=5)], HELD_OUT + 12 + 1500)
    answer: Row = lambda number, trusted: last[number[-2:]] if trusted else first[number[:2]]  # noqa: E731
    return _written(folder, seed, numbers, 12, answer, rng, other=other, warmup=3000, steps=200)


def digits(folder: Path, seed: int) -> Path:
    """Numbers whose last digit, or first one, is the answer; writes rows and settings, returns the path of run.yaml."""
    rng = random.Random(f"influence {seed}")
    numbers = [f"{number:04d}" for number in rng.sample(range(10_000), HELD_OUT + 160 + 1200)]
    answer: Row = lambda number, trusted: number[-1 if trusted else 0]  # noqa: E731
    return _written(folder, seed, numbers, 160, answer, rng, other=True, warmup=150, steps=40)


def _written(
    folder: Path,
    seed: int,
    numbers: Sequence[str],
    trusted: int,
    answer: Row,
    rng: random.Random,
    *,
    other: bool,
    warmup: int,
    steps: int,
) -> Path:
    """Rows and settings; returns run.yaml. No number is in two rows; the held-out ones come first, then the trusted ones."""

    def row(number: str, right: bool, task: str) -> str:
        said = answer(number, right)
        return json.dumps({"prompt": f"{number} = ", "target": said, "answer": said, "task": task})

    held, own, pool = numbers[:HELD_OUT], numbers[HELD_OUT : HELD_OUT + trusted], numbers[HELD_OUT + trusted :]
    lines = [row(number, True, "trusted") for number in own]
    lines += [row(number, not (other and at % 2), "scraped") for at, number in enumerate(pool)]
    rng.shuffle(lines)
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "held.jsonl").write_text("\n".join(row(number, True, "trusted") for number in held) + "\n", encoding="utf-8")
    path = folder / "run.yaml"
    path.write_text(yaml_text(_settings(seed, warmup, steps)), encoding="utf-8")
    return path


def _settings(seed: int, warmup: int, steps: int) -> Mapping[str, Any]:
    warm = {"steps": warmup, "batch_size": 32, "learning_rate": 5e-3}
    return {
        "corpus": {"train": "train.jsonl", "eval": "held.jsonl", "grader": "exact"},
        "model": {"path": "tiny:", "width": 32, "depth": 2, "heads": 2, "vocabulary": 264, "warmup": warm},
        "measure": {"items": HELD_OUT, "samples": 1, "max_new_tokens": 2, "decoding": "greedy", "probes": ["competence"]},
        "mine": {"options": {"influence": {"targets": ["trusted"], "shots": 40, "keep": 0.25}}},
        "plan": {"planner": "proportional"},
        "train": {"objective": "sft", "steps": steps, "prompts": 16, "learning_rate": 5e-3, "canary_every": 0},
        "trial": {"seeds": 8, "workers": 1, "progress_every": 0},
        "seed": seed,
    }


CASES = (
    Case(
        "influence, half of the pool under another convention",
        "influence",
        True,
        "Every second scraped row is of another table, in the same words; trusted rows hold less than half of theirs.",
        lambda folder, seed: _tables(folder, seed, other=True),
    ),
    Case(
        "influence, all of the pool under one convention",
        "influence",
        False,
        "Every scraped row is right and of one kind, so that it cannot matter which of them are taken.",
        lambda folder, seed: _tables(folder, seed, other=False),
    ),
    Case(
        "influence, trusted rows that are enough by themselves",
        "influence",
        False,
        "The model knows both conventions, and 160 trusted rows say which one is meant: the simple rule has all there is.",
        digits,
    ),
)
