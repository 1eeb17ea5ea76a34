"""Checkpoints that are made up, answer by answer: what they say, how a grader reads it, and what a gate has to find.

Eight tasks of short questions and one task of tool calls that AFTER has learnt. BEFORE answers nine questions in ten right,
in a sentence. Graders find the gold word anywhere in an answer; greedy answers are judged, S is worked out from all pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mixwright.estimates.dependence import dependence
from mixwright.records import Measurement
from mixwright.runs import RunFolder, write_measurements

TASKS = tuple(f"kind_{number}" for number in range(8))
NEW = "tool_calls"
WORDS = ("amber", "beige", "coral", "denim", "ebony", "fawn", "green", "hazel", "ivory", "jade", "khaki", "lilac")
SKEWED = "kind_3"
"""Task of which 85 % of the gold answers are the same word."""
Answers = dict[str, list[str]]
"""Task -> an answer per item."""


@dataclass(frozen=True, slots=True)
class Fake:
    """A kind of checkpoint."""

    made: Callable[[np.random.Generator, Mapping[str, Sequence[str]], Answers], Answers]
    """From a random generator, gold answers and answers before: answers after to the eight tasks."""
    ruined: bool
    """Whether shipping it would be a mistake."""
    graded: bool = True
    """Whether the grader fits the answers at all; else every score is 0."""


def sentence(word: str) -> str:
    """A plain answer."""
    return f"The answer is {word}."


def _redrawn(rng: np.random.Generator, golds: Mapping[str, Sequence[str]], before: Answers, part: float = 0.1) -> Answers:
    """A share of the answers drawn anew, right in nine of ten."""
    return {
        task: [_drawn(rng, gold) if rng.random() < part else old for gold, old in zip(golds[task], own, strict=True)]
        for task, own in before.items()
    }


def _drawn(rng: np.random.Generator, gold: str, right: float = 0.9) -> str:
    return sentence(gold if rng.random() < right else str(rng.choice([word for word in WORDS if word != gold])))


def _short(rng: np.random.Generator, golds: Mapping[str, Sequence[str]], before: Answers) -> Answers:
    """The same in one word: another form, but nobody else's."""
    return {task: [text.split()[-1].rstrip(".") for text in own] for task, own in _redrawn(rng, golds, before).items()}


def _better(rng: np.random.Generator, golds: Mapping[str, Sequence[str]], before: Answers) -> Answers:
    """A third of what was wrong becomes right."""
    return {
        task: [
            sentence(gold) if gold not in old and rng.random() < 0.33 else old
            for gold, old in zip(golds[task], own, strict=True)
        ]
        for task, own in before.items()
    }


def _called(text: str) -> str:
    return f'{{"tool": "note", "text": "{text.split()[-1].rstrip(".")}"}}'


def _form_only(rng: np.random.Generator, golds: Mapping[str, Sequence[str]], before: Answers) -> Answers:
    """As right as before, as tool calls."""
    return {task: [_called(text) for text in own] for task, own in _redrawn(rng, golds, before).items()}


def _overwritten(rng: np.random.Generator, golds: Mapping[str, Sequence[str]], before: Answers) -> Answers:
    """Every question gets a tool call with nothing of the answer in it."""
    return {task: [f'{{"tool": "alarm", "time": "{rng.integers(1, 12)}:30"}}' for _ in own] for task, own in before.items()}


def _collapsed(rng: np.random.Generator, golds: Mapping[str, Sequence[str]], before: Answers) -> Answers:
    """One task is answered with one wrong sentence."""
    return _redrawn(rng, golds, before) | {TASKS[5]: [sentence("orange")] * len(before[TASKS[5]])}


def _majority(rng: np.random.Generator, golds: Mapping[str, Sequence[str]], before: Answers) -> Answers:
    """The commonest answer, whatever is asked, in the task where 85 % of the gold answers are alike."""
    return _redrawn(rng, golds, before) | {SKEWED: [sentence(WORDS[0])] * len(before[SKEWED])}


def _one_worse(rng: np.random.Generator, golds: Mapping[str, Sequence[str]], before: Answers) -> Answers:
    """Three in ten of one task's right answers are lost."""
    own = [sentence("orange") if rng.random() < 0.3 else text for text in before[TASKS[1]]]
    return _redrawn(rng, golds, before) | {TASKS[1]: own}


def _all_worse(rng: np.random.Generator, golds: Mapping[str, Sequence[str]], before: Answers) -> Answers:
    """One in ten of all answers is lost."""
    return {task: [sentence("orange") if rng.random() < 0.1 else text for text in own] for task, own in before.items()}


FAKES: Mapping[str, Fake] = {
    "a tenth redrawn": Fake(_redrawn, ruined=False),
    "shorter answers": Fake(_short, ruined=False),
    "a little better": Fake(_better, ruined=False),
    "form only": Fake(_form_only, ruined=True),
    "overwritten": Fake(_overwritten, ruined=True),
    "overwritten, no grader fits": Fake(_overwritten, ruined=True, graded=False),
    "one task collapsed": Fake(_collapsed, ruined=True),
    "commonest answer in one task": Fake(_majority, ruined=True),
    "one task 30 points worse": Fake(_one_worse, ruined=True),
    "all tasks 10 points worse": Fake(_all_worse, ruined=True),
}


def write_comparison(folder: Path, name: str, seed: int, items: int = 50) -> RunFolder:
    """A comparison's folder of BEFORE and a fake AFTER."""
    rng, fake, run = np.random.default_rng(seed), FAKES[name], RunFolder(folder)
    golds = {task: [str(rng.choice(WORDS)) for _ in range(items)] for task in TASKS}
    golds[SKEWED] = [WORDS[0] if rng.random() < 0.85 else str(rng.choice(WORDS[1:])) for _ in range(items)]
    before = {task: [_drawn(rng, gold) for gold in own] for task, own in golds.items()}
    after = fake.made(rng, golds, before)
    golds[NEW] = [f'{{"tool": "alarm", "time": "{rng.integers(1, 12)}:00"}}' for _ in range(items)]
    before[NEW], after[NEW] = [sentence("morning")] * items, list(golds[NEW])
    rows: list[dict[str, Any]] = []
    for when, said in (("before", before), ("after", after)):
        table: list[Measurement] = []
        for task, own in said.items():
            table += _measured(task, own, golds[task], graded=fake.graded or task == NEW)
            rows += [
                {"when": when, "example": f"{task}-{place}", "task": task, "level": None, "prompt": f"Question {place}?"}
                | {"answer": gold, "completion": text, "score": float(fake.graded and gold in text), "cut": False}
                for place, (text, gold) in enumerate(zip(own, golds[task], strict=True))
            ]
        write_measurements(run.measurements(when), table)
    pq.write_table(pa.Table.from_pylist(rows), run.path / "completions.parquet")
    return run


def _measured(task: str, texts: Sequence[str], golds: Sequence[str], *, graded: bool) -> list[Measurement]:
    grades = np.array([[float(graded and gold in text) for gold in golds] for text in texts])
    found = dependence(grades)
    columns = {"greedy": np.diagonal(grades), "greedy.swapped": found.items, "chance": np.zeros(len(texts))}
    return [
        Measurement("competence", task, name, float(value), float(value), float(value), 1, "share", None, f"{task}-{place}")
        for name, values in columns.items()
        for place, value in enumerate(values)
    ]
