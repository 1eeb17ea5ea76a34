"""Path of a GRPO batch from its draw to what is decided about it: few files, each named in contributing/architecture.md."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from trainers_tiny import make

import mixwright
from mixwright import SteeredGRPOTrainer, SteeringConfig
from mixwright.catalog import KIND_BY_NAME

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets the older name
ROOT = Path(mixwright.__file__).parent
MOST = 12
SHARED = ("records", "estimates", "errors.py", "contracts.py", "skeleton.py", "final_answer.py", "time_limit.py")
"""What all stages share: no step on the way."""
PLUGINS = tuple(kind.package.removeprefix("mixwright.").replace(".", "/") for kind in KIND_BY_NAME.values())


def test_a_batch_passes_few_files(tmp_path: Path) -> None:
    steering = SteeringConfig()
    trainer = make(SteeredGRPOTrainer, tmp_path, {"max_steps": 6}, steering=steering)
    seen: list[tuple[str, str, str]] = []

    def note(frame: Any, event: str, _: Any) -> None:
        place = frame.f_code.co_filename
        if event in ("call", "return") and place.startswith(str(ROOT)):
            seen.append((event, str(Path(place).relative_to(ROOT)), frame.f_code.co_name))

    sys.setprofile(note)
    try:
        trainer.train()
    finally:
        sys.setprofile(None)
    both = files_of(seen, "__iter__") | files_of(seen, "_calculate_rewards")
    path = {file for file in both if not file.startswith((*SHARED, *PLUGINS))}
    assert {"trainers/grpo.py", "steer/engine.py", "steer/policy.py", "steer/ledger.py"} <= path
    assert len(path) <= MOST, sorted(path)
    page = (ROOT.parent / "contributing" / "architecture.md").read_text(encoding="utf-8")
    assert [file for file in sorted(path) if f"`{file}`" not in page] == []


def files_of(seen: list[tuple[str, str, str]], name: str) -> set[str]:
    """Files of what the last whole call of that name called, its own among them, of those calls that reached the engine."""
    found: set[str] = set()
    for first, (event, file, called) in enumerate(seen):
        if (event, called) == ("call", name):
            last = next(i for i in range(first, len(seen)) if seen[i] == ("return", file, name))
            inside = {where for kind, where, _ in seen[first : last + 1] if kind == "call"}
            if "steer/engine.py" in inside:
                found = inside
    return found
