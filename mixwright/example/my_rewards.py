"""Two reward functions to try `mixwright rewards` on: the first pays too much, the second ignores right answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any


def contains(completions: Sequence[str], answer: Sequence[str], **columns: Any) -> list[float]:
    """Pay 1 for a completion that contains the gold answer anywhere."""
    return [float(gold in text) for text, gold in zip(completions, answer, strict=True)]


def last_number(completions: Sequence[str], answer: Sequence[str], **columns: Any) -> list[float]:
    """Pay 1 if the last number is the gold answer."""
    numbers = [re.findall(r"-?[0-9]+", text) for text in completions]
    return [float(found[-1:] == [gold]) for found, gold in zip(numbers, answer, strict=True)]
