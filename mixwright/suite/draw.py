"""Items of the suite as rows: of every family and rung the same number, drawn by a seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

from mixwright.errors import InputError
from mixwright.run.folder import write_text
from mixwright.suite.family import Family, Item
from mixwright.suite.open import FAMILIES as OPEN_FAMILIES
from mixwright.suite.sealed import FAMILIES as SEALED_FAMILIES

FAMILIES: tuple[Family, ...] = (*OPEN_FAMILIES, *SEALED_FAMILIES)
"""Kinds of requests; of the sealed ones no requests are ever replayed."""
PER_RUNG = 8
"""Items of a rung: about 400 of the open and of the sealed families each."""
MAX_TRIES = 100
"""Draws for one further item that is not there yet."""


def draw_items(families: Iterable[Family] = FAMILIES, *, per_rung: int = PER_RUNG, seed: int = 0) -> list[dict[str, Any]]:
    """Draw items with different prompts, the same for the same seed.

    Args:
        families: kinds of requests.
        per_rung: items of each rung.
        seed: of the draw.

    Returns:
        Rows with id, task (the family), level (the rung), prompt (a text or messages) and answer.

    Raises:
        InputError: a rung has not so many different items.
    """
    rows = []
    for family in families:
        for rung in range(1, family.rungs + 1):
            rng, items = Random(f"{seed} {family.name} {rung}"), dict[str, Item]()
            for _ in range(MAX_TRIES * per_rung):
                item = family.make(rng, rung)
                items.setdefault(json.dumps(item.prompt), item)
                if len(items) == per_rung:
                    break
            else:
                expected = f"at most {len(items)} items of a rung of {family.name}"
                raise InputError(expected, f"{per_rung}", "Ask for fewer.")
            for number, item in enumerate(items.values()):
                prompt = item.prompt if isinstance(item.prompt, str) else list(item.prompt)
                row = {"id": f"{family.name}-{rung}-{number}", "task": family.name, "level": rung}
                rows.append(row | {"prompt": prompt, "answer": item.answer})
    return rows


def write_suite(folder: Path, *, per_rung: int = PER_RUNG, seed: int = 0) -> Path:
    """Write the items to `FOLDER/suite-SEED-DIGEST.jsonl`, unless they are there; return the file."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in draw_items(per_rung=per_rung, seed=seed))
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()[:8]
    path = folder / f"suite-{seed}-{digest}.jsonl"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    return path
