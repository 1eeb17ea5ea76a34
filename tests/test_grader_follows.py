"""Rules of requests about form: each kept and broken by hand."""

from __future__ import annotations

from typing import Any

import pytest

from mixwright.graders import load_grader
from mixwright.graders.follows import are_rules
from mixwright.records import Example
from mixwright.suite.family import follow

CASES: list[tuple[dict[str, Any], str, str]] = [
    ({"words": (2, 3)}, "two words", "these are four words"),
    ({"sentences": (2, 2)}, "One. Two!", "One and only."),
    ({"lines": (2, 2)}, "one\n\ntwo", "one\ntwo\nthree"),
    ({"contains": ["green river"]}, "The Green River.", "The river is green."),
    ({"any_of": ["which", "what"]}, "Which one?", "Whatever."),
    ({"excludes": ["red"]}, "A reddish sky.", "A red sky."),
    ({"begins": "Dear"}, "**Dear** Ada,", "My dear Ada"),
    ({"ends": "regards"}, "Kind regards.", "Regards, Ada"),
    ({"case": "lower"}, "all small.", "Not all."),
    ({"question": True}, "Where to?", "Tell me where."),
    ({"question": False}, "Fine.", "Fine?"),
    ({"data": False}, "Set an alarm yourself.", '{"tool": "alarm"}'),
    ({"letters": "e"}, "A dog ran.", "The dog."),
]


@pytest.mark.parametrize(("rules", "kept", "broken"), CASES)
def test_each_rule_is_kept_and_broken(rules: dict[str, Any], kept: str, broken: str) -> None:
    grader, example = load_grader("follows"), Example("1", "t", "p", answer=follow(**rules))
    assert (grader.grade(example, kept), grader.grade(example, broken), grader.grade(example, " ")) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("answer", ['{"words": ["cat", "dog"]}', '{"contains": [1]}', '{"case": "camel"}', '{"lines": [1]}'])
def test_data_with_the_names_of_rules_are_no_rules(answer: str) -> None:
    assert not are_rules(answer)


def test_rules_are_no_form_of_an_answer() -> None:
    assert are_rules(follow(question=True))
    assert [are_rules(text) for text in ("{}", '{"tool": "note"}', "{broken", "words", "")] == [False] * 5


def test_all_rules_have_to_be_kept() -> None:
    example = Example("1", "t", "p", answer=follow(words=(1, 3), contains=["river"]))
    grader = load_grader("follows")
    grades = [grader.grade(example, text) for text in ("a river", "a lake", "a very long winding river")]
    assert grades == [1.0, 0.0, 0.0]
