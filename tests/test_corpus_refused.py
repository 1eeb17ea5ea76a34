"""What a corpus cannot mean is refused, and told so that it can be found: row, column, and what to do in either command."""

from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_corpus_reading import BLUE, USER, read_one

from mixwright import catalog
from mixwright.audit.stage import run_audit
from mixwright.config import CorpusConfig, RunConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.errors import InputError
from mixwright.graders import load_grader
from mixwright.records import Example, from_data
from mixwright.steer.pool import make_pool

WRONG = {
    "one of the roles .*'banana'": {"messages": [USER, {**BLUE, "role": "banana"}]},
    "one of the roles .*''": {"messages": [{**USER, "role": ""}, BLUE]},
    "one of the roles .*'User'": {"messages": [{**USER, "role": "User"}, BLUE]},
    "line 1: expected one of the roles": {"messages": [{**USER, "role": "\ud800"}, BLUE]},
    "a value in column 'text', got null": {"text": None},
    "a value in column 'question', got null": {"question": None, "answer": "4"},
}


@pytest.mark.parametrize("told", WRONG)
def test_a_row_that_means_nothing_is_refused_with_what_to_do(told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told) as caught:
        read_one(tmp_path, WRONG[told])
    assert caught.value.line == 1


def test_calls_that_are_empty_are_none(tmp_path: Path) -> None:
    assert read_one(tmp_path, {"messages": [USER, {**BLUE, "tool_calls": []}]}).target == (BLUE,)


@pytest.mark.parametrize(
    "value", [math.nan, datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), datetime.date(2020, 1, 1), b"x"]
)
def test_a_value_that_is_not_json_is_told_with_its_column(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"prompt": ["p"], "answer": ["1"], "fine": [1], "made": [value]}), path)
    with pytest.raises(InputError, match="in column 'made' of row"):
        read_corpus(CorpusConfig(train=str(path)))


def test_a_value_of_another_type_is_told_with_its_row() -> None:
    rows: Any = [Example("a", "t", "p", source="x.py:3"), Example("b", "t", "q", answer=4, source="x.py:4")]  # type: ignore
    with pytest.raises(InputError, match=r"x\.py, line 4: expected text, numbers and true or false that a file can hold"):
        Corpus.from_examples(rows)


@pytest.mark.parametrize(
    "cells", [(("a", 1e6), ("a", 1e6 + 1)), (("a", 1.0), ("a@1", None)), (("a\nb", None), ("a b", None))]
)
def test_cells_of_one_name_are_refused_where_they_are_found(cells: Any) -> None:
    rows = [Example(str(at), task, f"p{at}", answer="1", level=level) for at, (task, level) in enumerate(cells)]
    with pytest.raises(InputError, match="a different name for each task and level"):
        Corpus.from_examples(rows).cells()
    with pytest.raises(InputError, match="a different name for each task and level"):
        make_pool(["x", "y"], [task for task, _ in cells], [level for _, level in cells])


def test_preference_pairs_with_equal_sides_are_told() -> None:
    sides = ["yes", "yes", "no", "no"]
    rows = [Example(str(n), "t", f"Is {n} odd?", chosen=side, rejected="no") for n, side in enumerate(sides)]
    seen = [found for found in run_audit(Corpus.from_examples(rows), ["duplicates"]) if "equal sides" in found.message]
    assert [(found.count, found.total, found.severity) for found in seen] == [(2, 4, "warning")]
    assert [row["id"] for row in seen[0].evidence] == ["2", "3"]
    assert not [f for f in run_audit(Corpus.from_examples(rows[:2]), ["duplicates"]) if "equal sides" in f.message]


def test_space_at_the_ends_makes_no_other_side_of_a_pair() -> None:
    """Rows 1 and 3 of 5 pairs, a chat among them; what has no pair is not counted."""
    said = ({"role": "assistant", "content": "no\n"},), ({"role": "assistant", "content": "no"},)
    sides: list[tuple[Any, Any]] = [("no", "yes"), (" no", "no\n"), ("No", "no"), said, ("n o", "no")]
    rows = [Example(str(n), "t", f"Is {n}?", chosen=one, rejected=other) for n, (one, other) in enumerate(sides)]
    rows += [Example("held", "t", "Is 9?", chosen="no", rejected="no", split="eval"), Example("plain", "t", "p", "x")]
    (seen,) = [found for found in run_audit(Corpus.from_examples(rows), ["duplicates"]) if "equal sides" in found.message]
    assert (seen.count, seen.total, [row["id"] for row in seen.evidence]) == (2, 5, ["1", "3"])
    assert seen.remedy


def test_a_module_that_is_an_attribute_is_found() -> None:
    assert load_grader("os.path:join")
    with pytest.raises(InputError, match="a function nothing"):
        load_grader("os.path:nothing")


def test_names_are_told_as_they_were_given() -> None:
    with pytest.raises(InputError, match=r"name of a field \(train\.a\.b\).*got 'a\.b'"):
        from_data(RunConfig, {"corpus": {"train": "a.jsonl"}, "train": {"a.b": 1}})
    with pytest.raises(InputError, match=r"expected corpus\.graders\.a\.b: "):
        from_data(RunConfig, {"corpus": {"train": "a.jsonl", "graders": {"a.b": 1}}})
    with pytest.raises(InputError, match=r"expected train\.steps: a number less than or equal to"):
        from_data(RunConfig, {"corpus": {"train": "a.jsonl"}, "train": {"steps": 10**11}})
    for kind, name, article in (("arms", "nope", "an arm"), ("gates", "nope", "a gate")):
        with pytest.raises(InputError, match=f"the name of {article} "):
            catalog.find_entry(kind, name)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
def test_brackets_that_are_nested_too_deeply_are_named(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text('{"prompt": "a", "completion": "b", "x": ' + "[" * 100_000 + "]" * 100_000 + "}")
    with pytest.raises(InputError, match="nested too deeply"):
        read_corpus(str(tmp_path / name))


def test_a_file_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"prompt": "a", "completion": "b"}\n')
    sources = f"{tmp_path / 'rows.jsonl'}\n{tmp_path / '.' / 'rows.jsonl'}"
    with pytest.raises(InputError, match="each file once"):
        read_corpus(CorpusConfig(sources, eval_share=0.0))
