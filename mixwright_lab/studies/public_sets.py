"""Public sets that nobody here made, read from files that the user fetched: none of their rows is kept in this repository.

The folder holds them as their repositories do: `present-past.json`, `singular-plural.json`, `product-company.json` (folder
`dataset_files/abstractive` of ericwtodd/function_vectors, MIT) and `seed_tasks.jsonl` (folder `data` of
yizhongw/self-instruct, Apache-2.0).

Source: function vectors (2310.15213), seed tasks of Self-Instruct (2212.10560).
Unit: one row.
Cost: below a second.
Blind spot: the model may have seen all three in pretraining.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mixwright.errors import InputError

CHAT = Path("seed_tasks.jsonl")
QUESTIONS = {
    "past_tenses": (Path("present-past.json"), "What is the past tense of the verb {}?"),
    "plurals": (Path("singular-plural.json"), "What is the plural of {}?"),
    "companies": (Path("product-company.json"), "Which company makes {}?"),
}
"""Task -> file of pairs, and the question that is asked of the first of a pair."""
FILES = (*(file for file, _ in QUESTIONS.values()), CHAT)
LONGEST_CHAT = 300
"""Characters of a prompt, and of an answer, of an unrelated chat row."""
RELATED_WORDS = re.compile(
    r"capital|antonym|opposite|past tense|plural|compan|\bsum\b|multipl|\badd\b|json|calculat", re.IGNORECASE
)
"""Words by which a chat row might teach one of the measured tasks."""


def check_public_files(folder: Path) -> dict[str, str]:
    """Name of each file -> SHA-256 of its content.

    Raises:
        InputError: one of them is missing.
    """
    missing = [str(name) for name in FILES if not (folder / name).is_file()]
    if missing:
        remedy = "Fetch the repositories that mixwright_lab/studies/public_sets.py names, and copy the files."
        raise InputError(f"public files in {folder}", f"none of the name {missing[0]}", remedy)
    return {str(name): hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES}


def read_questions(folder: Path, task: str) -> list[dict[str, Any]]:
    """Questions with one short answer, as rows of one of the tasks of `QUESTIONS`."""
    file, form = QUESTIONS[task]
    return read_pairs(folder / file, task, form)


def read_pairs(path: Path, task: str, form: str) -> list[dict[str, Any]]:
    """Rows of a task from a file of pairs, with `form` as the question that is asked of the first of a pair."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    return _without_repeats([{"task": task, "prompt": form.format(row["input"]), "answer": row["output"]} for row in rows])


def read_chat(folder: Path) -> list[dict[str, Any]]:
    """Short instructions of all kinds with their answers, as rows of task `chat`; none is of a measured task."""
    rows = []
    for line in (folder / CHAT).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        given, answer = row["instances"][0]["input"], row["instances"][0]["output"].strip()
        prompt = f"{row['instruction']}\n{given}".strip()
        short = max(len(prompt), len(answer)) <= LONGEST_CHAT
        if short and answer and not RELATED_WORDS.search(f"{prompt} {answer}"):
            rows.append({"task": "chat", "prompt": prompt, "completion": answer})
    return _without_repeats(rows)


def _without_repeats(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of different prompts, the first of each."""
    by_prompt: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        by_prompt.setdefault(row["prompt"], row)
    return [dict(row) for row in by_prompt.values()]
