"""Facts read out of texts by a pattern with named slots, and forms in which other rows say such facts, to be filled.

A pattern or a form is a text with slots in braces: `The {attribute} of {entity} is {value}.`. In a form ` => ` stands
between prompt and target; without it the whole text is the target of an empty prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from mixwright.extend import Example, InputError, join_some, plain

ARROW = " => "
SLOT_PATTERN = re.compile(r"\{(\w+)\}")
PIECE_PATTERN = re.compile(r"\{\w+\}|=>|\w+|[^\w\s]")
CHARACTERS_READ, MAX_SLOT_CHARACTERS, MAX_FOUND_SLOT_WORDS = 20_000, 80, 3
"""Characters of a text that are read, characters of a slot, and words of one that is found."""
SLOT_CHARACTER = r"(?:[^\n.:;!?|]|[.:](?=\w))"
"""A character of a slot; marks that end a clause are none."""
MAX_ROWS_SEARCHED, MAX_SLOT_VALUES = 2_000, 500
"""Rows that forms are looked for in, and values of a slot that are recognised."""
MIN_FORM_FACTS = 3
"""Different things that a form is said of, so that it is one."""

Slots = Mapping[str, str]
"""Slot -> what stands there: one fact."""


def slots_of(text: str) -> tuple[str, ...]:
    """Names of the slots, in order."""
    return tuple(SLOT_PATTERN.findall(text))


def fill_form(form: str, fact: Slots) -> tuple[str, str]:
    """Prompt and target of a fact in a form. Raises InputError for a slot that the fact does not have."""
    if missing_slots := [name for name in slots_of(form) if name not in fact]:
        expected = f"slots of the pattern: {join_some(sorted(fact))}"
        raise InputError(expected, join_some(missing_slots), "Correct the form, or the pattern.")
    prompt, arrow, target = form.partition(ARROW)
    filled = [SLOT_PATTERN.sub(lambda match: fact[match[1]], text) for text in (prompt, target)]
    return (filled[0], filled[1]) if arrow else ("", filled[0])


def text_of(example: Example) -> str:
    """All that a row says: prompt, then target."""
    return f"{plain(example.prompt)}{plain(example.target)}"[:CHARACTERS_READ]


def read_facts(text: str, patterns: Sequence[str]) -> list[Slots]:
    """Every fact of a text; empty where one of the first patterns is not found.

    The last pattern finds each of them, those before it are looked for once and hold for the whole text.
    """
    shared: dict[str, str] = {}
    search_start, text = 0, text[:CHARACTERS_READ]
    for pattern in patterns[:-1]:
        match = _compile_pattern(pattern).search(text, search_start)
        if match is None:
            return []
        search_start, shared = match.end(), shared | match.groupdict()
    return [
        shared | match.groupdict()
        for last_pattern in patterns[-1:]
        for match in _compile_pattern(last_pattern).finditer(text, search_start)
    ]


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """Literal text as it stands, white space of any kind, slots up to what follows them; at the end, up to a mark."""
    names = slots_of(pattern)
    if not names or len(set(names)) < len(names):
        raise InputError("a pattern with slots such as {entity}, each used once", repr(pattern), "Correct the pattern.")
    literals_and_slots = SLOT_PATTERN.split(pattern)
    literals = [re.sub(r"(?:\\ |\s)+", r"\\s+", re.escape(text)) for text in literals_and_slots[::2]]
    body = "".join(
        rf"{before}(?P<{name}>\w{SLOT_CHARACTER}{{0,{MAX_SLOT_CHARACTERS}}}?)"
        for before, name in zip(literals[:-1], literals_and_slots[1::2], strict=True)
    )
    return re.compile(body + (literals[-1] or r"(?=\s*(?:$|[\n;!?|]|\.(?!\w)))"))


def find_forms(rows: Iterable[Example], facts: Sequence[Slots], limit: int) -> list[tuple[str, int]]:
    """Forms in which rows say such facts, with how many different things each says it of; the commonest first.

    All slots but one are recognised by their values, which the rows and the facts share (attributes, colours); the last one
    is what changes between rows that are alike otherwise (names).

    Args:
        rows: with targets.
        facts: what is to be said.
        limit: forms at most.
    """
    names = sorted({name for fact in facts for name in fact})
    value_patterns = _slot_value_patterns(names, facts)
    rows_by_form: dict[str, dict[str, set[int]]] = {}
    for number, row in zip(range(MAX_ROWS_SEARCHED), rows, strict=False):
        for form, filler in _possible_forms(_mark_known_values(row, value_patterns), names):
            rows_by_form.setdefault(form, {}).setdefault(filler, set()).add(number)
    found_forms: list[tuple[str, int]] = []
    while len(found_forms) < limit and rows_by_form:
        # Of spans that change alike the shortest is the slot.
        best_form = max(rows_by_form, key=lambda form: (len(rows_by_form[form]), len(form), form))
        fillers = rows_by_form[best_form]
        if len(fillers) < MIN_FORM_FACTS:
            break
        found_forms.append((best_form, len(fillers)))
        covered_rows = set().union(*fillers.values())
        remaining = {
            form: {filler: rows - covered_rows for filler, rows in rows_by_filler.items() if rows - covered_rows}
            for form, rows_by_filler in rows_by_form.items()
        }
        rows_by_form = {form: rows_by_filler for form, rows_by_filler in remaining.items() if rows_by_filler}
    return found_forms


def _slot_value_patterns(names: Sequence[str], facts: Sequence[Slots]) -> dict[str, re.Pattern[str]]:
    """Slot -> pattern of its values; values of two slots are left out."""
    values = {name: {fact[name] for fact in facts if name in fact} for name in names}
    own_values = {
        name: values[name] - set().union(*(values[other_name] for other_name in names if other_name != name))
        for name in names
    }
    order = {name: sorted(sorted(own_values[name])[:MAX_SLOT_VALUES], key=len, reverse=True) for name in names}
    return {
        name: re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, order[name]))})(?!\w)") for name in names if own_values[name]
    }


def _mark_known_values(row: Example, value_patterns: Mapping[str, re.Pattern[str]]) -> str:
    """A row with its known values as slots."""
    prompt, target = plain(row.prompt), plain(row.target)
    text = (f"{prompt}{ARROW}{target}" if prompt else target)[: 8 * MAX_SLOT_CHARACTERS]
    if SLOT_PATTERN.search(text):
        return ""
    for name, pattern in value_patterns.items():
        text = pattern.sub(f"{{{name}}}", text)
    return text


def _possible_forms(text: str, names: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Every form that a marked text may be of, with what stands in its open slot."""
    present_slots = slots_of(text)
    if len(set(present_slots)) < len(present_slots) or len(present_slots) < max(len(names) - 1, 1):
        return
    open_slots = [name for name in names if name not in present_slots]
    if not open_slots:
        yield text, text
        return
    pieces = list(PIECE_PATTERN.finditer(text))
    for begin_piece in range(len(pieces)):
        for end_piece in range(begin_piece, min(begin_piece + MAX_FOUND_SLOT_WORDS, len(pieces))):
            if pieces[end_piece].group().startswith(("{", "=>")):
                break
            begin, end = pieces[begin_piece].start(), pieces[end_piece].end()
            if text[begin].isalnum() and text[end - 1].isalnum():
                yield f"{text[:begin]}{{{open_slots[0]}}}{text[end:]}", text[begin:end]
