"""Large corpora: little memory, nothing heavy imported, nothing left on disk."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mixwright.corpus import Corpus, rows
from mixwright.records import Example


def test_large_corpora_are_mapped_from_a_file_that_is_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rows, "MAX_BYTES_IN_MEMORY", 1000)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    corpus = Corpus.from_examples(Example(str(i), "ab"[i % 2], f"q{i}", answer="1") for i in range(30_000))
    assert list(tmp_path.iterdir()) == []
    assert len(corpus) == 30_000
    assert corpus[29_999].prompt == "q29999"
    assert len(corpus.select(tasks=["b"])) == 15_000
    assert max(batch.num_rows for batch in corpus.batches(1000)) == 1000


def test_reading_jsonl_is_light_in_imports_and_memory(tmp_path: Path) -> None:
    """100,000 rows of 300 bytes: read into Python objects at once they would take over 200 MB."""
    code = """
import json, resource, sys
from mixwright.config import CorpusConfig
from mixwright.corpus import read_corpus
path = sys.argv[1]
with open(path, "w") as file:
    for i in range(100_000):
        file.write(json.dumps({"prompt": f"{i} " + "word " * 40, "answer": str(i % 9), "note": "x" * 60}) + "\\n")
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before = peak()
corpus = read_corpus(CorpusConfig(train=path))
assert sum(batch.num_rows for batch in corpus.batches()) == 100_000
corpus.cells()
heavy = {"torch", "datasets", "transformers", "trl", "reasoning_gym", "scipy"} & set(sys.modules)
print(json.dumps([peak() - before, sorted(heavy)]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.jsonl")], capture_output=True, text=True, check=True
    )
    grown, heavy = json.loads(done.stdout)
    assert heavy == []
    assert grown < 200, f"{grown} MB, of which about 40 are the mapped file"
