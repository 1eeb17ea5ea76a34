r"""Readings of an option letter: the one that a stated answer names, by itself or by its option's text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mixwright.graders._readings import REJECTED, UNCLEAR_NUMBER, normalise_words, plain_math

_BRACKETED = re.compile(r"\(([A-Za-z])\)")
_BARE_LETTER = re.compile(r"(?:(?:option|choice|answer) ?)?\(?([A-Za-z])(?:[.):,](?= |$)|$)", re.IGNORECASE)
_NAMED_LETTER = re.compile(r"\b(?:option|choice) \(?([A-Za-z])\b(?!')", re.IGNORECASE)
_CAPITAL = re.compile(r"(?<![\w'])[B-HJ-Z](?![\w'])")
_DENIED = re.compile(r"\b(?:(?:can)?not|neither|nor|except)\b|n't\b", re.IGNORECASE)
"""Before a letter it says that this is not the answer; behind it, it is a reason."""
_WRONG = re.compile(r"\W{0,3}(?:is|was)(?:n't| not| wrong| incorrect)\b", re.IGNORECASE)
"""The same right after it."""


def stated_letter(text: str) -> str | None:
    """The one option letter that a text states, as a capital: `(B)`, `B`, `B) Rome`, `option B`, `B, not A`."""
    text = REJECTED.sub("", plain_math(text).strip())
    found = set(map(str.upper, _BRACKETED.findall(text))) or set(map(str.upper, _NAMED_LETTER.findall(text)))
    if not found:
        bare = _BARE_LETTER.match(text.strip(" *_\"'`"))
        if bare is None:
            return None
        found = {bare[1].upper(), *_CAPITAL.findall(text[bare.end() :])}
    elif len(found) == 1 and " or " in f" {text} " and _CAPITAL.findall(text):
        found |= set(_CAPITAL.findall(text))
    letter = found.pop()
    before, *after = re.split(rf"\b{letter}\b", text, maxsplit=1, flags=re.IGNORECASE)
    denied = _DENIED.search(before) or _WRONG.match("".join(after))
    return UNCLEAR_NUMBER if found or denied else letter


def option_letter(answer: str) -> str | None:
    """The letter of a gold answer `B`, `(B)`, `B.` or `b)`; None for any other."""
    found = re.fullmatch(r"\(?([A-Za-z])[.):]?", answer.strip())
    return found[1].upper() if found else None


def label_of_text(text: str, options: Mapping[str, str]) -> str | None:
    """The label whose text this is; None where it is no option's or that of several."""
    said = normalise_words(text)
    found = [label for label, option in options.items() if normalise_words(option) == said]
    return found[0].upper() if said and len(found) == 1 else None
