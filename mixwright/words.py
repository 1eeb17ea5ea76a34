"""Words of a text, in one spelling, for comparison."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

WORD = re.compile(r"[^\W_]+(?:['\u2019.][^\W_]+)*")
COPIED_SHARE = 0.8
"""Share of a prompt that a copy of its beginning holds at least, and share of an answer that is a mere copy."""
_REPETITION = re.compile(r"(.{2,80}?)\1{3,}")
_NUMBER = re.compile(r"[\d.,]{1,24}")


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


def contains_words(words: Iterable[str], phrase: Iterable[str]) -> bool:
    """Tell whether a row of words has another in it, one after the other."""
    return f" {' '.join(phrase)} " in f" {' '.join(words)} "


def repeats_itself(text: str) -> bool:
    """Tell whether half of a text or more is one piece of it, again and again; 10101010 is a number."""
    text = " ".join(text.split())
    return not _NUMBER.fullmatch(text) and any(2 * len(found.group()) >= len(text) for found in _REPETITION.finditer(text))


def copies_prompt(prompt: str, text: str, *, merely: bool = False) -> bool:
    """Tell whether a text holds its prompt, or most of its beginning, instead of an answer; short prompts are no sign of it.

    Args:
        prompt: text of the prompt.
        text: answer.
        merely: only where little else is in the answer; a prompt that is repeated and then answered is no mere copy.
    """
    prompt, text = (" ".join(part.split()).casefold() for part in (prompt, text))
    if len(prompt) < 20 or len(prompt.split()) < 4 or (merely and len(prompt) < COPIED_SHARE * len(text)):
        return False
    is_beginning = len(text) >= COPIED_SHARE * len(prompt) and prompt.startswith(text.rstrip(".?! "))
    return prompt in text or is_beginning
