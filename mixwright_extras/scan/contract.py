"""Contract of the columns of a scan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    import numpy as np

    from mixwright.extend import TrainingRow
    from mixwright_extras.scan.passes import ScanPasses


Pass = Literal["target", "prompt", "response_only", "prompt_given_target", "hidden", "gradients", "rollouts"]
"""A pass of the scan through the model, each made at most once per row (`scan/passes.py`)."""


class Columns(ABC):
    """A group of columns of the scan: numbers, texts or vectors per example, computed from passes that all groups share.

    Pure: reads the rows and the passes that it declares, and no others. A value that a row does not have is NaN.
    """

    NAMES: ClassVar[Mapping[str, str]] = {}
    """Column -> what it is, and its unit."""
    PASSES: ClassVar[tuple[Pass, ...]] = ()
    """Passes that it reads; the stage makes these and no others."""

    @abstractmethod
    def compute(self, rows: Sequence[TrainingRow], passes: ScanPasses) -> Mapping[str, np.ndarray]:
        """Every column of `NAMES`: numbers or texts of shape (rows,), or vectors of shape (rows, dimensions)."""
