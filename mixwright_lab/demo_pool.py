"""Files of the demo: Reasoning Gym items in a pool as flawed as real mixtures, and the text its model begins with.

Of the pool 59 % asks for a weekday, which the model can only guess, 33 % is out of reach (`products`, long `chain_sum`), 3 %
can be learnt (short `chain_sum`: the model knows such sums from `basic_arithmetic`, but with this prompt it restates the
problem more often than it answers), and 5 % is of skills that it has. The pool as delivered also holds some held-out items.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple


class Counts(NamedTuple):
    """Items of one task and level."""

    pool: int
    """Rows of the pool."""
    held_out: int
    """Held-out items."""
    text: int
    """Rows of the text that the model begins with."""


ROWS: Mapping[tuple[str, int], Counts] = {
    ("chain_sum", 3): Counts(60, 64, 3000),
    ("chain_sum", 4): Counts(60, 64, 12000),
    ("chain_sum", 9): Counts(300, 16, 0),
    ("chain_sum", 12): Counts(300, 16, 0),
    ("basic_arithmetic", 2): Counts(20, 40, 139),
    ("basic_arithmetic", 3): Counts(50, 64, 3000),
    ("basic_arithmetic", 4): Counts(50, 64, 24000),
    ("spell_backward", 4): Counts(80, 40, 3000),
    ("calendar_arithmetic", 0): Counts(2400, 64, 600),
    ("products", 2): Counts(240, 16, 1500),
    ("products", 3): Counts(240, 16, 500),
    ("products", 4): Counts(240, 16, 500),
}
"""Task and level: terms of a sum, letters of a word, digits of a factor."""
RESTATED = 0.6
"""Share of `chain_sum` rows in the text whose target is the problem again, not its answer."""
LEAKED = ("products", 3)
"""Cell whose held-out items stand in the pool as delivered."""
APART = 100_000
"""Between Reasoning Gym seeds: neighbouring ones give the same items, shifted by one."""


@dataclass(frozen=True, slots=True)
class PoolFiles:
    """JSONL files of one demo."""

    delivered: Path
    """The pool as it came, held-out items in it."""
    train: Path
    """The pool without them."""
    held_out: Path
    """Held-out items of every task and level."""
    text: Path
    """What the model begins with; none of its prompts is in the pool or held out."""


def write_pool(place: Path, seed: int) -> PoolFiles:
    """Write the four files; the same seed gives the same bytes.

    Args:
        place: folder, made where it is missing.
        seed: of the items, of which of them are held out, and of the order of rows, from 0.
    """
    rng = random.Random(seed)
    train, held_out, text = [], [], []
    for number, ((task, level), counts) in enumerate(ROWS.items()):
        first = APART * (1000 * (seed + 1) + 2 * number)
        rows = items(task, level, counts.pool + counts.held_out, first)
        rng.shuffle(rows)
        held_out += rows[: counts.held_out]
        train += rows[counts.held_out :]
        used = {row["prompt"] for row in rows}
        fresh = items(task, level, counts.text + len(rows), first + APART)
        text += [_target(row, rng) for row in fresh if row["prompt"] not in used][: counts.text]
    leaked = [row for row in held_out if (row["task"], row["level"]) == LEAKED]
    place.mkdir(parents=True, exist_ok=True)
    parts = {"delivered": [*train, *leaked], "train": train, "held_out": held_out, "text": text}
    for rows in parts.values():
        rng.shuffle(rows)
    return PoolFiles(**{name: _write(place / f"{name}.jsonl", rows) for name, rows in parts.items()})


def items(task: str, level: int, count: int, seed: int) -> list[dict[str, Any]]:
    """Up to `count` items with different prompts."""
    import reasoning_gym

    made = reasoning_gym.create_dataset(task, size=3 * count, seed=seed, **_settings(task, level))
    found: dict[str, dict[str, Any]] = {}
    for item in made:
        row = {"task": task, "level": level, "prompt": item["question"], "answer": str(item["answer"])}
        found.setdefault(row["prompt"], row)
        if len(found) == count:
            break
    return list(found.values())


def _settings(task: str, level: int) -> dict[str, Any]:
    """Reasoning Gym's settings of one task and level."""
    terms = {"min_terms": level, "max_terms": level, "min_digits": 1, "max_digits": 1}
    return {
        "chain_sum": terms,
        "basic_arithmetic": {
            **terms, "operators": ["+", "-"], "allow_parentheses": False, "allow_negation": False,
        },
        "spell_backward": {"min_word_len": 3, "max_word_len": level},
        "calendar_arithmetic": {"tasks": ["weekday_of_date", "weekday_offset"], "year": 2026},
        "products": {"min_terms": 2, "max_terms": 2, "min_digits": level, "max_digits": level},
    }[task]  # fmt: skip


def _target(row: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The row with what the model is taught to say: the answer, or the problem again."""
    if row["task"] == "chain_sum" and rng.random() < RESTATED:
        return {**row, "target": row["prompt"].partition(": ")[2].removesuffix(" =")}
    return {**row, "target": row["answer"]}


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
