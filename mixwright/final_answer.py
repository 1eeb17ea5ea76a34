r"""Reader of a completion's final answer: `3 15 0 # 0` gives `0`, `so \boxed{1/2}.` gives `1/2`.

One implementation for whatever compares answers without knowing the gold one: monitors, through the trainers. It is generic:
it knows no task, and graders never use it. Left out on purpose: whether `1/2` is `0.5`.
"""

from __future__ import annotations

import re

LONGEST = 40
"""Longest answer, characters."""

_WINDOW = 400
"""Characters read from the end of a long text."""

_MARK = re.compile(r"#{1,4}(?!#)|\\boxed ?\{|<answer>|\banswer\b(?: is\b)? ?[:=]?", re.IGNORECASE)
_END = re.compile(r"\n|</|<\||\. |; ")
_NUMBER = re.compile(r"[+-]?(?:\d{1,15}(?:,\d{3}){1,5}|\d{1,30})(?:\.\d{1,30})?")
_WRAPS = " \t$*`_\"'.:,;#<>"


def final_answer(text: str) -> str:
    r"""What comes after the last mark (`####`, `#`, `\boxed{`, `<answer>`, `answer:`); without one the last number;
    without one the text itself where it is short, else its last word.

    In lower case, white space collapsed, numbers without plus sign, thousands commas and trailing zeros of decimals; at
    most `LONGEST` printable characters; empty for an empty text. Linear in a bounded part of the text: its end is read.
    """
    text = text[-_WINDOW:].strip()
    for mark in reversed(list(_MARK.finditer(text))):
        rest = text[mark.end() :].lstrip()
        told = _braced(rest) if mark.group().endswith("{") else _END.split(rest, maxsplit=1)[0]
        if answer := _normal(told):
            return answer
    if numbers := _NUMBER.findall(text):
        return _normal(numbers[-1])
    whole = _normal(text)
    return whole if len(text) <= LONGEST else whole.rpartition(" ")[2]


def _braced(text: str) -> str:
    """Up to the brace that closes the one before `text`."""
    depth = 1
    for place, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if not depth:
            return text[:place]
    return text


def _normal(text: str) -> str:
    """One way of writing it."""
    text = " ".join(text.split()).strip(_WRAPS).casefold()
    if _NUMBER.fullmatch(text):
        text = text.replace(",", "").removeprefix("+")
        if "." in text:
            text = text.rstrip("0").rstrip(".")
    return "".join(character if character.isprintable() else "?" for character in text[-LONGEST:])
