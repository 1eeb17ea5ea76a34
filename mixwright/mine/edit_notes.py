"""Notes on candidate rewrites that were tried: their ranking and its reliability, price, and what is forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mixwright.estimates.replicates import format_ranking
from mixwright.mine.halving import Halved, order_of

if TYPE_CHECKING:
    from mixwright.mine.edit_runs import RewriteTrials

FORGOTTEN_FALL = 0.05
"""Fall of the protected rows' probability per token from which a note warns."""


def describe_edits(found: Halved, names: Sequence[str], trial: RewriteTrials) -> list[str]:
    """A sentence per candidate, best first, then how far the ranking can be believed and whether the winner is proven."""
    scores, items = trial.probabilities()
    before, kept = float(scores[::2].mean()), float(items.mean()) if len(items) else 0.0
    lines = [
        f"{found.trainings} short trainings of {trial.short.steps} steps. Before, the answers to the reward questions have "
        f"{before:.3g} probability per token. One half of the {len(scores)} questions chooses, the other proves."
    ]
    for place in order_of(found):
        gain, tokens = float(np.mean(found.choosing[place])) - before, trial.tokens(place)
        line = (
            f"{names[place]!r}: {gain:+.3g} over {len(found.choosing[place])} runs, {1000 * gain / tokens:+.3g} per 1,000 "
            f"target tokens of its {len(trial.candidates[place])} rows; {trial.surprise(place):.3g} nats per token under "
            "the model as it is"
        )
        lines.append(line + (f"; protected rows {np.mean(found.kept[place]) - kept:+.3g}." if len(items) else "."))
    if found.ranking is not None and len(names) > 2:
        lines += format_ranking(found.ranking)
    if len(items) and np.mean(found.kept[found.best]) < kept - FORGOTTEN_FALL:
        lines.append("The best way costs protected tasks: mix their rows in, or train for fewer steps.")
    if found.gain is not None:
        lines.append(
            f"On the other questions, with new seeds, {names[found.best]!r} minus the facts as they stand: "
            f"{found.gain.value:+.3g} [{found.gain.low:+.3g}, {found.gain.high:+.3g}]."
        )
    return lines
