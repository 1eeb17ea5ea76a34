r"""Readings of a stated answer: the one number, the option letter, the plain words that a short text gives.

A reading is None where the text has nothing of the kind, and `AMBIGUOUS` where it has more than one (`3 or 4`, `(A) and
(B)`) or says something else about it (`not 4`, `2x`): a text that leaves the choice to its reader is no answer.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

CHARACTERS_READ = 400
"""Characters of a stated answer that are read."""
AMBIGUOUS = "unclear"

_PLAIN_SIGNS = str.maketrans(
    {"\u2212": "-", "\u2013": "-", "\u00d7": "*", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " "}
    | {"\u00bd": " 1/2", "\u00bc": " 1/4", "\u00be": " 3/4", "\u2153": " 1/3", "\u2154": " 2/3"}
    | {"\u00b7": "*", "\u22c5": "*", "\u066b": ".", "\u066c": ",", "\u3000": " "}
    | {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}  # full-width forms
)
_SUPERSCRIPT = re.compile("[\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u207b]{1,4}")
_SUPERSCRIPT_DIGITS = str.maketrans("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b", "0123456789-")
_UNSPACED_LETTERS = "\u0590-\u1dff\u2e80-\ud7ff\uf900-\ufaff"
"""Letters of scripts that are no variables beside a number: Hebrew to Thai, Chinese, Japanese, Korean."""
_NUMBER_BORDER = re.compile(
    rf"(?<=[{_UNSPACED_LETTERS}])(?=[-+$\u20ac\u00a3\u00a5]{{0,2}}\.?\d)|(?<=[\d%])(?=[{_UNSPACED_LETTERS}])"
)
_LATEX_REWRITES = (
    (re.compile(r"\\[dtc]frac(?![a-zA-Z])"), r"\\frac"),
    (re.compile(r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|limits)(?![a-zA-Z])"), ""),
    (re.compile(r"\^ ?(?:\\circ|\{ ?\\circ ?\})|\\degrees?(?![a-zA-Z])|\u00b0"), " degrees "),
    (re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mbox|emph) ?\{([^{}]{0,200})\}"), r" \1 "),
    (re.compile(r"\\!|(?<=\d)\\[,;:](?=\d{3})"), ""),
    (re.compile(r"\\[,;: ]|\\q?quad(?![a-zA-Z])|~"), " "),
    (re.compile(r"\\([%$#&])"), r"\1"),
    (re.compile(r"\\[()\[\]]|\$\$?"), ""),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\\frac ?(\d) ?(\d)(?!\d)"), r"\\frac{\1}{\2}"),
    (re.compile(r"\\frac ?(\d) ?\{"), r"\\frac{\1}{"),
    (re.compile(r"\\frac ?\{([^{}]{1,60})\} ?(\d)"), r"\\frac{\1}{\2}"),
    (re.compile(r"\\sqrt ?(\w)"), r"\\sqrt{\1}"),
    (re.compile(r"([\^_])\{(-?\w)\}"), r"\1\2"),
    (re.compile(r"\\(?:le|ge)q(?![a-zA-Z])"), lambda match: match.group()[:-1]),
)
_LATEX_SIGN = re.compile(r"[\\$^{\u00b0]")
_UNIT_REWRITES = (
    (re.compile(r"(\d) ?(?:\*|\\times|\\cdot|[xX]) ?10 ?\^ ?\{? ?([-+]?\d{1,3})(?!\d)(?: ?\})?"), r"\1e\2"),
    (re.compile(r"(?<=\d) ?\\frac ?\{ ?([^\W\d_]{1,14}) ?\} ?\{ ?([^\W\d_]{1,14}) ?\}"), r" \1/\2"),
    (re.compile(r"(?<=[^\W\d_]) ?\\cdot ?(?=[^\W\d_])"), "*"),
    (re.compile(r"(?<=\d) ?([^\W\d_]{1,14}) per (?=[^\W\d_])"), r" \1/"),
    (re.compile(r"(?<=\d) ?(?:square|sq\.?) ([^\W\d_]{2,14})"), r" \1^2"),
    (re.compile(r"(?<=\d) ?cubic ([^\W\d_]{2,14})"), r" \1^3"),
)
_UNIT_FACTOR = r"[^\W\d_]{1,14}(?: ?\^ ?-?\d)?"
_FURTHER_FACTOR = rf" ?[*/] ?\(?{_UNIT_FACTOR}\)?| [^\W\d_]{{1,14}} ?\^ ?-\d"
_COMPOUND_UNIT = re.compile(rf"(?<=\d)( ?)({_UNIT_FACTOR})((?:{_FURTHER_FACTOR}){{0,4}})(?![\w^])")
_PER_UNIT = re.compile(r"(?<=[\da-z])/[a-z]{2,12}\b")
"""`/year` behind a number or a word that is no unit of it."""
_FACTOR_PARTS = re.compile(r"([*/]?) ?\(?([^\W\d_]+)(?: ?\^ ?(-?\d))?")
"""Operator before a factor of a unit, its name and its power."""
_VARIABLE_BEFORE_VALUE = re.compile(r"^[a-zA-Z] ?(?:=|\\in(?![a-zA-Z])) ?(?=[^=]{1,300}$)")
"""The variable before its value, `x = 4`."""
_OUTER_MARKS = " \t\r\n*_`\"'.,;:!?"
_FRACTION = re.compile(r"\\frac ?\{ ?(-?\d{1,30}) ?\} ?\{ ?(-?\d{1,30}) ?\}")
_NUMBER = re.compile(
    r"(?<![\w.\\^])(?P<sign>[-+] ?)?[$\u20ac\u00a3\u00a5]? ?(?P<inner>[-+])?"
    r"(?:(?:(?P<whole>\d{1,9}) )?(?P<top>\d{1,30}) ?/ ?(?P<bottom>\d{1,30})(?![\d/])"
    r"|(?P<decimal>(?:\d{1,3}(?:,\d{3}){1,9}|\d{1,30})(?:\.\d{1,30})?|\.\d{1,30})(?:[eE](?P<power>[+-]?\d{1,3}))?)"
)
_FORMULA_SPACE = re.compile(r"(?<!\d) | (?!\d)| (?=\d{3}(?!\d))")
"""Spaces of a formula: not in `1 8`, which is not 18, nor in `3 1/2`."""
_WORD = re.compile(r"[^\W\d_]+")
_VARIABLES = re.compile(r"[a-zA-Z\u0370-\u03ff]+")
_QUALIFIER_BEFORE = re.compile(
    r"(?:\b(?:not|cannot|never|hardly|nor|neither|either|or|except|anything but|minus|negative|than|least|most|up to|below"
    r"|above|under|over|between|times|plus|twice|half of|roots? of|log)|n't|不[是到等]于?|[大小少多]于|至[少多]|超过)"
    r"(?: be| equal)?[\s$]*$",
    re.IGNORECASE,
)
"""Right before a number it makes it another one, or leaves it open."""
_QUALIFIER_AFTER = re.compile(
    r"\s*(?:(?:or|plus|minus|hundred|thousand|million|billion|trillion|dozen|squared|cubed|i|e|pi)\b"
    r"|and an? (?:half|third|quarter)|-|[万萬亿億억만]|[千천](?![米克瓦]))",
    re.IGNORECASE,
)
"""The same right after it."""
_LIST_SEPARATOR = re.compile(r"\s*(?:,|;|/|&|or|and|to|-)?\s*", re.IGNORECASE)
"""Between two numbers it makes a list of them."""
REJECTED = re.compile(r"(?<=[\d)%A-Z]),? (?:and |but )?(?:not|rather than) \(?[-$\w.]{1,15}\)?\.?$")
"""What an answer is told apart from: `18, not 20`."""
_OPEN_WORDS = re.compile(r"\b(?:or|neither)\b", re.IGNORECASE)
_UNITS = frozenset(
    ["cm", "mm", "m", "km", "kg", "kgs", "g", "mg", "lb", "lbs", "oz", "ml", "l", "h", "hr", "hrs", "s", "sec", "secs"]
)
_UNITS |= {"min", "mins", "ft", "in", "mi", "mph", "kmh", "am", "pm", "th", "st", "nd", "rd"}
_SHORT_UNIT_NAMES = {"kilometer": "km", "meter": "m", "centimeter": "cm", "mile": "mi", "feet": "ft", "foot": "ft"}
_SHORT_UNIT_NAMES |= {"liter": "l", "milliliter": "ml", "millimeter": "mm", "celsiu": "c", "fahrenheit": "f"}
_SHORT_UNIT_NAMES |= {"hour": "h", "hr": "h", "minute": "min", "second": "s", "sec": "s", "kilogram": "kg", "gram": "g"}
_COMPOUND_PARTS = _UNITS.union(
    ["d", "n", "j", "w", "v", "k", "c", "t", "mol", "pa", "dm", "nm", "yd", "\u043c", "\u0447", "\u0441"]
)
"""Units of one letter, or with a power, that are no variables in a compound unit; the last three are Russian."""
_ATTACHABLE_UNITS = _UNITS - {"am", "pm"}
"""Units that may follow a number without a space."""
_MATH_SIGN = re.compile(r"[\\^_*/+<>\[\]{}|\u221a\u03c0\u221e\u00b1\u2260\u2264\u2265\u00b2\u00b3]")
_NUMBER_AND_UNIT = re.compile(r"[-+$\u20ac\u00a3]*\d[\d,.]*(?:\s?/\s?\d+)?(?: [^\W\d_]+\.?){1,3}$")
"""A number and its unit."""
_EQUALS_SIGN = re.compile(r"=|\\approx(?![a-zA-Z])|\u2248")
_BRACKETED_LETTER = re.compile(r"\(([A-Za-z])\)")
_BARE_LETTER = re.compile(r"(?:(?:option|choice|answer) ?)?\(?([A-Za-z])(?:[.):,](?= |$)|$)", re.IGNORECASE)
_NAMED_LETTER = re.compile(r"\b(?:option|choice) \(?([A-Za-z])\b(?!')", re.IGNORECASE)
_CAPITAL_LETTER = re.compile(r"(?<![\w'])[B-HJ-Z](?![\w'])")
_DENIAL = re.compile(r"\b(?:(?:can)?not|neither|nor|except)\b|n't\b", re.IGNORECASE)
"""Before a letter it says that this is not the answer; behind it, it is a reason."""
_DENIAL_AFTER = re.compile(r"\W{0,3}(?:is|was)(?:n't| not| wrong| incorrect)\b", re.IGNORECASE)
"""The same right after it."""


KEPT_READINGS = 2**12
"""Texts of which a reading is kept: an answer is compared with the gold answers of all other items, and they with it."""


def plain_math(text: str) -> str:
    r"""Without LaTeX that changes nothing: `\dfrac`, `\left`, spaces, dollar signs, `\text{...}`, degrees, bold."""
    text = text[:CHARACTERS_READ].translate(_PLAIN_SIGNS)
    if not text.isascii():
        text = "".join(str(unicodedata.decimal(character, character)) for character in text)
        text = _SUPERSCRIPT.sub(lambda match: "^" + match.group().translate(_SUPERSCRIPT_DIGITS), text)
    if _LATEX_SIGN.search(text):
        for pattern, replacement in _LATEX_REWRITES:
            text = pattern.sub(replacement, text)
    text = text.replace("**", "").replace("__", "")
    return _VARIABLE_BEFORE_VALUE.sub("", " ".join(_NUMBER_BORDER.sub(" ", text).split()))


@functools.lru_cache(maxsize=KEPT_READINGS)
def plain_amounts(text: str) -> str:
    """Return `plain_math` of a text, with fractions as `1/2`, powers of ten as `7.2e3`, and compound units as one word."""
    text = " ".join(_FRACTION.sub(_format_fraction, plain_math(text)).split())
    for pattern, replacement in _UNIT_REWRITES:
        text = pattern.sub(replacement, text)
    return " ".join(_PER_UNIT.sub("", _COMPOUND_UNIT.sub(_join_unit, text)).split())


def _join_unit(match: re.Match[str]) -> str:
    """Return a compound unit as one word, the same for `m/s^2` and `m/s/s`; as it is where it may be a formula."""
    space, first, others = match.groups()
    name, power_sign, _ = first.partition("^")
    is_unit = _unit_name(name.strip()) in _ATTACHABLE_UNITS and (len(name) > 1 or "/" in others)
    if not (space or is_unit) or not (others or power_sign):
        return match.group()
    powers, sign = Counter[str](), 1
    for operator, name, power in _FACTOR_PARTS.findall(first + others):
        unit = _unit_name(name)
        if unit not in _COMPOUND_PARTS and len(name) < 4 and (len(name) < 2 or power or operator == "*"):
            return match.group()
        sign = -1 if operator == "/" else sign
        powers[unit] += sign * int(power or 1)
    return " " + "".join(f"{unit}{'x' * (power + 50)}" for unit, power in sorted(powers.items()))


def _unit_name(word: str) -> str:
    """Return a unit's usual short name: `km` of `kilometers`; another word without the s of its plural."""
    name = re.sub("tre$", "ter", word.casefold().removesuffix("s")) or "s"
    return _SHORT_UNIT_NAMES.get(name, name)


@functools.lru_cache(maxsize=KEPT_READINGS)
def normalise_words(text: str) -> str:
    """Plain words, case and outer marks folded; formulas without spaces."""
    text = plain_math(text).casefold().strip(_OUTER_MARKS)
    return _FORMULA_SPACE.sub("", text) if _MATH_SIGN.search(text) or re.fullmatch(r"[\W\d]*", text) else text


@functools.lru_cache(maxsize=KEPT_READINGS)
def number_of(text: str) -> Fraction | str | None:
    """The one number that a text states; after the last `=` where there is one. Its unit does not count."""
    text = REJECTED.sub("", _EQUALS_SIGN.split(plain_amounts(text))[-1].strip(_OUTER_MARKS.replace(".", "")))
    text = re.sub(r"^(?:minus|negative) (?=[$.]?\d)", "-", text, flags=re.IGNORECASE)
    matches = list(_NUMBER.finditer(text))
    if not matches:
        return None
    value = _parse_number(matches[0])
    return AMBIGUOUS if len(matches) > 1 or value is None or _is_qualified(text, matches[0]) else value


def read_last_number(sentence: str) -> Fraction | str | None:
    """The number right after the last `=` of a sentence, else its last number; `AMBIGUOUS` if that is one of a list."""
    *texts_before_equals, text = _EQUALS_SIGN.split(plain_amounts(sentence))
    matches = list(_NUMBER.finditer(text))
    if not matches:
        return None
    follows_equals = bool(texts_before_equals) and not text[: matches[0].start()].strip(" ($")
    neighbours = matches[:2] if follows_equals else matches[-2:]
    if len(neighbours) > 1 and _LIST_SEPARATOR.fullmatch(text[neighbours[0].end() : neighbours[1].start()]):
        return AMBIGUOUS
    if follows_equals:
        return number_of(text[: matches[1].start()] if len(matches) > 1 else text)
    start = matches[-1].start()
    return AMBIGUOUS if _QUALIFIER_BEFORE.search(text[:start]) else number_of(text[start:])


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a sentence."""

    value: Fraction | None
    """None where it is none, as `1/0`."""
    before: str
    """What the sentence says before it."""
    after: str
    """What it says behind it."""
    is_unambiguous: bool
    """Not denied, not one of a list, and nothing beside it makes it another: `not 4`, `3 or 4`, `4 million`."""


def numbers_in(sentence: str) -> list[Number]:
    """The numbers of a sentence, in order; without those that an answer is told apart from (`18, not 20`)."""
    text = REJECTED.sub("", plain_amounts(sentence))
    matches = list(_NUMBER.finditer(text))
    edges = [0, *(match.end() for match in matches)], [*(match.start() for match in matches), len(text)]
    numbers = []
    for i, match in enumerate(matches):
        value, before, after = _parse_number(match), text[: match.start()], text[match.end() :]
        is_listed = (i > 0 and _LIST_SEPARATOR.fullmatch(before[edges[0][i] :])) or (
            i + 1 < len(matches) and _LIST_SEPARATOR.fullmatch(text[match.end() : edges[1][i + 1]])
        )
        is_denied = _QUALIFIER_BEFORE.search(before) or re.search(r"\b(?:can)?not\b|n't\b", before)
        stands_alone = value is not None and number_of(text[match.start() : edges[1][i + 1]]) == value
        numbers.append(Number(value, before, after, not (is_listed or is_denied) and stands_alone))
    return numbers


def is_number(text: str) -> bool:
    """Whether a text is a number, apart from signs of currency and percent, and nothing else."""
    text = plain_amounts(text).strip(" .%")
    match = _NUMBER.fullmatch(text)
    return match is not None and _parse_number(match) is not None


@functools.lru_cache(maxsize=KEPT_READINGS)
def amount_of(text: str) -> Fraction | None:
    """The number of a gold answer that is one, with a unit behind it or not; None for any other."""
    stated = number_of(text) if is_number(text) or _NUMBER_AND_UNIT.match(plain_amounts(text)) else None
    return stated if isinstance(stated, Fraction) else None


def unit_differs(amount: str, other_amount: str) -> bool:
    """Whether two amounts both have units, and no word of them in common."""
    amounts = [plain_amounts(text).replace("%", " percent ") for text in (amount, other_amount)]
    units = [set(map(_unit_name, _WORD.findall(text))) for text in amounts]
    number = _NUMBER.search(amounts[1])
    states_unit = _WORD.search(amounts[1], number.end() if number else 0)  # words before a number are none
    return bool(units[0] and states_unit and not units[0] & units[1])


def _format_fraction(match: re.Match[str]) -> str:
    numerator, denominator = int(match[1]), int(match[2])
    return f" {'-' if (numerator < 0) != (denominator < 0) else ''}{abs(numerator)}/{abs(denominator)} "


def _parse_number(match: re.Match[str]) -> Fraction | None:
    sign = -1 if "-" in (match["sign"] or "") + (match["inner"] or "") else 1
    if match["top"]:
        denominator = int(match["bottom"])
        return sign * (int(match["whole"] or 0) + Fraction(int(match["top"]), denominator)) if denominator else None
    return sign * Fraction(match["decimal"].replace(",", "")) * Fraction(10) ** int(match["power"] or 0)


def _is_qualified(text: str, match: re.Match[str]) -> bool:
    """Whether something beside the number makes it another: a formula, a letter that multiplies it, `not`, `million`."""
    before, after = text[: match.start()], text[match.end() :]
    if any(_MATH_SIGN.search(piece) or _OPEN_WORDS.search(piece) or re.search(r"\d", piece) for piece in (before, after)):
        return True
    if _QUALIFIER_BEFORE.search(before) or _QUALIFIER_AFTER.match(after) or re.search(r"\b(?:can)?not\b|n't\b", before):
        return True
    attached_letters, words = _VARIABLES.match(after), _WORD.findall(after.casefold())
    if attached_letters and attached_letters.group().casefold() not in _ATTACHABLE_UNITS:
        return True
    is_variable = bool(words) and len(words[0]) == 1 and bool(_VARIABLES.match(words[0]))
    return is_variable and words[0] not in _UNITS | {"a"} and after[:2] not in (" C", " J", " N", " V", " W")


def stated_letter(text: str) -> str | None:
    """The one option letter that a text states, as a capital: `(B)`, `B`, `B) Rome`, `option B`, `B, not A`."""
    text = REJECTED.sub("", plain_math(text).strip())
    letters = set(map(str.upper, _BRACKETED_LETTER.findall(text))) or set(map(str.upper, _NAMED_LETTER.findall(text)))
    if not letters:
        bare_match = _BARE_LETTER.match(text.strip(" *_\"'`"))
        if bare_match is None:
            return None
        letters = {bare_match[1].upper(), *_CAPITAL_LETTER.findall(text[bare_match.end() :])}
    elif len(letters) == 1 and " or " in f" {text} " and _CAPITAL_LETTER.findall(text):
        letters |= set(_CAPITAL_LETTER.findall(text))
    letter = letters.pop()
    text_before, *text_after = re.split(rf"\b{letter}\b", text, maxsplit=1, flags=re.IGNORECASE)
    is_denied = _DENIAL.search(text_before) or _DENIAL_AFTER.match("".join(text_after))
    return AMBIGUOUS if letters or is_denied else letter


def option_letter(answer: str) -> str | None:
    """The letter of a gold answer `B`, `(B)`, `B.` or `b)`; None for any other."""
    match = re.fullmatch(r"\(?([A-Za-z])[.):]?", answer.strip())
    return match[1].upper() if match else None


def label_of_text(text: str, options: Mapping[str, str]) -> str | None:
    """The label whose text this is; None where it is no option's or that of several."""
    words = normalise_words(text)
    labels = [label for label, option in options.items() if normalise_words(option) == words]
    return labels[0].upper() if words and len(labels) == 1 else None
