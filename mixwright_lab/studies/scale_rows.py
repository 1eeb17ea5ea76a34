"""Rows for the study of `audit` on large files, with planted copies: exact, near, and of held-out items.

Left out on purpose: meaning. Words are made up and stand in any order, so nothing but what is planted repeats by chance.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TASKS = 8
HELD_OUT = 2_000
"""Held-out rows, whatever the size of train."""
LEAKED = 400
"""Of these so many stand in train, every second one with other text around it."""
COPIED_SHARE = NEAR_SHARE = 0.05
"""Shares of train that repeat an earlier row: to the character, and with one or two words exchanged."""
SHORTEST, LONGEST = 20, 45
"""Words of a prompt."""
AROUND = 8
"""Words before and behind a wrapped item."""
WORDS = tuple(
    f"{one}{two}{three}"
    for one in ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "do", "fu")
    for two in "bdfgklmnprst"
    for three in ("a", "el", "im", "o", "und", "ar", "is", "en", "ot", "us")
)
ANSWERS = ("yes", "no")
Words = list[str]


def write_rows(folder: Path, count: int) -> None:
    """Write `train.jsonl` of `count` rows and `eval.jsonl`; ids name what a row is (`near12-3`: row 12, nearly row 3)."""
    rng = random.Random(f"scale {count}")
    held_out = [_item(rng) for _ in range(HELD_OUT)]
    with (folder / "eval.jsonl").open("w", encoding="utf-8") as out:
        for number, (words, answer) in enumerate(held_out):
            out.write(_line(f"eval{number}", number, words, answer))
    with (folder / "train.jsonl").open("w", encoding="utf-8") as out:
        for name, number, words, answer in _train(rng, count, held_out):
            out.write(_line(name, number, words, answer))


def _item(rng: random.Random) -> tuple[Words, str]:
    return rng.choices(WORDS, k=rng.randint(SHORTEST, LONGEST)), rng.choice(ANSWERS)


def _train(rng: random.Random, count: int, held_out: list[tuple[Words, str]]) -> Iterator[tuple[str, int, Words, str]]:
    leak_places = {place: number for number, place in enumerate(sorted(rng.sample(range(count), LEAKED)))}
    originals: list[tuple[int, tuple[str, ...], str]] = []
    for number in range(count):
        chance = rng.random()
        if number in leak_places:
            leaked = leak_places[number]
            words, answer = held_out[leaked]
            if leaked % 2:
                words = [*rng.choices(WORDS, k=AROUND), *words[:-1], f"{words[-1]}?", *rng.choices(WORDS, k=AROUND)]
            yield f"{'wrapped' if leaked % 2 else 'leak'}{number}-{leaked}", leaked, words, answer
        elif originals and chance < COPIED_SHARE + NEAR_SHARE:
            source, source_words, answer = originals[rng.randrange(len(originals))]
            words = list(source_words)
            for place in rng.sample(range(len(words)), rng.randint(1, 2)) if chance >= COPIED_SHARE else ():
                words[place] = rng.choice(WORDS)
            yield f"{'near' if chance >= COPIED_SHARE else 'copy'}{number}-{source}", source, words, answer
        else:
            words, answer = _item(rng)
            if rng.random() < 0.2:  # sources of copies; few are kept in memory
                originals.append((number, tuple(words), answer))
            yield f"row{number}", number, words, answer


def _line(name: str, number: int, words: Words, answer: str) -> str:
    row: dict[str, Any] = {"id": name, "task": f"task{number % TASKS}", "prompt": " ".join(words) + "?", "answer": answer}
    return json.dumps(row) + "\n"
