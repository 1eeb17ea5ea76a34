"""Finding on heuristics: a salient cue decides against a need that the model knows, where no row made it use that need.

Source: Li et al., The model says walk: how surface heuristics override implicit constraints, 2603.29025, and 2608.12321.
Unit: share of the answers, greedy.
Cost: about 60 CPU seconds per seed.
Blind spot: needs and cues are single words; the sources test prompts on large models, and train none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from mixwright_lab.contracts import Expectation, Finding, Term, difference
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import HASH, MARK, SIGNS, Language
from mixwright_lab.training.sft import Schedule, fit_rows

GOALS, NEAR, FAR = 40, tuple("12345"), tuple("6789")
LANGUAGE = Language((*SIGNS, *(f"g{goal}" for goal in range(GOALS)), *NEAR, *FAR, "needs", "go", "car", "walk"), 4, 5)
NONE, ONE_SIDED, BOTH, THOUGHT = "no conflict rows", "conflict rows alone", "with their partners", "need first"
KNOWN, CONFLICT, HELD_OUT, PARTNER = "knows the need", "conflict, seen", "conflict, held-out goals", "need removed"


@dataclass(frozen=True)
class Settings:
    """Of rows and training."""

    steps: int = 1500
    width: int = 48
    held_out: int = 8
    """Goals with a need of which no decision is trained on."""


class Cues(Finding):
    """Who goes near walks and who goes far drives, but half of the goals need the car: rows teach needs, cue, or both."""

    CLAIM = "What a model knows of a need is not used where a cue decides in all rows: it follows the cue."
    SOURCE = "Li et al., The Model Says Walk, 2603.29025; LLMs Know the Constraint But Do Not Use It, 2608.12321"
    WHAT_IT_SHOWS = (
        "Large models take the near cue (six local ones: 0 % right on the car wash), though probes read the need in 88 %; "
        "12 of 14 do worse once the need is removed; naming needs first adds 5 points."
    )
    POPULAR_READING = "It is said that models do not know the need. They know it, and no row made them use it."
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {"checks/cues": ("conflict rows with partners - none, seen goals",)}
    REMARKS = (
        "Without conflict rows chance decides: two trainings on the same rows use the need in 10 and 100 % of the held-out "
        "goals. So the control misses its noise floor, and this world cannot show the claim. With partners all use it; "
        "conflict rows alone make every near goal take the car."
    )
    REAL = "Where the cue conflicts, minimal pairs gained 60 points [48, 73] over as many random rows (study fault_costs)."
    RUN_TWICE = (NONE,)
    SCALES: ClassVar[Mapping[str, Settings]] = {"smoke": Settings(8, 16), "laptop": Settings()}
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 6}
    PRIMARY = "knows the need - decides by it, held-out goals, no conflict rows"
    PUBLISHED = (
        "need removed: conflict rows with partners - conflict rows alone",
        "held-out goals: need first - direct, with partners",
    )
    CONTROL = "conflict rows with partners - none, seen goals"
    EXPECT = (
        Expectation(
            PRIMARY,
            (Term(NONE, KNOWN), Term(NONE, HELD_OUT, -1.0)),
            0.3,
            "What is known is used without any row that shows it.",
        ),
        Expectation(
            PUBLISHED[0], difference(BOTH, ONE_SIDED, PARTNER), 0.1, "Conflict rows alone teach no habit of caution."
        ),
        Expectation(PUBLISHED[1], difference(THOUGHT, BOTH, HELD_OUT), 0.1, "To name the need first helps nothing."),
        Expectation(CONTROL, difference(BOTH, NONE, CONFLICT), 0.3, "Rows with conflicts do not teach to use the need."),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """What decisions the rows hold, and whether the need is named first."""
        return NONE, ONE_SIDED, BOTH, THOUGHT

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Train on needs and decisions, and ask both."""
        rng = np.random.default_rng((seed, 15))
        needing = rng.permutation(GOALS)[: GOALS // 2].tolist()
        unseen, free = needing[: settings.held_out], [goal for goal in range(GOALS) if goal not in needing]
        torch.manual_seed(seed + 1000 * again)
        model, order = GPT(LANGUAGE, settings.width), np.random.default_rng((seed, again))
        needs = [(f"needs g{goal}", f"{HASH} {car_or_walk(goal in needing)}") for goal in range(GOALS)]
        decisions = [
            (goal, place)
            for goal in range(GOALS)
            for place in (*NEAR, *FAR)
            if goal not in unseen
            and not (arm == NONE and goal in needing and place in NEAR)
            and not (arm == ONE_SIDED and goal not in needing and place in NEAR)
        ]
        rows = [write(goal, place, goal in needing, thought=arm == THOUGHT) for goal, place in decisions]
        weight = max(len(rows) // len(needs), 1)
        fit_rows(model, rows + needs * weight, Schedule(settings.steps, 3e-3), order)

        def share(prompts: list[str], wanted: str) -> float:
            made = [LANGUAGE.decode(own).split() for own in model.write(prompts)]
            return float(np.mean([words[-1:] == [wanted] for words in made]))

        def near(goals: list[int]) -> list[str]:
            return [f"go g{goal} {place}" for goal in goals for place in NEAR]

        return {
            KNOWN: share([f"needs g{goal}" for goal in unseen], "car"),
            CONFLICT: share(near([goal for goal in needing if goal not in unseen]), "car"),
            HELD_OUT: share(near(unseen), "car"),
            PARTNER: share(near(free), "walk"),
        }


def car_or_walk(car: bool) -> str:
    """The word of an answer."""
    return "car" if car else "walk"


def write(goal: int, place: str, needed: bool, *, thought: bool) -> tuple[str, str]:
    """A decision as a prompt and its answer, with the need before it if it is thought of."""
    answer = f"{HASH} {car_or_walk(needed or place in FAR)}"
    return f"go g{goal} {place}", f"{MARK} {car_or_walk(needed)} {answer}" if thought else answer
