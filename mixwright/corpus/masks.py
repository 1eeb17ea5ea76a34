"""Parts of a row that are read and not learnt: messages with `"train": false`, and a column `mask` of character spans.

A wrong step that stays in the context, and whose loss is left out, teaches what follows a mistake and not the mistake.

Source: `train` is the field that Axolotl's examples name (`message_field_training`); `weight`, 0 or 1, is OpenAI's; `loss`
    is that of ms-swift, and `loss_weight` that of LLaMA-Factory's version 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mixwright.records import Example

MASK_COLUMN = "mask"
"""Column of a row: [start, end) character spans of its completion that are not trained on."""
UNTRAINED_TURNS = "untrained_turns"
"""Of a row that was read: which of the assistant's turns in its prompt are not trained on, counted from 0."""
TRAIN_KEYS = ("train", "weight", "loss", "loss_weight")
"""Names of the value of a message that says whether it is trained on: true or 1, false or 0. We write the first."""

Spans = tuple[tuple[int, int], ...]


def is_trained(message: Mapping[str, Any]) -> bool:
    """Whether a message is trained on, so far as it says so itself; a message that says nothing is.

    Raises:
        ValueError: neither yes nor no, or both.

    Examples:
        >>> is_trained({"role": "assistant", "content": "5", "weight": 0})
        False
    """
    said = {name: message[name] for name in TRAIN_KEYS if message.get(name) is not None}
    for name, value in said.items():
        if not isinstance(value, bool | int | float) or value not in (0, 1):
            raise ValueError(f"{name}: {value!r}"[:60])
    if len({bool(value) for value in said.values()}) > 1:
        raise ValueError(", ".join(f"{name}: {value!r}" for name, value in said.items()))
    return all(said.values())


def read_spans(value: Any, length: int) -> Spans:
    """Spans in their order, those that touch joined.

    Args:
        value: a list of [start, end) pairs of whole numbers; None is an empty one.
        length: characters of the completion.

    Raises:
        ValueError: no such list, or a span that ends beyond the completion.

    Examples:
        >>> read_spans([[4, 7], [0, 2], [6, 9]], 12)
        ((0, 2), (4, 9))
    """
    if value is not None and not isinstance(value, list | tuple):
        raise ValueError(f"{value!r}"[:60])
    joined: list[tuple[int, int]] = []
    pairs = [_read_pair(pair, length) for pair in value or ()]
    for start, end in sorted(pairs):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif start < end:
            joined.append((start, end))
    return tuple(joined)


def _read_pair(pair: Any, length: int) -> tuple[int, int]:
    numbers = list(pair) if isinstance(pair, list | tuple) else []
    if len(numbers) != 2 or not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        raise ValueError(f"{pair!r} in mask"[:60])
    start, end = numbers
    if not 0 <= start <= end <= length:
        raise ValueError(f"{pair!r} of a completion of {length} characters"[:80])
    return start, end


def trained_spans(mask: Iterable[Sequence[int]], length: int) -> Spans:
    """What the spans of a mask leave of so many characters.

    Examples:
        >>> trained_spans(((0, 2), (4, 9)), 12)
        ((2, 4), (9, 12))
    """
    left, at = [], 0
    for start, end in (*mask, (length, length)):
        if at < start:
            left.append((at, start))
        at = end
    return tuple(left)


def mask_of(example: Example) -> Spans:
    """The spans of a row's completion that are not trained on; of a row that was read, in order and apart."""
    return tuple((start, end) for start, end in example.extra.get(MASK_COLUMN) or ())


def is_masked(example: Example) -> bool:
    """Whether a part of the completion is not trained on."""
    target = example.target
    return bool(mask_of(example)) or (isinstance(target, tuple) and not all(map(is_trained, target)))
