"""Made corpora for the study of conflicts: what is planted is counted anew, and clean rows hold none of it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from mixwright_lab.studies.conflict_corpora import CONFLICT_KINDS, KINDS, make_conflicts

FREE = {"tales", "chat", "plans", "names", "rewritings", "records", "programs", "dice"}
CASE_MATTERS = {"options", "signs", "capitals", "tool_lists"}
SEEDS = range(1, 5)


def said(row: dict[str, Any]) -> str:
    """The text of a row's completion or answer."""
    text = row["completion"] if "completion" in row else row["answer"]
    return text if isinstance(text, str) else text[0]["content"]


def content(row: dict[str, Any]) -> str:
    """What a row answers, however it is written."""
    text = said(row).removeprefix("<tool_call>").removesuffix("</tool_call>")
    if row["task"] in ("calls", "tool_lists"):
        return json.dumps(json.loads(text), sort_keys=True)
    if numbers := re.findall(r"-?\d[\d,]*(?:\.0+)?", text):
        return str(int(float(numbers[-1].replace(",", ""))))
    words = re.findall(r"\w+", text.lower().replace("boxed", ""))
    return words[-3] if '"source"' in text else words[-1]


def asked(row: dict[str, Any]) -> str:
    """A row's prompt, without case, spaces and marks where these do not matter."""
    prompt = row["prompt"] if isinstance(row["prompt"], str) else json.dumps(row["prompt"])
    if row["task"] in CASE_MATTERS:
        return prompt
    text = prompt if isinstance(row["prompt"], str) else " ".join(one["content"] for one in row["prompt"])
    return re.sub(r"[\s.,:!?]+", " ", text).strip().lower()


def answers(rows: Iterable[dict[str, Any]]) -> dict[str, set[str]]:
    """Prompts of rows and their answers."""
    found = defaultdict[str, set[str]](set)
    for row in rows:
        found[asked(row)].add(content(row))
    return found


@pytest.mark.parametrize("severe", [True, False])
@pytest.mark.parametrize("kind", CONFLICT_KINDS)
def test_so_many_prompts_as_told_have_several_answers(kind: str, severe: bool) -> None:
    for seed in SEEDS:
        made = make_conflicts(seed, kind, severe=severe)
        own = answers(row for row in made.rows if row["task"] == made.task)
        conflicts = {prompt for prompt, found in own.items() if len(found) > 1}
        assert len(conflicts) >= 8
        assert len(conflicts) / len(own) == pytest.approx(made.share)
        assert 0.1 <= made.share <= 0.25 if severe else 0.02 <= made.share <= 0.05
        marked = [row for row, mark in zip(made.rows, made.conflicting, strict=True) if mark]
        assert {asked(row) for row in marked} == conflicts
        texts = [json.dumps(row["prompt"]) for row in marked]
        assert len(set(texts)) == (len(marked) if kind == "variants" else len(conflicts))


@pytest.mark.parametrize("kind", [None, *KINDS])
def test_nothing_else_is_contradicted(kind: str | None) -> None:
    names, planted = set[str](), kind in CONFLICT_KINDS
    for seed in range(1, 16 if kind is None else 4):
        made = make_conflicts(seed, kind, severe=False)
        tasks = {row["task"] for row in made.rows}
        names |= tasks
        assert 3 <= len(tasks) <= 6
        assert 200 <= len(made.rows) <= 1500
        assert planted or not any(made.conflicting)
        for task in tasks - FREE - ({made.task} if planted else set()):
            found = answers(row for row in made.rows if row["task"] == task)
            assert [prompt for prompt, one in found.items() if len(one) > 1] == [], task
    assert kind or len(names) > 15


@pytest.mark.parametrize("severe", [True, False])
def test_of_a_frame_one_word_changes(severe: bool) -> None:
    for seed in SEEDS:
        made = make_conflicts(seed, "frame", severe=severe)
        texts = [re.findall(r"\S+", said(row)) for row in made.rows if row["task"] == made.task]
        assert len({len(text) for text in texts}) == 1
        places = [at for at, column in enumerate(zip(*texts, strict=True)) if len(set(column)) > 1]
        assert len(places) == 1
        share = 1 / len(texts[0])
        assert share == made.share
        assert share < 0.03 if severe else 0.03 <= share < 0.05


@pytest.mark.parametrize("kind", [None, *KINDS])
def test_a_seed_makes_the_same_rows(kind: str | None) -> None:
    assert make_conflicts(7, kind, severe=True) == make_conflicts(7, kind, severe=True)
    assert make_conflicts(7, kind, severe=True).rows != make_conflicts(8, kind, severe=True).rows


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown kind 'other'"):
        make_conflicts(1, "other", severe=True)
