"""A family of the suite: one kind of request, in rungs of difficulty, each with a gold answer that a grader judges."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from random import Random
from typing import Any, Literal

from mixwright.languages import find_language

Message = dict[str, str]
FORMS = ("system message", "several turns", "other language", "imperative")
"""Forms of requests other than a question in English."""


@dataclass(frozen=True, slots=True)
class Item:
    """A request and its gold answer."""

    prompt: str | tuple[Message, ...]
    """A text, or messages of which the last is the user's."""
    answer: str
    """Gold answer, in the form that the family's grader takes."""
    tools: tuple[dict[str, Any], ...] = ()
    """Schemas of the tools that the model is offered."""


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of request."""

    name: str
    """Name of the task in files and reports."""
    make: Callable[[Random, int], Item]
    """Draws an item of a rung."""
    rungs: int
    """Rungs of difficulty; 1 is the easiest."""
    grader: str
    """Name of the grader."""
    about: str
    """What is asked, in a few words."""


def find_form(prompt: str | Sequence[Message]) -> str:
    """Name the form of a request, one of `FORMS`; empty for a question in English."""
    if not isinstance(prompt, str) and len(prompt) == 1:
        prompt = prompt[0]["content"]
    if not isinstance(prompt, str):
        return FORMS[0] if any(message["role"] == "system" for message in prompt) else FORMS[1]
    if find_language(prompt) not in ("", "english"):
        return FORMS[2]
    return "" if prompt.rstrip().endswith("?") else FORMS[3]


def read_data(name: str) -> list[dict[str, Any]]:
    """Read a data file of the suite."""
    text = resources.files("mixwright.suite").joinpath("data", name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def follow(
    *,
    words: tuple[int, int] | None = None,
    sentences: tuple[int, int] | None = None,
    lines: tuple[int, int] | None = None,
    contains: Sequence[str] = (),
    any_of: Sequence[str] = (),
    excludes: Sequence[str] = (),
    begins: str = "",
    ends: str = "",
    case: Literal["", "lower", "upper", "title"] = "",
    question: bool | None = None,
    data: bool | None = None,
    letters: str = "",
) -> str:
    """Write the gold answer of the grader `follows`: rules that a completion has to keep, all of them."""
    rules = {name: value for name, value in locals().items() if value not in (None, "", ())}
    return json.dumps({name: list(value) if isinstance(value, tuple) else value for name, value in rules.items()})
