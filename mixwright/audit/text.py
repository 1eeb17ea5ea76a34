"""Text normalised for comparison: changes that alter no question are folded away, all others stay.

Folded: invisible characters, full-width and other compatibility forms, digits and marks of other scripts, vowel signs of
Arabic and Hebrew, case of prose, runs of space, quotes, marks that end a clause. Kept: case and quotes in code, single
letters (variables), primes and factorials, superscripts and fractions, signs and separators of numbers, space in drawings
and indented code.
"""

from __future__ import annotations

import functools
import re
import unicodedata

from mixwright.final_answer import final_answer

_LOOK_ALIKE_KINDS = {
    "<wide>",
    "<narrow>",
    "<noBreak>",
    "<font>",
    "<initial>",
    "<medial>",
    "<final>",
    "<isolated>",
    "<vertical>",
}
"""Kinds of compatibility characters that only look different; superscripts, fractions and circled numbers do more."""
_UNSEEN = {0x034F, 0x0640, 0x115F, 0x1160, 0x3164, 0xFFA0, 0xFE0E, 0xFE0F}
_SIMPLER_CHARACTER = {0x2010: "-", 0x2011: "-", 0x2212: "-", 0xFE63: "-", 0xFF0D: "-"}
_SIMPLER_CHARACTER |= {0x060C: ",", 0x061B: ";", 0x061F: "?", 0x06D4: ".", 0x0964: ".", 0x0965: "."}
_COMBINING = "".join(chr(code) for code in range(0x300, 0x10000) if unicodedata.category(chr(code))[0] == "M")
"""Characters inside words that `\\w` lacks: vowels of Hindi and Thai, accents that no letter composes with."""
_WORD = rf"[^\W\d_]+(?:[{_COMBINING}]+[^\W\d_]*)*"
_ESTIMATED_TOKEN = re.compile(r"[^\W\d_]+|\d|[^\w\s]|_")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")

_QUOTE_SIGNS = "'\"`\u201c\u201d\u2018\u2019"
_QUOTE = re.compile(f"[{_QUOTE_SIGNS}]")
_QUOTED = re.compile(rf"(?<![\w{_QUOTE_SIGNS}])[{_QUOTE_SIGNS}]([^{_QUOTE_SIGNS}\n]{{1,80}})[{_QUOTE_SIGNS}](?!\w)")
_QUOTATION_MARKS = re.compile(
    rf"(?<![\w{_QUOTE_SIGNS}])[{_QUOTE_SIGNS}]+|(?:(?<=[^\W\d_]{{2}})|(?<=[^\w\s{_QUOTE_SIGNS}]))[{_QUOTE_SIGNS}]+(?![\w(])"
)
_MARK = re.compile(
    rf"[.,;:?!](?:(?<=[\w{_COMBINING})\]}}%'\"][.,;:?])[.,;:!?]*(?=\s|$)|(?<=[^\W\d_]{{2}}!)!*(?=\s|$)"
    r"|(?<=[^\W\d_]{2} [.?])\s*\Z)"  # the last one of a text in which every mark stands apart
)
"""It begins with a character, not with what stands before it, so that a search skips to the next mark."""
_CODE = re.compile(
    r"""(
      `[^`\n]{1,200}`                                                          # quoted as code
    | \b[^\W\d]\w*(?:\.\w+){0,9}(?!\((?:[eE]?[sS]|[\u0410-\u044f]{1,3})\))\([^()\n]{0,200}\)  # a call, no apple(s): print(X)
    | \b\w+\s?(?:[-+*/%&|^!<>=]?=|\[)\s?["']?[\w.]{0,80}["']?                  # left and right of = and [
    | (?<![\w'\u2019])(?:[^\W\d_aAiI]|[aAiI](?=\s?[=+*/^<>%])|(?<=[=+*/^<>%]\s)[aAiI])(?!-?[^\W\d_]{2}|[\w'\u2019])
    )""",
    re.VERBOSE,
)
BRIEF_ANSWER_CHARACTERS = 40
"""Characters up to which an answer without a mark is taken as a whole."""
_MARKED = re.compile(r"#|\\boxed|<answer>|\banswer\b", re.IGNORECASE)
PROGRAM_BEGIN_CHARACTERS = 400
"""Of an answer, in which it shows whether it is a query or a program."""
_PROGRAM = re.compile(
    r"\s*(?:```\w*\s+)?(?:(?:SELECT|INSERT|UPDATE|DELETE|CREATE|WITH)\b.*?\b(?:FROM|INTO|SET|TABLE|AS)\b"
    r"|(?:select|insert|update|delete|create|with)\b.*?\b(?:from|into|set|table|as)\b"
    r"|(?:async\s+)?(?:def|class|function|public|const|let|var|fn|package)\s+\w+(?:\s+\w+){0,3}\s*[(<:{=;]"
    r"|from\s+[\w.]+\s+import\b|import\s+[\w.]+[^\n]{0,40}[\n;]|#include\b)",
    re.DOTALL,
)
_BARE_NUMBER = re.compile(r"[\s$*]*[-+]?[\d,]*\.?\d+[\s$*.]*")
MAX_NUMBER_CHARACTERS = 200
"""Longest text that is read as a number alone."""
_OPTION = re.compile(r"(?m)^[ \t]*\(?[A-J](?=[).:][ \t])|(?<=\s)\([A-J](?=\)[ \t])")
"""The letter of an option: at the beginning of a line, or in brackets."""
_CODE_SIGN = re.compile(r"[`(\[=+*/^<>%]")
_LETTER = re.compile(r"\W[^\W\d_aAiI](?!\w)")
"""With neither, no part of a text (a blank before it) is code: a quick look before the slow one."""
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+|\n+")
_LONG_WORD = re.compile(r"[^\W\d_]{3}")
_INDENTED = re.compile(r"   |^(?:  |\t)\s*\S")
_TOKEN = re.compile(rf"\d+(?:\.\d+)?|{_WORD}|[^\w\s]|_")
_TOKEN_OR_BREAK = re.compile(rf"\d+(?:\.\d+)?|{_WORD}|\n|[^\w\s]|_")
_FIGURE = re.compile(
    r"(?:(?<![\w.)\]])[-+]\s?)?(?:[$\u20ac\u00a3\u00a5]\s?)?(?:\d[\d.,]*\d|\d|\.\d+)(?:[eE][-+]?\d+)?\s?[%!'\"\u00b0]?"
    r"|[\u00b2\u00b3\u00b9\u2070-\u2089\u00bc-\u00be\u2150-\u215f\u2460-\u249b]|[+*/^\u00d7\u00f7=<>\u221a]|(?<=\d)\s?-(?=\s?\d)"
)


_OF_FIGURES = re.compile(
    "[0-9\u00b2\u00b3\u00b9\u2070-\u2089\u00bc-\u00be\u2150-\u215f\u2460-\u249b+*/^\u00d7\u00f7=<>\u221a]"
)
"""Each figure has one of these."""


class _Table(dict[int, str]):
    """Code point -> what stands for it; filled as characters are met."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _fold_character(code)
        return folded


def _fold_character(code: int) -> str:
    character = chr(code)
    category = unicodedata.category(character)
    is_vowel_sign = 10 <= unicodedata.combining(character) <= 35  # of Hebrew and Arabic; most texts leave them out
    if code in _SIMPLER_CHARACTER or code in _UNSEEN or category == "Cf" or is_vowel_sign:
        return _SIMPLER_CHARACTER.get(code, "")
    if category == "Nd":
        return str(unicodedata.digit(character))
    decomposition_kind, _, _ = unicodedata.decomposition(character).partition(" ")
    if decomposition_kind in _LOOK_ALIKE_KINDS or (decomposition_kind == "<compat>" and category[0] in "LZ"):
        return unicodedata.normalize("NFKC", character)
    return " " if category == "Zs" else character


_CHARACTER_TABLE = _Table()


def to_visible(text: str) -> str:
    """`text` as a reader sees it: without invisible characters, in ASCII digits, minus signs and letter forms."""
    if text.isascii() and text.isprintable():
        return text
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.translate(_CHARACTER_TABLE))
    return _CONTROL.sub("", text)


def normal_form(text: str) -> str:
    """`text` without what changes no question (see above). A text all in capitals has no case to keep.

    Of drawings and code (two lines or more that are indented or spaced apart) only characters are folded: space has meaning
    there.
    """
    folded = _fold(text)
    if ("\n" in folded or "\r" in folded) and sum(map(bool, map(_INDENTED.search, folded.splitlines()))) > 1:
        return folded.strip()
    return " ".join(_MARK.sub(" ", folded).split())


def _fold(text: str) -> str:
    """Visible text, case and quotes folded, but not those of code."""
    visible_text = to_visible(text)
    if not _CODE_SIGN.search(visible_text) and not _LETTER.search(f" {visible_text}"):
        return _strip_quotes(visible_text.casefold())
    text_and_code = _CODE.split(_OPTION.sub(lambda letter: letter.group().lower(), visible_text))
    text_and_code[::2] = [_strip_quotes(text_part.casefold()) for text_part in text_and_code[::2]]
    folded = "".join(text_and_code)
    is_all_capitals = visible_text.isupper() and _LONG_WORD.search(visible_text)  # a formula is not
    return folded.casefold() if is_all_capitals else folded


def _strip_quotes(text: str) -> str:
    return _QUOTATION_MARKS.sub("", _QUOTED.sub(r"\1", text)) if _QUOTE.search(text) else text


def sentences(text: str) -> set[str]:
    """The sentences and lines of `text`, each in its normal form."""
    return {normal_form(sentence) for sentence in _SENTENCE_END.split(text) if sentence.strip()}


def normal_words(text: str) -> list[str]:
    """Words, numbers and single signs of `text`, in its normal form but for space."""
    return _TOKEN.findall(_MARK.sub(" ", _fold(text)))


def words_and_breaks(text: str) -> list[str]:
    """`normal_words`, with a line feed wherever a line ends or a mark ends a clause; a comma is none."""
    return _TOKEN_OR_BREAK.findall(_MARK.sub(lambda mark: " " if mark.group() == "," else "\n", _fold(text)))


def read_conclusion(text: str) -> str:
    """The final answer of an answer or a worked solution: `48 + 24 = 72, so #### 72` gives `72`.

    A short one is itself, and so is a query or a program without a mark.
    """
    text = to_visible(text)
    brief = len(text) <= BRIEF_ANSWER_CHARACTERS and "\n" not in text.strip()
    if _has_mark(text) or (not brief and any(map(str.isdigit, text[-400:])) and not _is_program(text)):
        return final_answer(text)
    return normal_form(text).casefold()


def read_stated_answer(text: str) -> str:
    """As `read_conclusion`, but without a mark a long answer is the whole text: the last number of a query or of code is no
    answer.
    """
    text = to_visible(text)
    return final_answer(text) if _has_mark(text) else normal_form(text).casefold()


def _has_mark(text: str) -> bool:
    """Whether an answer says which part of it is the final one, or is a number; `#` begins comments of programs."""
    if len(text) <= MAX_NUMBER_CHARACTERS and _BARE_NUMBER.fullmatch(text):
        return True
    return bool(_MARKED.search(text)) and ("####" in text or "\\boxed" in text or not _is_program(text))


def _is_program(text: str) -> bool:
    return _PROGRAM.match(text[:PROGRAM_BEGIN_CHARACTERS]) is not None


@functools.lru_cache(maxsize=512)
def indented_lines(text: str) -> str:
    """Lines of `text` that are indented or spaced apart: of drawings and code, whose space has meaning."""
    lines = [line.rstrip() for line in to_visible(text).casefold().splitlines() if _INDENTED.search(line)]
    return "\n".join(["", *lines, ""]) if len(lines) > 1 else ""


def numbers_as_written(text: str) -> tuple[str, ...]:
    """Every number of `text` as it is written, with sign, currency, exponent and unit mark, and the operators between.

    Digits of other scripts count as the same number; `-4` and `4`, `1,000` and `1 000`, `.5` and `5`, `5!` and `5` do not.
    """
    visible_text = to_visible(text)
    if not _OF_FIGURES.search(visible_text):
        return ()
    return tuple("".join(figure.split()) for figure in _FIGURE.findall(_strip_quotes(visible_text)))


def common_length(first: str, second: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(first), len(second)))


def count_tokens(text: str) -> int:
    """Words, single digits and signs: an estimate of tokens that needs no tokenizer."""
    return len(_ESTIMATED_TOKEN.findall(text))
