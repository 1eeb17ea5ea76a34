"""An accepted baseline: what moves is refused by name, and only a model that passes, or is waved through, replaces it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_call import Call, write
from trainers_tiny import model, tokenizer

FILE = ("--baseline", "base.json")


def log(name: str, *, lost: int = 10**9, count: int = 1600) -> str:
    """A log in which two of three answers are right, but every `lost`-th is wrong."""
    right = [n % 3 > 0 and n % lost > 0 for n in range(count)]
    rows = [{"task": f"t{n % 2}", "id": n, "prompt": f"q{n}", "score": float(right[n])} for n in range(count)]
    return write(name, rows)


def test_only_what_passes_becomes_the_baseline_or_what_is_waved_through(call: Call) -> None:
    old, new, worse = log("old.jsonl"), log("new.jsonl", lost=601), log("worse.jsonl", lost=4)
    code, _, err = call("verdict", old, new, *FILE)
    assert (code, "add --bless" in err, Path("runs").exists()) == (1, True, False)
    assert call("verdict", old, worse, *FILE, "--bless")[0] == 3
    assert not Path("base.json").exists()
    assert call("verdict", old, new, *FILE, "--bless")[0] == 0
    kept = Path("base.json").read_text()
    assert json.loads(kept)["model"] == "new.jsonl"
    assert call("verdict", new, worse, *FILE, "--bless")[0] == 3
    few = log("few.jsonl", count=60)
    assert call("verdict", new, few, *FILE, "--bless", "--cannot-tell", "warn")[0] == 1, "a weaker gate than was accepted"
    assert Path("base.json").read_text() == kept
    assert call("verdict", new, worse, *FILE, "--bless", "--no-gate")[0] == 0
    assert json.loads(Path("base.json").read_text())["success"]["t0"] < json.loads(kept)["success"]["t0"]


def test_a_baseline_that_moved_is_refused_before_it_judges(call: Call) -> None:
    old, new = log("old.jsonl"), log("new.jsonl", lost=601)
    assert call("verdict", old, new, *FILE, "--bless")[0] == 0
    renamed = str(Path(new).rename("renamed.jsonl"))
    assert call("verdict", renamed, log("again.jsonl", lost=601), *FILE)[0] == 0, "a name decides nothing"
    log(renamed, lost=5)
    code, _, err = call("verdict", renamed, "again.jsonl", *FILE)
    assert (code, "as new.jsonl was accepted on" in err) == (1, True)
    assert not Path("runs/comparison/verdict.json").exists()
    code, _, err = call("verdict", "again.jsonl", "again.jsonl", *FILE, "--margin", "20")
    assert (code, "expected --margin: not given, as" in err) == (1, True)


@pytest.mark.parametrize("text", ["{", "[]", '{"model": 1}', "{}"])
def test_a_broken_file_is_an_error_and_stays(text: str, call: Call) -> None:
    Path("base.json").write_text(text)
    code, _, err = call("verdict", log("old.jsonl"), log("new.jsonl"), *FILE, "--bless")
    assert (code, err.startswith("error: base.json")) == (1, True), err
    assert Path("base.json").read_text() == text


def test_it_needs_a_file_of_its_own_and_two_models(call: Call) -> None:
    old, new = log("old.jsonl"), log("new.jsonl")
    assert call("verdict", old, new, "--bless")[0] == 1
    assert call("verdict", old, new, "--bless", "--baseline", old)[0] == 1
    Path("folder").mkdir()
    assert call("verdict", old, new, "--bless", "--baseline", "folder")[0] == 1
    assert call("verdict", old, new)[0] == 0
    assert call("verdict", "runs/comparison", "--bless", *FILE)[0] == 1


def test_items_graders_templates_and_parameters_of_checkpoints_are_compared(call: Call) -> None:
    for seed, name in enumerate(("first", "second")):
        model(seed).save_pretrained(name)
        tokenizer().save_pretrained(name)
    rows = [{"prompt": f"Say {n}", "answer": str(n)} for n in range(8)]
    Path("own.py").write_text("def grade(text, answer, **row):\n    return 0.0\n")
    write("rows.jsonl", rows)
    options = (
        "--eval",
        "rows.jsonl",
        "--grader",
        "own:grade",
        "--no-suite",
        "--max-new-tokens",
        "2",
        "--samples",
        "0",
        *FILE,
    )
    code, _, err = call("verdict", "first", "second", *options, "--bless", "--no-gate")
    assert code == 0, err
    assert call("verdict", "second", "first", *options)[0] == 4
    code, _, err = call("verdict", "first", "second", *options)
    assert (code, "expected BEFORE: " in err) == (1, True)
    Path("own.py").write_text("def grade(text, answer, **row):\n    return 1.0\n")
    code, _, err = call("verdict", "second", "first", *options)
    assert (code, "grader own:grade: " in err) == (1, True)
    Path("own.py").write_text("def grade(text, answer, **row):\n    return 0.0\n")
    write("rows.jsonl", rows[1:])
    code, _, err = call("verdict", "second", "first", *options)
    assert (code, "--eval: " in err) == (1, True)
    write("rows.jsonl", rows)
    changed = tokenizer()
    changed.chat_template = "{% for message in messages %}{{ message['content'] }}!{% endfor %}"
    changed.save_pretrained("second")
    code, _, err = call("verdict", "second", "first", *options)
    assert (code, "expected BEFORE: " in err) == (1, True)
