"""Damaged and contradictory logs: one line that names file and line or key, never a traceback."""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_call import Call
from log_rows import FOLDER, plain_rows, write_lines

GOOD = '{"task": "sum", "id": 0, "score": 1}\n'


def text(name: str, content: str | bytes) -> Callable[[], str]:
    def make() -> str:
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return make


def row(**changes: Any) -> Callable[[], str]:
    return text("bad.jsonl", GOOD + json.dumps({"task": "sum", "id": 1, "score": 1} | changes) + "\n")


def lm_eval(**changes: Any) -> Callable[[], str]:
    line = {
        "doc_id": 0,
        "target": "1",
        "arguments": [["q", {"do_sample": False}]],
        "resps": [["1"]],
        "filtered_resps": ["1"],
    }
    line |= {"filter": "none", "metrics": ["em"], "em": 1.0}
    second = {key: value for key, value in (line | {"doc_id": 1} | changes).items() if value is not ...}
    return text("samples_t_2026-08-01T10-00-00.1.jsonl", f"{json.dumps(line)}\n{json.dumps(second)}\n")


def inspect(**changes: Any) -> Callable[[], str]:
    sample = {"id": 1, "epoch": 1, "input": "q", "target": "1", "output": {}, "scores": {"match": {"value": "C"}}}
    log = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}, "samples": [sample]}
    log["samples"] = changes.pop("samples", [sample | changes.pop("sample", {})])
    return text("log.json", json.dumps(log | changes))


def zipped(members: dict[str, str], cut: int = 0, name: str = "log.eval") -> Callable[[], str]:
    def make() -> str:
        with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        data = Path(name).read_bytes()
        Path(name).write_bytes(data[: len(data) - cut])
        return name

    return make


def parquet(rows: list[dict[str, Any]], cut: int = 0) -> Callable[[], str]:
    def make() -> str:
        pq.write_table(pa.Table.from_pylist(rows), "details_t|0_2026-08-01T10-00-00.1.parquet")
        path = Path("details_t|0_2026-08-01T10-00-00.1.parquet")
        data = path.read_bytes()
        path.write_bytes(data[: len(data) - cut])
        return str(path)

    return make


def plain_parquet(name: str, values: pa.Array) -> Callable[[], str]:
    """A plain log with one more column."""

    def make() -> str:
        count = len(values)
        pq.write_table(pa.table({"task": ["t"] * count, "id": list(range(count)), "score": [1] * count, "x": values}), name)
        return name

    return make


DATES = pa.array([10**8] * 3, pa.int32()).cast(pa.date32())
TWICE = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], fields=[pa.field("a", pa.int64())] * 2)


def pipe() -> str:
    os.mkfifo("pipe.jsonl")
    return "pipe.jsonl"


HEADER = json.dumps({"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}})
DETAIL = {"doc": {"query": "q", "choices": ["1"], "gold_index": 0, "id": "0"}, "model_response": {"text": ["1"]}}
DAMAGED: dict[str, tuple[Callable[[], str], str]] = {
    "no score": (text("bad.jsonl", GOOD + '{"task": "sum", "id": 1}\n'), "bad.jsonl, line 2: expected the key 'score'"),
    "no id": (text("bad.jsonl", '{"task": "sum", "score": 1}\n'), "bad.jsonl, line 1: expected the key 'id'"),
    "broken line": (text("bad.jsonl", GOOD + '{"task": "sum", "id"\n'), "bad.jsonl, line 2: expected a JSON object"),
    "a list as row": (text("bad.jsonl", GOOD + "[1]\n"), "bad.jsonl, line 2: expected an object"),
    "a key twice": (text("bad.jsonl", GOOD + '{"task": "a", "task": "b", "id": 1, "score": 1}\n'), "the key 'task' twice"),
    "score as text": (
        row(score="right"),
        "bad.jsonl, line 2: expected a number, true, false or null in score, got the text",
    ),
    "score as list": (row(score=[1, 0]), "got a list of 2"),
    "score infinite": (text("bad.jsonl", GOOD + '{"task": "sum", "id": 1, "score": Infinity}\n'), "got an infinite number"),
    "score huge": (text("bad.jsonl", GOOD + f'{{"task": "sum", "id": 1, "score": 1{"0" * 400}}}\n'), "beyond all bounds"),
    "id as list": (row(id=[1]), "line 2: expected a name in id"),
    "id empty": (row(id=" "), "line 2: expected a name in id"),
    "task as number of 9999 digits": (row(task="x" * 9999), "expected a name of at most 500 characters in task"),
    "level as text": (row(level="hard"), "line 2: expected a number in level"),
    "level NaN": (
        text("bad.jsonl", GOOD + '{"task": "s", "id": 1, "score": 1, "level": NaN}\n'),
        "a finite number in level",
    ),
    "level huge": (row(level=1e300), "a level of at most 2^53"),
    "completion as object": (row(completion={}), "line 2: expected a text in completion"),
    "half a character": (row(completion="\ud800"), "line 2: expected Unicode text in completion"),
    "prompt without roles": (row(prompt=[{"content": "x"}]), "messages with role and content in prompt"),
    "cut as number": (row(cut=1), "true or false in cut"),
    "item twice": (row(id=0), "bad.jsonl, line 2: expected each answer once, got item '0' of task 'sum' twice"),
    "another encoding": (text("bad.jsonl", GOOD.encode() + b'{"task": "\xe9"}\n'), "line 2: expected UTF-8 text"),
    "no rows": (text("bad.jsonl", "\n"), "expected an evaluation log"),
    "nothing": (text("bad.jsonl", ""), "got an empty or incomplete file. Download it again"),
    "UTF-16": (text("bad.jsonl", GOOD.encode("utf-16")), "got text in UTF-16 or UTF-32. Save it as UTF-8."),
    "UTF-16 without a mark": (text("bad.jsonl", GOOD.encode("utf-16-be")), "got text in UTF-16 or UTF-32"),
    "a web page": (text("bad.json", "<!DOCTYPE html>404"), "got a web page or XML"),
    "another zip file": (zipped({"a": "b"}, name="bad.zip"), "bad.zip: expected an evaluation log"),
    "zstd": (text("bad.jsonl.zst", b"\x28\xb5\x2f\xfd1"), "got an empty or incomplete file"),
    "gzip cut at once": (text("bad.jsonl.gz", gzip.compress(GOOD.encode())[:10]), "got an empty or incomplete file"),
    "nothing there": (lambda: "bad.jsonl", "bad.jsonl: expected an evaluation log, or a model, got nothing there"),
    "a table of texts": (text("bad.csv", "task,id,score\na,1,1\n"), "bad.csv: expected an evaluation log"),
    "dates out of range": (plain_parquet("bad.parquet", DATES), "values that Python can represent"),
    "a field twice": (plain_parquet("bad.parquet", TWICE), "values that Python can represent"),
    "no log": (text("bad.jsonl", '{"question": "q"}\n'), "got a file whose first row has the keys question"),
    "broken gzip": (text("bad.jsonl.gz", gzip.compress(GOOD.encode() * 9999)[:-8]), "expected a complete compressed file"),
    "a pipe": (pipe, "a pipe, a socket or a device"),
    "lm-eval, no doc_id": (lm_eval(doc_id=...), "line 2: expected the key 'doc_id' in every line"),
    "lm-eval, no responses": (lm_eval(filtered_resps=...), "line 2: expected the key 'filtered_resps'"),
    "lm-eval, metric that is not there": (lm_eval(metrics=["f1"]), "line 2: expected metrics: a list of keys of the line"),
    "lm-eval, document twice": (lm_eval(doc_id=0), "line 2: expected each document once under each filter"),
    "lm-eval, arguments as text": (lm_eval(arguments="q"), "line 2: expected arguments: an object or a list"),
    "lm-eval, empty request": (lm_eval(arguments=[[]]), "line 2: expected arguments of each request"),
    "lm-eval, likelihoods that are none": (
        lm_eval(arguments=[["q", " a"], ["q", " b"]], filtered_resps=[["x", "False"], ["-1", "True"]]),
        "line 2: expected a log-probability of at most 0 in filtered_resps",
    ),
    "lm-eval, results without samples": (
        text("results_2026-08-01T10-00-00.1.json", '{"results": {}, "configs": {}}'),
        "expected samples next to a results file",
    ),
    "Inspect, cut off": (
        text("log.json", '{"version": 2, "status": "success", "eval": {"task": "t"'),
        "log.json, line 1: expected JSON",
    ),
    "Inspect, no samples": (inspect(samples=None), "expected samples in an Inspect log"),
    "Inspect, sample that is none": (inspect(samples=[3]), "log.json, row 1: expected an object: a sample"),
    "Inspect, no task": (inspect(eval={"model": "m"}), "expected a name in eval.task"),
    "Inspect, no id": (inspect(sample={"id": None}), "row 1: expected a name in id"),
    "Inspect, scores as list": (inspect(sample={"scores": [1]}), "row 1: expected an object: scores"),
    "Inspect, score as number": (inspect(sample={"scores": {"match": 1}}), "row 1: expected an object: score 'match'"),
    "Inspect, input as number": (inspect(sample={"input": 5}), "a text or chat messages in input"),
    "Inspect, zip cut off": (zipped({"header.json": HEADER}, cut=30), "log.eval: expected a whole zip file"),
    "Inspect, zip with an empty header": (zipped({"header.json": "{}"}), "log.eval: expected an object: eval"),
    "Inspect, zip without header": (zipped({"samples/1_epoch_1.json": "{}"}), "expected header.json in an Inspect log"),
    "Inspect, sample that is no JSON": (
        zipped({"header.json": HEADER, "samples/1_epoch_1.json": "{"}),
        "log.eval, samples/1_epoch_1.json, line 1: expected JSON",
    ),
    "Inspect, zip without samples": (zipped({"header.json": HEADER}), "expected a log with answers"),
    "lighteval, cut off": (parquet([DETAIL | {"metric": {"em": 1.0}}], cut=40), "expected a Parquet file"),
    "lighteval, other columns": (parquet([{"a": 1}]), "expected a table with columns doc, model_response, metric"),
    "lighteval, metric as text": (
        parquet([DETAIL | {"metric": "{'em': 1}"}]),
        "row 1: expected an object: metric",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_one_line_names_what_is_wrong(call: Call, name: str) -> None:
    make, message = DAMAGED[name]
    good = write_lines("good.jsonl", plain_rows([True] * 3))
    code, out, err = call("verdict", make(), good, "--gate")
    assert code == 1, out + err
    lines = [line for line in err.splitlines() if line]
    assert len(lines) == 1, err
    assert lines[0].startswith("error: ")
    assert message in lines[0]
    assert not FOLDER.exists() or not any(FOLDER.iterdir()), "nothing is written"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["good.jsonl"], "got one evaluation log, good.jsonl"),
        (["good.jsonl", "smollm2"], "expected two evaluation logs, or two checkpoints"),
        (["good.jsonl", "good.jsonl", "--eval", "good.jsonl"], "got --eval. A log was measured already"),
        (["good.jsonl", "good.jsonl", "--items", "9"], "got --items"),
        (["good.jsonl", "good.jsonl", "--until-decided"], "got --until-decided"),
        (["good.jsonl", "good.jsonl", "--grader", "summ=score"], "Nearest: sum."),
        (["good.jsonl", "good.jsonl", "--grader", "sum=scores"], "metric of task sum (--grader)"),
        (["good.jsonl", "good.jsonl", "--protect", "summ"], "task or TASK@LEVEL of the logs (--protect)"),
        (["good.jsonl", "good.jsonl", "--sampled"], "expected logs of sampled answers with --sampled"),
        (["good.jsonl", "other.jsonl"], "no task in both (sum; other). Evaluate both models in the same way"),
        (["parts.jsonl", "parts.jsonl"], "name its worst and best score"),
        (["good.jsonl", "missing.jsonl"], "missing.jsonl: expected an evaluation log, or a model, got nothing there"),
    ],
)
def test_options_and_logs_that_do_not_go_together_are_refused(call: Call, arguments: list[str], message: str) -> None:
    write_lines("good.jsonl", plain_rows([True] * 12))
    write_lines("other.jsonl", plain_rows([True] * 12, task="other"))
    write_lines("parts.jsonl", [row | {"score": 63} for row in plain_rows([True] * 12)])
    code, _, err = call("verdict", *arguments, "--no-gate")
    assert code == 1
    assert message in err
    assert not FOLDER.exists()


@pytest.mark.parametrize("name", ["log.jsonl", "log.json", "log.txt", "log.jsonl.gz", "log"])
@pytest.mark.parametrize("form", ["lines", "list", "gzip", "parquet"])
def test_a_log_is_known_by_what_it_holds_whatever_it_is_called(call: Call, name: str, form: str) -> None:
    rows, table = plain_rows([True, False]), io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), table)
    lines = Path(write_lines("lines", rows)).read_bytes()
    forms = {"list": json.dumps(rows, indent=1).encode(), "gzip": gzip.compress(lines), "parquet": table.getvalue()}
    Path(name).write_bytes(forms.get(form, lines))
    code, out, err = call("measure", name)
    is_gzip_alone = name.endswith(".gz") and form in ("lines", "list")
    assert (code, "a complete compressed file" in err) == ((1, True) if is_gzip_alone else (0, False)), out + err


def test_a_results_file_in_the_place_of_rows_is_called_one_object(call: Call) -> None:
    Path("results.json").write_text(json.dumps({"config_general": {}, "results": {}}, indent=1))
    assert "got results of lighteval without the answers" in call("measure", "results.json")[2]
    assert "got one object over several lines, with config_general, results" in call("diagnose", "results.json")[2]


def test_names_that_are_not_utf_8(call: Call) -> None:
    task = Path(os.fsdecode(b"samples_\xe9_2026-08-01T10-00-00.1.jsonl"))
    Path(lm_eval()()).rename(task)
    code, _, err = call("measure", str(task))
    assert (code, "expected file names and texts in UTF-8" in err) == (1, True)


def test_a_task_may_hold_the_mark_of_options(call: Call) -> None:
    log = write_lines("log.jsonl", [row for task in ("x", "x=y") for row in plain_rows([True] * 200, task=task)])
    code, _, err = call("verdict", log, log, "--protect", "x=y", "--grader", "x=y=score", "--grader", "x=score")
    assert code == 0, err


def test_measure_refuses_a_folder_for_a_log(call: Call) -> None:
    write_lines("good.jsonl", plain_rows([True] * 12))
    assert "an evaluation log without --folder" in call("measure", "good.jsonl", "--folder", "out")[2]


def test_text_of_a_log_moves_no_cursor(call: Call) -> None:
    rows = plain_rows([True] * 12, task="su\x1b[2Jm")
    log = write_lines("log.jsonl", [one | {"completion": "<script>\x1b[31m"} for one in rows])
    code, out, err = call("verdict", log, log, "--no-gate")
    assert code == 0
    assert "\x1b" not in out + err
    assert "<script>\x1b" not in (FOLDER / "verdict.html").read_text(encoding="utf-8")
