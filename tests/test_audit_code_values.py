"""Values of code: the closed subset against Python itself, forms by hand, what is left alone, rules, and a user's steps."""

from __future__ import annotations

import ast
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright.corpus import Corpus
from mixwright.records import Example
from mixwright_extras.checks.code_comments import CodeComments
from mixwright_extras.code.rules import code_rules
from mixwright_extras.code.safe_values import MAX_WEIGHT, Budget, UnknownValueError, parse, value_of
from mixwright_extras.code.values import read_code_values

NUMBERS = st.integers(-30, 30).map(str)
EXPRESSIONS = st.recursive(
    NUMBERS | st.sampled_from(["[3, 1, 2]", "'a b'", "x", "(1, 2)", "{'k': 4}", "2.5", "True"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%", "<", "==", "in", "and"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        st.tuples(st.sampled_from(["len", "sum", "max", "sorted", "abs", "str", "list", "round"]), inner).map(
            lambda parts: f"{parts[0]}({parts[1]})"
        ),
        st.tuples(inner, st.sampled_from(["[0]", "[::-1]", "[1:]", ".upper()", ".split()", ".count('a')"])).map(
            lambda parts: f"({parts[0]}){parts[1]}"
        ),
        inner.map(lambda one: f"[i * 2 for i in {one} if i]"),
        inner.map(lambda one: f"f'<{{{one}}}>'" if "'" not in one else one),
    ),
    max_leaves=6,
)


@given(EXPRESSIONS)
def test_values_are_those_of_python(source: str) -> None:
    """Where the subset gives a value, Python gives the same of the same kind."""
    tree = ast.parse(source, mode="eval")
    try:
        value = value_of(tree.body, {"x": [5, 7]}, Budget())
    except UnknownValueError:
        return
    true = eval(compile(tree, "test", "eval"), {"x": [5, 7]})  # made from the parts above
    assert value == true
    assert type(value) is type(true)


@pytest.mark.parametrize(
    "source",
    [
        "9 ** 9 ** 9", "'a' * 10 ** 9", "[0] * 10 ** 9", "sum(range(10 ** 9))", "'ab'.center(10 ** 9)", "f'{1:99999999}'",
        "[i for i in range(9999) for j in range(9999)]", "'abc'.replace('', 'x' * 5000)", "().__class__", "open('x')",
        "__import__('os')", "'{0.__class__}'.format(1)", "x.append(1)", "(lambda: 1)()", "1 << 10 ** 9", "10.0 ** 400",
    ],
)  # fmt: skip
def test_what_is_outside_large_or_unsafe_has_no_value(source: str) -> None:
    with pytest.raises(UnknownValueError):
        value_of(ast.parse(source, mode="eval").body, {"x": [1]}, Budget())
    assert parse("(" * 9000) is None
    assert len(value_of(ast.parse(f"'a' * {MAX_WEIGHT}", mode="eval").body, {}, Budget())) == MAX_WEIGHT


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (">>> x = [4, 9]\n>>> len(x)\n2\n>>> x[1]\n4\n", [("len", True), ("index", False)]),
        ("```python\nprint(7 // 2)  # -> 3\nprint(7 % 2)  # 2\n```", [("//", True), ("%", False)]),
        ("```python\ns = 'abc'\nprint(s.upper())\n```\nOutput:\n```\nABc\n```", [(".upper", False)]),
        ("```python\nr = sum([1, 2])\nprint(r)\n```\nThis prints 3.", [("sum", True)]),
        ("```python\nsorted([2, 1])\n# Output: [1, 2]\n```", [("sorted", True)]),
        ("Here `max([2, 9])` is 2, and `10 / 3` gives `3.33`.", [("max", False), ("/", True)]),
        ("```python\na, b = 3, 4\na += 1\nprint(a * b)  # 16\n```", [("*", True)]),
        ("```python\nprint('5' + '3')  # 8\n```", []),
        ("```python\nprint('5' + '3')  # -> 8\n```", [("+", False)]),
        (">>> round(2.5)\n3\n", [("round", False)]),
        (">>> 2 > 3\nTrue\n", [("comparison", False)]),
    ],
)
def test_forms_by_hand(text: str, read: list[tuple[str, bool]]) -> None:
    found = read_code_values(text)
    assert [(one.operation.removeprefix("code: "), one.is_right) for one in found] == read


@pytest.mark.parametrize(
    "text",
    [
        "```ruby\n7 / 2 # => 3\n```",
        "```\n7 / 2 # => 3\n```",
        "```javascript\nconsole.log(7 / 2) # -> 3\n```",
        "```python\nx = [1]\nx.append(2)\nprint(len(x))  # 2\n```",
        "```python\nx = [1]\ny = x\ny += [2]\nprint(len(x))  # 2\n```",
        "```python\ndef len(a):\n    return 9\nprint(len([1]))  # 9\n```",
        "```python\nfrom numpy import *\nprint(sum([1, 2]))  # 9\n```",
        "```python\nn = 0\nfor i in range(3):\n    n += i\nprint(n + 1)  # 4\n```",
        "```python\nprint(list(range(100)))  # [0, 1, ...]\nage = 20 + 1  # 30 at most\n```",
        ">>> [1][5]\nTraceback (most recent call last):\nIndexError: list index out of range\n",
        "It is wrong that `len([1, 2])` is 3, and `x + 1` is 7. `1 / 2` is 0 in Python 2.",
        "```python\nprint(1 + 1)\nprint(helper())\n```\nOutput:\n```\n7\n8\n```",
        "```python\nprint(1 + 1)\n```\nOutput:\n```\n2\nand more\n```",
    ],
)
def test_what_may_have_another_meaning_is_not_wrong(text: str) -> None:
    assert all(one.is_right for one in read_code_values(text))


@pytest.mark.parametrize(
    ("source", "stated", "rule"),
    [
        ("len('abc')", 4, "off by +1"),
        ("9 // 2", 5, "rounded up"),
        ("9 % 2", 4, "// in its place"),
        ("[5, 6, 7][1]", 5, "the one before"),
        ("sum([1, 2, 3])", 3, "the last one left out"),
        ("max([1, 2])", 1, "min in its place"),
        ("'ab'.upper()", "ab", "left as it was"),
        ("list(range(3))", [0, 1, 2, 3], "one more at the end"),
    ],
)
def test_rules_by_hand(source: str, stated: Any, rule: str) -> None:
    node = ast.parse(source, mode="eval").body
    assert rule in set(code_rules(node, {}, value_of(node, {}, Budget()), stated))


def test_places_are_those_of_the_completion() -> None:
    text = "Caf\u00e9:\n```python\nprint('\u00e9\u00e9' * 2)  # -> \u00e9\u00e9\n```"
    (one,) = read_code_values(text)
    assert one.span is not None
    assert text[slice(*one.span)] == "print('\u00e9\u00e9' * 2)  # -> \u00e9\u00e9"


def test_a_rule_of_code_is_told_from_slips() -> None:
    rng = random.Random(3)

    def warnings(wrong: Any) -> list[str]:
        texts = []
        for _ in range(150):
            many = [rng.randrange(90) for _ in range(rng.randrange(3, 8))]
            stated = len(many) if rng.random() < 0.85 else wrong(len(many))
            texts.append(f">>> len({many})\n{stated}\n>>> max({many})\n{max(many)}\n")
        examples = (Example(f"i{n}", "code", "?", target=text) for n, text in enumerate(texts))
        return [one.message for one in CodeComments().check(Corpus.from_examples(examples)) if one.severity == "warning"]

    (told,) = warnings(lambda true: true + 1)
    assert told.startswith("code: len: ")
    assert "(off by +1)" in told
    (told,) = warnings(lambda true: true + rng.choice((-2, 3, 5, 8, 11)))
    assert "values of code are wrong" in told
    assert "By operation: code: len" in told
    assert warnings(lambda true: true) == []
