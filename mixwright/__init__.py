"""Package that decides what a language model is trained on, and proves what that did to it.

Public and stable are the names in `__all__` here and the modules in `PUBLIC`, without their names that begin with an
underscore; everything else may change without notice. Plug-ins are made by name, with `mixwright.catalog.create`.

The verbs of the command line as functions (`run`, `audit`, `measure` ...) stand in `mixwright.api`, not here: there are
packages called `run`, `audit`, `measure`, `scan`, `plan`, `trial` and `verdict`, and once one of them is imported, Python
binds it to its name here, over any function of that name. The engine is called `Engine` everywhere, as in its own errors and
documentation.

Names are looked up on first use, so that importing this package imports neither torch nor numpy nor pyarrow.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from mixwright.errors import InputError, missing_extra

if TYPE_CHECKING:
    from mixwright.corpus import Corpus, read_corpus
    from mixwright.records import Plan
    from mixwright.steer.beside.state_file import read_state, write_state
    from mixwright.steer.engine import Engine
    from mixwright.steer.pool import Pool, corpus_pool, make_pool
    from mixwright.trainers.dpo import SteeredDPOTrainer
    from mixwright.trainers.gate_callback import GateCallback
    from mixwright.trainers.grpo import SteeredGRPOTrainer
    from mixwright.trainers.sft import SteeredSFTTrainer
    from mixwright.trainers.steering import SteeringConfig, default_plan

__all__ = ["PUBLIC", "Corpus", "Engine", "Plan", "Pool", "corpus_pool", "default_plan", "make_pool", "read_corpus"]
__all__ += ["SteeredDPOTrainer", "SteeredGRPOTrainer", "SteeredSFTTrainer", "SteeringConfig"]
__all__ += ["GateCallback", "read_state", "write_state"]
__version__ = "0.1.0"

_PUBLIC_MODULES = {
    # stages as functions; records and settings; plug-ins and their contracts
    "": "api catalog config contracts corpus errors graders records",
    "run.": "folder",  # what a run leaves
    "learner.": "adapting learner load",  # models beside a run
}
PUBLIC = ("mixwright", *(f"mixwright.{folder}{name}" for folder, names in _PUBLIC_MODULES.items() for name in names.split()))
"""Modules whose plain names are public."""

_NAMES_BY_MODULE = {
    "corpus": "Corpus read_corpus",
    "records": "Plan",
    "steer.engine": "Engine",
    "steer.pool": "Pool corpus_pool make_pool",
    "steer.beside.state_file": "read_state write_state",
    "trainers.dpo": "SteeredDPOTrainer",
    "trainers.gate_callback": "GateCallback",
    "trainers.grpo": "SteeredGRPOTrainer",
    "trainers.sft": "SteeredSFTTrainer",
    "trainers.steering": "SteeringConfig default_plan",
}
"""Module -> the names of `__all__` that it has."""
_NEEDS_TRAIN_EXTRA = ("GateCallback", "SteeredDPOTrainer", "SteeredGRPOTrainer", "SteeredSFTTrainer")
"""What needs the packages of the extra `train`."""


def __getattr__(name: str) -> Any:
    """A public name, imported now. Raises InputError when the packages it needs are not installed."""
    module_name = next((f"mixwright.{module}" for module, names in _NAMES_BY_MODULE.items() if name in names.split()), None)
    if module_name is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _NEEDS_TRAIN_EXTRA:
        missing_packages = [
            package for package in ("torch", "transformers", "trl") if importlib.util.find_spec(package) is None
        ]
        if missing_packages:
            raise missing_extra(name, missing_packages, "train")
    try:
        return getattr(importlib.import_module(module_name), name)
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("trl", "transformers"):
            raise
        from importlib.metadata import version

        expected = "TRL and transformers within the ranges of Mixwright's pyproject.toml"
        got = f"TRL {version('trl')} and transformers {version('transformers')}: {error}"
        raise InputError(expected, got, "Install versions within these ranges.") from error


def __dir__() -> list[str]:
    """Names that completion offers, those not looked up yet included."""
    return sorted({*globals(), *__all__})
