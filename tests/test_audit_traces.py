"""Worked solutions: equations and their values by hand, rules, facts, slips, order of steps, and what is left alone."""

from __future__ import annotations

import random
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright.audit import rows as audit_rows
from mixwright.audit.checks.traces import Traces, values_used_too_early
from mixwright.audit.stage import run_audit
from mixwright.audit.steps import wrong_values
from mixwright.audit.steps.equations import MAX_EQUATIONS, read_equations
from mixwright.audit.steps.wrong_values import rules_of
from mixwright.corpus import Corpus
from mixwright.records import Example, Observation
from mixwright_extras.checks.error_clusters import ErrorClusters


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("She has 12 - 5 = 7 apples left.", [("minus", 7, True)]),
        ("48/2 = <<48/2=24>>24 clips", [("divide", 24, True)]),
        ("100 x .20 = $<<100*.20=20>>20", [("times", 20, True)]),
        ("354 + (-13) = <<354+-13=341>>341", [("plus", 341, True)]),
        ("$3.50 * 4 = $14.00", [("times", 14, True)]),
        ("20% of 80 = 16", [("times", 16, True)]),
        ("50/200 = 25%", [("divide", 25, True)]),
        ("10 / 3 = 3.33, and 10/3 = about 3.4", [("divide", Fraction(333, 100), True), ("divide", Fraction(17, 5), True)]),
        ("17 + 5 = 22 - 9 = 13", [("plus", 22, True), ("minus", 13, True)]),
        ("25 - (-19) = 25 + 19 = 44", [("plus", 44, True)]),
        ("(4 + 6) * 3 = 31", [("several operations", 31, False)]),
        ("\\frac{1}{2} \\times 10 = 6", [("several operations", 6, False)]),
        ("- 60/6 = 10", [("divide", 10, True)]),
        ("(3) -298 / 2 = -149", [("divide", -149, True)]),
        ("-573 points. -573 + (-65) = -638.", [("plus", -638, True)]),
        ("5 apples + 3 apples = 9 apples", [("plus", 9, False)]),
        ("3.6666666666666665 - 2.3333333333333335 = 1.3333333333333335", [("minus", Fraction("1.3333333333333335"), True)]),
        ("6 * 3 = 19 - as we saw", [("times", 19, False)]),
        ("30 percent of them, 4 * 9 = 35", [("times", 35, False)]),
        ("In 3 years 2*8 = 24 hours", [("times", 24, False)]),
    ],
)
def test_equations_by_hand(text: str, read: list[tuple[str, Fraction | int, bool]]) -> None:
    found = [(one.operation, one.stated, one.is_right) for one in read_equations(text)]
    assert [entry for entry in found if entry in read] == read
    assert {entry[2] for entry in found} == {entry[2] for entry in read}


@pytest.mark.parametrize(
    "text",
    [
        "x = 4, n = n + 1, y * 3 + 2 = 11, 2^3 + 1 = 10",
        "9 + 5 = 2 (mod 12)",
        "7 / 2 = 3 R 1",
        "150 / 60 = 2 hours 30 minutes",
        "a ratio of 3:4 = 3/4",
        "2 hours - 10 minutes = 110 minutes",
        "He eats half, 1/2 = 12.",
        "60 because .6 x 100% = <<60=60>>60%",
        "15 trucks / 90 vehicles * 100% = 16.66...%, rounded",
        "20 / 240 minutes = 8.333...%",
        "because $1 / 2 = 50 cents",
        "i.e. 0900-0130 = 0730 hours",
        "profit of $80 000 x 20/100 = $16 000.",
        "he uses 600 x 30 = 18 000 watts",
        "so it took 1 1/2 * 60 = 90 minutes",
        "for the race 6 km/ 1/30 hour = 180 km",
        "2000 / 2/3 = $3000",
        "the trees: 3*30 = 30 + M trees",
        "38 - 32 = 32 + x - 32",
        "240 students - (40 + 84 + 100) = 240 students - 224 students",
        "3 dozen * 2 = 72",
        "v1.2-3 = 4",
        "2 + 3 = 5 million",
        "sqrt(36) + 5 = 11",
        "log10(100) * 2 = 4",
    ],
)
def test_what_may_have_another_meaning_is_no_wrong_equation(text: str) -> None:
    assert all(one.is_right for one in read_equations(text))


@given(st.integers(0, 9999), st.integers(1, 9999), st.sampled_from("+-*/"))
def test_values_are_those_of_python(first: int, second: int, sign: str) -> None:
    """Exact values are right; three decimals of a quotient are, too; one more of the last place is not."""
    true = (
        Fraction(first, second)
        if sign == "/"
        else Fraction({"+": first + second, "-": first - second, "*": first * second}[sign])
    )
    shown = f"{float(true):.3f}"
    (one,) = read_equations(f"{first} {sign} {second} = {shown}")
    assert one.is_right
    assert one.true == true
    (wrong,) = read_equations(f"{first} {sign} {second} = {float(true) + 0.002:.3f}")
    assert not wrong.is_right


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("27 + 15 = 43", "off by +1"),
        ("12 - 7 = 19", "plus in its place"),
        ("6 * 7 = 420", "10 times too large"),
        ("27 + 15 = 32", "carries forgotten"),
        ("5 - 8 = 3", "the other sign"),
        ("31 * 3 = 39", "digits reversed"),
        ("22 / 2 = 22", "the first number copied"),
    ],
)
def test_rules_by_hand(text: str, rule: str) -> None:
    assert rule in set(rules_of(read_equations(text)[0]))


def _used_too_early(prompt: str, text: str) -> list[tuple[int, int]]:
    return values_used_too_early(prompt, text, read_equations(text))[0]


def test_a_value_that_only_a_later_step_makes() -> None:
    """Small numbers, and those of the prompt, may come from anywhere."""
    text = "68 - 18 = 50. 34 * 2 = 68."
    assert _used_too_early("34 boxes hold 2 each, 18 break.", text) == [(0, 1)]
    assert _used_too_early("68 and 18, 34", text) == []
    small = "7 + 40 = 47. 21 - 14 = 7."
    assert _used_too_early("40, 21, 14", small) == []


def _rows(rng: random.Random, change: float, value: object) -> list[str]:
    """Two hundred solutions of two steps, a share of whose sums has another value; later steps go on from it."""
    texts = []
    for _ in range(200):
        first, second, third = (rng.randrange(13, 90) for _ in range(3))
        total = first + second
        if rng.random() < change:
            total = value(rng, first, second)  # type: ignore[operator]
        texts.append(f"First {first} + {second} = {total}. Then {total} - {third} = {total - third}.")
    return texts


def _check(texts: list[str], split: str = "train") -> list[Observation]:
    return Traces().check(
        Corpus.from_examples(Example(f"i{n}", "sums", "?", target=text, split=split) for n, text in enumerate(texts))
    )


def _warnings(texts: list[str]) -> list[str]:
    return [one.message for one in _check(texts) if one.severity == "warning"]


def test_a_rule_is_told_from_slips() -> None:
    """A tenth of the sums one too many; a tenth with a random value; nothing wrong; and held-out rows are left alone."""
    rng = random.Random(0)
    (told,) = _warnings(ruled := _rows(rng, 0.1, lambda _, a, b: a + b + 1))
    assert "one rule explains" in told
    assert "(off by +1)" in told
    (told,) = _warnings(_rows(rng, 0.15, lambda rng, a, b: a + b + rng.randrange(3, 80)))
    assert "without a pattern" in told
    sound = _check(_rows(rng, 0.0, None))
    assert [one.severity for one in sound] == ["info"]
    assert "400 equations were checked, 0 of them are wrong" in sound[0].message
    assert _check(ruled, split="eval") == []


def test_evidence_has_the_row_the_right_value_and_its_place() -> None:
    texts = [f"{n} + 20 = {n + 21}." for n in range(13, 43)] + [f"{n} + 20 = {n + 20}." for n in range(43, 99)]
    (one,) = _check(texts)
    assert one.count == 30
    assert one.evidence[0]["id"] == "i0"
    assert one.evidence[0]["right value"] == "33"
    begin, end = one.evidence[0]["start"], one.evidence[0]["end"]
    assert texts[0][begin:end] == "13 + 20 = 34"


def test_one_fact_that_is_always_wrong_is_named() -> None:
    rng = random.Random(1)
    texts = _rows(rng, 0.0, None) + ["So 7 x 8 = 54."] * 12
    (told,) = _warnings(texts)
    assert "'7 x 8 = 54' (12 of 12)" in told


def test_solutions_out_of_order_are_told() -> None:
    rng, texts = random.Random(2), []
    for number in range(100):
        first, second, third = (rng.randrange(13, 90) for _ in range(3))
        steps = [f"{first} + {second} = {first + second}.", f"{first + second} * {third} = {(first + second) * third}."]
        texts.append(" ".join(steps[::-1] if number % 5 == 0 else steps))
    (told,) = _warnings(texts)
    assert told.startswith("20 of 100 solutions use a value before the step that makes it") or told.startswith("19 of 100")


def test_values_that_every_solution_makes_are_no_order() -> None:
    """Each solution uses 77 from nowhere and makes it later, as every other solution does: chance explains it."""
    texts = [f"77 + {number} = {77 + number}. {number} + {77 - number} = 77." for number in range(21, 70)]
    assert all(_used_too_early("", text) == [(0, 1)] for text in texts)
    assert not _warnings(texts)


@pytest.mark.parametrize(
    "text",
    [
        "Thus \\frac{81}{3} \\times 2 = 55 holds.",
        "So 48/2 = <<48/2=25>>25 clips.",
        "Then 12 \u2212 5 = 8, as 50\\% \\cdot 8 = 4.",
    ],
)
def test_places_are_those_of_the_text_as_it_stands(text: str) -> None:
    """What stands between them has the digits of the equation, in their order."""
    wrong = [one for one in read_equations(text) if not one.is_right]
    assert len(wrong) == 1
    begin, end = wrong[0].span
    assert re.findall(r"\d+", text[begin:end]) == re.findall(r"\d+", wrong[0].text)


def test_hostile_texts_end_soon() -> None:
    """Many signs, brackets and digits; none of it is an equation that is kept more than so often."""
    for text in (
        "= 1 " * 9000,
        "1 + " * 9000 + "= 2",
        "(" * 9000 + "1 + 1 = 2",
        "9" * 30_000 + " + 1 = 3",
        "1 + 1 = 3. " * 9000,
    ):
        assert len(read_equations(text)) <= MAX_EQUATIONS


def test_wrong_equations_are_kept_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further equations of that operation are left out of both counts."""
    monkeypatch.setattr(wrong_values, "MAX_WRONG_KEPT", 30)
    (one,) = _check([f"{n} + 20 = {n + 21}." for n in range(13, 99)])
    assert (one.count, one.total) == (30, 30)


def test_of_large_tasks_a_sample_is_read_and_all_where_files_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = [(n, 7 * n % 31) for n in range(400)]
    rows = [
        Example(f"r{n}", "large" if n < 300 else "small", "?", target=f"{a} + {b} = {a + b + (a % 4 == 0)}")
        for n, (a, b) in enumerate(sums)
    ]
    rows.append(Example("held", "large", "?", target="1 + 1 = 3", split="eval"))
    corpus = Corpus.from_examples(rows)
    whole = {one.task: one for one in Traces().check(corpus)}
    assert [(whole[task].count, whole[task].total) for task in ("large", "small")] == [(75, 300), (25, 100)]
    monkeypatch.setattr(audit_rows, "READ_ROWS", 300)
    found = {one.task: one for one in Traces().check(corpus)}
    assert (found["large"].total, found["small"].total) == (150, 100)
    assert found["small"].message == whole["small"].message
    assert 0.1 < found["large"].count / 150 < 0.4  # a quarter are wrong
    seen = run_audit(corpus, ["traces"], whole=True)
    assert [(one.count, one.total) for one in seen] == [(75, 300), (25, 100)]


def test_what_a_sample_found_in_order_says_that_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = Corpus.from_examples([Example(f"r{n}", "t", "?", target=f"{n} + 1 = {n + 1}") for n in range(40)])
    monkeypatch.setattr(audit_rows, "READ_ROWS", 30)
    (found,) = Traces().check(corpus)
    assert (found.task, found.severity, found.count, found.total) == (None, "info", 0, 30)
    (found,) = ErrorClusters().check(corpus)
    assert (found.task, found.total) == (None, 30)
