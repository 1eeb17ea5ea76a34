"""Bodies of `mixwright plan`: from a run folder, and from a checkpoint without a YAML; each may be exported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mixwright import catalog
from mixwright.cli import output
from mixwright.cli.beside import read_matching_before
from mixwright.cli.direct import load_models, measure_checkpoint, read_rows
from mixwright.cli.export import TextHandling, build_mix, read_text_handling, write_mix
from mixwright.cli.options import Measuring
from mixwright.cli.token_shares import with_token_shares
from mixwright.config import CorpusConfig, ModelConfig, PlanConfig, RunConfig, TrainConfig
from mixwright.corpus import Corpus
from mixwright.corpus.corpus import REHEARSE_SPLIT
from mixwright.corpus.trainable import NEEDED_COLUMNS, check_training
from mixwright.errors import InputError, one_line
from mixwright.learner.prompt_form import PromptForm, plain_marks
from mixwright.mine.job import REHEARSAL_MINER, mine_rehearsal, table_file, with_mined_rehearsal
from mixwright.mine.own_answers import check_rehearsal, rehearsal_rows
from mixwright.plan.mix import Mix
from mixwright.plan.stage import make_plan, plan_run
from mixwright.records import Measurement, Plan
from mixwright.run.folder import RunFolder, read_measurements, read_yaml, write_plan
from mixwright.run.opening import open_run_folder, validate_run
from mixwright.run.preflight import check_keep, check_planner, check_training_packages
from mixwright.run.ray_workers import start_workers
from mixwright.trial.stage import checked_plan
from mixwright.verdict.page.text import format_count

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

MAX_TASKS_SAID = 12
"""Tasks whose share is told in the terminal."""


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
    share: float | None = None
    """Of all draws, for what is known."""
    rehearse: str | None = None
    """Rows of what the model can do already."""
    measured: Path | None = None
    """Folder in which the model was measured before."""


def plan_checkpoint(
    model: str,
    measuring: Measuring,
    planning: Planning,
    output_file: Path | None,
    export: str | None,
    export_to: Path | None,
) -> None:
    """Measure a checkpoint and plan from it: on stdout, or in a file.

    Args:
        model: folder or hub name.
        measuring: what it is measured on, and how.
        planning: how it is planned.
        output_file: where the plan is written.
        export: format of another trainer, too.
        export_to: folder of that.

    Raises:
        InputError: as `_measure_and_plan` does, or for an output file that is there and no plan.
    """
    if output_file is not None and output_file.exists():
        try:
            read_yaml(output_file, Plan)
        except InputError as error:
            got = f"{output_file}, which is neither"
            raise InputError("--output FILE that is new, or a plan", got, "Choose another.") from error
    config, corpus, plan, text_handling = _measure_and_plan(model, measuring, planning)
    _say_reasons(plan)
    if output_file is None:
        output.out_yaml(plan)
    else:
        write_plan(output_file, plan)
        output.out(str(output_file))
    if export is not None:
        export_folder, train = export_to or Path("export") / export, config.train
        mix = build_mix(
            plan,
            corpus,
            batch=train.prompts,
            num_generations=train.generations,
            seed=config.seed,
            text_handling=text_handling,
        )
        _write_export(mix, export, export_folder)
        (output.say if output_file is None else output.out)(str(export_folder))


def _measure_and_plan(model: str, measuring: Measuring, planning: Planning) -> tuple[RunConfig, Corpus, Plan, TextHandling]:
    """Measure one checkpoint and plan from it; writes nothing.

    Returns the settings, the rows that are planned for with those to rehearse, the plan, and how texts reach the model.

    Raises:
        InputError: as `prepare` does, or for the planner, the objective or what the planner lacks.
    """
    train_options = {"objective": planning.objective, "steps": planning.steps, "prompts": planning.batch}
    train = replace(TrainConfig(), **{name: value for name, value in train_options.items() if value is not None})
    config = RunConfig(CorpusConfig("none"), plan=PlanConfig(planning.planner), train=train)
    given_options = {"keep": list(planning.keep) or None, "share": planning.share}
    if plan_options := {name: value for name, value in given_options.items() if value is not None}:
        if config.planner != "rehearsal":
            asked = " and ".join(f"--{name}" for name in plan_options)
            raise InputError(f"{asked} for SFT or DPO", f"the planner {config.planner}", "Leave it out.")
        config = replace(config, plan=replace(config.plan, options=plan_options))
    objective = config.train.objective
    if objective not in NEEDED_COLUMNS:
        raise InputError("--objective grpo, sft or dpo", repr(objective), "Correct it.")
    check_planner(config.planner, objective)
    catalog.create("planners", config.planner, dict(config.plan.options))
    evidence = catalog.load("planners", config.planner).EVIDENCE
    if measuring.samples == 0 and "competence" in evidence:
        got, remedy = "--samples 0", "Leave it out, or ask for at least one."
        raise InputError(f"samples, which the planner {config.planner} reads", got, remedy)

    if planning.measured is not None:
        output.say(f"measure: taken over from {planning.measured}")

    def tell(line: str) -> None:
        if planning.measured is None or line.startswith("corpus:"):  # else no grader is asked: nothing is said of them
            output.say(line)

    rows = read_rows(measuring, ungraded=objective != "grpo", rehearse=planning.rehearse, tell=tell)
    corpus = rows.all_rows or rows.corpus
    check_training(objective, corpus, "--objective")
    check_rehearsal(objective, corpus)
    if planning.measured is None:  # else tasks were measured that these rows may lack
        check_keep(config.plan.options, corpus)
    config = replace(config, corpus=rows.config, model=ModelConfig(model, measuring.adapter))
    measurements: Sequence[Measurement] = ()
    ready_learner, max_completion_tokens = None, measuring.max_new_tokens
    if planning.measured is not None:
        earlier = read_matching_before(planning.measured, model, measuring)
        measurements, max_completion_tokens = (
            earlier.before.measurements,
            max_completion_tokens or (max(earlier.room) if earlier.room else None),
        )
        learner = _load_tokenizer(model, measuring)
    elif rows.probe is None:
        samples = None if "competence" in evidence else 0
        ready, result = measure_checkpoint(model, measuring, None, evidence=evidence, rows=rows, samples=samples)
        learner, measurements, max_completion_tokens = (
            ready.learners[0],
            result.measurements,
            ready.config.measure.longest_completion,
        )
        config, ready_learner = replace(ready.config, plan=config.plan, train=config.train), learner
    else:
        output.say("measure: no answer can be graded, so no success is measured, and the plan is made from the rows alone")
        learner = _load_tokenizer(model, measuring)
    if len(requests := corpus.select(split=REHEARSE_SPLIT)):
        if unanswered := requests.table["target"].null_count:
            output.say(f"rehearse: the model answers {format_count(unanswered, 'prompt')} that have no completion")
        rehearsal = rehearsal_rows(corpus, lambda: ready_learner or load_models((model,), measuring)[0])
        for note in rehearsal.notes:
            output.say(one_line(f"rehearse: {note}"))
        corpus = corpus.with_rehearsal(rehearsal.rows)
    plan = make_plan(config.plan, config.train, corpus, measurements)
    plan = with_token_shares(plan, corpus, config.train, learner) if objective == "sft" else plan
    return config, corpus, plan, TextHandling(learner.form, plain_marks(learner.tokenizer), max_completion_tokens)


def _load_tokenizer(model: str, measuring: Measuring) -> Learner:
    """A learner that counts tokens and writes no answers. Raises InputError without the packages of the extra `train`."""
    check_training_packages()
    from mixwright.learner.load import load_without_weights

    return load_without_weights(model, form=PromptForm(measuring.chat_template, measuring.system))


def plan_folder(
    config: RunConfig, run: RunFolder, relative_to: Path, export: str | None, export_to: Path | None, *, dry_run: bool
) -> None:
    """Plan from what a run folder holds; a dry run prints it and writes nothing. Raises InputError as `open_run_folder`
    does.
    """
    if dry_run:
        corpus = validate_run(config, run, relative_to=relative_to, for_training=True).corpus
        if table_file(run, REHEARSAL_MINER).is_file():  # else rows to rehearse count as if the model answered all of them
            corpus = with_mined_rehearsal(run, corpus)
        output.out_yaml(make_plan(config.plan, config.train, corpus, read_measurements(run.measurements("before"))))
        return
    with open_run_folder(
        config, run, relative_to=relative_to, for_training=True, required_file=run.measurements("before")
    ) as checked_run:
        output.say_notes(checked_run.corpus.notes)
        if export is None or not run.plan.exists():  # what was edited by hand is exported as it stands
            with start_workers(config.trial) as workers:
                mine_rehearsal(checked_run, workers, say=output.say)
            new_plan = plan_run(replace(checked_run, corpus=with_mined_rehearsal(run, checked_run.corpus)))
            _say_reasons(new_plan)
        output.out(str(run.plan))
        if export is not None:
            export_folder = export_to or run.path / "export" / export
            plan, corpus = checked_plan(checked_run)
            train, text_handling = config.train, read_text_handling(config.model, config.train.max_new_tokens)
            mix = build_mix(
                plan,
                corpus,
                batch=train.prompts,
                num_generations=train.generations,
                seed=config.seed,
                text_handling=text_handling,
            )
            _write_export(mix, export, export_folder)
            output.out(str(export_folder))


def _say_reasons(plan: Plan) -> None:
    """What a plan for SFT or DPO does and why, a line for the whole and one for each task; nothing of other plans."""
    if plan.planner != "rehearsal":
        return
    weights = plan.stages[0].weights
    tasks = [(task, weight, plan.why.get(f"stages.0.weights.{task}", "")) for task, weight in weights.items()]
    lines = [f"{task}: {weight:.1%} of the draws; {reason}" for task, weight, reason in tasks[:MAX_TASKS_SAID]]
    more_line = [f"and {len(tasks) - MAX_TASKS_SAID} more tasks: see why in the plan"] if len(tasks) > MAX_TASKS_SAID else []
    left_out = plan.why.get("stages.0.rehearse")
    for line in (plan.why["stages.0.weights"], *([left_out] if left_out else []), *lines, *more_line):
        output.say(one_line(f"plan: {line}"))


def _write_export(mix: Mix, export: str, export_folder: Path) -> None:
    for line in write_mix(mix, export, export_folder):
        output.say(one_line(line))
