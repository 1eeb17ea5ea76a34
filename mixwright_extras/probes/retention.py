"""Probe of how long a rare task's gain lasts while others are trained: a short burst on it, then common tasks only.

On a copy of the model, against a copy without the burst: what the burst gained (nats per token), the share of the gain that
is left after n steps on other tasks, and the half-life of the gain in steps. Also the held-out loss of every task, and how
much the burst raised that of common ones. Not among the default probes: it trains.
In a run it is made wherever `measure.probes` is read: before, and after each branch of a trial.

Source: rare-task retention of 2605.29548; burst with a fresh optimiser and control are ours, from first runs in which bursts
    of 5 steps, or with the run's own optimiser, gained nothing that could be kept.
Unit: nats per token; share of the gain; steps
Cost: `burst` + `after` training steps per rare task and `after` for the control, reported as `rows_trained` and `rows_read`.
Blind spot: one burst per task, so intervals cover held-out rows, not the chance of the draws; forgetting slows down, so a
half-life fitted to `after` steps is short for longer ones; the state of a real run's optimiser differs.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np

from mixwright.extend import MAX_LEARNING_RATE, Corpus, InputError, Measurement, Passes, Probe, RowLosses, check_range
from mixwright_extras.orders.bursts import Burst, watch_bursts
from mixwright_extras.probes._rows import rows_by_task

NEEDS = ("torch", "transformers")

OPTION_LIMITS = {"rare": (0, 1), "learning_rate": (1e-12, MAX_LEARNING_RATE), "items": (2, 1e6)}
OPTION_LIMITS |= dict.fromkeys(("most", "burst", "after", "batch"), (1, 1e6))


class Retention(Probe):
    """`loss` of every task; `burst_gain`, `burst_rows`, `common_rise`, `retained@n` and `half_life` of the rare ones.

    Rare are the at most `most` tasks with the fewest rows among those under `rare` of the training rows; the rarest one
    where none is under it. What was kept is reported only where the burst gained something (interval above 0).

    Args:
        rare: share of the training rows under which a task is rare.
        most: tasks to burst on, at most.
        burst: steps on the rare task.
        after: steps on common tasks.
        batch: rows per step.
        learning_rate: that of the run to come; bursts take half of it.
        items: held-out rows per task.
    """

    TRAINS = True

    def __init__(
        self,
        *,
        rare: float = 0.02,
        most: int = 8,
        burst: int = 30,
        after: int = 40,
        batch: int = 16,
        learning_rate: float = 5e-4,
        items: int = 32,
    ) -> None:
        self.rare, self.most, self.burst, self.after = rare, most, burst, after
        self.batch, self.learning_rate, self.items = batch, learning_rate, items
        check_range("measure.options.retention", vars(self), **OPTION_LIMITS)

    def measure(self, passes: Passes, corpus: Corpus, rng: np.random.Generator) -> list[Measurement]:
        """See the class. Raises InputError when no row has a target, or too little is held out to read."""
        train = rows_by_task(corpus, "train") or rows_by_task(corpus, None)
        held_out = {task: rows for task, rows in (rows_by_task(corpus, "eval") or train).items() if len(rows) > 1}
        if not held_out:
            got = "fewer than two held-out rows in every task" if train else "none"
            expected = "training rows with targets, and held-out rows with targets"
            raise InputError(expected, got, "Use a corpus with both.")
        rows_to_read = {task: rng.choice(rows, min(len(rows), self.items), replace=False) for task, rows in held_out.items()}
        sizes = Burst(self.burst, self.after, self.batch, self.learning_rate)
        model = copy.deepcopy(passes.learner.model).eval()  # no dropout: the branches differ by the burst alone
        losses = RowLosses(passes.learner, corpus)
        rare = rarest(train, rows_to_read, self.rare, self.most)
        return watch_bursts(model, losses, train, rows_to_read, rare, sizes, rng)


def rarest(
    train: Mapping[str, np.ndarray], held_out: Mapping[str, np.ndarray], most_share: float, most_tasks: int
) -> list[str]:
    """The tasks to burst on, rarest first; none where no other task would be left to train on."""
    total = sum(map(len, train.values()))
    order = sorted((task for task in train if task in held_out), key=lambda task: (len(train[task]), task))
    rare_tasks = [task for task in order if len(train[task]) <= most_share * total][:most_tasks] or order[:1]
    return rare_tasks if set(rare_tasks) < set(train) and set(held_out) - set(rare_tasks) else []
