"""Equations in worked solutions: read from prose, LaTeX and calculator marks, worked out, and compared with what is stated.

Left out on purpose: algebra with letters, powers, remainders, times, residues, spaces in numbers. What has another meaning
than plain arithmetic, or might have, is not read.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

MAX_CHARACTERS, MAX_EQUATIONS = 20_000, 200
"""Of one text: characters that are read, and equations that are kept."""
_SIGNS = str.maketrans(
    {"\u2212": "-", "\u2013": "-", "\u00d7": "*", "\u00b7": "*", "\u22c5": "*", "\u00f7": "/", "\u2248": "=", "\u00a0": " "}
)
_LATEX = ((r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))"), (r"\\(?:times|cdot)\b", "*"), (r"\\div\b", "/"),
          (r"\\(?:approx)\b", "="), (r"\\(?:left|right|[,;! ])", " "), (r"\\([$%])", r"\1"))  # fmt: skip
_EQUALS = re.compile(r"(?<![=<>!+*/:-])=(?!=)")
_CALCULATOR = re.compile(r"<<([^<>]*)>>")
_CALLED = re.compile(r"[A-Za-z]\w*\Z")
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d{1,18})(?:\.\d{1,18})?"
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>[$\u20ac\u00a3]?{_NUMBER}|[$\u20ac\u00a3]?\.\d{{1,18}})(?P<percent>\s?%)?"
    r"|(?P<sign>[-+*/()]|[xX](?=[\s(\d.$])|of\b)|(?P<unit>[a-zA-Z]{2,20}\.?))"
)
_AFTER = re.compile(
    r"\s*(?:\(?\s*mod\b|[rR]\.?\s?\d|remainder|[\^:!]|/\s*[a-zA-Z(]|[a-zA-Z]\b|\*?\s?\(?[a-z]\b(?!\s[a-z])|hundred|thousand|million"
    r"|billion|dozen|[kKmM]\b|[a-zA-Z]+,?\s(?:and\s)?\d)"
)
"""What follows a stated number that is then no plain result: residues, remainders, times, letters, scales."""
_STATED = re.compile(rf"\s*(?:about |approximately |~)?\s*(-?\s?[$\u20ac\u00a3]?-?)({_NUMBER}|\.\d+)(\s?%)?")
_MEASURES = {
    *("second", "minute", "hour", "day", "week", "month", "year", "inch", "inche", "foot", "feet", "yard", "mile"),
    *("mm", "cm", "km", "meter", "gram", "kg", "pound", "ounce", "cent", "dollar"),
}
FLOAT_DECIMALS = 10
"""Decimals from which on a result is a program's, with its rounding errors."""
SCALE_CHARACTERS = 20
"""Behind a result in which a sign or word may say that it is a share or in cents."""
_TIME = re.compile(r"(?<![\d.,])0\d{2,3}(?!\d)")
_GOES_ON = re.compile(r"[ \t]*(?:[a-zA-Z]+[ \t]+)?[-+*/][ \t]*(?:[$(]?\d|[a-zA-Z]\b)")
_FRACTION, _WORD = re.compile(r"\d{1,3}/\d{1,3}(?:\s?[a-z]+)?"), re.compile(r"[a-zA-Z]{2,}")
_LINE_BEGIN = re.compile(r"[ \t]*(?:[-*>\u2022]+[ \t]+)?(?:\(?\d{1,2}[.):][ \t]+)?")
"""Marks and numbers of lists."""
_SCALES = frozenset(("hundred", "thousand", "million", "billion", "dozen", "mod"))
_OPERATION = {"+": "plus", "-": "minus", "*": "times", "/": "divide"}
MIXED = "several operations"
_OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
Token = tuple[int, str, Fraction | None, bool]
"""Where it begins, its kind (`number`, or a sign), its value, and whether it is money."""


class Equation(NamedTuple):
    """One equation of a text."""

    operation: str
    """plus, minus, times, divide, or several operations."""
    operands: tuple[Fraction, ...]
    """Numbers on its left side, in their order."""
    true: Fraction
    """What the left side comes to."""
    stated: Fraction
    """What the text says it comes to."""
    is_right: bool
    """Rounded and cut results count as right, and a percentage for its share."""
    text: str
    """As it stands there."""
    span: tuple[int, int]
    """Characters from its begin to its end."""


def read_equations(text: str) -> list[Equation]:
    """The equations between numbers of a text, each once, in their order.

    Examples:
        >>> [(one.operation, one.is_right) for one in read_equations("She has 12 - 5 = 8, and 10 / 3 = 3.33 each.")]
        [('minus', False), ('divide', True)]
    """
    if "=" not in text[:MAX_CHARACTERS] and "approx" not in text and "\u2248" not in text:
        return []
    plain, found = _plain(text[:MAX_CHARACTERS]), dict[tuple[tuple[Fraction, ...], str, Fraction], Equation]()
    for sign in _EQUALS.finditer(plain):
        if (one := _equation_at(plain, sign.start())) is not None:
            found.setdefault((one.operands, one.operation, one.stated), one)
        if len(found) == MAX_EQUATIONS:
            break
    return list(found.values())


def _plain(text: str) -> str:
    """The text with LaTeX's and other signs as plain ones, and calculator marks as equations; places stay where they are."""
    text = text.translate(_SIGNS)
    if "\\" in text:
        for pattern, plain in _LATEX:
            text = re.sub(pattern, lambda match, plain=plain: match.expand(plain).rjust(len(match[0])), text)
    return _CALCULATOR.sub(r"  \1 ;", text) if "<<" in text else text


def _equation_at(text: str, place: int) -> Equation | None:
    """The equation whose sign stands at `place`, where both sides can be read."""
    start = max(*(text.rfind(mark, 0, place) for mark in "=\n;:!?<>"), text.rfind(". ", 0, place)) + 1
    if (start == 0 or text[start - 1] == "\n") and (mark := _LINE_BEGIN.match(text, start)):
        start = mark.end()
    left = _left_side(text, max(start, place - 160), place)
    if left is None:
        return None
    begin, true, operands, operation, money = left
    stated_match = _STATED.match(text, place + 1)
    if stated_match is None:
        return None
    sign, digits, percent = stated_match.groups()
    end = stated_match.end()
    stated = _number(digits) * (-1 if "-" in sign else 1)
    decimals = len(digits.partition(".")[2])
    if _AFTER.match(text, end):
        return None
    further = re.match(r"\s*[-+*/x]\s*[-$(.]*\d", text[end : end + 8])
    if further and not is_close(true, stated, decimals):
        return None  # the right side is an expression
    readings = [stated, stated / 100] if percent else [stated]
    if not money and re.search(r"[$\u20ac\u00a3]", sign):
        readings.append(stated * 100)  # cents
    is_right = any(is_close(true, one, decimals + 2 * (one != stated and one < stated)) for one in readings)
    if not is_right and (
        _has_another_meaning(text[begin:place], operation, operands)
        or _is_written_otherwise(text, begin, place, end)
        or _is_in_other_units(text[begin:place], text[place : end + SCALE_CHARACTERS], true, stated, decimals)
        or (operation == "divide" and len(operands) == 3 and stated * operands[1] == operands[0] * operands[2])  # a / (b/c)
    ):
        return None
    return Equation(operation, operands, true, stated, is_right, " ".join(text[begin:end].split()), (begin, end))


def _has_another_meaning(left: str, operation: str, operands: Sequence[Fraction]) -> bool:
    """A bare fraction below 1, of which the whole may stand before it, or a sum of two measures."""
    if operation == "divide" and operands[0] < operands[1] and _FRACTION.fullmatch(left.strip()):
        return True
    measures = {word.lower().rstrip("s") for word in _WORD.findall(left)} & _MEASURES
    return operation in ("plus", "minus") and len(measures) > 1


def _is_written_otherwise(text: str, begin: int, place: int, end: int) -> bool:
    """Numbers with spaces in them (`80 000`, `1 1/2`), times (`0930`), or a right side that goes on (`= 30 + M`)."""
    spaced = re.search(r"\d $", text[max(0, begin - 2) : begin]) or re.match(r" \d{3}(?!\d)", text[end:])
    return bool(spaced or _TIME.search(text, begin, place) or _GOES_ON.match(text, end))


def _is_in_other_units(left: str, right: str, true: Fraction, stated: Fraction, decimals: int) -> bool:
    """A share stated in percent, or money in cents, or the other way round, with a word or sign that says so."""
    line = right.partition("\n")[0]
    says_so = "%" in left + line or "percent" in line or re.search(r"\bcents?\b", left + line)
    return bool(says_so) and (is_close(true * 100, stated, decimals) or is_close(true / 100, stated, decimals))


def is_close(true: Fraction, stated: Fraction, decimals: int) -> bool:
    """Equal, or rounded or cut to so many decimals where the true value has more."""
    if true == stated or (decimals >= FLOAT_DECIMALS and abs(true - stated) < Fraction(1, 10**9)):
        return True
    unit = Fraction(1, 10**decimals)
    return (true / unit).denominator != 1 and abs(true - stated) < unit


def _number(digits: str) -> Fraction:
    return Fraction(digits.replace(",", "").lstrip("$\u20ac\u00a3"))


def _left_side(text: str, start: int, end: int) -> tuple[int, Fraction, tuple[Fraction, ...], str, bool] | None:
    """The longest expression that ends at `end`: begin, value, operands, operation, whether money stands in it."""
    tokens: list[Token] = []
    at = start
    while at < end:
        found = _TOKEN.match(text, at, end)
        if found is None or found.end() == at:
            if text[at:end].strip() == "":
                break
            tokens, at = [], at + 1
            if at < end and text[at - 1].isalnum():  # in the middle of a word: to its end
                while at < end and text[at].isalnum():
                    at += 1
            continue
        where, number = found.start() + len(found[0]) - len(found[0].lstrip()), found["number"]
        at = found.end()
        if number is not None:
            value = _number(number) / (100 if found["percent"] else 1)
            if where and text[where - 1].isalnum():
                tokens = []
                continue
            if tokens and tokens[-1][1] == "number":
                tokens = []
            glued = at < end and (text[at].isalpha() and not re.match(r"[a-zA-Z]{2,}|[xX]\s?[\d($.]", text[at:end]))
            tokens = [] if glued else [*tokens, (where, "number", value, number[0] in "$\u20ac\u00a3")]
        elif found["unit"] is not None:
            follows = re.match(r"\s*(?:[-+*/)=]|x\s|$)", text[at:end] + "=")
            if not tokens or tokens[-1][1] != "number" or found["unit"].lower() in _SCALES or not follows:
                tokens = []
        elif found["sign"] == "of":
            is_share = tokens and text[tokens[-1][0] : where].rstrip().endswith("%")
            tokens = [*tokens, (where, "*", None, False)] if is_share else []
        else:
            tokens = [*tokens, (where, {"x": "*", "X": "*"}.get(found["sign"], found["sign"]), None, False)]
    return _longest(text, tokens, start)


def _longest(text: str, tokens: Sequence[Token], begin: int) -> tuple[int, Fraction, tuple[Fraction, ...], str, bool] | None:
    """The longest end of the tokens that is an expression with a sign, with nothing before it that belongs to it."""
    for first in range(len(tokens)):
        part, start = tokens[first:], tokens[first][0]
        if part[0][1] in "*/)+" or (first and tokens[first - 1][1] in "+-*/("):
            continue
        if part[0][1] == "(" and _CALLED.search(text, max(start - 20, 0), start):  # sqrt(36)
            continue
        before = text[begin:start].rstrip()[-1:]
        if before and before in "^*/+-),." and not (before in ".,)" and text[start - 1].isspace()):
            continue
        value = _value(part)
        kinds = ["(", *(kind for _, kind, *_ in part)]
        signs = {kind for kind, earlier in zip(kinds[1:], kinds, strict=False) if kind in "+-*/" and earlier not in "+-*/("}
        if value is not None and signs:
            operands = tuple(number for _, _, number, _ in part if number is not None)
            implied = any(kind == "(" and earlier == "number" for kind, earlier in zip(kinds[1:], kinds, strict=False))
            operation = _OPERATION[signs.pop()] if len(signs) == 1 and not implied else MIXED
            return start, value, operands, operation, any(money for *_, money in part)
    return None


def _value(tokens: Sequence[Token]) -> Fraction | None:
    """Value of tokens by the usual rules; None where they are no expression. A bracket behind a number multiplies."""
    source = ""
    for index, (_, kind, number, _) in enumerate(tokens):
        source += "*" if kind == "(" and source[-1:] not in ("", *"+-*/(") else ""
        source += kind if number is None else str(index)
    try:
        return _evaluate(ast.parse(source, mode="eval").body, tokens)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _evaluate(node: ast.expr, tokens: Sequence[Token]) -> Fraction:
    """Value of a sum, product, quotient or number, whose literal is the place of a token."""
    match node:
        case ast.BinOp(left, sign, right) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_evaluate(left, tokens), _evaluate(right, tokens))
        case ast.UnaryOp(ast.USub(), operand):
            return -_evaluate(operand, tokens)
        case ast.Constant(int(place)) if (number := tokens[place][2]) is not None:
            return number
        case _:
            raise ValueError(ast.dump(node))
