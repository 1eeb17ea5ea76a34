"""Pool of mixed Reasoning Gym families of which rows say neither the family nor its level, and what its model is taught.

Of the rows of the pool 45 % are of skills that the starting model has, 15 % are within its reach (it knows sums, and words
spelt backward, but with these prompts it copies the problem more often than it answers), and the rest are out of reach:
longer ones of the same families, and families that it knows too little of.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from datasets import Dataset

from mixwright.catalog import create
from mixwright.errors import missing_extra
from mixwright.records import Example

COPIED_SHARE = 0.6
"""Share of the taught rows of a cell within reach whose target is the problem again, not its answer."""
SEED_DISTANCE = 100_000
"""Between Reasoning Gym seeds: neighbouring ones give the same items, shifted by one."""
Key = tuple[str, int]
"""Family and level."""


class Counts(NamedTuple):
    """One family and level."""

    state: str
    """What it is meant to be for the starting model: mastered, reachable or beyond."""
    pool_rows: int
    """Rows of the pool."""
    taught_rows: int
    """Rows that the starting model is taught."""
    weight: float
    """Of them in its training."""


CELLS: Mapping[Key, Counts] = {
    ("basic_arithmetic", 2): Counts("mastered", 60, 100, 0.5),
    ("basic_arithmetic", 3): Counts("mastered", 540, 3500, 2.0),
    ("spell_backward", 3): Counts("mastered", 200, 900, 0.5),
    ("spell_backward", 4): Counts("mastered", 280, 1800, 1.0),
    ("chain_sum", 3): Counts("reachable", 180, 3000, 0.7),
    ("spell_backward", 5): Counts("reachable", 180, 2000, 0.8),
    ("basic_arithmetic", 8): Counts("beyond", 120, 0, 0.0),
    ("chain_sum", 6): Counts("beyond", 120, 0, 0.0),
    ("chain_sum", 10): Counts("beyond", 120, 0, 0.0),
    ("spell_backward", 10): Counts("beyond", 120, 0, 0.0),
    ("products", 2): Counts("beyond", 120, 500, 0.05),
    ("products", 3): Counts("beyond", 120, 500, 0.05),
    ("lcm", 2): Counts("beyond", 120, 500, 0.05),
    ("count_primes", 3): Counts("beyond", 120, 500, 0.05),
}
"""Level: terms of a sum, letters of a word, digits of a number."""
HELD_OUT = 32
"""Items of each cell."""


@dataclass(frozen=True)
class Rows:
    """All rows of one seed, with family and level; no prompt twice."""

    pool: tuple[Example, ...]
    """What may be trained on."""
    held_out: tuple[Example, ...]
    """What every arm is measured on."""
    text: tuple[Example, ...]
    """What the starting model is taught."""


def held_out(seed: int) -> list[Example]:
    """What every arm is measured on; ten seeds share it, from a multiple of ten on."""
    return _take("held_out", 1_000_000 + seed // 10, set())


def make_rows(seed: int, *, text: bool = True) -> Rows:
    """The rows of a seed, from 0; the same seed gives the same rows.

    Args:
        seed: of the items and of the order of rows.
        text: whether what the starting model is taught is made, too.
    """
    rng, kept = random.Random(seed), held_out(seed)
    seen = {str(row.prompt) for row in kept}
    pool = _take("pool", 2 * seed, seen)
    rng.shuffle(pool)
    taught = _take("text", 2 * seed + 1, seen) if text else []
    taught = [_taught(row, state_of(row.task, row.level), rng) for row in taught]
    return Rows(tuple(pool), tuple(kept), tuple(taught))


def state_of(family: str, level: float | None) -> str:
    """What a cell was meant to be for the starting model."""
    return CELLS[family, round(level or 0)].state


def dataset(pool: Sequence[Example], *, labelled: bool) -> Dataset:
    """The pool as a trainer gets it: prompt and answer; family and level only where they are to be known."""
    rows = [{"prompt": str(row.prompt), "answer": row.answer} for row in pool]
    if labelled:
        rows = [row | {"task": own.task, "level": own.level} for row, own in zip(rows, pool, strict=True)]
    return Dataset.from_list(rows)


def right(prompts: Sequence[str], completions: Sequence[str], answer: Sequence[str], **_: Any) -> list[float]:
    """1 for the answer and nothing else."""
    grader, made = create("graders", "exact"), zip(prompts, completions, answer, strict=True)
    return [grader.grade(Example("", "", prompt, answer=gold), text) for prompt, text, gold in made]


def shares(served: Sequence[int], pool: Sequence[Example]) -> dict[str, float]:
    """Share of the draws by what the cell was meant to be for the starting model."""
    states = [state_of(pool[row].task, pool[row].level) for row in served]
    return {state: round(states.count(state) / len(states), 4) for state in dict.fromkeys(c.state for c in CELLS.values())}


def _take(name: str, block: int, seen: set[str]) -> list[Example]:
    """Rows of every cell from Reasoning Gym seeds of their own."""
    found, split = [], "eval" if name == "held_out" else "train"
    for number, (key, counts) in enumerate(CELLS.items()):
        count = HELD_OUT if name == "held_out" else (counts.pool_rows if name == "pool" else counts.taught_rows)
        for place, example in zip(
            range(count), items(key, SEED_DISTANCE * (100 * (block + 1) + number), seen), strict=False
        ):
            found.append(replace(example, id=f"{name}:{key[0]}@{key[1]}:{place}", split=split))
    return found


def items(key: Key, first: int, seen: set[str]) -> Iterator[Example]:
    """Items of a family and level whose prompts are not among those seen, which they join; it ends after `SEED_DISTANCE`
    of them.
    """
    try:
        import reasoning_gym  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise missing_extra("this study", ["reasoning_gym"], "gym") from None
    family, level = key
    made = reasoning_gym.create_dataset(family, size=SEED_DISTANCE, seed=first, **_settings(family, level))
    for place in range(SEED_DISTANCE):
        item = made[place]
        prompt = item["question"].strip()
        if prompt not in seen:
            seen.add(prompt)
            yield Example("", family, prompt, answer=str(item["answer"]), level=float(level))


def _taught(example: Example, state: str, rng: random.Random) -> Example:
    """With what the model is taught to say: the answer, or the problem again."""
    if state == "reachable" and rng.random() < COPIED_SHARE:
        return replace(example, target=str(example.prompt).rpartition(": ")[2].removesuffix(" ="))
    return replace(example, target=example.answer)


def _settings(family: str, level: int) -> dict[str, Any]:
    """Reasoning Gym's settings of a family and level."""
    low, high = 10 ** (level - 1), 10**level - 1
    terms = {"min_terms": level, "max_terms": level, "min_digits": 1, "max_digits": 1}
    return {
        "basic_arithmetic": {
            **terms, "operators": ["+", "-"], "allow_parentheses": False, "allow_negation": False,
        },
        "chain_sum": terms,
        "spell_backward": {"min_word_len": level, "max_word_len": level},
        "products": {"min_terms": 2, "max_terms": 2, "min_digits": level, "max_digits": level},
        "lcm": {"min_numbers": 2, "max_numbers": 2, "min_value": low, "max_value": high},
        "count_primes": {"min_n": low, "max_n": high},
    }[family]  # fmt: skip
