"""Power of a trial, from its settings and what was measured before."""

from __future__ import annotations

import contextlib
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
    expected_null_change,
)
from mixwright.estimates.readings import GRADED_OUTCOMES, outcome_of
from mixwright.measure.bases import base_name
from mixwright.trial.arm_roles import choose_arms

if TYPE_CHECKING:
    from pathlib import Path

    from mixwright.config import RunConfig
    from mixwright.corpus import Corpus
    from mixwright.run.folder import RunFolder

AGAINST_WORDS: dict[Against, str] = {"untrained": "from the untrained model", "trained": "from another trained arm"}


def foresee_power(config: RunConfig, run: RunFolder, corpus: Corpus, base: str) -> list[str]:
    """What the trial can see, in sentences: against the untrained model, and another trained arm; none without graded rows.

    Args:
        config: seeds, items, decoding, arms.
        run: measurements of the starting model are read from it, where it has some.
        corpus: tells the items where nothing was measured yet.
        base: starting model.
    """
    decoding, seeds = config.measure.decoding, config.trial.seeds
    if outcome_of(config.measure.probes, decoding) not in GRADED_OUTCOMES:
        return []  # earlier trials say nothing of the noise of a loss or of preferences
    if seeds < MIN_SEEDS:
        return [f'can see nothing: with fewer than {MIN_SEEDS} seeds every result is "cannot tell"']
    scores = _read_scores(run.measurements(base_name(base)))
    before = [scores] if len(scores.items) else []
    cells = cells_of(before, config.measure.samples) or _planned_cells(corpus, config.measure.items)
    if not cells:
        return []
    family = len(choose_arms(config, run).references)
    sizes = {
        words: expected_null_change(cells, seeds, PRIOR_NOISE[decoding, kind]).detectable(family)
        for kind, words in AGAINST_WORDS.items()
    }
    differences = " or ".join(f"{100 * size:.1f} points {words}" for words, size in sizes.items())
    items = sum(cell.items for cell in cells)
    measured = (
        "success of the items as measured before" if before else "items of typical difficulty, because none was measured"
    )
    deviation = 100 * PRIOR_NOISE[decoding, "untrained"].seed_deviation
    return [
        f"can see: a difference of {differences} (in 80 of 100 trials; {seeds} seeds, {items:,} held-out items)",
        f"assumed: {measured}; noise between seeds of {deviation:.1f} points, from earlier trials; runs that collapse are "
        "noisier",
    ]


def held_out_cells(corpus: Corpus) -> list[tuple[str, int]]:
    """Return the task and the number of held-out items of each cell."""
    held_out = corpus.select(split="eval")
    return [(cell.task, cell.count) for cell in held_out.cells()] if len(held_out) else []


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
