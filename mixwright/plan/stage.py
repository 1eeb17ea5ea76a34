"""Stage that plans: the configured planner over what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from mixwright.catalog import create
from mixwright.records import Measurement, Objective, Plan, TrainingSetup
from mixwright.run.folder import read_measurements, write_plan

if TYPE_CHECKING:
    from mixwright.config import PlanConfig, TrainConfig
    from mixwright.corpus import Corpus
    from mixwright.run.checked import CheckedRun


def make_plan(settings: PlanConfig, train: TrainConfig, corpus: Corpus, competence: Sequence[Measurement]) -> Plan:
    """The planner's plan from what was measured; pure. Raises InputError when the planner lacks what it plans by.

    Args:
        settings: the planner and its options.
        train: objective, steps, prompts, generations and beta are read.
        corpus: what is to be trained on, with the rows to rehearse that are ready (`with_rehearsal`).
        competence: measurements of the model that training begins with, on `corpus`.
    """
    objective, cells = cast("Objective", train.objective), corpus.cells_with_rehearsal()
    training = TrainingSetup(train.steps, objective, train.prompts, train.beta > 0, train.generations)
    planner = create("planners", settings.planner_for(train.objective), dict(settings.options))
    return planner.plan(cells, competence, training)


def plan_run(run: CheckedRun) -> Plan:
    """The planner's plan; writes plan.yaml, which may be edited by hand. Raises InputError when nothing was measured yet."""
    measured = read_measurements(run.folder.measurements("before"))
    plan = make_plan(run.config.plan, run.config.train, run.corpus, measured)
    write_plan(run.folder.plan, plan)
    return plan
