"""Formatting of numbers and strings for people; hostile characters are made visible."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from mixwright.records import Interval

JOINERS = "\u200c\u200d"  # ordinary letters of Persian and Indic scripts, harmless elsewhere
MINUS_SIGN, NO_VALUE_SIGN = "\u2212", "\u2013"


def to_visible(text: str, *, limit: int = 4000) -> str:
    """`text` with control, bidi and invisible characters written as `⟨U+202E⟩`, cut to `limit` characters.

    Newlines and tabs stay. What is left can neither steer a terminal nor reorder or hide its neighbours.
    """
    hidden_characters = len(text) - limit
    shown_text = text[:limit]
    if not shown_text.isascii() or not shown_text.isprintable():
        shown_text = "".join(map(_show_letter, shown_text))
    return shown_text if hidden_characters <= 0 else f"{shown_text}… ({hidden_characters} more characters)"


def _show_letter(letter: str) -> str:
    if letter in "\n\t" or letter in JOINERS:
        return letter
    hidden = unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp")
    return f"⟨U+{ord(letter):04X}⟩" if hidden else letter


def to_line(text: str, *, limit: int = 200) -> str:
    """`to_visible` on one line: for names, labels and table cells."""
    return " ".join(to_visible(text, limit=limit).split())


def percent(share: float | None) -> str:
    """`41 %`; a dash for None."""
    return NO_VALUE_SIGN if share is None else f"{round(100 * share)} %"


def points(difference: float) -> str:
    """A difference of shares in points with its sign, one decimal below 10: `+37`, `+4.2`, `0`."""
    value = round(100 * difference, 1)
    text = f"{value:+.0f}" if abs(value) >= 10 else f"{value:+.1f}"
    return text.replace("-", MINUS_SIGN) if value else "0"


def format_value(value: float | None, unit: str) -> str:
    """A value in its unit: shares as percent, counts with thousands, others with 3 digits."""
    if value is None:
        return "censored"
    if unit == "share":
        return percent(value)
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def format_signed(value: float, unit: str) -> str:
    """A difference in its unit, signed: shares in points."""
    if unit == "share":
        return points(value)
    text = format_value(abs(value), unit)
    return text if text == "0" else ("+" if value > 0 else MINUS_SIGN) + text


def format_magnitude(value: float, unit: str) -> str:
    """The size of a difference in its unit, without it: shares in points."""
    return points(abs(value)).lstrip("+").removesuffix(".0") if unit == "share" else f"{abs(value):.3g}"


def format_bounds(low: float, high: float, unit: str = "share") -> str:
    """An interval of differences: `[+29, +45]`."""
    return f"[{format_signed(low, unit)}, {format_signed(high, unit)}]"


def format_interval(difference: Interval, unit: str = "share") -> str:
    """The same of a record; one item that was read has no spread, and so no interval, where the unit has no bounds."""
    if difference.n == 1 and difference.low == difference.high:
        return "[one item: no interval]"
    return format_bounds(difference.low, difference.high, unit)


def format_change(difference: Interval | None, unit: str = "share") -> str:
    """`+4.2 [+1.0, +7.4]` in its unit, shares in points; a dash for what was not measured."""
    return (
        f"{format_signed(difference.value, unit)} {format_interval(difference, unit)}"
        if difference is not None and difference.n
        else NO_VALUE_SIGN
    )


def format_p(p: float) -> str:
    """A p value, `0.013`, or `< 0.001` for what is smaller, since none is 0."""
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def cell_name(task: str, level: float | None, *, whole_task: bool = False) -> str:
    """`gcd level 2`, `gcd all levels` of a whole task, `gcd` of a task without levels."""
    end = f"level {level:g}" if level is not None else "all levels" if whole_task else ""
    return f"{task} {end}".strip()


def words_for(measured_name: str) -> str:
    """A measured name in words: `success.sampled` is `success, sampled`, `zero_signal_share` the `zero-signal share`."""
    first_word, *other_words = (part.replace("_", " ") for part in measured_name.split("."))
    name_by_first_word = {
        "zero signal share": "zero-signal share",
        "teaching share": "share of informative groups",
        "swapped": "S",
    }
    return ", ".join([name_by_first_word.get(first_word, "D" if first_word == "dependence" else first_word), *other_words])


def format_count(number: int, noun: str) -> str:
    """`1 cell`, `3 cells`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def join_words(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def join_sentences(*texts: str) -> str:
    """Join texts as whole sentences: `one thing` and `another.` give `One thing. Another.` as one text."""
    sentences = [text[:1].upper() + text[1:] for text in texts if text]
    return " ".join(text if text.endswith((".", "!", "?", ":")) else f"{text}." for text in sentences)
