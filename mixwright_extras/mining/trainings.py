"""Limits of the short trainings of miners and probes, and the losses of rows after one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.extend import MAX_LEARNING_RATE

if TYPE_CHECKING:
    from mixwright.extend import Losses

SHORT_TRAINING_LIMITS = {
    "steps": (1, 1e6),
    "runs": (2, 100),
    "batch": (1, 1e5),
    "learning_rate": (1e-12, MAX_LEARNING_RATE),
}
"""What a miner's options of short trainings may be."""


def read_losses(model: Any, losses: Losses, rows: np.ndarray, batch: int) -> np.ndarray:
    """Nats per token of each row."""
    import torch

    with torch.no_grad():
        batch_losses = [losses(model, rows[first_row : first_row + batch]) for first_row in range(0, len(rows), batch)]
    return torch.cat(batch_losses).double().cpu().numpy()
