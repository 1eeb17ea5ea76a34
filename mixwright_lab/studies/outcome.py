"""Outcome of a run in the arena: success on all held-out problems, of every level, with its parts S and D.

What a student answers is kept whole (a letter per answer), so that success, S, D and every interval can be worked out again
from a committed row. A level counts once: the mean over levels is the primary outcome, under greedy decoding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mixwright.estimates.crossed import Estimate
from mixwright.estimates.dependence import dependence
from mixwright.estimates.items import Item, Items
from mixwright.estimates.judgement import MIN_SEEDS, change_word
from mixwright.estimates.outcome import SWAPPED_SUFFIX, Change, ItemScores, estimate_change
from mixwright.records import Example, Interval
from mixwright_lab.training.grpo import Arena
from mixwright_lab.training.rules import unique_examples
from mixwright_lab.worlds.chain import MODULUS

SAMPLES = 4
"""Sampled answers of a held-out problem."""
LETTERS = "0123456789abcdef"
NONE = "-"
"""An answer that is no number of the world."""
REFERENCES = ("frozen", "uniform", "equal shares")
Row = Mapping[str, Any]


def answers(arena: Arena, problems: Sequence[Example]) -> dict[str, Any]:
    """A letter per problem under greedy decoding, and `SAMPLES` letters per problem of sampled ones; nothing is charged."""
    greedy, drawn = arena.look(problems, greedy=True).answers, arena.look(problems, SAMPLES).answers
    return {"greedy": _letters(greedy), "sampled": _letters(drawn)}


def scores(seen: Mapping[str, str], problems: Sequence[Example]) -> ItemScores:
    """Success and pseudo-values of S of every problem, from what `answers` kept.

    Args:
        seen: of one student.
        problems: the held-out problems that it answered, each level at least three.
    """
    found: dict[str, dict[Item, float]] = {}
    levels = np.array([example.level for example in problems], dtype=float)
    right = np.array([[float(str(n) in _accepted(example)) for n in range(MODULUS)] + [0.0] for example in problems])
    for name, letters in (("greedy", seen["greedy"]), ("pass@1", seen["sampled"])):
        given = np.array([LETTERS.find(letter) for letter in letters]).reshape(len(problems), -1)
        for level in np.unique(levels).tolist():
            here = np.flatnonzero(levels == level).tolist()
            table = right[here][:, given[here]].mean(-1).T
            known = dependence(table)
            for place, success, swapped in zip(here, np.diagonal(table).tolist(), known.items.tolist(), strict=True):
                item = (problems[place].task, level, problems[place].id)
                found.setdefault(name, {})[item] = success
                found.setdefault(name + SWAPPED_SUFFIX, {})[item] = swapped
    return ItemScores.of(found)


def _letters(given: Sequence[Sequence[str]]) -> str:
    names = {str(number): letter for number, letter in enumerate(LETTERS)}
    return "".join(names.get(answer, NONE) for group in given for answer in group)


def _accepted(example: Example) -> tuple[str, ...]:
    return tuple(example.extra.get("accepted", (str(example.answer),)))


def differences(
    rows: Sequence[Row],
    problems: Sequence[Example],
    pairs: Sequence[tuple[str, str]],
    *,
    levels: Sequence[float] = (),
    column: str = "answers",
) -> dict[str, Any]:
    """Each arm against another, paired by seed and problem: success with S and D, sampled success, and the word for it.

    Args:
        rows: of one pool, with arm, seed and answers.
        problems: the held-out problems.
        pairs: (arm, against).
        levels: that are meant; empty for all.
        column: of the rows that holds the answers; rows that lack it (models that were not trained) have "answers".
    """
    known = {(row["arm"], row["seed"]): scores(row.get(column, row["answers"]), problems) for row in rows}
    found = {}
    for arm, against in pairs:
        seeds = sorted(seed for name, seed in known if name == arm and (against, seed) in known)
        sides = ([known[name, seed] for seed in seeds] for name in (against, arm))

        def of_levels(items: Items) -> Items:
            return items.of_cells([cell for cell in items.cells if not levels or cell[1] in levels])

        moved = estimate_change(*sides, weigh="cells", included=of_levels) if seeds else None
        if moved is not None:
            found[f"{arm} - {against}"] = format_outcome(moved)
    return found


def format_outcome(moved: Change) -> dict[str, Any]:
    """A change as figures, as shares."""
    parts = {"success": moved.estimate, "S": moved.swapped, "D": moved.dependence, "sampled": moved.sampled}
    shown: dict[str, Any] = {name: _figure(part) for name, part in parts.items() if part is not None}
    word = change_word(moved) if moved.estimate.seeds >= MIN_SEEDS else "cannot tell"
    return shown | {"word": word, "p": moved.estimate.p, "seeds": moved.estimate.seeds, "items": moved.estimate.items}


def interval_of(shown: Mapping[str, Any]) -> Interval:
    """Success of a comparison as a record."""
    value, low, high = shown["success"]
    return Interval(value, low, high, shown["seeds"])


def _figure(part: Estimate) -> list[float]:
    return [round(value, 5) if math.isfinite(value) else 0.0 for value in (part.value, part.low, part.high)]


def means(rows: Sequence[Row], problems: Sequence[Example], *, column: str = "answers") -> dict[str, Any]:
    """Arm -> greedy and sampled success, mean over levels and of each level, mean over seeds."""
    found: dict[str, list[list[float]]] = {}
    for row in rows:
        known = scores(row.get(column, row["answers"]), problems)
        levels = sorted({item[1] or 0.0 for item in known.items})
        own = []
        for name in ("greedy", "pass@1"):
            by = [np.mean([v for item, v in known.by_item(name).items() if item[1] == level]) for level in levels]
            own += [float(np.mean(by)), *map(float, by)]
        found.setdefault(row["arm"], []).append(own)
    shown = {}
    for arm, values in found.items():
        mean = [round(float(value), 4) for value in np.mean(values, axis=0)]
        half = len(mean) // 2
        shown[arm] = {"greedy": mean[0], "levels": mean[1:half], "sampled": mean[half], "sampled levels": mean[half + 1 :]}
    return shown


def table(title: str, shown: Mapping[str, Any], average: Mapping[str, Any]) -> None:
    """Print the outcome of one pool, in points."""
    print(
        f"\n{title}, greedy success over all held-out levels, %: "
        + ", ".join(f"{a} {100 * m['greedy']:.1f}" for a, m in average.items())
    )
    for pair, found in shown.items():
        parts = []
        for name in ("success", "S", "D", "sampled"):
            value, low, high = (100 * number for number in found[name])
            parts.append(f"{name} {value:+.1f} [{low:+.1f}, {high:+.1f}]")
        print(f"  {pair:<44} {'  '.join(parts)}  {found['word']}")


def held_out(levels: Sequence[int], each: int, make: Any) -> list[Example]:
    """Up to `each` different problems of the eval split per level, by `make(index, level, split)`."""
    return [
        problem for level in levels for problem in unique_examples([make(i, level, "eval") for i in range(2 * each)])[:each]
    ]
