"""Package that decides what a language model is trained on, and proves what that did to it.

Public and stable are the names in `__all__` here and the modules in `PUBLIC`, without their names that begin with an
underscore; everything else may change without notice. Plug-ins are made by name, with `mixwright.catalog.create`.

The stages as functions (`run`, `audit`, `measure`, `plan`, `trial`, `verdict`) stand in `mixwright.api`, not here: there are
packages called `audit`, `measure`, `plan`, `trial` and `verdict`, and once one of them is imported, Python binds it to its
name here, over any function of that name. The engine is called `Engine` everywhere, as in its own errors and documentation.

Names are looked up on first use, so that importing this package imports neither torch nor numpy nor pyarrow.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixwright.corpus import Corpus, read_corpus
    from mixwright.records import Plan
    from mixwright.steer.engine import Engine
    from mixwright.steer.pool import Pool, corpus_pool, make_pool
    from mixwright.steer.run.state_file import read_state, write_state
    from mixwright.trainers.arguments import SteeringArguments
    from mixwright.trainers.callback import SteeringCallback
    from mixwright.trainers.dpo import SteeredDPOTrainer
    from mixwright.trainers.grpo import SteeredGRPOTrainer
    from mixwright.trainers.sft import SteeredSFTTrainer
    from mixwright.trainers.steering import Steering, default_plan

__all__ = [
    "PUBLIC",
    "Corpus",
    "Engine",
    "Plan",
    "Pool",
    "SteeredDPOTrainer",
    "SteeredGRPOTrainer",
    "SteeredSFTTrainer",
    "Steering",
    "SteeringArguments",
    "SteeringCallback",
    "corpus_pool",
    "default_plan",
    "make_pool",
    "read_corpus",
    "read_state",
    "write_state",
]
__version__ = "0.1.0"

PUBLIC = (
    "mixwright",
    "mixwright.api",
    # records, files and settings
    "mixwright.config",
    "mixwright.corpus",
    "mixwright.errors",
    "mixwright.records",
    "mixwright.runs",
    # plug-ins: what each kind promises, the tests of these promises, making one by name
    "mixwright.catalog",
    "mixwright.conformance",
    "mixwright.contracts",
    "mixwright.graders",
    # what an outcome tells of a completion: its final answer, and its answer format
    "mixwright.final_answer",
    "mixwright.skeleton",
    # models
    "mixwright.learner.adapting",
    "mixwright.learner.dial",
    "mixwright.learner.learner",
    "mixwright.learner.load",
    "mixwright.learner.mixing",
    "mixwright.learner.routing",
    "mixwright.learner.settings",
    "mixwright.learner.singular",
    "mixwright.learner.tiny",
    "mixwright.learner.warmup",
    # statistics; each stands alone
    "mixwright.estimates.adjusted",
    "mixwright.estimates.cell_states",
    "mixwright.estimates.chance",
    "mixwright.estimates.crossed",
    "mixwright.estimates.dependence",
    "mixwright.estimates.intervals",
    "mixwright.estimates.judgement",
    "mixwright.estimates.looks",
    "mixwright.estimates.orders",
    "mixwright.estimates.outcome",
    # which end of a score to keep, tried with any trainer
    "mixwright.mine.crossover",
    # parts of stages that benchmarks measure on their own
    "mixwright.measure.bursts",
    "mixwright.measure.former",
    "mixwright.measure.gradient_sketch",
    "mixwright.measure.probes.formats",
    "mixwright.measure.row_losses",
    "mixwright.measure.scan",
    "mixwright.measure.scan_passes",
    "mixwright.measure.scan_rows",
    "mixwright.measure.scan_stage",
    "mixwright.measure.sketch_calibration",
    "mixwright.measure.stage",
    "mixwright.measure.transfers",
    "mixwright.mine.crossover",
    # which of several answers a student can learn from, tried with any trainer
    "mixwright.mine.candidates",
    "mixwright.mine.halving",
    "mixwright.mine.pairing",
    "mixwright.mine.relevance",
    "mixwright.plan.format_forecast",
    "mixwright.plan.planners.transfer_order",
    "mixwright.steer.pool",
    "mixwright.steer.ledger",
    "mixwright.steer.prompt_features",
    "mixwright.steer.task_order",
    "mixwright.verdict.basis",
    "mixwright.verdict.gate",
    "mixwright.verdict.gate_asked",
    # pages of blocks; the laboratory's is made of them too
    "mixwright.verdict.blocks",
    "mixwright.verdict.page",
    "mixwright.verdict.text",
    # many one-thread processes, and a line on how far they are
    "mixwright.workers.local",
    "mixwright.workers.progress",
)
"""Modules whose plain names are public."""

_PLACES = {
    "Corpus": "mixwright.corpus",
    "Engine": "mixwright.steer.engine",
    "Plan": "mixwright.records",
    "Pool": "mixwright.steer.pool",
    "SteeredDPOTrainer": "mixwright.trainers.dpo",
    "SteeredGRPOTrainer": "mixwright.trainers.grpo",
    "SteeredSFTTrainer": "mixwright.trainers.sft",
    "Steering": "mixwright.trainers.steering",
    "SteeringArguments": "mixwright.trainers.arguments",
    "SteeringCallback": "mixwright.trainers.callback",
    "corpus_pool": "mixwright.steer.pool",
    "default_plan": "mixwright.trainers.steering",
    "make_pool": "mixwright.steer.pool",
    "read_corpus": "mixwright.corpus",
    "read_state": "mixwright.steer.run.state_file",
    "write_state": "mixwright.steer.run.state_file",
}
_TRAINING = ("SteeredDPOTrainer", "SteeredGRPOTrainer", "SteeredSFTTrainer", "SteeringCallback")
"""What needs the packages of the extra `train`."""


def __getattr__(name: str) -> Any:
    """A public name, imported now. Raises InputError when the packages it needs are not installed."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _TRAINING:
        from mixwright.errors import missing_extra

        missing = [need for need in ("torch", "transformers", "trl") if importlib.util.find_spec(need) is None]
        if missing:
            raise missing_extra(name, missing, "train")
    try:
        return getattr(importlib.import_module(_PLACES[name]), name)
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("trl", "transformers"):
            raise
        from importlib.metadata import version

        from mixwright.errors import InputError

        raise InputError(
            "TRL and transformers of the ranges in Mixwright's pyproject.toml",
            f"TRL {version('trl')} and transformers {version('transformers')}: {error}",
            "Install versions of these ranges.",
        ) from error


def __dir__() -> list[str]:
    """Names that completion offers, those not looked up yet included."""
    return sorted({*globals(), *__all__})
