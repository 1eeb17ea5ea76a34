"""Checks whose passes are made shard by shard find what one pass finds, to the row, wherever the shards are cut."""

from __future__ import annotations

import pickle
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixwright import api
from mixwright.audit import forms, leaks, rows, shards, stage
from mixwright.audit.shards import in_shards, map_shards
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.records import Example, Observation, Text
from mixwright.run.workers import Job, Workers

SHARDED = ("contamination", "duplicates", "frequency")


class InThisProcess(Workers):
    """Does each job here, sent there and back as to a process: what is tested is the map and the merge."""

    def run(self, jobs: Sequence[Job], **_: Any) -> list[Any]:
        return [pickle.loads(pickle.dumps(job.function(pickle.loads(pickle.dumps(job.argument))))) for job in jobs]


def chat(*turns: str) -> Text:
    return tuple({"role": ("user", "assistant")[at % 2], "content": turn} for at, turn in enumerate(turns))


def made(seed: int, train: int = 240, held_out: int = 60) -> Corpus:
    """Rows with copies, wrapped and near ones, repeats, capitals, chats with talk, and tasks that first come late."""
    rng = random.Random(seed)
    words = [f"{a}{b}" for a in "bdfglmnprst" for b in ("an", "el", "ir", "om", "ut")]

    def question() -> str:
        return f"How many {' '.join(rng.choices(words, k=9))} are {rng.randrange(99)} and {rng.randrange(99)} then?"

    asked = [(question(), str(rng.randrange(50))) for _ in range(held_out)]
    texts = [(question(), str(rng.randrange(50))) for _ in range(train)]
    for place, (prompt, answer) in enumerate(asked):
        near = prompt.replace("How many", "Say how many")
        copy = rng.choice([prompt, prompt.upper(), f"Read this first. {prompt}", near, None, None])
        if copy is not None:
            texts[rng.randrange(train)] = copy, rng.choice([answer, answer, "17"])
        if place % 7 == 0:
            texts[rng.randrange(train)] = texts[rng.randrange(train)]
    examples = []
    for place, (prompt, answer) in enumerate(texts):
        written: Text = rng.choice([f"Answer: {answer}", f"\\boxed{{{answer}}}", f"{prompt} {answer}!"])
        text: Text = prompt
        if rng.random() < 0.2:
            text, written = chat("Good morning to you", "Hello.", prompt), chat("", str(written))[1:]
        task = rng.choice("ab") if place < train // 2 else rng.choice("abc")
        examples.append(Example(f"t{place}", task, text, target=written, answer=answer, split="train"))
    examples += [
        Example(f"e{place}", rng.choice("abd"), prompt, answer=answer, split="eval")
        for place, (prompt, answer) in enumerate(asked)
    ]
    rng.shuffle(examples)
    return Corpus.from_examples(examples)


def forget() -> None:
    leaks._KNOWN.clear()
    rows._KNOWN.clear()


def found(corpus: Corpus) -> list[Observation]:
    forget()
    return stage.run_audit(corpus, SHARDED)


@settings(max_examples=12)
@given(seed=st.integers(0, 10**6), batch=st.integers(1, 90))
def test_wherever_the_rows_are_cut_the_findings_are_the_same(seed: int, batch: int) -> None:
    corpus = made(seed)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        for name, value in (("BATCH_ROWS", batch), ("MIN_BATCHES", 1), ("SHARDS_PER_WORKER", 50)):
            patch.setattr(shards, name, value)
        patch.setattr(forms, "MAX_FORMS_KEPT", 20)
        expected = found(corpus)
        with in_shards(corpus, InThisProcess(4), Path(folder)):
            sizes = [size for _, size in map_shards(corpus, count_rows, None, "rows")]
            assert (sum(sizes), max(sizes) < len(corpus)) == (len(corpus), True)
            assert found(corpus) == expected
        assert list(Path(folder).iterdir()) == []
    assert {one.check for one in expected} == set(SHARDED)


def count_rows(batches: Sequence[pa.RecordBatch], _: None) -> int:
    return sum(batch.num_rows for batch in batches)


def first_of(batches: Sequence[pa.RecordBatch], _: None, of_rows: np.ndarray) -> list[int]:
    return [of_rows[0], len(of_rows)]


def test_each_shard_gets_the_number_of_its_first_row_and_its_part_of_what_rows_have(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shards, "BATCH_ROWS", 100)
    monkeypatch.setattr(shards, "MIN_BATCHES", 1)
    corpus = made(0, 200, 50)
    with in_shards(corpus, InThisProcess(1), tmp_path):
        parts = map_shards(corpus, first_of, None, "rows", np.arange(250))
        assert parts == [(0, [0, 100]), (100, [100, 100]), (200, [200, 50])]
        assert map_shards(made(1, 200, 50), count_rows, None, "rows") == [(0, 250)]  # another corpus: in this process


def test_processes_of_this_machine_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "MIN_BATCHES", 1)
    corpus = made(3, 5000, 100)
    forget()
    expected = api.audit(corpus).observations
    forget()
    assert api.audit(corpus, workers=2).observations == expected


def test_another_cluster_is_refused_before_anything_is_started() -> None:
    with pytest.raises(InputError, match="--cluster ray, ray:ADDRESS"):
        api.audit(made(0), cluster="slurm")
