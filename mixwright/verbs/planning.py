"""Bodies of `mixwright plan`: from a run folder, and from a checkpoint without a YAML; either can be exported."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mixwright import catalog
from mixwright.config import CorpusConfig, ModelConfig, PlanConfig, RunConfig, TrainConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.corpus import REHEARSE_SPLIT
from mixwright.corpus.trainable import NEEDED_COLUMNS, check_training, infer_objective
from mixwright.errors import InputError, one_line
from mixwright.learner.prompt_form import PromptForm, plain_marks
from mixwright.mine.job import REHEARSAL_MINER, mine_rehearsal, table_file, with_mined_rehearsal
from mixwright.mine.own_answers import check_rehearsal, rehearsal_rows
from mixwright.plan.stage import make_plan, plan_run
from mixwright.records import Measurement, Plan
from mixwright.run.folder import RunFolder, read_measurements, read_yaml, write_plan
from mixwright.run.opening import open_run_folder, validate_run
from mixwright.run.preflight import check_keep, check_planner, check_training_packages
from mixwright.run.ray_workers import start_workers
from mixwright.trial.stage import checked_plan
from mixwright.verbs import output
from mixwright.verbs.direct import load_models, measure_checkpoint, read_rows
from mixwright.verbs.export import TextHandling, build_mix, read_text_handling, write_mix
from mixwright.verbs.measured import comparing_command
from mixwright.verbs.options import Measuring, parse_columns
from mixwright.verbs.planned import planned_lines
from mixwright.verbs.token_shares import loss_token_shares
from mixwright.verdict.page.text import format_count

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

PLAN_FILE = Path("plan.yaml")
"""File of a checkpoint's plan on a terminal, without `--output`."""


@dataclass(frozen=True, slots=True)
class Planning:
    """Options of a checkpoint's plan; None takes the default of run.yaml."""

    planner: str | None = None
    """Name of the planner."""
    objective: str | None = None
    """grpo, sft or dpo."""
    steps: int | None = None
    """Optimiser steps."""
    batch: int | None = None
    """Rows, pairs or prompts per step."""
    keep: tuple[str, ...] = ()
    """Tasks to protect, whatever was measured."""
    share: float | None = None
    """Share of the training samples that is replay, 0..0.5."""
    replay: str | None = None
    """File of rows or requests to replay."""


def plan_checkpoint(
    model: str,
    measuring: Measuring,
    planning: Planning,
    output_file: Path | None,
    export: str | None,
    export_to: Path | None,
) -> None:
    """Measure a checkpoint and plan from it: a report on stdout and the plan in a file, or the plan on stdout in a pipe.

    Args:
        model: folder or hub name.
        measuring: what it is measured on, and how.
        planning: options of the plan.
        output_file: file of the plan; None takes `PLAN_FILE` on a terminal, and stdout in a pipe.
        export: format of another trainer, too.
        export_to: folder of that export.

    Raises:
        InputError: as `_measure_and_plan`, or for an output file that exists and is not a plan.
    """
    is_piped = output_file is None and not sys.stdout.isatty()
    plan_file = output_file or PLAN_FILE
    if not is_piped and plan_file.exists():
        try:
            read_yaml(plan_file, Plan)
        except InputError as error:
            got = f"{plan_file}, which is something else"
            raise InputError("a new file, or a plan, for --output", got, "Choose another.") from error
    config, corpus, plan, text_handling, loss_shares = _measure_and_plan(model, measuring, planning)
    write = output.say if is_piped else output.out
    for line in planned_lines(plan, corpus, config.train.prompts, loss_shares):
        write(line)
    if is_piped:
        output.out_yaml(plan)
    else:
        write_plan(plan_file, plan)
        output.out(f"Plan: {plan_file}")
    if export is not None:
        write(_export(config, plan, corpus, text_handling, export, export_to or Path("export") / export))
    else:
        write("\nFiles for a trainer: --export trl, axolotl, llama-factory or verl")
    write(f"Next: train, then  {comparing_command(model, measuring)}")


def _measure_and_plan(
    model: str, measuring: Measuring, planning: Planning
) -> tuple[RunConfig, Corpus, Plan, TextHandling, dict[str, float]]:
    """Measure one checkpoint and plan from it; writes nothing.

    Returns the settings, the training rows with those to replay, the plan, how texts reach the model, and for SFT the share
    of each task of the tokens in the loss.

    Raises:
        InputError: as `prepare`, or for the planner, the objective or missing columns.
    """
    objective = planning.objective
    if objective is None:
        rows = CorpusConfig(str(measuring.train or measuring.held_out), eval_share=0.0)
        rows = replace(rows, columns=parse_columns(measuring.column), task=measuring.task or "all")
        objective = infer_objective(read_corpus(rows))
        output.say(f"objective: {objective}, from the columns of the rows; another: --objective")
    train_options = {"objective": objective, "steps": planning.steps, "prompts": planning.batch}
    train = replace(TrainConfig(), **{name: value for name, value in train_options.items() if value is not None})
    config = RunConfig(CorpusConfig("none"), plan=PlanConfig(planning.planner), train=train)
    given_options = {"keep": list(planning.keep) or None, "share": planning.share}
    if plan_options := {name: value for name, value in given_options.items() if value is not None}:
        if config.planner != "rehearsal":
            asked = " and ".join(f"--{name}" for name in plan_options)
            raise InputError(f"{asked} for SFT or DPO", f"the planner {config.planner}", "Leave it out.")
        config = replace(config, plan=replace(config.plan, options=plan_options))
    if objective not in NEEDED_COLUMNS:
        raise InputError("--objective grpo, sft or dpo", repr(objective), "Correct it.")
    check_planner(config.planner, objective)
    catalog.create("planners", config.planner, dict(config.plan.options))
    evidence = catalog.load("planners", config.planner).EVIDENCE
    if measuring.samples == 0 and "competence" in evidence:
        got, remedy = "--samples 0", "Leave it out, or ask for at least one."
        raise InputError(f"samples, which the planner {config.planner} reads", got, remedy)

    rows = read_rows(measuring, ungraded=objective != "grpo", rehearse=planning.replay)
    corpus = rows.all_rows or rows.corpus
    check_training(objective, corpus, "--objective")
    check_rehearsal(objective, corpus)
    check_keep(config.plan.options, corpus)
    config = replace(config, corpus=rows.config, model=ModelConfig(model, measuring.adapter))
    measurements: Sequence[Measurement] = ()
    ready_learner, max_completion_tokens = None, measuring.max_new_tokens
    if rows.probe is None:
        samples = None if "competence" in evidence else 0
        ready, result = measure_checkpoint(model, measuring, None, evidence=evidence, rows=rows, samples=samples)
        learner, measurements, max_completion_tokens = (
            ready.learners[0],
            result.measurements,
            ready.config.measure.longest_completion,
        )
        config, ready_learner = replace(ready.config, plan=config.plan, train=config.train), learner
    else:
        output.say("measure: skipped, because no answer can be graded; the plan uses the rows alone")
        learner = _load_tokenizer(model, measuring)
    if len(requests := corpus.select(split=REHEARSE_SPLIT)):
        if unanswered := requests.table["target"].null_count:
            output.say(f"replay: the model answers {format_count(unanswered, 'request')} without a completion")
        rehearsal = rehearsal_rows(corpus, lambda: ready_learner or load_models((model,), measuring)[0])
        for note in rehearsal.notes:
            output.say(one_line(f"replay: {note}"))
        corpus = corpus.with_rehearsal(rehearsal.rows)
    plan = make_plan(config.plan, config.train, corpus, measurements)
    loss_shares = loss_token_shares(plan, corpus, config.train, learner) if objective == "sft" else {}
    text_handling = TextHandling(learner.form, plain_marks(learner.tokenizer), max_completion_tokens)
    return config, corpus, plan, text_handling, loss_shares


def _load_tokenizer(model: str, measuring: Measuring) -> Learner:
    """Load the tokenizer without weights. Raises InputError without the packages of the extra `train`."""
    check_training_packages()
    from mixwright.learner.load import load_without_weights

    return load_without_weights(model, form=PromptForm(measuring.chat_template, measuring.system))


def plan_folder(
    config: RunConfig, run: RunFolder, relative_to: Path, export: str | None, export_to: Path | None, *, dry_run: bool
) -> None:
    """Plan from a run folder that was measured; a dry run prints the plan and writes nothing. Raises InputError as
    `open_run_folder`.
    """
    if dry_run:
        corpus = validate_run(config, run, relative_to=relative_to, for_training=True).corpus
        if table_file(run, REHEARSAL_MINER).is_file():  # otherwise each request counts as answered
            corpus = with_mined_rehearsal(run, corpus)
        plan = make_plan(config.plan, config.train, corpus, read_measurements(run.measurements("before")))
        if sys.stdout.isatty():
            output.out("\n".join(planned_lines(plan, corpus, config.train.prompts, {})))
        else:
            output.out_yaml(plan)
        return
    with open_run_folder(
        config, run, relative_to=relative_to, for_training=True, required_file=run.measurements("before")
    ) as checked_run:
        output.say_notes(checked_run.corpus.notes)
        if export is None or not run.plan.exists():  # a plan edited by hand is exported unchanged
            with start_workers(config.trial) as workers:
                mine_rehearsal(checked_run, workers, say=output.say)
            mined_corpus = with_mined_rehearsal(run, checked_run.corpus)
            new_plan = plan_run(replace(checked_run, corpus=mined_corpus))
            output.out("\n".join(planned_lines(new_plan, mined_corpus, config.train.prompts, {})))
        output.out(f"Plan: {run.plan}")
        if export is not None:
            plan, corpus = checked_plan(checked_run)
            text_handling = read_text_handling(config.model, config.train.max_new_tokens)
            folder = export_to or run.path / "export" / export
            output.out(_export(config, plan, corpus, text_handling, export, folder))


def _export(
    config: RunConfig, plan: Plan, corpus: Corpus, text_handling: TextHandling, export: str, export_folder: Path
) -> str:
    """Write a plan in a trainer's format; returns a line on the folder."""
    train = config.train
    mix = build_mix(
        plan,
        corpus,
        batch=train.prompts,
        num_generations=train.generations,
        seed=config.seed,
        text_handling=text_handling,
    )
    for line in write_mix(mix, export, export_folder):
        output.say(one_line(line))
    return f"Export: {export_folder}"
