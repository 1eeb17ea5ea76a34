"""Gold answers read by `measure` and `verdict`: of which tasks, on both sides, and where an earlier measuring lacks them."""

from __future__ import annotations

import json

import pytest
from cli_call import Call, sums, write
from test_beside import checkpoint

from mixwright.answers.score import read_scores
from mixwright.run.folder import RunFolder
from mixwright.verdict.read_parts import read_gold
from mixwright.verdict.rules.evidence import Evidence

FAST = ("--samples", "0", "--max-new-tokens", "4", "--items", "4")
GRADERS = ("--grader", "sum=exact", "--grader", "number=numeric")


def rows() -> str:
    return write("a.jsonl", [*sums(30), *({**row, "task": "number"} for row in sums(8, 30))])


def gold(name: str, folder: str = "runs/comparison") -> dict[str, float]:
    found = read_scores(RunFolder(folder).measurements(name)).by_item("gold")
    return {item[2]: value for item, value in found.items()}


def test_both_sides_are_read_on_more_items_than_are_answered_and_only_where_one_string_is_right(call: Call) -> None:
    before, after = checkpoint("before"), checkpoint("after", 1)
    code, _, err = call("verdict", "--no-suite", before, after, "--eval", rows(), *GRADERS, *FAST)
    assert code == 4, err
    assert "gold answers: scoring those of sum in one forward pass" in err
    assert "not for number, whose graders accept several strings" in err
    old, new = gold("before"), gold("after")
    assert len(old) == 16, "four times the four that are answered"
    assert old.keys() == new.keys()
    assert all(0 < value < 1 for value in (*old.values(), *new.values()))
    assert old != new
    change = sum(new[item] - old[item] for item in old) / len(old)
    (found,) = read_gold(Evidence(RunFolder("runs/comparison")).sides or ([], []), greedy=True)
    assert (found.task, found.items) == ("sum", 16)
    assert found.change.value == pytest.approx(change)
    assert (found.before, found.after) == pytest.approx((sum(old.values()) / 16, sum(new.values()) / 16))
    assert found.success is not None


def test_where_no_grader_accepts_one_string_alone_nothing_is_read_and_the_line_says_why(call: Call) -> None:
    before = checkpoint("before")
    code, out, err = call("measure", before, "--eval", rows(), "--grader", "numeric", *FAST, "--json")
    assert code == 0, err
    assert "gold answers: not scored (not for number, sum, whose graders accept several strings)" in err
    assert not [row for row in json.loads(out)["measurements"] if row["name"] == "gold"]
