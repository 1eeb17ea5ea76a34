"""Starting model of a run: a given checkpoint as it is, or a tiny one that the extras build and warm up."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from mixwright.config import ModelConfig, RunConfig
from mixwright.learner.sources import WHOLE_MARK_FILE, resolve_model
from mixwright.run.checked import CheckedRun
from mixwright.run.folder import RunFolder
from mixwright.run.workers import Job, Workers

TINY_PREFIX = "tiny:"


@dataclass(frozen=True, slots=True)
class BaseJob:
    """A tiny base to build."""

    run: str
    """Run folder, with corpus/."""
    config: RunConfig
    """Settings of the run."""
    relative_to: str = ""
    """Folder that relative paths in it start from."""


def base_of(model: ModelConfig, run: RunFolder) -> str:
    """Checkpoint folder or hub name of the starting model; a tiny one may not be built yet."""
    return resolve_model(model.path) if model.path != TINY_PREFIX else str(run.path / "bases" / "base-0")


def build_base(run: CheckedRun, workers: Workers) -> None:
    """Build and warm up a tiny starting model that is not there yet; nothing to do for a given checkpoint."""
    base = base_of(run.config.model, run.folder)
    if run.config.model.path != TINY_PREFIX or (Path(base) / WHOLE_MARK_FILE).is_file():
        return
    job = BaseJob(str(run.folder.path), run.config, str(run.relative_to))
    log = run.folder.path / "bases" / "log.txt"
    workers.run([Job("base", find_builder().build_base, job, log=log)], title="warm up")


def find_builder() -> Any:
    """Return the module that builds tiny models: `build_base(job)`, and `check_warmup(...)` of their settings."""
    (builder,) = entry_points(group="mixwright.models", name=TINY_PREFIX.rstrip(":"))
    return builder.load()
