"""Words of a text, in one spelling, for comparison."""

from __future__ import annotations

import re
import unicodedata

WORD = re.compile(r"[^\W_]+(?:['\u2019.][^\W_]+)*")
_REPETITION = re.compile(r"(.{2,80}?)\1{3,}")


def folded(text: str) -> str:
    """Return a text in one case, with quotes alike."""
    return unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")


def stem(word: str) -> str:
    """Return a word without the ending of a plural or a genitive, in American spelling."""
    word = word.removesuffix("'s")
    word = word.replace("our", "or") if len(word) > 5 else word
    return word.removesuffix("s") if len(word) > 3 else word


def words_in(text: str) -> list[str]:
    """Return folded words."""
    return [folded(word) for word in WORD.findall(text)]


def repeats_itself(text: str) -> bool:
    """Tell whether half of a text or more is one piece of it, again and again."""
    text = " ".join(text.split())
    return any(2 * len(found.group()) >= len(text) for found in _REPETITION.finditer(text))
