"""Adapter that learns one log-scale per singular value of each matrix: W' = U diag(S exp(z)) V^T, z from 0.

Source: https://arxiv.org/abs/2501.06252 (Transformer-squared); there the scale is a bounded sigmoid and S is renormalised.
Unit: log-scale per singular value; a saved expert is one vector z per matrix.
Cost: a decomposition per matrix once, U and V in memory, and two further products per matrix in each pass.
Blind spot: directions that a matrix does not have cannot be learnt; with equal singular values z depends on the machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mixwright.extend import Adapter, InputError, join_some

NEEDS = ("torch", "transformers", "safetensors")
SAME_BASE_TOLERANCE = 1e-3
"""Relative difference of the sums of singular values below which two matrices count as the same."""


class SVF(Adapter):
    """U, S and V are made once from the base's weights in float32, and frozen.

    Args:
        targets: last parts of the names of the matrices; None for attention projections and MLP matrices.
    """

    def __init__(self, *, targets: Sequence[str] | None = None) -> None:
        self.targets = None if targets is None else list(targets)

    def wrap(self, model: Any) -> Any:
        """The same model, its matrices in `Scaled` modules."""
        from mixwright_extras.experts.singular import add_scales, scaled_matrices

        add_scales(model, self.targets)
        model.requires_grad_(False)
        for module in scaled_matrices(model).values():
            module.log_scale.requires_grad_(True)
        return model

    def save(self, model: Any, folder: Path) -> None:
        """The vectors z, and beside them the sum of each matrix's singular values, by which `load` knows the base."""
        from safetensors.torch import save_file

        from mixwright.extend import WEIGHTS_FILE, write_settings
        from mixwright_extras.experts.singular import scaled_matrices, scales

        folder.mkdir(parents=True, exist_ok=True)
        save_file(scales(model), folder / WEIGHTS_FILE)
        write_settings(
            self, model, folder, sums={name: float(module.values.sum()) for name, module in scaled_matrices(model).items()}
        )

    def load(self, model: Any, folder: Path) -> Any:
        """The model with the saved z. Raises InputError for a base with other matrices or other singular values."""
        from mixwright.extend import read_settings
        from mixwright_extras.experts.singular import read_expert, scaled_matrices, set_scales

        settings = read_settings(folder)
        expert = read_expert(folder)
        model = SVF(targets=settings["options"].get("targets")).wrap(model)
        set_scales(model, expert)
        sums = settings.get("sums", {})
        found_sums = {name: float(module.values.sum()) for name, module in scaled_matrices(model).items()}
        differing = [
            name
            for name, value in found_sums.items()
            if not math.isclose(value, sums.get(name, value), rel_tol=SAME_BASE_TOLERANCE)
        ]
        if differing:
            raise InputError(
                "the base that the expert was trained on",
                f"other singular values of {join_some(differing)}",
                "Load that base.",
                file=folder,
            )
        return model

    def merge(self, model: Any) -> Any:
        """The model with U diag(S exp(z)) V^T as plain weights."""
        from mixwright_extras.experts.singular import replace_module, scaled_matrices

        for name, module in scaled_matrices(model).items():
            replace_module(model, name, module.merged())
        return model.requires_grad_(True)
