"""Lever: the plan, trained through one scale per singular value, and merged into plain weights at the end.

Source: 2501.06252; against forgetting it did no better than LoRA of its size in our study.
Unit: one branch per seed.
Cost: one training run per seed.
Blind spot: it needs a far higher learning rate than full training; directions that a matrix lacks cannot be learnt.

Options and learning rate of the adapter stand in `train.adapters.svf`; without the latter it has that of the other arms.
"""

from __future__ import annotations

from mixwright.extend import Arm


class Svf(Arm):
    """Trains through the adapter `svf`."""

    ADAPTER = "svf"
