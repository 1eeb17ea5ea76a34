"""Logs of lm-evaluation-harness in, verdict out; rows have the form that its `evaluation_tracker.py` writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_call import Call
from log_rows import FOLDER, notes, success, write_lines

from mixwright.answers.table import Answers
from mixwright.logs.lm_eval import read_lm_eval
from mixwright.logs.metrics import choose_metric
from mixwright.logs.reading import find_reader, read_log
from mixwright.run.folder import RunFolder, read_measurements

DATE, OTHER_DATE = "2026-08-01T10-00-00.123456", "2026-08-02T11-30-00.654321"
GREEDY = {"until": ["Question:"], "do_sample": False, "temperature": 0.0}


def written(right: Sequence[bool], *, shots: str = "", settings: dict[str, Any] = GREEDY) -> list[dict[str, Any]]:
    """GSM8K: two filters, so two lines per document; the strict one finds no answer where `####` is missing."""
    rows = []
    for name in ("strict-match", "flexible-extract"):
        for doc, hit in enumerate(right):
            found = str(doc + 2) if hit else "0"
            rows.append(
                {
                    "doc_id": doc,
                    "doc": {"question": f"{doc}+2?", "answer": f"so #### {doc + 2}"},
                    "target": f"so #### {doc + 2}",
                    "arguments": {"gen_args_0": {"arg_0": f"{shots}Question: {doc}+2?\nAnswer:", "arg_1": settings}},
                    "resps": [[f"It is {found}. #### {found}"]],
                    "filtered_resps": [found],
                    "filter": name,
                    "metrics": ["exact_match"],
                    "doc_hash": f"d{doc}",
                    "prompt_hash": f"p{doc}",
                    "target_hash": f"t{doc}",
                    "exact_match": float(hit),
                }
            )
    return rows


OPTIONS = ("red", "green", "dark blue")


def chosen(places: Sequence[int], golds: Sequence[int]) -> list[dict[str, Any]]:
    """Multiple choice: log-probabilities of the options, the chosen one's the largest; texts, as logs have them."""
    rows = []
    for doc, (place, gold) in enumerate(zip(places, golds, strict=True)):
        pairs = [[str(-1.0 if n == place else -3.0 - n), "False"] for n in range(len(OPTIONS))]
        requests = [[f"Which colour is {doc}?", f" {text}"] for text in OPTIONS]
        named = {f"gen_args_{n}": {"arg_0": ask, "arg_1": text} for n, (ask, text) in enumerate(requests)}
        row = {
            "doc_id": doc,
            "doc": {"question": doc},
            "target": str(gold),
            "arguments": named,
            "resps": [[pair] for pair in pairs],
            "filtered_resps": pairs,
            "doc_hash": f"d{doc}",
            "prompt_hash": f"p{doc}",
            "target_hash": f"t{doc}",
            "acc": float(place == gold),
            "acc_norm": float(place == gold),
        }
        rows.append(row | {"filter": "none", "metrics": ["acc", "acc_norm"]})
    return rows


def results(tasks: dict[str, dict[str, Any]], shots: int = 5, version: float = 3.0) -> dict[str, Any]:
    """The file beside the samples."""
    return {
        "results": {task: {"alias": task, **metrics} for task, metrics in tasks.items()},
        "configs": {task: {"task": task} for task in tasks},
        "versions": dict.fromkeys(tasks, version),
        "n-shot": dict.fromkeys(tasks, shots),
        "higher_is_better": {task: {name.partition(",")[0]: True for name in metrics} for task, metrics in tasks.items()},
        "model_name": "org/small",
    }


GSM8K = {"gsm8k": {"exact_match,strict-match": 0.5, "exact_match,flexible-extract": 0.5}}


def logged(folder: str, samples: dict[str, list[dict[str, Any]]], found: dict[str, Any] | None, date: str = DATE) -> str:
    """A folder as `--output_path FOLDER` leaves it."""
    for task, rows in samples.items():
        write_lines(f"{folder}/org__small/samples_{task}_{date}.jsonl", rows)
    if found is not None:
        Path(f"{folder}/org__small/results_{date}.json").write_text(json.dumps(found, indent=2), encoding="utf-8")
    return folder


def test_written_answers_are_judged_by_the_first_filter(call: Call) -> None:
    before = logged("before", {"gsm8k": written([True] * 20)}, results(GSM8K))
    after = logged("after", {"gsm8k": written([True] * 11 + [False] * 9)}, results(GSM8K), OTHER_DATE)
    code, out, err = call("verdict", before, after, "--protect", "gsm8k")
    assert code == 3, out + err
    assert "gsm8k: 20 items, judged by exact_match,strict-match (also in the logs: exact_match,flexible-extract)" in err
    old, new = success()
    assert (sum(old.values()), sum(new.values())) == (20.0, 11.0)
    assert out.startswith("DO NOT SHIP after. It lost gsm8k")
    value = {row.name: row.value for row in read_measurements(RunFolder(FOLDER).measurements("before"))}
    assert value["greedy.dependence"] == pytest.approx(1.0), "every answer is another one, and right"
    assert Answers.read(RunFolder(FOLDER).answers("before")).first_rows()


def test_another_metric_can_be_named(call: Call) -> None:
    rows = [row | {"exact_match": float(row["filter"] != "strict-match")} for row in written([True] * 12)]
    before, after = (logged(name, {"gsm8k": rows}, results(GSM8K)) for name in ("before", "after"))
    assert call("verdict", before, after, "--grader", "gsm8k=exact_match,flexible-extract", "--no-gate")[0] == 0
    assert set(success()[0].values()) == {1.0}


def test_the_name_of_a_group_protects_its_tasks(call: Call) -> None:
    """Groups within groups, as MMLU's; a task beside them that was lost decides nothing."""
    tasks = {name: {"exact_match,strict-match": 0.5} for name in ("law", "logic", "poems")}
    found = results(tasks) | {"group_subtasks": {"mmlu": ["humanities"], "humanities": ["law", "logic"], "law": []}}
    for name, poems in (("before", True), ("after", False)):
        samples = {task: written([True] * 90) for task in ("law", "logic")} | {"poems": written([poems] * 90)}
        logged(name, samples, found)
    code, out, _ = call("verdict", "before", "after", "--protect", "mmlu", "--json")
    assert code == 0
    assert {one["task"] for one in json.loads(out)["tasks"] if one["protected"]} == {"law", "logic"}
    code, _, err = call("verdict", "before", "after", "--protect", "sciences")
    assert code == 1
    assert "sciences" in err


def test_options_are_answers_by_their_place(call: Call) -> None:
    """BEFORE finds each colour, which is right for 9 of the 29 other prompts, too; AFTER always takes the first option."""
    golds = [n % 3 for n in range(30)]
    names = {"colours": {"acc,none": 1.0, "acc_norm,none": 1.0}}
    before = logged("before", {"colours": chosen(golds, golds)}, results(names))
    after = logged("after", {"colours": chosen([0] * 30, golds)}, results(names))
    assert call("verdict", before, after, "--protect", "colours")[0] == 3
    for when, success_, dependence in (("before", 1.0, 20 / 29), ("after", 1 / 3, 0.0)):
        rows = read_measurements(RunFolder(FOLDER).measurements(when))
        value = {row.name: row.value for row in rows}
        assert value["greedy"] == pytest.approx(success_)
        assert value["greedy.dependence"] == pytest.approx(dependence, abs=1e-9)
        assert value["chance"] >= 1 / 3 - 1e-9
    assert not Answers.read(RunFolder(FOLDER).answers("before")).first_rows(), "nothing was written"


def test_what_a_line_says_is_read(tmp_path: Path) -> None:
    path = write_lines(tmp_path / f"samples_colours_{DATE}.jsonl", chosen([2, 0], [2, 1]))
    log = read_lm_eval(path)
    first, second = log.answers
    assert (first.task, first.item, first.scores) == ("colours", "0", {"acc,none": 1.0, "acc_norm,none": 1.0})
    assert (first.gold, first.options) == ("dark blue", OPTIONS)
    assert (second.gold, second.readings["acc,none"]) == ("green", "red")
    assert first.prompt == "Which colour is 0?"
    assert log.tasks["colours"].sampled is False


def test_length_decides_by_its_own_metric(tmp_path: Path) -> None:
    """-2.9 for `red` is likelier than -3 for `dark blue`, but not per character."""
    (row,) = chosen([0], [2])
    row["filtered_resps"] = [["-2.9", "False"], ["-9.0", "False"], ["-3.0", "False"]]
    (answer,) = read_lm_eval(write_lines(tmp_path / "samples.jsonl", [row])).answers
    assert answer.readings == {"acc,none": "red", "acc_norm,none": "dark blue"}


def test_samples_that_were_made_a_table_are_read_alike(tmp_path: Path) -> None:
    """As the viewer of a hub makes them: a question of two options has null for the third."""
    rows = chosen([2, 0], [2, 1])
    rows[1]["arguments"].pop("gen_args_2")
    rows[1]["filtered_resps"].pop()
    lines, table = write_lines(tmp_path / "samples.jsonl", rows), str(tmp_path / "samples.parquet")
    pq.write_table(pa.Table.from_pylist(rows), table)
    assert find_reader(table) is read_lm_eval
    one, other = read_lm_eval(lines), read_lm_eval(table)
    assert [(a.item, a.scores, a.prompt, a.options) for a in one.answers] == [
        (a.item, a.scores, a.prompt, a.options) for a in other.answers
    ]


def test_halves_of_characters_are_mended(call: Call) -> None:
    """A completion that ends within a character, which JSON can hold; each half reads as a question mark."""
    rows = [row | {"resps": [["It is \ud83d"]], "filtered_resps": ["\ud83d"]} for row in written([False] * 12)]
    before, after = logged("before", {"gsm8k": written([True] * 12)}, None), logged("after", {"gsm8k": rows}, None)
    code, _, err = call("verdict", before, after, "--full", "--no-gate")
    assert code == 0, err
    assert {row["completion"] for row in Answers.read(RunFolder(FOLDER).answers("after")).first_rows()} == {"It is ?"}


def test_ifeval_has_a_metric_of_prompts_and_one_of_instructions(tmp_path: Path) -> None:
    rows = [row | {"prompt_level_strict_acc": True, "inst_level_strict_acc": [True, False]} for row in written([True])[:1]]
    rows = [row | {"metrics": ["inst_level_strict_acc", "prompt_level_strict_acc"], "filter": "none"} for row in rows]
    log = read_lm_eval(write_lines(tmp_path / "samples.jsonl", rows))
    assert log.answers[0].scores == {"prompt_level_strict_acc,none": 1.0, "inst_level_strict_acc,none": None}
    assert log.tasks["samples"].unread_value_by_metric == {"inst_level_strict_acc,none": "a list of 2"}
    choice = choose_metric([log.tasks["samples"]], [log.answers])
    assert choice.metric == "prompt_level_strict_acc,none"


def test_few_shot_examples_that_differ_set_the_task_apart(call: Call) -> None:
    golds = [n % 3 for n in range(30)]
    names = {"colours": {"acc,none": 1.0}}
    before = logged("before", {"gsm8k": written([True] * 20), "colours": chosen(golds, golds)}, results(GSM8K | names))
    files = {"gsm8k": written([True] * 20, shots="Question: 1+1?\nAnswer: 2\n\n"), "colours": chosen(golds, golds)}
    found = results(GSM8K | names)
    found["n-shot"]["gsm8k"] = 0
    after = logged("after", files, found)
    code, out, err = call("verdict", before, after, "--gate")
    assert code == 4, out
    assert "gsm8k: the two runs differ: few-shot examples: 5 before, 0 after" in err
    assert call("verdict", before, after, "--protect", "gsm8k")[0] == 4
    assert {name.partition("/")[0] for name in success()[1]} == {"colours"}


def test_prompts_that_differ_are_seen_without_a_results_file(call: Call) -> None:
    before = logged("before", {"gsm8k": written([True] * 20)}, None)
    after = logged("after", {"gsm8k": written([True] * 20, shots="Question: 1+1?\nAnswer: 2\n\n")}, None)
    code, _, err = call("verdict", before, after, "--no-gate")
    assert code == 1
    assert "items with another prompt in AFTER: 20" in err


def test_decoding_that_differs_sets_the_task_apart(call: Call) -> None:
    before = logged("before", {"gsm8k": written([True] * 20)}, None)
    drawn = GREEDY | {"do_sample": True, "temperature": 0.7}
    after = logged("after", {"gsm8k": written([True] * 20, settings=drawn)}, None)
    code, _, err = call("verdict", before, after, "--no-gate")
    assert code == 1
    assert "generation temperature: 0.0 before, 0.7 after" in err


def test_perplexity_is_named_and_not_judged(call: Call) -> None:
    rows = [
        {**row, "metrics": ["word_perplexity"], "word_perplexity": [-30.5, 12], "filter": "none"}
        for row in written([True] * 9)[:9]
    ]
    golds = [n % 3 for n in range(12)]
    files = {"wikitext": rows, "colours": chosen(golds, golds)}
    before, after = (logged(name, files, None) for name in ("before", "after"))
    code, _, err = call("verdict", before, after, "--no-gate")
    assert code == 0
    assert "wikitext: cannot be judged: word_perplexity,none has a list of 2 per answer, which is not success" in err


def test_a_results_file_stands_for_the_samples_of_its_date(tmp_path: Path) -> None:
    folder = logged(str(tmp_path / "out"), {"gsm8k": written([True] * 3)}, results(GSM8K))
    logged(folder, {"gsm8k": written([False] * 3)}, results(GSM8K), OTHER_DATE)
    with pytest.raises(Exception, match="expected one log of each task, got task 'gsm8k' in samples_gsm8k_2026"):
        read_log(folder)
    log = read_log(f"{folder}/org__small/results_{OTHER_DATE}.json")
    assert {answer.scores["exact_match,strict-match"] for answer in log.answers} == {0.0}
    assert (log.model, log.tasks["gsm8k"].settings["few-shot examples"]) == ("org/small", "5")


def test_notes_name_every_metric(call: Call) -> None:
    before, after = (logged(name, {"gsm8k": written([True] * 12)}, None) for name in ("before", "after"))
    assert call("verdict", before, after, "--no-gate")[0] == 0
    assert any("also in the logs: exact_match,strict-match" in note.message for note in notes()), "by name, without results"


def test_samples_that_were_cut_are_named_and_block(call: Call) -> None:
    """The results file says how many items were judged; a file of samples with fewer is no whole evaluation."""
    found = results(GSM8K) | {"n-samples": {"gsm8k": {"original": 200, "effective": 100}}}
    before, after = (logged(name, {"gsm8k": written([True] * 60)}, found) for name in ("before", "after"))
    code, _, err = call("measure", before)
    assert (code, "warning: gsm8k: the log has 60 of the 100 items that the harness counted" in err) == (0, True)
    code, _, err = call("verdict", before, after, "--margin", "30", "--protect", "gsm8k")
    assert "gsm8k: BEFORE has 60 of the 100 items that the harness counted" in err
    whole = results(GSM8K) | {"n-samples": {"gsm8k": {"original": 200, "effective": 60}}}
    assert "harness counted" not in call("measure", logged("whole", {"gsm8k": written([True] * 60)}, whole))[2]


def test_a_pointer_of_git_lfs_is_called_by_its_name(call: Call) -> None:
    Path(f"samples_gsm8k_{DATE}.jsonl").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 3\n")
    for arguments in (("measure", f"samples_gsm8k_{DATE}.jsonl"), ("audit", f"samples_gsm8k_{DATE}.jsonl")):
        code, _, err = call(*arguments)
        assert (code, "got a Git LFS pointer. Fetch the file: git lfs pull." in err) == (1, True)
