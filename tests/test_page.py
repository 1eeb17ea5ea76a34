"""The page of a verdict as a pure function: nothing is left out, hostile texts stay texts, one script by its hash."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import replace
from typing import Any

import pytest
import verdicts
from hypothesis import given
from hypothesis import strategies as st
from project_files import ROOT

from mixwright.records import AnswerPair, Interval, TaskChange, Verdict
from mixwright.verdict.page.blocks import Fold, Forest, ForestRow, Paragraph, Table, keep_filled
from mixwright.verdict.page.frame import MAX_CHARACTERS, TEXT_LIMITS, mark_change, place_on_axis
from mixwright.verdict.page.page import MAX_TASKS, render_page
from mixwright.verdict.page.text import to_visible
from mixwright.verdict.words import START
from mixwright_lab.charts import Lines, Series, render_lines

GOLDEN = ROOT / "tests" / "golden_page.html"
KINDS = {
    "passed": verdicts.passed,
    "damaged": verdicts.damaged,
    "inconclusive": verdicts.inconclusive,
    "trial": verdicts.trial,
}
EVIL = "</script><script>alert(1)</script><b onclick='x'>&\u2028\u202e\x1b[31m{{ 7 * 7 }}"


def data_of(page: str) -> dict[str, Any]:
    """Return the data of the browser of answers."""
    (found,) = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(found)


def words_of(page: str) -> str:
    """Return the texts of a page, without its scripts and style."""
    bare = re.sub(r"<(style|script).*?</\1>", "", page, flags=re.DOTALL)
    bare = re.sub(r"</?(wbr|mark)>", "", bare)
    return html.unescape(re.sub(r"<[^>]*>|\s+", " ", bare))


@pytest.mark.parametrize("name", KINDS)
def test_the_same_verdict_gives_the_same_page(name: str) -> None:
    pages = {render_page(KINDS[name](), verdicts.pairs(20)) for _ in range(2)}
    assert len(pages) == 1


@pytest.mark.parametrize("name", KINDS)
def test_it_says_what_the_verdict_says(name: str) -> None:
    verdict = KINDS[name]()
    said = words_of(render_page(verdict, verdicts.pairs(20)))
    texts = [*verdict.why, *verdict.not_judged, *verdict.not_judged.values(), *(step.command for step in verdict.next)]
    texts += [change.task for change in verdict.tasks] + [note.message for note in (*verdict.notes, *verdict.audit)]
    if not verdict.trial:
        texts += [text for pair in verdict.pairs for text in (pair.prompt, pair.before, pair.after)]
    texts += [verdict.headline.removeprefix(START[verdict.outcome]).strip(), verdict.before, verdict.after]
    if verdict.trial:
        texts += [*verdict.trial.arms, *verdict.trial.notes, *(row.because for row in verdict.trial.judgements)]
    assert [text for text in texts if text not in said] == []


def test_every_task_and_level_is_on_the_page_and_the_worst_on_the_first_screen() -> None:
    tasks = tuple(verdicts.change(f"task{place}", "lost", 0.9, 0.01 * place) for place in range(40))
    page = render_page(verdicts.damaged(tasks=tasks), [])
    first, rest = page.split('id="tasks"')
    assert [f"task{place}<" in first for place in range(40)] == [place < MAX_TASKS for place in range(40)]
    assert all(f"task{place}, protected<" in rest for place in range(40))


def test_every_answer_is_in_the_data_once_by_its_kind() -> None:
    data = data_of(render_page(verdicts.damaged(), pairs := verdicts.pairs(64)))
    assert [row[2] for row in data["rows"]] == [pair.prompt for pair in pairs]
    assert [data["tasks"][row[0]] for row in data["rows"]] == [pair.task for pair in pairs]
    assert ["".join(answer[2:]) for row in data["rows"] for answer in row[4]] == [
        text for pair in pairs for text in (pair.before, pair.after)
    ]
    kind_of_scores = {(1.0, 0.0): 0, (0.0, 1.0): 1, (1.0, 1.0): 2, (0.0, 0.0): 3}
    assert [row[1] for row in data["rows"]] == [kind_of_scores[pair.score_before, pair.score_after] for pair in pairs]


def test_what_was_not_graded_is_changed_or_the_same() -> None:
    pairs = [verdicts.pair(), verdicts.pair(before="x", after="x"), verdicts.pair(number=2)]
    data = data_of(render_page(verdicts.damaged(graded=False), pairs))
    assert [data["kinds"][row[1]] for row in data["rows"]] == ["changed", "same", "changed"]


def test_the_policy_names_the_one_script_and_nothing_else_runs() -> None:
    page = render_page(verdicts.damaged(), verdicts.pairs(8))
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert len(re.findall("<script", page)) == 2
    assert "innerHTML" not in script
    assert re.findall(r"\son\w+=", re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)) == []


@pytest.mark.parametrize("name", KINDS)
def test_no_address_outside(name: str) -> None:
    page = render_page(KINDS[name](), verdicts.pairs(8))
    assert re.findall(r"\s(?:src|href)=", page) == []
    assert "http" not in re.sub(r'http-equiv|xmlns="[^"]*"', "", page)


def poison(value: Any) -> Any:
    """Return a record with every text replaced by a hostile one."""
    if isinstance(value, TaskChange | AnswerPair):
        texts = {
            name: EVIL
            for name in ("task", "prompt", "gold", "before", "after")
            if isinstance(getattr(value, name, None), str)
        }
        return replace(value, **texts)
    return value


def test_hostile_texts_are_inert() -> None:
    verdict = verdicts.damaged()
    texts = dict.fromkeys(("name", "about", "before", "after", "headline", "measure", "decoding"), EVIL)
    lists = {name: tuple(map(poison, getattr(verdict, name))) for name in ("tasks", "pairs")}
    more = {"why": (EVIL,), "not_judged": {EVIL: EVIL}, "extra": {EVIL: (EVIL, [Paragraph(EVIL, lead=EVIL)])}}
    page = render_page(replace(verdict, **texts, **lists, **more), [poison(pair) for pair in verdicts.pairs(8)])
    assert len(re.findall("<script", page)) == 2
    assert "<b onclick" not in page
    assert not set("\u2028\u202e\x1b") & set(page)
    assert "49" not in re.findall(r"\[31m(.{9})", page)
    assert "alert(1)" in data_of(page)["rows"][0][2]


@given(st.text(), st.text())
def test_any_text_is_kept_in_the_data(before: str, after: str) -> None:
    pair = replace(verdicts.pair(), before=before, after=after, prompt=after)
    (row,) = data_of(render_page(verdicts.damaged(), [pair]))["rows"]
    shown = [to_visible(text) for text in (before, after)]
    assert ["".join(answer[2:]) for answer in row[4]] == [text or "(empty)" for text in shown]
    assert row[2] == shown[1]


@given(
    st.lists(st.sampled_from(["a", "b", " ", "\n", "c."])).map("".join),
    st.lists(st.sampled_from(["a", "b", " ", "c."])).map("".join),
)
def test_a_marked_text_is_the_text(shown: str, other: str) -> None:
    parts = mark_change(shown, other)
    assert "".join(parts) == shown
    assert len(parts) in (1, 3)
    if len(parts) == 3:
        assert other.startswith(parts[0])
        assert other.endswith(parts[2])


def test_many_long_answers_are_cut_to_a_page_of_bounded_size() -> None:
    pairs = [verdicts.pair(number=number, before="x" * 5000, after="y" * 5000) for number in range(2000)]
    page = render_page(verdicts.damaged(), pairs)
    assert len(page) < MAX_CHARACTERS + 2_000_000
    assert len(data_of(page)["rows"]) == 2000
    (row,) = data_of(render_page(verdicts.damaged(), pairs[:1]))["rows"]
    assert "".join(row[4][0][2:]).startswith("x" * TEXT_LIMITS[0])


def test_blocks_of_plugins_are_parts_of_the_page() -> None:
    extra = {"mine": ("My part", [Table("My table", ("a", "b"), [("row of mine", "1")])]), "none": ("Empty", [])}
    page = render_page(verdicts.damaged(extra=extra), [])
    assert 'id="mine"' in page
    assert "row of mine" in words_of(page)
    assert 'id="none"' not in page


def test_a_verdict_without_anything_is_a_page() -> None:
    empty = Verdict("run", "", "", "", "inconclusive", "nothing compared", 4, "Nothing was compared.", "success")
    assert "Nothing was compared." in words_of(render_page(empty, []))


def test_empty_blocks_go() -> None:
    empty = [Paragraph(""), Table("t", ("a",), []), Fold("f", (Paragraph(""),)), Forest("f", "x", ())]
    assert keep_filled([*empty, Paragraph("x")]) == [Paragraph("x")]


def test_places_on_an_axis_by_hand() -> None:
    chart = Forest("c", "points", (ForestRow("a", 0.1, -0.2, 0.3, (0.0,)), ForestRow("b", None, 0, 0)), margin=0.05)
    axis = place_on_axis(chart)
    row, nothing = axis["rows"]
    assert nothing is None
    assert [row["low"], row["value"], row["high"], row["points"]] == [6, pytest.approx(58.8), 94, [pytest.approx(41.2)]]
    assert axis["margins"] == pytest.approx([32.4, 41.2, 50.0])
    whole = place_on_axis(Forest("c", "%", (ForestRow("a", 1.0, 0.9, 1.4, start=0.5),), bounds=(0.0, 1.0)))
    assert [whole["rows"][0][name] for name in ("start", "value", "high")] == [50, 94, 94], "cut at the ends of the axis"


def test_lines_are_drawn_between_0_and_100_percent() -> None:
    series = Series("a<b", (0.0, 10.0), (0.0, 1.0), (-0.5, 0.5), (0.5, 2.0))
    svg = render_lines(Lines("told", "steps", (series, Series("none", (), (), (), ()))))
    (line,) = re.findall(r'polyline points="([^"]*)"', svg)
    (x0, y0), (x1, y1) = (map(float, point.split(",")) for point in line.split())
    assert (x0 < x1, y0 - y1) == (True, 250)
    heights = [float(point.split(",")[1]) for point in re.findall(r'polygon points="([^"]*)"', svg)[0].split()]
    assert (min(heights), max(heights)) == (y1, y0), "bands end at the axis"
    assert "a&lt;b" in svg


def test_other_units_have_their_own_axis() -> None:
    loss = replace(verdicts.change("sums", "learned", 2.5, 2.1), change=Interval(-0.4, -0.5, -0.3, 30))
    verdict = verdicts.passed(tasks=(loss,), unit="nats per token", measure="held-out loss", graded=False, decoding="loss")
    page = render_page(verdict, [])
    assert "2.5 → 2.1" in words_of(page)
    assert ">gained</th>" not in page


def test_a_small_verdict_gives_the_page_that_was_looked_at() -> None:
    """After a wanted change: look at the page, then write it with `python tests/test_page.py`."""
    assert golden() == GOLDEN.read_text(encoding="utf-8")


def golden() -> str:
    """Return the page of a small verdict, without style and script."""
    page = render_page(verdicts.passed(), verdicts.pairs(4))
    return re.sub(r"<style>.*?</style>|<script>.*?</script>|sha256-[^']*", "", page, flags=re.DOTALL)


if __name__ == "__main__":
    GOLDEN.write_text(golden(), encoding="utf-8")
