"""Readers of single values of a log, which name the place of what they refuse.

Left out on purpose: what a value means, which each form of log knows itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mixwright.corpus.reading import REMEDY_ROW, RowLocation, show_value

LONGEST_NAME = 500
"""Characters of the name of a task, an item or a metric."""
MAX_LEVEL, MAX_NATS = 2**53, 1e300
REMEDY_LOG = "Write the log again, or remove that row from it."


def read_object(value: Any, what: str, location: RowLocation) -> dict[str, Any]:
    """The object. Raises InputError for anything else."""
    if not isinstance(value, dict):
        raise location.error(f"an object: {what}", show_value(value), REMEDY_LOG)
    return value


def read_part(value: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """The object under a key of an object, and under further keys in it; an empty one where anything else stands."""
    found: Any = value
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def read_name(value: Any, key: str, location: RowLocation) -> str:
    """A text or a whole number as a name. Raises InputError for anything else, an empty text, or a very long one."""
    if isinstance(value, bool) or not isinstance(value, str | int) or not (isinstance(value, int) or value.strip()):
        raise location.error(f"a name in {key}", show_value(value), REMEDY_ROW)
    name = str(value) if isinstance(value, str) or abs(value) < MAX_LEVEL else ""
    if not name or len(name) > LONGEST_NAME:
        got = f"one of {len(name):,} characters" if name else "a very large number"
        raise location.error(f"a name of at most {LONGEST_NAME} characters in {key}", got, REMEDY_ROW)
    return read_text(name, key, location)


def read_text(value: Any, key: str, location: RowLocation) -> str:
    """A text. Raises InputError for anything else, and for halves of characters, which no file can hold."""
    if not isinstance(value, str):
        raise location.error(f"a text in {key}", show_value(value), REMEDY_ROW)
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise location.error(f"Unicode text in {key}", "half of a surrogate pair", "Repair the text.") from None
    return value


def read_logprob(value: Any, key: str, location: RowLocation) -> float:
    """A log-probability in nats, at most 0 up to rounding. Raises InputError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value <= 1e-4:  # NaN, too
        raise location.error(f"a log-probability of at most 0 in {key}", show_value(value), REMEDY_ROW)
    return float(min(max(value, -MAX_NATS), 0.0))


def read_score(value: Any) -> float | str | None:
    """A score as a number, None where there is none (null, NaN), or in words what stands there instead."""
    if value is None:
        return None
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            return "a number beyond all bounds"
        return None if math.isnan(number) else number if math.isfinite(number) else "an infinite number"
    if isinstance(value, str):
        return f"the text {value[:20]!r}"
    if isinstance(value, Sequence):
        return f"a list of {len(value)}"
    return "an object" if isinstance(value, Mapping) else type(value).__name__


def join_messages(value: Any, key: str, location: RowLocation) -> str:
    """Chat messages, or a text, as one text in which roles stay apart. Raises InputError for anything else."""
    if isinstance(value, str):
        return read_text(value, key, location)
    if not isinstance(value, list) or not value:
        raise location.error(f"a text or chat messages in {key}", show_value(value), REMEDY_ROW)
    lines = []
    for message in value:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise location.error(f"messages with role and content in {key}", show_value(message), REMEDY_ROW)
        lines.append(f"{message['role']}: {_text_of_parts(message.get('content'))}")
    return read_text("\n".join(lines), key, location)


def list_objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; none of anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def find_text(value: Any) -> str | None:
    """The first text in nested lists."""
    while isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, str) else None


def read_texts(messages: Any) -> list[str]:
    """Texts of messages, whose content is a text or a list of parts; none of anything else."""
    texts: list[str] = []
    for message in list_objects(messages):
        content = message.get("content")
        parts = list_objects(content if isinstance(content, list) else [{"text": content}])
        texts += [part["text"] for part in parts if isinstance(part.get("text"), str)]
    return texts


def _text_of_parts(content: Any) -> str:
    """The text of a message's content; of parts that are no text (images, reasoning) their kind stands there."""
    if isinstance(content, list):
        parts = [part if isinstance(part, dict) else {"type": type(part).__name__} for part in content]
        return "\n".join(str(part.get("text", f"[{part.get('type', 'part')}]")) for part in parts)
    return "" if content is None else str(content)
