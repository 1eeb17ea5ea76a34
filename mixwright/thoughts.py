"""Thoughts that a model writes before its answer, between tags such as `<think>`; they are no part of the answer."""

from __future__ import annotations

import re
from typing import Literal

THOUGHT_TAGS = ("think", "thinking", "thought", "reasoning", "scratchpad")
_OPEN = re.compile(rf"\s*<({'|'.join(THOUGHT_TAGS)})>")
_LEFT_OPEN = re.compile(rf"<(?:{'|'.join(THOUGHT_TAGS)})>\s*\Z")

ThoughtKind = Literal["none", "empty", "closed", "open"]


def split_thoughts(text: str) -> tuple[ThoughtKind, str, str]:
    """Return the kind of a text's thoughts, the thoughts and the answer behind them, empty for thoughts that do not end.

    Thoughts need no opening tag: some templates put it at the end of the prompt.
    """
    for name in THOUGHT_TAGS:
        before, end, answer = text.rpartition(f"</{name}>")
        if end:
            thoughts = _OPEN.sub("", before, count=1).strip()
            return ("closed" if thoughts else "empty"), thoughts, answer
    if found := _OPEN.match(text[:64]):
        return "open", text[found.end() :].strip(), ""
    return "none", "", text


def drop_thoughts(text: str) -> str:
    """Return what follows the thoughts of a model that thinks aloud; nothing if it was cut before it came to an answer."""
    return split_thoughts(text)[2]


def find_open_tag(prompt: str) -> str:
    """Return the tag of a thought that a prompt ends with, for the model to go on from; empty if it has none."""
    found = _LEFT_OPEN.search(prompt)
    return found[0] if found else ""
