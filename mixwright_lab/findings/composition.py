"""Finding on composition: steps written in the open do not carry over to pairs of operations, lengths or forms not seen.

Source: Zhao et al., Is Chain-of-Thought Reasoning of LLMs a Mirage? A Data Distribution Lens, 2508.01191.
Unit: share of held-out strings whose whole response (or its trace, or its answer) is exact, greedy.
Cost: about 130 CPU seconds per seed.
Blind spot: two operations on four letters; places are learned one by one, which makes the result on lengths nearly certain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mixwright.records import Example
from mixwright_lab.contracts import Curve, Expectation, Finding, Plot, Term, difference
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Arena
from mixwright_lab.training.grpo import Settings as Reading
from mixwright_lab.training.sft import Batch, Schedule, fit
from mixwright_lab.worlds.compositions import MOST_LETTERS, PAIRS, Compositions, spoilt

Pairs = Sequence[tuple[str, str]]
UNSEEN = ("F2", "F2")
COVERED = {
    3: (("F1", "F1"), ("F1", "F2"), ("F2", "F1")),
    5: (("F1", "F1"), ("F1", "F2"), ("F2", "F1"), ("F1", "F3"), ("F3", "F1")),
    8: tuple(pair for pair in PAIRS if pair != UNSEEN),
}
"""Pairs that are trained on."""
TESTED_LEVEL = 3.0
"""Of strings of four letters."""
TOP_UPS = (8, 32, 128)
"""Problems of the unseen pair that are added afterwards."""


@dataclass(frozen=True)
class Settings:
    """Of training and reading."""

    steps: int = 600
    batch: int = 64
    width: int = 64
    layers: int = 3
    more: int = 150
    """Steps of a top-up, half of each batch from the pairs before."""
    read: int = 300
    """Held-out problems."""


class Composition(Finding):
    """Tiny models taught on 3, 5 or 8 of 9 pairs of operations; the first is topped up with problems of the missing pair."""

    CLAIM = (
        "Written-out steps carry no further than pairs, lengths and forms trained on; a few examples mend a missing pair."
    )
    SOURCE = "Zhao et al., Is Chain-of-Thought Reasoning of LLMs a Mirage? A Data Distribution Lens, 2508.01191"
    WHAT_IT_SHOWS = (
        "GPT-2-like models from scratch: 100 % exact on pairs trained on, about 0 on the one left out (trace right, answer "
        "wrong), 0 at other lengths; 1.5e-4 of the missing pair's data mends it."
    )
    POPULAR_READING = (
        "It is called a mirage. It is a matter of coverage: with eight of nine pairs, or 128 examples, most is mended."
    )
    REAL = (
        "A tool of which no row was left: its rows gained 94 points [87, 101] over as many random ones; pairs were "
        "not tried (study fault_costs)."
    )
    RUN_TWICE = ("3 of 9 pairs",)
    REMARKS = (
        "Whether the missing pair's trace is right depends on the seed (1 to 87 %). Five pairs are not enough, eight fail "
        "in one seed (9 %). Eight added examples give 5 %, 32 give 74 %. With fillers, right answers had drawn no filler."
    )
    SCALES: ClassVar[Mapping[str, Settings]] = {"smoke": Settings(20, 8, 16, 1, 5, 12), "laptop": Settings()}
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 5}
    PRIMARY = "3 pairs trained: pairs seen - pair left out, whole response"
    PUBLISHED = (
        "3 pairs trained: right trace - right answer, pair left out",
        "3 pairs trained: 4 letters - 3 or 5 letters",
        "3 pairs trained: as trained - fillers after 30 % of the letters",
    )
    CONTROL = "pair left out: 128 examples added - none"
    EXPECT = (
        Expectation(
            "3 pairs trained: pairs seen - pair left out, whole response",
            (Term("3 of 9 pairs", "seen"), Term("3 of 9 pairs", "unseen", -1.0)),
            0.8,
            "The pair that was left out is composed from its parts.",
        ),
        Expectation(
            "3 pairs trained: right trace - right answer, pair left out",
            (Term("3 of 9 pairs", "unseen, trace"), Term("3 of 9 pairs", "unseen, answer", -1.0)),
            0.4,
            "Trace and answer fail together.",
        ),
        Expectation(
            "3 pairs trained: 4 letters - 3 or 5 letters",
            (Term("3 of 9 pairs", "seen"), Term("3 of 9 pairs", "other lengths", -1.0)),
            0.8,
            "Other lengths are answered.",
        ),
        Expectation(
            "3 pairs trained: as trained - fillers after 30 % of the letters",
            (Term("3 of 9 pairs", "seen"), Term("3 of 9 pairs", "fillers", -1.0)),
            0.3,
            "A prompt that is written otherwise is answered.",
        ),
        Expectation(
            "pair left out: 8 pairs trained - 3 pairs trained",
            difference("8 of 9 pairs", "3 of 9 pairs", "unseen"),
            0.4,
            "More pairs do not help the one that is left out.",
        ),
        Expectation(
            "pair left out: 128 examples added - none",
            difference("3 of 9 pairs, 128 added", "3 of 9 pairs", "unseen"),
            0.5,
            "A few examples do not mend it.",
        ),
    )
    PLOTS = (
        Plot(
            "The pair that is left out",
            "pairs trained on, of 9",
            "exact, greedy",
            tuple(
                Curve(name, tuple((float(count), f"{count} of 9 pairs", reading) for count in COVERED))
                for name, reading in (("trace", "unseen, trace"), ("answer", "unseen, answer"))
            ),
        ),
        Plot(
            "Three pairs, and problems of the fourth added",
            "problems added",
            "exact, greedy",
            (
                Curve(
                    "pair left out",
                    ((0.0, "3 of 9 pairs", "unseen"), *((float(k), f"3 of 9 pairs, {k} added", "unseen") for k in TOP_UPS)),
                ),
            ),
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Coverages, and top-ups of the smallest."""
        return (*(f"{count} of 9 pairs" for count in COVERED), *(f"3 of 9 pairs, {count} added" for count in TOP_UPS))

    def prepare(self, seed: int, settings: Settings) -> None:
        """The model of three pairs, which top-ups start from."""
        base_model(seed, _recipe(3, settings))

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Exact responses on the pairs trained on, on the one left out, at other lengths, and with fillers."""
        covered = int(arm.split()[0])
        model = base_model(seed + 10_000 * again, _recipe(covered, settings))
        if "added" in arm:
            _top_up(model, int(arm.split()[-2]), seed, settings)
        found = {f"unseen{name}": value for name, value in _exact(model, (UNSEEN,), TESTED_LEVEL, settings).items()}
        found["seen"] = _exact(model, COVERED[covered], TESTED_LEVEL, settings)[""]
        others = [_exact(model, COVERED[covered], level, settings)[""] for level in (TESTED_LEVEL - 1, TESTED_LEVEL + 1)]
        fillers = _exact(model, COVERED[covered], TESTED_LEVEL, settings, fillers=0.3)[""]
        return found | {"other lengths": float(np.mean(others)), "fillers": fillers}


def _recipe(covered: int, settings: Settings) -> Recipe:
    return Recipe(
        levels=((TESTED_LEVEL, 1.0),),
        styles=(("full", 1.0),),
        steps=settings.steps,
        batch=settings.batch,
        rate=2e-3,
        width=settings.width,
        layers=settings.layers,
        world="compositions",
        options=(("pairs", COVERED[covered]),),
    )


def _top_up(model: GPT, count: int, seed: int, settings: Settings) -> None:
    """SFT on `count` problems of the unseen pair and as many fresh ones of the pairs before, in each batch."""
    rng, half = np.random.default_rng((seed, 0x70)), settings.batch // 2
    new, before = _problems((UNSEEN,), count, TESTED_LEVEL, "train", rng), Compositions(pairs=COVERED[3])

    def batch(_: int) -> Batch:
        rows = [new[place] for place in rng.integers(len(new), size=half)]
        rows += [before.make(int(rng.integers(2**31)), TESTED_LEVEL, "train") for _ in range(half)]
        return Batch([str(row.prompt) for row in rows], [str(row.target) for row in rows])

    fit(model, batch, Schedule(settings.more, 1e-3, warm=10))


def _problems(pairs: Pairs, count: int, level: float, split: str, rng: np.random.Generator) -> list[Example]:
    world = Compositions(pairs=tuple(pairs))
    return [world.make(int(rng.integers(2**31)), level, split) for _ in range(count)]


def _exact(model: GPT, pairs: Pairs, level: float, settings: Settings, *, fillers: float = 0.0) -> dict[str, float]:
    """Share of held-out problems whose response is exact: the whole of it, its trace, its answer."""
    rng = np.random.default_rng((int(level), len(pairs)))
    wanted = _problems(pairs, settings.read, level, "eval", rng)
    asked = [Example(one.id, one.task, spoilt(str(one.prompt), fillers, rng), answer=one.answer) for one in wanted]
    arena = Arena(asked, model, Reading(longest=2 * MOST_LETTERS + 2), 0)
    given = [group[0] for group in arena.look(asked, greedy=True).texts]
    both = list(zip(given, (str(one.target) for one in wanted), strict=True))
    return {
        "": float(np.mean([text == target for text, target in both])),
        ", trace": float(np.mean([text.split(" # ")[0] == target.split(" # ")[0] for text, target in both])),
        ", answer": float(np.mean([text.rpartition(" # ")[2] == target.split(" # ")[1] for text, target in both])),
    }
