"""Language of a text, as far as its script and its commonest words tell: enough to see that answers changed theirs."""

from __future__ import annotations

import unicodedata
from collections import Counter

from mixwright.words import words_in

FUNCTION_WORDS = {
    "english": "the of and to is in that it for with was you are your this be as on",
    "french": "le la les des et est une pour que dans vous il du en un pas sur",
    "german": "der die das und ist nicht ein eine zu mit auf ich sie wir den man",
    "spanish": "el los las una que y es por con para del se en un lo su",
    "italian": "il che di e un per non sono della è gli con una si le in",
    "portuguese": "os que e uma para não com do da em é um se por as no",
    "dutch": "de het een van en is niet dat op te voor zijn met je ik",
}
"""Language -> words that most of its sentences hold."""
OWN_NAMES = {"french": "français", "german": "deutsch", "spanish": "español", "italian": "italiano", "dutch": "nederlands"}
MIN_WORDS, MIN_LEAD = 3, 2.0
"""Function words of a language that a text has at least, and how many times as many as of any other one."""


def find_language(text: str) -> str:
    """The language, or the script where it is not Latin; empty where nothing tells."""
    letters = [character for character in text[:400] if character.isalpha()]
    scripts = Counter(unicodedata.name(letter, "").partition(" ")[0] for letter in letters)
    script = max(scripts, key=lambda name: scripts[name]) if scripts else ""
    if script != "LATIN":
        return script.lower() if len(letters) >= MIN_WORDS else ""
    words = words_in(text)
    counts = {name: sum(word in known.split() for word in words) for name, known in FUNCTION_WORDS.items()}
    (name, most), (_, second), *_ = sorted(counts.items(), key=lambda pair: -pair[1])
    return name if most >= MIN_WORDS and most >= MIN_LEAD * second else ""


def is_named(language: str, prompt: str) -> bool:
    """Whether a prompt names a language."""
    return any(name in prompt.casefold() for name in (language, OWN_NAMES.get(language, language)))


def asks_for_other_language(prompt: str, gold: str, before: str, after: str) -> bool:
    """Whether two answers may be in different languages because the prompt or the gold answer asks for the later one's."""
    was, language = find_language(before), find_language(after)
    if was and was == language:
        return False
    return any(is_named(name, prompt) for name in FUNCTION_WORDS) or (
        language != "" and language in (find_language(prompt), find_language(gold))
    )
