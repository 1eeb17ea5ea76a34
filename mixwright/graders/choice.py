"""Grader for one of the row's options, by its letter or by its text.

Source: https://arxiv.org/abs/2009.03300 (multiple choice with lettered options).
Unit: 1.0 for the right option, 0.0 otherwise; luck is 1 / number of options.
Cost: one string comparison per option.
Blind spot: an option named inside a sentence earns nothing; two options with the same text are the same option.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from typing import Any

from mixwright.graders._grader import Grader
from mixwright.records import Example

LABELLED_OPTION = re.compile(r"\(?([A-Za-z0-9]{1,2})[.):]?\s*(.*)", re.DOTALL)
OPTION_COLUMNS = ("options", "choices")
LONGEST_OPTION_CHARACTERS = 2000
"""Characters from which a text is not searched for an option."""


class Choice(Grader):
    """Right are `B`, `b`, `(B)`, `B.`, `B)`, the option's text in any case, and both together (`B) Paris`).

    Options come from the row's column: a list, an object of label -> text, or an object with lists `text` and `label`. The
    answer is a label, an option's text, or a whole number that is neither: the 0-based place.
    """

    def grade(self, example: Example, completion: str) -> float:
        """1.0 when the completion is the right option and no other, else 0.0."""
        options = _normalise_options(labelled_options(example))
        answer = (example.answer or "").strip()
        longest_characters = max([len(text) for text in options.values()], default=0) + len(answer)
        text = completion.strip()
        if not answer or len(text) > 2 * longest_characters + 20:
            return 0.0
        gold = _read_label(answer, options)
        if gold is None and answer.isdecimal() and int(answer[:6]) < len(options):
            gold = list(options)[int(answer[:6])]
        named_label = _read_label(text, options)
        if gold is None:  # an answer that is no option; reading refuses such rows
            return float(not options and text == answer)
        return float(named_label is not None and options.get(named_label, named_label) == options.get(gold, gold))

    def luck(self, examples: Sequence[Example]) -> float | None:
        """Mean of 1 / number of different options; None when a row has no options."""
        return luck_of([len(set(option_texts(example))) for example in examples])


def luck_of(counts: Sequence[int]) -> float | None:
    """Mean of 1 / number of options; None where a row has none."""
    return sum(1 / count for count in counts) / len(counts) if counts and all(counts) else None


def read_options(value: Any) -> dict[str, str]:
    """Label -> text of an options column's value as they are written, in order; empty when it has no such form."""
    if isinstance(value, dict) and isinstance(value.get("text"), list):
        labels, texts = value.get("label"), value["text"]
        if not isinstance(labels, list) or len(labels) != len(texts):
            labels = string.ascii_uppercase
    elif isinstance(value, dict):
        labels, texts = list(value), list(value.values())
    else:
        labels, texts = string.ascii_uppercase, value if isinstance(value, list) else []
    return {str(label): str(text) for label, text in zip(labels, texts, strict=False)}


def options_of(extra: Mapping[str, Any]) -> Any:
    """The value of a row's column of options; None where it has none."""
    return next((extra[name] for name in OPTION_COLUMNS if name in extra), None)


def labelled_options(example: Example) -> dict[str, str]:
    """Label -> text of a row's options as they are written; empty where it has none."""
    return read_options(options_of(example.extra))


def option_texts(example: Example) -> list[str]:
    """Texts of a row's options in order; empty where it has none."""
    return list(_normalise_options(labelled_options(example)).values())


def option_index(value: Any, answer: str) -> int | None:
    """Which of the options (a column's value) a text names, counted from 0; None when it names none.

    Answers are compared between prompts by it: the first option of one prompt and that of another are one answer, whatever
    they say.
    """
    options = _normalise_options(read_options(value))
    label = _read_label(answer, options) if options and len(answer) < LONGEST_OPTION_CHARACTERS else None
    return list(options).index(label) if label in options else None


def _normalise(text: str) -> str:
    return " ".join(text.split()).casefold()


def _normalise_options(options: dict[str, str]) -> dict[str, str]:
    return {_normalise(label): _normalise(text) for label, text in options.items()}


def _read_label(text: str, options: dict[str, str]) -> str | None:
    """The label that a text names: an option's text, a label, or both when they agree. Without options, any letter."""
    normal_text = _normalise(text)
    for label, option_content in options.items():
        if normal_text == option_content:
            return label
    match = LABELLED_OPTION.fullmatch(normal_text)
    if match is None:
        return None
    label, option_text = match[1], match[2]
    if not options:
        return label if len(label) == 1 and label.isalpha() and not option_text else None
    return label if label in options and option_text in ("", options[label]) else None
