"""Order of worked solutions: values that only a later step makes, and mentions of steps that are not there.

Left out on purpose: whether a step follows from the ones before; values written as words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

from mixwright.audit.steps.equations import MAX_CHARACTERS, Equation

CONSTANTS = frozenset(map(Fraction, (*range(13), 15, 20, 24, 25, 30, 48, 50, 52, 60, 90, 100, 180, 360, 365, 1000)))
"""Values that a step may use from nowhere; chance makes them again later, too."""
MAX_STEP_NUMBER = 40
MAX_MENTIONS = 200
"""Of one solution that are looked at; and its first `MAX_CHARACTERS`."""
_NUMBERS = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\w])\d*\.?\d+")
_KINDS = r"step|equation|eq\.|case|part|line"
_MENTION = re.compile(
    rf"\b(?P<kind>{_KINDS})s?\s*(?P<bracket>\(|#)?\s*(?P<number>\d{{1,2}})\b(?P<after>\)?\s*[:.)]?)", re.IGNORECASE
)
_ITEM = re.compile(r"^[ \t]*(?:[-*]\s+)?\(?(\d{1,2})[.):]\s", re.MULTILINE)
_LABEL = re.compile(r"=[^()=\n]{1,40}(?<!equation )\((\d{1,2})\)[.,]?[ \t]*$|\\tag\{(\d{1,2})\}", re.MULTILINE)
_AHEAD = re.compile(r"\b(?:will|next|later|below|go on|go to|continue|proceed|see)\b[^.\n]{0,30}$", re.IGNORECASE)
_KIND_OF_ABBREVIATION = {"eq.": "equation"}


class WrongMention(NamedTuple):
    """A mention of a step that is not there, or comes later."""

    text: str
    """As it stands there."""
    span: tuple[int, int]
    """Characters from its begin to its end."""


def values_made(equations: Sequence[Equation]) -> dict[Fraction, int]:
    """Return each stated value with the last step that states it, by index."""
    return {equation.stated: index for index, equation in enumerate(equations)}


def values_used_too_early(unknown: Sequence[tuple[int, Fraction]], made_by: Mapping[Fraction, int]) -> list[tuple[int, int]]:
    """(step, later step) by index: the first uses a number that nothing before it holds and that the later one makes."""
    return [(index, later) for index, value in unknown if (later := made_by.get(value, -1)) > index]


def unknown_operands(prompt: str, completion: str, equations: Sequence[Equation]) -> list[tuple[int, Fraction]]:
    """(step by index, operand) of every operand that neither the prompt nor anything before the step holds.

    `CONSTANTS` are left out.
    """
    known, unknown = read_numbers(prompt), []
    at = 0
    for index, equation in enumerate(equations):
        known |= read_numbers(completion[at : equation.span[0]])
        at = equation.span[0]
        unknown += [(index, value) for value in equation.operands if value not in CONSTANTS and not _is_known(value, known)]
        known |= {equation.stated, *equation.operands}
    return unknown


def read_numbers(text: str) -> set[Fraction]:
    """All numbers of a text; a percentage as its share, too."""
    found = set[Fraction]()
    for match in _NUMBERS.finditer(text):
        value = Fraction(match[0].replace(",", "") if match[0][0] != "." else f"0{match[0]}")
        found.add(value)
        if text[match.end() : match.end() + 2].lstrip().startswith("%"):
            found.add(value / 100)
    return found


def _is_known(value: Fraction, known: Collection[Fraction]) -> bool:
    return value in known or -value in known


def wrong_mentions(prompt: str, completion: str) -> tuple[int, list[WrongMention]]:
    """Mentions of numbered steps, equations or cases, and those of which nothing before has that number.

    Where nothing is numbered, a step is a line, and only numbers beyond the lines are wrong.

    Examples:
        >>> wrong_mentions("", "Step 1: 3 + 4 = 7. Step 2: from step 5, 7 * 2 = 14.")[1][0].text
        'step 5'
    """
    completion = completion[:MAX_CHARACTERS]
    defined: dict[tuple[str, int], int] = {}
    mentions: list[tuple[str, int, re.Match[str]]] = []
    for match in islice(_MENTION.finditer(completion), MAX_MENTIONS):
        kind, number = match["kind"].lower(), int(match["number"])
        kind = _KIND_OF_ABBREVIATION.get(kind, kind)
        line = completion[completion.rfind("\n", 0, match.start()) + 1 : match.start()]
        begins = not line.strip(" \t#*->_") or re.search(r"[.;!?:]\s*[*_]*$", line)
        if begins and re.search(r"[:.)]", match["after"]) and match["after"].strip() != ")" * bool(match["bracket"]):
            defined.setdefault((kind, number), match.start())
        else:
            mentions.append((kind, number, match))
    items = {int(match[1]): match.start() for match in reversed(list(_ITEM.finditer(completion)))}
    labels = {int(match[1] or match[2]): match.start() for match in reversed(list(_LABEL.finditer(completion)))}
    line_count = 1 + max(completion.strip().count("\n"), len(re.findall(r"[.;]\s", completion.strip())))
    wrong, counted = [], 0
    lower = prompt.lower()
    for kind, number, match in mentions:
        if number > MAX_STEP_NUMBER or f"{kind} {number}" in lower:
            continue
        counted += 1
        place_by_number = {own_number: start for (own_kind, own_number), start in defined.items() if own_kind == kind}
        if not place_by_number and kind == "equation":
            place_by_number = labels
        if not place_by_number and kind in ("step", "part", "line", "equation"):
            place_by_number = items
        if not place_by_number:
            is_wrong = number > line_count if kind in ("step", "line") else True
        else:
            is_wrong = place_by_number.get(number, len(completion)) > match.start()
            before = completion[max(0, match.start() - 80) : match.start()]
            is_wrong = is_wrong and not (number in place_by_number and _AHEAD.search(before))
        if is_wrong:
            wrong.append(WrongMention(match[0].rstrip(" :.)"), (match.start(), match.end())))
    return counted, wrong
