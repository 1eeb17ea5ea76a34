r"""Reader of a completion's final answer: `3 15 0 # 0` gives `0`, `so \boxed{1/2}.` gives `1/2`.

Two readers. `final_answer` compares completions with each other: it has an answer for any text, knows no gold one, and reads
a few hundred characters; monitors use it, through the trainers. `find_stated_answers` is what a grader asks: where a
completion says its answer, and whether it does so at all. Left out on purpose: whether `1/2` is `0.5`.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from mixwright.thoughts import drop_thoughts

MAX_ANSWER_CHARACTERS = 40
"""Longest answer, characters."""

_END_CHARACTERS_READ = 400
"""Characters read from the end of a long text."""

_ANSWER_MARK = re.compile(r"#{1,4}(?!#)|\\boxed ?\{|<answer>|\banswer\b(?: is\b)? ?[:=]?", re.IGNORECASE)
_ANSWER_END = re.compile(r"\n|</|<\||\. |; ")
_NUMBER = re.compile(r"[+-]?(?:\d{1,15}(?:,\d{3}){1,5}|\d{1,30})(?:\.\d{1,30})?")
_OUTER_MARKS = " \t$*`_\"'.:,;#<>"

_CHARACTERS_READ = 20_000
"""Characters of a completion that `find_stated_answers` reads, from its end."""
WHOLE_ANSWER_CHARACTERS = 100
"""Characters up to which a text of one line is an answer as a whole."""
_QUOTATION_CHARACTERS = 40
"""Characters after a statement that also stands in the prompt from which it is a quotation, and no answer."""
_CHARACTERS_BEFORE_QUESTION = 40
"""Characters of a first line, without an answer mark, behind which a question of its own ends an answer."""
_ANSWER_TAG = re.compile(r"\\(?:boxed|fbox) ?\{|<answer>", re.IGNORECASE)
_HASH_LINE = re.compile(r"^.*(?<!#)#### ?(?!#)(.*)\Z")
_ANSWER_PHRASE = re.compile(
    r"(?<!whether the )(?<!if the )"
    r"\b(?:answers?(?: to (?:this|the) \w{1,20})?(?: choice| option)?|(?:correct|right|best) (?:choice|option))"
    r"(?=[\W_])[ \t*_]{0,4}(?:(?:is|are|was|would be|will be|must be|should be|equals)\b|[:=])|^[ \t>*]{0,4}A:",
    re.IGNORECASE | re.MULTILINE,
)
_NEXT_QUESTION = re.compile(r"\n[ \t#*]{0,8}(?:Q|Question|Human|User|Problem|Instruction|Input)(?: \d{1,4})?[ *]{0,3}:")
"""Where a base model goes on with a question of its own."""
_END_TOKEN = re.compile(r"<\|[a-z_]{2,20}\|>|</s>|<(?:eos|end_of_turn)>")
_UNFINISHED_ENDINGS = ("=", "+", "-", "*", "/", "(", ",", "<", ">", ":", "\\")
"""How a last sentence ends that was cut off."""
_FORMULA_END = re.compile(r"\s{0,9}(?:\\\]|\$\$)\s{0,9}\.?$")
_FORMULA_AT_END = re.compile(r"(?:\$([^$]{1,200})\$|\\\(((?:[^\\]|\\(?!\))){1,200})\\\))[\s.*]{0,5}$")
"""A formula that a sentence ends in."""
_CALCULATOR_NOTE = re.compile(r"<<[^<>\n]{0,100}>>")
"""Of GSM8K's solutions: `48/2 = <<48/2=24>>24`."""
_LEADING_MARKUP = re.compile(r"(?:\s|\*|_|:|\\\[|\\\(|\$\$){0,40}")
_SENTENCE_END = re.compile(r"(?<=[^\s.])[.!?](?=[\"')*_$]{0,3}(?:\s|$))|[\u3002\uff01\uff1f\u0964]")


class Stated(NamedTuple):
    """What a completion states as its answer, as it stands there."""

    kind: Literal["marked", "whole", "last"]
    """marked: after a mark or a phrase; whole: the text is so short that it is the answer; last: its last sentence."""
    text: str
    """The answer, or the sentence that it is looked for in."""
    line: str
    """The whole line, for answers with a full stop inside."""


def find_stated_answers(text: str, prompt: str = "") -> list[Stated]:
    r"""Where a text says its answer, the best first; empty where it does not.

    `\boxed{72}` and `<answer>`, of which the last counts; else a last line with `#### 72`, which is a heading elsewhere;
    else the phrases `the answer is 72`, `Answer: 72` and a line `A: 72`, the last first; else the whole of a short line;
    else the last sentence. A mark with nothing behind it, at the end of the text, is an answer that was cut off. What goes
    before is no answer: thoughts, a repeated prompt, a statement of the prompt's that more text follows;
    nor is what comes after: a next question, end marks.
    """
    text = own_text(text, prompt)
    if not text:
        return []
    if answer_tags := list(_ANSWER_TAG.finditer(text)):
        text_after_tag = text[answer_tags[-1].end() :]
        if answer_tags[-1].group().endswith("{"):
            answer_text = _read_braced(text_after_tag) or ""
        else:
            answer_text = re.split(r"</|<\|", _first_line(text_after_tag) or "", maxsplit=1)[0]
        return [Stated("marked", answer_text, answer_text)] if answer_text.strip() else []
    if hash_match := _HASH_LINE.match(text.rpartition("\n")[2]):
        return [Stated("marked", hash_match[1], hash_match[1])] if hash_match[1].strip() else []
    phrases = list(_ANSWER_PHRASE.finditer(text))
    if phrases and not _first_line(text[phrases[-1].end() :]):
        return []
    statements = [
        _read_statement(text, mark.end()) for mark in reversed(phrases[-20:]) if not _is_quoted(text, mark, prompt)
    ]
    if statements or phrases:
        return [statement for statement in statements if statement.text]
    if len(text) <= WHOLE_ANSWER_CHARACTERS and "\n" not in text:
        return [Stated("whole", text, text)]
    if text in prompt or text.removesuffix("**").endswith(_UNFINISHED_ENDINGS):  # `**72**` is whole
        return []
    line = _FORMULA_END.sub("", text).rpartition("\n")[2].strip()
    sentences = [sentence for sentence in _SENTENCE_END.split(line) if sentence.strip(" *_\"')$")]
    if not sentences:
        return []
    formula = _FORMULA_AT_END.search(line)
    answer_text = (formula[1] or formula[2]) if formula else sentences[-1]
    return [Stated("last", answer_text.rpartition("=")[2] if formula else answer_text, line)]


def own_text(text: str, prompt: str) -> str:
    """What the model itself says: without a repeated prompt, thoughts, end marks and a question of its own."""
    prompt = prompt.strip()
    text = text.lstrip()
    if prompt and text.startswith(prompt) and len(prompt) > WHOLE_ANSWER_CHARACTERS:
        text = text[len(prompt) :]
    elif len(text) > WHOLE_ANSWER_CHARACTERS and (prompt.startswith(text.strip()) or prompt.endswith(text.strip())):
        return ""
    text = _CALCULATOR_NOTE.sub("", drop_thoughts(text)[-_CHARACTERS_READ:])
    end_token = _END_TOKEN.search(text)
    text = (text[: end_token.start()] if end_token else text).strip()
    first_mark = _ANSWER_TAG.search(text) or _ANSWER_PHRASE.search(text) or re.search("####", text)
    next_question = _NEXT_QUESTION.search(text, first_mark.end() if first_mark else 0)
    if next_question and (
        first_mark
        or ("\n" not in text[: next_question.start()].strip() and next_question.start() <= _CHARACTERS_BEFORE_QUESTION)
    ):
        text = text[: next_question.start()].strip()
    return text


def _first_line(text: str) -> str:
    """The first line with something on it; empty where there is none."""
    leading_markup = _LEADING_MARKUP.match(text)
    return text[leading_markup.end() if leading_markup else 0 :].partition("\n")[0].strip()


def _read_statement(text: str, start: int) -> Stated:
    line = _first_line(text[start : start + 1000])
    return Stated("marked", _SENTENCE_END.split(line, maxsplit=1)[0].strip(), line)


def _is_quoted(text: str, mark: re.Match[str], prompt: str) -> bool:
    """Whether a statement is one of the prompt's that the text goes on from."""
    statement = text[mark.start() : mark.end() + 40].partition("\n")[0].strip()
    text_after = text[mark.end() :].strip().partition("\n")[2] if "\n" in text[mark.end() :].strip() else ""
    return bool(statement) and len(text_after) > _QUOTATION_CHARACTERS and statement in prompt


def final_answer(text: str) -> str:
    r"""What comes after the last mark (`\boxed{`, `<answer>`; else `####`, `#`, `answer:`); without one the last number;
    without one the text itself where it is short, else its last word.

    In lower case, white space collapsed, numbers without plus sign, thousands commas and trailing zeros of decimals; at
    most `MAX_ANSWER_CHARACTERS` printable characters; empty for an empty text. Linear in a bounded part of the text: its
    end is read.
    """
    text = text[-_END_CHARACTERS_READ:].strip()
    marks = sorted(_ANSWER_MARK.finditer(text), key=lambda mark: (_ANSWER_TAG.match(mark.group()) is not None, mark.start()))
    for mark in reversed(marks):
        text_after_mark = text[mark.end() :].lstrip()
        answer_text = (
            _read_braced(text_after_mark)
            if mark.group().endswith("{")
            else _ANSWER_END.split(text_after_mark, maxsplit=1)[0]
        )
        answer_text = text_after_mark if answer_text is None else answer_text
        if answer := _normalise(answer_text):
            return answer
    if numbers := _NUMBER.findall(text):
        return _normalise(numbers[-1])
    normal_text = _normalise(text)
    return normal_text if len(text) <= MAX_ANSWER_CHARACTERS else normal_text.rpartition(" ")[2]


def _read_braced(text: str) -> str | None:
    """Up to the brace that closes the one before `text`; None where none does."""
    depth = 1
    for position, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if not depth:
            return text[:position]
    return None


def _normalise(text: str) -> str:
    """One way of writing it."""
    text = " ".join(text.split()).strip(_OUTER_MARKS).casefold()
    if _NUMBER.fullmatch(text):
        text = text.replace(",", "").removeprefix("+")
        if "." in text:
            text = text.rstrip("0").rstrip(".")
    return "".join(character if character.isprintable() else "?" for character in text[-MAX_ANSWER_CHARACTERS:])
