"""Rows with a fault, what each arm of `fault_costs` trains on, and test items in cells.

Source: worked sums of two-digit numbers, capitals and other cities, and tool calls (`everyday`). What an arm leaves out or
adds is what a check of the product says: `traces` lists rows, `cues` says how many lack, `coverage` names what is missing.
Unit: a row to train on (id, task, prompt, completion; `right` where it may be wrong) and an item (id, task, prompt, answer,
cell).
Cost: a second for an arm.
Blind spot: one wording of sums and of questions about places; one fault in rows that are right in everything else.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mixwright.audit.cues import find_cues
from mixwright.audit.holes import find_coverage
from mixwright.audit.skills import read_skills
from mixwright.audit.text import normal_words
from mixwright.audit.top_up import ROWS_PER_HOLE
from mixwright.mine.relevance import bm25, choose_in_turn
from mixwright_lab.demo.tables import CAPITALS
from mixwright_lab.studies.everyday import MORE_CAPITALS, PLACES, TOOLS, tool_calls
from mixwright_lab.studies.fault_context import NOTED, UNKNOWN, UNSEEN, UNSEEN_ARMS, make_unseen
from mixwright_lab.studies.fault_frame import DILUTION, DILUTION_ARMS, EVEN, ODD, make_dilution
from mixwright_lab.studies.fault_parts import (
    AS_IT_IS,
    FROZEN,
    ITEMS,
    MASK,
    RANDOM_ROWS,
    ROWS,
    Made,
    Row,
    corpus_of,
    listed_rows,
    listed_spans,
    make_item,
    make_row,
)

TRACES, CUES, HOLES = "traces", "cues", "holes"
WORLDS = (TRACES, CUES, HOLES, UNSEEN, DILUTION)
SOUND, SYSTEMATIC, RANDOM = "sound", "systematic", "random"
SYSTEMATIC_DROPPED, RANDOM_DROPPED = "systematic, listed rows dropped", "random, listed rows dropped"
SYSTEMATIC_NULL = "systematic, as many random rows dropped"
SYSTEMATIC_MASKED, MASKED_NULL = "systematic, listed steps masked", "systematic, as many random steps masked"
PAIRS, NO_CUE = "minimal pairs", "no cue"
TOPPED_UP, SIMILAR = "topped up", "similar rows"
ARMS: Mapping[str, tuple[str, ...]] = {
    TRACES: (
        SYSTEMATIC,
        RANDOM,
        SYSTEMATIC_DROPPED,
        SYSTEMATIC_NULL,
        SYSTEMATIC_MASKED,
        MASKED_NULL,
        SOUND,
        RANDOM_DROPPED,
        FROZEN,
    ),
    CUES: (PAIRS, RANDOM_ROWS, AS_IT_IS, NO_CUE, FROZEN),
    HOLES: (TOPPED_UP, RANDOM_ROWS, SIMILAR, AS_IT_IS, FROZEN),
    UNSEEN: UNSEEN_ARMS,
    DILUTION: DILUTION_ARMS,
}
"""World -> its arms, those of the first question first."""
FACT, OTHER, AGREES, CONFLICTS, MISSING = "fact", "other", "agrees", "conflicts", "missing"
CELLS: Mapping[str, tuple[str, str]] = {
    TRACES: (FACT, OTHER),
    CUES: (AGREES, CONFLICTS),
    HOLES: (MISSING, OTHER),
    UNSEEN: (NOTED, UNKNOWN),
    DILUTION: (EVEN, ODD),
}
WRONG_SHARE, WORD_SHARE, CUE_SHARE = 0.3, 0.5, 0.95
"""Of the rows: those with a wrong value, and those with a word; of these those whose word goes with the answer."""
SLIPS = tuple(slip for slip in range(-9, 10) if slip)
"""What a wrong value is off by."""
STEP = re.compile(r"\d+ \+ \d+ = \d+")
WORDS = {"yes": "really", "no": "actually"}
"""Answer -> the word that goes with it."""
TEST_PLACES = 25
"""Capitals, and other cities, that are asked about and stand in no row."""
CITIES = (
    "Barcelona Valencia Seville Marseille Toulouse Bordeaux Strasbourg Frankfurt Stuttgart Dresden Leipzig Venice Florence "
    "Palermo Bologna Rotterdam Antwerp Salzburg Graz Basel Lausanne Gothenburg Malmo Aarhus Turku Manchester Liverpool "
    "Glasgow Bristol Chicago Houston Seattle Detroit Toronto Montreal Vancouver Calgary Melbourne Brisbane Auckland "
    "Shanghai Guangzhou Shenzhen Nagoya Busan Karachi Lahore Kolkata Chennai Istanbul Izmir Alexandria Casablanca "
    "Johannesburg Mombasa Guayaquil Medellin Rosario Recife"
)
"""None of them a capital, as those of `PLACES` that are no capital."""
PAIRS_WITHOUT_LIST = 100
"""Rows that are added where the check names no cue."""
LEAST_CALLS = 25
"""Test items of a tool from which on it may be the missing one."""

Fact = tuple[int, int]
"""Two last digits, the smaller one first."""


def make(world: str, seed: int, arm: str) -> Made:
    """Rows of an arm, none of `frozen`, and the items, which are the same for all arms of a seed."""
    by_world = {TRACES: _traces, CUES: _cues, HOLES: _holes, UNSEEN: make_unseen, DILUTION: make_dilution}
    return by_world[world](seed, arm)


# Worked sums.


def fact_of(first: int, second: int) -> Fact:
    """The sum of digits that a sum needs in its first step."""
    one, other = sorted((first % 10, second % 10))
    return one, other


def worked(first: int, second: int, slips: Sequence[int] = (0, 0, 0)) -> str:
    """The solution of a sum; each step's value is off by its slip, and what follows uses it.

    Examples:
        >>> worked(47, 38, (1, 0, 0))
        '7 + 8 = 16. 40 + 30 = 70. 70 + 16 = 86. Answer: 86'
    """
    ones = first % 10 + second % 10 + slips[0]
    tens = first - first % 10 + second - second % 10 + slips[1]
    total = tens + ones + slips[2]
    parts = (first % 10, second % 10, ones, first - first % 10, second - second % 10, tens, tens, ones, total)
    return "{} + {} = {}. {} + {} = {}. {} + {} = {}. Answer: {}".format(*parts, total)


def sums(seed: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]], dict[Fact, int]]:
    """Sums to train on, sums to ask, and the facts with what each is wrong by; no two sums have the same two numbers.

    The facts are as many as make 30 % of the rows wrong, and the share of items that need one is that of the rows.
    """
    rng = random.Random(f"{seed} {TRACES}")
    pairs = [(one, other) for one in range(21, 100) for other in range(21, one + 1)]
    pairs = [pair if rng.random() < 0.5 else (pair[1], pair[0]) for pair in rng.sample(pairs, len(pairs))]
    train, rest = pairs[:ROWS], pairs[ROWS:]
    count_by_fact = Counter(fact_of(*pair) for pair in train)
    wrong: dict[Fact, int] = {}
    for fact in rng.sample(sorted(count_by_fact), len(count_by_fact)):
        if sum(count_by_fact[one] for one in wrong) >= WRONG_SHARE * ROWS:
            break
        wrong[fact] = rng.choice([slip for slip in SLIPS if sum(fact) + slip >= 0])
    needing = round(WRONG_SHARE * ITEMS)
    asked = [pair for pair in rest if fact_of(*pair) in wrong][:needing]
    asked += [pair for pair in rest if fact_of(*pair) not in wrong][: ITEMS - needing]
    return train, asked, wrong


def solutions(seed: int, kind: str) -> list[Row]:
    """Rows of worked sums: `sound`, `systematic`, or `random`, which has as many wrong ones as `systematic`."""
    train, _, wrong = sums(seed)
    rng, slips_by_row = random.Random(f"{seed} {kind}"), [[0, 0, 0] for _ in train]
    if kind == SYSTEMATIC:
        for pair, slips in zip(train, slips_by_row, strict=True):
            slips[0] = wrong.get(fact_of(*pair), 0)
    elif kind == RANDOM:
        count = sum(fact_of(*pair) in wrong for pair in train)
        for place in rng.sample(range(len(train)), count):
            step = rng.randrange(3)
            least = -sum(fact_of(*train[place])) if step == 0 else min(SLIPS)
            slips_by_row[place][step] = rng.choice([slip for slip in SLIPS if slip >= least])
    return [
        make_row(TRACES, place, f"Add {pair[0]} and {pair[1]}.", worked(*pair, slips)) | {"right": not any(slips)}
        for place, (pair, slips) in enumerate(zip(train, slips_by_row, strict=True))
    ]


def _traces(seed: int, arm: str) -> Made:
    _, asked, wrong = sums(seed)
    items = [
        make_item(
            TRACES, place, f"Add {one} and {other}.", str(one + other), FACT if fact_of(one, other) in wrong else OTHER
        )
        for place, (one, other) in enumerate(asked)
    ]
    if arm == FROZEN:
        return Made([], items, {})
    rows = solutions(seed, arm.partition(",")[0])
    remarks = {"wrong": _count_wrong(rows), "facts": len(wrong)}
    if arm in (SYSTEMATIC_MASKED, MASKED_NULL):
        return _masked(seed, arm, rows, items, remarks)
    if arm not in (SYSTEMATIC_DROPPED, RANDOM_DROPPED, SYSTEMATIC_NULL):
        return Made(rows, items, remarks)
    dropped = listed_rows(rows, TRACES)
    remarks |= {"listed": len(dropped), "listed and wrong": sum(row["id"] in dropped and not row["right"] for row in rows)}
    if arm == SYSTEMATIC_NULL:
        dropped = set(random.Random(f"{seed} {arm}").sample([row["id"] for row in rows], len(dropped)))
    kept = [row for row in rows if row["id"] not in dropped]
    return Made(kept, items, remarks | {"wrong and kept": _count_wrong(kept)})


def _masked(seed: int, arm: str, rows: Sequence[Row], items: list[Row], remarks: dict[str, Any]) -> Made:
    """All rows, with the steps that the check lists out of the loss, or as many random steps of any row."""
    spans = listed_spans(rows, TRACES)
    count = sum(map(len, spans.values()))
    if arm == MASKED_NULL:
        steps = [(row["id"], list(found.span())) for row in rows for found in STEP.finditer(row["completion"])]
        spans = {}
        for name, span in sorted(random.Random(f"{seed} {arm}").sample(steps, count)):
            spans.setdefault(name, []).append(span)
    return Made([row | {MASK: spans.get(row["id"], [])} for row in rows], items, remarks | {"masked": count})


def _count_wrong(rows: Iterable[Row]) -> int:
    return sum(not row["right"] for row in rows)


# Capitals and other cities with a cue.


class Asked(NamedTuple):
    """A question about a place."""

    line: int
    """A number that no other question has, and that decides nothing."""
    name: str
    """Of the place."""
    answer: str
    """What it is."""

    def with_word(self, word: str) -> str:
        """The question, with a word that decides nothing, or none."""
        return f"Line {self.line} says {self.name}. Is that {word} the capital of a country?".replace("  ", " ")


def places() -> dict[str, list[str]]:
    """Answer -> names of capitals, and of other cities."""
    capitals = {entry.split(": ")[1] for entry in f"{CAPITALS}; {MORE_CAPITALS}".split("; ")}
    return {"yes": sorted(capitals), "no": sorted({*PLACES, *CITIES.split()} - {*capitals, "Delhi"})}


def questions(seed: int) -> tuple[list[Asked], list[Asked], list[Asked]]:
    """Questions to ask, to train on, and further ones of the same kind; those to ask are about places of their own."""
    rng = random.Random(f"{seed} {CUES}")
    lines = iter(rng.sample(range(100, 10_000), ITEMS + 2 * ROWS))
    test, train, further = list[Asked](), list[Asked](), list[Asked]()
    for answer, names in places().items():
        mixed = rng.sample(names, len(names))
        for part, count, own in (
            (test, ITEMS // 2, mixed[:TEST_PLACES]),
            (train, ROWS // 2, mixed[TEST_PLACES:]),
            (further, ROWS // 2, mixed[TEST_PLACES:]),
        ):
            part += [Asked(next(lines), own[place % len(own)], answer) for place in range(count)]
    return test, train, further


def word_for(answer: str, agrees: bool) -> str:
    """The word that goes with an answer, or the other one."""
    return WORDS[answer] if agrees else next(word for other, word in WORDS.items() if other != answer)


def with_words(every: Sequence[Asked], share: float, rng: random.Random, name: str) -> list[Row]:
    """Rows of which half have a word, and of those, to the nearest row, this share the word that goes with the answer."""
    rows: list[Row] = []
    for answer in WORDS:
        own = [one for one in every if one.answer == answer]
        worded = round(WORD_SHARE * len(own))
        agreeing = round(share * worded)
        words = [word_for(answer, agrees=True)] * agreeing + [word_for(answer, agrees=False)] * (worded - agreeing)
        words += [""] * (len(own) - worded)
        rows += [
            make_row(CUES, f"{name}-{answer}{place}", one.with_word(word), answer) | {"word": word}
            for place, (one, word) in enumerate(zip(own, rng.sample(words, len(words)), strict=True))
        ]
    return rows


def swapped(row: Row) -> Row:
    """The row with the other word; its answer is what it was."""
    word = next(word for word in WORDS.values() if word != row["word"])
    prompt = " ".join(word if one == row["word"] else one for one in row["prompt"].split(" "))
    return row | {"id": f"{row['id']}-swapped", "prompt": prompt, "word": word}


def missing_rows(rows: Sequence[Row]) -> dict[str, tuple[str, int]]:
    """Word that the check `cues` names -> its answer, and how many rows with it and another answer the list asks for."""
    cues = [cue for one in find_cues(corpus_of(rows)) for cue in one.cues]
    return {cue.feature.value: (cue.label, cue.missing) for cue in cues if cue.feature.kind == "word"}


def minimal_pairs(rows: Sequence[Row], rng: random.Random) -> tuple[list[Row], dict[str, int]]:
    """Copies of rows with the other word, so many as the list of the check asks for of each word, and that list."""
    listed = missing_rows(rows)
    if not listed:
        return [swapped(row) for row in rng.sample([row for row in rows if row["word"]], PAIRS_WITHOUT_LIST)], {}
    found: list[Row] = []
    for word, (label, count) in listed.items():
        have = [row for row in rows if row["word"] not in ("", word) and row["completion"] != label]
        found += [swapped(row) for row in rng.sample(have, min(count, len(have)))]
    return found, {word: count for word, (_, count) in listed.items()}


def _cues(seed: int, arm: str) -> Made:
    asked, base, further = questions(seed)
    items = [
        make_item(CUES, place, one.with_word(word_for(one.answer, agrees)), one.answer, cell)
        for place, one in enumerate(asked)
        for agrees, cell in [(True, AGREES) if place % 2 else (False, CONFLICTS)]
    ]
    random.Random(f"{seed} items").shuffle(items)
    if arm == FROZEN:
        return Made([], items, {})
    if arm == NO_CUE:
        rows = with_words(base, 0.5, random.Random(f"{seed} {arm}"), "row")
        return Made(rows, items, {"asked": {word: count for word, (_, count) in missing_rows(rows).items()}})
    rows, rng = with_words(base, CUE_SHARE, random.Random(f"{seed} {AS_IT_IS}"), "row"), random.Random(f"{seed} {arm}")
    if arm == AS_IT_IS:
        return Made(rows, items, {})
    copies, counts = minimal_pairs(rows, rng)
    if arm == RANDOM_ROWS:
        copies = with_words(rng.sample(further, len(copies)), CUE_SHARE, rng, "further")
    return Made(rows + copies, items, {"asked": counts, "added": len(copies)})


# Tool calls with a missing tool.


def missing_tool(seed: int, test: Iterable[Row]) -> str:
    """The tool that no row has: one that enough items ask for."""
    counts = Counter(_tool_of(item["answer"]) for item in test)
    return random.Random(f"{seed} {HOLES}").choice([tool for tool in TOOLS if counts[tool] >= LEAST_CALLS])


def missing_skills(rows: Sequence[Row], items: Sequence[Row]) -> list[str]:
    """Skills that the check `coverage` says no row has and items need."""
    return [hole.what for hole in find_coverage(corpus_of(rows, items)).holes if hole.is_hole and hole.kind == "skill"]


def nearest(pool: Sequence[Row], items: Sequence[Row], count: int) -> list[Row]:
    """Rows that the items choose in turn, each the one that is nearest by words of those that are left."""
    words, shots = ([normal_words(row["prompt"]) for row in rows] for rows in (pool, items))
    return [pool[place] for place in choose_in_turn(bm25(words, shots), count)]


def _holes(seed: int, arm: str) -> Made:
    calls, held_out = tool_calls(random.Random(seed))
    items = [make_item(HOLES, place, prompt, call, OTHER) for place, (prompt, call) in enumerate(held_out)]
    tool = missing_tool(seed, items)
    items = [item | {"cell": MISSING if _tool_of(item["answer"]) == tool else OTHER} for item in items]
    others = [item for item in items if item["cell"] == OTHER]
    items = [item for item in items if item["cell"] == MISSING]
    items += others[: ITEMS - len(items)]
    if arm == FROZEN:
        return Made([], items, {"missing": tool})
    every = [make_row(HOLES, place, prompt, call) for place, (prompt, call) in enumerate(calls)]
    known = [row for row in every if _tool_of(row["completion"]) != tool]
    rows, pool, rng = known[:ROWS], known[ROWS:], random.Random(f"{seed} {arm}")
    if arm == AS_IT_IS:
        return Made(rows, items, {"missing": tool})
    named = missing_skills(rows, items)
    count = ROWS_PER_HOLE * max(1, len(named))
    choose: dict[str, Callable[[], list[Row]]] = {
        TOPPED_UP: lambda: [row for skill in named for row in rng.sample(_needing(every, {skill}), ROWS_PER_HOLE)],
        RANDOM_ROWS: lambda: rng.sample(pool, count),
        SIMILAR: lambda: nearest(pool, items, count),
    }
    added = choose[arm]()
    return Made(rows + added, items, {"missing": tool, "named": named, "added": len(added)})


def _needing(rows: Iterable[Row], skills: Collection[str]) -> list[Row]:
    """Rows that need one of the skills, as the product reads them."""
    return [row for row in rows if not {*read_skills((), row["prompt"], row["completion"]).sequence}.isdisjoint(skills)]


def _tool_of(call: str) -> str:
    return str(json.loads(call)["tool"])
