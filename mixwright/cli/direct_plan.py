"""Plan for a checkpoint without a YAML: `mixwright plan MODEL --corpus FILE`, with rows to rehearse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mixwright.cli.direct import Say, load, measure_rows, rows_of
from mixwright.cli.options import Measuring
from mixwright.config import CorpusConfig, ModelConfig, PlanConfig, RunConfig, TrainConfig
from mixwright.errors import InputError, one_line
from mixwright.records import Measurement, Plan

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner
    from mixwright.learner.prompt_form import PromptForm


@dataclass(frozen=True, slots=True)
class Planning:
    """How a checkpoint's plan is made, as the command line says; None takes the default of run.yaml."""

    planner: str | None = None
    """Name of the planner."""
    objective: str | None = None
    """grpo, sft or dpo."""
    steps: int | None = None
    """Optimiser steps."""
    batch: int | None = None
    """Rows, pairs or prompts per step."""
    keep: tuple[str, ...] = ()
    """Tasks that count as known."""
    rehearse: str | None = None
    """Rows of what the model can do already."""
    measured: Path | None = None
    """Folder in which the model was measured before."""

    def settings(self, config: RunConfig) -> RunConfig:
        """The settings with what was asked for. Raises InputError for what makes no sense together."""
        chosen = {"objective": self.objective, "steps": self.steps, "prompts": self.batch}
        train = replace(TrainConfig(), **{name: value for name, value in chosen.items() if value is not None})
        made = replace(config, plan=PlanConfig(self.planner), train=train)
        if not self.keep:
            return made
        if made.planner != "rehearsal":
            raise InputError("--keep for SFT or DPO", f"--keep with the planner {made.planner}", "Leave it out.")
        return replace(made, plan=replace(made.plan, options={"keep": list(self.keep)}))


def plan(model: str, asked: Measuring, wanted: Planning, *, say: Say) -> tuple[RunConfig, Corpus, Plan, PromptForm]:
    """Measure one checkpoint and plan from it; writes nothing.

    Returns the settings, the rows that are planned for with those to rehearse, the plan, and the form of prompts.

    Raises:
        InputError: as `prepare` does, or for the planner, the objective or what the planner lacks.
    """
    from mixwright import catalog
    from mixwright.corpus.trainable import NEEDED_COLUMNS, check_training
    from mixwright.mine.own_answers import check_rehearsal
    from mixwright.plan.stage import make_plan
    from mixwright.preflight import check_keep, check_planner

    config = wanted.settings(RunConfig(CorpusConfig("none")))
    objective = config.train.objective
    if objective not in NEEDED_COLUMNS:
        raise InputError("--objective grpo, sft or dpo", repr(objective), "Correct it.")
    check_planner(config.planner, objective)
    catalog.create("planners", config.planner, dict(config.plan.options))
    evidence = catalog.load("planners", config.planner).EVIDENCE
    if asked.samples == 0 and "competence" in evidence:
        got, remedy = "--samples 0", "Leave it out, or ask for at least one."
        raise InputError(f"samples, which the planner {config.planner} reads", got, remedy)
    tell = say if wanted.measured is None else _of_the_rows(say)
    rows = rows_of(asked, tell, ungraded=objective != "grpo", rehearse=wanted.rehearse)
    whole = rows.whole or rows.corpus
    check_training(objective, whole, "--objective")
    check_rehearsal(objective, whole)
    if wanted.measured is None:  # else tasks were measured that these rows may lack
        check_keep(config.plan.options, whole)
    config = replace(config, corpus=rows.config, model=ModelConfig(model, asked.adapter))
    found: Sequence[Measurement] = ()
    if wanted.measured is not None:
        from mixwright.cli.beside import measured_before

        found = measured_before(wanted.measured, model, asked)
        learner = load(model, asked)
        say(f"measure: taken over from {wanted.measured}")
    elif rows.probe is None:
        ready, result = measure_rows(model, asked, None, evidence, say, rows, None if "competence" in evidence else 0)
        learner, found = ready.learners[0], result.measurements
        config = replace(ready.config, plan=config.plan, train=config.train)
    else:
        say("measure: no answer can be graded, so no success is measured, and the plan is made from the rows alone")
        learner = load(model, asked)
    corpus = _with_own_answers(whole, learner, say)
    return config, corpus, make_plan(config, corpus, found), learner.form


def _of_the_rows(say: Say) -> Say:
    """Says what was noted of the rows, and nothing of graders: where success was measured earlier, none is asked."""
    return lambda line: say(line) if line.startswith("corpus:") else None


def _with_own_answers(corpus: Corpus, learner: Learner, say: Say) -> Corpus:
    """The corpus with its rows to rehearse ready to be trained on; says what was left out and answered."""
    from mixwright.corpus.corpus import REHEARSE_SPLIT
    from mixwright.mine.own_answers import rehearsal_rows

    if not len(corpus.select(split=REHEARSE_SPLIT)):
        return corpus
    found = rehearsal_rows(corpus, lambda: learner)
    for note in found.notes:
        say(one_line(f"rehearse: {note}"))
    return corpus.with_rehearsal(found.rows)
