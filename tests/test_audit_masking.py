"""`--fix --mask`: wrong steps get a mask in the copy, other lines stay, and nothing wrong in it is learnt from."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from cli_call import Call, write

from mixwright.audit.checks.traces import Traces
from mixwright.audit.cleaned import RowMask, write_mask
from mixwright.config import CorpusConfig
from mixwright.corpus import read_corpus
from mixwright.corpus.masks import mask_of
from mixwright_extras.checks.error_clusters import ErrorClusters


def solution(rng: random.Random, wrong: float) -> dict[str, Any]:
    """Four sums; each is one too many or two too few with this chance."""
    lines = []
    for _ in range(4):
        one, other = rng.randint(10, 99), rng.randint(10, 99)
        off = rng.choice((1, -2, 7, 13)) if rng.random() < wrong else 0
        lines.append(f"{one} + {other} = {one + other + off}")
    return {"task": "sums", "prompt": f"Work it out: {rng.random()}", "completion": "\n".join(lines)}


def wrong_of(text: str) -> list[str]:
    """Independent: lines `a + b = c` that are wrong."""
    found = []
    for line in text.splitlines():
        left, _, right = line.partition(" = ")
        if sum(map(int, left.split(" + "))) != int(right):
            found.append(line)
    return found


@pytest.fixture
def careless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[dict[str, Any]]]:
    """200 solutions, of which every fourth is wrong in most steps."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(0)
    rows = [solution(rng, 0.7 if n % 4 == 0 else 0.0) for n in range(200)]
    return write("train.jsonl", rows), rows


def test_wrong_lines_are_masked_and_the_rest_is_as_it_was(call: Call, careless: tuple[str, list[dict[str, Any]]]) -> None:
    train, rows = careless
    code, out, _ = call("audit", train, "--check", "error_clusters", "--fix", "masked.jsonl", "--mask")
    assert code == 0
    spoilt = [n for n, row in enumerate(rows) if wrong_of(row["completion"])]
    assert f"steps of {len(spoilt)} rows" in out
    lines, before = Path("masked.jsonl").read_text().splitlines(), Path(train).read_text().splitlines()
    for n, (line, old) in enumerate(zip(lines, before, strict=True)):
        if n not in spoilt:
            assert line == old
            continue
        made = json.loads(line)
        masked = [made["completion"][start:end] for start, end in made.pop("mask")]
        assert masked == wrong_of(rows[n]["completion"])
        assert made == rows[n]
    manifest = json.loads(Path("masked.jsonl.manifest.json").read_text())
    assert len(manifest["masked"]) == len(spoilt)
    assert manifest["left for you"] == []
    again = read_corpus("masked.jsonl")
    (told,) = ErrorClusters().check(again)
    assert (told.severity, told.count) == ("info", 0)
    assert all(one.severity == "info" for one in Traces().check(again))
    assert sum(bool(mask_of(example)) for example in again) == len(spoilt)


def test_without_the_flag_nothing_is_masked(call: Call, careless: tuple[str, list[dict[str, Any]]]) -> None:
    train, _ = careless
    assert call("audit", train, "--check", "error_clusters", "--fix", "same.jsonl")[0] == 0
    assert Path("same.jsonl").read_bytes() == Path(train).read_bytes()
    assert call("audit", train, "--mask")[0] == 1
    assert call("audit", train, "--fix", "a.parquet", "--mask")[0] == 1


def test_traces_list_the_same_spans(careless: tuple[str, list[dict[str, Any]]]) -> None:
    train, rows = careless
    (told,) = [one for one in Traces().check(read_corpus(train)) if one.severity == "warning"]
    listed = [(row["source"], row["step"]) for row in told.evidence]
    wrong = [(f"{train}:{n + 1}", line) for n, row in enumerate(rows) for line in wrong_of(row["completion"])]
    assert sorted(listed) == sorted(wrong)
    for row in told.evidence:
        (span,) = row["mask"]
        text = rows[int(row["source"].rpartition(":")[2]) - 1]["completion"]
        assert text[slice(*span)] == row["step"]


def test_wrong_turns_are_flagged_in_each_form(tmp_path: Path) -> None:
    said = [("user", "1 + 1 ="), ("assistant", "3"), ("user", "2 + 2 ="), ("assistant", "4")]
    chat = [{"role": role, "content": text} for role, text in said]
    shared = [{"from": {"user": "human", "assistant": "gpt"}[role], "value": text} for role, text in said]
    mask = RowMask("a", turns={0})
    config = CorpusConfig("none")
    flagged = [*chat[:1], {**chat[1], "train": False}, *chat[2:]]
    assert write_mask({"messages": chat}, mask, config) == {"messages": flagged}
    assert write_mask({"conversations": shared}, mask, config)["conversations"][1] == {**shared[1], "train": False}
    split = {"prompt": chat[:3], "completion": chat[3:]}
    assert write_mask(split, mask, config) == {"prompt": flagged[:3], "completion": chat[3:]}
    last = write_mask(split, RowMask("a", turns={1}), config)
    assert last == {"prompt": chat[:3], "completion": [{**chat[3], "train": False}]}
    weighed = [*chat[:1], {**chat[1], "weight": 1}, *chat[2:]]
    assert write_mask({"messages": weighed}, mask, config)["messages"][1] == {**chat[1], "weight": 0, "train": False}
    plain = {"question": "1 + 1 =", "answer": "3"}
    assert write_mask(plain, mask, config) == {**plain, "mask": [[0, 1]]}
    spans = {"prompt": "a", "completion": "b" * 9, "mask": [[0, 2]]}
    assert write_mask(spans, RowMask("a", spans=[[1, 4], [6, 7]]), config)["mask"] == [[0, 4], [6, 7]]


def test_a_copy_of_talks_reads_as_masked(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng, rows = random.Random(1), []
    for n in range(120):
        turns = []
        for _ in range(5):
            one, other = rng.randint(2, 60), rng.randint(2, 60)
            off = rng.randint(1, 9) if n % 4 == 0 and rng.random() < 0.6 else 0
            turns += [{"role": "user", "content": f"What is {one} + {other}?"}]
            turns += [{"role": "assistant", "content": f"It is {one + other + off}."}]
        rows.append({"task": "talks", "messages": turns})
    train = write("talks.jsonl", rows)
    (told,) = [one for one in ErrorClusters().check(read_corpus(train)) if one.severity == "warning"]
    assert told.task == "talks"
    assert call("audit", train, "--check", "error_clusters", "--fix", "masked.jsonl", "--mask")[0] == 0
    for old, line in zip(rows, Path("masked.jsonl").read_text().splitlines(), strict=True):
        messages = json.loads(line)["messages"]
        for place in range(1, 10, 2):
            asked = old["messages"][place - 1]["content"].removeprefix("What is ").removesuffix("?").split(" + ")
            right = f"It is {sum(map(int, asked))}." == messages[place]["content"]
            assert messages[place].get("train", True) == right
    assert [one.severity for one in ErrorClusters().check(read_corpus("masked.jsonl"))] == ["info"]
