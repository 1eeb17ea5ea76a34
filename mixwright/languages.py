"""Language of a text, as far as its script and its commonest words tell: enough to see that answers changed theirs."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from mixwright.words import words_in

FUNCTION_WORDS = {
    name: frozenset(words.split())
    for name, words in {
        "english": "the of and to is in that it for with was you are your this be as on an or not but have has what "
        "which a no",
        "french": "le la les des et est une pour que dans vous il du en un pas sur de ce qui",
        "german": "der die das und ist nicht ein eine zu mit auf ich sie wir den es",
        "spanish": "el los las una que y es por con para del se en un lo su de la",
        "italian": "il che di e un per non sono della è gli con una si le in la",
        "portuguese": "os que e uma para não com do da em é um se por as no de o a",
        "dutch": "de het een van en is niet dat op te voor zijn met je ik",
    }.items()
}
"""Language -> words that most of its sentences hold."""
OWN_NAMES = {"français": "french", "deutsch": "german", "español": "spanish", "italiano": "italian", "nederlands": "dutch"}
_NAMED = re.compile(rf"\b(?:in|into|to|auf|en|em) (?:the )?({'|'.join((*FUNCTION_WORDS, *OWN_NAMES))})\b")
"""A language that a prompt asks for."""
_NAME = re.compile(r"\b[A-Z]\w*(?: [a-z]{1,3}){1,2} [A-Z]\w*")
"""A name such as Oscar de la Hoya."""
SCRIPTS_OF_ONE: dict[str, str] = dict.fromkeys(("HIRAGANA", "KATAKANA", "CJK"), "chinese or japanese")
MIN_WORDS, MIN_LEAD, CHARACTERS_READ = 3, 1.5, 1000
"""Different function words of a language in a text at least, how many times as many as of any other, and what is read."""
SHORT_WORDS = 8
"""Words of a text up to which it is short."""


def find_language(text: str) -> str:
    """The language, or the script where it is not Latin; empty where nothing tells."""
    text = text[:CHARACTERS_READ]
    letters = [character for character in text[:400] if character.isalpha()]
    scripts = Counter(re.split("[ -]", unicodedata.name(letter, ""), maxsplit=1)[0] for letter in letters)
    script = max(scripts, key=lambda name: scripts[name], default="")
    if script != "LATIN":
        return SCRIPTS_OF_ONE.get(script, script.lower()) if len(letters) >= MIN_WORDS else ""
    words = {*words_in(text)}  # each once: "a" is Portuguese, and English sentences may hold it four times
    counts = {name: len(words & known) for name, known in FUNCTION_WORDS.items()}
    (name, most), (_, second), *_ = sorted(counts.items(), key=lambda pair: -pair[1])
    return name if most >= MIN_WORDS and most >= MIN_LEAD * second else ""


def guess_language(text: str, usual: str) -> str:
    """The language of an answer, also of a short one, where the usual one of its task is known.

    A short text has a word of the other language, and none of the usual one. One word tells nothing, nor do names such as
    Las Vegas.
    """
    if (language := find_language(text)) or usual not in FUNCTION_WORDS:
        return language
    words = {part for word in words_in(_NAME.sub(" ", text)) for part in word.split("'")}
    if not 1 < len(words) <= SHORT_WORDS or words & FUNCTION_WORDS[usual] or text.istitle():
        return ""
    counts = {name: len(words & (known - FUNCTION_WORDS[usual])) for name, known in FUNCTION_WORDS.items()}
    name = max(counts, key=lambda name: counts[name])
    return name if counts[name] else ""


def is_asked_for(language: str, prompt: str) -> bool:
    """Whether a prompt asks for an answer in a language: `in French`, `auf Deutsch`."""
    return any(OWN_NAMES.get(name, name) == language for name in _NAMED.findall(prompt.casefold()))


def asks_for_other_language(prompt: str, gold: str, before: str, after: str) -> bool:
    """Whether two answers are in different languages because the prompt or the gold answer asks for the later one's.

    Where a prompt names a language that the earlier answer did not have, a later one in none that is known counts, too: it
    is mostly too short to tell.
    """
    was, language = find_language(before), find_language(after)
    if not was or was == language or is_asked_for(was, prompt):
        return False
    if not language:
        return any(is_asked_for(name, prompt) for name in FUNCTION_WORDS)
    return is_asked_for(language, prompt) or language in (find_language(prompt), find_language(gold))
