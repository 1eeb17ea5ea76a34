"""Finding on pruning in a tiny language model: hard examples where data are abundant, easy ones where they are scarce.

A GPT learns which of two numbers is larger. 30 % of its examples are kept: at random, or the hardest or easiest by a score
that costs a few short runs, within each answer, so that no end holds one answer only. Kept rows are trained on for as many
steps as all rows would be (each is seen more often) and for as many epochs (fewer steps).

Source: Sorscher et al., Beyond neural scaling laws: beating power law scaling via data pruning, 2206.14486; scores of Paul
    et al., 2107.07075 (EL2N) and Toneva et al., 1812.05159 (forgetting).
Unit: test error, levels weighted as in nature.
Cost: about 110 CPU seconds per seed.
Blind spot: a task with a boundary and many alike examples, trained for many epochs; language models see theirs one to three
times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from mixwright_lab.contracts import Curve, Expectation, Finding, Plot, difference
from mixwright_lab.pruned import KEPT_SHARE, Settings, at_random, best_of, el2n, error, examples, forgetting, trained

SCARCE, ABUNDANT = 100, 2400
SIZES = (SCARCE, 500, ABUNDANT)
"""Examples before pruning."""
ERROR_AT_EQUAL_STEPS = "error, as many steps"


def _error_of(
    size: int, worse: str, better: str, least: float, refuted: str, held_equal: str = "as many steps"
) -> Expectation:
    """Of one size: error of one way of keeping minus another's."""
    terms = difference(f"{worse}, {size} examples", f"{better}, {size} examples", f"error, {held_equal}")
    return Expectation(f"{size} examples, {held_equal}: {worse} - {better}", terms, least, refuted)


class PruningLanguage(Finding):
    """Comparison of numbers, 30 % of 100, 500 or 2,400 examples kept at random, hard or easy."""

    CLAIM = (
        "Scores from short runs tell what to keep: hard examples where data are abundant, easy ones where they are scarce."
    )
    SOURCE = "Sorscher et al., Beyond neural scaling laws: beating power law scaling via data pruning, 2206.14486"
    WHAT_IT_SHOWS = (
        "Theory and simulated perceptrons say which end to keep. On ImageNet most of ten metrics scale poorly, memorisation "
        "does best and is costly, distances to prototypes come near it without labels. There is no language model in it."
    )
    POPULAR_READING = (
        "It is said that 30 % of the rows, well chosen, are enough. That is a matter of abundance, of clean labels and of "
        "what is held equal: steps (kept rows are seen more often) or epochs (less compute)."
    )
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "miners/pruning": (
            "2400 examples, as many steps: random - hard",
            "2400 examples, as many epochs: random - hard",
            "100 examples, as many steps: random - easy",
        ),
    }
    REMARKS = (
        "With abundant data hard examples win by 1.3 points of error at as many steps; at as many epochs that is not "
        "certain, and the cost of the scoring runs is not counted. With 100 examples five seeds are inconclusive: 30 rows "
        "say little about four digits. The price of wrong labels is certain: the score picks them, and error is 56 %."
    )
    RUN_TWICE = (f"random, {ABUNDANT} examples",)
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(40, 16, proxies=1, proxy_steps=12, test=50),
        "laptop": Settings(),
    }
    PRIMARY = "2400 examples, as many steps: random - hard"
    PUBLISHED = (
        "100 examples, as many steps: random - easy",
        "100 examples, as many steps: hard - random",
    )
    CONTROL = "5 % wrong labels cost hard examples more than random ones, 2400 examples, as many steps"
    EXPECT = (
        *(
            _error_of(ABUNDANT, "random", "hard", least, refuted, budget)
            for budget, least, refuted in (
                ("as many steps", 0.005, "Hard examples lead to no smaller error where data are abundant."),
                ("as many epochs", 0.003, "What hard examples gain is the repetition, not the choice."),
            )
        ),
        _error_of(SCARCE, "random", "easy", 0.03, "Easy examples lead to no smaller error where data are scarce."),
        _error_of(SCARCE, "hard", "random", 0.02, "Hard examples do no harm where data are scarce."),
        Expectation(
            "5 % wrong labels cost hard examples more than random ones, 2400 examples, as many steps",
            (
                *difference("hard, noise, 2400 examples", "hard, 2400 examples", ERROR_AT_EQUAL_STEPS),
                *difference("random, 2400 examples", "random, noise, 2400 examples", ERROR_AT_EQUAL_STEPS),
            ),
            0.02,
            "A score from short runs does not pick wrong labels.",
        ),
    )
    PLOTS = (
        Plot(
            "Test error where 30 % of the examples are kept, as many steps",
            "examples before pruning",
            "test error",
            tuple(
                Curve(way, tuple((float(size), f"{way}, {size} examples", "error, as many steps") for size in SIZES))
                for way in ("random", "hard", "easy")
            ),
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Every way at every size, another score, and wrong labels."""
        ways = [f"{way}, {size} examples" for way in ("random", "hard", "easy") for size in SIZES]
        return (*ways, *(f"{way}, {ABUNDANT} examples" for way in ("forgotten", "random, noise", "hard, noise")))

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Test error after as many steps, and after as many epochs, as all rows would have."""
        way, size = arm.removesuffix(" examples").rsplit(", ", 1)
        rng = np.random.default_rng((seed, int(size)))
        rows = examples(int(size), 0.05 if way.endswith("noise") else 0.0, rng)
        if again:
            rng = np.random.default_rng((seed, int(size), 1))
        score = {"random": at_random, "forgotten": forgetting}.get(way.removesuffix(", noise"), el2n)(rows, settings, rng)
        kept = best_of(-score if way == "easy" else score, rows.answers)
        short = max(round(KEPT_SHARE * settings.steps), 1)
        found = {"wrong labels kept": float(rows.wrong[kept].mean())}
        for name, steps in (("error, as many steps", settings.steps), ("error, as many epochs", short)):
            found[name] = error(trained(rows, kept, steps, int(rng.integers(2**31)), settings), settings)
        return found
