"""Grader `json_fields`: all fields right earn one, each field is a part of its own, and the verdict reports them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright.answers.score import measure_answers
from mixwright.answers.table import Answers
from mixwright.graders import load_grader
from mixwright.records import Example, Interval, Measurement, PartChange
from mixwright.run.folder import RunFolder, write_measurements
from mixwright.verdict.read_parts import read_parts
from mixwright.verdict.rules.evidence import Evidence

JUDGE = load_grader("json_fields")
GOLD = '{"team": "billing", "intent": "refund", "urgent": false, "lines": 2}'
EXAMPLE = Example("i", "t", "Where does it go?", answer=GOLD)
ALL_RIGHT = {"team": True, "intent": True, "urgent": True, "lines": True, "valid JSON": True, "same keys": True}


@pytest.mark.parametrize(
    ("completion", "wrong"),
    [
        ('{"lines":2.0,"urgent":false,"intent":"refund","team":"billing"}', ()),
        (f"```JSON\n{GOLD}\n```", ()),
        (f"<tool_call>{GOLD}</tool_call>", ()),
        (GOLD.replace("refund", "card"), ("intent",)),
        (GOLD.replace("false", "0"), ("urgent",)),
        ('{"team": "billing", "intent": "refund", "urgent": false}', ("same keys", "lines")),
        (GOLD.replace("}", ', "more": 1}'), ("same keys",)),
        (f"Here it is: {GOLD}", tuple(ALL_RIGHT)),
        ("[1]", tuple(set(ALL_RIGHT) - {"valid JSON"})),
        (GOLD[:-1], tuple(ALL_RIGHT)),
        ("{" * 100_000, tuple(ALL_RIGHT)),
        (GOLD.replace("}", ', "lines": 2}'), tuple(ALL_RIGHT)),
        (f"<wrong>{GOLD}</wrong>", tuple(ALL_RIGHT)),
        ("```json\n" + GOLD + " " * 20_000 + "``` No, that is wrong.", tuple(ALL_RIGHT)),
    ],
)
def test_parts_of_a_completion(completion: str, wrong: tuple[str, ...]) -> None:
    assert JUDGE.parts(EXAMPLE, completion) == {name: name not in wrong for name in ALL_RIGHT}
    assert JUDGE.grade(EXAMPLE, completion) == float(not wrong)


def test_an_answer_that_is_no_object_has_no_parts() -> None:
    assert JUDGE.parts(Example("i", "t", "?", answer="[1, 2]"), "[1,2]") == {}
    assert JUDGE.grade(Example("i", "t", "?", answer="[1, 2]"), "[2, 1]") == 0.0
    assert JUDGE.grade(Example("i", "t", "?", answer="cold"), "cold") == 1.0


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), VALUES, min_size=1, max_size=5), VALUES)
def test_an_object_is_right_under_any_order_of_its_keys_and_no_other(gold: dict[str, object], other: object) -> None:
    example = Example("i", "t", "?", answer=json.dumps(gold))
    assert JUDGE.grade(example, json.dumps(dict(reversed(gold.items())), indent=2)) == 1.0
    assert JUDGE.grade(example, json.dumps({"it": other})) == float(
        json.dumps(gold, sort_keys=True) == json.dumps({"it": other}, sort_keys=True)
    )


def test_a_field_is_a_share_of_the_items_that_have_it() -> None:
    """Two calls with a city, one of them right, and one with a room: `city` is right in one of two."""
    golds = ('{"city": "Rome"}', '{"city": "Oslo"}', '{"room": "hall"}')
    texts = ('{"city": "Rome"}', '{"city": "Bern"}', '{"room": "hall"}')
    rows = []
    for number, (gold, text) in enumerate(zip(golds, texts, strict=True)):
        parts = JUDGE.parts(Example(f"i{number}", "t", "?", answer=gold), text)
        place = {"item": f"i{number}", "task": "t", "decoding": "greedy", "sample": 0, "text": text}
        rows.append(place | {"right": 0.0, "parts": list(parts.items())})
    rows = measure_answers(Answers.from_rows(rows))
    shares = {row.name: (row.value, row.n) for row in rows if row.name.startswith("part ")}
    assert shares == {
        "part valid JSON": (1.0, 3),
        "part same keys": (1.0, 3),
        "part city": (0.5, 2),
        "part room": (1.0, 1),
    }


def test_parts_of_both_models_are_read_for_the_verdict(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)

    def row(name: str, value: float) -> Measurement:
        return Measurement("competence", "t", name, value, value - 0.1, value + 0.1, 50, "share")

    write_measurements(run.measurements("before"), [row("part valid", 0.0), row("greedy", 0.0)])
    write_measurements(run.measurements("after"), [row("part valid", 0.9), row("part new", 0.5), row("greedy", 0.4)])
    found = PartChange("valid", Interval(0.0, -0.1, 0.1, 50), Interval(0.9, 0.8, 1.0, 50))
    assert read_parts(Evidence(run)) == {("t", None): (found,)}
