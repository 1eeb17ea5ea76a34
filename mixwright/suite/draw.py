"""Items of the suite as rows, drawn by a seed: of every rung to find those that suit a model, and of those alone to compare.

Rungs are chosen on a draw of their own, and the models are compared on another one: who chose the items that a model had
right would call it worse on a second look.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from mixwright.run.folder import find_store, write_text
from mixwright.suite.family import Family, Item, find_form, read_data
from mixwright.suite.open import FAMILIES as OPEN_FAMILIES
from mixwright.suite.sealed import FAMILIES as SEALED_FAMILIES

FAMILIES: tuple[Family, ...] = (*OPEN_FAMILIES, *SEALED_FAMILIES)
"""Kinds of requests; of the sealed ones no requests are ever replayed."""
ONLY_REPLAYED = (
    *("advising", "coding", "explaining", "howto", "ideas", "opinions", "rewriting", "storytelling", "summarizing"),
    "writing",
)
"""Kinds of open-ended requests, which nothing grades: they are replayed, and never asked to compare."""
REPLAYED = (*(family.name for family in OPEN_FAMILIES), *ONLY_REPLAYED)
"""Kinds of which there are requests to replay."""
PER_RUNG = 8
"""Items of a rung by which rungs are chosen: about 950."""
MAX_MISSES = 100
"""Draws of items that are there already, one after another, and as many again as there are: then a rung has no more."""
SUITABLE = (0.30, 0.95)
"""Share of right answers of a rung on which a loss can be seen."""
MIN_FAMILIES, MIN_SEALED, MIN_ITEMS = 5, 3, 400
"""Families of suitable rungs, sealed ones among them, and items, below which the suite says nothing of a model."""
RING_ITEMS = 800
"""Items of the open families, and of the sealed ones, at the last look: an unharmed model passes at the default margin."""


def read_requests(kind: str) -> list[dict[str, Any]]:
    """Read the requests of a kind that are answered for replay: rows with `prompt`, a text or messages."""
    return [{"prompt": row.get("prompt") or row["messages"]} for row in read_data(f"requests_{kind}")]


def draw_items(
    families: Iterable[Family] | None = None,
    *,
    per_rung: int = PER_RUNG,
    seed: int = 0,
    rungs: Mapping[str, Collection[int]] | None = None,
) -> list[dict[str, Any]]:
    """Draw items with different prompts, the same for the same seed.

    Args:
        families: kinds of requests; None takes all.
        per_rung: items of each rung, or as many different ones as there are.
        seed: of the draw.
        rungs: family -> rungs to draw of; None draws of all.

    Returns:
        Rows with id, task (the family), level (the rung), prompt (a text or messages), answer and, if any, tools.
    """
    rows = []
    for family in FAMILIES if families is None else families:
        for rung in range(1, family.rungs + 1) if rungs is None else rungs.get(family.name, ()):
            rng, items, misses = Random(f"{seed} {family.name} {rung}"), dict[str, Item](), 0
            while len(items) < per_rung and misses < MAX_MISSES + len(items):
                item = family.make(rng, rung)
                known = len(items)
                items.setdefault(json.dumps(item.prompt), item)
                misses = misses + 1 if len(items) == known else 0
            for number, item in enumerate(items.values()):
                prompt = item.prompt if isinstance(item.prompt, str) else list(item.prompt)
                name = f"{family.name}-{rung}-{number} {find_form(item.prompt)}".rstrip()
                row = {"id": name, "task": family.name, "level": rung}
                offered = {"tools": list(item.tools)} if item.tools else {}
                rows.append(row | {"prompt": prompt, "answer": item.answer} | offered)
    return rows


def choose_rungs(right: Mapping[tuple[str, int], float]) -> dict[str, list[int]]:
    """Choose the rungs of which a model has neither too little nor everything right.

    Args:
        right: (family, rung) -> share of right answers, 0..1.

    Returns:
        Family -> its suitable rungs; no entry for a family without any.
    """
    chosen: dict[str, list[int]] = {}
    for (family, rung), share in sorted(right.items()):
        if SUITABLE[0] <= share <= SUITABLE[1]:
            chosen.setdefault(family, []).append(rung)
    return chosen


def draw_to_compare(
    rungs: Mapping[str, Sequence[int]], *, seed: int = 0, ring_items: int = RING_ITEMS
) -> list[dict[str, Any]]:
    """Draw the items on which two models are compared: of open and of sealed families as many, families alike.

    Args:
        rungs: family -> rungs, as `choose_rungs` gives them.
        seed: of the draw; the items are others than those of the same seed by which rungs are chosen.
        ring_items: items of the open families, and of the sealed ones.

    Returns:
        Rows as of `draw_items`, a family's rungs in turn and without a level: the family is what is compared.
    """
    rows = []
    for ring in (OPEN_FAMILIES, SEALED_FAMILIES):
        families = [family for family in ring if family.name in rungs]
        for family in families:
            per_rung = math.ceil(ring_items / len(families) / len(rungs[family.name]))
            rows += draw_items([family], per_rung=per_rung, seed=-1 - seed, rungs=rungs)
    return [{name: value for name, value in row.items() if name != "level"} for row in rows]


def describe_lack(rows: Collection[Mapping[str, Any]]) -> str:
    """Say how much there is where it is too little for the suite to tell something of a model; empty where it is enough."""
    families = {row["task"] for row in rows}
    sealed = families & {family.name for family in SEALED_FAMILIES}
    if len(families) >= MIN_FAMILIES and len(sealed) >= MIN_SEALED and len(rows) >= MIN_ITEMS:
        return ""
    return f"{len(families)} kinds ({len(sealed)} of them sealed) and {len(rows)} items"


def write_suite(rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows to `suite-DIGEST.jsonl` in the store, unless they are there; return the file."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()[:8]
    path = find_store() / f"suite-{digest}.jsonl"
    if not path.is_file():
        write_text(path, text)
    return path
