"""Miner that keeps the hard or the easy rows of each task, whichever short runs on this model show to be better.

Rows are ranked within their task by EL2N, how far the model's predictions are from the target. Which end is worth keeping
depends on how abundant data are for this model, so that copies of it are trained for a few steps on the hard, the easy and
random rows; where neither end beats random rows beyond doubt, all rows are kept.

Source: Sorscher et al., 2206.14486 (which end depends on abundance; metrics differ); EL2N: Paul et al., 2107.07075. Ayed and
    Hayou, 2302.06960: at 30 % or less random rows are hard to beat.
Unit: EL2N, mean over target tokens of the length of (probabilities - one-hot); weight 1 for each row.
Cost: three short runs of a copy per subset (`steps` x `runs` x 3 optimiser steps), beyond the scan.
Blind spot: wrong labels look hard: hard rows are then the worst choice, which short runs see only in part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from mixwright.contracts import Miner
from mixwright.errors import InputError, within
from mixwright.mine.choosing import best_within, train_rows
from mixwright.mine.proxies import Proxies, crossover
from mixwright.records import Mined, MinedRow

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner
    from mixwright.measure.scan import Scan

FEW = 0.3
"""Share of kept rows up to which random rows are hard to beat (2302.06960)."""


class Pruning(Miner):
    """The harder or the easier share of each task, or all of it.

    Args:
        keep: share of each task's rows to keep.
        end: hard, easy, or auto: the crossover test decides.
        steps: optimiser steps of each short run.
        runs: subsets that the test is made on.
        batch: rows per step.
        learning_rate: of the short runs; take the run's own.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = ("el2n",)
    MODEL: ClassVar[bool] = True

    def __init__(
        self,
        *,
        keep: float = 0.5,
        end: Literal["auto", "hard", "easy"] = "auto",
        steps: int = 100,
        runs: int = 2,
        batch: int = 16,
        learning_rate: float = 5e-4,
    ) -> None:
        if end not in ("auto", "hard", "easy"):
            raise InputError("end: auto, hard or easy", repr(end), "Correct mine.options.pruning.end.")
        self.keep, self.end, self.steps, self.runs = keep, end, steps, runs
        self.batch, self.learning_rate = batch, learning_rate
        limits = {"keep": (1e-6, 1), "steps": (1, 1e6), "runs": (2, 100), "batch": (1, 1e5), "learning_rate": (1e-12, 1e3)}
        within("mine.options.pruning", {name: vars(self)[name] for name in limits}, **limits)

    def mine(self, corpus: Corpus, scan: Scan, learner: Learner | None, rng: np.random.Generator) -> Mined:
        """Kept rows. Raises InputError without a model where the test is to decide, or with too few rows for it."""
        rows = train_rows(corpus, scan)
        scores = rows.column(scan, "el2n").astype(float)
        tasks, notes, end = list(rows.by_task().values()), [], self.end
        if end == "auto":
            if learner is None:
                raise InputError("a model for the crossover test", "none", "Give one, or set end to hard or easy.")
            sizes = Proxies(self.steps, self.batch, self.learning_rate, self.runs)
            found = crossover(learner, corpus, rows.numbers, tasks, scores, self.keep, sizes, rng)
            end = found.word
            notes += [
                f"{name} rows against random ones: {value:+.3g} nats per token [{low:.3g}, {high:.3g}] on rows held back, "
                f"after {self.steps} steps."
                for name, (value, low, high) in found.gains.items()
            ]
        if end == "keep all":
            notes.append("Neither end beats random rows beyond doubt: all rows are kept.")
            return Mined("pruning", tuple(MinedRow(name, 1.0, "all rows are kept") for name in rows.ids), notes=tuple(notes))
        if self.keep <= FEW:
            notes.append(f"Where {FEW:.0%} of the rows or less are kept, random rows are hard to beat: try it before use.")
        if end == "hard":
            worst = np.argsort(-np.nan_to_num(scores, nan=-np.inf))[:5]
            notes.append(f"Look at the hardest rows for wrong labels first: {', '.join(rows.ids[at] for at in worst)}.")
        chosen = best_within(scores if end == "hard" else -scores, tasks, self.keep)
        kept = tuple(MinedRow(rows.ids[at], 1.0, f"EL2N {scores[at]:.3g}: among the {end} of its task") for at in chosen)
        return Mined("pruning", kept, notes=tuple(notes))
