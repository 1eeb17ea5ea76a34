"""Skeleton of an answer, its form without its content: `12 + 5 = 17` becomes `9 + 9 = 9`.

One implementation for the whole flow, so that a form seen in the data and in completions has one name. Left out on
purpose: meaning, and the length of words and numbers.
"""

from __future__ import annotations

import itertools
import re

MAX_CHARACTERS = 80
"""Longest skeleton, characters."""

_END_CHARACTERS_READ = 240
"""Characters read from each end of a long text: the form of an answer shows where it starts and where it ends."""

_TOKEN = re.compile(
    r"(?P<label>\b(?:final answer|answer|result|solution|output)\b {0,2}(?::|=|is\b))"
    r"|</?[A-Za-z][A-Za-z0-9_-]{0,19}/?>"
    r"|\\[A-Za-z]{1,20}"
    r"|(?P<number>\d+)"
    r"|(?P<word>[^\W\d_]+)"
    r"|(?P<space>\s{2,}|[^\S ])",
    re.IGNORECASE,
)
"""What is rewritten, and the markup that hides its letters from that; marks and single spaces stay as they are."""
_WORDS = re.compile(r"a(?:[ '-]a)+")
_REPEAT = re.compile(r"(.{1,32}?)\1+")


def skeleton(text: str) -> str:
    r"""The form of `text`: numbers become 9, words a, several words a+; markup, labels and punctuation stay.

    Markup is any `<tag>` and any `\command` such as `\boxed`; labels are `Answer:` and its kin, in lower case. What
    repeats is written once with an ellipsis (`9,…9`), so tables and lists of different lengths share one skeleton.
    Linear in bounded input: of a long text the two ends are read. At most `MAX_CHARACTERS` characters; the empty text has
    the empty skeleton. The result holds no letters or digits of the content, and no control characters but newline.
    """
    text = text.strip()
    if len(text) > 2 * _END_CHARACTERS_READ:
        text = f"{text[:_END_CHARACTERS_READ]}…{text[-_END_CHARACTERS_READ:]}"
    if not text.isprintable():
        text = "".join(character if character.isprintable() or character.isspace() else "?" for character in text)
    form = _TOKEN.sub(_symbol, text)
    lines: list[str] = []
    for line, alike_lines in itertools.groupby(_REPEAT.sub(r"\1…", line) for line in _WORDS.sub("a+", form).split("\n")):
        lines += [line, "…"] if len(list(alike_lines)) > 1 else [line]
    form = "\n".join(lines)
    if len(form) > MAX_CHARACTERS:
        half = (MAX_CHARACTERS - 1) // 2
        form = f"{form[:half]}…{form[-half:]}"
    return form


def _symbol(match: re.Match[str]) -> str:
    kind, token = match.lastgroup, match.group()
    if kind == "number":
        return "9"
    if kind == "word":
        return "a"
    if kind == "space":
        return "\n" if "\n" in token else " "
    return re.sub(r"\s+", " ", token.lower()) if kind == "label" else token
