"""What writes the completions of a job: transformers, or the engine that `measure.engine` names. Imports no torch itself."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator
from importlib.metadata import packages_distributions, version
from typing import TYPE_CHECKING

from mixwright.errors import InputError
from mixwright.run.workers import count_cores

if TYPE_CHECKING:
    from mixwright.config import MeasureConfig, RunConfig, TrialConfig
    from mixwright.learner.learner import Learner

WITHOUT_ENGINE = "leave --engine (measure.engine) out"
MAX_TEMPERATURE = 2.0
"""The highest that vLLM takes."""


def check_installed() -> None:
    """Raises InputError where vLLM is not installed."""
    if importlib.util.find_spec("vllm") is None:
        remedy = f"Install vLLM in an environment of its own (docs/vllm.md), or {WITHOUT_ENGINE}."
        raise InputError("the package vllm, for --engine vllm", "none", remedy)


def engine_name() -> str:
    """What manifests and kept answers call the vLLM that is installed. Raises InputError where none is."""
    check_installed()
    return f"vllm {version(packages_distributions()['vllm'][0])}"


def check_temperature(temperature: float) -> None:
    """Raises InputError for one that vLLM does not take."""
    if temperature > MAX_TEMPERATURE:
        remedy = f"Lower it, or {WITHOUT_ENGINE}."
        raise InputError("a temperature of at most 2, for --engine vllm", f"{temperature:g}", remedy)


def check_engine(measure: MeasureConfig) -> None:
    """Raises InputError where the engine that settings name is not installed, or does not take their temperature."""
    if measure.engine == "vllm":
        check_installed()
        check_temperature(measure.temperature if measure.samples else 0.0)


@contextlib.contextmanager
def run_engine(config: RunConfig, learner: Learner, folder: str | None) -> Iterator[Learner]:
    """The learner, whose completions are written inside the block by the engine that `measure.engine` names.

    Args:
        config: settings of a run, whose workers may share a GPU.
        learner: loaded or trained.
        folder: as `VllmEngine` takes it.

    Raises:
        InputError: vLLM is not installed.
    """
    if config.measure.engine != "vllm":
        yield learner
        return
    from mixwright.learner.vllm_engine import VllmEngine

    learner.engine = engine = VllmEngine(learner, folder, share=gpu_share(config.trial))
    try:
        yield learner
    finally:
        learner.engine = None
        engine.close()


@contextlib.contextmanager
def load_writing(config: RunConfig, path: str) -> Iterator[Learner]:
    """A starting model of a run, as `load_base` reads it, whose completions `run_engine` has written inside the block.

    Raises InputError as these do.
    """
    from mixwright.learner.load import load_base, plain_source

    learner = load_base(config.model, path)
    with run_engine(config, learner, None if config.model.adapter else plain_source(path)):
        yield learner


def gpu_share(trial: TrialConfig) -> float:
    """Share of its GPU that each worker may take, 0..1: what Ray gives it, or one of as many as run on this machine."""
    if trial.gpus_per_worker:
        return min(1.0, trial.gpus_per_worker)
    workers = trial.workers or count_cores()
    return 1 / (min(workers, count_cores()) if trial.cluster else workers)
