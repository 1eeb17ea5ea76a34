"""Reports of the verbs on a terminal: one golden report each, at most 25 lines, and nothing on stdout but the report."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from cli_call import Call, write
from verdicts import damaged

from mixwright.records import Interval, Measurement, Observation, Pull, Taught, Teaching
from mixwright.run.folder import RunFolder, write_json, write_measurements
from mixwright.verbs import plan as planning
from mixwright.verbs.report import MAX_LINES, cut, findings, table
from mixwright.verdict.stage import to_json_ready

GOLDEN = Path(__file__).parent / "golden"
HOSTILE = "t\x1b[31m\r\n\u202e"
CITIES = ["Oslo", "Rome", "Lima", "Cairo", "Quito", "Hanoi", "Accra", "Dakar", "Sofia", "Kabul"]


def dirty_files() -> tuple[str, str]:
    """Write 40 training rows, 5 of them again, and 8 test items, 3 of which are training rows."""
    rows = [
        {
            "task": "weather",
            "prompt": f"What is the weather in {city} on day {day}?",
            "completion": f"weather({city}, {day})",
        }
        for city in CITIES
        for day in range(1, 5)
    ]
    test = [{"task": "weather", "prompt": row["prompt"], "answer": row["completion"]} for row in rows[:3]]
    test += [{"task": "weather", "prompt": f"Will it snow on {day}?", "answer": f"snow({day})"} for day in CITIES[:5]]
    return write("train.jsonl", rows + rows[10:15]), write("test.jsonl", test)


def logged(tasks: int = 14, items: int = 40) -> str:
    """Write an evaluation log in which task n has n of `items` right."""
    rows = [
        {"task": f"task{task:02}", "id": f"{task}-{n}", "prompt": f"{n}?", "answer": "1", "score": int(n < task)}
        for task in range(tasks)
        for n in range(items)
    ]
    return write("log.jsonl", rows)


def rollouts() -> str:
    rows = [
        {"task": "sum", "step": group // 4, "prompt": f"{group}+1?", "completion": f"{group} is {n}", "reward": 0.0}
        for group in range(40)
        for n in range(4)
    ]
    return write("rollouts.jsonl", rows)


def settings(monkeypatch: pytest.MonkeyPatch) -> str:
    """Write settings and a measurement of three tasks, of which `old` has rows to replay; no worker starts."""
    monkeypatch.setattr(planning, "start_workers", lambda trial: nullcontext())
    monkeypatch.setattr(planning, "mine_rehearsal", lambda run, workers, say: None)
    monkeypatch.setattr(planning, "with_mined_rehearsal", lambda run, corpus: corpus)
    train = [{"task": "new", "prompt": f"new {n}", "completion": f"made {n}"} for n in range(60)]
    train += [{"task": "small", "prompt": f"small {n}", "completion": f"done {n}"} for n in range(20)]
    replay = [{"task": "old", "prompt": f"Capital number {n}?", "completion": f"City {n}"} for n in range(12)]
    corpus = {"train": write("train.jsonl", train), "rehearse": write("replay.jsonl", replay), "eval_share": 0}
    asked = {"corpus": corpus, "train": {"objective": "sft", "steps": 20, "prompts": 8}}
    Path("run.yaml").write_text(json.dumps(asked), encoding="utf-8")
    rows = [
        Measurement(
            "competence", task, "greedy", value, max(value - 0.1, 0), value + 0.1, 60, "share", null=0.0, null_of="luck"
        )
        for task, value in (("old", 0.7), ("new", 0.0), ("small", 0.0))
    ]
    write_measurements(RunFolder("runs/run").measurements("before"), rows)
    return "run.yaml"


def reviewed() -> tuple[str, ...]:
    """Write the verdict on a model that lost most tasks, an audit, and what short trainings left."""
    gain, loss = Interval(0.41, 0.3, 0.52, 40), Interval(-0.19, -0.26, -0.12, 40)
    taught = Taught("tool_calls", "skill", 96, 40, 2, 0.0, gain, gain, gain, gain)
    rows = [("tool_calls", 0.11, 0.73), ("sums", 0.89, 0.27)]
    audit = [
        Observation(
            "frequency", task, "info", 9, 99, f"{task}.", "", evidence=({"share_of_rows": n, "share_of_target_tokens": m},)
        )
        for task, n, m in rows
    ]
    text = "Where the prompt has 'not', 95 of 96 rows have the answer 'no'; of the other rows 40% have it."
    audit.append(
        Observation("cues", "sums", "warning", 95, 96, text, "Add rows with 'not' and another answer.", "dealt out")
    )
    write_json(Path("audit/observations.json"), audit)
    write_json(Path("verdict/verdict.json"), to_json_ready(damaged()))
    write_json(Path("plan/teaching.json"), Teaching(24, 8, (taught,), (Pull("tool_calls", "capitals", loss, True),)))
    return "review", "verdict", "audit", "plan"


def arguments_of(verb: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Write the files of a verb, and return its arguments."""
    if verb.startswith("audit"):
        train, test = dirty_files()
        return ("audit", train, "--eval", test, *(("--fix", "clean.jsonl") if verb == "audit_fix" else ()))
    if verb == "measure":
        return ("measure", logged())
    if verb == "plan":
        return ("plan", settings(monkeypatch))
    if verb == "review":
        return reviewed()
    if verb == "diagnose":
        return ("diagnose", rollouts())
    answered = [{"prompt": f"Is {city} a city?", "answer": f"{place}{city}"} for place, city in enumerate(CITIES)]
    return ("rewards", "planted_rewards:holds", "--eval", write("answers.jsonl", answered))


VERBS = ("audit", "audit_fix", "measure", "plan", "diagnose", "rewards", "review")


@pytest.mark.parametrize("verb", VERBS)
def test_the_report_is_the_golden_one(verb: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = call(*arguments_of(verb, monkeypatch))
    shown = re.sub(r"[\d.e-]+ ms", "N ms", out)
    assert code == 0
    assert shown == (GOLDEN / f"{verb}.txt").read_text(encoding="utf-8")
    assert len(out.splitlines()) <= MAX_LINES


@pytest.mark.parametrize("verb", VERBS)
def test_quiet_leaves_the_report_and_silences_stderr(verb: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = arguments_of(verb, monkeypatch)
    code, out, err = call(*arguments, "--quiet")
    assert code == 0
    assert out
    assert [line for line in err.splitlines() if not line.startswith("warning")] == []
    corpus = ("--eval", "none.jsonl") if verb == "rewards" else ()
    code, _, err = call(*arguments[:1], "no/such/file.yaml", *corpus, "--quiet")
    assert (code, err.startswith("error: ")) == (1, True), "errors stay"


def test_notes_come_back_without_quiet(call: Call) -> None:
    log = logged(2)
    assert call("measure", log, "--quiet")[2] == ""
    assert "task01" in call("measure", log)[2]
    assert call("--quiet", "measure", log)[2] == ""


def test_tasks_are_measured_lowest_first_and_ten_are_shown(call: Call) -> None:
    _, out, _ = call("measure", logged(14))
    assert re.findall(r"task\d\d", out) == [f"task{n:02}" for n in range(10)]
    _, full, _ = call("measure", "log.jsonl", "--full")
    assert list(dict.fromkeys(re.findall(r"task\d\d", full))) == [f"task{n:02}" for n in range(14)]
    assert "16.2%" in out.splitlines()[0], "91 of 560 items"


def test_the_shares_of_a_plan_and_of_its_report_add_up(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("plan", settings(monkeypatch))
    code, out, _ = call(*arguments, "--dry-run", "--json")
    weights = json.loads(out)["plan"]["stages"][0]["weights"]
    assert (code, sum(weights.values())) == (0, pytest.approx(1))
    _, report, _ = call(*arguments)
    rows = {line.split()[0]: line.split()[1:] for line in report.splitlines() if line.startswith("  ") and "x" in line}
    assert {task: float(row[0].rstrip("%")) / 100 for task, row in rows.items()} == pytest.approx(weights, abs=0.001)
    assert rows["old"] == ["10.0%", "12", "1.3", "x", "replay"], "16 of 160 samples, 12 rows"


def test_a_hostile_name_moves_no_cursor(call: Call) -> None:
    rows: list[dict[str, Any]] = [{"task": HOSTILE, "prompt": f"{HOSTILE}{n}", "answer": HOSTILE} for n in range(9)]
    commands = [
        ("audit", write("bad.jsonl", rows * 2)),
        ("audit", "bad.jsonl", "--full"),
        ("measure", write("bad_log.jsonl", [{"task": HOSTILE, "id": str(n), "score": n % 2} for n in range(9)])),
        ("diagnose", write("bad_rollouts.jsonl", [{**row, "completion": HOSTILE, "reward": 0} for row in rows])),
    ]
    for command in commands:
        code, out, err = call(*command)
        assert code == 0, err
        assert all(letter.isprintable() or letter == "\n" for letter in out), command


@pytest.mark.parametrize(("count", "examples"), [(1, 1), (3, 3), (9, 3), (40, 3)])
def test_findings_stay_on_a_screen(count: int, examples: int) -> None:
    long = "word " * 80
    seen = [
        Observation("check", f"t{n}", "error", 5, 9, long, long, evidence=({"source": f"a.jsonl:{n}"},))
        for n in range(count)
    ]
    lines = findings(seen, ["other"], other_lines=6)
    assert len(lines) <= MAX_LINES - 6
    assert sum("a.jsonl:" in line for line in lines) == examples
    assert all(len(line) <= 80 for line in lines)
    assert sum("a.jsonl:" in line for line in findings(seen, full=True)) == count


def test_wide_letters_take_two_columns() -> None:
    assert cut("漢" * 30, 20) == "漢" * 9 + " …"
    assert table(("a", "b"), [("漢字", 1), ("xy", 22)]) == ["  a      b", "  漢字   1", "  xy    22"]
    assert table(("a", "b", "c"), [("x", "", "y")]) == ["  a  c", "  x  y"], "empty columns are left out"
