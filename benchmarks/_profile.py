"""Profile of where bookkeeping spends its CPU time: cProfile over one run's steps, our functions only, named by module.

The profiler's own cost lies on every Python call, so small functions look up to twice as dear as they are.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

import mixwright

TOP = 40
PACKAGE = Path(mixwright.__file__).parent


class Profiled(TrainerCallback):
    """Profiles from the end of step `first` on.

    Args:
        profile: what collects.
        first: steps before it are left out: they hold what happens once.
    """

    def __init__(self, profile: cProfile.Profile, first: int) -> None:
        self.profile, self.first = profile, first

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin after the first steps, end with the last."""
        if state.global_step == self.first:
            self.profile.enable()
        elif state.global_step == args.max_steps:
            self.profile.disable()


def profile_text(trainer: Any, first: int) -> str:
    """Train, and tell our functions by the time they and what they call take: CPU milliseconds and calls per step."""
    collected = cProfile.Profile(time.process_time)
    trainer.add_callback(Profiled(collected, first))
    trainer.train()
    steps = trainer.args.max_steps - first
    rows = []
    for (file, line, function), (_, calls, own, whole, _) in pstats.Stats(collected).stats.items():  # type: ignore[attr-defined]
        module = module_of(file)
        if module:
            rows.append((1e3 * whole / steps, 1e3 * own / steps, calls / steps, f"{module}:{line} {function}"))
    lines = [f"{whole:9.3f} {own:9.3f} {calls:9.2f}  {name}" for whole, own, calls, name in sorted(rows, reverse=True)[:TOP]]
    return "\n".join([f"{'whole ms':>9} {'own ms':>9} {'calls':>9}  per step, over {steps} steps", *lines]) + "\n"


def module_of(file: str) -> str:
    """Dotted name of one of our source files, without the folders it lies in; empty for everybody else's."""
    path = Path(file)
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) if path.is_relative_to(PACKAGE) else ""
