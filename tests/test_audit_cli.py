"""The audit on the command line: its exit code for scripts, and tables that stay short however many tasks there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_call import Call, sums, write

from mixwright.audit.stage import complaints
from mixwright.cli.output import MAX_OBSERVATIONS, worst_of
from mixwright.records import Observation
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


def test_without_being_asked_it_is_fine_and_an_unknown_word_is_not(call: Call) -> None:
    train, held_out = write("train.jsonl", sums()), write("eval.jsonl", sums(10))
    assert call("audit", train, "--eval", held_out)[0] == 0
    assert call("audit", train, "--fail-on", "always")[0] == 1


def test_a_table_shows_200_tasks_and_counts_the_others(call: Call) -> None:
    rows = [{"task": f"t{n:03}", "prompt": f"q {n} {m}", "answer": str(m)} for n in range(230) for m in range(2)]
    code, out, _ = call("audit", write("many.jsonl", rows), "--check", "frequency", "--full")
    lines = [line for line in out.splitlines() if line.strip().startswith("info")]
    assert (code, len(lines)) == (0, 200)
    assert "30 more tasks: 30 info; all of them: --json" in out
    _, every, _ = call("audit", "many.jsonl", "--check", "frequency", "--json")
    assert every.count('"severity": "info"') == 230


def test_the_table_fits_a_screen_and_begins_with_the_worst(call: Call) -> None:
    rows = [{"task": f"t{n:03}", "prompt": f"q {n} {m}", "answer": str(m)} for n in range(50) for m in range(2)]
    rows += [{"task": "t000", "prompt": "q 0 0", "answer": "0"}] * 3
    code, out, _ = call("audit", write("many.jsonl", rows), "--check", "frequency", "--check", "duplicates")
    words = [line.split()[0] for line in out.splitlines() if line.strip().startswith(("info", "warning", "error"))]
    assert code == 0
    assert words[0] != "info"
    assert len(words) == MAX_OBSERVATIONS
    assert "infos more: --full" in out
    _, every, _ = call("audit", "many.jsonl", "--check", "frequency", "--check", "duplicates", "--full")
    assert every.count("duplicates") + every.count("frequency") > 30
    assert "--full" not in every
    seen = [Observation("contamination", f"t{n}", "error", 1, 2, "It leaks.", "Remove it.") for n in range(40)]
    info = Observation("frequency", "t", "info", 1, 2, "Few.", "")
    assert worst_of([info, *seen]) == (
        seen[:MAX_OBSERVATIONS],
        f"and {40 - MAX_OBSERVATIONS} errors, 1 info more: --full; as a page with all rows: --out FOLDER",
    )
    assert worst_of([info] * MAX_OBSERVATIONS) == ([info] * MAX_OBSERVATIONS, "")


def test_complaints_and_the_page_stay_short(tmp_path: Path) -> None:
    seen = [Observation("contamination", f"t{n}", "error", 1, 2, "It leaks.", "Remove it.") for n in range(450)]
    lines = complaints(seen)
    assert len(lines) == 201
    assert lines[-1] == "  250 more errors in the data: audit.json"
    table = observation_table("Audit", seen)
    assert len(table.rows) == 200
    assert f"{len(seen) - 200} more" in table.caption
