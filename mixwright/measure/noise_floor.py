"""Noise floor of a comparison: how many greedy answers of one model change when nothing but the batches changes.

Rounding depends on which prompts are computed together, and where two tokens are about as likely it decides between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.records import Observation

if TYPE_CHECKING:
    from mixwright.answers.table import Answers

NOISE_NOTE = "noise floor"
"""Check of the note, and what the store keeps the counts under."""
BATCH_SIZE = 8
"""Completions generated together the second time, where the first time took as many as fit."""


def count_changes(first: Answers, second: Answers) -> dict[str, int]:
    """Count answers to the same items, those whose grade changed (`turned`), and those whose text did (`reworded`)."""
    again = {row["example"]: row for row in second.first_rows()}
    pairs = [(row, again[row["example"]]) for row in first.first_rows() if row["example"] in again]
    turned = sum((old["score"] >= RIGHT_FROM_SCORE) != (new["score"] >= RIGHT_FROM_SCORE) for old, new in pairs)
    reworded = sum(old["completion"] != new["completion"] for old, new in pairs)
    return {"answers": len(pairs), "turned": turned, "reworded": reworded}


def note_noise(floor: Mapping[str, int], name: str) -> Sequence[Observation]:
    """Return the note on a model's noise floor; none without answers."""
    if not (answers := floor.get("answers", 0)):
        return ()
    shares = [f"{100 * floor[kind] / answers:.2g}" for kind in ("turned", "reworded")]
    message = f"Noise floor: asked again in batches of {floor['batch']}, {name} changed the grade of {shares[0]} and the "
    message += f"text of {shares[1]} in 100 answers ({answers:,} answers)."
    return (Observation(NOISE_NOTE, None, "info", floor["turned"], answers, message, ""),)
