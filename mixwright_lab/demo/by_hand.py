"""Variants that people try by hand against forgetting, for `FULL=1`: a lower rate, and going back part of the way."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

LOWER = 0.3
"""Times the learning rate of the demo."""
SCALES = (0.5, 0.25)
"""Of the adapter that was trained on tool calls alone: WiSE-FT for LoRA (2109.01903)."""


def try_by_hand(name: str, narrow: Path, train: Callable[[float, Path], None], judge: Callable[[Path, str], None]) -> None:
    """Train and measure each variant.

    Args:
        name: of the model that was trained on tool calls alone.
        narrow: folder of its adapter.
        train: trains on tool calls alone with a learning rate, times that of the demo, into a folder.
        judge: measures a folder and prints the verdict; told what the folder holds.
    """
    slow = narrow.with_name(f"{name}-slow")
    train(LOWER, slow)
    judge(slow, f"{LOWER:g} times the learning rate")
    for scale in SCALES:
        part = narrow.with_name(f"{name}-{scale:g}")
        scale_adapter(narrow, part, scale)
        judge(part, f"the adapter of {name} times {scale:g}")


def scale_adapter(source: Path, target: Path, scale: float) -> None:
    """Copy a LoRA adapter with its product times `scale`: PEFT multiplies it by lora_alpha / r."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("checkpoint-*", "steering"))
    path = target / "adapter_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings["lora_alpha"] *= scale
    path.write_text(json.dumps(settings, indent=1), encoding="utf-8")
