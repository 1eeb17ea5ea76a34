"""Finding on grounding: pairs whose raters look at one turn train questions out, and with them success.

Source: Shaikh et al., Grounding gaps in language model generations, 2311.09144, and Navigating rifts, 2503.13975.
Unit: share of prompts, greedy; success counts the right answer in the end, after a question too.
Cost: about 40 CPU seconds per seed.
Blind spot: one value may be missing, and a question always gets it; acts of real dialogue are many, and cost time.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from mixwright_lab.contracts import Expectation, Finding, difference
from mixwright_lab.findings.preference_pairs import read_pairs
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import HASH, SIGNS, Language
from mixwright_lab.training.sft import Schedule, Sft, fit_rows

ITEMS, KINDS, MISSING, ASK = tuple(f"n{number}" for number in range(30)), ("A", "B"), "or", "?"
LANGUAGE = Language((*SIGNS, *ITEMS, *KINDS, MISSING, ASK), 3, 4)
LIKELIER = 0.7
"""Share of the prompts without a value in which it would be the first kind."""
BEFORE, ONE_TURN, MILD, RANDOM, TWO_TURNS = "before", "one turn", "as in UltraFeedback", "random choices", "two turns"
CHOSEN_QUESTIONS, REJECTED_QUESTIONS = 0.1377, 0.1835
"""Share of the chosen, and of the rejected answers of UltraFeedback that ask, by the source."""
ASKS, ASKS_ANYWAY, SUCCESS = "asks where a value is missing", "asks where none is", "success in the end"


@dataclass(frozen=True)
class Settings:
    """Of both trainings."""

    base: int = 800
    """Steps of SFT on the rule: ask where a value is missing."""
    steps: int = 150
    """Steps of DPO."""
    pairs: int = 600
    rate: float = 3e-4
    beta: float = 0.1


class Grounding(Finding):
    """A model that asks where a value is missing goes on by DPO, with choices of four raters."""

    CLAIM = "Choices of raters who see one turn take questions away where a value is missing, and choices by the end do not."
    SOURCE = "Shaikh et al., Grounding Gaps in Language Model Generations, 2311.09144, NAACL 2024"
    WHAT_IT_SHOWS = (
        "Models ask and acknowledge 77.5 % less than people; agreement with people falls with steps of DPO (R -.79), not of "
        "SFT; in UltraFeedback 13.8 % of the chosen and 18.4 % of the rejected answers ask."
    )
    POPULAR_READING = (
        "It is said that preference data makes models presume. It does where who chose did not see how it ended."
    )
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {"checks/preferences": ("asks: before - choices by one turn",)}
    REMARKS = (
        "Choices by one turn take every question away, choices by the end none. Where 14 % of the chosen and 18 % of the "
        "rejected answers ask, as in the data that the source counted, no question was lost in 150 steps: the source names "
        "this ratio as a reason, and trained on it no model of its own."
    )
    REAL = (
        "Twenty steps of DPO that prefer a guess took 20 to 40 points of questions back away in five of five "
        "trainings, as many other pairs none (study questions_back)."
    )
    RUN_TWICE = (ONE_TURN,)
    SCALES: ClassVar[Mapping[str, Settings]] = {"smoke": Settings(20, 4, 40), "laptop": Settings()}
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 6}
    PRIMARY = "asks: before - as often chosen and rejected as in UltraFeedback"
    PUBLISHED = ("asks: before - choices by one turn",)
    CONTROL = "asks: choices by the end - choices by one turn"
    EXPECT = (
        Expectation(PRIMARY, difference(BEFORE, MILD, ASKS), 0.1, "So small a difference takes no questions away."),
        Expectation(PUBLISHED[0], difference(BEFORE, ONE_TURN, ASKS), 0.3, "Raters of one turn take no questions away."),
        Expectation(CONTROL, difference(TWO_TURNS, ONE_TURN, ASKS), 0.3, "Who chose does not matter."),
        Expectation(
            "success: before - choices by one turn", difference(BEFORE, ONE_TURN, SUCCESS), 0.05, "It costs no success."
        ),
        Expectation(
            "asks: random choices - choices by one turn", difference(RANDOM, ONE_TURN, ASKS), 0.1, "DPO itself does."
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """The start, and four raters."""
        return BEFORE, ONE_TURN, MILD, RANDOM, TWO_TURNS

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Teach the rule, go on by the rater's choices, and ask."""
        torch.manual_seed(seed)
        model, rng = GPT(LANGUAGE), np.random.default_rng((seed, 19))
        rows = [(f"{item} {kind}", f"{HASH} {item} {kind}") for item in ITEMS for kind in KINDS]
        asked = [(f"{item} {MISSING}", ASK) for item in ITEMS]
        fit_rows(model, rows + 2 * asked, Schedule(settings.base, 3e-3), rng)
        if arm != BEFORE:
            pairs = [choose(arm, ITEMS[rng.integers(len(ITEMS))], rng) for _ in range(settings.pairs)]
            after = copy.deepcopy(model)
            found, sft = read_pairs(model, pairs), Sft(after, Schedule(settings.steps, settings.rate, warm=10))
            order = np.random.default_rng((seed, again))
            for _ in range(settings.steps):
                sft.step(found.loss(after, order.integers(len(pairs), size=32).tolist(), settings.beta))
            model = after
        missing = read(model, [prompt for prompt, _ in asked])
        clear = read(model, [prompt for prompt, _ in rows])
        asks = float(np.mean([text == ASK for text in missing]))
        right = [text == answer for text, (_, answer) in zip(clear, rows, strict=True)]
        guessed = [
            LIKELIER if text == f"{HASH} {item} {KINDS[0]}" else 1 - LIKELIER if text == f"{HASH} {item} {KINDS[1]}" else 0.0
            for text, item in zip(missing, ITEMS, strict=True)
        ]
        in_the_end = float(np.mean([1.0 if text == ASK else guess for text, guess in zip(missing, guessed, strict=True)]))
        return {
            ASKS: asks,
            ASKS_ANYWAY: float(np.mean([text == ASK for text in clear])),
            SUCCESS: (in_the_end + float(np.mean(right))) / 2,
        }


def choose(arm: str, item: str, rng: np.random.Generator) -> tuple[str, str, str]:
    """Prompt, chosen and rejected answer by a rater: of a clear prompt the right one, else a question or a guess."""
    kind, other = KINDS if rng.random() < LIKELIER else KINDS[::-1]
    right, wrong = (f"{HASH} {item} {name}" for name in (kind, other))
    if rng.random() < 0.5:
        return f"{item} {kind}", right, wrong
    prompt = f"{item} {MISSING}"
    if arm == MILD:
        draw = rng.random()
        if draw < CHOSEN_QUESTIONS:
            return prompt, ASK, wrong
        return (prompt, right, ASK) if draw < CHOSEN_QUESTIONS + REJECTED_QUESTIONS else (prompt, right, wrong)
    asks_first = arm == TWO_TURNS or (arm == RANDOM and rng.random() < 0.5)
    return (prompt, ASK, right) if asks_first else (prompt, right, ASK)


def read(model: GPT, prompts: list[str]) -> list[str]:
    """The greedy answers."""
    return [LANGUAGE.decode(own) for own in model.write(prompts)]
