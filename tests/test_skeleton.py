import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright.skeleton import MAX_CHARACTERS, skeleton


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("", ""),
        ("  42\n", "9"),
        ("12 + 5 = 17", "9 + 9 = 9"),
        ("-12.50", "-9.9"),
        ("Answer: 12", "answer: 9"),
        ("The final answer is 12.", "a final answer is 9."),
        (r"\boxed{12}", r"\boxed{9}"),
        ("<answer>abc</answer>", "<answer>a</answer>"),
        ("a cat sat", "a+"),
        ("ünïcode", "a"),
        ("\x1b[31m", "?[9a"),
    ],
)
def test_forms_by_hand(text, form):
    assert skeleton(text) == form


def test_lists_and_tables_of_any_length_share_a_form():
    assert len({skeleton(", ".join("7" * n)) for n in range(3, 30)}) == 1
    assert len({skeleton("\n".join(["| 3 | 14 |"] * n)) for n in range(2, 9)}) == 1


def test_both_ends_of_a_long_text_show():
    long = "<think>" + "so " * 5000 + r"\boxed{3}"
    assert skeleton(long).startswith("<think>")
    assert skeleton(long).endswith(r"\boxed{9}")


@given(st.text(max_size=600))
def test_forms_are_short_plain_and_stable(text):
    form = skeleton(text)
    assert len(form) <= MAX_CHARACTERS
    assert all(character.isprintable() or character == "\n" for character in form)
    assert form == skeleton(f"\n{text} ")


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=5))
def test_content_does_not_change_the_form(numbers):
    assert skeleton(" = ".join(map(str, numbers))) == skeleton(" = ".join("1" for _ in numbers))
    assert not re.search("[0-8]", skeleton(" and ".join(map(str, numbers))))
