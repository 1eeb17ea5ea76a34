"""Stage that plans: the configured planner over what was measured, and what the user wants otherwise laid over its plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from mixwright.catalog import create
from mixwright.plan.format_forecast import with_formats
from mixwright.plan.overrides import with_asked
from mixwright.records import Measurement, Objective, Plan, TrainingSetup
from mixwright.runs import RunFolder, read_measurements, write_plan

if TYPE_CHECKING:
    from mixwright.config import RunConfig
    from mixwright.corpus import Corpus


def make_plan(config: RunConfig, folder: RunFolder, corpus: Corpus, competence: Sequence[Measurement] | None = None) -> Plan:
    """The planner's plan from what is in the folder; writes nothing. Raises InputError when nothing was measured yet.

    Args:
        config: the settings.
        folder: with the measurements.
        corpus: the run's own, or one that `competence` was measured on.
        competence: measurements of another corpus than the run's own.
    """
    competence = read_measurements(folder.measurements("before")) if competence is None else competence
    train = config.train
    training = TrainingSetup(train.steps, cast("Objective", train.objective), train.prompts, kl_penalty=train.beta > 0)
    made = create("planners", config.plan.planner, dict(config.plan.options)).plan(corpus.cells(), competence, training)
    return with_formats(with_asked(made, config.plan.stage), competence)


def plan_run(config: RunConfig, folder: RunFolder, corpus: Corpus) -> Plan:
    """The planner's plan; writes plan.yaml, which may be edited by hand."""
    made = make_plan(config, folder, corpus)
    write_plan(folder.plan, made)
    return made
