"""Study of contamination checks: copies found in eight wrappings and four kinds of text, and false finds.

Known pools: held-out rows of which some stand in train behind a wrapping, and pools in which nothing does. Beside the audit,
in the same run, plain overlap of runs of words. The goals were fixed before; each is printed with what came out.

    python -m mixwright_lab.studies.contamination [--quick]
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mixwright.catalog import create
from mixwright.corpus import Corpus
from mixwright.estimates.intervals import share_interval
from mixwright.records import Example, Interval, Text, plain
from mixwright_lab.studies.report import Goal, Result, run

NAMES = [
    "Natalia",
    "Omar",
    "Priya",
    "Chen",
    "Lucas",
    "Amara",
    "Sofia",
    "Tariq",
    "Ingrid",
    "Kofi",
    "Mei",
    "Diego",
    "Freya",
    "Hassan",
    "Elena",
    "Yuki",
    "Tomas",
    "Zainab",
    "Noah",
    "Leila",
]
THINGS = [
    "clips",
    "apples",
    "marbles",
    "stamps",
    "pencils",
    "tickets",
    "cookies",
    "shells",
    "cards",
    "ribbons",
    "beads",
    "candles",
]
PLACES = ["market", "fair", "school", "library", "harbour", "garden", "station", "museum"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "April", "May", "June", "July"]
VERBS = ["sorting", "planning", "mending", "painting", "naming", "counting", "copying", "repairing", "weighing", "packing"]
STORIES: tuple[tuple[str, Callable[[int, int, int], int]], ...] = (
    (
        "{n} sold {a} {t} to people at the {p} on {d}, and then {n} sold {b} times as many {t} in the week after that. "
        "How many {t} did {n} sell altogether?",
        lambda a, b, c: a + a * b,
    ),
    (
        "At the {p}, {n} and {m} are counting {t}. {n} has {a} of them in a box and {m} brings {b} more each day for "
        "{c} days. How many {t} are there in the end?",
        lambda a, b, c: a + b * c,
    ),
    (
        "{n} bought {a} {t} for ${b} each at the {p} and gave {c} of them to {m} on {d}. How much were the {t} that {n} "
        "kept worth?",
        lambda a, b, c: (a - c) * b,
    ),
    (
        "A box holds {a} {t}. {n} fills {b} boxes on {d} and {m} breaks {c} {t} while carrying them to the {p}. How many "
        "{t} arrive at the {p} unbroken?",
        lambda a, b, c: a * b - c,
    ),
)


class Item(NamedTuple):
    """A question with its answer, and the worked solution that a training row may have instead."""

    prompt: str
    answer: str
    solution: str
    turns: int = 1
    """More than one: the question is asked in a chat that said something before."""


def word_problem(rng: random.Random) -> Item:
    """A long word problem from templates with many slots."""
    text, solve = rng.choice(STORIES)
    a, b, c = rng.randint(10, 99), rng.randint(2, 20), rng.randint(2, 9)
    n, m = rng.sample(NAMES, 2)
    slots = {"n": n, "m": m, "t": rng.choice(THINGS), "p": rng.choice(PLACES), "d": rng.choice(DAYS)}
    answer = str(solve(a, b, c))
    return Item(text.format(**slots, a=a, b=b, c=c), answer, f"First take {a} and {b}. So it is {answer}.\n#### {answer}")


def arithmetic(rng: random.Random) -> Item:
    """A short question that has hardly any words of its own."""
    a, b = rng.randint(10, 999), rng.randint(10, 999)
    return Item(f"What is {a} + {b}?", str(a + b), f"Adding {b} to {a} step by step.\n#### {a + b}")


def code(rng: random.Random) -> Item:
    """A snippet whose variables differ in case only, and what it prints."""
    low = rng.choice("abcdefghjkmnpqrstuvwxyz")
    first, second, third = (rng.randint(1, 999) for _ in range(3))
    shown = rng.choice((low, low.upper()))
    value = first + third if shown == low else second * 2
    lines = (
        f"{low} = {first}",
        f"{low.upper()} = {second}",
        f"{low} = {low} + {third}",
        f"{low.upper()} = 2 * {low.upper()}",
    )
    text = "What does this program print?\n\n" + "\n".join((*lines, f"print({shown})"))
    return Item(text, str(value), f"Going through it line by line: {value}.\n#### {value}")


def chat(rng: random.Random) -> Item:
    """A question asked in a chat."""
    one, two = rng.sample(VERBS, 2)
    name, thing, place = rng.choice(NAMES), rng.choice(THINGS), rng.choice(PLACES)
    a, b = rng.randint(10, 99), rng.randint(10, 99)
    text = (
        f"My friend {name} spends {a} minutes {one} and {b} minutes {two} {thing} at the {place}. How many minutes is that?"
    )
    return Item(text, str(a + b), f"That is {a} plus {b}.\n#### {a + b}", turns=2)


KINDS: dict[str, Callable[[random.Random], Item]] = {
    "word problems": word_problem,
    "arithmetic": arithmetic,
    "code": code,
    "chats": chat,
}


def _unseen(text: str, rng: random.Random) -> str:
    marks = ("\u200b", "\u00ad", "\u2060", "\ufeff", "\u200e")
    wide = text.translate({code: code + 0xFEE0 for code in range(ord("0"), ord("9") + 1)})
    return "".join(sign + (rng.choice(marks) if sign.isalpha() and rng.random() < 0.3 else "") for sign in wide)


def _few_shot(item: Item, others: Sequence[Item]) -> str:
    shots = "\n\n".join(f"Q: {other.prompt}\nA: {other.answer}" for other in others)
    return f"{shots}\n\nQ: {item.prompt}\nA:"


def _in_chat(item: Item, others: Sequence[Item]) -> Text:
    said = ("system", "You are a careful assistant."), ("user", others[0].prompt), ("assistant", others[0].answer)
    return tuple({"role": role, "content": text} for role, text in (*said, ("user", item.prompt)))


WRAPPINGS: dict[str, Callable[[Item, Sequence[Item], random.Random], tuple[Text, str]]] = {
    "changed case": lambda item, _, rng: (
        rng.choice((str.upper, str.lower) if "print" not in item.prompt else (str.upper,))(item.prompt),
        item.answer,
    ),
    "prefix": lambda item, _, rng: (f"Here is exercise {rng.randint(1, 500)} of my homework. {item.prompt}", item.answer),
    "suffix": lambda item, _, rng: (f"{item.prompt}\nThink step by step, then answer in one line.", item.answer),
    "instruction template": lambda item, _, rng: (
        f"### Instruction:\nSolve the following task.\n\n### Input:\n{item.prompt}\n\n### Response:\n",
        item.answer,
    ),
    "few-shot context": lambda item, others, _: (_few_shot(item, others), item.answer),
    "turn of a chat": lambda item, others, _: (_in_chat(item, others), item.answer),
    "invisible characters": lambda item, _, rng: (_unseen(item.prompt, rng), item.answer),
    "other solution": lambda item, _, rng: (item.prompt, item.solution),
}


def pool(
    kind: str, seed: int, *, train: int, held_out: int, planted: int, wrapping: str = "", turned: bool = False
) -> Corpus:
    """A corpus of one kind of text in which some held-out items stand in train.

    Args:
        kind: of `KINDS`.
        seed: of the pool.
        train: rows of train that are nobody's copy.
        held_out: held-out rows.
        planted: how many of them stand in train, wrapped; further rows of train.
        wrapping: of `WRAPPINGS`.
        turned: wrap the held-out row instead, and plant the plain one.
    """
    rng = random.Random(f"{kind} {seed}")
    make, seen = KINDS[kind], set[str]()
    items: list[Item] = []
    while len(items) < train + held_out + planted * 3:
        item = make(rng)
        if item.prompt not in seen:
            seen.add(item.prompt)
            items.append(item)
    known, asked, spare = items[:train], items[train : train + held_out], items[train + held_out :]
    rows = [_example(f"train{i}", item.prompt, item.answer, "train", item.turns) for i, item in enumerate(known)]
    for at, item in enumerate(asked):
        prompt, answer = item.prompt, item.answer
        if at < planted:
            hidden = WRAPPINGS[wrapping](item, spare[3 * at : 3 * at + 3], rng)
            copy, (prompt, answer) = ((prompt, answer), hidden) if turned else (hidden, (prompt, answer))
            rows.append(_example(f"copy{at}", *copy, "train", 1))
        turns = 1 if turned and at < planted else item.turns
        rows.append(_example(f"{'asked' if at < planted else 'clean'}{at}", prompt, answer, "eval", turns))
    rng.shuffle(rows)
    return Corpus.from_examples(rows)


def _example(name: str, prompt: Text, answer: str, split: str, turns: int) -> Example:
    if turns > 1 and isinstance(prompt, str):
        said = ("user", "Hello, can you help me with something?"), ("assistant", "Of course."), ("user", prompt)
        prompt = tuple({"role": role, "content": text} for role, text in said)
    return Example(name, "task", prompt, answer=answer, split=split)


def shared_ngrams(corpus: Corpus, longest: int = 13, least: int = 8) -> set[str]:
    """Ids of held-out rows that share a run of N words with any train row, as GPT-3's report and lm-eval look for them.

    Words are in lower case without punctuation; N is the 5th percentile of the held-out rows' lengths, within 8 to 13.
    """
    texts = {example.id: (example.split, plain_words(example.prompt)) for example in corpus}
    lengths = sorted(len(found) for split, found in texts.values() if split == "eval")
    n = min(longest, max(least, lengths[len(lengths) // 20]))
    seen = {run for split, found in texts.values() if split == "train" for run in runs(found, n)}
    return {name for name, (split, found) in texts.items() if split == "eval" and not seen.isdisjoint(runs(found, n))}


def plain_words(text: Text) -> list[str]:
    """Words and numbers in lower case, without punctuation."""
    return re.findall(r"\w+", plain(text).lower())


def runs(found: Sequence[str], n: int) -> set[tuple[str, ...]]:
    """Every run of `n` words."""
    return {tuple(found[at : at + n]) for at in range(len(found) - n + 1)}


Row = Mapping[str, Any]
TRAIN, HELD_OUT, PLANTED = 400, 200, 55
WRAPPED_IN_TRAIN = "wrapped in train"
WRAPPED_IN_EVAL = "wrapped in eval"


def found_in(corpus: Corpus) -> set[str]:
    """Ids of held-out rows that an error of the audit lists."""
    check = create("checks", "contamination")
    seen = (observation for observation in check.check(corpus) if observation.severity == "error")
    return {str(pair["eval_id"]) for observation in seen for pair in observation.evidence}


def audit_pool(kind: str, seed: int, wrapping: str = "", wrap_eval: bool = False) -> dict[str, Any]:
    """One pool: what the audit and the peer found of what was planted, and of what was not."""
    planted = PLANTED if wrapping else 0
    corpus = pool(kind, seed, train=TRAIN, held_out=HELD_OUT, planted=planted, wrapping=wrapping, turned=wrap_eval)
    row: dict[str, Any] = {
        "kind": kind,
        "wrapping": wrapping,
        "side": WRAPPED_IN_EVAL if wrap_eval else WRAPPED_IN_TRAIN,
        "seed": seed,
    }
    for name, found in (("ours", found_in(corpus)), ("n-grams", shared_ngrams(corpus))):
        hits = sum(identity.startswith("asked") for identity in found)
        row |= {name: hits, f"{name}, clean rows": len(found) - hits}
    return row | {"planted": planted, "clean": HELD_OUT - planted}


def share(rows: Iterable[Row], hits: str, tries: str) -> Interval:
    """Hits of tries, pooled over pools; rows of one pool share its words, so the interval is for these pools' kinds."""
    rows = list(rows)
    return share_interval(sum(row[hits] for row in rows), sum(row[tries] for row in rows))


def table(rows: Sequence[Row]) -> dict[str, Any]:
    """Recall and false alarms by kind of text, side and wrapping, with what the peer found."""
    found: dict[str, Any] = {}
    for kind in KINDS:
        for side in (WRAPPED_IN_TRAIN, WRAPPED_IN_EVAL):
            for wrapping in WRAPPINGS:
                mine = [r for r in rows if (r["kind"], r["side"], r["wrapping"]) == (kind, side, wrapping)]
                if mine:
                    recall = {name: share(mine, name, "planted") for name in ("ours", "n-grams")}
                    found[f"recall, {kind}, {side}, {wrapping}"] = recall
        clean = [row for row in rows if row["kind"] == kind and not row["wrapping"]]
        wrong = {name: share(clean, f"{name}, clean rows", "clean") for name in ("ours", "n-grams")}
        found[f"clean rows called leaks, {kind}"] = wrong
        pools = [{"wrong": bool(row["ours, clean rows"]), "pools": 1} for row in clean]
        found[f"clean pools with an error, {kind}"] = {"ours": share(pools, "wrong", "pools")}
    return found


def measure(quick: bool) -> Result:
    """Every wrapping of every kind on some seeds, wrapped copies on either side, and clean pools."""
    seeds, clean_seeds = (range(2), range(4)) if quick else (range(10), range(40))
    rows = [audit_pool(kind, seed, wrapping) for kind in KINDS for wrapping in WRAPPINGS for seed in seeds]
    both = [name for name in WRAPPINGS if name not in ("turn of a chat", "other solution")]
    rows += [audit_pool(kind, seed, name, True) for kind in KINDS if kind != "chats" for name in both for seed in seeds]
    rows += [audit_pool(kind, 1000 + seed) for kind in KINDS for seed in clean_seeds]
    figures = table(rows)
    recalls = [found["ours"] for name, found in figures.items() if name.startswith("recall")]
    alarms = [found["ours"] for name, found in figures.items() if name.startswith("clean pools")]
    worst, alarm = min(recalls, key=lambda found: found.value), max(alarms, key=lambda found: found.value)
    goals = (
        Goal("copies found, worst kind, side and wrapping", worst, ">= 0.95", worst.value >= 0.95),
        Goal("clean pools with an error, worst kind", alarm, "<= 0", alarm.value <= 0),
    )
    return Result(
        share([row for row in rows if row["wrapping"]], "ours", "planted"),
        "share of planted copies that an error lists, over all kinds, sides and wrappings",
        sorted({row["seed"] for row in rows}),
        rows,
        figures,
        {"train rows": TRAIN, "held-out rows": HELD_OUT, "planted": PLANTED},
        goals=goals,
    )


if __name__ == "__main__":
    run("contamination", __doc__, measure)
