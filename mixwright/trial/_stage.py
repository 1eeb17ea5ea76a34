"""The trial: every arm on every seed, paired, in parallel; then what the differences say."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mixwright import catalog
from mixwright.config import RunConfig
from mixwright.errors import InputError
from mixwright.plan._validate import validate_plan
from mixwright.records import Plan, Stage, TrialResult, to_data
from mixwright.runs import RunFolder, read_plan, write_json
from mixwright.trial._before import MeasureJob, base_name, measure_base
from mixwright.trial._branch import BranchJob, base_digest, branch_digest, branch_of, is_complete, train_branch
from mixwright.trial._pool import Job, Pool, processors
from mixwright.trial._rows import SUCCESS
from mixwright.trial._summary import summarise

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.trial._progress import Progress


def run_trial(
    run: RunFolder,
    config: RunConfig,
    bases: Sequence[str | Path],
    *,
    pool: Pool | None = None,
    progress: Progress | None = None,
) -> TrialResult:
    """Train and measure every arm on every seed and write trial/result.json.

    Seed s of every arm starts from `bases[s % len(bases)]` with the same data order and sampling seeds. Branches that
    an earlier, interrupted trial finished under the same plan, settings and data are taken over.

    Args:
        run: with corpus/ and plan.yaml. A base without measure/<its folder name>.parquet is measured first.
        config: arms, seeds, target, training and measuring.
        bases: starting models, checkpoint folders or hub names with different last parts.
        pool: running workers to use; None starts own ones.
        progress: as in `Pool.run`.

    Raises:
        InputError: unknown arm, plan of several stages, no held-out examples, broken files.
        JobFailed: a branch failed; finished ones stay and are taken over next time.
    """
    from mixwright.corpus import Corpus

    plan, corpus = read_plan(run.plan), Corpus.load(run.corpus)
    _check(config, plan, corpus, bases)
    jobs = _branch_jobs(run, config, plan, corpus, bases)
    todo = [job for job in jobs if not is_complete(run.branch(job.arm, job.seed), job.digest)]
    try:
        if pool is not None:
            _work(pool, run, config, bases, todo, plan, progress)
        elif todo:
            with Pool(min(config.trial.workers or processors(), len(todo))) as own:
                _work(own, run, config, bases, todo, plan, progress)
    finally:
        for partial in run.result.parent.glob(".*.partial"):  # all workers have stopped
            shutil.rmtree(partial, ignore_errors=True)
    result = summarise(run, config, plan)
    write_json(run.result, result)
    return result


def _check(config: RunConfig, plan: Plan, corpus: Corpus, bases: Sequence[str | Path]) -> None:
    """Everything that can be refused before hours of training. Raises InputError."""
    validate_plan(plan, corpus.cells())
    if len(plan.stages) != 1:
        raise InputError("a plan of one stage, for now", f"{len(plan.stages)}", "Leave the stage under trial in plan.yaml.")
    if len({base_name(base) for base in bases}) != len(bases) or not bases:
        names = ", ".join(str(base) for base in bases) or "none"
        raise InputError("starting models with different names", names, "Rename their folders.")
    check_trial(config, corpus)


def check_trial(config: RunConfig, corpus: Corpus) -> None:
    """Whether a trial can come of these settings and data, as far as it is known before a plan. Raises InputError."""
    if config.trial.seeds < 1 or not config.trial.arms:
        got = f"{config.trial.seeds} seeds, {len(config.trial.arms)} arms"
        raise InputError("at least one seed and one arm", got, "Correct trial.seeds and trial.arms.")
    if twice := [arm for arm, count in Counter(config.trial.arms).items() if count > 1]:
        raise InputError("each arm once", f"{twice[0]!r} more than once", "Correct trial.arms.")
    if SUCCESS[0] not in config.measure.probes:
        got = ", ".join(config.measure.probes) or "none"
        raise InputError(f"the probe {SUCCESS[0]}, which success is read from", got, "Add it to measure.probes.")
    if len(corpus.select(split="train")) == 0:
        raise InputError("training examples", "none", "Give more rows: corpus.train.")
    if len(corpus.select(split="eval")) == 0:
        raise InputError("held-out examples to measure on", "none", "Set corpus.eval or corpus.eval_share.")
    for arm in config.trial.arms:
        if (against := catalog.load("arms", arm).AGAINST) and against not in config.trial.arms:
            raise InputError(f"arm {against!r}, which {arm!r} is compared with", "none", "Add it to trial.arms.")
    tasks = sorted({cell.task for cell in corpus.cells()})
    stage = Stage("training", config.train.objective, 1, {task: 1 / len(tasks) for task in tasks})  # type: ignore[arg-type]
    for arm in config.trial.arms:
        branch_of(arm, Plan("any", (stage,)), corpus)


def _branch_jobs(
    run: RunFolder, config: RunConfig, plan: Plan, corpus: Corpus, bases: Sequence[str | Path]
) -> list[BranchJob]:
    """One job per arm and seed, seeds outermost: an interrupted trial has whole pairs."""
    data, content = to_data(config), corpus.digest()
    branches = {arm: branch_of(arm, plan, corpus) for arm in config.trial.arms}
    digests = [base_digest(str(base)) for base in bases]
    jobs = []
    for seed in range(config.trial.seeds):
        place = seed % len(bases)
        for arm, branch in branches.items():
            digest = branch_digest(branch, config, corpus=content, base=digests[place], arm=arm, seed=seed)
            base = str(bases[place])
            jobs.append(BranchJob(str(run.path), arm, seed, base, base_name(base), data, digest))
    return jobs


def _work(
    pool: Pool,
    run: RunFolder,
    config: RunConfig,
    bases: Sequence[str | Path],
    todo: Sequence[BranchJob],
    plan: Plan,
    progress: Progress | None,
) -> None:
    """Measure bases that were not, then train what is to be trained."""
    logs = run.path / "trial" / "logs"
    data = to_data(config)
    missing = [(str(base), base_name(base)) for base in bases if not run.measurements(base_name(base)).is_file()]
    if missing:
        measuring = [
            Job(f"measure {name}", measure_base, MeasureJob(str(run.path), base, name, data), log=logs / f"{name}.log")
            for base, name in missing
        ]
        pool.run(measuring, title="measure", progress=progress)
    if todo:
        stage = plan.stages[0]
        extra = 0.2 if stage.monitors or stage.controllers else 0.0
        training = [
            Job(
                f"{job.arm}, seed {job.seed}",
                train_branch,
                job,
                cost=stage.steps * (1 + extra * (job.arm != "uniform")),
                log=logs / f"{job.arm}.{job.seed}.log",
            )
            for job in todo
        ]
        pool.run(training, title="trial", progress=progress)
