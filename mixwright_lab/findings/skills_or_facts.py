"""Finding on procedural knowledge: do problems of one procedure draw on the same rows, and facts on a few of their own?

Source: Ruis et al., Procedural knowledge in pretraining drives reasoning, 2411.12580.
Unit: Pearson r of two questions' influences over all training rows; influence is the product of a question's gradient and a
    row's.
Cost: about 50 CPU seconds per seed.
Blind spot: no inverse of the curvature as in the source, but plain gradients and the steps that Adam would make of them;
    four procedures on three words, models of 0.1 million parameters, not tuned before.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from mixwright_lab.contracts import Expectation, Finding, Term
from mixwright_lab.findings.influence import gradients
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import SIGNS, Language
from mixwright_lab.training.sft import Schedule, fit_rows

WORDS = tuple(f"w{place}" for place in range(30))
PROCEDURES: Mapping[str, Callable[[Sequence[str]], tuple[str, ...]]] = {
    "turn": lambda words: (words[2], words[1], words[0]),
    "shift": lambda words: (words[1], words[2], words[0]),
    "double": lambda words: (words[0], words[0], words[2]),
    "ends": lambda words: (words[2], words[1], words[2]),
}
PHRASINGS = ("recall", "name")
"""Each fact stands in the rows, and is asked for, in both."""
LANGUAGE = Language((*SIGNS, *PROCEDURES, *PHRASINGS, *WORDS), 5, 4)
ADAM, PLAIN, UNTRAINED = "steps of Adam", "plain gradients", "untrained"
PROBLEMS, FACTS, SAME_FACT = "problems of a procedure", "facts", "one fact, two phrasings"
SOLVED, KNOWN = "problems solved", "facts known"
SKETCH_PLACES = 32_768


@dataclass(frozen=True)
class Settings:
    """Of rows, questions and training."""

    rows: int = 300
    """Of each procedure."""
    facts: int = 200
    steps: int = 800
    asked: int = 20
    """Problems of each procedure, none of them in a row, and facts."""


class SkillsOrFacts(Finding):
    """Correlation of influences between problems of one procedure, between facts, and between phrasings of one fact."""

    CLAIM = "Problems of one procedure are influenced by the same training rows, facts each by rows of their own."
    SOURCE = (
        "Ruis et al., Procedural Knowledge in Pretraining Drives Reasoning in Large Language Models, 2411.12580, ICLR 2025"
    )
    WHAT_IT_SHOWS = (
        "7B and 35B, 5 million documents: influences of questions of one procedure correlate (p < 4e-8, up to .96), of "
        "different ones hardly. The answer stood in the first 500 documents for 55 % of facts, 7.4 % of reasoning (7B)."
    )
    POPULAR_READING = "It is said that models reason and do not retrieve. The source shows which documents matter, not why."
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    REMARKS = (
        "All problems are solved and all facts known, yet problems of one procedure share hardly any rows (r .06) in a "
        "model that learns four procedures from nothing. The control fires before training, too: two "
        "phrasings of a fact share words and answer. The source's inverse curvature was not tried."
    )
    RUN_TWICE = (ADAM,)
    SCALES: ClassVar[Mapping[str, Settings]] = {"smoke": Settings(20, 10, 5, 3), "laptop": Settings()}
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 6}
    PRIMARY = "r: problems of a procedure - facts"
    PUBLISHED = ("r: problems of a procedure - of different procedures",)
    CONTROL = "r: one fact, two phrasings - two facts"
    EXPECT = (
        Expectation(
            PRIMARY, (Term(ADAM, PROBLEMS), Term(ADAM, FACTS, -1.0)), 0.2, "Problems share rows no more than facts do.", "r"
        ),
        Expectation(
            PUBLISHED[0],
            (Term(ADAM, PROBLEMS), Term(ADAM, "different procedures", -1.0)),
            0.2,
            "Any two problems share as much.",
            "r",
        ),
        Expectation(
            CONTROL,
            (Term(ADAM, SAME_FACT), Term(ADAM, FACTS, -1.0)),
            0.2,
            "These influences show no shared rows at all.",
            "r",
        ),
        Expectation(
            "r: problems of a procedure, steps of Adam - plain gradients",
            (Term(ADAM, PROBLEMS), Term(PLAIN, PROBLEMS, -1.0)),
            0.1,
            "Plain gradients show as much.",
            "r",
        ),
        Expectation(
            "r: problems of a procedure, trained - untrained",
            (Term(ADAM, PROBLEMS), Term(UNTRAINED, PROBLEMS, -1.0)),
            0.1,
            "The form of the questions alone does it.",
            "r",
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """How gradients are taken, and of which model."""
        return ADAM, PLAIN, UNTRAINED

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Train on all rows, and correlate the influences of questions."""
        rng = np.random.default_rng((seed, 16))
        rows, asked = list[tuple[str, str]](), dict[str, list[tuple[str, str]]]()
        for name, make in PROCEDURES.items():
            drawn = draw(settings.rows + settings.asked, rng)
            own = [(f"{name} {' '.join(words)}", " ".join(make(words))) for words in drawn]
            rows, asked[name] = rows + own[settings.asked :], own[: settings.asked]
        facts = list(zip(draw(settings.facts, rng), draw(settings.facts, rng), strict=True))
        for name in PHRASINGS:
            own = [(f"{name} {' '.join(words)}", " ".join(answer)) for words, answer in facts]
            rows, asked[name] = rows + own, own[: settings.asked]
        torch.manual_seed(seed + 1000 * again)
        model = GPT(LANGUAGE)
        schedule = Schedule(settings.steps, 3e-3, warm=20)
        sft = None if arm == UNTRAINED else fit_rows(model, rows, schedule, np.random.default_rng((seed, again)))
        of_rows = gradients(model, rows, sft if arm == ADAM else None, size=SKETCH_PLACES)
        of_rows /= np.linalg.norm(of_rows, axis=1, keepdims=True)
        influence = {name: gradients(model, own, size=SKETCH_PLACES) @ of_rows.T for name, own in asked.items()}
        between = {pair: correlate(influence[pair[0]], influence[pair[1]]) for pair in itertools.product(asked, asked)}
        apart = ~np.eye(settings.asked, dtype=bool)
        right = {name: solved(model, own) for name, own in asked.items()}
        return {
            PROBLEMS: float(np.mean([between[name, name][apart] for name in PROCEDURES])),
            "different procedures": float(np.mean([between[pair] for pair in itertools.permutations(PROCEDURES, 2)])),
            FACTS: float(np.mean([between[pair][apart] for pair in itertools.product(PHRASINGS, PHRASINGS)])),
            SAME_FACT: float(np.mean(np.diag(between[PHRASINGS]))),
            SOLVED: float(np.mean([right[name] for name in PROCEDURES])),
            KNOWN: float(np.mean([right[name] for name in PHRASINGS])),
        }


def draw(count: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
    """Three different words each, no two draws alike."""
    found = dict[tuple[str, ...], None]()
    while len(found) < count:
        found[tuple(WORDS[place] for place in rng.choice(len(WORDS), 3, replace=False))] = None
    return list(found)


def solved(model: GPT, asked: Sequence[tuple[str, str]]) -> float:
    """Share of right answers, greedy."""
    texts = [LANGUAGE.decode(text) for text in model.write([prompt for prompt, _ in asked])]
    return float(np.mean([text == gold for text, (_, gold) in zip(texts, asked, strict=True)]))


def correlate(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Pearson r of each row of one with each row of the other."""
    return np.corrcoef(one, other)[: len(one), len(one) :]
