"""Folders of logs: what of them is not read is named or refused, and the gate does not pass over it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_call import Call
from log_rows import notes, write_lines
from test_logs_inspect import log, sample, write_eval, write_json
from test_logs_lighteval import details
from test_logs_lighteval import written as lighteval_rows
from test_logs_lm_eval import DATE, GSM8K, chosen, logged, results, written

from mixwright.corpus.reading import LFS_POINTER
from mixwright.logs.files import list_files
from mixwright.logs.reading import read_log

GSM8K_ROWS = written([True] * 400)
COLOURS = chosen([0] * 12, [0] * 12)


def lm_eval_folders(second: Callable[[Path], object], found: dict[str, Any] | None = None) -> None:
    """A good task before and after, and another one whose file is changed."""
    for folder in ("before", "after"):
        logged(folder, {"gsm8k": GSM8K_ROWS, "colours": COLOURS}, found)
        second(Path(folder, "org__small", f"samples_colours_{DATE}.jsonl"))


def test_every_task_that_was_read_lets_the_gate_pass(call: Call) -> None:
    lm_eval_folders(Path.unlink, results(GSM8K))
    Path("before/results_summary.json").write_text("[]")
    code, out, err = call("verdict", "before", "after", "--gate")
    assert code == 0, out + err


@pytest.mark.parametrize(
    "name", ["samples_colours.jsonl", f"samples_colours_{DATE}.JSONL", "samples_colours_2026-08-01T10:00:00.jsonl"]
)
def test_a_file_of_samples_with_another_name_is_named_and_blocks(call: Call, name: str) -> None:
    lm_eval_folders(lambda path: path.rename(path.with_name(name)))
    code, out, err = call("verdict", "before", "after", "--gate")
    assert code == 4, out + err
    message = f"{name}: BEFORE has this file, which contains a log but was not read"
    assert message in err
    assert message in [note.message for note in notes()]
    assert f"warning: {name}: the log has this file" in call("measure", "before")[2]


def test_lightevals_results_of_a_task_without_details_block(call: Call) -> None:
    for folder in ("before", "after"):
        details(folder, {"gsm8k|0": lighteval_rows([True] * 400)}, {"model_name": "m"})
    (path,) = Path("before").rglob("results_*.json")
    found = json.loads(path.read_text())
    means = {"all": {}, "mmlu:_average|0": {}, "gsm8k|0": {}}
    path.write_text(json.dumps(found | {"results": means}))
    code, out, err = call("verdict", "before", "after", "--gate")
    assert code == 0, out + err
    path.write_text(json.dumps(found | {"results": means | {"bb|0": {}}}))
    code, out, err = call("verdict", "before", "after", "--folder", "again")
    assert (code, f"bb: BEFORE has its results ({path.name}) but no details" in err) == (4, True), out + err


@pytest.mark.parametrize("name", ["mmlu.jsonl", "bb.eval"])
def test_a_log_of_another_form_beside_is_named_and_blocks(call: Call, name: str) -> None:
    lm_eval_folders(Path.unlink)
    rows = [{"task": "mmlu", "id": 1, "score": 1}]
    Path("before", "org__small", name).write_text(json.dumps(rows[0]) + "\n")
    Path("before", "org__small", "settings.json").write_text('{"batch": 8}')
    code, out, err = call("verdict", "before", "after", "--gate")
    assert code == 4, out + err
    assert f"{name}: BEFORE has this file, which contains a log but was not read" in err
    assert "settings.json" not in err


INSPECT_ROW = json.dumps(log([sample(1, "C")], task="second"))
PLAIN_ROW = json.dumps({"task": "mmlu", "id": 1, "score": 1}) + "\n"
SAMPLES_ROW = json.dumps(COLOURS[0]) + "\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bb.json~", INSPECT_ROW),
        ("bb.log", INSPECT_ROW),
        ("x.log", PLAIN_ROW),
        ("mmlu", PLAIN_ROW),
        ("colours.jsonl.bak", SAMPLES_ROW),
        (".mmlu.jsonl.Xy12ab", PLAIN_ROW),
        (f"samples_colours_{DATE}.jsonl.bak", SAMPLES_ROW),
    ],
)
@pytest.mark.parametrize("harness", ["lm-eval", "Inspect"])
def test_a_log_under_an_odd_name_is_named_and_blocks(call: Call, harness: str, name: str, text: str) -> None:
    for folder in ("before", "after"):
        if harness == "lm-eval":
            logged(folder, {"gsm8k": GSM8K_ROWS}, None)
        else:
            write_eval(f"{folder}/one.eval", log([sample(n, "C") for n in range(400)]))
    Path("before", "run.log").write_text("2026-08-01 INFO asked 400 items\n")
    assert call("verdict", "before", "after", "--gate")[0] == 0
    Path("before", name).write_text(text)
    code, out, err = call("verdict", "before", "after", "--folder", "again")
    assert code == 4, out + err
    assert f"{name}: BEFORE has this file, which " in err
    assert f"warning: {name}: the log has this file" in call("measure", "before")[2]


@pytest.mark.parametrize("task", ["bb", "arithmetic", "gsm8k"])
@pytest.mark.parametrize("samples", ["lm-evaluation-harness", "Inspect", "lighteval"])
@pytest.mark.parametrize("found", ["lm-evaluation-harness", "lighteval"])
def test_results_of_one_harness_beside_answers_of_another_block(call: Call, samples: str, found: str, task: str) -> None:
    """Even of a task of the same name: it is another evaluation, and nothing says what became of its items."""
    for folder in ("before", "after"):
        if samples == "lm-evaluation-harness":
            logged(folder, {"gsm8k": GSM8K_ROWS}, results(GSM8K))
        elif samples == "Inspect":
            write_eval(f"{folder}/one.eval", log([sample(n, "C") for n in range(400)]))
        else:
            details(folder, {"gsm8k|0": lighteval_rows([True] * 400)}, {"model_name": "m"})
    own = {"results": {task: {}}, "configs": {}} if found == "lm-evaluation-harness" else {}
    other = {"config_general": {}, "results": {"all": {}, f"{task}|0": {}}} if found == "lighteval" else own
    Path("before", "found.json").write_text(json.dumps(other))
    code, out, err = call("verdict", "before", "after", "--gate")
    if samples == found and task == "gsm8k":
        assert code == 0, out + err
        return
    assert code == 4, out + err
    by = "" if samples == found else f" by {found}"
    answers = "details" if found == "lighteval" else "samples"
    assert f"{task}: BEFORE has its results{by} (found.json) but no {answers}" in err


def test_a_task_with_results_and_no_samples_is_named_and_blocks(call: Call) -> None:
    """A group has results without samples of its own, and is no such task."""
    found = results(GSM8K | {"arc_easy": {"acc,none": 0.9}, "group": {"acc,none": 0.5}})
    lm_eval_folders(Path.unlink, found | {"group_subtasks": {"group": ["gsm8k", "arc_easy"]}})
    code, out, err = call("verdict", "before", "after", "--gate")
    assert code == 4, out + err
    assert f"arc_easy: BEFORE has its results (results_{DATE}.json) but no samples" in err
    assert "group: BEFORE" not in err
    assert "arc_easy: BEFORE has its results" in call("verdict", "before", "after", "--protect", "arc_easy")[2]
    assert dict(read_log(f"before/org__small/results_{DATE}.json").unread).keys() == {"arc_easy"}
    assert not read_log(f"before/org__small/samples_gsm8k_{DATE}.jsonl").unread, "one file was asked for"


def test_a_task_that_only_after_lists_cannot_be_lost(call: Call) -> None:
    logged("before", {"gsm8k": GSM8K_ROWS}, results(GSM8K))
    logged("after", {"gsm8k": GSM8K_ROWS}, results(GSM8K | {"arc_easy": {"acc,none": 0.9}}))
    code, _, err = call("verdict", "before", "after", "--gate")
    assert (code, "arc_easy: AFTER has its results" in err) == (0, True)


def test_links_to_folders_are_followed_once(tmp_path: Path) -> None:
    write_lines(tmp_path / "else" / f"samples_colours_{DATE}.jsonl", COLOURS)
    folder = Path(logged(str(tmp_path / "log"), {"gsm8k": written([True])}, None))
    (folder / "more").symlink_to(tmp_path / "else")
    (folder / "self").symlink_to(folder)
    assert read_log(str(folder)).tasks.keys() == {"gsm8k", "colours"}
    deep = folder.joinpath(*"0123456789", f"samples_deep_{DATE}.jsonl")
    write_lines(deep, COLOURS)
    assert deep in list_files(folder, lambda name: name == deep.name)


@pytest.mark.parametrize("second", ["Inspect", "lighteval"])
def test_logs_of_two_harnesses_in_one_folder_are_refused(call: Call, second: str) -> None:
    logged("both", {"gsm8k": written([True] * 12)}, None)
    if second == "Inspect":
        write_json("both/log.json", log([sample(1, "C")]))
    else:
        details("both", {"sums|0": lighteval_rows([True])})
    code, _, err = call("measure", "both")
    assert code == 1
    assert f"both: expected logs of one harness, got samples_gsm8k_{DATE}.jsonl and " in err


JSON_LOG = json.dumps(log([sample(1, "C")], task="second")).encode()


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("two.eval", b"", "an empty or incomplete file"),
        ("two.json", b" \n", "an empty or incomplete file"),
        ("two.eval", b"\x81\x92 junk", "contains a log but was not read"),
        ("two.json", b"<html>404</html>", "a web page"),
        ("two.eval", LFS_POINTER, "a Git LFS pointer"),
    ],
)
def test_a_damaged_log_of_inspect_among_good_ones_is_named(call: Call, name: str, data: bytes, told: str) -> None:
    write_eval("logs/one.eval", log([sample(n, "C") for n in range(12)]))
    Path("logs", name).write_bytes(data)
    code, _, err = call("measure", "logs")
    assert code == 0, err
    (line,) = [line for line in err.splitlines() if line.startswith(f"warning: {name}: the log has this file, which ")]
    assert told in line


def test_a_log_of_inspect_that_was_cut_off_is_refused(call: Call) -> None:
    write_eval("logs/one.eval", log([sample(n, "C") for n in range(12)]))
    Path("logs/two.json").write_bytes(JSON_LOG[:400])
    code, _, err = call("measure", "logs")
    assert (code, "error: logs/two.json, line 1: expected JSON" in err) == (1, True), err


def test_every_log_of_inspect_in_a_folder_is_read_or_named(call: Call) -> None:
    write_eval("logs/one.eval", log([sample(n, "C") for n in range(12)]))
    Path("logs/two.json.gz").write_bytes(gzip.compress(JSON_LOG))
    Path("logs/three.JSON").write_bytes(JSON_LOG.replace(b'"second"', b'"third"'))
    Path("logs/listing.json").write_text('{"one.eval": {"status": "success"}}')
    Path("logs/four.eval.bak").write_bytes(JSON_LOG)
    found = read_log("logs")
    assert found.tasks.keys() == {"arithmetic", "second", "third"}
    assert found.unread.keys() == {"four.eval.bak"}


def test_a_folder_of_results_alone_is_told_what_it_lacks(call: Call) -> None:
    Path("out").mkdir()
    Path(f"out/results_{DATE}.json").write_text(json.dumps(results(GSM8K)))
    assert "out: expected samples next to a results file, got none. Evaluate with --log_samples" in call("measure", "out")[2]


def test_details_with_another_name_are_named(tmp_path: Path) -> None:
    folder = details(str(tmp_path), {"sums|0": lighteval_rows([True]), "more|0": lighteval_rows([True])})
    (path,) = Path(folder).rglob("details_more*")
    path.rename(path.with_suffix(".PARQUET"))
    assert read_log(folder).unread.keys() == {path.with_suffix(".PARQUET").name}
