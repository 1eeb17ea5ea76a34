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


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WORD = re.compile(r"[^\W_]+(?:[-'\u2019.][^\W_]+)*")
_SENTENCE_END = re.compile(r"[.!?]{1,6}[\"'\u201d\u2019)*_`]{0,4}(?=\s|$)|[.!?]?\s{0,9}\n")
_ABBREVIATION_AT_END = re.compile(r"\b(?:St|Mr|Mrs|Ms|Dr|Mt|Prof|[A-Z])\Z")
"""Before a full stop it ends no sentence."""
_LINKING_WORDS = _word_set("is are was were be becomes became equals called named means it's that's")
"""Words that an answer follows."""
_PLACE_PREPOSITIONS = _word_set("in on at from by within")
"""The same where the prompt asks for a place, a time or a person."""
_WHERE_WHEN_WHO_WORDS = _word_set("where which who whom whose when located continent country year in by")
_ARTICLES = _word_set("the a an")
_FUNCTION_WORDS = _LINKING_WORDS | _PLACE_PREPOSITIONS | _ARTICLES
_FUNCTION_WORDS |= _word_set(
    "during after before until through throughout around about of to for with and or but as so then thus "
    "therefore hence i it its this that these those there here my our your which who what where when how "
    "because since while also though although if has have had do does did will would can should must think let "
    "me us not i'm than"
)
_PLAIN_WORDS = _FUNCTION_WORDS | _word_set(
    "predominantly mainly primarily mostly largely approximately answer answers antonym correct right final "
    "question word words term form name name's number result total called known noun verb adjective city "
    "country continent capital located situated found state region typically usually often commonly simply "
    "generally officially formally sometimes most common usual one written write spelled sure certainly yes no "
    "okay ok great good hello hi thanks thank absolutely course well exactly indeed following given above below "
    "makes gives equal sum problem math equation solution"
)
_PREPOSITIONS = _PLACE_PREPOSITIONS | _word_set("to for with")
_TOPIC_PREPOSITIONS = _word_set("of for in")
"""What follows one of them in a subject is what the sentence is about."""
_DOUBT_WORDS = _word_set(
    "not never neither nor cannot except without than unlike if whether unless might may could maybe perhaps "
    "possibly doubt false wrong incorrect untrue myth unsure hardly instead rather"
)
"""Before an answer they deny it or leave it open."""
_OTHER_ANSWER_WORDS = _word_set(
    "former formerly previous previously once almost nearly second third fourth fifth least other another"
)
"""Before an answer they make it one to another question, where the prompt does not have them."""
_DENIAL_WORDS = _word_set("not wrong incorrect false untrue never")
_CATEGORY_NOUNS = (["country"], ["city"], ["state"], ["region"], ["continent"], ["word"])
_NATIONALITY_ENDINGS = ("ese", "ian", "an", "n", "ish")
"""Endings of what is of a country: `Japanese`."""
_NOUNS_BEFORE_NAME = _word_set("city town state country continent island month year planet")
_RETRACTION = re.compile(
    r"\b(?:wait|sorry|correction|mistaken?|apologi[sz]e|wrong|incorrect|actually|i meant?|rather|instead|kidding"
    r"|however|alternatively|sometimes|(?:can|may|could|might) also|but (?:in|some|it|also|can|not|many)"
    r"|not (?:true|correct|right|sure))\b|(?:^|[.!?\n]\s{0,4})no\b",
    re.IGNORECASE,
)
"""Behind an answer it takes it back."""
_LINE_LABEL = re.compile(r"^[ \t>]{0,8}(?:[-*+\u2022]|\(?(?:\d{1,2}|[A-Za-z])[.):])[ \t]", re.MULTILINE)
_INLINE_LABEL = re.compile(r"(?<!\w)\(?[A-Ea-e1-5]\) ?\S")
_MARKUP = re.compile(r"[\"'`*_\u2018\u2019\u201c\u201d]")
"""Quotes and markup beside a word."""
_ANSWER_SIGN = re.compile(r"[:=\u2192]|->| [-\u2013\u2014] ")
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
    return len(_LINE_LABEL.findall(text)) > 1 or len(_INLINE_LABEL.findall(text)) > 1


def takes_back(text: str) -> bool:
    """Whether what follows an answer takes it back."""
    return _RETRACTION.search(text) is not None


def words_in(text: str) -> list[str]:
    """Folded words."""
    return [folded(word) for word in _WORD.findall(text)]


def sentence_ends(text: str) -> list[int]:
    """Places behind which a sentence begins, the text's own end included."""
    ends = [
        match.end()
        for match in _SENTENCE_END.finditer(text)
        if not _ABBREVIATION_AT_END.search(text, max(0, match.start() - 5), match.start())
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
        return self.prompt_stems | {
            word + ending for word in self.prompt_stems if len(word) > 3 for ending in _NATIONALITY_ENDINGS
        }

    @property
    def prompt_stems(self) -> Set[str]:
        """Stems of the prompt's own words that mean something."""
        return {stem(word) for word in self.prompt if word not in _FUNCTION_WORDS}

    @cached_property
    def is_in_prompt(self) -> bool:
        """Whether the gold answer stands in the prompt."""
        return _contains_words(self.prompt, self.gold)

    @property
    def is_function_word(self) -> bool:
        """Whether the gold answer is made of words such as `was` or `in`, which stand anywhere."""
        return _FUNCTION_WORDS.issuperset(self.gold)

    @cached_property
    def asks_where_when_or_who(self) -> bool:
        """Whether the prompt asks for a place, a time or a person."""
        return not _WHERE_WHEN_WHO_WORDS.isdisjoint(self.prompt)

    def is_alien_word(self, word: str) -> bool:
        """Neither of the prompt, nor plain, nor of the gold answer."""
        return word not in _PLAIN_WORDS and stem(word) not in self.known_stems and word not in self.gold


class Sentence:
    """One sentence of a completion, as words and what stands between them."""

    def __init__(self, text: str, question: Question) -> None:
        matches = list(_WORD.finditer(text))
        self.question, self.text = question, text
        self.raw_words = [match.group() for match in matches]
        self.words = [folded(match) for match in self.raw_words]
        edges = [0, *(edge for match in matches for edge in match.span()), len(text)]
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
        gold, gold_word_count = list(self.question.gold), len(self.question.gold)
        return [
            i
            for i in range(len(self.words) - gold_word_count + 1)
            if self.words[i] == gold[0] and self.words[i : i + gold_word_count] == gold
        ]

    def text_behind(self, gold_start: int) -> str:
        """What follows the gold answer that begins at a word."""
        gold_end = gold_start + len(self.question.gold)
        return self.gaps[gold_end] + "".join(
            word + gap for word, gap in zip(self.raw_words[gold_end:], self.gaps[gold_end + 1 :], strict=True)
        )

    def kind(self, gold_start: int) -> Kind:
        """What is said of the gold answer that begins at a word."""
        gold_end = gold_start + len(self.question.gold)
        if self._is_denied(gold_start, gold_end) or self._is_one_of_several(gold_start, gold_end):
            return "denied"
        if self.is_question or self._is_part_of_more(gold_start, gold_end):
            return "beside"
        return (
            "stated"
            if self._is_alone(gold_start, gold_end)
            or self._is_predicate(gold_start, gold_end)
            or self._is_subject(gold_start, gold_end)
            else "beside"
        )

    def states_rival(self) -> bool:
        """Whether it states another answer to the question."""
        question = self.question
        if self.is_question or not self.words:
            return False
        content = [word for word in self.words if word not in _PLAIN_WORDS]
        if len(self.words) <= 3 and content == self.words and "!" not in self.gaps[-1]:
            return not self.mentions() and all(map(question.is_alien_word, content))
        first_mention = next(iter(self.mentions()), len(self.words))
        for verb_index in range(1, min(first_mention, len(self.words) - 1)):
            subject = self.words[:verb_index]
            if self.words[verb_index] not in _LINKING_WORDS or any(map(question.is_alien_word, subject)):
                continue
            if not any(stem(word) in question.known_stems for word in subject):
                continue
            complement_index = next(
                (
                    word_index
                    for word_index in range(verb_index + 1, min(verb_index + 4, len(self.words)))
                    if self.words[word_index] not in _PLAIN_WORDS
                ),
                None,
            )
            if (
                complement_index is None
                or "not" in self.words[verb_index:complement_index]
                or not question.is_alien_word(self.words[complement_index])
            ):
                continue
            ends_claim = re.match(r"[^\w\s]", self.gaps[complement_index + 1]) or complement_index + 1 == len(self.words)
            if ends_claim or self.raw_words[complement_index][0].isupper() or _MARKUP.search(self.gaps[complement_index]):
                return True
        return False

    def is_parallel(self) -> bool:
        """Whether it says of something else what the prompt asks: `Rome is the capital of Italy`, beside France."""
        verb_index = next((i for i, word in enumerate(self.words) if word in _LINKING_WORDS), 0)
        sides = self.words[:verb_index], self.words[verb_index + 1 :]
        has_alien_sides = all(any(self.question.is_alien_word(word) for word in side) for side in sides)
        return (
            has_alien_sides and any(stem(word) in self.question.known_stems for word in self.words) and not self.mentions()
        )

    def _is_denied(self, gold_start: int, gold_end: int) -> bool:
        words_before = [word for word in self.words[:gold_start] if word not in self.question.gold]
        if "but" in words_before[-4:]:  # `not Lyon but Paris`
            words_before = words_before[len(words_before) - words_before[::-1].index("but") :]
        if any(word in _DOUBT_WORDS or word.endswith("n't") for word in words_before):
            return True
        if any(word in _OTHER_ANSWER_WORDS and word not in self.question.prompt for word in words_before):
            return True
        words_after = self.words[gold_end : gold_end + 4]
        words_after = words_after[1:] if words_after[:1] in (["which"], ["that"]) else words_after
        word_after, second_word_after = (*words_after, "", "")[:2]
        return word_after.endswith("n't") or (
            word_after in ("is", "was", "are", "were") and second_word_after in _DENIAL_WORDS
        )

    def _is_one_of_several(self, gold_start: int, gold_end: int) -> bool:
        gap_before, gap_after = self.gaps[gold_start], self.gaps[gold_end]
        word_before = self.words[gold_start - 1] if gold_start else ""
        word_after = self.words[gold_end] if gold_end < len(self.words) else ""
        if (
            re.search(r"[/|&]", gap_before + gap_after)
            or word_after in ("or", "nor", "vs", "versus")
            or word_before in ("or", "nor", "and")
        ):
            return True
        if word_after == "and":
            next_words = self.words[gold_end + 1 : gold_end + 2]
            return not next_words or next_words[0] not in _FUNCTION_WORDS - _ARTICLES
        is_unusual = (lambda word: word not in _PLAIN_WORDS) if self.question.is_in_prompt else self.question.is_alien_word
        if "," in gap_before and word_before and is_unusual(word_before) and ("," in gap_after or not word_after):
            return True
        if "," not in gap_after or not word_after or not is_unusual(word_after):
            return False
        gap_after_next = self.gaps[gold_end + 1]
        return (
            self.raw_words[gold_end][0].isupper()
            or bool(gap_after_next.strip())
            or self.words[gold_end + 1 : gold_end + 2] in (["or"], ["and"], [])
        )

    def _is_part_of_more(self, gold_start: int, gold_end: int) -> bool:
        """Whether words right beside it make it another thing: `South America`, `cold water`."""
        if gold_end < len(self.words) and not self.gaps[gold_end].strip():
            word_after = self.words[gold_end]
            is_name = self.raw_words[gold_end][0].isupper() and word_after not in _FUNCTION_WORDS
            if (
                word_after in ("of", "to")
                or self.question.is_alien_word(word_after)
                or (is_name and stem(word_after) not in self.question.known_stems)
            ):
                return True
        if gold_start and not self.gaps[gold_start].strip():
            return self.raw_words[gold_start - 1][0].isupper() and self.question.is_alien_word(self.words[gold_start - 1])
        return False

    def _is_alone(self, gold_start: int, gold_end: int) -> bool:
        """Whether it is all there is: `It is Paris.`, `I think the answer is Paris.`."""
        words_around = [*self.words[:gold_start], *self.words[gold_end:]]
        follows_preposition = gold_start > 0 and self.words[gold_start - 1] in _PREPOSITIONS
        if follows_preposition and not self.question.asks_where_when_or_who:  # `We are in Paris.`
            return False
        return (
            len(words_around) <= 8 and len(self.words) - gold_end <= 2 and all(word in _PLAIN_WORDS for word in words_around)
        )

    def _is_predicate(self, gold_start: int, gold_end: int) -> bool:
        """Whether it is what is said: `The capital of France is Paris`, `Brazil is in South America`, `Capital: Paris`."""
        question, position = self.question, gold_start
        if self.words[gold_start - 1 : gold_start] == ["but"] and "not" in self.words[:gold_start]:  # `not Lyon but Paris`
            position = self.words.index("not")
        while position > 0 and gold_start - position < 8:
            word_before = self.words[position - 1]
            is_place_word = question.asks_where_when_or_who and word_before in _PLACE_PREPOSITIONS
            if self._tells_of_past(position - 1):
                return False
            if word_before in _LINKING_WORDS or is_place_word or _ANSWER_SIGN.search(self.gaps[position]):
                position -= word_before in _LINKING_WORDS or is_place_word
                return self._is_about_prompt(position, strict=is_place_word or question.is_in_prompt) and not (
                    question.is_in_prompt and self._has_alien_word_after(gold_end)
                )
            if word_before == "of" and (
                position < 2
                or self.words[position - 2] not in _NOUNS_BEFORE_NAME
                or "capital" in self.words[position - 3 : position - 2]
            ):
                return False
            if question.is_alien_word(word_before) or word_before in question.gold:
                return False
            position -= 1
        return False

    def _is_adjective(self, word_index: int) -> bool:
        """Whether it stands as `landlocked` does in `is a landlocked country`."""
        words_before = self.words[max(0, word_index - 2) : word_index]
        return (
            len(words_before) == 2
            and words_before[0] in _LINKING_WORDS
            and words_before[1] in _ARTICLES
            and self.words[word_index + 1 : word_index + 2] in _CATEGORY_NOUNS
        )

    def _tells_of_past(self, word_index: int) -> bool:
        """Whether a word tells of the past what the prompt asks of now: `Kyoto was the capital`."""
        return self.words[word_index] in ("was", "were") and "is" in self.question.prompt

    def _has_alien_word_after(self, gold_end: int) -> bool:
        return any(self.question.is_alien_word(word) for word in self.words[gold_end:])

    def _is_about_prompt(self, subject_end: int, *, strict: bool) -> bool:
        """Whether the words before `subject_end` are about what the prompt asks, and say no other answer."""
        question, subject = self.question, self.words[:subject_end]
        alien_indices = [i for i, word in enumerate(subject) if question.is_alien_word(word) and not self._is_adjective(i)]
        covers_prompt = question.prompt_stems <= {stem(word) for word in subject}
        if len(alien_indices) > (0 if strict else 3 if covers_prompt else 1):
            return False
        for i in alien_indices:
            word_before = next((word for word in reversed(subject[:i]) if word not in _ARTICLES), "")
            if (
                word_before in _TOPIC_PREPOSITIONS
                or word_before in _LINKING_WORDS
                or subject[i].endswith("'s")
                or (i and self.raw_words[i][0].isupper())
            ):
                return False
        content = [word for word in subject if word not in _PLAIN_WORDS or stem(word) in question.known_stems]
        return (
            covers_prompt or not content or len({stem(word) for word in content} & question.known_stems) > len(alien_indices)
        )

    def _is_subject(self, gold_start: int, gold_end: int) -> bool:
        """Whether it is what something is said of: `Paris is the capital of France`, `Shakespeare wrote Hamlet`."""
        question = self.question
        words_after = self.words[gold_end:]
        if not words_after or any(word not in _PLAIN_WORDS for word in self.words[:gold_start]):
            return False
        if any(
            word in _TOPIC_PREPOSITIONS and self.words[i - 1] not in _NOUNS_BEFORE_NAME
            for i, word in enumerate(self.words[:gold_start])
        ):
            return False  # `The capital of Mexico is ...`
        claim_end = next(
            (i for i in range(gold_end + 1, len(self.words)) if re.search(r"[,;:]", self.gaps[i])), len(self.words)
        )
        claim = self.words[gold_end:claim_end]
        if self._tells_of_past(gold_end) or (
            words_after[0] not in _LINKING_WORDS
            and "," not in self.gaps[gold_end]
            and stem(words_after[0]) not in question.known_stems
        ):
            return False
        content = [word for word in claim if word not in _FUNCTION_WORDS]
        if not content or stem(content[0]) not in question.known_stems | {"answer", "correct"}:
            return False
        for i, word in enumerate(claim):
            word_before = next((earlier for earlier in reversed(claim[:i]) if earlier not in _ARTICLES), "")
            if question.is_alien_word(word) and (question.is_in_prompt or word_before in _TOPIC_PREPOSITIONS):
                return False
        return True


def _contains_words(words: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether a row of words stands in another."""
    return f" {' '.join(phrase)} " in f" {' '.join(words)} "
