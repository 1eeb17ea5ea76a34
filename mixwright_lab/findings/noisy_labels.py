"""Finding on students and teachers: labels of a teacher on fresh rows average its errors out, unless these are a rule.

Source: Shang et al., Knowledge distillation for enhancing Walmart e-commerce search relevance, 2505.07105.
Unit: accuracy on the eval split, places of the deciding digit weighted as in nature; of the biased place that place alone.
Cost: about 70 CPU seconds per seed.
Blind spot: teacher and student are alike in size, and labels stand for the source's margins of scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mixwright_lab.contracts import Expectation, Finding, Term, difference
from mixwright_lab.pruned import LANGUAGE, Rows, errors_by_level, examples, is_right, trained
from mixwright_lab.pruned import Settings as Training
from mixwright_lab.worlds.comparison import ANSWERS, shares

TEACHER, FEW, MANY, RIGHT = "teacher", "student, few labels", "student, many labels", "student, many right labels"
BIASED_TEACHER, BIASED = "biased teacher", "student of the biased teacher"
BIASED_PLACE = 2
"""Place of the deciding digit at which the biased teacher was taught the other answer."""
ALL, PLACE = "accuracy", "accuracy at the biased place"


TRAINING = Training()


@dataclass(frozen=True)
class Settings:
    """Of the rows and the trainings."""

    gold: int = 600
    """Rows that the teacher learns from."""
    noise: float = 0.15
    """Share of their labels that is wrong."""
    few: int = 600
    many: int = 9600
    """Fresh rows that the teacher labels."""
    training: Training = TRAINING


class NoisyLabels(Finding):
    """Students of a teacher with errors by chance, of one with a rule of errors, and of right labels."""

    CLAIM = (
        "A student trained on many rows that a teacher labelled is right more often than the teacher, and more labels help."
    )
    SOURCE = "Shang et al., Knowledge Distillation for Enhancing Walmart E-commerce Search Relevance, 2505.07105, WWW 2025"
    WHAT_IT_SHOWS = (
        "A small ranking model, trained on margins of a fine-tuned teacher's scores for far more pairs than have labels, "
        "gets better with more pairs and passes the teacher on human labels; tables could not be read."
    )
    POPULAR_READING = (
        "It is said that students beat their teachers. What varies is averaged out; a teacher's rule of errors is copied."
    )
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    REMARKS = (
        "The student passes its teacher by 4.9 points, and by 7.8 less where the teacher's errors are a rule. Labels stand "
        "for the source's margins of scores, so this is its claim and not its algorithm."
    )
    RUN_TWICE = (MANY,)
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(40, 0.15, 40, 80, Training(16, 16, test=40)),
        "laptop": Settings(),
    }
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 8}
    PRIMARY = "many labels of the teacher - the teacher itself"
    PUBLISHED = ("many labels - few labels",)
    CONTROL = "many right labels - the teacher itself"
    EXPECT = (
        Expectation(PRIMARY, difference(MANY, TEACHER, ALL), 0.01, "A student is no better than what it was taught by."),
        Expectation(PUBLISHED[0], difference(MANY, FEW, ALL), 0.01, "More rows with a teacher's labels teach no more."),
        Expectation(CONTROL, difference(RIGHT, TEACHER, ALL), 0.02, "The teacher leaves nothing to be learnt."),
        Expectation(
            "gain on all places - gain at the place of which the teacher has a wrong rule",
            (
                *difference(BIASED, BIASED_TEACHER, ALL),
                Term(BIASED, PLACE, -1.0),
                Term(BIASED_TEACHER, PLACE),
            ),
            0.01,
            "A student gets over a rule of errors as over chance.",
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Both teachers, and their students."""
        return TEACHER, FEW, MANY, RIGHT, BIASED_TEACHER, BIASED

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Train the teacher, have it label fresh rows, and train the student on them; returns the accuracy of either."""
        rng = np.random.default_rng((seed, 27))
        gold = examples(settings.gold, settings.noise, rng, flip=BIASED_PLACE if arm in (BIASED_TEACHER, BIASED) else None)
        how, every = settings.training, np.arange(settings.gold)
        model = trained(gold, every, how.steps, seed, how)
        if arm not in (TEACHER, BIASED_TEACHER):
            fresh = examples(settings.few if arm == FEW else settings.many, 0.0, rng)
            if arm != RIGHT:
                fresh = relabel(fresh, fresh.answers ^ ~is_right(model, fresh))
            model = trained(fresh, np.arange(len(fresh.answers)), how.steps, seed + 1 + 1000 * again, how)
        errors = errors_by_level(model, how)
        return {ALL: 1 - float(shares() @ errors), PLACE: 1 - float(errors[BIASED_PLACE - 1])}


def relabel(rows: Rows, answers: np.ndarray) -> Rows:
    """The rows with other answers."""
    responses = LANGUAGE.encode_responses([f"# {ANSWERS[answer]}" for answer in answers])
    return replace(rows, responses=responses, answers=answers)
