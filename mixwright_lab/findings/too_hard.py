"""Finding on over-hard problems: reinforcement learning on what is hardly ever solved harms what is solved already.

Source: Cheng et al., Mechanistically interpreting the role of sample difficulty in RLVR for LLMs, 2605.28388.
Unit: success on held-out problems of 1 to 6 operations, sampled at temperature 1, levels counted alike.
Cost: about 95 CPU seconds per seed, and 33 for its base.
Blind spot: a tiny model, Adam and a high learning rate; the problems are out of reach, not merely hard, and the gate knows
from the pool which problems belong together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from mixwright_lab.contracts import Expectation, Plot, Term, difference
from mixwright_lab.hard_runs import FROZEN, LOSSES, MEDIUM, OUT_OF_REACH, HardRuns, Way, arm_name, known_curve

MIX = {8: 0.75, 5: 0.125, 6: 0.125}
WAYS: Mapping[str, Way] = {
    "medium": Way(MEDIUM),
    "hard": Way(OUT_OF_REACH),
    "mixed": Way(MIX),
    "hard, gate": Way(OUT_OF_REACH, gate=True),
    "hard, KL 0.1": Way(OUT_OF_REACH, beta=0.1),
    "hard, random": Way(OUT_OF_REACH, random=True),
}
"""A quarter of the mixed problems is in reach. The random arm is a reading here; `shortcuts` judges it."""


def _recovery_terms(way: str) -> tuple[Term, ...]:
    """How far an arm ends above halfway between training on hard problems alone and not training, mean of both losses."""
    found = [Term(FROZEN, "known", -0.5)]
    for loss in LOSSES:
        found += [Term(arm_name(way, loss), "known", 0.5), Term(arm_name("hard", loss), "known", -0.25)]
    return tuple(found)


class TooHard(HardRuns):
    """GRPO from one base on problems in reach, out of reach, or both, with guards, and both token normalisations."""

    WAYS = WAYS
    CLAIM = (
        "Reinforcement learning on problems that are hardly ever solved harms those that are solved already, and on medium "
        "ones improves them; some medium problems among them, a KL leash or the gate `too_hard` each prevent half the harm."
    )
    SOURCE = "Cheng et al., Mechanistically Interpreting the Role of Sample Difficulty in RLVR for LLMs, 2605.28388"
    WHAT_IT_SHOWS = (
        "MATH with GRPO, three models: training on medium problems is best in all three; training on problems with no "
        "success in 8 tries lowers the benchmark average by 5.75, 11.24 and 1.07 points (read in secondary sources). The "
        "remedies tried here are ours: the authors rewrite hard problems."
    )
    POPULAR_READING = (
        "It is said that hard problems harm and should be dropped. Elsewhere the hardest tenth gains most (2508.14094): "
        "there hard is a low success above 0, and hard problems stay in the mix."
    )
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "gates/too_hard": ("gate too_hard - halfway from hard only to before",),
        "controllers/drift": ("KL 0.1 - halfway from hard only to before",),
    }
    REMARKS = (
        "Harm, gain by medium problems, mixing and KL come out as claimed. Only the gate (here with scaled steps for "
        "the groups that remain) makes the result inconclusive: all it can do is train less. Medium problems are in "
        "part the known ones (levels 5, 6), and their gain is sampled success; greedily it is -0.3 points."
    )
    PRIMARY = "before - hard only, dapo loss, known problems"
    PUBLISHED = ("before - hard only, grpo loss, known problems",)
    CONTROL = "medium only - before, known problems"
    EXPECT = (
        *(
            Expectation(
                f"before - hard only, {loss} loss, known problems",
                difference(FROZEN, arm_name("hard", loss), "known"),
                0.10,
                "Training on problems out of reach costs the problems in reach less than a tenth.",
            )
            for loss in LOSSES
        ),
        Expectation(
            "medium only - before, known problems",
            (*(Term(arm_name("medium", loss), "known", 0.5) for loss in LOSSES), Term(FROZEN, "known", -1.0)),
            0.05,
            "Medium problems do not improve what the model knows.",
        ),
        Expectation(
            "a quarter of medium problems - halfway from hard only to before",
            _recovery_terms("mixed"),
            0.05,
            "Medium problems among the hard ones leave more than half the harm.",
        ),
        Expectation(
            "KL 0.1 - halfway from hard only to before",
            _recovery_terms("hard, KL 0.1"),
            0.05,
            "A KL leash leaves more than half the harm.",
        ),
        Expectation(
            "gate too_hard - halfway from hard only to before",
            _recovery_terms("hard, gate"),
            0.05,
            "The gate leaves more than half the harm.",
        ),
    )
    PLOTS = (
        Plot(
            "Success on problems that the model knew before, while it trains on others",
            "share of the GRPO steps",
            "success",
            tuple(known_curve(way) for way in ("medium", "hard", "mixed", "hard, KL 0.1")),
        ),
    )
