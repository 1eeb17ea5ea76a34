"""Finding on embers: answers that are improbable as text are wrong more often, though the task is a rule.

Source: McCoy et al., Embers of autoregression, 2309.13638.
Unit: share of answers that are right to the last letter, greedy; all have `LETTERS_EACH` letters.
Cost: about 100 CPU seconds per seed.
Blind spot: two rules on five letters; what is probable is a chain of letters, and no language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from mixwright_lab.contracts import Expectation, Finding, Term, difference
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import SIGNS, Language
from mixwright_lab.training.sft import Schedule, fit_rows

LETTERS, LETTERS_EACH, SHIFTS = tuple("abcdefghijkl"), 5, {"common": 3, "rare": 5}
LANGUAGE = Language((*SIGNS, *LETTERS, "text", "back", *SHIFTS), LETTERS_EACH + 2, LETTERS_EACH + 1)
FEW, MORE, ANY = "few rows, probable answers", "the same, and improbable ones", "as many rows, any answers"
PROBABLE, IMPROBABLE, COMMON, RARE = "probable answers", "improbable answers", "common shift", "rare shift"


@dataclass(frozen=True)
class Settings:
    """Of rows and training."""

    texts: int = 4000
    """Probable texts to learn from, without a task."""
    rows: int = 600
    """Of the rule "backward"."""
    added: int = 100
    """Rows with improbable answers in their place."""
    shifts: int = 1200
    """Rows of the common shift; the rare one has a thirtieth of them."""
    steps: int = 2000
    test: int = 200


class Embers(Finding):
    """Words are read backward, or shifted, by a model that has read much text of which some is probable."""

    CLAIM = "A model is right more often where the right answer is probable as text, and where the task is common."
    SOURCE = "McCoy et al., Embers of Autoregression, 2309.13638, PNAS 2024"
    WHAT_IT_SHOWS = (
        "GPT-4 reads words backward right in 97 % if they are probable and 53 % if not, and decodes rot-13 in 51 and 13 %; "
        "rot-2 is harder than rot-13, which is commoner. Length alone foretells much of it (area .68, with probability .79)."
    )
    POPULAR_READING = (
        "It is said that models fail where answers are improbable. Ten rows of such answers mended it for one task."
    )
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    REMARKS = (
        "So pure a prior makes the difference nearly whole: 97 points, where the source has 13 to 44. A hundred rows with "
        "improbable answers, a sixth of all, mend it whole, as ten and a hundred examples did for one task of the source."
    )
    REAL = (
        "Sentences are copied without a fault in 72 %, the same words in an order of chance in 25 %: 47 points [37, "
        "57] over five draws. How common a task is was not tried (study real_forward)."
    )
    RUN_TWICE = (FEW,)
    SCALES: ClassVar[Mapping[str, Settings]] = {"smoke": Settings(40, 30, 8, 30, 8, 20), "laptop": Settings()}
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 6}
    PRIMARY = "backward: probable answers - improbable ones"
    PUBLISHED = ("shifts: the common one - the rare one",)
    CONTROL = "backward, improbable answers: rows of any answers - rows of probable ones"
    EXPECT = (
        Expectation(
            PRIMARY,
            (Term(FEW, PROBABLE), Term(FEW, IMPROBABLE, -1.0)),
            0.2,
            "Improbable answers are right as often.",
        ),
        Expectation(
            PUBLISHED[0],
            (Term(FEW, COMMON), Term(FEW, RARE, -1.0)),
            0.2,
            "How common a task is does not matter.",
        ),
        Expectation(CONTROL, difference(ANY, FEW, IMPROBABLE), 0.1, "The rule cannot be learnt for such answers."),
        Expectation(
            "backward, improbable answers: a hundred such rows - none",
            difference(MORE, FEW, IMPROBABLE),
            0.1,
            "Rows with improbable answers mend nothing.",
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Which answers the rows of the rule have."""
        return FEW, MORE, ANY

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Train on texts and rows, and ask for probable and improbable answers."""
        rng = np.random.default_rng((seed, 21))
        follow = np.stack([rng.permutation(len(LETTERS))[:2] for _ in LETTERS])
        probable = [draw(follow, rng) for _ in range(settings.texts + settings.rows + settings.shifts)]
        improbable = [tuple(rng.integers(len(LETTERS), size=LETTERS_EACH).tolist()) for _ in range(settings.rows)]
        answers = improbable if arm == ANY else probable[: settings.rows]
        if arm == MORE:
            answers = answers[settings.added :] + improbable[: settings.added]
        rows = [row(answer, "back") for answer in answers]
        for name, count in zip(SHIFTS, (settings.shifts, max(settings.shifts // 30, 1)), strict=True):
            rows += [row(answer, name) for answer in probable[settings.rows : settings.rows + count]]
        rows += [("text", write(text)) for text in probable[settings.rows + settings.shifts :]]
        torch.manual_seed(seed + 1000 * again)
        model = GPT(LANGUAGE)
        fit_rows(model, rows, Schedule(settings.steps, 3e-3), np.random.default_rng((seed, again)))
        known, fresh = set(answers), np.random.default_rng((seed, 210))

        def right(task: str, *, any_text: bool = False) -> float:
            texts = list[tuple[int, ...]]()
            while len(texts) < settings.test:
                text = tuple(fresh.integers(len(LETTERS), size=LETTERS_EACH).tolist()) if any_text else draw(follow, fresh)
                texts += [text] if text not in known else []
            asked, wanted = zip(*(row(text, task) for text in texts), strict=True)
            return float(
                np.mean([LANGUAGE.decode(own) == text for own, text in zip(model.write(asked), wanted, strict=True)])
            )

        found = {PROBABLE: right("back"), IMPROBABLE: right("back", any_text=True)}
        return found | {COMMON: right("common"), RARE: right("rare")}


def draw(follow: np.ndarray, rng: np.random.Generator) -> tuple[int, ...]:
    """Draw a probable text: after each letter comes one of two."""
    text = [int(rng.integers(len(LETTERS)))]
    while len(text) < LETTERS_EACH:
        text.append(int(follow[text[-1], rng.integers(2)]))
    return tuple(text)


def write(text: tuple[int, ...]) -> str:
    """Write letters with spaces between them."""
    return " ".join(LETTERS[letter] for letter in text)


def row(answer: tuple[int, ...], task: str) -> tuple[str, str]:
    """Return the prompt to which a text is the answer, and the answer."""
    shift = SHIFTS.get(task, 0)
    asked = answer[::-1] if task == "back" else tuple((letter - shift) % len(LETTERS) for letter in answer)
    return f"{task} {write(asked)}", write(answer)
