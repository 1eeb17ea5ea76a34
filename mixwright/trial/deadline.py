"""Time that a run may take: whole seeds are trained as long as they fit, and none is begun that would not."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from mixwright.errors import InputError
from mixwright.estimates.judgement import MIN_SEEDS
from mixwright.run.progress import format_duration

if TYPE_CHECKING:
    from mixwright.trial.jobs import Trial

MAX_TIMES_SEEDS = 2.0
"""Times the seeds of the settings that are trained at most, where time is left."""
LATE_SHARE, LATE_SHARE_OF_MIN_SEEDS = 0.05, 0.2
"""Shares of the budget by which seeds that were asked for may end late, and the fewest seeds that allow any word."""


class Deadline:
    """The clock of one run."""

    def __init__(self, minutes: float, *, began: float | None = None, clock: Callable[[], float] = monotonic) -> None:
        """Start the clock.

        Args:
            minutes: that the run may take; 0 for any number.
            began: reading of the clock when the command was given; None: now.
            clock: seconds.
        """
        self.seconds, self._clock, self._began = 60 * minutes, clock, clock() if began is None else began
        self.seed_seconds = 0.0
        """What one seed of all arms took last, when as many ran as there are workers; 0 where none was timed."""

    @property
    def seconds_spent(self) -> float:
        """Seconds spent."""
        return self._clock() - self._began

    @property
    def seconds_left(self) -> float:
        """Seconds; infinite where there is no limit."""
        return self.seconds - self.seconds_spent if self.seconds else float("inf")

    def allows(self, branches: int, *, arms: int, workers: int, late_share: float = LATE_SHARE) -> bool:
        """Return whether so many branches can be trained in time, by what a seed of so many arms took.

        Args:
            branches: to train.
            arms: that a seed trains; 0 counts as one.
            workers: processes.
            late_share: share of the budget by which they may end late.
        """
        seconds_needed = self.seed_seconds * workers * math.ceil(branches / workers) / max(arms, 1)
        return seconds_needed <= self.seconds_left + late_share * self.seconds


def seeds_that_fit(deadline: Deadline, *, finished: int, planned: int, arms: int, workers: int) -> int:
    """Return how many seeds to train next: enough to keep the workers busy, fewer at the end, 0 where no further one fits.

    Args:
        deadline: of the run, with the seconds that a seed took.
        finished: seeds that are finished.
        planned: seeds that the settings ask for.
        arms: that are trained.
        workers: processes.
    """
    further = planned - finished if finished < planned else int(MAX_TIMES_SEEDS * planned) - finished
    for seeds in range(min(workers, further), 0, -1):
        late_share = 0.0
        if finished + seeds <= MIN_SEEDS:
            late_share = LATE_SHARE_OF_MIN_SEEDS
        elif finished + seeds <= planned:
            late_share = LATE_SHARE
        if not finished or deadline.allows(seeds * arms, arms=arms, workers=workers, late_share=late_share):
            return seeds
    return 0


def train_within(
    trial: Trial, arms: Sequence[str], deadline: Deadline, say: Callable[[str], None]
) -> tuple[Trial, list[str]]:
    """Train the arms on as many seeds as fit into the time, paired; return the trial with these seeds, and notes on them.

    The number of seeds follows from the clock alone, so it says nothing of what came out. Without a limit all planned seeds
    are trained.

    Args:
        trial: what is tried.
        arms: references and levers.
        deadline: of the run.
        say: told what was left out, or added.

    Raises:
        InputError: the time was used up before the first seed, which is not finished.
    """
    if not deadline.seconds:
        trial.train(trial.arm_jobs(arms))
        return trial, []
    one_seed = with_seeds(trial, 1)
    if deadline.seconds_left <= 0 and one_seed.unfinished(one_seed.arm_jobs(arms)):
        expected = f"a budget of {format_duration(deadline.seconds_spent)} or more, plus time for one seed of every arm"
        remedy = "Allow more time (--budget, trial.budget_minutes). Finished work is kept, and the same command resumes."
        raise InputError(expected, format_duration(deadline.seconds), remedy)
    planned, finished = trial.config.trial.seeds, 0
    workers = trial.worker_count
    while seeds := seeds_that_fit(deadline, finished=finished, planned=planned, arms=len(arms) - 1, workers=workers):
        extended = with_seeds(trial, finished + seeds)
        jobs, began = extended.arm_jobs(arms), deadline.seconds_spent
        missing_jobs = len(extended.unfinished(jobs))
        extended.train(jobs, f"trial, seeds {finished + 1} to {finished + seeds} of about {max(planned, finished + seeds)}")
        finished += seeds
        if missing_jobs == seeds * len(arms) and seeds == min(workers, planned):  # else some workers had nothing to do
            deadline.seed_seconds = (deadline.seconds_spent - began) / seeds
            took, left = format_duration(deadline.seed_seconds), format_duration(deadline.seconds_left)
            say(f"  budget: one seed takes {took}, {left} left")
    if finished == planned:
        return trial, []
    why = "the budget allowed no more" if finished < planned else "time was left"
    note = f"every arm was trained on {finished} seeds instead of {planned}, because {why}."
    say(f"  seeds: {note}")
    return with_seeds(trial, finished), [note]


def with_seeds(trial: Trial, seeds: int) -> Trial:
    """Return the trial with another number of seeds, the first ones being the same."""
    return replace(trial, config=replace(trial.config, trial=replace(trial.config.trial, seeds=seeds)))
