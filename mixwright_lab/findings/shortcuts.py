"""Finding on shortcuts: whether rare successes on over-hard problems teach one, or the weights only drift.

Source: Cheng et al., Mechanistically interpreting the role of sample difficulty in RLVR for LLMs, 2605.28388.
Unit: success on held-out problems of 1 to 6 operations, and shares of answers; sampled at temperature 1.
Cost: about 60 CPU seconds per seed, and 33 for its base.
Blind spot: a tiny model, whose only shortcuts are to answer at once and to say one answer; a larger one has more of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from mixwright_lab.contracts import Expectation, Plot, Term, difference
from mixwright_lab.hard_runs import LOSSES, OUT_OF_REACH, HardRuns, Way, arm_name, known_curve

WAYS: Mapping[str, Way] = {
    "hard": Way(OUT_OF_REACH),
    "hard, random": Way(OUT_OF_REACH, random=True),
    "guessable": Way(OUT_OF_REACH, biased=True),
    "guessable, random": Way(OUT_OF_REACH, biased=True, random=True),
}
"""Each with rewards as they are earned, and with the same rewards permuted within each group."""


def _beyond_permuted(way: str, reading: str, sign: float = 1.0) -> tuple[Term, ...]:
    """What earned rewards change beyond permuted ones, mean of both losses."""
    return tuple(
        Term(arm_name(name, loss), reading, weight * sign / 2)
        for name, weight in ((way, 1.0), (f"{way}, random", -1.0))
        for loss in LOSSES
    )


class Shortcuts(HardRuns):
    """GRPO on problems out of reach, with earned rewards and with the same rewards permuted within their groups."""

    WAYS = WAYS
    CLAIM = (
        "On problems that are hardly ever solved the rare success is a shortcut, and reinforcement learning makes a habit "
        "of it: known problems suffer more than from random rewards in such groups, and answers repeat and come at once."
    )
    SOURCE = "Cheng et al., Mechanistically Interpreting the Role of Sample Difficulty in RLVR for LLMs, 2605.28388"
    WHAT_IT_SHOWS = (
        "Where nearly all rollouts fail, successes are often skipped computation or lucky and repeated answers, and group "
        "normalisation gives them the largest advantage; in one run whose verifier accepts a bare answer the mean length "
        "falls from 511 to 46 tokens in 58 steps (read in secondary sources, which report no arm with random rewards)."
    )
    POPULAR_READING = (
        "It is said that hard problems teach shortcuts. Without random rewards beside them, drift by updates that hold no "
        "information looks the same."
    )
    REMARKS = (
        "The harm to known problems is that of permuted rewards: drift. What the reward does add is a habit: answers at "
        "once, and, where one answer can be guessed, that answer. Of the groups 19 to 23 % have a signal with permuted "
        "rewards, 28 % with earned ones: the null is close, not equal."
    )
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 8}
    PRIMARY = "hard - random rewards, share answered at once, known problems"
    PUBLISHED = ("hard - random rewards, share of the commonest answer, known problems",)
    CONTROL = "where an answer can be guessed: hard - random rewards, share of the commonest answer, known problems"
    EXPECT = (
        *(
            Expectation(
                f"random rewards - hard, {loss} loss, known problems",
                difference(arm_name("hard, random", loss), arm_name("hard", loss), "known"),
                0.05,
                "The same rewards, given out at random, harm as much: the harm is drift.",
            )
            for loss in LOSSES
        ),
        Expectation(
            "hard - random rewards, share of the commonest answer, known problems",
            _beyond_permuted("hard", "commonest answer"),
            0.10,
            "Answers repeat no more than under random rewards.",
        ),
        Expectation(
            "hard - random rewards, share answered at once, known problems",
            _beyond_permuted("hard", "at once"),
            0.10,
            "Computation is skipped no more often than under random rewards.",
        ),
        Expectation(
            "where an answer can be guessed: random rewards - hard, known problems",
            _beyond_permuted("guessable", "known", -1.0),
            0.05,
            "Even where a shortcut pays, it harms no more than random rewards.",
        ),
        Expectation(
            "where an answer can be guessed: hard - random rewards, share of the commonest answer, known problems",
            _beyond_permuted("guessable", "commonest answer"),
            0.10,
            "Even where a shortcut pays, it does not become a habit.",
        ),
    )
    PLOTS = (
        Plot(
            "Success on problems that the model knew before, while it trains on problems out of reach",
            "share of the GRPO steps",
            "success",
            tuple(known_curve(way) for way in WAYS),
        ),
    )
