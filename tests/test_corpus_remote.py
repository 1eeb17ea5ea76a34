"""Data files behind an address: a web server of this machine, copies, changes, and what fails."""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cli_call import Call, sums, write

from mixwright import api
from mixwright.config import CorpusConfig
from mixwright.corpus import read_corpus
from mixwright.errors import InputError

pytest.importorskip("aiohttp")

TEXT = "".join(json.dumps({"prompt": f"{n} + 1 =", "answer": str(n + 1)}) + "\n" for n in range(30))


class Handler(SimpleHTTPRequestHandler):
    """Files of a folder; notes each file that was asked for as a whole."""

    fetched: list[str]

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.fetched.append(self.path)
        super().do_GET()


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str, list[str]]]:
    """A folder, the address at which a server has it, and what was fetched."""
    folder = tmp_path / "served"
    folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    handler = type("Own", (Handler,), {"fetched": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield folder, f"http://127.0.0.1:{server.server_address[1]}", handler.fetched
    finally:
        server.shutdown()
        server.server_close()


def test_a_file_is_copied_once_and_again_when_it_changed(served: tuple[Path, str, list[str]]) -> None:
    folder, address, fetched = served
    (folder / "a.jsonl").write_text(TEXT)
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(TEXT.encode()))
    config = CorpusConfig(f"{address}/a.jsonl", f"{address}/b.jsonl.gz")
    corpus = read_corpus(config)
    assert [row.answer for row in corpus] == [str(n + 1) for n in range(30)] * 2
    assert corpus[2].source == f"{address}/a.jsonl:3"
    assert any("read from a copy on this machine" in note for note in corpus.notes)
    before = len(fetched)
    assert {one.check for one in api.audit(config).observations} >= {"contamination"}
    assert len(fetched) == before
    (folder / "a.jsonl").write_text(TEXT.replace("1 +", "2 +"))
    os.utime(folder / "a.jsonl", (0, 0))
    assert read_corpus(config)[1].prompt == "2 + 1 ="
    assert len(fetched) == before + 1


def test_what_cannot_be_fetched_is_said_with_the_address(served: tuple[Path, str, list[str]]) -> None:
    folder, address, _ = served
    (folder / "empty.jsonl").write_text("")
    for source, words in (
        (f"{address}/nothing.jsonl", "a file that can be downloaded, got FileNotFoundError"),
        ("http://127.0.0.1:1/a.jsonl", "a file that can be downloaded"),
        ("nowhere://a.jsonl", "a file that can be downloaded, got Protocol"),
        (f"{address}/empty.jsonl", "at least one row"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            read_corpus(CorpusConfig(source, eval_share=0.0))
        assert caught.value.file == source


def test_a_cleaned_copy_needs_a_file_of_this_machine(served: tuple[Path, str, list[str]], tmp_path: Path) -> None:
    from mixwright.audit.cleaned import check_cleaned_file

    with pytest.raises(InputError, match="a file on this machine"):
        check_cleaned_file(CorpusConfig(f"{served[1]}/a.jsonl"), tmp_path / "clean.jsonl")


def test_results_are_not_written_to_an_address(call: Call) -> None:
    for option in ("--out", "--fix"):
        code, _, err = call("audit", write("t.jsonl", sums(20)), option, "s3://bucket/x.jsonl")
        assert (code, "a path on this machine" in err) == (1, True), err
    assert not Path("s3:").exists()
