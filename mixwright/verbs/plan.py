"""Verb `plan`: what to replay with new rows, or the share of each task that was measured; either can be exported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mixwright import catalog
from mixwright.config import CorpusConfig, PlanConfig, RunConfig, TrainConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.corpus import REHEARSE_SPLIT
from mixwright.corpus.graded import read_graded
from mixwright.corpus.trainable import NEEDED_COLUMNS, check_training, infer_objective
from mixwright.errors import InputError
from mixwright.learner.prompt_form import plain_marks
from mixwright.mine.job import REHEARSAL_TABLE, mine_rehearsal, table_file, with_mined_rehearsal
from mixwright.mine.own_answers import check_rehearsal, rehearsal_rows
from mixwright.plan.stage import make_plan, plan_run
from mixwright.records import Measurement, Plan
from mixwright.run.folder import RunFolder, read_measurements, read_plan, read_yaml, write_plan
from mixwright.run.opening import open_run_folder, validate_run
from mixwright.run.preflight import check_keep, check_planner, check_training_packages
from mixwright.run.ray_workers import start_workers
from mixwright.trial.stage import checked_plan
from mixwright.verbs import options, output
from mixwright.verbs.budget import time_left
from mixwright.verbs.direct import comparing_command, load_models, measure_checkpoint, read_rows
from mixwright.verbs.export import TextHandling, check_export, export_plan, read_text_handling
from mixwright.verbs.options import MEASURING, Folder, Measuring, Placing, open_settings, parse_columns
from mixwright.verbs.planned import PLANNING, Planning, PlanReport, loss_token_shares, planned_lines
from mixwright.verbs.replaying import plan_training
from mixwright.verdict.page.text import format_count

PLAN_FILE = Path("plan.yaml")
"""File of a checkpoint's plan without `--output`."""


def plan(
    source: Annotated[str | Path | RunConfig, options.SOURCE],
    train: Annotated[str | None, typer.Argument(metavar="TRAIN")] = None,
    *,
    measuring: Measuring = MEASURING,
    planning: Planning = PLANNING,
    folder: Folder = None,
    dry_run: options.DryRun = False,
    output_file: Annotated[Path | None, typer.Option("--output")] = None,
    export: Annotated[str | None, typer.Option(metavar="FORMAT")] = None,
    export_to: Path | None = None,
) -> PlanReport:
    """Choose what to replay, and write one training file. With --eval, and for DPO and RL: plan the share of each task.

    `plan_measured` plans from rows and measurements in memory; it writes nothing.

    Examples:
        >>> plan("run.yaml", dry_run=True).plan.stages[0].weights
        {'sum': 1.0}

    Args:
        source: Checkpoint, or settings.
        train: Training rows, or a folder of data sets, with MODEL.
        measuring: Rows, and how the model is measured.
        planning: Options of the plan.
        folder: Where files go; default: plan/, and of a RUN.YAML runs/<its name>.
        dry_run: With RUN.YAML: show the steps; write nothing.
        output_file: With --eval: file of the plan (YAML). Default: plan.yaml.
        export: Also write files for another trainer: trl, axolotl, llama-factory, verl. An existing plan.yaml is exported
            unchanged.
        export_to: Folder of --export; default: FORMAT in plan/; with --eval or RUN.YAML, export/FORMAT.

    Raises:
        InputError: rows that cannot be trained on, options that do not go together, or an output that is something else.
    """
    check_export(export, export_to, dry_run=dry_run)
    if not isinstance(source, RunConfig):
        source = str(source)
        if dry_run and not options.is_settings(source):
            raise InputError("RUN.YAML with --dry-run", source, "Leave --dry-run out: new files alone are written.")
        if train is not None and not options.is_settings(source) and not planning.by_measured_tasks(measuring):
            if output_file is not None:
                raise InputError("--eval FILE with --output", "no --eval", "Leave it out, or add --eval.")
            return plan_training(source, train, measuring, planning, folder, export, export_to)
        measuring = replace(measuring, train=train)
        if measuring.measures_checkpoint(source):
            if folder is not None or planning.only_replay or planning.minutes is not None:
                got = "--folder, --only-replay or --minutes"
                raise InputError("--output FILE with --eval, --objective, --planner or --keep", got, "Leave them out.")
            return _plan_checkpoint(source, measuring, planning, output_file, export, export_to)
    if given := [*options.given_flags(planning), *(["--output"] if output_file else [])]:
        raise InputError(f"MODEL TRAIN with {', '.join(given)}", "RUN.YAML", "Set this in it.")
    settings, run, relative_to = open_settings(source, folder, Placing(engine=measuring.engine))
    return _plan_folder(settings, run, relative_to, export, export_to, dry_run=dry_run)


def show(found: PlanReport) -> None:
    """Print the report."""
    output.out("\n".join(found.lines))


def plan_measured(
    corpus: Corpus | CorpusConfig | str | Path,
    measured: Sequence[Measurement],
    *,
    settings: PlanConfig | None = None,
    train: TrainConfig | None = None,
) -> Plan:
    """Plan weights, band and levers from what was measured, with a reason for each number. Needs no model and no torch.

    The command line has no such verb: it plans by a run folder or a checkpoint, which `plan` does.

    Examples:
        >>> rows = measure("checkpoint", "train.jsonl", measuring=Measuring(items=8, samples=2))
        >>> made = plan_measured("train.jsonl", rows, train=TrainConfig(steps=20))
        >>> made.stages[0].steps, dict(made.stages[0].weights)
        (20, {'sum': 1.0})

    Args:
        corpus: rows to train on, those that were measured.
        measured: what `measure` returned for the model that training begins with.
        settings: the planner, its options, and what you want otherwise.
        train: objective, steps, prompts per step and beta are read.

    Raises:
        InputError: an unknown planner or option, rows that the objective cannot be trained on, or a planner that lacks
            what it plans by.
    """
    train = train or TrainConfig()
    if isinstance(corpus, str | Path):  # which names no graders
        corpus = read_graded(CorpusConfig(str(corpus), eval_share=0.0), graders_are_named=False).corpus
    rows = read_corpus(corpus) if isinstance(corpus, CorpusConfig) else corpus
    if train.objective in NEEDED_COLUMNS:  # others are refused with the plan
        check_training(train.objective, rows)
    return make_plan(settings or PlanConfig(), train, rows, measured)


def _plan_checkpoint(
    model: str,
    measuring: Measuring,
    planning: Planning,
    output_file: Path | None,
    export: str | None,
    export_to: Path | None,
) -> PlanReport:
    """Measure a checkpoint and plan from it.

    Args:
        model: folder or hub name.
        measuring: what it is measured on, and how.
        planning: options of the plan.
        output_file: file of the plan; None takes `PLAN_FILE`.
        export: format of another trainer, too.
        export_to: folder of that export.

    Raises:
        InputError: as `prepare`, for the planner, the objective, missing columns, or an output file that is no plan.
    """
    plan_file = output_file or PLAN_FILE
    if plan_file.exists():
        read_yaml(plan_file, Plan)  # anything else is not written over
    config = _choose_settings(measuring, planning)
    objective, evidence = config.train.objective, catalog.load("planners", config.planner).EVIDENCE
    if measuring.samples == 0 and "competence" in evidence:
        got, remedy = "--samples 0", "Leave it out, or ask for at least one."
        raise InputError(f"samples, which the planner {config.planner} reads", got, remedy)
    rows = read_rows(measuring, ungraded=objective != "grpo", rehearse=planning.replay)
    corpus = rows.all_rows or rows.corpus
    check_training(objective, corpus, "--objective")
    check_rehearsal(objective, corpus)
    check_keep(config.plan.options, corpus)
    measurements: Sequence[Measurement] = ()
    ready_learner, max_completion_tokens = None, measuring.max_new_tokens
    if rows.probe is None:
        if measuring.samples is None and "competence" not in evidence:
            measuring = replace(measuring, samples=0)
        ready, result = measure_checkpoint(model, measuring, None, probes={name: {} for name in evidence}, rows=rows)
        learner = ready_learner = ready.learners[0]
        measurements, max_completion_tokens = result.measurements, ready.config.measure.longest_completion
    else:
        output.say("measure: skipped, because no answer can be graded; the plan is made from the rows alone")
        check_training_packages()
        from mixwright.learner.load import load_without_weights

        learner = load_without_weights(model, form=measuring.form)
    if len(requests := corpus.select(split=REHEARSE_SPLIT)):
        if unanswered := requests.table["target"].null_count:
            output.say(f"replay: the model answers {format_count(unanswered, 'request')} without a completion")
        limit = time_left(measuring.budget)
        rehearsal = rehearsal_rows(corpus, lambda: ready_learner or load_models((model,), measuring)[0], seconds_left=limit)
        output.say_notes(rehearsal.notes, "replay")
        corpus = corpus.with_rehearsal(rehearsal.rows)
    plan = make_plan(config.plan, config.train, corpus, measurements)
    loss_shares = loss_token_shares(plan, corpus, config.train, learner) if objective == "sft" else {}
    write_plan(plan_file, plan)
    lines = [*planned_lines(plan, corpus, config.train.prompts, loss_shares), f"Plan: {plan_file}"]
    if export is not None:
        text_handling = TextHandling(learner.form, plain_marks(learner.tokenizer), max_completion_tokens)
        place = export_to or Path("export") / export
        lines.append(export_plan(plan, corpus, config.train, text_handling, export, place, config.seed))
    else:
        lines.append("\nNo training file yet. To write one, add --export trl, axolotl, llama-factory or verl.")
        if objective == "sft" and measuring.train and measuring.held_out:
            lines.append("Without --eval, plan writes plan/mix.jsonl: your rows and replay of general requests.")
    lines.append(f"Next: train, then  {comparing_command(model, measuring.held_out)}")
    return PlanReport(plan, lines, plan_file)


def _choose_settings(measuring: Measuring, planning: Planning) -> RunConfig:
    """Return what the options say of planner and training. Raises InputError for what does not go together."""
    objective = planning.objective
    if objective is None:
        rows = CorpusConfig(str(measuring.train or measuring.held_out), eval_share=0.0)
        rows = replace(rows, columns=parse_columns(measuring.column), task=measuring.task or "all")
        objective = infer_objective(read_corpus(rows))
        output.say(f"objective: {objective}, from the columns of the rows; change it with --objective")
    if objective not in NEEDED_COLUMNS:
        raise InputError("--objective grpo, sft or dpo", repr(objective), "Correct it.")
    train = TrainConfig(objective, planning.steps or TrainConfig().steps, planning.batch or TrainConfig().prompts)
    given = {"keep": list(planning.keep) or None, "share": planning.share}
    plan_options = {name: value for name, value in given.items() if value is not None}
    config = RunConfig(CorpusConfig("none"), plan=PlanConfig(planning.planner, plan_options), train=train)
    if plan_options and config.planner != "rehearsal":
        raise InputError("SFT or DPO for --keep and --share", f"the planner {config.planner}", "Leave them out.")
    check_planner(config.planner, objective)
    catalog.create("planners", config.planner, plan_options)
    return config


def _plan_folder(
    config: RunConfig, run: RunFolder, relative_to: Path, export: str | None, export_to: Path | None, *, dry_run: bool
) -> PlanReport:
    """Plan from a run folder that was measured; a dry run writes nothing. Raises InputError as `open_run_folder`."""
    if dry_run:
        corpus = validate_run(config, run, relative_to=relative_to, for_training=True).corpus
        if table_file(run, REHEARSAL_TABLE).is_file():  # otherwise each request counts as answered
            corpus = with_mined_rehearsal(run, corpus)
        plan = make_plan(config.plan, config.train, corpus, read_measurements(run.measurements("before")))
        return PlanReport(plan, planned_lines(plan, corpus, config.train.prompts, {}))
    with open_run_folder(
        config, run, relative_to=relative_to, for_training=True, required_file=run.measurements("before")
    ) as checked_run:
        output.say_notes(checked_run.corpus.notes)
        lines: list[str] = []
        if export is None or not run.plan.exists():  # a plan edited by hand is exported unchanged
            with start_workers(config.trial) as workers:
                mine_rehearsal(checked_run, workers, say=output.say)
            mined_corpus = with_mined_rehearsal(run, checked_run.corpus)
            lines += planned_lines(
                plan_run(replace(checked_run, corpus=mined_corpus)), mined_corpus, config.train.prompts, {}
            )
        lines.append(f"Plan: {run.plan}")
        if export is not None:
            plan, corpus = checked_plan(checked_run)
            text_handling = read_text_handling(config.model, config.train.max_new_tokens)
            place = export_to or run.path / "export" / export
            lines.append(export_plan(plan, corpus, config.train, text_handling, export, place, config.seed))
        return PlanReport(read_plan(run.plan), lines, run.plan)
