"""Power of a trial, from its settings and what was measured before."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mixwright.answers.score import read_scores
from mixwright.errors import InputError
from mixwright.estimates.judgement import MIN_SEEDS
from mixwright.estimates.outcome import ItemScores
from mixwright.estimates.power import (
    PRIOR_NOISE,
    TYPICAL_ITEM_SPREAD,
    Against,
    PowerCell,
    cells_of,
    power,
)
from mixwright.estimates.readings import GRADED_OUTCOMES, outcome_of
from mixwright.measure.bases import base_name
from mixwright.records import Power
from mixwright.trial.arm_roles import choose_arms

if TYPE_CHECKING:
    from pathlib import Path

    from mixwright.config import RunConfig
    from mixwright.corpus import Corpus
    from mixwright.run.folder import RunFolder

AGAINST_WORDS: dict[Against, str] = {"untrained": "from the untrained model", "trained": "from another trained arm"}


def foresee_power(config: RunConfig, run: RunFolder, corpus: Corpus, base: str) -> tuple[Power, ...]:
    """What the trial can see: against the untrained model, and against another trained arm; empty without graded rows.

    Args:
        config: seeds, items, decoding, arms.
        run: measurements of the starting model are read from it, where it has some.
        corpus: tells the items where nothing was measured yet.
        base: starting model.
    """
    if outcome_of(config.measure.probes, config.measure.decoding) not in GRADED_OUTCOMES:
        return ()  # earlier trials say nothing of the noise of a loss or of preferences
    scores = _read_scores(run.measurements(base_name(base)))
    before = [scores] if len(scores.items) else []
    cells = cells_of(before, config.measure.samples) or _planned_cells(corpus, config.measure.items)
    if not cells:
        return ()
    arms = choose_arms(config, run)
    measured = (
        "success of the items as measured before" if before else "items of typical difficulty, because none was measured"
    )
    powers = []
    for kind in AGAINST_WORDS:
        noise = PRIOR_NOISE[config.measure.decoding, kind]
        basis = f"{measured}; noise between seeds of {100 * noise.seed_deviation:.1f} points, from earlier trials"
        powers.append(power(cells, config.trial.seeds, noise, kind, family=len(arms.references), basis=basis))
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


def _read_scores(path: Path) -> ItemScores:
    """Return what was measured; nothing where there is no such file that this version can read."""
    if path.is_file():
        with contextlib.suppress(InputError):
            return read_scores(path)
    return ItemScores()
