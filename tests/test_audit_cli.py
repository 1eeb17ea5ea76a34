"""The audit on the command line: its exit code for scripts, and a report that stays short however many tasks there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli_call import Call, sums, write

from mixwright.audit.findings import worst_first
from mixwright.audit.stage import complaints
from mixwright.records import Observation
from mixwright.verbs.report import MAX_LINES, findings
from mixwright.verdict.page.page import observation_table


@pytest.mark.parametrize(
    ("rows", "fail_on", "code"),
    [
        ("leaked", "error", 3),
        ("leaked", "warning", 3),
        ("leaked", "never", 0),
        ("clean", "error", 0),
        ("repeated", "error", 0),
        ("repeated", "warning", 3),
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_exit_code_is_asked_for(call: Call, rows: str, fail_on: str, code: int, form: list[str]) -> None:
    data = [{"task": "t", "prompt": f"Name {n}: what is {n * 7919} times {n + 31}?", "answer": str(n)} for n in range(60)]
    train = write("train.jsonl", data[:40] + (data[:30] if rows == "repeated" else []))
    held_out = write("eval.jsonl", data[5:15] if rows == "leaked" else data[40:])
    found = call(
        "audit", train, "--eval", held_out, "--fail-on", fail_on, "--check", "duplicates", "--check", "contamination", *form
    )
    assert found[0] == code, found[1]
    assert found[1]
    if rows == "leaked":  # what --fix takes out fails nobody
        found = call("audit", train, "--eval", held_out, "--fail-on", fail_on, "--fix", "clean.jsonl", *form)
        assert found[0] == 0, found[1]


def test_without_being_asked_it_is_fine_and_an_unknown_word_is_not(call: Call) -> None:
    train, held_out = write("train.jsonl", sums()), write("eval.jsonl", sums(10))
    assert call("audit", train, "--eval", held_out)[0] == 0
    assert call("audit", train, "--fail-on", "always")[0] == 1


def test_the_report_fits_a_screen_and_begins_with_the_worst(call: Call) -> None:
    rows = [{"task": f"t{n:03}", "prompt": f"q {n} {m}", "answer": str(m)} for n in range(230) for m in range(2)]
    rows += [{"task": "t000", "prompt": f"q 0 {m}", "answer": "word " * 300} for m in range(2, 5)]
    asked = ("audit", write("many.jsonl", rows), "--check", "frequency", "--check", "duplicates")
    code, out, _ = call(*asked)
    words = [line.split()[:2] for line in out.splitlines() if line.startswith(("  FIX ", "  look ", "  note "))]
    assert (code, words[0]) == (0, ["look", "frequency"])
    assert not any(word == "note" for word, _ in words)
    assert len(out.splitlines()) <= MAX_LINES
    _, every, _ = call(*asked, "--full")
    assert every.count("  note  frequency (t") == 230
    assert "--full" not in every


def test_errors_come_first_and_the_others_are_counted() -> None:
    seen = [Observation("contamination", f"t{n}", "error", n, 100, "It leaks.", "Remove it.") for n in range(1, 41)]
    info = Observation("frequency", "t", "info", 1, 2, "Few.", "")
    lines = findings(worst_first([info, *seen]), ["contamination", "frequency", "formats"])
    named = [line.split("(")[1].split(")")[0] for line in lines if line.startswith("  FIX")]
    assert named == [f"t{n}" for n in range(40, 30, -1)], "the largest share first, ten at most"
    assert "30 to fix" in lines[-2]
    assert lines[-1] == "  fine  formats (1 note: --full)", "frequency only describes the rows"
    assert len(findings([info] * 30)) == 1


def test_complaints_and_the_page_stay_short(tmp_path: Path) -> None:
    seen = [Observation("contamination", f"t{n}", "error", 1, 2, "It leaks.", "Remove it.") for n in range(450)]
    (line,) = complaints(seen)
    assert "450 errors" in line
    assert complaints([]) == []
    table = observation_table("Audit", seen)
    assert len(table.rows) == 200
    assert f"{len(seen) - 200} more" in table.caption


def test_an_interrupt_says_how_to_go_on(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mixwright.verbs.audit.read_corpus", interrupted)
    code, out, err = call("audit", write("rows.jsonl", [{"prompt": "a", "answer": "b"}]))
    assert (code, out.strip()) == (130, "")
    assert err.endswith("interrupted: the same command goes on with what it has kept\n")
