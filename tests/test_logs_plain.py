"""Plain logs in, verdict out: counts, changes, exit codes and the page, worked out by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from cli_call import Call
from log_rows import FOLDER, notes, plain_rows, success, verdict, write_lines

from mixwright import api
from mixwright.answers.score import read_scores
from mixwright.answers.table import Answers
from mixwright.logs.reading import read_log
from mixwright.records import TaskChange, from_data
from mixwright.run.folder import RunFolder, read_measurements

MANY = 200


def tasks() -> list[TaskChange]:
    return [from_data(TaskChange, task) for task in verdict()["tasks"]]


def right(count: int, of: int = MANY) -> list[bool]:
    """So many right answers, evenly spread."""
    return [(n * count) // of != ((n + 1) * count) // of for n in range(of)]


def test_two_logs_are_compared_item_by_item(call: Call) -> None:
    before = write_lines("before.jsonl", plain_rows([True, True, False, False, True, True, True, True, True, True]))
    after = write_lines("after.jsonl", plain_rows([True, False, True, False, True, True, True, True, True, True]))
    assert call("verdict", before, after, "--no-gate")[0] == 0, "without --gate nothing fails"
    old, new = success()
    assert len(old) == len(new) == 10
    assert {name: new[name] - old[name] for name in old if new[name] != old[name]} == {"sum/1": -1.0, "sum/2": 1.0}
    (task,) = tasks()
    assert (task.before, task.after, task.change.value, task.items) == (0.8, 0.8, 0.0, 10)


@pytest.mark.parametrize(
    ("hits_before", "hits_after", "options", "expected"),
    [
        (190, 190, ["--protect", "sum"], 0),  # not one answer moved: a loss of 5 points is excluded
        (190, 100, ["--protect", "sum"], 3),  # 45 points lost
        (190, 100, [], 3),  # mastered before, so protected by default
        (190, 185, ["--protect", "sum"], 4),  # 2.5 points lost, of which 200 items cannot exclude 5
        (190, 185, ["--protect", "sum", "--margin", "15"], 0),  # but they do exclude 15
        (190, 185, ["--protect", "sum", "--cannot-tell", "warn"], 0),
    ],
)
def test_the_gate_leaves_with_the_exit_codes_of_checkpoints(
    call: Call, hits_before: int, hits_after: int, options: list[str], expected: int
) -> None:
    before = write_lines("before.jsonl", plain_rows([n < hits_before for n in range(MANY)]))
    after = write_lines("after.jsonl", plain_rows([n < hits_after for n in range(MANY)]))
    code, out, err = call("verdict", before, after, *options)
    assert code == expected, out + err
    assert verdict()["total"]["items"] == MANY


def test_a_log_compared_with_itself_asks_whether_these_are_two_models(call: Call) -> None:
    rows = [*plain_rows(right(80, 120), "facts"), *plain_rows(right(80, 120), "names"), *plain_rows(right(0, 40), "new")]
    log = write_lines("log.jsonl", rows)
    options = ("--margin", "15", "--protect", "facts", "--protect", "names", "--folder")
    code, out, _ = call("verdict", log, log, *options, str(FOLDER))
    assert (code, verdict()["reason"]) == (0, "not learned")
    assert "Nothing differs: both gave the same answers. Are these two different models?" in out
    assert "Train" not in out
    other = write_lines("other.jsonl", [row | {"completion": f"= {row['completion']}"} for row in rows])
    _, out, _ = call("verdict", log, other, *options, "other")
    assert "Nothing differs" not in out
    assert "Train longer" in out


def test_s_d_and_the_chance_level_are_worked_out_where_completions_and_answers_are_there(call: Call) -> None:
    """All answers differ, so that no answer is right elsewhere: S is 0 and D is success."""
    before = write_lines("before.jsonl", plain_rows([True] * 12))
    after = write_lines(
        "after.jsonl", [row | {"completion": "3", "score": int(row["id"] == 2)} for row in plain_rows([True] * 12)]
    )
    call("verdict", before, after, "--no-gate")
    rows = read_measurements(RunFolder(FOLDER).measurements("before"))
    value = {row.name: row.value for row in rows}
    assert value["greedy"] == 1.0
    assert value["greedy.swapped"] == pytest.approx(0.0)
    assert value["greedy.dependence"] == pytest.approx(1.0)
    assert value["chance"] == pytest.approx(0.0)
    rows = read_measurements(RunFolder(FOLDER).measurements("after"))
    value = {row.name: row.value for row in rows}
    assert value["greedy"] == pytest.approx(1 / 12)
    assert value["greedy.swapped"] == pytest.approx(1 / 12)  # `3` is right on one prompt of twelve, given to any of them
    assert value["greedy.dependence"] == pytest.approx(0.0)
    assert any("chance level by grader exact" in note.message for note in notes())


def test_a_grader_that_does_not_repeat_the_scores_works_out_nothing(call: Call) -> None:
    rows = [row | {"score": int(n % 3 == 0)} for n, row in enumerate(plain_rows([True] * 30))]
    before, after = write_lines("before.jsonl", rows), write_lines("after.jsonl", rows)
    assert call("verdict", before, after, "--protect", "sum")[0] == 4
    assert not any(name.endswith(".swapped") for name in success_columns("before"))


def success_columns(when: str) -> set[str]:
    return set(read_scores(RunFolder(FOLDER).measurements(when)).columns)


def test_without_completions_the_page_says_what_was_not_measured(call: Call) -> None:
    rows = [{"task": "sum", "id": n, "score": True} for n in range(40)]
    before, after = write_lines("before.jsonl", rows), write_lines("after.jsonl", rows)
    code, out, _ = call("verdict", before, after, "--full", "--no-gate")
    assert code == 0
    page = (FOLDER / "verdict.html").read_text(encoding="utf-8")
    assert "the chance level is not known, because the log has no right answers next to the answers" in page
    assert "do not say how answers of sum were decoded" in page
    assert not Answers.read(RunFolder(FOLDER).answers("before")).first_rows()
    assert verdict()["total"]["dependence"] is None
    assert "learned" not in out
    assert "nan" not in page.casefold().replace("finance", "")


def test_without_texts_the_gate_judges_success_alone(call: Call) -> None:
    log = write_lines("log.jsonl", [{"task": "sum", "id": n, "score": n < 190} for n in range(MANY)])
    assert call("verdict", log, log, "--protect", "sum")[0] == 0
    worse = write_lines("worse.jsonl", [{"task": "sum", "id": n, "score": n < 150} for n in range(MANY)])
    assert call("verdict", log, worse, "--protect", "sum")[0] == 3
    better = write_lines("better.jsonl", [{"task": "sum", "id": n, "score": True} for n in range(MANY)])
    call("verdict", worse, better)
    assert verdict()["total"]["word"] == "not shown", "perhaps only because it gives the most common answer more often"


def test_samples_and_seeds_of_an_item_are_samples_of_it(call: Call) -> None:
    """Four answers to an item, of which 3 are right before and 1 after: success .75 and .25."""

    def rows(hits: int) -> list[dict[str, object]]:
        return [
            row
            | {
                "score": int(number < hits),
                "sample": number % 2,
                "seed": number // 2,
                "completion": str(row["id"] + 1 + 7 * (number >= hits)),
            }
            for row in plain_rows([True] * 10)
            for number in range(4)
        ]

    before, after = write_lines("before.jsonl", rows(3)), write_lines("after.jsonl", rows(1))
    code, _, err = call("verdict", before, after, "--sampled", "--no-gate")
    assert code == 0, err
    old, new = success("pass@1")
    assert set(old.values()) == {0.75}
    assert set(new.values()) == {0.25}
    assert verdict()["decoding"] == "sampled"
    assert (tasks()[0].items, tasks()[0].word) == (10, "lost")


def test_sampled_answers_without_texts_are_judged_without_s(call: Call) -> None:
    rows = [{"task": "sum", "id": n, "score": n % 2, "sample": k} for n in range(20) for k in range(2)]
    before, after = write_lines("before.jsonl", rows), write_lines("after.jsonl", rows)
    assert call("verdict", before, after, "--no-gate")[0] == 0
    assert success_columns("after") == {"pass@1"}


def test_scores_on_an_unknown_scale_are_named_and_the_others_are_judged(call: Call) -> None:
    graded = [{"task": "essay", "id": n, "score": n / 4} for n in range(40)]
    before = write_lines("before.jsonl", plain_rows([True] * MANY) + graded)
    after = write_lines("after.jsonl", plain_rows([True] * MANY) + graded)
    code, _, err = call("verdict", before, after, "--gate")
    assert code == 4, "nothing says what became of essay"
    assert "essay: cannot be judged: score is not from 0 to 1 (2.5 for item '10')" in err
    assert call("verdict", before, after, "--protect", "sum")[0] == 0
    code, _, err = call("verdict", before, after, "--protect", "essay")
    assert code == 1
    assert "essay: cannot be judged" in err


def write_essays(name: str, scores: Sequence[float]) -> str:
    return write_lines(f"{name}.jsonl", [{"task": "essay", "id": n, "score": score} for n, score in enumerate(scores)])


def test_half_marks_count_as_halves_unless_a_threshold_is_named(call: Call) -> None:
    """Of 16 in 400 items half a mark is lost: 2 points of the scale, 4 of what is wholly right."""
    before = write_essays("before", [1, 1, 0.5, 0] * 100)
    after = write_essays("after", [1, 1, 0.5, 0] * 84 + [0.5, 1, 0.5, 0] * 16)
    _, out, err = call("verdict", before, after, "--protect", "essay", "--json")
    assert "partial credit counts as its share: 100 answers before and 116 after" in err
    (task,) = json.loads(out)["tasks"]
    assert (task["before"], task["after"]) == (0.625, 0.605)
    for grader, shares in (("essay=score>=1", (0.5, 0.46)), ("score>=0.5", (0.75, 0.75))):
        _, out, _ = call("verdict", before, after, "--protect", "essay", "--grader", grader, "--json")
        (task,) = json.loads(out)["tasks"]
        assert (task["before"], task["after"]) == shares
    for grader in ("essay=score>=1.2.3", "essay=score:0..x"):
        code, _, err = call("verdict", before, after, "--grader", grader)
        assert code == 1
        assert "metric of task essay (--grader)" in err


@pytest.mark.parametrize(("scale", "best"), [("1..5", 5), ("5..1", 1)])
def test_a_scale_turns_scores_into_shares_of_it(call: Call, scale: str, best: int) -> None:
    """Every second answer falls from the best mark to the middle one: a quarter of the scale."""
    before, after = write_essays("before", [best] * 200), write_essays("after", [best, 3] * 100)
    code, out, _ = call("verdict", before, after, "--protect", "essay", "--grader", f"essay=score:{scale}", "--json")
    assert code == 3
    (task,) = json.loads(out)["tasks"]
    assert (task["before"], task["after"]) == (1.0, 0.75)
    assert -0.3 < task["change"]["low"] < task["change"]["value"] == -0.25 < task["change"]["high"] < -0.2
    code, _, err = call("verdict", before, after, "--grader", "essay=score:0..2")
    assert code == 1
    assert "two ends of a scale that holds all scores" in err


def test_what_has_no_partner_is_set_apart(call: Call) -> None:
    old = plain_rows([True] * 30)
    new = plain_rows([True] * 30)
    new[3] |= {"prompt": "another question"}
    new[4] |= {"answer": "17"}
    new[5] |= {"level": 2}
    del new[29], old[28]
    before, after = write_lines("before.jsonl", old), write_lines("after.jsonl", new)
    assert call("verdict", before, after, "--no-gate")[0] == 0
    said = " ".join(note.message for note in notes())
    assert "items with another prompt in AFTER: 1 (3)" in said
    assert "items with another right answer in AFTER: 1 (4)" in said
    assert "items with another level in AFTER: 1 (5)" in said
    assert "items of BEFORE without a partner in AFTER: 1 (29)" in said
    assert "items of AFTER without a partner in BEFORE: 1 (28)" in said
    assert len(success()[0]) == len(success()[1]) == 25


def test_a_task_that_only_one_log_has_blocks_where_it_was_before(call: Call) -> None:
    lost = plain_rows([True] * MANY, task="lost")
    both = plain_rows([True] * MANY)
    before, after = write_lines("before.jsonl", both + lost), write_lines("after.jsonl", both)
    assert call("verdict", before, after, "--gate")[0] == 4
    assert call("verdict", before, after, "--protect", "sum")[0] == 0
    assert call("verdict", before, after, "--protect", "sum", "--protect", "lost")[0] == 4
    assert call("verdict", after, before, "--gate")[0] == 0, "a new task is no loss"


def test_answers_that_nobody_scored_afterwards_block(call: Call) -> None:
    """An evaluation that failed on some items may have failed on those that were lost."""
    rows = plain_rows([True] * MANY)
    before = write_lines("before.jsonl", rows)
    after = write_lines("after.jsonl", [row | ({"score": None} if row["id"] < 20 else {}) for row in rows])
    code, out, err = call("verdict", before, after, "--protect", "sum")
    assert code == 4, out
    assert "items without score after: 20 (sum/0, sum/1, sum/10)" in err
    assert call("verdict", after, before, "--protect", "sum")[0] == 0, "all of these are right after"
    wrong = write_lines("wrong.jsonl", [row | ({"score": 0.0} if row["id"] < 20 else {}) for row in rows])
    assert call("verdict", after, wrong, "--protect", "sum", "--folder", "hidden")[0] == 4


def test_items_that_afterwards_are_missing_block(call: Call) -> None:
    """Ten of 200 may be those that were lost; four of them may not hide five points."""
    rows = plain_rows([True] * MANY)
    before = write_lines("before.jsonl", rows)
    for left, expected in ((190, 4), (196, 0)):
        after = write_lines("after.jsonl", rows[:left])
        assert call("verdict", before, after, "--protect", "sum")[0] == expected
    assert call("verdict", after, before, "--protect", "sum")[0] == 0


def test_levels_are_cells(call: Call) -> None:
    rows = [row | {"level": row["id"] % 2} for row in plain_rows([True] * 40)]
    worse = [row | ({"score": 0, "completion": "no"} if row["level"] else {}) for row in rows]
    before, after = write_lines("before.jsonl", rows), write_lines("after.jsonl", worse)
    assert call("verdict", before, after, "--protect", "sum@1")[0] == 3
    by_level = {(task.level, task.whole): task for task in tasks()}
    assert by_level[1.0, False].word == by_level[None, True].word == "lost"
    assert by_level[0.0, False].change.value == 0.0


def test_the_function_does_the_same(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log.jsonl", plain_rows([True] * MANY))
    found = api.verdict(log, log, gating=api.Gating(protect=("sum",)), folder=tmp_path / "out")
    assert (found.outcome, found.exit_code) == ("passed", 0)
    assert (tmp_path / "out" / "verdict.html").is_file()


def test_many_levels_are_put_into_bins(call: Call) -> None:
    """A level for each of 200 items would leave no cell that can be judged."""
    log = write_lines("log.jsonl", [row | {"level": row["id"] / 7} for row in plain_rows([True] * MANY)])
    assert call("verdict", log, log, "--no-gate")[0] == 0
    assert [task.items for task in tasks() if not task.whole] == [25] * 8
    assert any("200 different levels were grouped into 8 bins" in note.message for note in notes())


def test_one_log_is_measured(call: Call) -> None:
    log = write_lines("log.jsonl", plain_rows(right(15, 20)))
    code, out, err = call("measure", log, "--json")
    assert code == 0, err
    rows = [row for row in json.loads(out)["measurements"] if row["name"] == "greedy"]
    assert [(row["task"], row["value"], row["n"]) for row in rows] == [("sum", 0.75, 20)]


def test_no_torch_is_imported(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log.jsonl", plain_rows([True] * 20))
    script = (
        "import sys; from mixwright.__main__ import main\n"
        f"try: main(['verdict', {log!r}, {log!r}, '--no-gate', '--folder', {str(tmp_path / 'out')!r}])\n"
        "except SystemExit as leaving: assert not leaving.code\n"
        "assert not {'torch', 'transformers', 'trl', 'inspect_ai'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_damaged_answer_is_not_seen_in_success_alone(call: Call) -> None:
    """AFTER says `yes` to everything, which is right as often as BEFORE was by knowing fifty other answers."""
    golds = ["yes"] * 50 + [f"place{n}" for n in range(50)]
    said = ["never"] * 50 + golds[50:]
    old = [
        {"task": "ask", "id": n, "prompt": f"q{n}", "answer": gold, "completion": text, "score": int(gold == text)}
        for n, (gold, text) in enumerate(zip(golds, said, strict=True))
    ]
    new = [row | {"completion": "yes", "score": int(row["answer"] == "yes")} for row in old]
    assert np.mean([row["score"] for row in old]) == np.mean([row["score"] for row in new]) == 0.5
    before, after = write_lines("before.jsonl", old), write_lines("after.jsonl", new)
    code, _, _ = call("verdict", before, after, "--protect", "ask")
    assert code == 3
    bare = [{"task": "bare", "id": n, "score": 1} for n in range(100)]  # of a task without texts nothing is known of D
    before, after = write_lines("before.jsonl", old + bare), write_lines("after.jsonl", new + bare)
    code, out, _ = call("verdict", before, after, "--protect", "ask", "--protect", "bare")
    assert code == 3
    assert verdict()["total"]["dependence"] is None, "not measured of 100 of 200 items"
    assert "nan" not in out
    rows = read_measurements(RunFolder(FOLDER).measurements("after"))
    value = {row.name: row.value for row in rows}
    assert value["greedy.dependence"] == pytest.approx(0.0, abs=1e-9)


def test_temperature_and_options_are_read(tmp_path: Path) -> None:
    rows = [
        {"task": "a", "id": str(n), "score": n % 2, "answer": "x", "options": ["x", "y"], "temperature": 0.7}
        for n in range(3)
    ]
    rows += [{"task": "b", "id": "1", "score": 1, "temperature": 0}, {"task": "c", "id": "1", "score": 1}]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = read_log(str(tmp_path / "log.jsonl"))
    assert {name: (task.sampled, dict(task.settings)) for name, task in log.tasks.items()} == {
        "a": (True, {"temperature": "0.7"}),
        "b": (False, {"temperature": "0"}),
        "c": (None, {}),
    }
    assert [answer.options for answer in log.answers if answer.task == "a"] == [("x", "y")] * 3


def test_a_reader_that_leaves_early_does_not_change_the_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = write_lines("before.jsonl", plain_rows([True] * MANY))
    after = write_lines("after.jsonl", plain_rows([False] * MANY))
    program = [sys.executable, "-m", "mixwright", "verdict", before, after]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == 3
