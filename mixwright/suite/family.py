"""A family of the suite: one kind of request, in rungs of difficulty, each with a gold answer that a grader judges."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from random import Random
from typing import Any

from mixwright.graders.follows import RULES
from mixwright.languages import find_language

Message = dict[str, str]
Record = dict[str, Any]
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


@cache
def read_data(name: str) -> list[Record]:
    """Read a data file of the suite once."""
    text = resources.files("mixwright.suite").joinpath("data", f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def find_rows(name: str, **values: Any) -> list[Record]:
    """Return the rows of a data file that have these values."""
    return [row for row in read_data(name) if all(row[key] == value for key, value in values.items())]


@cache
def list_texts(kind: str) -> list[str]:
    """Return the wordings, or the words of a list, of one kind."""
    return [row["text"] for row in find_rows("texts", kind=kind)]


def ask(rng: Random, kind: str, /, **parts: object) -> str:
    """Write a request in one of the wordings of a kind."""
    return rng.choice(list_texts(kind)).format(**parts)


def join_words(words: Iterable[str], conjunction: str = "and") -> str:
    """Join words as a sentence does."""
    *some, last = words
    return f"{', '.join(some)} {conjunction} {last}"


def follow(**rules: Any) -> str:
    """Write the gold answer of the grader `follows`: rules that a completion has to keep, all of them."""
    return json.dumps({name: rules[name] for name in RULES if name in rules})
