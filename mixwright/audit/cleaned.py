"""A cleaned copy of training rows: what can be left out without a second look is left out, and a manifest says why.

Where it is asked for, parts that checks know to be wrong are masked in it: they stay in the context, and their loss is left
out. A turn before the last is masked whole, as no form of rows has spans of it. Left out on purpose: corrections.
Rows that contradict each other, options that are broken and formats that are mixed need somebody who knows which is right;
the manifest counts them.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.audit.findings import two_sides
from mixwright.audit.leaks import find_leaks
from mixwright.audit.rows import Reader, tasks_of_files
from mixwright.audit.stage import run_audit
from mixwright.config import CorpusConfig, is_address, sources_of
from mixwright.corpus import Corpus, find_generator
from mixwright.corpus.columns import ROLE_BY_SHAREGPT_NAME, recognise_columns
from mixwright.corpus.masks import MASK_COLUMN, TRAIN_KEYS, UNTRAINED_TURNS, is_trained, mask_of, read_spans
from mixwright.corpus.reading import MANIFEST_SUFFIX, open_unpacked, read_rows, suffix_of
from mixwright.errors import InputError
from mixwright.graders.choice import OPTION_COLUMNS
from mixwright.records import Example, Observation, plain
from mixwright.run.folder import replacing, write_json
from mixwright.run.manifest import file_digest

MAX_PASSES = 50
"""Audits of what is left: a finding lists so many rows at most."""
REPEAT, COPY = "repeat_", "train_"
"""How the fields of a row begin that repeats another, and of one that is a held-out item."""
EMPTY = "empty"
"""What a finding says whose rows are left out if they have no answer at all."""
CONTENT = ("task", "prompt", "target", "answer", "chosen", "rejected", "level", "skills")
LINES = (".jsonl", ".ndjson")
PACKED_LINES = tuple(end + packed for end in LINES for packed in (".gz", ".zst"))
"""Endings of files that have a row per line, packed or not."""
MASK, TURNS = "mask", "turns"
"""Fields of evidence: spans of the completion, and turns of the assistant (counted from 0), that are wrong."""


@dataclass
class RowMask:
    """What of one row is to be left out of the loss."""

    id: str
    """Of the row."""
    checks: set[str] = field(default_factory=set)
    """That found it wrong."""
    spans: list[list[int]] = field(default_factory=list)
    """Of the completion, [start, end)."""
    turns: set[int] = field(default_factory=set)
    """Of the assistant, counted from 0."""


@dataclass
class Cleaned:
    """What a cleaned copy left out."""

    corpus: Corpus
    """Rows that are left, held-out ones with them."""
    observations: list[Observation]
    """Of the rows as they were."""
    left: list[Observation]
    """Errors and warnings that the cleaned rows still have."""
    dropped: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Place of a row -> its id, check, task, and place of its partner."""
    masked: dict[str, RowMask] = field(default_factory=dict)
    """Place of a row -> what of it the copy leaves out of the loss."""
    kept: int = 0
    """Rows that the copy has."""

    def counts(self) -> dict[str, int]:
        """Return for each check the number of rows left out."""
        return dict(Counter(reason["check"] for reason in self.dropped.values()))


def clean(
    corpus: Corpus,
    names: Sequence[str] | None = None,
    options: Mapping[str, dict[str, Any]] | None = None,
    *,
    mask: bool = False,
) -> Cleaned:
    """Audit, leave out, and audit what is left, until nothing more is to be left out; then mask what is wrong, if asked.

    Args:
        corpus: train and eval.
        names: of checks; None for all.
        options: of a check, by its name.
        mask: whether parts of rows that checks list as wrong get a mask.

    Raises:
        InputError: an unknown check or option.
    """
    observations = found = run_audit(corpus, names, options, whole=True)
    cleaned = Cleaned(corpus, observations, [])
    for _ in range(MAX_PASSES):
        dropped = rows_to_drop(found, corpus)
        if not dropped:
            break
        cleaned.dropped |= dropped
        ids = {reason["id"] for reason in dropped.values()}
        cleaned.corpus = corpus = corpus.select(ids=[one for one in corpus.table["id"].to_pylist() if one not in ids])
        found = run_audit(corpus, names, options, whole=True)
    if mask and (masked := rows_to_mask(found, corpus)):
        cleaned.masked, cleaned.corpus = masked, with_masks(corpus, masked)
        found = run_audit(cleaned.corpus, names, options, whole=True)
    cleaned.left = [one for one in found if one.severity != "info"]
    return cleaned


def rows_to_drop(observations: Sequence[Observation], corpus: Corpus) -> dict[str, dict[str, Any]]:
    """Place of each training row that can be left out without a second look -> why, the first reason that names it.

    A repeat, or a copy of a held-out item, is left out only if it is the same to the character. Case, space, another
    solution, another rejected answer, other options or another task make it a row of its own, which somebody has to look at.
    """
    found: dict[str, dict[str, Any]] = {}
    if copying := next((one for one in observations if one.drop == COPY), None):
        for row, item in _copies(corpus):
            reason = {"id": row.id, "check": copying.check, "task": item.task, "partner": item.source}
            found.setdefault(row.source, reason)
    for row, first, check in _repeats(observations, corpus):
        found.setdefault(row.source, {"id": row.id, "check": check, "task": row.task, "partner": first.source})
    for one in (one for one in observations if one.drop in ("", EMPTY)):
        for row in corpus.select(ids=[row["id"] for row in one.evidence]):
            is_empty = not any(plain(text).strip() for text in (row.target, row.chosen, row.answer))
            if is_empty if one.drop == EMPTY else row.chosen == row.rejected:
                found.setdefault(row.source, {"id": row.id, "check": one.check, "task": one.task, "partner": None})
    return found


def _copies(corpus: Corpus) -> Iterator[tuple[Example, Example]]:
    """Training rows that are a held-out item to the character, each with the item."""
    overlap = find_leaks(corpus).overlap
    items: dict[str, list[Example]] = defaultdict(list)
    for item in Reader(corpus).examples(overlap.held_out[overlap.shared]).values():
        items[_question(item)].append(item)
    for row in Reader(corpus).examples(np.flatnonzero(overlap.copied)).values():
        for item in items[_question(row)]:
            if _answers_are_same(row, item):
                yield row, item


def _question(example: Example) -> str:
    """What is asked, as JSON: the prompt, or the text of a row without one, and its options."""
    options = [example.extra.get(name) for name in OPTION_COLUMNS]
    return json.dumps([plain(example.prompt) or plain(example.target), options])


def _answers_are_same(row: Example, item: Example) -> bool:
    """Whether each kind of answer that both have is the same; of a completion and a gold answer the check has said so."""
    names = ("answer",) if row.answer or item.answer else ("target", "chosen")
    both = ((getattr(row, name), getattr(item, name)) for name in names)
    return all(None in pair or plain(pair[0]) == plain(pair[1]) for pair in both)


def _repeats(observations: Sequence[Observation], corpus: Corpus) -> Iterator[tuple[Example, Example, str]]:
    """Training rows that hold just what an earlier one holds, each with that row and the check that lists it."""
    pairs = [(one.check, row) for one in observations if one.drop == REPEAT for row in one.evidence]
    check_by_id = {row[f"{REPEAT}id"]: check for check, row in pairs}
    ids = check_by_id.keys() | {row["first_id"] for _, row in pairs}
    first_by_content, of_files = dict[str, Example](), tasks_of_files(corpus)
    for row in corpus.select(ids=ids) if ids else ():
        content = {name: getattr(row, name) for name in CONTENT} | {"extra": dict(row.extra)}
        content |= {"task": None} if row.task in of_files else {}
        first = first_by_content.setdefault(json.dumps(content, sort_keys=True, default=str), row)
        if first is not row and row.id in check_by_id:
            yield row, first, check_by_id[row.id]


def write_cleaned(cleaned: Cleaned, config: CorpusConfig, out: Path) -> Path:
    """Write the rows of `config.train` that are left, as they stand there, and a manifest beside them.

    Lines of a file of lines are copied byte for byte; other rows are written as one JSON object per line, and so are rows
    with a new mask.

    Args:
        cleaned: what `clean` found in the rows of `config`.
        config: of the corpus.
        out: file to write, `.jsonl`.

    Returns:
        The manifest.

    Raises:
        InputError: generated rows, an ending that cannot be written, or a file that is already there.
    """
    source, manifest = Path(config.train), manifest_of(out)
    is_file = len(sources_of(config.train)) == 1 and source.is_file()
    check_cleaned_file(config, out)
    dropped = cleaned.dropped.keys()
    has_lines = is_file and suffix_of(source) in LINES + PACKED_LINES
    with replacing(out) as temporary:
        copied = _copied_lines(source, dropped) if has_lines else _made_lines(config, dropped)
        lines = (_mask_line(line, cleaned.masked.get(place), config) for place, line in copied)
        with temporary.open("wb") as file:
            for cleaned.kept, line in enumerate(lines, 1):
                file.write(line)
        digest = file_digest(source) if is_file else None
        dropped_rows = [{"row": row, **reason} for row, reason in cleaned.dropped.items()]
        masked_rows = [
            {"row": place, "id": row.id, "checks": sorted(row.checks), "mask": row.spans, "turns": sorted(row.turns)}
            for place, row in cleaned.masked.items()
        ]
        left = [_for_user(one) for one in cleaned.left]
        data: Mapping[str, Any] = {"source": config.train, "sha256": digest, "eval": config.eval, "kept": cleaned.kept}
        masked: dict[str, Any] = {"masked": masked_rows} if masked_rows else {}
        write_json(manifest, {**data, "counts": cleaned.counts(), "dropped": dropped_rows, **masked, "left for you": left})
    return manifest


def _for_user(one: Observation) -> dict[str, Any]:
    """A finding that the copy still has, with the places of its rows."""
    rows = [places for row in one.evidence if (places := [side["source"] for _, side in two_sides(row)])]
    return {"check": one.check, "task": one.task, "message": one.message, "remedy": one.remedy, "rows": rows}


def manifest_of(out: Path) -> Path:
    """Return the path of the manifest of a cleaned copy."""
    return out.with_name(out.name + MANIFEST_SUFFIX)


def can_be_cleaned(config: CorpusConfig) -> bool:
    """Return whether the training rows are files of this machine."""
    return find_generator(config.train) is None and not is_address(config.train)


def check_cleaned_file(config: CorpusConfig, out: Path) -> None:
    """Raises InputError where a cleaned copy of these rows cannot be written there."""
    if not can_be_cleaned(config):
        remedy = "Copy it here first; generate rows with another seed."
        raise InputError("a file on this machine", config.train, remedy)
    if suffix_of(out) not in LINES:
        raise InputError("a file ending in .jsonl", repr(out.name), "Name one.")
    for path in (out, manifest_of(out)):
        if path.exists() or path.is_symlink():
            raise InputError("a new file", "one that is there", "Name another one, or remove it.", file=path)


def _mask_line(line: bytes, mask: RowMask | None, config: CorpusConfig) -> bytes:
    if mask is None:
        return line
    return (json.dumps(write_mask(json.loads(line.decode("utf-8-sig")), mask, config), ensure_ascii=False) + "\n").encode()


def _copied_lines(source: Path, dropped: Collection[str]) -> Iterator[tuple[str, bytes]]:
    with open_unpacked(source) as file:
        for number, line in enumerate(file, 1):
            is_blank = not line.decode("utf-8-sig" if number == 1 else "utf-8", "replace").strip()
            if not is_blank and (place := f"{source}:{number}") not in dropped:
                yield place, line if line.endswith(b"\n") else line + b"\n"


def _made_lines(config: CorpusConfig, dropped: Collection[str]) -> Iterator[tuple[str, bytes]]:
    for row, location in read_rows(config.train, "train"):
        if str(location) not in dropped:
            named = {**row, "task": location.task} if location.task and row.get("task") is None else row
            yield str(location), (json.dumps(named, default=str) + "\n").encode()


def rows_to_mask(observations: Iterable[Observation], corpus: Corpus) -> dict[str, RowMask]:
    """Place of each training row of which checks list wrong parts -> these parts; no spans in several messages."""
    found: dict[str, RowMask] = {}
    for one in observations:
        for evidence in one.evidence:
            if evidence.get(MASK) or evidence.get(TURNS):
                row = found.setdefault(evidence["source"], RowMask(evidence["id"]))
                row.checks.add(one.check)
                row.spans += evidence.get(MASK) or []
                row.turns.update(evidence.get(TURNS) or ())
    if not found:
        return {}
    lengths = {example.id: _length(example) for example in corpus.select(ids=[row.id for row in found.values()])}
    for row in found.values():
        row.spans = [list(span) for span in read_spans(row.spans, lengths[row.id])] if lengths[row.id] else []
    return {place: row for place, row in found.items() if row.spans or row.turns}


def _length(example: Example) -> int:
    """Characters of a completion that can have spans; 0 of several messages."""
    is_one = isinstance(example.target, str) or (example.target is not None and len(example.target) == 1)
    return len(plain(example.target)) if is_one else 0


def with_masks(corpus: Corpus, masks: Mapping[str, RowMask]) -> Corpus:
    """The rows as they are read again with their masks, as far as a check can tell."""
    by_id = {row.id: row for row in masks.values()}
    rows = (_masked(example, by_id[example.id]) if example.id in by_id else example for example in corpus)
    return Corpus.from_examples(rows, corpus.graders)


def _masked(example: Example, row: RowMask) -> Example:
    spans = read_spans([*mask_of(example), *row.spans], len(plain(example.target)))
    extra = {**example.extra, MASK_COLUMN: [list(span) for span in spans]} if spans else dict(example.extra)
    before = 0 if isinstance(example.prompt, str) else sum(message["role"] == "assistant" for message in example.prompt)
    untrained = {*extra.get(UNTRAINED_TURNS, ()), *(turn for turn in row.turns if turn < before)}
    extra |= {UNTRAINED_TURNS: sorted(untrained)} if untrained else {}
    target: Any = example.target
    if any(turn >= before for turn in row.turns):
        own = ({"role": "assistant", "content": target},) if isinstance(target, str) else target
        target = tuple(_flag_turns(own, row.turns, before))
    return replace(example, target=target, extra=extra)


def write_mask(raw: Mapping[str, Any], row: RowMask, config: CorpusConfig) -> dict[str, Any]:
    """A row of a file with its mask filled in: the column `mask`, and `"train": false` in messages.

    Args:
        raw: the row as it stands in the file.
        row: its mask.
        config: how columns are named.
    """
    names = recognise_columns(raw, config.columns)
    made = dict(raw)
    if row.spans:
        spans = [*(raw.get(MASK_COLUMN) or []), *row.spans]
        made[MASK_COLUMN] = [list(span) for span in read_spans(spans, max(end for _, end in spans))]
    if row.turns:
        prompt = raw.get(names.get("prompt", ""))
        chat = ("prompt", "target") if isinstance(prompt, list) else ("messages",)
        replies = [names[name] for name in ("target", "text", "answer") if isinstance(raw.get(names.get(name, "")), str)]
        lists = [names[name] for name in chat if isinstance(raw.get(names.get(name, "")), list)]
        first = 0
        for column in lists:
            made[column] = _flag_turns(raw[column], row.turns, first)
            first += sum(map(_is_reply, raw[column]))
        if replies and max(row.turns) >= first:  # the text of the last reply
            made[MASK_COLUMN] = [[0, len(raw[replies[0]])]]
    return made


def _flag_turns(messages: Sequence[Mapping[str, Any]], turns: set[int], first: int) -> list[dict[str, Any]]:
    """Messages of which some replies, the first of them the `first`, are not trained on."""
    flagged, turn = [], first
    for message in messages:
        own = dict(message)
        if _is_reply(message):
            if turn in turns and is_trained(message):
                own |= {name: type(message[name])(0) for name in TRAIN_KEYS if message.get(name) is not None} | {
                    TRAIN_KEYS[0]: False
                }
            turn += 1
        flagged.append(own)
    return flagged


def _is_reply(message: Mapping[str, Any]) -> bool:
    role = message.get("role", message.get("from"))
    return ROLE_BY_SHAREGPT_NAME.get(str(role), role) == "assistant"
