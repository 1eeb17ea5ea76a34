"""Adapter that adds a product of two thin matrices to each matrix, by PEFT: W' = W + (alpha / rank) B A, B from 0.

Source: https://arxiv.org/abs/2106.09685 (LoRA), as PEFT implements it.
Unit: rank; rank x (inputs + outputs) parameters per matrix.
Cost: two thin products per matrix in each pass; nothing once it is merged.
Blind spot: the rank is the same everywhere; A begins at random, so two adapters share no coordinates and do not mix.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mixwright.contracts import Adapter
from mixwright.errors import InputError

NEEDS = ("torch", "transformers", "peft")


class LoRA(Adapter):
    """The saved folder is PEFT's own and can be read wherever PEFT adapters are.

    Args:
        rank: inner size of the product, at least 1.
        alpha: the product is multiplied by alpha / rank; None for twice the rank.
        targets: last parts of the names of the matrices; None for attention projections and MLP matrices.
        seed: of the weights that begin at random.
    """

    def __init__(
        self, *, rank: int = 8, alpha: float | None = None, targets: Sequence[str] | None = None, seed: int = 0
    ) -> None:
        if rank < 1:
            raise InputError("a rank of at least 1", str(rank), "Correct rank.")
        self.rank, self.alpha, self.seed = rank, alpha, seed
        self.targets = None if targets is None else list(targets)

    def wrap(self, model: Any) -> Any:
        """The model inside PEFT's."""
        import torch
        from peft import LoraConfig, get_peft_model

        from mixwright.learner.adapting import matrices
        from mixwright.learner.batches import without_warnings

        names = list(matrices(model, self.targets))
        alpha: Any = self.alpha if self.alpha is not None else 2 * self.rank
        settings = LoraConfig(r=self.rank, lora_alpha=alpha, target_modules=names, task_type="CAUSAL_LM")
        with torch.random.fork_rng(), without_warnings():
            torch.manual_seed(self.seed)
            return get_peft_model(model, settings)

    def save(self, model: Any, folder: Path) -> None:
        """PEFT's files, and the settings of this adapter."""
        from mixwright.learner.adapting import write_settings

        folder.mkdir(parents=True, exist_ok=True)
        model.save_pretrained(str(folder))
        write_settings(self, model, folder)

    def load(self, model: Any, folder: Path) -> Any:
        """The model inside PEFT's, with the saved weights."""
        from mixwright.learner.adapting import load_peft, read_settings

        read_settings(folder)
        return load_peft(model, folder)

    def merge(self, model: Any) -> Any:
        """The base with the products added to its weights."""
        return model.merge_and_unload().requires_grad_(True)
