"""What an answer does beside answering: it asks, acknowledges, hedges, refuses, is laid out; read by words and signs.

Source: acts of grounding of Shaikh et al. 2024 (arXiv 2311.09144), who label them with a model; our word lists are English.
Left out on purpose: whether a question was called for.
"""

from __future__ import annotations

import re

from mixwright.audit.text import count_tokens, normal_form

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTED = re.compile(r"\"[^\"\n]{0,300}\"|\u201c[^\u201d\n]{0,300}\u201d")
_QUESTION = re.compile(r"\w[)\]*_]*\s?\?")
ACKNOWLEDGEMENTS = (
    "i see", "i hear you", "i (?:completely |totally |fully )?understand", "i get (?:it|that|why)", "got it", "understood",
    "noted", "makes sense", "fair enough", "thanks", "thank you", "i appreciate",
    "(?:good|great|excellent|fair) (?:question|point)",
    "(?:that|this|it) (?:sounds|must|is understandable)", "sorry to hear",
    "i'm (?:so )?(?:glad|happy|sorry) (?:to hear|that|you)", "congratulations", "what you (?:said|describe|wrote)",
)  # fmt: skip
HEDGES = (
    "perhaps", "maybe", "possibly", "probably", "presumably", "might", "likely", "it depends", "depending on", "i think",
    "i believe", "i guess", "i suppose", "(?:i'm|i am) not (?:entirely |quite |completely )?(?:sure|certain)",
    "not (?:entirely )?certain", "could be", "may (?:be|have)", "as far as i (?:know|can tell)", "seems?", "apparently",
    "in some cases", "hard to say",
)  # fmt: skip
_NOT_ABLE = (
    "(?:can't|cannot|can not|won't|will not|unable to|not able to|not allowed to|have to decline|must decline|decline)"
)
_HELPING = (
    "(?:help|assist|provide|do (?:that|this)|comply|answer|share|give|discuss|support|offer|fulfill?|engage|advise|write|"
    "create|recommend|go into|respond|with|this|that|take)"
)
REFUSALS = (
    f"i(?:'m| am)? ?(?:really |afraid i |sorry,? (?:but )?i )?{_NOT_ABLE} (?:to )?(?:be able to )?{_HELPING}",
    f"(?:unable|not (?:able|allowed|permitted)) to {_HELPING}", "(?:must|have to) decline", "as an ai",
    "(?:against|violates?) (?:my|our|the) (?:guidelines|policy|policies|rules)",
    "(?:that's|that is|this is) (?:not something i can|something i (?:can't|cannot|won't))", "sorry, but (?:i|that|this)",
)  # fmt: skip
"""What is said in acknowledging, hedging, refusing: regular expressions of whole words, in small letters."""
_ACKNOWLEDGEMENT, _HEDGE, _REFUSAL = (
    re.compile(rf"(?<![A-Za-z'])(?:{'|'.join(phrases)})(?![A-Za-z])", re.IGNORECASE)
    for phrases in (ACKNOWLEDGEMENTS, HEDGES, REFUSALS)
)
_FORM = re.compile(r"^[ \t]*(?:[-*\u2022+]|\d{1,3}[.)])[ \t]+\S|```|\*\*[^*\n]+\*\*|^#{1,6} \S|^\|.*\|", re.MULTILINE)
_SENTENCE = re.compile(r"[^.!?\n]+")
BEHAVIOURS = ("question", "acknowledgement", "hedge", "refusal", "form")
"""What is read, in this order: `form` is a list, a table, code, bold letters or a heading."""
FEW_TOKENS, MANY_TOKENS = 4, 12
"""Tokens of an answer that says nothing, where the other side has so many."""
MIN_REPEATS, MOST_DIFFERENT_SHARE = 3, 0.5
"""Sentences from which on an answer repeats itself, where so small a share of them differ."""
MIN_LETTERS_SHARE, MIN_CHARACTERS = 0.6, 12
"""Share of letters and spaces below which a text of so many characters is no prose, where the other side is."""


def read_behaviours(text: str) -> tuple[bool, ...]:
    """Which of `BEHAVIOURS` an answer shows; code and quoted texts are left out, but for the form.

    Examples:
        >>> read_behaviours("I see. Which city do you mean?")
        (True, True, False, False, False)
    """
    prose = _QUOTED.sub(" ", _CODE.sub(" ", text)).replace("\u2019", "'")
    return (
        bool(_QUESTION.search(prose)),
        bool(_ACKNOWLEDGEMENT.search(prose)),
        bool(_HEDGE.search(prose)),
        bool(_REFUSAL.search(prose)),
        bool(_FORM.search(text)),
    )


def without_common_start(first: str, second: str) -> tuple[str, str]:
    """Two texts without what both begin with, up to the last line that they share: the dialogue that led to two answers."""
    first_lines, second_lines = first.split("\n"), second.split("\n")
    shared = 0
    for one, other in zip(first_lines[:-1], second_lines[:-1], strict=False):
        if one != other:
            break
        shared += 1
    return "\n".join(first_lines[shared:]), "\n".join(second_lines[shared:])


def is_trivial(answer: str, other: str, prompt: str) -> bool:
    """Whether an answer is none beside the other one: nearly empty, one sentence repeated, the prompt, or no prose."""
    if count_tokens(answer) < FEW_TOKENS and count_tokens(other) >= MANY_TOKENS:
        return True
    if prompt and normal_form(answer) == normal_form(prompt):
        return True
    sentences = [sentence.strip().casefold() for sentence in _SENTENCE.findall(answer) if sentence.strip()]
    if len(sentences) >= MIN_REPEATS and len({*sentences}) <= MOST_DIFFERENT_SHARE * len(sentences):
        return True
    return _letters_share(answer) < MIN_LETTERS_SHARE <= _letters_share(other) and len(answer) >= MIN_CHARACTERS


def _letters_share(text: str) -> float:
    return sum(character.isalpha() or character.isspace() for character in text) / max(len(text), 1)
