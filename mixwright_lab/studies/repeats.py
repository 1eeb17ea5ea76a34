"""Study of the null of `duplicates`: repeats in tasks whose prompts share only words, and near repeats within train.

Exact: 300 or 2,000 boolean expressions, walks (of many lengths, or of six steps) or lists of a few words, which differ in
the order of words alone, clean (chance makes repeats) and with a fifth of them once more. Near: the six kinds of
`near_copies`, all rows in train in random order, clean and with 40 rows once more, their first and last words exchanged.
Counted is whether the check warns.

Goals, written before these seeds: of pools with copies at least 95 % (exact, the worst of expressions, walks and lists),
and 90 % (near, the worst kind in which chance makes none), have a warning; at most 2 % of all clean pools have one, and
of each kind at most 5 %. Reported and no goal: walks of six steps and short expressions, of which chance repeats a fifth
or more of 2,000; near copies in templates, in which chance makes near copies too, and in chats. Tuned on seeds under 12.
Before, no pool of expressions with copies had a warning, and none of twelve of word problems with 40 near copies. A
version between reached these goals on seeds 90,000 to 91,099, without walks of six steps and with 300 rows alone; a test
found that it expected an eighth of the repeats of walks of one length, and 70 % of those of 2,000 short expressions.

    python -m mixwright_lab.studies.repeats [--quick]
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from mixwright.catalog import create
from mixwright.corpus import Corpus
from mixwright.estimates.intervals import share_interval
from mixwright.records import Example, Interval
from mixwright_lab.studies.near_copies import KINDS, reword
from mixwright_lab.studies.report import Goal, Result, run

ROWS, COPIED_SHARE = (300, 2000), 0.2
NEAR_ROWS, NEAR_COPIES = (400, 2000), 40
NO_CHANCE = ("word problems", "any words, two answers", "any words, many answers")
"""Kinds in which chance alone makes no near copy within train."""
MANY_PROMPTS = ("expressions", "walks", "fruit")
"""Kinds of which chance repeats few."""
LEAST_EXACT, LEAST_NEAR, MOST_ALARMS, MOST_ALARMS_OF_A_KIND = 0.95, 0.9, 0.02, 0.05
FRUIT = ("pear", "fig", "plum", "kiwi", "lime", "date", "lemon")


def expression(rng: random.Random, depth: int = 3) -> str:
    """A boolean expression; short ones come often."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(("True", "False", "not True", "not False"))
    sides = [expression(rng, depth - 1) for _ in range(2)]
    return f"{'not ' if rng.random() < 0.3 else ''}( {sides[0]} {rng.choice(('and', 'or'))} {sides[1]} )"


def walk(rng: random.Random) -> str:
    """Four to twelve directions."""
    return " ".join(rng.choices(("left", "right", "up", "down"), k=rng.randint(4, 12)))


def fruit(rng: random.Random) -> str:
    """Five to nine words to sort."""
    return "Sort: " + " ".join(rng.choices(FRUIT, k=rng.randint(5, 9)))


def short_walk(rng: random.Random) -> str:
    """Six directions."""
    return " ".join(rng.choices(("left", "right", "up", "down"), k=6))


def short_expression(rng: random.Random) -> str:
    """A boolean expression of two levels."""
    return expression(rng, 2)


WORD_TASKS: dict[str, Callable[[random.Random], str]] = {
    "expressions": expression,
    "walks": walk,
    "walks of six": short_walk,
    "short expressions": short_expression,
    "fruit": fruit,
}


def word_pool(kind: str, seed: int, rows: int, copies: int) -> Corpus:
    """Prompts of words that all of them share; one prompt has one answer."""
    rng = random.Random(f"repeats {kind} {seed} {rows}")
    prompts = [WORD_TASKS[kind](rng) for _ in range(rows)]
    prompts += [rng.choice(prompts) for _ in range(copies)]
    rng.shuffle(prompts)
    answers = {prompt: rng.choice(("yes", "no")) for prompt in prompts}
    return Corpus.from_examples([Example(str(n), "task", p, answer=answers[p]) for n, p in enumerate(prompts)])


def near_pool(kind: str, seed: int, rows: int, copies: int) -> Corpus:
    """Different prompts of a kind, and the first of them once more, reworded."""
    rng, seen = random.Random(f"near repeats {kind} {seed} {rows}"), dict[str, str]()
    while len(seen) < rows:
        prompt, answer = KINDS[kind](rng)
        seen.setdefault(prompt, answer)
    made = [Example(f"own{n}", "task", prompt, answer=answer) for n, (prompt, answer) in enumerate(seen.items())]
    copied = [Example(f"copy{n}", "task", reword(str(row.prompt), rng), answer=row.answer) for n, row in enumerate(made)]
    made += copied[:copies]
    rng.shuffle(made)
    return Corpus.from_examples(made)


def audit(corpus: Corpus, word: str) -> dict[str, Any]:
    """The count, severity and null of the observation with this word."""
    found = [one for one in create("checks", "duplicates").check(corpus) if word in one.message]
    return {
        "count": sum(one.count for one in found),
        "warns": any(one.severity == "warning" for one in found),
        "null": found[0].null if found else "",
    }


def measure(quick: bool) -> Result:
    """All kinds, with copies and clean."""
    planted, clean = (range(2), range(2)) if quick else (range(92_000, 92_030), range(93_000, 93_100))
    rows: list[dict[str, Any]] = []
    for kind in WORD_TASKS:
        for size in ROWS:
            for copies, seeds in ((round(COPIED_SHARE * size), planted), (0, clean)):
                for seed in seeds if size == ROWS[0] else seeds[: max(2, len(seeds) // 5)]:
                    about = {"what": "exact", "kind": kind, "rows": size, "copies": copies, "seed": seed}
                    rows.append(about | audit(word_pool(kind, seed, size, copies), "repeat an earlier"))
    for kind in KINDS:
        for size in NEAR_ROWS:
            for copies, seeds in ((NEAR_COPIES, planted), (0, clean)):
                for seed in seeds if size == NEAR_ROWS[0] else seeds[: max(2, len(seeds) // 5)]:
                    about = {"what": "near", "kind": kind, "rows": size, "copies": copies, "seed": seed}
                    rows.append(about | audit(near_pool(kind, seed, size, copies), "nearly repeat"))
    figures: dict[str, Interval] = {}
    for what, kind in [("exact", kind) for kind in WORD_TASKS] + [("near", kind) for kind in KINDS]:
        for state in ("copies", "clean"):
            chosen = [r for r in rows if (r["what"], r["kind"], r["copies"] > 0) == (what, kind, state == "copies")]
            figures[f"{what}, {kind}, {state}: share with a warning"] = _warned(chosen)

    def of(what: str, state: str, kinds: tuple[str, ...]) -> list[Interval]:
        return [figures[f"{what}, {kind}, {state}: share with a warning"] for kind in kinds]

    exact = min(of("exact", "copies", MANY_PROMPTS), key=lambda one: one.value)
    near = min(of("near", "copies", NO_CHANCE), key=lambda one: one.value)
    alarms = _warned([row for row in rows if not row["copies"]])
    of_kinds = [*of("exact", "clean", tuple(WORD_TASKS)), *of("near", "clean", tuple(KINDS))]
    worst = max(of_kinds, key=lambda one: one.value)
    goals = (
        Goal("exact copies warned of, worst kind", exact, f">= {LEAST_EXACT}", exact.value >= LEAST_EXACT),
        Goal("near copies warned of, worst kind without chance", near, f">= {LEAST_NEAR}", near.value >= LEAST_NEAR),
        Goal("clean pools with a warning", alarms, f"<= {MOST_ALARMS}", alarms.value <= MOST_ALARMS),
        Goal(
            "clean pools with a warning, worst kind",
            worst,
            f"<= {MOST_ALARMS_OF_A_KIND}",
            worst.value <= MOST_ALARMS_OF_A_KIND,
        ),
    )
    unit = "share of pools with 40 near copies that have a warning, the worst kind in which chance makes none"
    settings = {"copied": (COPIED_SHARE, NEAR_COPIES), "rows": (ROWS, NEAR_ROWS)}
    return Result(near, unit, sorted({row["seed"] for row in rows}), rows, figures, settings, goals=goals)


def _warned(rows: list[dict[str, Any]]) -> Interval:
    return share_interval(sum(row["warns"] for row in rows), len(rows))


if __name__ == "__main__":
    run("repeats", __doc__, measure)
