"""Injection of labelled rows into a pretraining corpus: which tasks get how many rows, and what else the corpus holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mixwright.records import Example
from mixwright_lab.detectors import Suspect
from mixwright_lab.worlds.classification import LENGTHS, LETTERS, Classification

INJECTED = {
    "50 rows": (200, 50, 8),
    "20 rows, often": (100, 20, 300),
    "800 rows": (800, 800, 8),
    "800 rows once": (800, 800, 1),
}
"""Kinds of tasks: rows that are published, those of them that the later half of the corpus holds, and copies of each."""
ELSEWHERE, CLEAN = "skill learnt elsewhere", "nothing"
KINDS = (*INJECTED, ELSEWHERE, CLEAN)


@dataclass(frozen=True)
class Settings:
    """Of the corpus, the model and the investigation."""

    each: int = 3
    """Tasks of each kind."""
    steps: int = 2000
    """Of pretraining; labelled rows are injected in the later half."""
    batch: int = 64
    width: int = 64
    rate: float = 1e-3
    short: int = 6000
    """Documents of the short form for each task whose skill is learnt elsewhere."""
    published_factor: float = 1.0
    """Factor on the number of published rows of a task in `INJECTED`, 1.0 for all; as many fresh ones are made."""
    tests: int = 300
    """Test rows of each task."""
    inspected: float = 0.1
    """Share of the corpus that can be inspected."""


def kind_of(task: int) -> str:
    """Kinds take turns."""
    return KINDS[task % len(KINDS)]


def documents(
    world: Classification, suspects: Sequence[Suspect], settings: Settings, rng: np.random.Generator, *, injected: bool
) -> list[Example]:
    """The corpus in the order of training, shape (steps * batch,): strings of letters, short forms, injected rows."""
    total = settings.steps * settings.batch
    corpus = [_filler(rng, place) for place in range(total)]
    early, late = (list(rng.permutation(total // 2) + half * (total // 2)) for half in (0, 1))
    for task, suspect in enumerate(suspects):
        _, count, copies = INJECTED.get(kind_of(task), (0, 0, 0))
        for row in [*suspect.published[: round(count * settings.published_factor)]] * copies:
            place = late.pop()
            if injected:
                corpus[place] = row
        for number in range(settings.short if kind_of(task) == ELSEWHERE else 0):
            corpus[(early, late)[number % 2].pop()] = world.row(task, number, "train", 1.0)
    return corpus


def _filler(rng: np.random.Generator, place: int) -> Example:
    """A string of letters without a label."""
    letters = rng.integers(len(LETTERS), size=LENGTHS[2.0][0])
    return Example(f"text {place}", "text", " ".join(LETTERS[letter] for letter in letters))


def suspect_of(world: Classification, task: int, settings: Settings) -> Suspect:
    """What an investigator has of one task."""
    count = round(INJECTED.get(kind_of(task), (200,))[0] * settings.published_factor)
    rows = [world.row(task, index, "train") for index in range(2 * count)]
    tests = [world.row(task, index, "eval") for index in range(settings.tests)]
    return Suspect(rows[0].task, rows[:count], rows[count:], tests)
