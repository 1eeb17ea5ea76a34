r"""Grader for the final answer of a worked solution, in whatever words it is given.

Source: https://arxiv.org/abs/2110.14168 (`#### 72`), https://arxiv.org/abs/2103.03874 (`\boxed{72}`),
https://arxiv.org/abs/2210.09261 ("the answer is (B)").
Unit: 1.0 for the right final answer, 0.0 otherwise; luck is 1 / number of options where rows or prompts list them.
Cost: a few regular expressions over the last 20,000 characters.
Blind spot: a completion that was cut behind a number that happens to be right, where nobody says that it was (`grade_cut`);
an answer that is taken back without saying another (`The answer is 18. No.`), or denied by the sentence around it; numbers
in words; equal formulas written differently (`2x+1` and `1+2x`); the reasoning is not looked at.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Container, Sequence
from typing import Literal

from mixwright.errors import InputError
from mixwright.final_answer import WHOLE_ANSWER_CHARACTERS, Stated, find_stated_answers
from mixwright.graders._grader import Grader
from mixwright.graders._numbers import worked_number
from mixwright.graders._readings import (
    AMBIGUOUS,
    amount_of,
    is_number,
    label_of_text,
    normalise_words,
    number_of,
    option_letter,
    read_last_number,
    stated_letter,
    unit_differs,
)
from mixwright.graders.choice import labelled_options, luck_of
from mixwright.records import Example, plain

_CUT_MARK = "\0"
"""Stands where a completion was cut: what is read up to here may have gone on."""
_OPTION_LINE = re.compile(r"^[ \t]{0,8}\(?([A-Z])[).:][ \t]+(\S.{0,300})$", re.MULTILINE)


class FinalAnswer(Grader):
    r"""Right is a completion that ends in the answer; the gold answer of a worked solution is read by the same rules.

    Looked for in this order: the last `#### 72`, `\boxed{72}` or `<answer>72</answer>`; "the answer is 72", "Answer: 72",
    the last of several; a short completion as a whole, or the number that its workings come to; the last letter, number or
    word of the last sentence. Numbers are
    equal whatever their commas, currency, percent sign, unit, zeros or simple fraction; option letters with or without
    brackets; words in any case; formulas without LaTeX that changes nothing. Nothing for several answers (`3 or 4`), a
    list of all options, and an answer cut off. Of a completion that ran into the limit of tokens only what is finished
    counts: `\boxed{72}`, a mark or a short answer that something follows.

    Args:
        last_number: without a mark, look in the last sentence of a longer completion; false wants a mark or a bare answer.
    """

    def __init__(self, *, last_number: bool = True) -> None:
        if not isinstance(last_number, bool):
            raise InputError("last_number as true or false", repr(last_number), "Correct the grader's option.")
        self.last_number = last_number

    def grade(self, example: Example, completion: str) -> float:
        """1.0 when the completion's final answer is the answer's, else 0.0."""
        answer = (example.answer or "").strip()
        if not answer or not completion.strip():
            return 0.0
        if completion.strip() == answer:
            return 1.0
        kinds = {"marked", "whole", "last"} if self.last_number else {"marked", "whole"}
        return self._judge(example, completion, kinds)

    def grade_cut(self, example: Example, completion: str) -> float:
        """As `grade`, but nothing for an answer that the end of the text may have cut, nor for the last number before it."""
        if not (example.answer or "").strip() or not completion.strip():
            return 0.0
        if completion[-1].isspace():  # what stands before is whole
            return self._judge(example, completion, {"marked", "whole"})
        return self._judge(example, completion + _CUT_MARK, {"marked", "whole", "last"})

    def _judge(self, example: Example, completion: str, kinds: Container[str]) -> float:
        """1.0 where the first statement of these kinds that says anything is the answer; nothing where it was cut off."""
        prompt = plain(example.prompt)
        gold, options = _read_gold(example, prompt)
        for statement in find_stated_answers(completion, prompt):
            if _CUT_MARK in statement.text:
                return 0.0
            if statement.kind in kinds and (is_right := _agrees(gold, statement, options)) is not None:
                is_worked_out = statement.kind == "whole" and "last" in kinds and _is_worked_out(gold, statement.text)
                return float(is_right or is_worked_out)
        return 0.0

    def reading(self, answer: str) -> str:
        """One way of writing a gold answer: `72` of a solution that ends in `#### 72`, `B` of `(B)`, `yes` of `Yes`."""
        gold = final_answer_of(answer)
        amount = amount_of(gold)
        if amount is not None and is_number(gold):
            return str(amount)
        return option_letter(gold) or normalise_words(gold) or gold

    def luck(self, examples: Sequence[Example]) -> float | None:
        """Mean of 1 / number of options that a row or its prompt lists; None where one lists none."""
        return luck_of([len(_read_gold(row, plain(row.prompt))[1]) for row in examples])


@functools.lru_cache(maxsize=2**14)
def final_answer_of(answer: str) -> str:
    """The final answer of a gold answer: what its last mark marks; without a mark the answer itself."""
    answer = answer.strip()
    marked_text = next(
        (statement.text.strip() for statement in find_stated_answers(answer) if statement.kind == "marked"), answer
    )
    is_short = len(answer) <= WHOLE_ANSWER_CHARACTERS and "\n" not in answer and not re.search(r"####|\\boxed", answer)
    return answer if is_short else marked_text


def answer_kind(example: Example, answer: str) -> Literal["number", "letter", "text"]:
    """What a gold answer is compared as; a letter only where the row or its prompt lists options, and this one."""
    letter, row_options = option_letter(answer), {text.casefold() for text in labelled_options(example).values()}
    is_listed = letter and (letter in listed_options(plain(example.prompt)) or row_options)
    if is_listed or answer.strip().casefold() in row_options:
        return "letter"
    return "number" if is_number(answer) else "text"


def _read_gold(example: Example, prompt: str) -> tuple[str, dict[str, str]]:
    """The gold answer, as a letter where it is one of the row's options, and those by their letters."""
    gold = final_answer_of(example.answer or "")
    if row_options := labelled_options(example):
        letter = next(
            (label for label, text in row_options.items() if gold.casefold() in (label.casefold(), text.casefold())), ""
        )
        return (letter.upper(), row_options) if len(letter) == 1 and letter.isalpha() else (gold, {})
    return gold, listed_options(prompt[-8000:]) if option_letter(gold) else {}


def listed_options(prompt: str) -> dict[str, str]:
    """Letter -> text of the options that a prompt lists, of the last list; empty when fewer than two."""
    text_by_letter: dict[str, str] = {}
    for letter, text in _OPTION_LINE.findall(prompt):
        if letter == "A":
            text_by_letter = {}
        text_by_letter[letter] = text.strip()
    return text_by_letter if len(text_by_letter) > 1 else {}


def _agrees(gold: str, statement: Stated, options: dict[str, str]) -> bool | None:
    """Whether what was found is the gold answer; None where it is no statement of that kind at all."""
    if normalise_words(gold) and normalise_words(gold) in (normalise_words(statement.text), normalise_words(statement.line)):
        return True
    if letter := option_letter(gold):
        stated = stated_letter(statement.text)
        if stated is None and options:
            stated = label_of_text(statement.text, options)
        return None if stated is None and statement.kind == "marked" else stated == letter
    if (amount := amount_of(gold)) is not None:
        stated = number_of(statement.text)
        if stated == AMBIGUOUS and statement.kind == "last":
            stated = read_last_number(statement.text)
        is_right = stated == amount and not unit_differs(gold, statement.text)
        return None if stated is None and statement.kind == "marked" else is_right
    return _words_before_reason(statement.text) == normalise_words(gold)


def _is_worked_out(gold: str, text: str) -> bool:
    """Whether a short text works out a gold answer that is a number, and comes to it."""
    amount, worked_answer = amount_of(gold), worked_number(text)
    return (
        worked_answer is not None
        and amount is not None
        and worked_answer.value == amount
        and not unit_differs(gold, worked_answer.after)
    )


def _words_before_reason(text: str) -> str:
    """The words before a reason: `no` of `No, because ...`; a second answer behind a comma is no reason."""
    head, _, reason = re.sub(r"\s+(?=because\b|since\b)", ", ", text, count=1).partition(",")
    has_reason = len(re.findall(r"\b[a-z]{2,}\b", reason)) > 2 and not re.search(r"\bor\b|[\\=]", reason)
    return normalise_words(head) if has_reason and normalise_words(head).replace(" ", "").isalpha() else ""
