"""Study of `plan --minutes`: is it said right what rows teach, where that is known by construction?

Twelve worlds, each with a tiny model of its own that has learnt to sort three digits and to write them backward, in a long
form, and to name the lowest. Rows of seven tasks are then tried: the same skills in a short form and a new one (skills),
digits for a key by chance (facts), one answer to everything (format only), twelve digits by chance (nothing, in so few
steps), and the lowest digit (known already).

Goal, fixed before the run: the word is right for 90 of 100 tasks. Rivals by the same readings: the word by success on unseen
items alone, and by that and trained items, both without dealt-out answers.

Settings were tried on seed 1, which does not decide: 24 steps of LoRA at .003 taught nothing; 80 of all weights at .002 gave
seven right words of seven.

Source: own; the null is that of `plan/bursts.py`.
Unit: one task of one world.
Cost: two minutes of one core a world.
Blind spot: kinds that a construction makes pure; tiny models; the map of pairs is not judged here.

    python -m mixwright_lab.studies.teaching [--quick]
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mixwright.config import MeasureConfig, ModelConfig, WarmupConfig
from mixwright.corpus import Corpus
from mixwright.estimates.intervals import share_interval
from mixwright.plan.bursts import BurstSizes, watch_bursts
from mixwright.plan.teaching import GAIN, KNOWN_SHARE
from mixwright.records import Example, Taught, to_data
from mixwright_extras.tiny.model import build_tiny
from mixwright_extras.tiny.warmup import warm_up
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.report import Goal, Result, run

SEEDS, TUNING = tuple(range(101, 113)), (1,)
LEAST_RIGHT = 0.9
KIND_BY_TASK = {
    "sort": "skill",
    "back": "skill",
    "turn": "skill",
    "low": "known already",
    "fact": "facts",
    "say": "format only",
    "long": "nothing",
}
"""Task -> what its rows teach by construction."""
SIZES = BurstSizes(steps=80, batch=8, rank=0, learning_rate=2e-3)
ROWS, BASE_ROWS, DIGITS = 100, 600, 3


@dataclass(frozen=True, slots=True)
class World:
    """Rows of one seed."""

    base: list[Example]
    """That the model has learnt before."""
    tasks: dict[str, list[Example]]
    """Task -> rows that are tried."""


def make_world(seed: int) -> World:
    """Draw the rows of a world."""
    rng, values = random.Random(seed), dict[str, str]()

    def draw(count: int = DIGITS) -> list[int]:
        return [rng.randrange(10) for _ in range(count)]

    answers: dict[str, Callable[[list[int]], str]] = {
        "sort": lambda digits: as_text(sorted(digits)),
        "back": lambda digits: as_text(digits[::-1]),
        "turn": lambda digits: as_text(digits[1:] + digits[:1]),
        "low": lambda digits: str(min(digits)),
        "fact": lambda digits: values.setdefault(as_text(digits), as_text(draw(2))),
        "say": lambda _: "7 7 1",
        "long": lambda _: as_text(draw(12)),
    }

    def rows(task: str, count: int, before: str = "") -> list[Example]:
        found: dict[str, str] = {}
        while len(found) < count:
            digits = draw()
            found.setdefault(f"{task} {as_text(digits)}", before + answers[task](digits))
        pairs = enumerate(found.items())
        return [Example(f"{task}-{place}", task, asked, answer=text, target=text) for place, (asked, text) in pairs]

    base = [*rows("sort", BASE_ROWS, "it is "), *rows("back", BASE_ROWS, "it is "), *rows("low", BASE_ROWS)]
    return World(base, {task: rows(task, ROWS) for task in answers})


def as_text(digits: list[int]) -> str:
    """Digits with spaces between them."""
    return " ".join(map(str, digits))


def judge_world(seed: int) -> list[dict[str, Any]]:
    """Teach the base of a world, and say what rows of each task teach it."""
    world = make_world(seed)
    rows = [row for own in world.tasks.values() for row in own]
    texts = [f"{row.prompt} {row.target}" for row in (*world.base, *rows)]
    learner = build_tiny(texts, ModelConfig("tiny:", width=64, depth=2, heads=2, vocabulary=300), seed)
    settings = WarmupConfig(steps=1000, batch_size=32, learning_rate=3e-3)
    warm_up(learner, Corpus.from_examples(world.base), settings, seed=seed)
    found = watch_bursts(learner, Corpus.from_examples(rows), MeasureConfig(max_new_tokens=32), sizes=SIZES)
    return [
        {"seed": seed, "kind": KIND_BY_TASK[one.group], "unseen alone": say_by_unseen(one), "rises": say_by_rises(one)}
        | to_data(one)
        for one in found.taught
    ]


def say_by_unseen(one: Taught) -> str:
    """The word by success on unseen items alone."""
    if one.unseen is None or one.before is None:
        return "cannot tell"
    if one.before >= KNOWN_SHARE:
        return "known already"
    return "skill" if one.unseen.low > 0 else "nothing" if one.unseen.high < GAIN else "cannot tell"


def say_by_rises(one: Taught) -> str:
    """The word by unseen and trained items, without a null."""
    word = say_by_unseen(one)
    return "facts" if word == "nothing" and one.trained is not None and one.trained.low > 0 else word


def measure(quick: bool) -> Result:
    """Judge all worlds."""
    seeds = TUNING if quick else SEEDS
    rows = [row for own in run_in_processes(judge_world, seeds, say="world") for row in own]
    right = {name: sum(row[name] == row["kind"] for row in rows) for name in ("word", "unseen alone", "rises")}
    found = {name: share_interval(count, len(rows)) for name, count in right.items()}
    said = Counter((row["kind"], row["word"]) for row in rows)
    figures: dict[str, Any] = {name: [one.value, one.low, one.high, one.n] for name, one in found.items()}
    figures["said, by kind"] = {f"{kind}: {word}": count for (kind, word), count in sorted(said.items())}
    goal = Goal.at_least("words that are right", found["word"], LEAST_RIGHT)
    return Result(found["word"], "share of tasks with the right word", seeds, rows, figures, goals=[goal])


if __name__ == "__main__":
    run("teaching", __doc__, measure)
