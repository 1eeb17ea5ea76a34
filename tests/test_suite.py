"""The general suite: every gold answer is right for its own grader, draws are reproducible, families share no request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mixwright.cli.direct import read_rows
from mixwright.cli.measured import comparing_command
from mixwright.cli.options import Measuring
from mixwright.errors import InputError
from mixwright.graders import load_grader
from mixwright.records import Example
from mixwright.suite.draw import FAMILIES, OPEN_FAMILIES, PER_RUNG, SEALED_FAMILIES, draw_items, write_suite
from mixwright.suite.family import Family, Item, follow, read_data

ROWS = draw_items(per_rung=40, seed=11)


def requests() -> list[str]:
    """Prompts to replay, as text."""
    rows = [row for family in OPEN_FAMILIES for row in read_data(f"requests_{family.name}.jsonl")]
    return [json.dumps(row.get("prompt") or row["messages"]) for row in rows]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_gold_answer_is_right_for_its_grader_and_another_one_mostly_is_not(family: Family) -> None:
    grader, own = load_grader(family.grader), [row for row in ROWS if row["task"] == family.name]
    if family.grader == "follows":
        assert all(json.loads(row["answer"]) for row in own)
        return
    examples = [Example(row["id"], family.name, row["prompt"], answer=row["answer"]) for row in own]
    assert [one.id for one in examples if grader.grade(one, one.answer or "") != 1.0] == []
    others = [
        grader.grade(one, other.answer or "") for one, other in zip(examples, examples[1:] + examples[:1], strict=True)
    ]
    assert sum(others) / len(others) < 0.6, "blind choice"


def test_draws_are_the_same_for_a_seed_and_others_for_another_one() -> None:
    assert draw_items(per_rung=3, seed=4) == draw_items(per_rung=3, seed=4)
    first, second = ({json.dumps(row["prompt"]) for row in draw_items(per_rung=8, seed=seed)} for seed in (1, 2))
    assert len(first & second) < len(first) / 3
    assert len({row["id"] for row in ROWS}) == len(ROWS) == 40 * sum(family.rungs for family in FAMILIES)


def test_families_share_no_prompt_and_requests_are_no_items() -> None:
    by_prompt: dict[str, set[Any]] = {}
    for row in ROWS:
        by_prompt.setdefault(json.dumps(row["prompt"]), set()).add(row["task"])
    assert [names for names in by_prompt.values() if len(names) > 1] == []
    assert not by_prompt.keys() & set(requests())
    assert len(requests()) == len(set(requests()))


def test_there_are_enough_families_and_a_third_is_sealed() -> None:
    assert len(FAMILIES) >= 24
    assert 3 * len(SEALED_FAMILIES) >= len(FAMILIES)
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    counts = {family.name: len(read_data(f"requests_{family.name}.jsonl")) for family in OPEN_FAMILIES}
    assert {name: count for name, count in counts.items() if not 40 <= count <= 60} == {}


def test_a_rung_without_enough_items_is_an_error_and_a_file_is_written_once(tmp_path: Path) -> None:
    same = Family("same", lambda rng, rung: Item("?", follow(question=True)), 1, "follows", "one request")
    with pytest.raises(InputError, match="at most 1 items of a rung of same"):
        draw_items([same], per_rung=2)
    path = write_suite(tmp_path, per_rung=1)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == sum(family.rungs for family in FAMILIES)
    path.write_text("kept", encoding="utf-8")
    assert write_suite(tmp_path, per_rung=1).read_text(encoding="utf-8") == "kept"


def test_without_rows_the_suite_is_measured_with_the_grader_of_each_family(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    measuring = Measuring(items=2).with_suite()
    assert measuring.corpus is not None
    assert comparing_command("m", measuring) == "mixwright verdict m YOUR_MODEL"
    rows = read_rows(measuring, tell=lambda line: None)
    assert {task: rows.config.graders[task] for task in rows.corpus.tasks} == {one.name: one.grader for one in FAMILIES}
    assert len(rows.corpus) == PER_RUNG * sum(family.rungs for family in FAMILIES)
    assert {example.level for example in rows.corpus} == {1.0, 2.0, 3.0, 4.0, 5.0}
    with pytest.raises(InputError, match="--grader"):
        Measuring(grader=["exact"]).with_suite()
