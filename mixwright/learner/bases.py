"""Starting models of a run: given checkpoints as they are, or tiny ones that the extras build and warm up, in parallel."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from mixwright.config import ModelConfig, RunConfig
from mixwright.learner.sources import resolve_model
from mixwright.run.checked import CheckedRun
from mixwright.run.folder import RunFolder
from mixwright.run.workers import Job, Workers

TINY_PREFIX = "tiny:"
WHOLE_MARK_FILE = "config.json"
"""Written by `save_pretrained`; a base is moved to its place only when it is whole."""


@dataclass(frozen=True, slots=True)
class BaseJob:
    """One tiny base to build."""

    run: str
    """Run folder, with corpus/."""
    base_index: int
    """Which of the bases."""
    config: RunConfig
    """Settings of the run."""
    relative_to: str = ""
    """Folder that relative paths in it start from."""


def bases_of(model: ModelConfig, run: RunFolder) -> list[str]:
    """Checkpoint folders or hub names of the starting models; tiny ones may not be built yet."""
    if model.path != TINY_PREFIX:
        return [resolve_model(model.path)]
    return [str(run.path / "bases" / f"base-{base_index}") for base_index in range(max(1, model.bases))]


def build_bases(run: CheckedRun, workers: Workers) -> None:
    """Build and warm up the tiny bases that are not there yet; nothing to do for given checkpoints."""
    if run.config.model.path != TINY_PREFIX:
        return
    bases, folder = bases_of(run.config.model, run.folder), run.folder.path
    missing_indices = [base_index for base_index, built in enumerate(bases) if not (Path(built) / WHOLE_MARK_FILE).is_file()]
    shared = (run.config, str(run.relative_to))
    log = folder / "bases" / "log.txt"
    jobs = [
        Job(f"base {base_index}", find_builder().build_base, BaseJob(str(folder), base_index, *shared), log=log)
        for base_index in missing_indices
    ]
    if jobs:
        workers.run(jobs, title="warm up")


def find_builder() -> Any:
    """Return the module that builds tiny models: `build_base(job)`, and `check_warmup(...)` of their settings."""
    (builder,) = entry_points(group="mixwright.models", name=TINY_PREFIX.rstrip(":"))
    return builder.load()
