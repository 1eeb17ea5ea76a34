r"""Reading of sentences that state a number: `3 plus 4 equals 7.` states 7, for a question about 3 and 4."""

from __future__ import annotations

import re
from collections.abc import Set
from fractions import Fraction

from mixwright.graders._claims import Question, Sentence, sentence_spans, takes_back
from mixwright.graders._readings import CHARACTERS_READ, Number, amount_of, numbers_in, unit_differs
from mixwright.words import stem, words_in

NUMBER_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen"),
    *("fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
"""Words of the numbers from 0 to 20."""
_DIGITS = re.compile(r"\d{1,30}(?:,\d{3}){0,9}(?:\.\d{1,30})?")
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(NUMBER_WORDS)})\b(?! of\b)(?!-)", re.IGNORECASE)
_CLAIM_BEFORE = re.compile(
    r"(?:=|:|\u2248|[是为為有共得剩于於はで은는]"
    r"|\b(?:is|are|was|were|be|equals?|makes?|gives?|gets?|have|has|had|left|answer|becomes|totals?|costs?"
    r"|total of|(?:is|are|was|were) (?:indeed|actually|just|only|simply)"
    r"|(?:is|are|be) (?:(?:equal|equivalent) to|exactly|about|approximately)|at (?:exactly|about|approximately|around)"
    r"|(?:equal|up|comes?|amounts?) to))"
    r"[\s$*_`\"'(\u20ac\u00a3]*\Z",
    re.IGNORECASE,
)
"""What a number follows that is claimed."""
_STRONG_CLAIM_BEFORE = re.compile(r"(?:=|\b(?:is|equals?|answer|equal to|makes?|gives?)):?[\s$*_`\"'(]*\Z", re.IGNORECASE)
"""The same where the number stands in the prompt, too."""
_SUBJECT = re.compile(r"\s*(?:is|are|equals)\b", re.IGNORECASE)
"""Behind a number that begins a sentence: `15 is the sum of 5 and 10`."""
_IN_BEFORE_YEAR = re.compile(r"\bin\s*\Z", re.IGNORECASE)
_REASON_START = re.compile(r",?\s*\b(?:because|since)\b", re.IGNORECASE)
"""Behind an answer it begins the workings."""
_OPEN_WORDS = re.compile(r"\b(?:or|neither|maybe|perhaps|possibly|might|could|unless|if|whether)\b|\?", re.IGNORECASE)
"""Leaves open whether a number is meant."""
_NUMBER_END = re.compile(r"[\"'\u2019)*_` ]{0,4}(?:[.!?;,]\s|\n|\s*[^\W\d]+\W)")
"""What has to follow a number in a text that was cut."""


def worked_number(text: str) -> Number | None:
    """The number that short workings come to, as 45 of `We add 3 to 42 and we get 45`.

    It is the last one, apart from a reason behind it, and claimed; None where it is left open or taken back.
    """
    numbers = numbers_in(_REASON_START.split(text, maxsplit=1)[0]) or numbers_in(text)
    if not numbers or _OPEN_WORDS.search(text) or takes_back(text):
        return None
    last_number = numbers[-1]
    return last_number if last_number.is_unambiguous and _CLAIM_BEFORE.search(last_number.before) else None


def states_number(text: str, gold: str, prompt: str, *, cut: bool) -> bool:
    """Whether the last number of a text that is claimed, or is none of the prompt's, is the gold answer.

    Numbers of the prompt that come again in a sum or an explanation are no claims.
    """
    gold_number, question = amount_of(gold), Question.of(gold, prompt)
    in_digits = {Fraction(digits.replace(",", "")) for digits in _DIGITS.findall(text)}
    text, prompt = write_digits(text), write_digits(prompt)
    prompt_pieces = [prompt[i : i + CHARACTERS_READ] for i in range(0, len(prompt), CHARACTERS_READ)]
    prompt_numbers = {
        abs(number.value) for piece in prompt_pieces for number in numbers_in(piece) if number.value is not None
    }
    states_gold, text_after_claim = False, ""
    for sentence_start, sentence_end in sentence_spans(text):
        sentence = Sentence(text[sentence_start:sentence_end], question)
        if sentence.is_copied:
            continue
        if len(sentence.text) > CHARACTERS_READ:
            return False
        numbers = numbers_in(sentence.text)
        used_numbers = {abs(number.value) for number in numbers if number.value is not None} & prompt_numbers
        text_behind = sentence.text[len(sentence.text.rstrip()) :] + text[sentence_end:]
        for number_index, number in enumerate(numbers):
            is_claimed = _is_claimed(number, sentence, prompt_numbers)
            if not is_claimed and (_is_in_prompt(number, prompt_numbers) or number.value not in in_digits):
                continue  # as `two` of `by adding two numbers`
            if is_claimed and number.value != gold_number and 1 < len(prompt_numbers) == len(used_numbers - {number.value}):
                return False  # the very sum, with another result
            if states_gold and number.value == gold_number:
                continue  # said once more
            follows_unrelated_number = not used_numbers and number_index > 0 and len(prompt_numbers) <= 2
            is_whole = not cut or bool(_NUMBER_END.match(number.after + text_behind))
            states_gold = (
                is_claimed
                and (sentence.is_about_prompt or bool(used_numbers))
                and not follows_unrelated_number
                and not sentence.is_question
                and is_whole
                and number.is_unambiguous
                and number.value == gold_number
                and not unit_differs(gold, number.after)
            )
            text_after_claim = number.after + text_behind
    return states_gold and not takes_back(text_after_claim)


def write_digits(text: str) -> str:
    """Return a text with small number words as digits: `9` for `nine`."""
    return _NUMBER_WORD.sub(lambda match: str(NUMBER_WORDS.index(match[0].casefold())), text)


def _is_in_prompt(number: Number, prompt_numbers: Set[Fraction]) -> bool:
    return number.value is not None and abs(number.value) in prompt_numbers


def _is_claimed(number: Number, sentence: Sentence, prompt_numbers: Set[Fraction]) -> bool:
    """Whether a number follows words or signs that claim it, or is all that its sentence says."""
    begins_sentence = not number.before.strip(" $*_`\"'(")
    is_year = sentence.question.asks_where_when_or_who and _IN_BEFORE_YEAR.search(number.before)
    if begins_sentence and not any(sentence.question.is_new(word) for word in sentence.words if not word[0].isdigit()):
        return True
    if _is_in_prompt(number, prompt_numbers):
        if _STRONG_CLAIM_BEFORE.search(number.before):
            return True
        is_counted = stem((words_in(number.after) or [""])[0]) in sentence.question.asked_stems
        return (
            bool(is_year or is_counted)
            and not sentence.is_quoted
            and len(sentence.question.asked) < len(sentence.question.prompt)
        )
    if begins_sentence and _SUBJECT.match(number.after):
        return True
    # `6 sides`, where the prompt asks for sides and has no number
    unit = words_in(number.after)[:1] if not prompt_numbers else []
    if unit and stem(unit[0]) in sentence.question.known_stems:
        return True
    return bool(is_year or _CLAIM_BEFORE.search(number.before))
