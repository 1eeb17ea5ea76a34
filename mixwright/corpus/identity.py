"""Identity of rows: ids by content, splits by prompt; 16 bytes per row are kept while the rows stream by."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from array import array
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from mixwright.corpus.rows import BATCH_ROWS, encode, pc, store_batches, with_column
from mixwright.errors import InputError
from mixwright.records import Example, Text, plain


def prompt_key(prompt: Text) -> int:
    """64-bit hash of a prompt, the same for all spellings of case and white space."""
    return _hash(" ".join(plain(prompt).casefold().split()))


def build_table(examples: Iterable[Example], eval_share: float = 0.0) -> pa.Table:
    """A table of the examples: ids given where empty, splits given where empty.

    Args:
        examples: read once.
        eval_share: share of the prompts (or texts) without a split that go to eval; at least one where there are two.

    Raises:
        InputError: two rows of a file with one id.
    """
    content_hashes, prompt_hashes = array("Q"), array("Q")

    def batches() -> Iterator[pa.RecordBatch]:
        stream = iter(examples)
        while chunk := list(itertools.islice(stream, BATCH_ROWS)):
            batch = encode(chunk)  # first, since it refuses what cannot be hashed
            content_hashes.extend(0 if example.id else _content_hash(example) for example in chunk)
            prompt_hashes.extend(
                0 if example.split else prompt_key(example.prompt or example.target or "") for example in chunk
            )
            yield batch

    table = store_batches(batches())
    if any(content_hashes):
        table = with_column(table, "id", _ids(table["id"], np.frombuffer(content_hashes, np.uint64)))
    if any(prompt_hashes):
        table = with_column(
            table, "split", _splits(table["split"], table["task"], np.frombuffer(prompt_hashes, np.uint64), eval_share)
        )
    return _with_own_ids(table)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "big") | 1  # 0 means "not wanted"


def _content_hash(example: Example) -> int:
    texts = (example.prompt, example.target, example.chosen, example.rejected)
    plain_texts = [None if text is None else plain(text) for text in texts]
    return _hash(json.dumps([example.task, example.level, example.answer, *plain_texts]))


def _ids(given_ids: pa.ChunkedArray, keys: np.ndarray) -> pa.ChunkedArray:
    """The ids, those that are empty made of the content's hash and, from the second on, the occurrence."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first_positions = np.searchsorted(ordered, ordered)
    occurrence = np.empty(len(keys), np.int64)
    occurrence[order] = np.arange(len(keys)) - first_positions + 1
    chunks = []
    for at in range(0, len(keys), BATCH_ROWS):
        names = given_ids.slice(at, BATCH_ROWS).to_pylist()
        rows = zip(names, keys[at : at + BATCH_ROWS].tolist(), occurrence[at : at + BATCH_ROWS].tolist(), strict=True)
        ids = [name or f"{key:016x}" + (f"-{count}" if count > 1 else "") for name, key, count in rows]
        chunks.append(pa.array(ids, pa.string()))
    return pa.chunked_array(chunks, pa.string())


def _splits(given_splits: pa.ChunkedArray, tasks: pa.ChunkedArray, keys: np.ndarray, eval_share: float) -> pa.ChunkedArray:
    """The splits, those not given by the prompt's hash. A task of two prompts or more has one on each side."""
    without_split = keys > 0
    held_out = without_split & (keys < np.uint64(min(eval_share * 2**64, 2**64 - 1)))
    codes = tasks.combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(without_split)
    order = rows[np.argsort(codes[rows], kind="stable")]
    for of_task in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        lowest, highest = keys[of_task].min(), keys[of_task].max()
        if lowest < highest and eval_share > 0 and not held_out[of_task].any():
            held_out |= keys == lowest
        if lowest < highest and held_out[of_task].all():
            held_out &= keys != highest
    chosen = pa.array(np.where(held_out, "eval", "train"), pa.string())
    return pc.if_else(pa.array(without_split), chosen, given_splits)


def _with_own_ids(table: pa.Table) -> pa.Table:
    """The table, an id that several files have replaced by the row's place. Raises InputError for an id twice in a file."""
    if pc.count_distinct(table["id"]).as_py() == len(table):
        return table
    ids, first_place = table["id"].to_pylist(), dict[str, dict[str, str]]()
    for row, (name, source) in enumerate(zip(list(ids), table["source"].to_pylist(), strict=True)):
        file, line, places = re.sub(r"[:#]\d+$", "", source), source.rpartition(":")[2], first_place.setdefault(name, {})
        if file in places:
            got = f"{name!r} twice: {places[file] or 'an example'} and {source or 'another'}"
            remedy = "Make them unique, or rename that column, and Mixwright makes ids; "
            remedy += 'run.yaml can ignore it: corpus.columns: {id: ""}.'
            at = int(line) if line.isdigit() else None
            raise InputError("ids that are unique within a file", got, remedy, file=file or None, line=at)
        if places:
            ids[row] = source
        places[file] = source
    return with_column(table, "id", pa.chunked_array([pa.array(ids, pa.string())]))
