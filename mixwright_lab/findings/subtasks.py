"""Finding on granular subtasks: rows that ask for parts of an answer, such as names, beside rows that ask for all of it.

Source: Abdelaziz et al., Granite function calling by granular tasks, 2407.00121.
Unit: share of requests whose calls are all right, greedy; nobody guesses one.
Cost: about 20 CPU seconds per seed.
Blind spot: two calls a request, one argument each; a model of 0.1 million parameters, not tuned before; as many target
    tokens are 500 updates with parts and 300 without.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from mixwright_lab.contracts import Expectation, Finding, Term, difference
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import SIGNS, Language
from mixwright_lab.training.sft import Schedule, fit_rows

CLASSES, EACH, VALUES = 4, 2, 6
"""Kinds of values, functions that take each, and values of a kind."""
FUNCTIONS = tuple(f"call{place}" for place in range(CLASSES * EACH))
ASKED = {name: (f"{name}-asked", f"{name}-wanted") for name in FUNCTIONS}
KINDS = tuple(tuple(f"v{kind}{place}" for place in range(VALUES)) for kind in range(CLASSES))
VIEWS = ("full", "names", "first", "second", "next")
LANGUAGE = Language((*SIGNS, *VIEWS, *FUNCTIONS, *itertools.chain(*ASKED.values(), *KINDS)), 8, 5)
PAIRS = tuple(
    (one, other) for one, other in itertools.permutations(range(len(FUNCTIONS)), 2) if one // EACH != other // EACH
)
UMBRELLA, GRANULAR, PREFIXES, MORE = "all of it", "parts, too", "as many instructions, all of it", "more requests"
LEFT_OUT, KNOWN, NAMES = "pairs left out", "known pairs", "names, pairs left out"


@dataclass(frozen=True)
class Settings:
    """Of requests and training."""

    requests: int = 60
    """To learn from; four times as many where there are more."""
    left_out: int = 12
    """Pairs of functions, of 48."""
    steps: int = 300
    """With rows that ask for all; as many target tokens with parts."""
    test: int = 150


class Subtasks(Finding):
    """Requests for two calls: rows with both, or the same requests asked for names, arguments and the next call, too."""

    CLAIM = "Rows that ask for parts teach more for requests unlike those trained on than as many tokens of whole calls."
    SOURCE = "Abdelaziz et al., Granite-Function Calling Model, 2407.00121, EMNLP 2024 Industry"
    WHAT_IT_SHOWS = (
        "A 20B model tuned on seven tasks of API-BLEND and Glaive: best or second among open ones on sets that it was not "
        "tuned on (function names F1 .74, next .61). Base, data and tasks change together; no arm has whole calls alone."
    )
    POPULAR_READING = "It is said that parts teach composition. Without equal tokens and equal instructions nobody knows."
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    REMARKS = (
        "9 points more than by as many tokens of whole calls lie within the noise of two trainings; on the tuning "
        "seed it was 39. Known pairs gain as much (10), and whole calls do nearly as well on pairs that were left "
        "out (73 %) as on known ones (76), so there is hardly a gap to close. Four times as many requests are worth "
        "19 points more than the parts."
    )
    RUN_TWICE = (UMBRELLA,)
    SCALES: ClassVar[Mapping[str, Settings]] = {"smoke": Settings(20, 12, 10, 8), "laptop": Settings()}
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 8}
    PRIMARY = "pairs left out: parts, too - all of it"
    PUBLISHED = ("names, pairs left out: parts, too - all of it",)
    CONTROL = "known pairs: all of it"
    EXPECT = (
        Expectation(PRIMARY, difference(GRANULAR, UMBRELLA, LEFT_OUT), 0.05, "As many tokens of whole calls teach as much."),
        Expectation(PUBLISHED[0], difference(GRANULAR, UMBRELLA, NAMES), 0.05, "Names are no better either."),
        Expectation(CONTROL, (Term(UMBRELLA, KNOWN),), 0.3, "Nobody learns to call."),
        Expectation(
            "pairs left out: parts, too - as many instructions, all of it",
            difference(GRANULAR, PREFIXES, LEFT_OUT),
            0.05,
            "Other instructions before the same answers do as well.",
        ),
        Expectation(
            "pairs left out: parts, too - more requests",
            difference(GRANULAR, MORE, LEFT_OUT),
            0.05,
            "Four times as many requests do as well.",
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """What rows ask for."""
        return UMBRELLA, GRANULAR, PREFIXES, MORE

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Train on rows of an arm, and ask for both calls."""
        rng = np.random.default_rng((seed, 20))
        pairs = [PAIRS[place] for place in rng.permutation(len(PAIRS))]
        left_out, known = pairs[: settings.left_out], pairs[settings.left_out :]
        asked = {name: draw(own, settings.test, rng) for name, own in ((LEFT_OUT, left_out), (KNOWN, known))}
        requests = draw(known, settings.requests * (4 if arm == MORE else 1), rng)
        rows, steps = [full(request, "full") for request in requests], settings.steps
        if arm == PREFIXES:
            rows = [full(request, view) for request in requests for view in VIEWS]
        elif arm == GRANULAR:
            rows += [row for request in requests for row in parts(request)]
            steps = round(steps * tokens(rows[: len(requests)]) / tokens(rows))
        torch.manual_seed(seed + 1000 * again)
        model = GPT(LANGUAGE)
        fit_rows(model, rows, Schedule(steps, 3e-3), np.random.default_rng((seed, again)))
        found = {}
        for name, own in asked.items():
            golds = [full(request, "full") for request in own]
            texts = [LANGUAGE.decode(text) for text in model.write([prompt for prompt, _ in golds])]
            found[name] = float(np.mean([text == gold for text, (_, gold) in zip(texts, golds, strict=True)]))
            if name == LEFT_OUT:
                named = [text.split()[::2] == gold.split()[::2] for text, (_, gold) in zip(texts, golds, strict=True)]
                found[NAMES] = float(np.mean(named))
        return found


Request = tuple[str, tuple[str, str], tuple[str, str]]
"""Words of a request, the functions that it calls, and their arguments."""


def draw(pairs: Sequence[tuple[int, int]], count: int, rng: np.random.Generator) -> list[Request]:
    """Draw requests: a word for each function, and both values, in any order."""
    found = []
    for place in rng.integers(len(pairs), size=count):
        names = FUNCTIONS[pairs[place][0]], FUNCTIONS[pairs[place][1]]
        values = tuple(KINDS[one // EACH][rng.integers(VALUES)] for one in pairs[place])
        words = [ASKED[name][rng.integers(2)] for name in names]
        words += [values[one] for one in rng.permutation(2)]
        found.append((" ".join(words), names, (values[0], values[1])))
    return found


def full(request: Request, view: str) -> tuple[str, str]:
    """A row that asks for both calls, with any instruction before it."""
    words, names, values = request
    return f"{view} {words}", f"{names[0]} {values[0]} {names[1]} {values[1]}"


def parts(request: Request) -> list[tuple[str, str]]:
    """Rows that ask for the names, each argument, and the second call behind the first."""
    words, names, values = request
    return [
        (f"names {words}", " ".join(names)),
        (f"first {words} {names[0]}", values[0]),
        (f"second {words} {names[1]}", values[1]),
        (f"next {words} {names[0]} {values[0]}", f"{names[1]} {values[1]}"),
    ]


def tokens(rows: Sequence[tuple[str, str]]) -> float:
    """Mean target tokens of a row, its end among them."""
    return float(np.mean([len(answer.split()) + 1 for _, answer in rows]))
