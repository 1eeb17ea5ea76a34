"""Answers that a log did not score, or scored by one metric alone, do not open the gate, and are counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_call import Call
from log_rows import write_lines
from test_logs_inspect import log, sample, write_eval
from test_logs_lm_eval import DATE, GSM8K, OTHER_DATE, logged, results, written

GATE = ("--protect",)


def test_wrong_answers_that_were_not_scored_do_not_pass_as_a_gain(call: Call) -> None:
    """Three of four right before; after, the three others of each item have no score, and the first is right."""
    rows = {when: [] for when in ("before", "after")}
    for item in range(200):
        for number in range(4):
            rows["before"].append({"task": "sum", "id": item, "sample": number, "score": int(number < 3)})
            rows["after"].append({"task": "sum", "id": item, "sample": number, "score": 1 if number == 0 else None})
    before, after = (write_lines(f"{when}.jsonl", lines) for when, lines in rows.items())
    code, out, err = call("verdict", before, after, *GATE, "sum")
    assert code == 4, out + err
    assert "answers without score after: 600 of 800, although other answers to the same items have it" in err
    _, _, told = call("measure", after)
    assert "warning: sum: 600 answers have no score" in told


def test_measure_counts_items_without_a_score(call: Call) -> None:
    lines = [{"task": "t", "id": n, "score": 1 if n < 10 else None} for n in range(30)]
    code, _, err = call("measure", write_lines("a.jsonl", lines))
    assert (
        code,
        "warning: t: 20 answers have no score" in err,
    ) == (
        0,
        True,
    )


def test_one_bad_value_does_not_change_the_metric_unseen(call: Call) -> None:
    """By the strict filter half of the answers was lost; one of its values is no number, and the other filter lost none."""
    before = logged("before", {"gsm8k": written([True] * 200)}, results(GSM8K))
    rows = written([True] * 200)
    strict = [row for row in rows if row["filter"] == "strict-match"]
    for row in strict[:100]:
        row["exact_match"] = 0.0
    strict[150]["exact_match"] = "n/a"
    code, out, err = call("verdict", before, logged("after", {"gsm8k": rows}, results(GSM8K), OTHER_DATE), *GATE, "gsm8k")
    assert code == 4, out + err
    assert "BEFORE alone would be judged by exact_match,strict-match, which" in err
    assert "judged by exact_match,flexible-extract instead" in err


def test_a_metric_of_a_few_answers_is_not_taken_for_one_of_all(call: Call) -> None:
    """The first scorer saw twenty of two hundred samples, all right; by the other half of them were lost."""
    both = [sample(n, "C") for n in range(200)], [sample(n, "C" if n < 100 else "I") for n in range(200)]
    for samples in both:
        for one in samples[:20]:
            one["scores"] = {"alpha": {"value": "C"}, **one["scores"]}
    scores = [{"name": name, "scorer": name, "metrics": {"mean": {"value": 1}}} for name in ("alpha", "match")]
    before, after = (
        write_eval(f"{name}.eval", log(samples, results={"total_samples": 200, "scores": scores}))
        for name, samples in zip(("before", "after"), both, strict=True)
    )
    assert call("verdict", before, after, *GATE, "arithmetic")[0] == 3


@pytest.mark.parametrize("epochs", [1, 2])
def test_samples_that_inspect_counted_and_the_log_lacks_keep_the_gate_from_passing(call: Call, epochs: int) -> None:
    samples = [sample(n, "C", epoch=epoch + 1) for n in range(200) for epoch in range(epochs)]
    whole = log(samples, results={"total_samples": 400 * epochs, "scores": [{"name": "match", "metrics": {}}]})
    whole["eval"]["config"]["epochs"] = epochs
    before, after = write_eval("before.eval", whole), write_eval("after.eval", whole)
    code, out, err = call("verdict", before, after, *GATE, "arithmetic")
    assert code == 4, out + err
    assert "AFTER has 200 of the 400 items that the harness counted" in err


def test_a_completion_may_be_json(call: Call) -> None:
    lines = [{"prompt": '{"ask": 1}', "completion": f'{{"answer": {n}}}', "reward": n % 2} for n in range(8)]
    code, out, err = call("diagnose", write_lines("r.jsonl", lines))
    assert code == 0, out + err


def test_a_text_that_is_no_number_is_none(call: Call) -> None:
    code, _, err = call("diagnose", write_lines("r.jsonl", [{"completion": "a", "reward": 1, "note": "²"}] * 8))
    assert (code, "Traceback" in err) == (0, False)


def test_a_task_some_items_of_which_have_levels_is_measured_as_a_whole(call: Call) -> None:
    """Three of four are right, all three at level 1."""
    lines = [{"task": "t", "id": n, "score": int(n > 0)} | ({"level": 1} if n else {}) for n in range(4)]
    code, out, err = call("measure", write_lines("a.jsonl", lines), "--json")
    assert code == 0, err
    rows = [row for row in json.loads(out)["measurements"] if row["name"] == "greedy" and not row.get("example")]
    assert {(row["level"], row["value"], row["n"]) for row in rows} == {(None, 0.75, 4), (1.0, 1.0, 3)}


def test_another_file_of_the_date_is_no_results_file(call: Call) -> None:
    """Examples in the prompt differ by the results file, beside a file of settings of the same date."""
    before = logged("before", {"gsm8k": written([True] * 20)}, results(GSM8K, shots=5))
    after = logged("after", {"gsm8k": written([True] * 20)}, results(GSM8K, shots=0), OTHER_DATE)
    for folder, date in ((before, DATE), (after, OTHER_DATE)):
        Path(f"{folder}/org__small/config_{date}.json").write_text("{}", encoding="utf-8")
    _, out, err = call("verdict", before, after, *GATE, "gsm8k")
    assert "the two runs differ" in out + err
