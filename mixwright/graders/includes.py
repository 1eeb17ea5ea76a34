r"""Grader for an answer that is stated in a sentence: `The capital of France is Paris.` where the answer is `Paris`.

Source: https://inspect.aisi.org.uk/scorers.html (`includes`; stricter here: the answer has to be what is claimed).
Unit: 1.0 where the answer is stated, and nothing else is, 0.0 otherwise.
Cost: a few regular expressions over the first 4,000 characters.
Blind spot: written for English; a longer name of the same thing (`William Shakespeare` for `Shakespeare`), and other words
for it; idioms; sentences in which the roles are swapped (`Sam gave his kite to Mia` for who has it: Sam). JSON, code and
tables that carry the answer in a field (`{"tool": "note", "text": "Paris"}`) earn nothing: that is the form of another task.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from mixwright.errors import InputError
from mixwright.final_answer import own_text
from mixwright.graders._claims import Question, Sentence, is_list, repeats_passage, sentence_spans, takes_back
from mixwright.graders._grader import Grader
from mixwright.graders._numbers import NUMBER_WORDS, states_number, write_digits
from mixwright.graders._readings import CHARACTERS_READ, amount_of, is_number, normalise_words, option_letter
from mixwright.graders.final_answer import FinalAnswer
from mixwright.records import Example, plain
from mixwright.words import words_in

COMPLETION_CHARACTERS_READ = 4000
"""Characters of a completion that are read, from its beginning; behind a longer one nothing is known."""
MAX_ANSWER_WORDS = 12
"""Words of an answer up to which it is looked for in a sentence; a longer one is compared as a whole."""
PROMPT_CHARACTERS_READ = 8000
"""Characters of a prompt that are read, from its end."""
_STRUCTURE_SIGN = re.compile(r"[{}\[\]<>`|\\]|\":")
_DATA_FORM = re.compile(r"^\s{0,9}(?:[\[{<]|```)|[{}|]|\":|\w\(|=>|;\s{0,4}$|</", re.MULTILINE)
_COMPANY_FORM = re.compile(r",? (?:Inc|Corp|Corporation|Incorporated|Ltd|Limited|LLC|GmbH)\b\.?")
"""Behind a name it makes no longer name: `Apple Inc.` is Apple."""
_ASIDE = re.compile(r"^\s{0,3}1[.)] (?=\S)| \([A-Z]{1,5}\)")
"""The number of a list of one, and a short form in brackets: `1. Apple (AAPL)`."""
_ANSWER_END = re.compile(r"[\"'\u2019\u201d)*_` ]{0,4}(?:[.!?;](?:\s|$)|\n|\s*\S+\s+\S+\s)")
"""What has to follow an answer in a text that was cut, so that it is whole and not the first of a list."""


class Includes(Grader):
    """Right is a completion that states the answer as its own, in whole words or as a whole number, and no other.

    Nothing for an answer that is denied (`not Paris`), one of several (`Paris or Lyon`), part of a longer name, put as a
    question, taken back, or only repeated from the prompt. Numbers are compared by value, words in any case. Option letters
    are read as `final_answer` reads them; answers of more than twelve words, JSON and code have to be the whole completion.

    Args:
        among: the answers of a task that has few, as a list or with `|` between them. Then right is also a completion
            that names the gold one of them first.
    """

    def __init__(self, *, among: Sequence[str] | str = ()) -> None:
        among = among.split("|") if isinstance(among, str) else among
        if not all(isinstance(answer, str) and answer.strip() for answer in among):
            raise InputError("among as a list of answers", repr(among), "Correct the grader's option.")
        self.among = tuple(among)

    def grade(self, example: Example, completion: str) -> float:
        """1.0 when the completion states the answer, else 0.0."""
        return self._grade(example, completion, cut=False)

    def grade_cut(self, example: Example, completion: str) -> float:
        """As `grade`, of what was said before the cut; an answer at the very end may go on and earns nothing."""
        return self._grade(example, completion, cut=True)

    def _grade(self, example: Example, completion: str, *, cut: bool) -> float:
        if _is_stated(example, completion, cut=cut, has_labels=bool(self.among)):
            return 1.0
        return float(bool(self.among) and _is_named_first(example, completion, self.among, cut=cut))

    def reading(self, answer: str) -> str:
        """One way of writing a gold answer, as `final_answer` has it: `1200` of `1,200`; JSON and code as they are."""
        is_structured = _STRUCTURE_SIGN.search(answer) or "\n" in answer.strip()
        return answer if is_structured else FinalAnswer().reading(answer)


def _is_named_first(example: Example, completion: str, among: Sequence[str], *, cut: bool) -> bool:
    """Whether the gold answer is the first of several possible answers that a text names, and not denied or in a row."""
    gold, prompt = (example.answer or "").strip(), plain(example.prompt)[-PROMPT_CHARACTERS_READ:]
    text = own_text(completion, prompt)[:COMPLETION_CHARACTERS_READ]
    if is_data(text) or is_list(text):
        return False
    questions = {answer.casefold(): Question.of(answer, prompt) for answer in (*among, gold)}
    readable = {
        answer: question for answer, question in questions.items() if question.gold and not question.is_function_word
    }
    for start, end in sentence_spans(text):
        sentences = {answer: Sentence(text[start:end], question) for answer, question in readable.items()}
        named = [
            (place, -len(readable[answer].gold), answer)
            for answer, sentence in sentences.items()
            for place in sentence.mentions()
            if not sentence.is_denied(place)
        ]
        if not named or next(iter(sentences.values())).is_copied or next(iter(sentences.values())).is_question:
            continue
        place, length, first = min(named)
        if any(place_of_other >= place - length for place_of_other, _, other in named if other != first):
            return False  # `red and white`
        behind = sentences[first].text_behind(place) + text[end:]
        is_whole = not cut or _ANSWER_END.match(behind) is not None
        return (
            first == gold.casefold()
            and is_whole
            and not sentences[first].is_one_of_several(place)
            and not takes_back(behind, readable[first].gold)
        )
    return False


def is_data(text: str) -> bool:
    """Whether a text holds JSON, code, markup of tags or a table."""
    return _DATA_FORM.search(text) is not None


def _is_stated(example: Example, completion: str, *, cut: bool, has_labels: bool) -> bool:
    gold, prompt = (example.answer or "").strip(), plain(example.prompt)
    if not gold or not completion.strip():
        return False
    if completion.strip() == gold:
        return not cut or completion[-1].isspace()
    if _STRUCTURE_SIGN.search(gold) or "\n" in gold:
        return False
    if option_letter(gold):
        letter_grader = FinalAnswer(last_number=False)
        return bool((letter_grader.grade_cut if cut else letter_grader.grade)(example, completion))
    text = own_text(completion, prompt[-PROMPT_CHARACTERS_READ:])
    text = text + "\n" if completion[-1].isspace() else text  # what stands before is whole
    cut, text = cut or len(text) > COMPLETION_CHARACTERS_READ, text[:COMPLETION_CHARACTERS_READ]
    if is_data(text) or is_list(text):
        return False
    gold = write_digits(gold) if gold.casefold() in NUMBER_WORDS else gold
    if amount_of(gold) is not None and (is_number(gold) or gold[0].isdigit()):
        return states_number(text, gold, prompt[-PROMPT_CHARACTERS_READ:], cut=cut)
    return _sentences_state(text, gold, prompt[-PROMPT_CHARACTERS_READ:], cut=cut, has_labels=has_labels)


def _sentences_state(text: str, gold: str, prompt: str, *, cut: bool, has_labels: bool) -> bool:
    """Whether one of its sentences states the gold answer, and none denies it or states another."""
    if gold[0].isupper() and gold.isascii():  # names are often written with or without their accents
        text, prompt = _unaccented(text), _unaccented(prompt)
        text = _ASIDE.sub("", text if _COMPANY_FORM.search(gold) else _COMPANY_FORM.sub("", text))
    question = Question.of(gold, prompt)
    if not question.gold or len(question.gold) > MAX_ANSWER_WORDS:
        return not cut and len(text) <= CHARACTERS_READ and normalise_words(text) == normalise_words(gold)
    if gold.casefold() in ("yes", "no"):
        return _states_yes_or_no(text, gold.casefold(), cut=cut)
    if question.is_function_word:
        quoted = re.search(
            rf"\b(?:is|are|was|be)\s+[\"'\u201c*_]+{re.escape(gold)}\b", text[:CHARACTERS_READ], re.IGNORECASE
        )
        return bool(quoted) or (not cut and normalise_words(text) == normalise_words(gold))
    if repeats_passage(text, question):
        return False
    stated_end, parallel_sentences = 0, 0
    for sentence_start, sentence_end in sentence_spans(text):
        sentence, text_after = Sentence(text[sentence_start:sentence_end], question), text[sentence_end:]
        if not sentence.is_copied:
            parallel_sentences += sentence.is_parallel()
            claim, mention_start = sentence.read()
            if claim == "silent" and sentence_start == 0 and not has_labels and (found := sentence.find_uncopied()) >= 0:
                claim, mention_start = "stated", found
            if claim in ("denied", "rival") or parallel_sentences > 1:
                return False
            if claim == "stated":
                text_behind = sentence.text_behind(mention_start)
                if not cut or _ANSWER_END.match(text_behind + text_after):
                    stated_end = stated_end or sentence_start + len(sentence.text) - len(text_behind)
    return stated_end > 0 and not takes_back(text[stated_end:], question.gold)


def _states_yes_or_no(text: str, gold: str, *, cut: bool) -> bool:
    """Whether the first word is the answer, and the other one is nowhere."""
    words = words_in(text)
    return (
        words[:1] == [gold]
        and ("no" if gold == "yes" else "yes") not in words
        and not re.match(r"\W*\w+\W*[?/|]", text)
        and words[1:2] not in (["or"], ["and"])
        and not takes_back(text[4:])
        and not (cut and len(words) == 1)
    )


def _unaccented(text: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFD", text) if not unicodedata.combining(letter))
