"""Simulated checkpoints that the gate looks at in planned looks: one large cell, and many small ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixwright.cli.compare import plan_looks
from mixwright.estimates.looks import Look
from mixwright.estimates.outcome import Item, ItemScores
from mixwright.records import Cell
from mixwright.verdict.gate import MEAN_LOSS_MARGIN, check_protected

Array = NDArray[np.float64]
CELLS = (8, 50)
"""Cells, and items of each, where there are many."""
LOOKED = 800
"""Items at the last look, in one cell."""
CALM, LOST, LOST_BY_ONE = "unharmed, 5 % churned", "lost the margin", "lost the margin, all of it in one cell"
LOSSES = {CALM: (0.0, 0.05), "unharmed, 20 % churned": (0.0, 0.2), LOST: (MEAN_LOSS_MARGIN, 0.2)}
"""Loss, and share of the items that change, of a checkpoint that is looked at."""


def looks(times: int) -> list[dict[str, Any]]:
    """How often the gate passes in planned looks and at all items at once, and how many items it takes."""
    rng, made = np.random.default_rng(11), []
    for name, (loss, churn) in LOSSES.items():
        every = (_looked(*answered(np.full((1, LOOKED), 0.7), loss, churn, rng)) for _ in range(times))
        made.append(_counted("looks", name, every))
    return made


def looks_of_cells(times: int) -> list[dict[str, Any]]:
    """The same of many small cells of different success, with a loss that all of them share, and with one of a single cell.

    In a single cell the loss is as many times larger as there are cells, so that the mean over cells loses the same.
    """
    rng, made = np.random.default_rng(12), []
    number, items = CELLS
    success = np.repeat(np.linspace(0.5, 0.8, number)[:, None], items, axis=1)
    worlds = {name: ([loss] * number, [churn] * number) for name, (loss, churn) in LOSSES.items()}
    rest, churn = number - 1, LOSSES[LOST][1]
    worlds[LOST_BY_ONE] = ([number * MEAN_LOSS_MARGIN] + [0.0] * rest, [number * MEAN_LOSS_MARGIN] + [churn] * rest)
    for name, (losses, churns) in worlds.items():
        loss, churned = (np.array(values)[:, None] for values in (losses, churns))
        every = (_looked(*answered(success, loss, churned, rng)) for _ in range(times))
        made.append(_counted("looks of cells", name, every))
    return made


def answered(
    success: Array, loss: Array | float, churn: Array | float, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Answers before and after, right or wrong, each of shape (cells, items).

    Args:
        success: before, of the same shape.
        loss: after minus before, negated; a number or one per cell.
        churn: share of the items whose answer changes, at least `loss`; the same.
        rng: draws them.
    """
    old, draw = rng.random(success.shape) < success, rng.random(success.shape)
    return old, np.where(old, draw >= (churn + loss) / 2 / success, draw < (churn - loss) / 2 / (1 - success))


def _counted(part: str, world: str, every: Iterable[Mapping[str, int]]) -> dict[str, Any]:
    """One row of many checkpoints: how many there were, how many of them were so, and the items of all."""
    total = Counter[str]()
    for one in every:
        total.update(one)
    return {"part": part, "world": world} | dict(total)


def _looked(old: NDArray[np.bool_], new: NDArray[np.bool_]) -> dict[str, int]:
    outcome, items = _decided(old, new)
    found = {"times": 1, "passed": outcome == "passed", "damaged": outcome == "damaged", "items": items}
    return {name: int(value) for name, value in found.items()} | {"passed at once": int(_asked(old, new, None) == "passed")}


def _decided(old: NDArray[np.bool_], new: NDArray[np.bool_]) -> tuple[str, int]:
    """What the gate says at the look that decides, and the items of that look."""
    cells = [Cell(str(place), None, old.shape[1], 0.0) for place in range(len(old))]
    outcome, items = "cannot tell", 0
    for size, look in plan_looks(cells, old.size):
        outcome, items = _asked(old[:, :size], new[:, :size], look), look.items
        if outcome != "cannot tell":
            break
    return outcome, items


def _asked(old: NDArray[np.bool_], new: NDArray[np.bool_], look: Look | None) -> str:
    sides: list[list[ItemScores]] = []
    for values in (old, new):
        known: dict[Item, float] = {
            (str(cell), None, f"{place:04}"): float(value) for (cell, place), value in np.ndenumerate(values)
        }
        sides.append([ItemScores({"greedy": known, "greedy.swapped": dict.fromkeys(known, 0.0)})])
    protected = [(str(cell), None) for cell in range(len(old))]
    return check_protected(sides[0], sides[1], protected, named=True, margin=MEAN_LOSS_MARGIN, look=look).outcome
