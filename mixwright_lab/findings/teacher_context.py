"""Finding on teachers that know the answer: their short traces leave out the search that unseen problems need.

Source: Kim et al., Why does self-distillation (sometimes) degrade the reasoning capability of LLMs?, 2603.24472.
Unit: share of problems with a right answer, greedy; most have two, so that 8 in 9 guesses are wrong.
Cost: about 200 CPU seconds per seed.
Blind spot: one kind of problem, solved by trying; both kinds of traces get as many steps, and so not as many tokens; no arm
    without any trace, and none with as much filler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from mixwright_lab.contracts import Expectation, Finding, Term, difference
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import HASH, SIGNS, Language
from mixwright_lab.training.sft import Schedule, fit_rows

MODULUS, NO = 17, "no"
NUMBERS = tuple(map(str, range(MODULUS)))
LANGUAGE = Language((*SIGNS, NO, *NUMBERS), 3, 3 * MODULUS + 3)
SEARCHED, WORDLESS, GUIDED = "searched", "searched, without words of doubt", "written knowing the answer"
MANY, FEW = "many problems", "few problems"
SEEN, UNSEEN, GUESS, DOUBTS = "seen", "unseen", "a guess", "words of doubt"


@dataclass(frozen=True)
class Settings:
    """Of problems and training."""

    many: int = 120
    """Problems to learn from, of 153."""
    few: int = 16
    steps: int = 1000


class TeacherContext(Finding):
    """x is sought so that x * x + a * x leaves b, by trying one after the other, or by writing down the right one alone."""

    CLAIM = "Traces of a teacher who knows the answer teach less for unseen problems than traces of one who had to search."
    SOURCE = "Kim et al., Why Does Self-Distillation (Sometimes) Degrade the Reasoning Capability of LLMs?, 2603.24472"
    WHAT_IT_SHOWS = (
        "R1-Distill-Qwen-7B, 800 right traces: AIME24 54.8 before, 51.0 by its own traces, 20.2 by those that it wrote "
        "knowing the solution; with up to 128 problems the latter win. Length and words of doubt change together."
    )
    POPULAR_READING = (
        "It is said that the loss of words such as wait and hmm does the harm. Words alone are not taken out by the source."
    )
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    REMARKS = (
        "Unseen problems lose 36 points, down to a guess. With few problems both kinds are learnt whole, so that "
        "nothing can be gained on these. Looked at afterwards: without its words the search is still 22 points [9, "
        "36] above."
    )
    RUN_TWICE = (f"{SEARCHED}, {MANY}",)
    SCALES: ClassVar[Mapping[str, Settings]] = {"smoke": Settings(20, 4, 10), "laptop": Settings()}
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 6}
    PRIMARY = "unseen problems, many: searched - written knowing the answer"
    PUBLISHED = ("seen problems, few: written knowing the answer - searched",)
    CONTROL = "unseen problems, many: searched - a guess"
    EXPECT = (
        Expectation(
            PRIMARY,
            difference(f"{SEARCHED}, {MANY}", f"{GUIDED}, {MANY}", UNSEEN),
            0.1,
            "Traces that know the answer teach as much.",
        ),
        Expectation(
            PUBLISHED[0],
            difference(f"{GUIDED}, {FEW}", f"{SEARCHED}, {FEW}", SEEN),
            0.05,
            "With few problems a search is learnt as well.",
        ),
        Expectation(
            CONTROL,
            (Term(f"{SEARCHED}, {MANY}", UNSEEN), Term(f"{SEARCHED}, {MANY}", GUESS, -1.0)),
            0.2,
            "Nobody learns to search.",
        ),
        Expectation(
            "unseen problems, many: searched - searched, without words of doubt",
            difference(f"{SEARCHED}, {MANY}", f"{WORDLESS}, {MANY}", UNSEEN),
            0.05,
            "The search does it, not its words.",
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Kinds of traces, of many and of few problems."""
        return f"{WORDLESS}, {MANY}", *(f"{kind}, {size}" for kind in (SEARCHED, GUIDED) for size in (MANY, FEW))

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Train on traces, and ask seen and unseen problems."""
        kind, _, size = arm.rpartition(", ")
        rng = np.random.default_rng((seed, 18))
        every = sorted({(a, value(a, x)) for a in range(MODULUS) for x in range(MODULUS)})
        every = [every[place] for place in rng.permutation(len(every))]
        seen, unseen = every[: settings.many if size == MANY else settings.few], every[settings.many :]
        torch.manual_seed(seed + 1000 * again)
        model = GPT(LANGUAGE)
        rows = [(f"{a} {b}", write_trace(a, b, kind)) for a, b in seen]
        fit_rows(model, rows, Schedule(settings.steps, 3e-3), np.random.default_rng((seed, again)))
        found = {GUESS: float(np.mean([sum(value(a, x) == b for x in range(MODULUS)) for a, b in unseen])) / MODULUS}
        for name, problems in ((SEEN, seen), (UNSEEN, unseen)):
            texts = [LANGUAGE.decode(own) for own in model.write([f"{a} {b}" for a, b in problems])]
            found[name] = float(np.mean([solves(text, *problem) for text, problem in zip(texts, problems, strict=True)]))
        return found | {DOUBTS: float(np.mean([text.split().count(NO) for text in texts]))}


def value(a: int, x: int) -> int:
    """What x leaves."""
    return (x * x + a * x) % MODULUS


def write_trace(a: int, b: int, kind: str) -> str:
    """Write what is tried and what it leaves, up to the first x that leaves b, and the answer."""
    right = next(x for x in range(MODULUS) if value(a, x) == b)
    tried = [right] if kind == GUIDED else range(right + 1)
    doubt = f" {NO}" if kind == SEARCHED else ""
    return " ".join([*(f"{x} {value(a, x)}{doubt if x != right else ''}" for x in tried), HASH, str(right)])


def solves(text: str, a: int, b: int) -> bool:
    """Whether the answer leaves b."""
    answer = text.partition(f"{HASH} ")[2]
    return answer in NUMBERS and value(a, int(answer)) == b
