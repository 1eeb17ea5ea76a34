r"""Reading of sentences that state an answer in words, as `The opposite of hot is cold.` does for a question about hot.

Words are of three kinds: those of the prompt, plain ones (function words, and nouns such as `answer`, `word`, `city`), and
others, which are called alien. A sentence that states an answer has hardly any alien word beside it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WORD = re.compile(r"[^\W_]+(?:[-'\u2019.][^\W_]+)*")
_END = re.compile(r"[.!?]{1,6}[\"'\u201d\u2019)*_`]{0,4}(?=\s|$)|[.!?]?\s{0,9}\n")
_SHORTENED = re.compile(r"\b(?:St|Mr|Mrs|Ms|Dr|Mt|Prof|[A-Z])\Z")
"""Before a full stop it ends no sentence."""
_BE = _set("is are was were be becomes became equals called named means it's that's")
"""Words that an answer follows."""
_PLACE = _set("in on at from by within")
"""The same where the prompt asks for a place, a time or a person."""
_ASKS = _set("where which who whom whose when located continent country year in by")
_ARTICLES = _set("the a an")
_FUNCTION = _BE | _PLACE | _ARTICLES
_FUNCTION |= _set(
    "during after before until through throughout around about of to for with and or but as so then thus "
    "therefore hence i it its this that these those there here my our your which who what where when how "
    "because since while also though although if has have had do does did will would can should must think let "
    "me us not i'm than"
)
_PLAIN = _FUNCTION | _set(
    "predominantly mainly primarily mostly largely approximately answer answers antonym correct right final "
    "question word words term form name name's number result total called known noun verb adjective city "
    "country continent capital located situated found state region typically usually often commonly simply "
    "generally officially formally sometimes most common usual one written write spelled sure certainly yes no "
    "okay ok great good hello hi thanks thank absolutely course well exactly indeed following given above below "
    "makes gives equal sum problem math equation solution"
)
_APART = _PLACE | _set("to for with")
_INTO = _set("of for in")
"""What follows one of them in a subject is what the sentence is about."""
_UNSURE = _set(
    "not never neither nor cannot except without than unlike if whether unless might may could maybe perhaps "
    "possibly doubt false wrong incorrect untrue myth unsure hardly instead rather"
)
"""Before an answer they deny it or leave it open."""
_OTHER = _set("former formerly previous previously once almost nearly second third fourth fifth least other another")
"""Before an answer they make it one to another question, where the prompt does not have them."""
_DENIES = _set("not wrong incorrect false untrue never")
_NOUNS = (["country"], ["city"], ["state"], ["region"], ["continent"], ["word"])
_PEOPLE = ("ese", "ian", "an", "n", "ish")
"""Endings of what is of a country: `Japanese`."""
_NAMED_OF = _set("city town state country continent island month year planet")
_BACK = re.compile(
    r"\b(?:wait|sorry|correction|mistaken?|apologi[sz]e|wrong|incorrect|actually|i meant?|rather|instead|kidding"
    r"|however|alternatively|sometimes|(?:can|may|could|might) also|but (?:in|some|it|also|can|not|many)"
    r"|not (?:true|correct|right|sure))\b|(?:^|[.!?\n]\s{0,4})no\b",
    re.IGNORECASE,
)
"""Behind an answer it takes it back."""
_LABEL = re.compile(r"^[ \t>]{0,8}(?:[-*+\u2022]|\(?(?:\d{1,2}|[A-Za-z])[.):])[ \t]", re.MULTILINE)
_INLINE = re.compile(r"(?<!\w)\(?[A-Ea-e1-5]\) ?\S")
_SET_OFF = re.compile(r"[\"'`*_\u2018\u2019\u201c\u201d]")
"""Quotes and markup beside a word."""
_POINTS = re.compile(r"[:=\u2192]|->| [-\u2013\u2014] ")
"""Signs that an answer follows."""

Kind = Literal["stated", "denied", "beside"]


def folded(text: str) -> str:
    """In one case, quotes alike."""
    return unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")


def stem(word: str) -> str:
    """Without the ending of a plural or a genitive."""
    word = word.removesuffix("'s")
    return word.removesuffix("s") if len(word) > 3 else word


def is_list(text: str) -> bool:
    """Whether a text lists several labelled things."""
    return len(_LABEL.findall(text)) > 1 or len(_INLINE.findall(text)) > 1


def takes_back(text: str) -> bool:
    """Whether what follows an answer takes it back."""
    return _BACK.search(text) is not None


def words_in(text: str) -> list[str]:
    """Folded words."""
    return [folded(word) for word in _WORD.findall(text)]


def sentence_ends(text: str) -> list[int]:
    """Places behind which a sentence begins, the text's own end included."""
    ends = [
        match.end() for match in _END.finditer(text) if not _SHORTENED.search(text, max(0, match.start() - 5), match.start())
    ]
    return [*ends, len(text)]


@dataclass(frozen=True)
class Question:
    """A question and its gold answer, in folded words."""

    gold: tuple[str, ...]
    """Without a leading article."""
    prompt: tuple[str, ...]

    @cached_property
    def known_stems(self) -> Set[str]:
        """Stems of the prompt's words that mean something."""
        return self.prompt_stems | {word + ending for word in self.prompt_stems if len(word) > 3 for ending in _PEOPLE}

    @property
    def prompt_stems(self) -> Set[str]:
        """Stems of the prompt's own words that mean something."""
        return {stem(word) for word in self.prompt if word not in _FUNCTION}

    @cached_property
    def is_in_prompt(self) -> bool:
        """Whether the gold answer stands in the prompt."""
        return _contains_words(self.prompt, self.gold)

    @property
    def is_function_word(self) -> bool:
        """Whether the gold answer is made of words such as `was` or `in`, which stand anywhere."""
        return _FUNCTION.issuperset(self.gold)

    @cached_property
    def asks_for_place(self) -> bool:
        """Whether the prompt asks for a place, a time or a person."""
        return not _ASKS.isdisjoint(self.prompt)

    def is_alien_word(self, word: str) -> bool:
        """Neither of the prompt, nor plain, nor of the gold answer."""
        return word not in _PLAIN and stem(word) not in self.known_stems and word not in self.gold


class Sentence:
    """One sentence of a completion, as words and what stands between them."""

    def __init__(self, text: str, question: Question) -> None:
        matches = list(_WORD.finditer(text))
        self.question, self.text = question, text
        self.raw = [word.group() for word in matches]
        self.words = [folded(word) for word in self.raw]
        edges = [0, *(place for word in matches for place in word.span()), len(text)]
        self.gaps = [text[edges[i] : edges[i + 1]] for i in range(0, len(edges), 2)]
        """What stands before each word, and behind the last."""
        self.is_question = "?" in self.gaps[-1]

    @property
    def is_copied(self) -> bool:
        """Whether it stands in the prompt as it is."""
        return len(self.words) > 2 and _contains_words(self.question.prompt, self.words)

    @property
    def is_plain(self) -> bool:
        """Whether it says nothing but plain words, those of the prompt, and the gold answer."""
        return not any(self.question.is_alien_word(word) for word in self.words if not word[0].isdigit())

    @property
    def is_on_topic(self) -> bool:
        """Whether it has a word of the prompt, or nothing but plain ones."""
        return self.is_plain or any(word == "answer" or stem(word) in self.question.known_stems for word in self.words)

    def mentions(self) -> list[int]:
        """Where the gold answer begins."""
        gold, size = list(self.question.gold), len(self.question.gold)
        return [
            i for i in range(len(self.words) - size + 1) if self.words[i] == gold[0] and self.words[i : i + size] == gold
        ]

    def behind(self, start: int) -> str:
        """What follows the gold answer that begins at a word."""
        end = start + len(self.question.gold)
        return self.gaps[end] + "".join(word + gap for word, gap in zip(self.raw[end:], self.gaps[end + 1 :], strict=True))

    def kind(self, start: int) -> Kind:
        """What is said of the gold answer that begins at a word."""
        end = start + len(self.question.gold)
        if self._denied(start, end) or self._one_of_several(start, end):
            return "denied"
        if self.is_question or self._part_of_more(start, end):
            return "beside"
        return (
            "stated"
            if self._stands_alone(start, end) or self._predicate(start, end) or self._subject(start, end)
            else "beside"
        )

    def states_rival(self) -> bool:
        """Whether it states another answer to the question."""
        question = self.question
        if self.is_question or not self.words:
            return False
        content = [word for word in self.words if word not in _PLAIN]
        if len(self.words) <= 3 and content == self.words and "!" not in self.gaps[-1]:
            return not self.mentions() and all(map(question.is_alien_word, content))
        first_mention = next(iter(self.mentions()), len(self.words))
        for verb in range(1, min(first_mention, len(self.words) - 1)):
            subject = self.words[:verb]
            if self.words[verb] not in _BE or any(map(question.is_alien_word, subject)):
                continue
            if not any(stem(word) in question.known_stems for word in subject):
                continue
            complement = next(
                (place for place in range(verb + 1, min(verb + 4, len(self.words))) if self.words[place] not in _PLAIN), None
            )
            if (
                complement is None
                or "not" in self.words[verb:complement]
                or not question.is_alien_word(self.words[complement])
            ):
                continue
            ends_claim = re.match(r"[^\w\s]", self.gaps[complement + 1]) or complement + 1 == len(self.words)
            if ends_claim or self.raw[complement][0].isupper() or _SET_OFF.search(self.gaps[complement]):
                return True
        return False

    def is_parallel(self) -> bool:
        """Whether it says of something else what the prompt asks: `Rome is the capital of Italy`, beside France."""
        verb = next((i for i, word in enumerate(self.words) if word in _BE), 0)
        sides = self.words[:verb], self.words[verb + 1 :]
        has_alien_sides = all(any(self.question.is_alien_word(word) for word in side) for side in sides)
        return (
            has_alien_sides and any(stem(word) in self.question.known_stems for word in self.words) and not self.mentions()
        )

    def _denied(self, start: int, end: int) -> bool:
        before = [word for word in self.words[:start] if word not in self.question.gold]
        if "but" in before[-4:]:  # `not Lyon but Paris`
            before = before[len(before) - before[::-1].index("but") :]
        if any(word in _UNSURE or word.endswith("n't") for word in before):
            return True
        if any(word in _OTHER and word not in self.question.prompt for word in before):
            return True
        after = self.words[end : end + 4]
        after = after[1:] if after[:1] in (["which"], ["that"]) else after
        first, second = (*after, "", "")[:2]
        return first.endswith("n't") or (first in ("is", "was", "are", "were") and second in _DENIES)

    def _one_of_several(self, start: int, end: int) -> bool:
        before, after = self.gaps[start], self.gaps[end]
        previous = self.words[start - 1] if start else ""
        following = self.words[end] if end < len(self.words) else ""
        if (
            re.search(r"[/|&]", before + after)
            or following in ("or", "nor", "vs", "versus")
            or previous in ("or", "nor", "and")
        ):
            return True
        if following == "and":
            rest = self.words[end + 1 : end + 2]
            return not rest or rest[0] not in _FUNCTION - _ARTICLES
        is_odd = (lambda word: word not in _PLAIN) if self.question.is_in_prompt else self.question.is_alien_word
        if "," in before and previous and is_odd(previous) and ("," in after or not following):
            return True
        if "," not in after or not following or not is_odd(following):
            return False
        gap_after_next = self.gaps[end + 1]
        return (
            self.raw[end][0].isupper()
            or bool(gap_after_next.strip())
            or self.words[end + 1 : end + 2] in (["or"], ["and"], [])
        )

    def _part_of_more(self, start: int, end: int) -> bool:
        """Whether words right beside it make it another thing: `South America`, `cold water`."""
        if end < len(self.words) and not self.gaps[end].strip():
            word = self.words[end]
            further = self.raw[end][0].isupper() and word not in _FUNCTION
            if (
                word in ("of", "to")
                or self.question.is_alien_word(word)
                or (further and stem(word) not in self.question.known_stems)
            ):
                return True
        if start and not self.gaps[start].strip():
            return self.raw[start - 1][0].isupper() and self.question.is_alien_word(self.words[start - 1])
        return False

    def _stands_alone(self, start: int, end: int) -> bool:
        """Whether it is all there is: `It is Paris.`, `I think the answer is Paris.`."""
        around = [*self.words[:start], *self.words[end:]]
        if start and self.words[start - 1] in _APART and not self.question.asks_for_place:  # `We are in Paris.`
            return False
        return len(around) <= 8 and len(self.words) - end <= 2 and all(word in _PLAIN for word in around)

    def _predicate(self, start: int, end: int) -> bool:
        """Whether it is what is said: `The capital of France is Paris`, `Brazil is in South America`, `Capital: Paris`."""
        question, place = self.question, start
        if self.words[start - 1 : start] == ["but"] and "not" in self.words[:start]:  # `not Lyon but Paris`
            place = self.words.index("not")
        while place > 0 and start - place < 8:
            word = self.words[place - 1]
            is_place_word = question.asks_for_place and word in _PLACE
            if self._tells_of_past(place - 1):
                return False
            if word in _BE or is_place_word or _POINTS.search(self.gaps[place]):
                place -= word in _BE or is_place_word
                return self._about(place, strict=is_place_word or question.is_in_prompt) and not (
                    question.is_in_prompt and self._has_alien_word_after(end)
                )
            if word == "of" and (
                place < 2 or self.words[place - 2] not in _NAMED_OF or "capital" in self.words[place - 3 : place - 2]
            ):
                return False
            if question.is_alien_word(word) or word in question.gold:
                return False
            place -= 1
        return False

    def _adjective(self, place: int) -> bool:
        """Whether it stands as `landlocked` does in `is a landlocked country`."""
        before = self.words[max(0, place - 2) : place]
        return (
            len(before) == 2 and before[0] in _BE and before[1] in _ARTICLES and self.words[place + 1 : place + 2] in _NOUNS
        )

    def _tells_of_past(self, place: int) -> bool:
        """Whether a word tells of the past what the prompt asks of now: `Kyoto was the capital`."""
        return self.words[place] in ("was", "were") and "is" in self.question.prompt

    def _has_alien_word_after(self, end: int) -> bool:
        return any(self.question.is_alien_word(word) for word in self.words[end:])

    def _about(self, end: int, *, strict: bool) -> bool:
        """Whether the words before `end` are about what the prompt asks, and say no other answer."""
        question, subject = self.question, self.words[:end]
        odd_places = [i for i, word in enumerate(subject) if question.is_alien_word(word) and not self._adjective(i)]
        covers_prompt = question.prompt_stems <= {stem(word) for word in subject}
        if len(odd_places) > (0 if strict else 3 if covers_prompt else 1):
            return False
        for i in odd_places:
            before = next((word for word in reversed(subject[:i]) if word not in _ARTICLES), "")
            if before in _INTO or before in _BE or subject[i].endswith("'s") or (i and self.raw[i][0].isupper()):
                return False
        content = [word for word in subject if word not in _PLAIN or stem(word) in question.known_stems]
        return covers_prompt or not content or len({stem(word) for word in content} & question.known_stems) > len(odd_places)

    def _subject(self, start: int, end: int) -> bool:
        """Whether it is what something is said of: `Paris is the capital of France`, `Shakespeare wrote Hamlet`."""
        question = self.question
        rest = self.words[end:]
        if not rest or any(word not in _PLAIN for word in self.words[:start]):
            return False
        if any(word in _INTO and self.words[i - 1] not in _NAMED_OF for i, word in enumerate(self.words[:start])):
            return False  # `The capital of Mexico is ...`
        stop = next((i for i in range(end + 1, len(self.words)) if re.search(r"[,;:]", self.gaps[i])), len(self.words))
        claim = self.words[end:stop]
        if self._tells_of_past(end) or (
            rest[0] not in _BE and "," not in self.gaps[end] and stem(rest[0]) not in question.known_stems
        ):
            return False
        content = [word for word in claim if word not in _FUNCTION]
        if not content or stem(content[0]) not in question.known_stems | {"answer", "correct"}:
            return False
        for i, word in enumerate(claim):
            before = next((earlier for earlier in reversed(claim[:i]) if earlier not in _ARTICLES), "")
            if question.is_alien_word(word) and (question.is_in_prompt or before in _INTO):
                return False
        return True


def _contains_words(words: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether a row of words stands in another."""
    return f" {' '.join(phrase)} " in f" {' '.join(words)} "
