r"""Reading of sentences that state an answer in words, as `The opposite of hot is cold.` does for a question about hot.

The vocabulary is open. A word is a function word (a closed class of English), a word of the prompt, or a new one. The first
sentence that answers decides: where the answer is what it claims, and not denied, one of several, part of a longer name, or
said of something else. A sentence that claims another answer first is a rival.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Literal

from mixwright.words import WORD, contains_words, folded, stem, words_in


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_SENTENCE_END = re.compile(r"[.!?]{1,6}[\"'\u201d\u2019)*_`]{0,4}(?=\s|$)|[.!?]?\s{0,9}\n")
_ABBREVIATION_AT_END = re.compile(r"\b(?:St|Mr|Mrs|Ms|Dr|Mt|Prof|[A-Z])\Z")
"""Before a full stop it ends no sentence."""
_QUESTION_WORDS = _word_set("what which who whom whose where when how why")
_ARTICLES = _word_set("the a an")
_LINKING_WORDS = _word_set("is are was were be becomes became equals called named means says makes it's that's he's she's")
"""Words that an answer follows."""
_PREPOSITIONS = _word_set("in on at from by within of to for with near about after before during into like as than between")
_WHERE_WHEN_WHO_WORDS = _word_set("where which who whom whose when located in by")
_DISCOURSE_WORDS = _word_set(
    "adjective noun verb adverb yes no sure certainly course absolutely okay ok great good well exactly indeed "
    "hello hi thanks thank answer answers question correct right final so then thus therefore hence also just "
    "only usually often typically commonly generally mainly mostly simply actually really very called known named "
    "one same following given above below think believe most many some both all each every any such other"
)
"""Words that say nothing about the subject."""
_FUNCTION_WORDS = (
    _LINKING_WORDS
    | _PREPOSITIONS
    | _ARTICLES
    | _word_set(
        "until through throughout around and but or i it its this that these those there here my our your their his her he "
        "she they we you them him us me which who whom whose what where when how because since while also though although "
        "if has have had do does did will would can could should must let not than i'm you're they're been being up out"
    )
)
_EMPTY_WORDS = _FUNCTION_WORDS | _DISCOURSE_WORDS
_BOUNDARY_WORDS = _word_set(
    "which that who whom whose where because since while although though but however whereas so when"
)
"""Words at which a claim ends and something else is said."""
_TOPIC_PREPOSITIONS = _word_set("of for in")
"""What follows one of them in a subject is what the sentence is about."""
_NAMING_NOUNS = _word_set(
    "city town state country continent island month year planet day name word number kind type color colour shade"
)
"""Nouns behind which `of` names the thing itself: `the city of Paris`."""
_COMPARING_WORDS = _word_set("near than like between")
"""Before a word they make it something beside the answer."""
_MAKING_WORDS = _word_set("made built composed consists consist formed out full")
"""Words behind which `of` names what something is: `made of steel`."""
_DOUBT_WORDS = _word_set(
    "not never neither nor cannot except without than unlike if whether unless might may could maybe perhaps possibly "
    "doubt false wrong incorrect untrue myth unsure hardly instead rather"
)
"""Before an answer they deny it or leave it open."""
_OTHER_ANSWER_WORDS = _word_set("former formerly previous previously once almost nearly second third least another largest")
"""Before an answer they make it one to another question, where the prompt does not have them."""
_DENIAL_WORDS = _word_set("not wrong incorrect false untrue never")
_GRAMMAR_WORDS = _word_set("plural singular past tense verb spell spelled spelling form comparative superlative participle")
"""A question with one of them asks for the very form of a word."""
_RETRACTION = re.compile(
    r"\b(?:wait|sorry|correction|mistaken?|apologi[sz]e|wrong|incorrect|i meant?|rather|kidding"
    r"|alternatively|(?:can|may|could|might) also|but (?:in|some|it|also|can|not|many)"
    r"|not (?:true|correct|right|sure))\b|(?:^|[.!?\n]\s{0,4})no\b",
    re.IGNORECASE,
)
"""Behind an answer it takes it back."""
_LINE_LABEL = re.compile(r"^[ \t>]{0,8}(?:[-*+\u2022]|\(?(?:\d{1,2}|[A-Za-z])[.):])[ \t]", re.MULTILINE)
_INLINE_LABEL = re.compile(r"(?<!\w)\(?[A-Ea-e1-5]\) ?\S")
_NAME_INSIDE = re.compile(r"(?<![.!?\n:])[ \"'(]([^\W\d_a-z][\w'\u2019]*)")
"""A word with a capital letter that does not begin a sentence."""
_ANSWER_SIGN = re.compile(r"[:=\u2192]|->| [-\u2013\u2014] ")
"""Signs that an answer follows."""
_CLAUSE_SIGN = re.compile(r"[,;:(]| [-\u2013\u2014] ")
"""Signs at which a claim ends."""

REPEATED_SHARE = 0.8
"""Share of a passage from which a copy of it is no answer."""
MAX_BARE_WORDS = 3
"""Words of an answer that is no sentence."""
MAX_SUBJECT_WORDS = 8
"""Words before an answer that stands between commas."""
MIN_NAME_CHARACTERS = 4
"""Characters above which another form of a name is known by its beginning: `Swiss` by `Switzerland`."""
Claim = Literal["stated", "denied", "rival", "silent"]
"""What a sentence says of the gold answer: it is the answer, it is not, another one is, or nothing."""


def is_list(text: str) -> bool:
    """Whether a text lists several labelled things."""
    return len(_LINE_LABEL.findall(text)) > 1 or len(_INLINE_LABEL.findall(text)) > 1


def takes_back(text: str, gold: Sequence[str] = ()) -> bool:
    """Whether what follows an answer takes it back, and does not say it again."""
    retraction = _RETRACTION.search(text)
    return retraction is not None and not (gold and contains_words(words_in(text[retraction.end() :]), gold))


def repeats_passage(text: str, question: Question) -> bool:
    """Whether a text is nothing but the passage that the prompt asks about, or nearly all of it."""
    words, passage = words_in(text), len(question.prompt) - len(question.asked)
    return 0 < REPEATED_SHARE * passage <= len(words) and contains_words(question.prompt, words)


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence begins and ends; together they are the whole text."""
    begin = 0
    for match in _SENTENCE_END.finditer(text):
        if not _ABBREVIATION_AT_END.search(text, max(0, match.start() - 5), match.start()):
            yield begin, match.end()
            begin = match.end()
    yield begin, len(text)


@dataclass(frozen=True)
class Question:
    """A question and its gold answer, in folded words."""

    gold: tuple[str, ...]
    """Without a leading article."""
    prompt: tuple[str, ...]
    gold_is_name: bool = False
    """Whether the gold answer is written with a capital letter."""
    asked: tuple[str, ...] = ()
    """Words of the prompt's question, without a passage before it."""
    names: Set[str] = frozenset()
    """Words of the question that are written with a capital letter inside a sentence."""

    @classmethod
    @lru_cache(1024)  # one prompt is read with the answers to a hundred others
    def of(cls, gold: str, prompt: str) -> Question:
        """Read a gold answer and its prompt."""
        gold_words = words_in(gold)
        gold_words = gold_words[1:] if len(gold_words) > 1 and gold_words[0] in _ARTICLES else gold_words
        asked = _find_question(prompt)
        names = {folded(match[1]) for match in _NAME_INSIDE.finditer(asked)} - _FUNCTION_WORDS
        return cls(tuple(gold_words), tuple(words_in(prompt)), gold[:1].isupper(), tuple(words_in(asked)), frozenset(names))

    @cached_property
    def known_stems(self) -> Set[str]:
        """Stems of the prompt's words that mean something."""
        return {stem(word) for word in self.prompt if word not in _FUNCTION_WORDS}

    @cached_property
    def asked_stems(self) -> Set[str]:
        """Stems of the question's words that mean something."""
        return {stem(word) for word in self.asked if word not in _FUNCTION_WORDS}

    @cached_property
    def asked_nouns(self) -> Set[str]:
        """Nouns that name what is asked for: `season` of `which season`."""
        return {noun for word, noun in pairwise(self.asked) if word in ("which", "what")}

    @cached_property
    def is_new_to_prompt(self) -> bool:
        """Whether no word of the gold answer is in the prompt, so that whoever says it did not copy it."""
        return not {stem(word) for word in self.gold} & {stem(word) for word in self.prompt}

    @cached_property
    def is_asked(self) -> bool:
        """Whether the gold answer is in the question itself, as one of its options is."""
        return contains_words(self.asked, self.gold)

    @property
    def is_function_word(self) -> bool:
        """Whether the gold answer is made of words such as `was` or `in`, which occur anywhere."""
        return _FUNCTION_WORDS.issuperset(self.gold)

    @cached_property
    def asks_where_when_or_who(self) -> bool:
        """Whether the prompt asks for a place, a time or a person."""
        return not _WHERE_WHEN_WHO_WORDS.isdisjoint(self.asked)

    @cached_property
    def last_word_forms(self) -> Set[str]:
        """Forms of the gold answer's last word: its plural or singular too, where the question is not about the form."""
        word = self.gold[-1]
        if len(word) < 3 or not _GRAMMAR_WORDS.isdisjoint(self.prompt):
            return {word, f"{word}'s"}
        forms = {word, f"{word}'s", f"{word}s", f"{word}es", word.removesuffix("s"), f"{word.removesuffix('y')}ies"}
        return {form for form in forms if form == word or form not in self.asked}

    def is_new(self, word: str) -> bool:
        """Whether a word is neither a function word, nor the prompt's, nor the gold answer's."""
        return not (
            word in _EMPTY_WORDS
            or stem(word) in self.known_stems
            or word in self.gold
            or word in self.last_word_forms
            or any(word[:3] == name[:3] for name in self.names if min(len(name), len(word)) > MIN_NAME_CHARACTERS)  # Swiss
        )


class Sentence:
    """One sentence of a completion, as words and what is between them."""

    def __init__(self, text: str, question: Question) -> None:
        matches = list(WORD.finditer(text))
        self.question, self.text = question, text
        self.raw_words = [match.group() for match in matches]
        self.words = [folded(word) for word in self.raw_words]
        edges = [0, *(edge for match in matches for edge in match.span()), len(text)]
        self.gaps = [text[edges[i] : edges[i + 1]] for i in range(0, len(edges), 2)]
        """What is before each word, and behind the last."""
        self.is_question = "?" in self.gaps[-1]

    @property
    def is_copied(self) -> bool:
        """Whether it is in the question as it is."""
        return len(self.words) > 2 and contains_words(self.question.asked, self.words)

    @property
    def is_quoted(self) -> bool:
        """Whether it is in the prompt as it is, passage or question."""
        return len(self.words) > 2 and contains_words(self.question.prompt, self.words)

    @property
    def is_about_prompt(self) -> bool:
        """Whether it has a word of the prompt, or says nothing new."""
        return any(word == "answer" or stem(word) in self.question.known_stems for word in self.words) or not any(
            self.question.is_new(word) for word in self.words if not word[0].isdigit()
        )

    def text_behind(self, gold_start: int) -> str:
        """Return what follows the gold answer that begins at a word."""
        gold_end = gold_start + len(self.question.gold)
        return self.gaps[gold_end] + "".join(
            word + gap for word, gap in zip(self.raw_words[gold_end:], self.gaps[gold_end + 1 :], strict=True)
        )

    def read(self) -> tuple[Claim, int]:
        """Return what it says of the gold answer, and the word at which the answer begins where it is stated."""
        if self.is_question or not self.words:
            return "silent", -1
        for start in self.mentions():
            end = start + len(self.question.gold)
            if self.is_denied(start) or self.is_one_of_several(start):
                return "denied", start
            if self.is_part_of_more(start):
                continue
            if self._claims_other(start):
                return "rival", start
            if self._is_claimed(start, end):
                return "stated", start
        return ("rival" if self._claims_other(len(self.words)) else "silent"), -1

    def find_uncopied(self) -> int:
        """Return the word at which an answer begins that is not in the prompt, of a sentence about it; else -1.

        Nobody can have copied it, so that it is meant, whatever the grammar.
        """
        is_about = not {stem(word) for word in self.words}.isdisjoint(self.question.asked_stems)
        is_former = "is" in self.question.asked and not {"was", "were"}.isdisjoint(self.words)
        if not self.question.is_new_to_prompt or self.is_question or is_former or not is_about:
            return -1
        for start in self.mentions():
            end = start + len(self.question.gold)
            is_other_thing = self._is_beside_answer(start) or self._is_off_topic(start, end)
            if not (self.is_part_of_more(start) or is_other_thing):
                return start
        return -1

    def is_parallel(self) -> bool:
        """Whether it says of something else what the prompt asks: `Rome is the capital of Italy`, next to France."""
        verb = next((i for i, word in enumerate(self.words) if word in _LINKING_WORDS), 0)
        sides = self.words[:verb], self.words[verb + 1 :]
        return (
            all(any(map(self.question.is_new, side)) for side in sides)
            and any(stem(word) in self.question.known_stems for word in self.words)
            and not self.mentions()
        )

    def mentions(self) -> list[int]:
        """Return the words at which the gold answer begins."""
        gold, count = self.question.gold, len(self.question.gold)
        forms = self.question.last_word_forms
        return [
            i
            for i in range(len(self.words) - count + 1)
            if tuple(self.words[i : i + count - 1]) == gold[:-1] and self.words[i + count - 1] in forms
        ]

    def _new_words(self, start: int, end: int) -> list[int]:
        return [i for i in range(start, end) if self.question.is_new(self.words[i])]

    def is_denied(self, start: int) -> bool:
        """Whether the answer that begins at a word is denied or left open."""
        end = start + len(self.question.gold)
        clause = next((i for i in range(start, 0, -1) if _CLAUSE_SIGN.search(self.gaps[i])), 0)
        words_before = [
            word
            for word, raw_word in zip(self.words[clause:start], self.raw_words[clause:start], strict=True)
            if word not in self.question.gold and (raw_word != "May" or word not in self.question.prompt)  # the month
        ]
        if "but" in words_before[-4:]:  # `not Lyon but Paris`
            words_before = words_before[len(words_before) - words_before[::-1].index("but") :]
        other_answer = _OTHER_ANSWER_WORDS.difference(self.question.prompt)
        if any(word in _DOUBT_WORDS or word.endswith("n't") or word in other_answer for word in words_before):
            return True
        words_after = self.words[end : end + 4]
        words_after = words_after[1:] if words_after[:1] in (["which"], ["that"]) else words_after
        after, second = (*words_after, "", "")[:2]
        return after.endswith("n't") or (after in ("is", "was", "are", "were") and second in _DENIAL_WORDS)

    def is_one_of_several(self, start: int) -> bool:
        """Whether the answer is in a row of things: `Paris or Lyon`, `Paris, Lyon and Nice`."""
        end = start + len(self.question.gold)
        gap_before, gap_after = self.gaps[start], self.gaps[end]
        before = self.words[start - 1] if start else ""
        after = self.words[end] if end < len(self.words) else ""
        if re.search(r"[/|&]", gap_before + gap_after) or after in ("or", "nor", "vs", "versus") or before in ("or", "nor"):
            return True
        if after == "and" and self._is_row_member(end + 1):
            return True
        if before == "and" and start > 1 and self._is_row_member(start - 2, backwards=True):
            return True
        if (
            "," in gap_before
            and before
            and self._is_row_member(start - 1, backwards=True)
            and ("," in gap_after or (not after and not self._is_pair_of_names(start - 1)))
        ):
            return True
        return "," in gap_after and bool(after) and self._is_row_member(end) and not self._is_pair_of_names(end - 1)

    def _is_pair_of_names(self, place: int) -> bool:
        """Whether a word and the next one, the last, are a place and no list: `in Rome, Italy`."""
        is_place = self.words[place - 1 : place] == ["in"] and not self.question.is_asked
        return is_place and place + 2 == len(self.words) and all(word[0].isupper() for word in self.raw_words[place:])

    def _is_row_member(self, place: int, *, backwards: bool = False) -> bool:
        """Whether a word is a further thing of a row, and not the beginning of something else that is said."""
        if not 0 <= place < len(self.words):
            return True
        if self.words[place] in _ARTICLES:
            if self.question.gold_is_name and self.words[place] in ("a", "an"):
                return False  # `Rowling, a British author`
            place += 1
        last = min(place, len(self.words) - 1)
        word, is_capital = self.words[last], self.raw_words[last][0].isupper()
        is_name = is_capital and self.question.gold_is_name
        is_name = is_name and word not in self.question.names and word not in self.question.prompt
        is_thing = (self.question.is_new(word) and not word[0].isdigit()) or (
            (self.question.is_asked or is_name) and word not in _FUNCTION_WORDS
        )
        if not is_thing or backwards:
            return is_thing
        next_word = self.words[place + 1] if place + 1 < len(self.words) else ""
        return is_capital or bool(self.gaps[last + 1].strip()) or next_word in ("", "or", "and")

    def is_part_of_more(self, start: int) -> bool:
        """Whether words right next to it make it another thing: `South America`, `cold water`."""
        end = start + len(self.question.gold)
        if end < len(self.words) and not self.gaps[end].strip(" \"'*_`\u2019\u201d"):
            after = self.words[end]
            if self.raw_words[end - 1].casefold().endswith(("'s", "\u2019s")) and not self.question.gold[-1].endswith("'s"):
                return True
            if self.question.is_new(after) and not self.gaps[end].strip():
                return self.raw_words[end][0].isupper() or not self.raw_words[start][0].isupper()
            if after == "of" and not self.question.is_asked and self.question.gold[-1] not in _NAMING_NOUNS:
                return True
        if self.gaps[end].startswith("-") and end < len(self.words) and not self.gaps[end][1:]:
            return True  # `cold-blooded`
        follows_name = start > 1 and not self.gaps[start].strip() and self.raw_words[start - 1][0].isupper()
        return follows_name and self.question.is_new(self.words[start - 1])

    def _claims_other(self, stop: int) -> bool:
        """Whether it claims something else of what the prompt asks, before a word."""
        question = self.question
        content = [word for word in self.words if word not in _EMPTY_WORDS]
        if stop == len(self.words) <= 3 and content == self.words and "!" not in self.gaps[-1]:
            return all(map(question.is_new, content)) and not self.mentions()
        for verb in range(1, min(stop, len(self.words) - 1)):
            if self.words[verb] not in _LINKING_WORDS or self._new_words(0, verb):
                continue
            if not any(stem(word) in question.known_stems for word in self.words[:verb]):
                continue
            claim_end = next((i for i in range(verb + 1, stop) if i > verb + 1 and self._begins_clause(i)), stop)
            new_words = self._new_words(verb + 1, claim_end)
            if not new_words or "not" in self.words[verb:claim_end] or (claim_end == stop < len(self.words)):
                continue
            claim = [word for word in self.words[verb + 1 : claim_end] if word not in _DISCOURSE_WORDS]
            if claim[0] not in ("a", "an"):
                return True
        return False

    def _begins_clause(self, place: int) -> bool:
        return self.words[place] in _BOUNDARY_WORDS or _CLAUSE_SIGN.search(self.gaps[place]) is not None

    def _is_claimed(self, start: int, end: int) -> bool:
        """Whether the sentence gives it as its answer."""
        question = self.question
        others = [*range(start), *range(end, len(self.words))]
        if not any(self.question.is_new(self.words[i]) or stem(self.words[i]) in question.known_stems for i in others):
            preposition = start > 0 and self.words[start - 1] in _PREPOSITIONS
            return not preposition or question.asks_where_when_or_who  # `It is Paris.`, and not `We are in Paris.`
        if end == len(self.words) <= MAX_BARE_WORDS and (
            len(self._new_words(0, start)) == start or self.words[start - 1].endswith("'s")
        ):
            return True  # `space astronaut`, `Grandpa's attic`
        if self._is_off_topic(start, end):
            return False
        if question.is_asked:
            return self._is_predicate(start, end) or self._is_subject(start, end)
        if self._is_beside_answer(start):
            return False
        shared = {stem(word) for word in self.words} & question.asked_stems
        if self._begins(start) and end < len(self.words) and _LINKING_WORDS.isdisjoint(self.words[:start]):
            return self._is_subject(start, end)
        is_about_question = 2 * len(shared) >= len(question.asked_stems)
        is_about_question |= bool(shared) and len(self._new_words(0, len(self.words))) <= 1
        return self._is_predicate(start, end) or is_about_question

    def _begins(self, start: int) -> bool:
        """Whether only function words are before a word."""
        return _EMPTY_WORDS.issuperset(self.words[:start])

    def _is_beside_answer(self, start: int) -> bool:
        """Whether a comparison, or another thing before `of`, stands before it: `near Paris`, `the mayor of Paris`."""
        if not _COMPARING_WORDS.isdisjoint(self.words[max(start - 1, 0) : start]):
            return True
        place = start
        while place > max(0, start - 3) and (
            self.words[place - 1] in _ARTICLES or stem(self.words[place - 1]) in self.question.known_stems
        ):
            if _CLAUSE_SIGN.search(self.gaps[place]):
                return False
            place -= 1
        if place < 2 or self.words[place - 1] != "of":
            return False
        noun = self.words[place - 2]
        return not (noun in _NAMING_NOUNS | self.question.asked_nouns | _MAKING_WORDS or noun[0].isdigit()) and (
            self.question.is_new(noun) or stem(noun) in self.question.known_stems
        )

    def _is_off_topic(self, start: int, end: int) -> bool:
        """Whether it is about another name than the prompt's: `Paris is the capital of Italy`, `Germany's capital`."""
        names = self.question.names - set(self.question.gold)
        if found := [i for i, word in enumerate(self.words) if word.removesuffix("'s") in names]:
            return all(
                i > 1 and self.raw_words[i - 1][0].isupper() and self.question.is_new(self.words[i - 1]) for i in found
            )
        for i, word in enumerate(self.words):
            if start <= i < end or not self.question.is_new(word) or word in _NAMING_NOUNS:
                continue
            is_name = self.raw_words[i][0].isupper() and (i > 0 or word.endswith("'s"))
            before = next((earlier for earlier in reversed(self.words[:i]) if earlier not in _ARTICLES), "")
            if (names and is_name and (before in _TOPIC_PREPOSITIONS or word.endswith("'s"))) or (
                not names and before == "of" and i < start and self.words[i + 1 : i + 2] != ["of"]
            ):
                return True
        return False

    def _is_predicate(self, start: int, end: int) -> bool:
        """Whether it is what is said of the prompt's subject: `The capital of France is Paris`, `Capital: Paris`."""
        is_apposition = "," in self.gaps[start] and (end == len(self.words) or "," in self.gaps[end])
        if is_apposition and 0 < start <= MAX_SUBJECT_WORDS:  # `The French capital, Paris, is a city`
            return any(stem(word) in self.question.asked_stems for word in self.words[:start])
        for place in range(start, max(0, start - 8), -1):
            before = self.words[place - 1]
            if before in _LINKING_WORDS or _ANSWER_SIGN.search(self.gaps[place]):
                subject = self.words[: place - (before in _LINKING_WORDS)]
                if before in ("was", "were") and "is" in self.question.asked:
                    return False
                if self.question.is_asked and (self._new_words(end, len(self.words)) or self.question.gold[0] in subject):
                    return self.question.gold[0] in subject and not self._new_words(0, len(self.words))
                return any(stem(word) in self.question.known_stems for word in subject) or not any(
                    map(self.question.is_new, subject)
                )
        return False

    def _is_subject(self, start: int, end: int) -> bool:
        """Whether it is what something is said of: `Paris is the capital of France`, `Shakespeare wrote Hamlet`."""
        after = self.words[end:]
        if not after or not self._begins(start) or (after[0] in ("was", "were") and "is" in self.question.asked):
            return False
        claim_end = next((i for i in range(end + 1, len(self.words)) if _CLAUSE_SIGN.search(self.gaps[i])), len(self.words))
        claim = [word for word in self.words[end:claim_end] if word not in _EMPTY_WORDS]
        if not claim or stem(claim[0]) not in self.question.known_stems:
            return False
        if self.question.is_asked:
            return not any(map(self.question.is_new, claim))
        return any(stem(word) in self.question.known_stems for word in claim)


def _find_question(prompt: str) -> str:
    """Return the sentences of a prompt that ask; the last one where none has a question mark and several are there."""
    sentences = [prompt[start:end] for start, end in sentence_spans(prompt) if prompt[start:end].strip()]
    asking = [sentence for sentence in sentences if "?" in sentence]
    asking = asking or [sentence for sentence in sentences if not _QUESTION_WORDS.isdisjoint(words_in(sentence))]
    return " ".join(asking) or ("".join(sentences[-1:]) if len(sentences) > 2 else prompt)
