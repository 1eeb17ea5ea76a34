"""Columns of each row's gradient: a sketch of unit length, whose products are cosines, and the length that it had.

Source: LESS (2402.04333) for what it is used for; projected by factors as in LoGra (2405.13954), on principal directions
that are found from 256 rows of the scan (`mixwright_extras.scan.sketch_calibration`).
Unit: the vector has none; the length is nats per token by unit of weight
Cost: about one plain forward and backward pass over prompt and target, and two over 256 rows. Two bytes per number.
Blind spot: of the mean loss over the target's tokens, which favours short targets where sketches are not scaled to one
    length; norms are left out; sketches of two scans compare only where they share sketch.safetensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch

from mixwright.extend import TrainingRow
from mixwright_extras.scan.contract import Columns, Pass
from mixwright_extras.scan.passes import ScanPasses

NEEDS = ("torch", "transformers")


class Sketch(Columns):
    """`sketch` and `sketch_norm`; NaN where a row has no target."""

    NAMES: ClassVar[Mapping[str, str]] = {
        "sketch": "sketch of the gradient of the mean loss over the target, scaled to length 1, float16",
        "sketch_norm": "its length before; times `sketch` it is the sketch itself",
    }
    PASSES: ClassVar[tuple[Pass, ...]] = ("gradients",)

    def compute(self, rows: Sequence[TrainingRow], passes: ScanPasses) -> Mapping[str, np.ndarray]:
        """See the class."""
        sketches = passes.gradients
        vectors = torch.from_numpy(sketches)  # numpy is slow at float16
        norms = torch.linalg.vector_norm(vectors, dim=1)
        units = (vectors / norms.clamp_min(1e-30)[:, None]).half().numpy()
        return {"sketch": units, "sketch_norm": norms.numpy()}
