"""Coverage: what held-out rows need and train lacks, by hand; what chance explains; and the list of what to add."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from mixwright.audit.checks.coverage import Coverage
from mixwright.audit.holes import chance_of_absence, find_coverage, read_skills
from mixwright.corpus import Corpus
from mixwright.records import Example, Observation


def _example(n: int, split: str, **fields: Any) -> Example:
    fields = {"task": "t", "answer": "7", **fields}
    return Example(
        f"{split}{n}",
        prompt=fields.pop("prompt", f"{split} question number {n} about {n * 7919 + 5 * len(split)}"),
        split=split,
        **fields,
    )


def _corpus(train: Sequence[dict[str, Any]], held_out: Sequence[dict[str, Any]]) -> Corpus:
    return Corpus.from_examples(
        [_example(n, split, **row) for split, rows in (("train", train), ("eval", held_out)) for n, row in enumerate(rows)]
    )


def _holes(corpus: Corpus) -> list[tuple[str, str, int]]:
    return [(hole.kind, hole.what, len(hole.rows)) for hole in find_coverage(corpus).holes if hole.is_hole]


def test_chance_by_hand() -> None:
    assert chance_of_absence(1, 100, 300) == pytest.approx(1 / 4)
    assert chance_of_absence(2, 2, 2) == pytest.approx(1 / 6)  # one of six ways to choose two of four
    assert chance_of_absence(3, 2, 9) == 0
    assert chance_of_absence(0, 5, 5) == 1


@pytest.mark.parametrize(
    ("answer", "sequence", "others"),
    [
        ('{"tool": "alarm", "time": "7"}', ("tool alarm",), ("alarm(time)",)),
        ('[{"name": "a", "arguments": {"x": 1}}, {"name": "b", "arguments": {}}]', ("tool a", "tool b"), ("a(x)",)),
        ('{"function": {"name": "a", "arguments": {"name": "Ben"}}}', ("tool a",), ("a(name)",)),
        ('<tool_call>\n{"name": "a", "arguments": {"x": 1}}\n</tool_call>', ("tool a",), ("a(x)",)),
        ('{"year": 1905, "city": "Bern"}', (), ("key year", "key city")),
        ('{"tool": ', (), ()),
        ("[" * 3000, (), ()),
    ],
)
def test_skills_are_read(answer: str, sequence: tuple[str, ...], others: tuple[str, ...]) -> None:
    assert read_skills((), answer)[:2] == (sequence, others)
    assert read_skills(("own",), answer)[0] == ("own",)


def test_a_level_is_told_and_not_what_follows_from_it() -> None:
    """Level 3 has longer answers, too; they are not told again. Level 9 is beyond all levels of train: a hole as well."""
    train = [{"level": 1.0 + n % 2 * 4, "answer": "7"} for n in range(60)]
    held_out = [
        {"level": level, "answer": answer} for level, answer in ((1.0, "7"), (3.0, "123456"), (9.0, "7")) for _ in range(5)
    ]
    corpus = _corpus(train, held_out)
    assert _holes(corpus) == [("level", "3", 5), ("level", "9", 5)]
    warning, info = Coverage().check(corpus)
    assert (warning.severity, warning.count, warning.total) == ("warning", 10, 15)
    assert (info.count, info.total) == (1, 3)
    assert [row["word"] for row in info.evidence] == ["covered", "top up: level 3", "top up: level 9"]


def test_copies_of_held_out_rows_cover_nothing() -> None:
    train = [{"level": 1.0, "answer": str(n)} for n in range(40)]
    held_out = [
        {"level": 2.0, "answer": str(n), "prompt": f"A level-two question {n} with many words in it?"} for n in range(8)
    ]
    assert _holes(_corpus([*train, *held_out], held_out)) == [("level", "2", 8)]


def test_named_skills_and_their_order() -> None:
    """`c` is in no training row; `b > a` is in none though both skills are; a pair with `c` is not told beside it."""
    orders = [("a", "b"), ("a",), ("b",), ("a", "a")]
    train = [{"skills": orders[n % 4]} for n in range(400)]
    held_out = [{"skills": one} for one in (("a", "c"), *[("b", "a")] * 6, *[("a", "b")] * 20)]
    assert _holes(_corpus(train, held_out)) == [("skill", "c", 1), ("pair", "b > a", 6)]


def test_one_absence_by_chance_is_no_hole() -> None:
    """One row in 40 has a rare pair: with 40 training rows it is as likely held out as not."""
    train = [{"skills": ("a", "b")} for _ in range(40)]
    corpus = _corpus(train, [{"skills": ("a", "b")}] * 39 + [{"skills": ("b", "a")}])
    assert _holes(corpus) == []
    (info,) = Coverage().check(corpus)
    assert "Chance explains 1 other" in info.message


def test_steps_forms_and_lengths() -> None:
    train = [{"prompt": f"What is {n} + {n + 1}?", "answer": str(2 * n + 1), "skills": ("+",)} for n in range(10, 90)]
    longer = [
        {"prompt": f"What is {n} + {n + 1} + {n}?", "answer": str(3 * n + 1), "skills": ("+", "+")} for n in range(10, 20)
    ]
    assert _holes(_corpus(train, longer)) == [("steps", "2 steps", 10)]
    boxed = [{"answer": rf"\boxed{{{2 * n + 2}}}", "skills": ("+",)} for n in range(10, 20)]
    assert [(kind, rows) for kind, _, rows in _holes(_corpus(train, boxed))] == [("form", 10)]
    words = [{"answer": " ".join(random.Random(n).choices(["sun", "rain", "snow"], k=4))} for n in range(80)]
    long = [{"answer": " ".join(random.Random(n).choices(["sun", "rain", "snow"], k=40))} for n in range(10)]
    assert _holes(_corpus(words, words[:5] + long)) == [("length", "39 to 53 tokens", 10)]


def test_a_tool_and_an_argument() -> None:
    def call(tool: str, **arguments: str) -> dict[str, Any]:
        return {"answer": json.dumps({"tool": tool, **arguments})}

    train = [call(("alarm", "weather")[n % 2], **{("time", "city")[n % 2]: str(n)}) for n in range(120)]
    held_out = [call("alarm", time="7"), *[call("lamp", room="hall")] * 6, *[call("weather", city="Bern", day="May")] * 6]
    corpus = _corpus(train, held_out)
    assert {(kind, what) for kind, what, _ in _holes(corpus)} == {
        ("skill", "tool lamp"), ("detail", "weather(day)")
    }  # fmt: skip
    assert "tool is missing: lamp" in find_coverage(corpus).cells["t", None]


def test_a_task_that_is_not_trained_is_no_warning() -> None:
    corpus = _corpus([{"answer": "1"}] * 20, [{"task": "other", "answer": "long " * 50}] * 20)
    assert [one.severity for one in Coverage().check(corpus)] == ["info"]
    assert find_coverage(corpus).cells["other", None] == "the task is not trained"


@pytest.mark.slow
def test_one_distribution_has_few_false_alarms() -> None:
    """Rows of one process, dealt out at random, many times: with a hole in at most one corpus of a hundred."""
    found: list[Observation] = []
    for seed in range(40):
        rng = random.Random(seed)
        rows = [
            {"skills": tuple(rng.choices("abcdef", k=rng.randint(1, 3))), "answer": " ".join("x" * rng.randint(1, 60))}
            for _ in range(240)
        ]
        found += [one for one in Coverage().check(_corpus(rows[:180], rows[180:])) if one.severity == "warning"]
    assert len(found) <= 2, [one.message for one in found]


def test_shorter_answers_are_no_hole() -> None:
    """Train has worked solutions, held-out rows have the bare number."""
    train = [{"answer": f"First I add {n} and then I take {n} away, which gives {n}."} for n in range(60)]
    assert not [hole for hole in _holes(_corpus(train, [{"answer": str(n)} for n in range(20)])) if hole[0] == "length"]
