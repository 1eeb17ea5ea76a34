"""Stage that runs the trial: references and levers on every seed, paired, in parallel; then nulls of the helpful ones."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixwright import catalog
from mixwright.config import RunConfig, TrainConfig
from mixwright.corpus.trainable import check_training
from mixwright.errors import InputError
from mixwright.estimates.readings import outcome_of
from mixwright.learner.bases import bases_of, build_bases
from mixwright.measure.bases import base_name, pool_measurements
from mixwright.mine.job import load_rehearsed
from mixwright.plan.stage import make_plan
from mixwright.plan.validate import validate_plan
from mixwright.records import Measurement, Plan, Stage, TrialResult, from_data
from mixwright.runs import RunFolder, read_json, read_plan, write_json
from mixwright.trial.arm_roles import (
    Arms,
    Replan,
    arms_in,
    branch_of,
    builtin_arm,
    idle_ablations,
    null_name,
    own_nulls,
    why_left_out,
    with_order,
)
from mixwright.trial.branch import is_complete, is_trained, train_branch
from mixwright.trial.data_rows import DataTable, data_notes, data_path, fit_plan, read_data, rows_for
from mixwright.trial.deadline import LATE_SHARE, Deadline, branches_seconds, train_within
from mixwright.trial.jobs import Trial
from mixwright.trial.power import foresee_power, format_power
from mixwright.trial.seed_rows import COMPETENCE_PROBE
from mixwright.trial.summary import MinedTable, summarise
from mixwright.workers.local import Job, Workers, count_cores

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.workers.progress import Progress


def try_plan(
    config: RunConfig,
    folder: RunFolder,
    workers: Workers,
    *,
    base: Path = Path(),
    say: Callable[[str], None] = lambda _: None,
    deadline: Deadline | None = None,
) -> TrialResult:
    """Train and compare all arms, paired by seed; writes trial/. `say` is told beforehand what the trial can see.

    Without a `deadline` one begins now, where the settings have a budget.
    """
    deadline = Deadline(config.trial.budget_minutes, folder) if deadline is None else deadline

    def replan(corpus: Corpus, measured: Sequence[Sequence[Measurement]]) -> Plan:
        return make_plan(config, corpus, pool_measurements(measured))

    if config.trial.data is not None:  # refused before models are built
        path = data_path(config.trial.data, folder, base)
        config = replace(config, trial=replace(config.trial, data=str(path)))
        data_of(config, folder, load_rehearsed(folder), read_plan(folder.plan))
    build_bases(config, folder, workers, base)
    return run_trial(folder, config, bases_of(config, folder), workers=workers, replan=replan, say=say, deadline=deadline)


def steer_once(
    config: RunConfig,
    folder: RunFolder,
    workers: Workers,
    *,
    base: Path = Path(),
    say: Callable[[str], None] = lambda _: None,
) -> Path:
    """Train once under the plan as it stands; returns the branch folder, which a later trial takes over.

    A trial's result that speaks of another plan's branch is set aside.
    """
    build_bases(config, folder, workers, base)
    one = replace(config, trial=replace(config.trial, seeds=1))
    trial = Trial(folder, one, read_plan(folder.plan), load_rehearsed(folder), bases_of(config, folder))
    job = trial.arm_jobs([builtin_arm("plan")])[0]
    of_another = folder.result.exists() and not is_complete(folder.branch(job.arm, job.seed), job.digest)
    log = folder.path / "trial" / "logs" / f"{job.arm}.0.log"
    (branch,) = workers.run([Job(f"{job.arm}, seed 0", train_branch, job, log=log)], title="steer")
    if of_another:
        aside = folder.result.with_name("result.earlier.json")
        folder.result.replace(aside)
        say(f"the plan was changed since the trial: its result is {aside} now; `mixwright trial` tries this plan")
    return Path(branch)


def run_trial(
    run: RunFolder,
    config: RunConfig,
    bases: Sequence[str | Path],
    *,
    workers: Workers | None = None,
    progress: Progress | None = None,
    replan: Replan | None = None,
    say: Callable[[str], None] = lambda _: None,
    deadline: Deadline | None = None,
) -> TrialResult:
    """Train and measure every arm on every seed and write trial/result.json.

    Seed s of every arm starts from `bases[s % len(bases)]` with the same data order and sampling seeds. Nulls run for levers
    that help, and for no other. Branches that an earlier, interrupted trial finished under the same plan, settings and data
    are taken over.

    Args:
        run: with corpus/ and plan.yaml. A base without measure/<its folder name>.parquet is measured first.
        config: arms, seeds, target, training and measuring.
        bases: starting models, checkpoint folders or hub names with different last parts.
        workers: running workers to use; None starts own ones.
        progress: as in `Workers.run`.
        replan: makes the plan of `shuffled_levels`; without it that null is left out.
        say: called with what the trial can see, before the first branch.
        deadline: after which no further seed is begun; None and one without a limit train the seeds of the settings.

    Raises:
        InputError: unknown arm, plan of several stages, no held-out examples, broken files.
        JobFailed: a branch failed; finished ones stay and are taken over next time.
    """
    plan, corpus = read_plan(run.plan), load_rehearsed(run)
    _check(config, plan, corpus, bases)
    data = data_of(config, run, corpus, plan)
    arms, notes = _possible(with_order(arms_in(config, corpus, run), plan), plan, corpus, data)
    trial = Trial(run, config, plan, corpus, [str(base) for base in bases], workers, progress, data)
    try:
        trial.measure()
        seen = foresee_power(config, run, corpus, bases)
        for line in format_power(seen):
            say(f"  {line}")
        limited = deadline if deadline is not None and deadline.seconds else None
        if limited is None:
            trial.train(trial.arm_jobs(arms.first))
        else:
            trial, told = train_within(trial, arms.first, limited, say)
            notes += told
        result = replace(_with_nulls(trial, arms, notes, replan, limited), power=seen)
    finally:
        for partial in run.result.parent.glob(".*.partial"):  # all workers have stopped
            if not is_trained(partial):
                shutil.rmtree(partial, ignore_errors=True)
    write_json(run.result, result)
    if limited is not None:
        limited.finish()
    for partial in run.result.parent.glob(".*.partial"):  # of arms and seeds that were dropped since
        shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(run.path / "trial" / "stages", ignore_errors=True)  # what branches shared
    return result


def _possible(arms: Arms, plan: Plan, corpus: Corpus, data: DataTable | None) -> tuple[Arms, list[str]]:
    """The arms without ablations of what the plan lacks, and notes on these and on mined rows."""
    idle = idle_ablations(arms, plan, corpus)
    notes = [f"The ablation {arm} was left out: the plan does not have that part." for arm in idle]
    kept = replace(arms, ablations=tuple(arm for arm in arms.ablations if arm not in idle))
    return kept, notes + ([] if data is None else data_notes(data, corpus, plan))


def _with_nulls(
    trial: Trial, arms: Arms, left: Sequence[str], replan: Replan | None, deadline: Deadline | None
) -> TrialResult:
    """The result after the nulls of the levers that help; where none does, with a note that says so."""
    mined = None if trial.data is None else _mined(trial.data, trial.corpus)
    result = summarise(trial.run, trial.config, arms, notes=left, data=mined)
    helping = [judged.arm for judged in result.judgements if judged.word == "helps"]
    if mined is not None:
        return result
    if not helping:
        told = ("No lever beat every reference, so no null was run.",) if arms.levers else ()
        return replace(result, notes=(*result.notes, *told))
    replans = replan is not None
    reasons = {
        null: why_left_out(null, trial.plan, trial.corpus, trial.config, len(trial.bases), replans=replans)
        for null in own_nulls(arms.nulls, trial.config.train.objective)
    }
    possible = [null for null, reason in reasons.items() if not reason]
    if deadline is not None and possible:
        branches, size = len(helping) * len(possible) * trial.config.trial.seeds, {"arms": max(len(arms.first) - 1, 1)}
        workers = trial.config.trial.workers or count_cores()
        if branches_seconds(deadline, branches, **size, workers=workers) > deadline.left + LATE_SHARE * deadline.seconds:
            reasons |= dict.fromkeys(possible, "it did not fit into the budget")
            possible = []
    trial.train([job for lever in helping for job in trial.null_jobs(possible, lever, replan)], "nulls")
    notes = [f"The null {null} was left out: {reason}." for null, reason in reasons.items() if reason]
    if not possible:
        notes.append("No null was run, so it is not shown where the lever's gain comes from.")
    ran = {lever: [null_name(null, lever) for null in possible] for lever in helping}
    return summarise(trial.run, trial.config, arms, ran, [*left, *notes])


def data_of(config: RunConfig, run: RunFolder, corpus: Corpus, plan: Plan) -> DataTable | None:
    """The table of a trial over data, tried on every arm; None for another trial. Raises InputError for one of no use."""
    if config.trial.data is None:
        return None
    data = read_data(data_path(config.trial.data, run), corpus)
    for arm in arms_in(config, corpus, run).first:
        branch = branch_of(arm, plan, corpus)
        rows = rows_for(branch.rows, corpus, data, config.seed)
        if branch.trains:
            _check_rows(branch.plan, rows)
        fit_plan(plan, rows.cells())
    return data


def _mined(data: DataTable, corpus: Corpus) -> MinedTable:
    """What the summary says of a table; the price of mining stands in the file that the miner left beside it."""
    path = data.path.with_suffix(".json")
    summary = read_json(path, dict[str, Any]) if path.is_file() else {}
    train = len(corpus.select(split="train"))
    said = {name: str(summary.get(name, "")) for name in ("price", "simple rule")}
    return MinedTable(data.name, data.size, train, data.new_rows is not None, said["price"], said["simple rule"])


def _check(config: RunConfig, plan: Plan, corpus: Corpus, bases: Sequence[str | Path]) -> None:
    """Everything that can be refused before hours of training. Raises InputError."""
    check_tried(config, plan, corpus)
    if len({base_name(base) for base in bases}) != len(bases) or not bases:
        names = ", ".join(str(base) for base in bases) or "none"
        raise InputError("starting models with different names", names, "Rename their folders.")
    check_trial(config, corpus)


def check_tried(config: RunConfig, plan: Plan, corpus: Corpus) -> None:
    """Whether a plan fits the data and the settings that it is to be trained by. Raises InputError."""
    validate_plan(plan, corpus.cells_with_rehearsal())
    if (other := plan.stages[-1].objective) != config.train.objective:
        remedy = "Correct it, or change train.objective in the settings of a new run."
        raise InputError(f"the objective {config.train.objective} of the settings in the last stage", repr(other), remedy)
    if config.trial.data is None:  # else arms train on other rows, which `data_of` checks
        _check_rows(plan, corpus)


def _check_rows(plan: Plan, corpus: Corpus) -> None:
    for objective in dict.fromkeys(stage.objective for stage in plan.stages):
        check_training(objective, corpus.select(split="train"))


def check_trial(config: RunConfig, corpus: Corpus) -> None:
    """Whether a trial can come of these settings and data, as far as it is known before a plan. Raises InputError."""
    if config.trial.seeds < 1 or not config.trial.arms:
        got = f"{config.trial.seeds} seeds, {len(config.trial.arms)} arms"
        raise InputError("at least one seed and one arm", got, "Correct trial.seeds and trial.arms.")
    for name, given in (("arms", config.trial.arms), ("nulls", config.trial.nulls)):
        if twice := [arm for arm, count in Counter(given).items() if count > 1]:
            raise InputError("each arm once", f"{twice[0]!r} more than once", f"Correct trial.{name}.")
    if outcome_of(config.measure.probes, config.measure.decoding) is None:
        got = ", ".join(config.measure.probes) or "none"
        remedy = "Add it to measure.probes; where nothing is graded, held_out_loss (SFT) or preference (DPO)."
        raise InputError(f"the probe {COMPETENCE_PROBE}, which success is read from", got, remedy)
    if len(corpus.select(split="train")) == 0:
        raise InputError("training examples", "none", "Give more rows: corpus.train.")
    if len(corpus.select(split="eval")) == 0:
        raise InputError("held-out examples to measure on", "none", "Set corpus.eval or corpus.eval_share.")
    arms = arms_in(config, corpus)
    for name in (*config.train.adapters, *([config.train.adapter] if config.train.adapter else [])):
        options = dict(config.train.adapters.get(name, {}))
        if "learning_rate" in options:  # judged as that of all weights is
            from_data(TrainConfig, {"learning_rate": options.pop("learning_rate")})
        catalog.create("adapters", name, options)
    tasks = sorted({cell.task for cell in corpus.cells()})
    stage = Stage("training", config.train.objective, 1, {task: 1 / len(tasks) for task in tasks})  # type: ignore[arg-type]
    for arm in arms.first:
        branch_of(arm, Plan("any", (stage,)), corpus)
