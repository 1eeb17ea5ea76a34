"""Public sets that nobody here made, read from files that the user fetched: none of their rows is kept in this repository.

The folder holds them as their repositories do: `ARC-Easy/test.json` and `AddSub/test.json` (folder `dataset` of
AGI-Edgerunners/LLM-Adapters, Apache-2.0) and `seed_tasks.jsonl` (folder `data` of yizhongw/self-instruct, Apache-2.0).

Source: ARC (1803.05457), AddSub (Hosseini et al. 2014), seed tasks of Self-Instruct (2212.10560).
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

ARC_EASY, ADD_SUB, CHAT = Path("ARC-Easy", "test.json"), Path("AddSub", "test.json"), Path("seed_tasks.jsonl")
FILES = (ARC_EASY, ADD_SUB, CHAT)
LONGEST_CHAT = 300
"""Characters of a prompt, and of an answer, of an unrelated chat row."""
RELATED_WORDS = re.compile(
    r"capital|antonym|opposite|past tense|plural|\bsum\b|multipl|\badd\b|json|calculat", re.IGNORECASE
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


def read_arc_easy(folder: Path) -> list[dict[str, Any]]:
    """Science questions with their options, as rows of task `arc_easy`; the options stand in a column, not in the prompt."""
    rows = []
    for row in json.loads((folder / ARC_EASY).read_text(encoding="utf-8")):
        text = row["instruction"].partition(": ")[2]
        question, _, listed = text.rpartition("\n\nAnswer1: ")
        listed = listed.partition("\n\nAnswer format")[0]
        options = [option.strip() for option in re.split(r"\s+Answer\d: ", listed)]
        place = int(row["answer"].removeprefix("answer")) - 1
        if question and len(set(options)) == len(options) and place < len(options) and all(options):
            rows.append({"task": "arc_easy", "prompt": question.strip(), "options": options, "answer": options[place]})
    return _without_repeats(rows)


def read_add_sub(folder: Path) -> list[dict[str, Any]]:
    """Word problems with one sum or difference, as rows of task `add_sub`."""
    rows = json.loads((folder / ADD_SUB).read_text(encoding="utf-8"))
    found = [
        {"task": "add_sub", "prompt": row["instruction"].strip(), "answer": f"{float(row['answer']):g}"} for row in rows
    ]
    return _without_repeats(found)


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
