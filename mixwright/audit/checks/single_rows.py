"""Check of rows that are broken by themselves: empty, a missing value in words, cut, or a field that was never filled.

Source: own; the faults are those of public data files (tatsu-lab/stanford_alpaca 265, hiyouga/LlamaFactory 2816).
Unit: training rows of a task; a row counts once for each kind of fault.
Cost: one pass, a few patterns over the first and last 4,000 characters of each text.
Blind spot: cut texts where most of a task end without a mark (lists, code, verse); fields in a syntax of one's own.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from mixwright.audit.rows import EXCERPT_CHARACTERS, Reader
from mixwright.contracts import Check
from mixwright.corpus import Corpus, texts
from mixwright.records import Example, Observation, plain
from mixwright.thoughts import split_thoughts

READ_CHARACTERS = 4000
"""Characters of a text that patterns see, from either end."""
MISSING = re.compile(r"(?i:\s*(?:nan|none|null|nat|undefined|#?n/?a|<na>)\s*)")
"""A missing value as other tools write it."""
FIELDS = re.compile(
    r"\{\{ ?[A-Za-z_][\w ]{0,40}\}\}|\[(?i:your|insert|enter|name of)\b[^\]\n]{0,40}\]"
    r"|<(?i:your|insert|enter)[ _][^>\n]{0,40}>"
)
"""Fields of templates that somebody was to fill in."""
CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
LAST_LINE = re.compile(r"(?:[-*•#>|]|\d+[.)]|https?:)")
"""Beginning of a last line that needs no mark: a list, a heading, a table, an address."""
MIN_WORDS = 8
"""Words from which an answer is prose that should end with a mark."""
TYPICAL_WORDS = 5
"""Words of a task's mean completion from which `none` is no answer."""
MIN_CUT_ROWS, MIN_CUT_ENDS, LONGEST_MARKED = 5, 3, 95
"""Unmarked texts, and different last words of them, from which on a limit of length is looked for; and the percentile of
marked texts that half of them exceed where there was one. Without a limit, texts without a mark are a style: a quarter of
one copy of GSM8K."""
MIN_FIELDS_SHARE = 0.01
"""Share of rows with an unfilled field that is a warning; fewer, such as a letter's `[Your Name]`, are a note."""
MAX_FIELDS_SHOWN = 3
"""Unfilled fields of one row that are named."""
REMEDIES = {
    "empty": "The model would learn to answer nothing. --fix FILE removes rows without any answer; fill in empty turns.",
    "unanswered": "Leave these rows out, or end each chat with the assistant's turn.",
    "missing": "Leave these rows out: a table with missing values was exported as text.",
    "thinking": "Remove these rows, or end the thoughts: they teach to think without an answer.",
    "cut": (
        "Generate these answers again with a higher token limit, or leave them out: the model would learn to stop anywhere."
    ),
    "unfilled": "Fill the fields in, or leave the rows out: the model would learn to write them.",
    "unfilled prompts": "Fill the fields in: nobody will ask this way.",
}
WORDS = {
    "empty": "completions are empty",
    "unanswered": "rows have no completion, or end with the user's turn",
    "missing": "completions are a missing value in words",
    "thinking": "completions have thoughts that do not end",
    "cut": "completions stop in the middle of a sentence",
    "unfilled": "completions hold fields of a template that were never filled in",
    "unfilled prompts": "prompts hold fields of a template that were never filled in",
}


class SingleRows(Check):
    """Reads each training row by itself."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Return a warning for each task and kind of fault, with file and line of its rows."""
        faults, counts, lengths = _read_rows(corpus.batches())
        observations, reader = [], Reader(corpus, whole=self.whole)
        for (task, kind), found in sorted(faults.items()):
            by_mark, details = (lengths[task, False], lengths[task, True]), Counter(detail for _, detail in found if detail)
            if (text := _describe(kind, len(found), counts[task], by_mark, details)) is not None:
                total = counts[task]["rows"]
                rows = reader.first_examples([number for number, _ in found])
                evidence = tuple(_show(row, prompt=kind == "unfilled prompts") for row in rows)
                is_rare = kind.startswith("unfilled") and len(found) < max(3, MIN_FIELDS_SHARE * total)
                is_note = is_rare or (kind == "unanswered" and not counts[task]["completions"])
                severity, remedy = ("info", "") if is_note else ("warning", REMEDIES[kind])
                null = "ends without a mark at any length" if kind == "cut" else "none"
                drop = "empty" if kind == "empty" else None
                observations.append(
                    Observation("single_rows", task, severity, len(found), total, text, remedy, null, evidence, drop)
                )
        rows_read = sum(count["rows"] for count in counts.values())
        sound = Observation("single_rows", None, "info", 0, rows_read, "No training row is broken by itself.", "")
        return observations or [sound]


Faults = dict[tuple[str, str], list[tuple[int, str]]]
"""Task and kind -> row numbers, each with the field or word that shows it."""


def _read_rows(
    batches: Iterable[pa.RecordBatch],
) -> tuple[Faults, dict[str, Counter[str]], dict[tuple[str, bool], list[int]]]:
    """Return the faults of rows; per task the rows, completions, words and prose; and per task and whether it ends with a
    mark the lengths of prose.
    """
    faults: Faults = defaultdict(list)
    counts, lengths = defaultdict[str, Counter[str]](Counter), defaultdict[tuple[str, bool], list[int]](list)
    start = 0
    for batch in batches:
        sides = (texts(batch, name) for name in ("prompt", "target", "chosen"))
        for number, (row, prompt, target, chosen) in enumerate(zip(batch.to_pylist(), *sides, strict=True), start):
            if row["split"] == "eval":
                continue
            task, answer = row["task"], row["answer"]
            count = counts[task]
            count["rows"] += 1
            completion, has_completion = target or chosen, (row["target"], row["chosen"]) != (None, None)
            if not prompt:  # a text without a prompt
                completion, has_completion = completion or answer or "", True
            count["completions"] += has_completion
            for kind, detail in _faults_of(prompt, completion if has_completion else None, answer):
                faults[task, kind].append((number, detail))
            if row["chat"] and _has_empty_turn(row["prompt"]):
                faults[task, "empty"].append((number, "a turn before the last"))
            words = len(completion[:READ_CHARACTERS].split())
            count["words"] += words
            if words >= MIN_WORDS:
                count["prose"] += 1
                is_marked = not _is_unmarked(completion.rstrip()[-READ_CHARACTERS:])
                lengths[task, is_marked].append(len(completion))
                if not is_marked:
                    faults[task, "cut"].append((number, completion.split()[-1][-20:]))
        start += batch.num_rows
    return faults, counts, lengths


def _faults_of(prompt: str, completion: str | None, answer: str | None) -> Iterator[tuple[str, str]]:
    if completion is None:
        if not answer:
            yield "unanswered", ""
    elif not completion.strip():
        yield "empty", ""
    elif MISSING.fullmatch(completion[:40]) and completion.strip() not in prompt:  # else the prompt asks for the word
        yield "missing", completion.strip()
    elif split_thoughts(completion)[0] == "open":
        yield "thinking", ""
    for kind, text in (("unfilled", completion or ""), ("unfilled prompts", prompt)):
        fields = dict.fromkeys(FIELDS.findall(CODE.sub("", text[:READ_CHARACTERS])))
        if fields:
            yield kind, " and ".join(list(fields)[:MAX_FIELDS_SHOWN])


def _has_empty_turn(raw: str) -> bool:
    """Return whether a turn of the user or the assistant, tool calls aside, says nothing."""
    turns = (turn for turn in json.loads(raw) if turn["role"] in ("user", "assistant") and not turn.get("tool_calls"))
    return any(not str(turn.get("content") or "").strip() for turn in turns)


def _is_unmarked(text: str) -> bool:
    """Return whether prose ends without any mark, not in a list or in code."""
    text = text.rstrip()
    in_code, last_line = text.count("```") % 2 == 1, text.rpartition("\n")[2].lstrip()
    return (text[-1].isalpha() or text[-1] == ",") and not in_code and not LAST_LINE.match(last_line)


def _describe(
    kind: str, count: int, counts: Counter[str], lengths: tuple[list[int], list[int]], details: Counter[str]
) -> str | None:
    """Return a sentence on the rows of one task and kind, or None where sound rows look the same.

    Args:
        kind: of fault.
        count: rows that have it.
        counts: of the task.
        lengths: characters of prose that ends without a mark, and with one.
        details: words or fields that show the fault, and how many rows have each.
    """
    text = f"{count:,} of {counts['rows']:,} {WORDS[kind]}"
    if kind == "unanswered" and not counts["completions"]:
        return f"{count:,} of {counts['rows']:,} rows have no completion: prompts for rewards, or to replay."
    if kind == "missing" and counts["words"] < TYPICAL_WORDS * counts["completions"]:
        return None  # `none` among short answers is one of them
    if kind == "cut":
        unmarked, marked = lengths
        length, same = Counter(unmarked).most_common(1)[0]
        limit = np.percentile(marked, LONGEST_MARKED) if marked else np.inf
        beyond = sum(length > limit for length in unmarked)
        if count < MIN_CUT_ROWS or len(details) < MIN_CUT_ENDS or max(same, beyond) < count / 2:
            return None  # a style: the end has no mark at any length
        if same >= count / 2:
            return f"{text}, {same:,} of them at exactly {length:,} characters."
        return f"{text}, {beyond:,} of them longer than {LONGEST_MARKED} of 100 that end with a mark."
    shown = ", ".join(f"{detail} ({rows:,})" for detail, rows in details.most_common(3))
    return f"{text}{f': {shown}' if shown else ''}."


def _show(row: Example, *, prompt: bool) -> dict[str, Any]:
    text = plain(row.prompt) if prompt else plain(row.target or row.chosen) or plain(row.prompt)
    return {"id": row.id, "source": row.source, "prompt": text[-EXCERPT_CHARACTERS:]}
