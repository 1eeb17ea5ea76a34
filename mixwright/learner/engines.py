"""What is known of vLLM without starting it: whether it is there, its version, what it does not take. Imports no torch."""

from __future__ import annotations

import importlib.util
from importlib.metadata import packages_distributions, version
from typing import TYPE_CHECKING

from mixwright.errors import InputError

if TYPE_CHECKING:
    from mixwright.config import MeasureConfig

WITHOUT_ENGINE = "leave --engine (measure.engine) out"
MAX_TEMPERATURE = 2.0
"""The highest that vLLM takes."""


def check_installed() -> None:
    """Raises InputError where vLLM is not installed."""
    if importlib.util.find_spec("vllm") is None:
        remedy = f"Install vLLM in a separate environment (docs/servers.md), or {WITHOUT_ENGINE}."
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
