"""Stage that runs the trial: references and levers on every seed, paired, in parallel; then nulls of the helpful ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mixwright.corpus.trainable import check_training
from mixwright.errors import InputError
from mixwright.learner.bases import base_of, build_base
from mixwright.mine.job import REHEARSAL_TABLE, mine_rehearsal, table_file, with_mined_rehearsal
from mixwright.mine.stage import summary_of
from mixwright.plan.validate import validate_plan
from mixwright.records import MiningSummary, Plan, TrialResult
from mixwright.run.checked import CheckedRun
from mixwright.run.folder import read_plan, write_json
from mixwright.run.workers import Job, Workers
from mixwright.trial.arm_roles import (
    PLAN_ARM,
    Arms,
    choose_arms,
    make_branch,
    null_name,
    nulls_for_objective,
    why_left_out,
)
from mixwright.trial.branch import is_complete, train_branch
from mixwright.trial.data_rows import DataTable, choose_rows, data_notes, data_path, read_data, restrict_plan
from mixwright.trial.deadline import Deadline, train_within
from mixwright.trial.jobs import Trial
from mixwright.trial.power import foresee_power
from mixwright.trial.summary import summarise

if TYPE_CHECKING:
    from mixwright.corpus import Corpus


def checked_plan(run: CheckedRun) -> tuple[Plan, Corpus]:
    """plan.yaml, perhaps edited by hand, and the rows that it is for, those to rehearse as they are trained on.

    Raises:
        InputError: naming the file, for a plan that does not fit the data and the settings.
    """
    config, folder = run.config, run.folder
    plan, rows = read_plan(folder.plan), table_file(folder, REHEARSAL_TABLE)
    if any(stage.rehearse for stage in plan.stages) and not rows.is_file():
        remedy = "Set corpus.rehearse; `mixwright run RUN.YAML --only steer`, without --dry-run, writes them first."
        raise InputError("the rows to replay that the plan uses", "none", remedy, file=rows)
    corpus = with_mined_rehearsal(folder, run.corpus)
    try:
        validate_plan(plan, corpus.cells_with_rehearsal())
        objective = plan.stages[-1].objective
        if objective != config.train.objective:
            expected = f"the objective {config.train.objective} in the last stage, as in the settings"
            remedy = "Correct it, or change train.objective in the settings of a new run."
            raise InputError(expected, repr(objective), remedy)
        for stage in plan.stages if config.trial.data is None else ():  # else arms train on other rows
            check_training(stage.objective, corpus.training(stage.rehearse))
    except InputError as error:
        raise error.with_place(folder.plan) from None
    return plan, corpus


def checked_trial(run: CheckedRun) -> Trial:
    """The trial that plan.yaml and `trial.data` ask for. Raises InputError as `checked_plan`, and for a table of no use."""
    plan, corpus = checked_plan(run)
    config, data = run.config, None
    if config.trial.data is not None:
        path = data_path(config.trial.data, run.folder, run.relative_to)
        config = replace(config, trial=replace(config.trial, data=str(path)))
        data = read_data(path, corpus)
        for arm in choose_arms(config, run.folder).always_run:
            branch = make_branch(arm, plan, corpus)
            for stage in branch.plan.stages:
                rows = choose_rows(branch.rows, corpus, data, config.seed, stage.rehearse)
                if branch.trains:
                    check_training(stage.objective, rows)
                restrict_plan(replace(branch.plan, stages=(stage,)), rows.cells())
    return Trial(run.folder, config, plan, corpus, base_of(config.model, run.folder), data=data)


def steer_once(run: CheckedRun, workers: Workers, *, say: Callable[[str], None] = lambda _: None) -> Path:
    """Train once under the plan as it stands; returns the branch folder, which a later trial takes over.

    A trial's result that speaks of another plan's branch is set aside.
    """
    mine_rehearsal(run, workers, say=say)  # a plan that was written by hand may draw rows that nobody made yet
    plan, corpus = checked_plan(run)
    build_base(run, workers)
    folder, config = run.folder, replace(run.config, trial=replace(run.config.trial, seeds=1))
    (job,) = Trial(folder, config, plan, corpus, base_of(config.model, folder)).arm_jobs([PLAN_ARM])
    is_stale = folder.result.exists() and not is_complete(folder.branch(job.arm, job.seed), job.digest)
    log = folder.path / "trial" / "logs" / f"{job.arm}.0.log"
    (branch,) = workers.run([Job(f"{job.arm}, seed 0", train_branch, job, log=log)], title="steer")
    if is_stale:
        aside = folder.result.with_name("result.earlier.json")
        folder.result.replace(aside)
        say(
            f"the plan has changed since the trial, so the old result is now {aside}; to try this plan: "
            "mixwright run --only trial"
        )
    return Path(branch)


def run_trial(
    trial: Trial,
    *,
    say: Callable[[str], None] = lambda _: None,
    deadline: Deadline | None = None,
) -> TrialResult:
    """Train and measure every arm on every seed and write trial/result.json.

    Seed s of every arm starts from base s modulo their number with the same data order and sampling seeds. Nulls run for
    levers that help, and for no other. Branches that an earlier, interrupted trial finished under the same plan, settings
    and data are taken over.

    Args:
        trial: as `checked_trial` gives it, its base built. One without measure/<its folder name>.parquet is measured first.
        say: called with what the trial can see, before the first branch.
        deadline: after which no further seed is begun; None begins one now, where the settings have a budget.

    Raises:
        InputError: broken files.
        JobFailed: a branch failed; finished ones stay and are taken over next time.
    """
    run = trial.run
    deadline = deadline or Deadline(trial.config.trial.budget_minutes)
    arms = trial.arms
    trial.measure()
    for line in foresee_power(trial.config, run, trial.corpus, trial.base):
        say(f"  {line}")
    trial, seed_notes = train_within(trial, arms.always_run, deadline, say)
    notes = [] if trial.data is None else data_notes(trial.data, trial.corpus, trial.plan)
    result = _try_nulls(trial, arms, [*notes, *seed_notes], deadline)
    write_json(run.result, result)
    for partial in run.result.parent.glob(".*.partial"):  # of arms and seeds that were dropped since
        shutil.rmtree(partial, ignore_errors=True)
    return result


def _try_nulls(trial: Trial, arms: Arms, earlier_notes: Sequence[str], deadline: Deadline) -> TrialResult:
    """Train the nulls of the levers that help, and return the result; where none helps, with a note that says so."""
    config = trial.config
    table = None if trial.data is None else _describe_table(trial.data, trial.corpus)
    result = summarise(trial.run, config, arms, notes=earlier_notes, data=table)
    if table is not None:
        return result
    helping = [judged.arm for judged in result.judgements if judged.word == "helps"]
    if not helping:
        notes = ("No lever beat every reference, so no null was run.",) if arms.levers else ()
        return replace(result, notes=(*result.notes, *notes))
    reasons = {
        null: why_left_out(null, trial.plan, trial.corpus)
        for null in nulls_for_objective(arms.nulls, config.train.objective)
    }
    possible = [null for null, reason in reasons.items() if not reason]
    branches, arm_count = len(helping) * len(possible) * config.trial.seeds, len(arms.always_run) - 1
    if not deadline.allows(branches, arms=arm_count, workers=trial.worker_count):
        reasons |= dict.fromkeys(possible, "the budget allowed no more")
        possible = []
    trial.train([job for lever in helping for job in trial.null_jobs(possible, lever)], "nulls")
    notes = [f"The null {null} was left out, because {reason}." for null, reason in reasons.items() if reason]
    if not possible:
        notes.append("No null was run, so the source of the gain is not known.")
    nulls_by_lever = {lever: [null_name(null, lever) for null in possible] for lever in helping}
    return summarise(trial.run, config, arms, nulls_by_lever, [*earlier_notes, *notes])


def _describe_table(data: DataTable, corpus: Corpus) -> MiningSummary:
    """Return what the summary says of a table; the price of mining is in the file that the miner left next to it."""
    kind, training_rows = "new rows" if data.new_rows else "chosen rows", len(corpus.select(split="train"))
    table, left = MiningSummary(data.path.stem, kind, len(data.mined), training_rows, {}, "", (), ""), summary_of(data.path)
    return table if left is None else replace(table, price=left.price, simple_rule=left.simple_rule)
