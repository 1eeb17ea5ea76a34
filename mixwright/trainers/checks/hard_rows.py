"""A warning at the start of a GRPO run whose rows are mostly too hard, which is known to harm; it never refuses anything.

It says its source and what was measured here, and goes to decisions.jsonl and to the logger, once per run.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.records import Plan
from mixwright.steer.pool import Pool

if TYPE_CHECKING:
    from mixwright.steer.beside.run import RunSteering

TOO_HARD_EVIDENCE = (
    "on chain arithmetic (8 seeds), 80 steps at a high learning rate on a pool with 98 % of such problems "
    "cost 50 points (46 to 54) of greedy success on all held-out items; a pool within reach cost none (-1 to 1)"
)
"""What was measured in this project."""


def warn_at_start(run: RunSteering, plan: Any) -> None:
    """Say and write down that the pool is mostly too hard; nothing where a run goes on, or where no plan was given."""
    sentence = lint_too_hard(plan, run.pool) if not run.batches and isinstance(plan, Plan) else None
    if sentence is not None:
        run.note(0, "lint.too_hard", sentence)
        if run.files.writes:
            logging.getLogger("mixwright").warning("%s", sentence)


def lint_too_hard(plan: Plan, pool: Pool) -> str | None:
    """What to say where most rows are of cells that were measured as hopeless or lucky. Pure."""
    states = {cell.key: cell.state for cell in plan.cells}
    row_count, is_hard_cell = len(pool.cell_of), [states.get(cell.key) in ("hopeless", "lucky") for cell in pool.cells]
    hard_rows = int(np.array(is_hard_cell, dtype=bool)[pool.cell_of].sum())
    if 2 * hard_rows <= row_count:
        return None
    return (
        f"{hard_rows} of {row_count} rows ({hard_rows / row_count:.0%}) belong to tasks or levels that the plan calls "
        "hopeless or lucky: success there is mostly chance, and rare successes get the largest advantage. Keep the gate "
        "too_hard, start with beta above 0, and add rows that the model sometimes solves. Source: arXiv 2605.28388; "
        f"measured here: {TOO_HARD_EVIDENCE}."
    )
