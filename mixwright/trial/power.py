"""Power and cost of a trial, from its settings, what was measured before, and the seeds that are finished."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mixwright.answers.score import read_scores
from mixwright.errors import InputError
from mixwright.estimates.judgement import MIN_SEEDS
from mixwright.estimates.outcome import MEASUREMENT_BY_DECODING, ItemScores, shared_items, weigh_items
from mixwright.estimates.power import (
    PRIOR_NOISE,
    TYPICAL_ITEM_SPREAD,
    Against,
    Noise,
    PowerCell,
    cells_of,
    noise_of,
    power,
)
from mixwright.estimates.readings import GRADED_OUTCOMES, outcome_of
from mixwright.measure.bases import base_name
from mixwright.records import Power
from mixwright.trial.arm_roles import UNTRAINED_ARM, choose_arms

if TYPE_CHECKING:
    from pathlib import Path

    from mixwright.config import RunConfig
    from mixwright.corpus import Corpus
    from mixwright.run.folder import RunFolder

MIN_FINISHED_SEEDS = 3
"""Finished seeds of two arms from which their noise is read."""
AGAINST_WORDS: dict[Against, str] = {"untrained": "from the untrained model", "trained": "from another trained arm"}


def foresee_power(config: RunConfig, run: RunFolder, corpus: Corpus, bases: Iterable[str | Path]) -> tuple[Power, ...]:
    """What the trial can see: against the untrained model, and against another trained arm; empty without graded rows.

    Args:
        config: seeds, items, decoding, arms.
        run: measurements of the starting models and finished branches are read from it, where it has some.
        corpus: tells the items where nothing was measured yet.
        bases: starting models.
    """
    if outcome_of(config.measure.probes, config.measure.decoding) not in GRADED_OUTCOMES:
        return ()  # earlier trials say nothing of the noise of a loss or of preferences
    before = [_read_scores(run.measurements(base_name(base))) for base in bases]
    before = [scores for scores in before if len(scores.items)]
    cells = cells_of(before, config.measure.samples) or _planned_cells(corpus, config.measure.items)
    if not cells:
        return ()
    arms = choose_arms(config, corpus, run)
    measured = (
        "success of the items as measured before" if before else "items of typical difficulty, because none was measured"
    )
    scores_by_arm = {arm: _read_finished_seeds(run, arm, config.trial.seeds) for arm in arms.always_run}
    measurement, powers = MEASUREMENT_BY_DECODING[config.measure.decoding], []
    kinds: tuple[Against, ...] = ("untrained", "trained")
    for kind in kinds:
        prior = PRIOR_NOISE[config.measure.decoding, kind]
        noise, seeds = _estimate_noise(scores_by_arm, measurement, kind, prior)
        source = f"{seeds} finished seeds of this run and earlier trials" if seeds else "earlier trials"
        basis = f"{measured}; noise between seeds of {100 * noise.seed_deviation:.1f} points, from {source}"
        family = max(len(arms.references), 1)
        powers.append(power(cells, config.trial.seeds, noise, kind, family=family, basis=basis))
    return tuple(powers)


def held_out_cells(corpus: Corpus) -> list[tuple[str, int]]:
    """Return the task and the number of held-out items of each cell."""
    held_out = corpus.select(split="eval")
    return [(cell.task, cell.count) for cell in held_out.cells()] if len(held_out) else []


def format_power(powers: Sequence[Power]) -> list[str]:
    """What a trial can see, in sentences; empty for nothing."""
    if not powers:
        return []
    first_power = powers[0]
    differences = " or ".join(
        f"{100 * foreseen.detectable:.1f} points {AGAINST_WORDS[foreseen.against]}" for foreseen in powers
    )
    too_few_seeds = first_power.seeds < MIN_SEEDS
    if too_few_seeds:
        lines = [f'can see nothing: with fewer than {MIN_SEEDS} seeds every result is "cannot tell"']
    else:
        sizes = f"{first_power.seeds} seeds, {first_power.items:,} held-out items"
        lines = [f"can see: a difference of {differences} (in 80 of 100 trials; {sizes})"]
    for foreseen in powers:
        if too_few_seeds or foreseen.detectable > foreseen.effect:
            needed = "more items, whatever the number of seeds"
            if foreseen.seeds_needed is not None:
                needed = f"{foreseen.seeds_needed} seeds on these items"
            items = "more items than is practical"
            if foreseen.items_needed is not None:
                items = f"{foreseen.items_needed:,} items on these seeds"
            needed += "" if too_few_seeds else f", or {items}"
            lines.append(f"{100 * foreseen.effect:g} points {AGAINST_WORDS[foreseen.against]} would take {needed}")
    return [*lines, f"assumed: {first_power.basis}; runs that collapse are noisier"]


def _planned_cells(corpus: Corpus, items: int) -> list[PowerCell]:
    """The cells that will be measured, before anything is known of them; `items`: of each at most."""
    counts = [(task, min(count, items)) for task, count in held_out_cells(corpus)]
    return [PowerCell(task, count, TYPICAL_ITEM_SPREAD) for task, count in counts if count]


def _estimate_noise(
    scores_by_arm: Mapping[str, Mapping[int, ItemScores]], measurement: str, kind: Against, prior: Noise
) -> tuple[Noise, int]:
    """The noise of seeds, and the finished seeds of this run that it rests on; the prior and 0 where there are too few.

    Args:
        scores_by_arm: arm -> finished seed -> what was measured after it.
        measurement: that success is read from.
        kind: of the contrasts.
        prior: noise of earlier trials.
    """
    items = shared_items([scores for scores_by_seed in scores_by_arm.values() for scores in scores_by_seed.values()])
    differences, most_seeds = [], 0
    for arms in itertools.combinations(scores_by_arm, 2):
        first, second = (scores_by_arm[arm] for arm in arms)
        seeds = sorted(first.keys() & second.keys())
        is_of_kind = (UNTRAINED_ARM in arms) == (kind == "untrained")
        if is_of_kind and len(items) and len(seeds) >= MIN_FINISHED_SEEDS:
            first_values, second_values = (
                np.array([side[seed].column(measurement, items) for seed in seeds]) for side in (first, second)
            )
            differences.append(first_values - second_values)
            most_seeds = max(most_seeds, len(seeds))
    if not differences:
        return prior, 0
    return noise_of(differences, items.cell, weigh_items(items), prior), most_seeds


def _read_finished_seeds(run: RunFolder, arm: str, seeds: int) -> dict[int, ItemScores]:
    """Return seed -> what was measured after it, of the finished ones."""
    scores_by_seed = {seed: _read_scores(run.branch(arm, seed) / "after.parquet") for seed in range(seeds)}
    return {seed: scores for seed, scores in scores_by_seed.items() if len(scores.items)}


def _read_scores(path: Path) -> ItemScores:
    """Return what was measured; nothing where there is no such file that this version can read."""
    if path.is_file():
        with contextlib.suppress(InputError):
            return read_scores(path)
    return ItemScores()
