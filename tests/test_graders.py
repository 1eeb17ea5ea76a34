"""Graders: the answer earns 1, wrong answers 0, hostile text neither raises nor hangs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixwright import catalog
from mixwright.config import CorpusConfig
from mixwright.contracts import Grader
from mixwright.corpus import Corpus, read_corpus
from mixwright.errors import InputError
from mixwright.graders import load_grader
from mixwright.graders.choice import option_index, option_texts
from mixwright.records import Example

OPTIONS = {"options": ["Paris", "Rome", "New  York", "rome "]}


def row(answer: str | None, **extra: object) -> Example:
    return Example("i", "t", "p", answer=answer, extra=extra)


@pytest.mark.parametrize(
    ("grader", "answer", "right", "wrong"),
    [
        (
            "exact",
            "new york",
            ["new york", " new\tyork\n", "new  york"],
            ["New York", "new", "new york!", "it is new york", ""],
        ),
        (
            "numeric",
            "12",
            ["12", "+12", " 12.0\n", "1.2e1", "012", "12."],
            ["1 2", "12 apples", "is 12", "13", "", "1e", "twelve"],
        ),
        ("numeric", "1234567.5", ["1,234,567.5", "1234567.50"], ["1,23,4567.5", "1,234,567", "1.234.567,5", ",1234567.5"]),
        ("numeric", "-0.5", ["-.5", "-5e-1"], [".5", "- .5", "--.5", "\u2212.5", "."]),
        ("numeric?tolerance=0.1", "1", ["1.1", "0.9", "1"], ["1.11", "0.89"]),
        ("numeric", "1e999", ["1e999"], ["1e998", "inf", "Infinity", "nan"]),
        ("numeric", "no number", ["no number"], ["0", "number"]),
        ("numeric", "12", [], ["\u0661\u0662", "\uff11\uff12", "1_2", "0xc", "12\u0660", "1e9999999", "9" * 200]),
        ("numeric", "0.1", ["0.10"], ["0.1000000000000000055511151231257827"]),
    ],
)
def test_right_and_wrong(grader: str, answer: str, right: list[str], wrong: list[str]) -> None:
    judge = load_grader(grader)
    assert {text: judge.grade(row(answer), text) for text in right} == dict.fromkeys(right, 1.0)
    assert {text: judge.grade(row(answer), text) for text in wrong} == dict.fromkeys(wrong, 0.0)


@pytest.mark.parametrize(
    ("example", "right", "wrong"),
    [
        (
            row("B", **OPTIONS),
            ["B", "b", "(B)", "B.", "b) rome", "Rome", "ROME", "D"],
            ["A", "Paris", "A or B", "B) Paris", "E", ""],
        ),
        (row("new york", **OPTIONS), ["C", "New York", "c: new york"], ["york", "the answer is C"]),
        (row("2", **OPTIONS), ["C", "new york"], ["2", "B"]),
        (row("1", choices=["1", "0"]), ["A", "1"], ["B", "0"]),
        (row("x", choices={"text": ["m", "n"], "label": ["x", "y"]}), ["x", "X.", "m"], ["y", "n", "A"]),
        (row("y", choices={"x": "m", "y": "n"}), ["y", "n"], ["x"]),
        (row("B"), ["B", "(b)"], ["A", "BB", "B or C"]),
    ],
)
def test_choice(example: Example, right: list[str], wrong: list[str]) -> None:
    judge = load_grader("choice")
    assert {text: judge.grade(example, text) for text in right} == dict.fromkeys(right, 1.0)
    assert {text: judge.grade(example, text) for text in wrong} == dict.fromkeys(wrong, 0.0)


def test_choice_luck() -> None:
    judge = load_grader("choice")
    assert judge.luck([row("A", **OPTIONS)]) == 1 / 3  # two of the four are the same
    assert judge.luck([row("A", options=["x", "y"]), row("A", options=["x", "y", "z", "w"])]) == pytest.approx(3 / 8)
    assert judge.luck([row("A")]) is None
    assert load_grader("exact").luck([row("A")]) is None


def test_answers_to_rows_with_options_are_taken_by_their_place() -> None:
    for value in (["Paris", "Rome"], {"text": ["Paris", "Rome"], "label": ["x", "y"]}, {"x": "Paris", "y": "Rome"}):
        assert option_texts(row("Rome", choices=value)) == ["paris", "rome"]
        assert [option_index(value, text) for text in ("ROME ", "Paris", "London", "")] == [1, 0, None, None]
    assert [option_index(["Paris", "Rome"], text) for text in ("b", "(A)", "B) Rome", "B) Paris", "C")] == [
        1,
        0,
        1,
        None,
        None,
    ]
    assert option_index({"x": "Paris", "y": "Rome"}, "y.") == 1
    assert option_index(["Paris", "Rome"], "Rome" * 1000) is None
    assert option_texts(row("B")) == []
    assert option_index(None, "B") is None


JUDGED = [
    ("exact", row("42")),
    ("json_fields", row('{"n": 42}')),
    ("numeric", row("42")),
    ("choice", row("B", **OPTIONS)),
    *(
        pytest.param("reasoning_gym", row(gold, reasoning_gym={"task": task, "metadata": {}}), marks=pytest.mark.gym)
        for gold, task in (("42", "chain_sum"), ("2^3", "prime_factorization"))
    ),
]


@pytest.mark.parametrize(("name", "example"), JUDGED)
@given(st.text(max_size=40))
@settings(max_examples=100, deadline=None)
def test_anything_gets_a_score(name: str, example: Example, text: str) -> None:
    assert 0.0 <= load_grader(name).grade(example, text) <= 1.0


WORDLESS = st.text(st.characters(categories=["P", "S", "Z", "Cc", "Cf", "Mn"]), max_size=12) | st.sampled_from(
    ["", "-", "**", "...", "$", "$$", "\\boxed{}", "```", "{}", "()", "\n\n", "\u200b"]
)
GOLDS = ["yes", "No", "Paris", "42", "1/2", "5 m/s", "$3$", "A", "the", '{"a": 1}', "a b c", "-", "50%", "\u5317\u4eac"]


@pytest.mark.parametrize("name", [name for name in catalog.listing("graders") if name != "reasoning_gym"])
@given(WORDLESS, st.sampled_from(GOLDS) | WORDLESS, st.sampled_from(["Is it so? Answer yes or no.", "**"]), st.booleans())
@settings(deadline=None, max_examples=300)
def test_a_text_without_words_is_a_wrong_answer(name: str, text: str, gold: str, prompt: str, has_options: bool) -> None:
    """Whatever the gold answer is: a number, no exception, and 0 where the gold answer has a word."""
    judge = load_grader(name)
    example = Example("i", "t", prompt, answer=gold, extra={"options": [gold, "-", "Rome"]} if has_options else {})
    for score in (judge.grade(example, text), judge.grade_cut(example, text)):
        assert isinstance(score, float)
        assert 0.0 <= score <= 1.0
        if gold in GOLDS and gold != "-" and text.strip() != "-":
            assert score == 0.0


def test_a_grader_that_fails_names_its_item(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = Corpus.from_examples([Example("item-7", "t", "p", answer="a", source="rows.jsonl:8")], {"t": "exact"})

    def fail(*_: object) -> float:
        raise IndexError("list index out of range")

    monkeypatch.setattr(type(corpus.grader("t")), "grade", fail)
    with pytest.raises(IndexError) as caught:
        corpus.grade(corpus[0], "-")
    (note,) = caught.value.__notes__
    assert "item-7" in note
    assert "rows.jsonl:8" in note
    assert "exact" in note


HOSTILE = [
    "1" * 5_000_000,
    "42 " * 1_000_000,
    " " * 5_000_000 + "x",
    "(" * 1_000_000,
    "[[" * 500_000 + "]]" * 500_000,
    "\x00\x1b[31m" * 100_000,
    "1e" * 500_000,
    "1," * 500_000,
    "\u202e42",
    "1e999",
    "__import__('os').abort()",
    "\ud800",
]


@pytest.mark.parametrize(("name", "example"), JUDGED)
def test_hostile_text_is_wrong_and_cheap(name: str, example: Example) -> None:
    judge = load_grader(name)
    judge.grade(example, "warm")
    scores = [judge.grade(example, text) for text in HOSTILE]  # would hang if it were quadratic in megabytes
    assert max(scores) < 1.0 if name == "reasoning_gym" else scores == [0.0] * len(HOSTILE)


def test_all_graders_are_listed() -> None:
    assert list(catalog.listing("graders")) == [
        "choice",
        "exact",
        "final_answer",
        "follows",
        "includes",
        "json_fields",
        "numeric",
        "reasoning_gym",
        "tool_call",
    ]


def test_without_reasoning_gym_the_grader_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"no reasoning_gym. Run: pip install 'mixwright\[gym\]'"):
        load_grader("reasoning_gym")


@pytest.mark.gym
def test_reasoning_gym_scorer() -> None:
    judge = load_grader("reasoning_gym")
    gcd = row("12", reasoning_gym={"task": "gcd", "metadata": {}})
    assert judge.grade(gcd, " 12\n") == 0.5  # its own partial credit: length of the answer over length of the text
    assert judge.grade(gcd, "13") == 0.0
    with pytest.raises(InputError, match="came from reasoning-gym"):
        judge.grade(row("12"), "12")
    with pytest.raises(InputError, match="a task of Reasoning Gym"):
        judge.grade(row("12", reasoning_gym={"task": "nothing"}), "12")


@pytest.mark.gym
def test_scorers_that_would_run_the_completion_are_refused() -> None:
    judge = load_grader("reasoning_gym")
    for task in ("countdown", "n_queens", "string_insertion", "polynomial_multiplication", "puzzle24"):
        with pytest.raises(InputError, match=f"{task}, whose scorer evaluates it as code"):
            judge.grade(row("1", reasoning_gym={"task": task, "metadata": {}}), "1")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    (tmp_path / "data").mkdir()
    return tmp_path


def test_a_function_of_the_project(project: Path) -> None:
    (project / "mine_a.py").write_text(
        "def score(completion, answer, *, task, **row):\n    return completion == answer + row['end'] + task\n"
    )
    judge = load_grader("mine_a:score")
    assert isinstance(judge, Grader)
    assert (
        judge.grade(Example("i", "t", "p", answer="a", extra={"end": "!", "answer": "no", "completion": "no"}), "a!t") == 1.0
    )
    assert judge.grade(row("a", end="!"), "a") == 0.0
    assert load_grader("./mine_a.py:score").grade(row("a", end="!"), "a!t") == 1.0, "as a shell completes it"
    (project / "data" / "rows.jsonl").write_text('{"prompt": "p", "answer": "a", "end": "!"}\n')
    corpus = read_corpus(CorpusConfig(train="data/rows.jsonl", grader="mine_a:score"))
    assert corpus.grade(corpus[0], "a!all") == 1.0


@pytest.mark.parametrize("result", ["2", "-0.1", "float('nan')", "'x'", "None", "1 / 0"])
def test_results_that_are_no_score(project: Path, result: str) -> None:
    name = f"mine_{abs(hash(result))}"
    (project / f"{name}.py").write_text(f"def score(completion, answer, **row):\n    return {result}\n")
    with pytest.raises(InputError, match=f"example 'i' from grader {name}:score"):
        load_grader(f"{name}:score").grade(row("a"), "a")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere_at_all:score", "a module nowhere_at_all, got none"),
        ("json:nothing", "a function nothing in json"),
        ("json.nowhere:f", "a module json.nowhere, got none"),
        ("data.evil:score", "outside the corpus's folder"),
        ("data/evil.py:score", "outside the corpus's folder"),
        ("nowhere_at_all.py:score", "a module nowhere_at_all.py, got none"),
        ("broken_b:score", "that imports, got RuntimeError: on import"),
        ("../evil:score", "package.module:function"),
        ("a b:c", "package.module:function"),
        (":f", "package.module:function"),
        ("exakt", "Nearest: exact"),
        ("numeric?tolerance=-1", "tolerance as a number of at least 0"),
        ("numeric?tolerance=abc", "tolerance of graders.numeric"),
    ],
)
def test_names_that_are_refused(project: Path, name: str, message: str) -> None:
    (project / "data" / "evil.py").write_text("raise SystemExit('data was run as code')\n")
    (project / "broken_b.py").write_text("raise RuntimeError('on import')\n")
    (project / "data" / "rows.jsonl").write_text('{"prompt": "p", "answer": "a"}\n')
    with pytest.raises(InputError, match=message):
        read_corpus(CorpusConfig(train="data/rows.jsonl", grader=name))


def test_a_saved_corpus_brings_no_code_either(project: Path) -> None:
    (project / "data" / "worse.py").write_text("raise SystemExit('data was run as code')\n")
    Corpus.from_examples([row("a")], {"t": "data.worse:score"}).save(project / "data")
    corpus = Corpus.load(project / "data")
    with pytest.raises(InputError, match="outside the corpus's folder"):
        corpus.grade(corpus[0], "a")
