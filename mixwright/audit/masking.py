"""Masks of wrong steps in a copy of the rows: what checks list as wrong stays in the context, and its loss is left out.

Left out on purpose: a span of a turn before the last, which no form of rows has; the whole turn is masked there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mixwright.config import CorpusConfig
from mixwright.corpus import Corpus
from mixwright.corpus.columns import ROLE_BY_SHAREGPT_NAME, recognise_columns
from mixwright.corpus.masks import MASK_COLUMN, TRAIN_KEYS, UNTRAINED_TURNS, is_trained, mask_of, read_spans
from mixwright.records import Example, Observation, plain

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
