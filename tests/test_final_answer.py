"""The final answer of a completion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright.final_answer import MAX_ANSWER_CHARACTERS, final_answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("3 15 0 # 0", "0"),
        ("# 12", "12"),
        ("work work\n#### 1,234", "1234"),
        (r"so $\boxed{\frac{1}{2}}$.", r"\frac{1}{2}"),
        (r"\boxed{7} and then some", "7"),
        ("<think>the answer is 3</think><answer> +4.50 </answer>", "4.5"),
        ("Answer: Paris. It is the capital.", "paris"),
        ("The final answer is\n  New   York", "new york"),
        ("first 3, then 14", "14"),
        ("3 = 3.0", "3"),
        ("Yes", "yes"),
        ("I would say that this is, in the end, a matter of taste", "taste"),
        ("a # 5 but # 6", "6"),
        (r"\boxed{8}. The answer fits the question.", "8"),
        ("Answer: 8. The answer fits.", "fits"),
        ("I have no answer", "i have no answer"),
        ("", ""),
        ("  \n ", ""),
        ("# ", ""),
    ],
)
def test_answers(text: str, answer: str) -> None:
    assert final_answer(text) == answer


@given(st.text(max_size=2000))
def test_any_text_gives_a_short_printable_answer_of_its_end(text: str) -> None:
    answer = final_answer(text)
    assert len(answer) <= MAX_ANSWER_CHARACTERS
    assert answer.isprintable()
    assert final_answer("9" * 1000 + "\n" * 400 + text[-390:]) == final_answer("\n" * 10 + text[-390:])


def test_long_hostile_texts_are_read_at_their_end_only() -> None:
    for piece in ("#", "\\boxed{", "1,234", "answer", "<answer>", "9" * 50, "- "):
        assert final_answer(piece * 200_000) == final_answer((piece * 200_000)[-400:])
