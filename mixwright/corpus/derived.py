"""Parts of a row that no column holds as such: listed options, an answer's letter, a level's number, a prompt.

Each is a plain function of values; `columns.py` says when it is used, and notes that it was.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from mixwright.graders.choice import OPTION_COLUMNS, read_options

_LEVEL = re.compile(r"(?:level\s*)?(\d{1,9}(?:\.\d{1,9})?|\?)", re.IGNORECASE)
LAST_TURN_MARK = "\n\nAssistant:"
"""How the last turn of a dialogue in one text begins, as in hh-rlhf."""
MOST_TREATMENTS_SHOWN = 4
"""Different treatments of columns in one note."""


def given_options(extra: Mapping[str, Any]) -> dict[str, str]:
    """Letter -> text of a row's column of options, as they are written; empty where it has none or fewer than two."""
    found = read_options(next((extra[name] for name in OPTION_COLUMNS if name in extra), None))
    return found if len(found) > 1 and all(text.strip() for text in found.values()) else {}


def with_options(prompt: str, options: Mapping[str, str]) -> str:
    """The prompt followed by its options, a line each; as it is where it holds them all already."""
    if all(text.strip() in prompt for text in options.values()):
        return prompt
    return "\n".join([prompt.rstrip(), *(f"({letter}) {text.strip()}" for letter, text in options.items())])


def letter_of_index(answer: str, options: Mapping[str, str]) -> str:
    """The letter of an answer that is a whole number and no option: its place, counted from 0. Else the answer itself."""
    known = {name.casefold() for name in (*options, *(text.strip() for text in options.values()))}
    if answer.strip().casefold() in known or not answer.isascii() or not answer.isdecimal() or len(answer) > 3:
        return answer
    place = int(answer)
    return list(options)[place] if place < len(options) else answer


def level_number(value: str) -> float | None:
    """The number of `3`, `Level 3`; None for `Level ?`. Raises ValueError for other words."""
    found = _LEVEL.fullmatch(value.strip())
    if found is None:
        raise ValueError(value)
    return None if found[1] == "?" else float(found[1])


def dialogue_prompt_end(common: str) -> int:
    """Where the prompt of a pair of dialogues ends: behind the last `Assistant:` that both have; 0 where there is none."""
    at = common.rfind(LAST_TURN_MARK)
    return at + len(LAST_TURN_MARK) if at >= 0 else 0


def format_derived(counts: Counter[str], source: str, rows: int) -> list[str]:
    """One note about what was done with the columns of a source; none where nothing was.

    Args:
        counts: what was done -> rows that it was done with.
        source: as the user wrote it.
        rows: of the source.
    """
    if not counts:
        return []
    common = counts.most_common()
    parts = [
        what if count == rows else f"{what} ({count:,} of {rows:,} rows)"
        for what, count in common[: 2 * MOST_TREATMENTS_SHOWN]
    ]
    more = len(common) - len(parts)
    return [f"{source}: {', '.join(parts)}{f' and {more} more' if more > 0 else ''}"]
