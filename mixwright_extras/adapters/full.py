"""Adapter that freezes nothing: every parameter trains. The reference that the others are compared with.

Source: none; it is plain fine-tuning.
Unit: parameters, as many as the model has.
Cost: optimiser states for every parameter, and a saved copy as large as the model.
Blind spot: it has no base to go back to, so a dial needs a second copy of the model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mixwright.extend import Adapter, told_as

NEEDS = ("torch", "transformers", "safetensors")


class Full(Adapter):
    """All weights, as they are."""

    def wrap(self, model: Any) -> Any:
        """The model itself, with nothing frozen."""
        return model.requires_grad_(True)

    def save(self, model: Any, folder: Path) -> None:
        """All weights; those that are shared between modules once."""
        from safetensors.torch import save_model

        from mixwright.extend import WEIGHTS_FILE, write_settings

        folder.mkdir(parents=True, exist_ok=True)
        save_model(model, str(folder / WEIGHTS_FILE))
        write_settings(self, model, folder)

    def load(self, model: Any, folder: Path) -> Any:
        """The model with the saved weights."""
        from safetensors.torch import load_model

        from mixwright.extend import WEIGHTS_FILE, read_settings

        read_settings(folder)
        with told_as("weights of the same model", "Use the model they were trained on.", file=folder):
            load_model(model, folder / WEIGHTS_FILE)
        return self.wrap(model)

    def merge(self, model: Any) -> Any:
        """The model itself."""
        return model.requires_grad_(True)
