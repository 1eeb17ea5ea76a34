"""Reports of a verdict: terminal, Markdown and JUnit; pure, short, complete, and inert whatever the data says."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import pytest
from rich.console import Console
from verdicts import change, damaged, inconclusive, pair, passed, trial

from mixwright.records import Interval, Reason, Verdict
from mixwright.verdict.exported import to_junit, to_markdown
from mixwright.verdict.report import MAX_LINES, show_report
from mixwright.verdict.words import LOSSES, START, list_rows, say_headline

VERDICTS = {"damaged": damaged, "passed": passed, "inconclusive": inconclusive, "trial": trial}
HOSTILE = "</pre><script>alert(1)</script> | `x` [a](http://b) \x1b[31m\u202e\x00"


def printed(verdict: Verdict, *, full: bool = False, certainty: bool = False, width: int = 100) -> list[str]:
    file = io.StringIO()
    show_report(Console(file=file, width=width), verdict, "gate/verdict.html", full=full, certainty=certainty)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("name", VERDICTS)
@pytest.mark.parametrize("width", [60, 100, 200])
def test_a_report_begins_with_the_answer_and_fits(name: str, width: int) -> None:
    many = tuple(change(f"task {n}", "lost", 0.9, 0.2) for n in range(40))
    for verdict in (VERDICTS[name](), replace(VERDICTS[name](), tasks=many, pairs=(pair(), pair(), pair()))):
        lines = printed(verdict, width=width)
        assert len(lines) <= MAX_LINES
        assert verdict.headline.startswith(lines[0].strip()[:20])
    full = "\n".join(printed(replace(VERDICTS[name](), tasks=many), full=True))
    assert all(f"task {n} " in full for n in range(40))


def test_the_report_of_a_damaged_model_is_the_one_that_was_looked_at() -> None:
    assert "\n".join(printed(damaged())) + "\n" == (Path(__file__).parent / "golden" / "verdict.txt").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize(("full", "certainty"), [(False, False), (False, True), (True, False)])
def test_the_last_line_offers_the_options_that_were_not_given(full: bool, certainty: bool) -> None:
    last = printed(damaged(), full=full, certainty=certainty, width=200)[-1]
    assert ("--full" in last, "--why" in last) == (not full, not full and not certainty)


def test_levels_are_listed_only_where_they_are_worse_than_their_task() -> None:
    whole = change("sums", "kept", 0.8, 0.8, whole=True)
    easy, hard = (replace(change("sums", word, 0.8, after), level=level) for level, word, after in
                  ((1.0, "kept", 0.8), (2.0, "lost", 0.2)))  # fmt: skip
    assert [row.level for row in list_rows(replace(damaged(), tasks=(hard, whole, easy)))] == [2.0, None]


@pytest.mark.parametrize("reason", get_args(Reason))
def test_every_reason_has_a_headline(reason: Reason) -> None:
    for made in (damaged(), passed(), inconclusive()):
        sentence = say_headline(replace(made, reason=reason), "Train with this plan.")
        assert sentence
        assert "None" not in sentence
        if reason not in ("trial", "nothing compared", "not measured"):
            assert sentence.startswith(START[made.outcome])


def hostile() -> Verdict:
    tasks = (change(HOSTILE, "lost", 0.9, 0.1),)
    shown = replace(pair(), task=HOSTILE, prompt=HOSTILE, before=HOSTILE, after=HOSTILE)
    return replace(damaged(), headline=HOSTILE, after=HOSTILE, before=HOSTILE, tasks=tasks, pairs=(shown,), why=(HOSTILE,))


def test_hostile_text_is_inert() -> None:
    text = "\n".join(printed(hostile(), full=True, certainty=True))
    assert not {"\x1b", "\u202e", "\x00"} & set(text)
    markdown = to_markdown(hostile())
    assert "<script" not in markdown
    assert "](http" not in markdown
    assert not {"\x1b", "\u202e", "\x00"} & set(markdown)
    assert len([line for line in markdown.splitlines() if line.startswith("|")]) == 3, "no cell ends a row of the table"
    assert ElementTree.fromstring(to_junit(hostile())).tag == "testsuite"


@pytest.mark.parametrize("name", VERDICTS)
def test_junit_fails_where_a_task_was_lost(name: str) -> None:
    verdict = VERDICTS[name]()
    suite = ElementTree.fromstring(to_junit(verdict))
    gate, *tasks = suite.iter("testcase")
    named = verdict.gate.protected if verdict.gate and verdict.gate.named else None
    lost = [row for row in list_rows(verdict) if row.word in LOSSES and verdict.exit_code == 3]
    lost = [row for row in lost if named is None or row.task in named]
    assert len(tasks) == len(list_rows(verdict))
    assert sum(task.find("failure") is not None for task in tasks) == len(lost)
    assert (gate.find("failure") is not None, gate.find("error") is not None) == (
        verdict.exit_code == 3,
        verdict.exit_code == 4,
    )
    found = [sum(case.find(kind) is not None for case in suite.iter("testcase")) for kind in ("failure", "error")]
    assert [int(suite.attrib[name]) for name in ("failures", "errors")] == found


def test_a_loss_that_the_user_did_not_name_fails_no_test() -> None:
    gate = damaged().gate
    assert gate is not None
    suite = ElementTree.fromstring(to_junit(replace(damaged(), gate=replace(gate, named=True, protected=("plurals",)))))
    assert [case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None] == ["gate", "plurals"]
    waived = ElementTree.fromstring(to_junit(replace(damaged(), exit_code=0)))
    assert waived.get("failures") == "0"


def test_a_loss_in_nats_is_no_loss_in_points() -> None:
    lost = replace(change("all", "lost", 2.0, 3.5), change=Interval(1.5, 1.4, 1.6, 30))
    made = replace(damaged(), reason="a task was lost", unit="nats per token", lower_is_better=True, tasks=(lost,))
    assert "+1.5 nats per token" in say_headline(made)
