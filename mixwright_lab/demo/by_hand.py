"""Remedies by hand against forgetting: ordinary requests mixed in, a lower rate, going back part of the way."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

LOWER_RATE_FACTOR = 0.3
"""Times the learning rate of the demo."""
SCALES = (0.5, 0.25)
"""Of the adapter that was trained on tool calls alone: WiSE-FT for LoRA (2109.01903)."""
MIXED = "mixed"


class Train(Protocol):
    """Trains as the demo does into `out`; by default on tool calls alone, at the demo's learning rate."""

    def __call__(self, out: Path, *, extra_rows: Path | None = None, rate_factor: float = 1.0) -> None:
        """Train; rows of `extra_rows` are appended, and `rate_factor` is times the demo's learning rate."""


Judge = Callable[[Path, str], None]
"""Measures the model of a folder and prints the verdict; told what the folder holds."""


def try_mixed(narrow_adapter: Path, answered: Path, train: Train, judge: Judge) -> None:
    """Train on the training file and ordinary requests with their answers, shuffled; no plan and no share is chosen.

    Args:
        narrow_adapter: folder of the adapter that was trained on tool calls alone; the new one is made beside it.
        answered: JSONL of the requests with answers.
        train: trains into a folder.
        judge: prints the verdict.
    """
    mixed = narrow_adapter.with_name(MIXED)
    train(mixed, extra_rows=answered)
    judge(mixed, "ordinary requests with true answers in the same file")


def try_milder(narrow_adapter: Path, train: Train, judge: Judge) -> None:
    """Train at a lower rate, and scale the adapter that was trained on tool calls alone."""
    name = narrow_adapter.name
    slow = narrow_adapter.with_name(f"{name}-slow")
    train(slow, rate_factor=LOWER_RATE_FACTOR)
    judge(slow, f"{LOWER_RATE_FACTOR:g} times the learning rate")
    for scale in SCALES:
        part = narrow_adapter.with_name(f"{name}-{scale:g}")
        scale_adapter(narrow_adapter, part, scale)
        judge(part, f"the adapter of {name} times {scale:g}")


def scale_adapter(source: Path, target: Path, scale: float) -> None:
    """Copy a LoRA adapter with its product times `scale`: PEFT multiplies it by lora_alpha / r."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("checkpoint-*", "steering"))
    path = target / "adapter_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings["lora_alpha"] *= scale
    path.write_text(json.dumps(settings, indent=1), encoding="utf-8")
