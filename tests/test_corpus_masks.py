"""Masks from the file to what trains: columns as read, data sets and exports, by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.masks import is_trained, mask_of, read_spans, trained_spans
from mixwright.errors import InputError
from mixwright.learner.prompt_form import PromptForm
from mixwright.plan.mined_rows import export_rows
from mixwright.records import Example, Plan, Stage
from mixwright.verbs.export import TextHandling, build_mix, write_mix

ROW = {"task": "sums", "prompt": "add", "completion": "2+2=5 so 5+1=6", "mask": [[9, 14], [0, 3], [2, 5]]}


def written(folder: Path, *rows: dict[str, Any]) -> str:
    path = folder / "train.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def talk(*flags: dict[str, Any]) -> list[dict[str, Any]]:
    turns = []
    for n, flag in enumerate(flags):
        turns += [{"role": "user", "content": f"q{n}"}, {"role": "assistant", "content": f"a{n}"} | flag]
    return turns


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)).map(sorted)), st.integers(20, 25))
def test_spans_and_what_they_leave_are_every_character_once(pairs: list[list[int]], length: int) -> None:
    spans = read_spans(pairs, length)
    masked = {n for start, end in pairs for n in range(start, end)}
    assert [n for start, end in spans for n in range(start, end)] == sorted(masked)
    assert [n for start, end in trained_spans(spans, length) for n in range(start, end)] == sorted(
        set(range(length)) - masked
    )


def test_a_column_of_spans_is_put_in_order_and_goes_to_the_data_set(tmp_path: Path) -> None:
    corpus = read_corpus(written(tmp_path, ROW, {**ROW, "prompt": "again", "mask": None}))
    assert [mask_of(example) for example in corpus] == [((0, 5), (9, 14)), ()]
    assert corpus.to_datasets()["mask"] == [[[0, 5], [9, 14]], []]
    assert "mask" not in read_corpus(written(tmp_path, {**ROW, "mask": None})).to_datasets().column_names


@pytest.mark.parametrize("mask", [[[0, 15]], [[3]], [0, 1], "a", [[True, 2]], [[-1, 2]], [[2, 1]]])
def test_what_is_no_mask_is_refused_with_its_line(mask: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\[\[start, end\], \.\.\.\], got") as caught:
        read_corpus(written(tmp_path, ROW, {**ROW, "mask": mask}))
    assert caught.value.line == 2


def test_the_last_turn_that_is_trained_on_is_the_completion(tmp_path: Path) -> None:
    rows = [{"messages": talk({}, {"train": True}, {"weight": 0})}, {"messages": talk({"loss": False}, {})}]
    rows += [{"messages": talk({"train": False}, {"train": False})}]
    read = list(read_corpus(written(tmp_path, *rows)))
    assert [(len(example.prompt), example.target) for example in read] == [
        (3, ({"role": "assistant", "content": "a1"},)),
        (3, ({"role": "assistant", "content": "a1"},)),
        (3, ({"role": "assistant", "content": "a1", "train": False},)),
    ]
    assert all(set(message) == {"role", "content"} for example in read for message in example.prompt)
    with pytest.raises(InputError, match=r"weight: 0\.5"):
        read_corpus(written(tmp_path, {"messages": talk({"weight": 0.5})}))


def test_only_yes_and_no_are_read() -> None:
    assert is_trained({"weight": None, "train": 1.0})
    for message in ({"train": "false"}, {"train": 2}, {"train": True, "loss": False}):
        with pytest.raises(ValueError, match="train: "):
            is_trained(message)


def masked_corpus() -> Corpus:
    rows = [Example(f"{n}", "sums", f"add {n}", target="2+2=5 so 5+1=6", extra={"mask": [[0, 5]]}) for n in range(4)]
    return Corpus.from_examples([*rows, Example("bare", "sums", "add", target="1+1=2")])


def exported(name: str, folder: Path, *, chat: bool, corpus: Corpus | None = None) -> str:
    plan = Plan("by hand", (Stage("training", "sft", 10, {"sums": 1.0}, selector="uniform"),))
    form = TextHandling(PromptForm(chat or None))
    mix = build_mix(plan, corpus or masked_corpus(), batch=4, text_handling=form)
    return "\n".join(write_mix(mix, name, folder))


def test_axolotl_gets_what_a_mask_leaves(tmp_path: Path) -> None:
    assert "masks" not in exported("axolotl", tmp_path / "a", chat=True)
    entry = yaml.safe_load((tmp_path / "a" / "axolotl.yaml").read_text())["datasets"][0]
    assert (entry["message_field_training"], entry["message_field_training_detail"]) == ("train", "train_detail")
    rows = [json.loads(line) for line in (tmp_path / "a" / "rows.jsonl").read_text().splitlines()]
    for row in rows:
        asked, answered = row["messages"]
        assert asked["train"] is False
        details = [] if row["id"].endswith("bare") else [{"begin_offset": 5, "end_offset": 13, "train": True}]
        assert answered.get("train_detail", []) == details
    assert "4 rows are lost: Axolotl, on plain text," in exported("axolotl", tmp_path / "b", chat=False)
    unmasked = masked_corpus().select(ids=["bare"])
    assert "lost" not in exported("axolotl", tmp_path / "c", chat=True, corpus=unmasked)
    entry = yaml.safe_load((tmp_path / "c" / "axolotl.yaml").read_text())["datasets"][0]
    assert "message_field_training_detail" not in entry


@pytest.mark.parametrize("name", ["llama_factory", "verl"])
def test_a_trainer_without_masks_is_told_so(name: str, tmp_path: Path) -> None:
    assert "The masks of 4 rows are lost" in exported(name, tmp_path / "a", chat=True)
    assert "lost" not in exported(name, tmp_path / "b", chat=True, corpus=masked_corpus().select(ids=["bare"]))


def test_a_data_set_for_trl_has_the_column_and_the_flags(tmp_path: Path) -> None:
    assert "4 rows have masked parts" in exported("trl", tmp_path / "a", chat=True)
    table = pq.read_table(tmp_path / "a" / "rows.parquet").to_pylist()
    masks = {row["id"].partition("-")[2]: row["mask"] for row in table}
    assert masks == {**{f"{n}": [[0, 5]] for n in range(4)}, "bare": None}
    target = ({"role": "assistant", "content": "a", "train": False}, {"role": "user", "content": "b"})
    rows = Corpus.from_examples([Example("a", "sums", "q", target=(*target, {"role": "assistant", "content": "c"}))])
    exported("trl", tmp_path / "b", chat=True, corpus=rows)
    row = pq.read_table(tmp_path / "b" / "rows.parquet").to_pylist()[0]
    assert [message["train"] for message in row["completion"]] == [False, None, None]


def test_mined_rows_keep_their_masks(tmp_path: Path) -> None:
    names = ["bare", "0", "1"]
    pq.write_table(pa.table({"id": names, "weight": [1.0] * 3, "reason": ["r"] * 3}), tmp_path / "mined.parquet")
    export_rows(tmp_path / "mined.parquet", masked_corpus(), tmp_path / "out")
    rows = [json.loads(line) for line in (tmp_path / "out" / "rows.jsonl").read_text().splitlines()]
    assert {row["id"]: row["mask"] for row in rows} == {"bare": [], "0": [[0, 5]], "1": [[0, 5]]}
