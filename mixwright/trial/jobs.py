"""Jobs of a trial: which branches there are, what each starts from, and which of them are finished already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mixwright.answers.score import read_scores
from mixwright.config import RunConfig
from mixwright.measure.bases import (
    MeasureJob,
    base_name,
    measure_base,
)
from mixwright.plan.stage import make_plan
from mixwright.records import Plan
from mixwright.run.folder import RunFolder, read_measurements
from mixwright.run.ray_workers import start_workers
from mixwright.run.workers import Job, Workers, count_cores
from mixwright.trial.arm_roles import (
    Arms,
    choose_arms,
    make_branch,
    null_name,
    with_order_arms,
)
from mixwright.trial.branch import BranchJob, base_digest, branch_digest, is_complete, train_branch

if TYPE_CHECKING:
    from mixwright.contracts import Branch
    from mixwright.corpus import Corpus
    from mixwright.run.progress import Progress
    from mixwright.trial.data_rows import DataTable

MEASURING_SHARE = 0.2
"""Duration of measuring a model, about, as a share of training it."""


@dataclass(frozen=True)
class Trial:
    """One trial: its files, its starting models, and who works."""

    run: RunFolder
    """Where the trial's files are."""
    config: RunConfig
    """Settings of the run."""
    plan: Plan
    """Under trial."""
    corpus: Corpus
    """Rows of both splits."""
    base: str
    """Checkpoint folder or hub name of the starting model."""
    workers: Workers | None = None
    """Running workers; None starts own ones for each batch of jobs."""
    progress: Progress | None = None
    """Called after every job; None shows a line on the terminal."""
    data: DataTable | None = None
    """Mined rows, in a trial over data."""

    @property
    def arms(self) -> Arms:
        """The arms by role, those that a plan of several stages adds among them."""
        return with_order_arms(choose_arms(self.config, self.run), self.plan)

    @property
    def worker_count(self) -> int:
        """Jobs that run at a time."""
        return self.workers.count if self.workers is not None else self.config.trial.workers or count_cores()

    def arm_jobs(self, arms: Sequence[str]) -> list[BranchJob]:
        """Return one job per arm and seed, seeds outermost: an interrupted trial has whole pairs."""
        return self._make_jobs({arm: make_branch(arm, self.plan, self.corpus) for arm in arms})

    def null_jobs(self, nulls: Sequence[str], lever: str) -> list[BranchJob]:
        """Return the jobs of a lever's nulls, made from its own plan."""
        branches, own = {}, make_branch(lever, self.plan, self.corpus)
        for null in nulls:
            branch = make_branch(null, own.plan, self.corpus)
            if branch.permuted == "levels":
                shuffled = self.corpus.with_shuffled_levels(self.config.seed)
                shuffled_plan = make_branch(lever, self._plan_anew(shuffled), shuffled).plan
                branch = make_branch(null, shuffled_plan, shuffled)
            branches[null_name(null, lever)] = replace(branch, adapter=own.adapter)
        return self._make_jobs(branches)

    def measure(self, *, shuffled: bool = False) -> None:
        """Measure the starting model if it was not, by the cells of shuffled levels where that is asked for.

        Raises:
            InputError: an earlier version measured it.
        """
        file = base_name(self.base, shuffled=shuffled)
        if not self.run.measurements(file).is_file():
            job = MeasureJob(str(self.run.path), self.base, self.config, shuffled)
            log = self.run.path / "trial" / "logs" / f"{file}.log"
            self._run_in_workers([Job(f"measure {file}", measure_base, job, log=log)], "measure")
        self.run.drop_kept()
        read_scores(self.run.measurements(base_name(self.base)))  # refused before hours of training

    def unfinished(self, jobs: Sequence[BranchJob]) -> list[BranchJob]:
        """Return those that were not finished under the same plan, settings and data."""
        return [job for job in jobs if not is_complete(self.run.branch(job.arm, job.seed), job.digest)]

    def train(self, jobs: Sequence[BranchJob], title: str = "trial") -> None:
        """Train those that were not finished under the same plan, settings and data."""
        logs = self.run.path / "trial" / "logs"
        worker_jobs = []
        for job in self.unfinished(jobs):
            steps = sum(stage.steps for stage in job.branch.plan.stages)
            cost = steps if job.branch.trains else MEASURING_SHARE * steps
            log = logs / f"{job.arm}.{job.seed}.log"
            worker_jobs.append(Job(f"{job.arm}, seed {job.seed}", train_branch, job, cost=cost, log=log))
        self._run_in_workers(worker_jobs, title)

    def _make_jobs(self, branches: Mapping[str, Branch]) -> list[BranchJob]:
        """Return the jobs of each arm and how it trains, on every seed."""
        corpus_digest, digest_of_base = self.corpus.digest(), base_digest(self.base)
        jobs = []
        for seed in range(self.config.trial.seeds):
            for arm, branch in branches.items():
                table = self.data if branch.rows != "all" else None
                digest = branch_digest(
                    branch,
                    self.config,
                    corpus=corpus_digest,
                    digest_of_base=digest_of_base,
                    arm=arm,
                    seed=seed,
                    digest_of_data="" if table is None else table.digest_of_rows(branch.rows),
                )
                data = "" if table is None else str(table.path)
                jobs.append(BranchJob(str(self.run.path), arm, branch, seed, self.base, self.config, digest, data))
        return jobs

    def _plan_anew(self, shuffled: Corpus) -> Plan:
        """The plan under trial with what the planner makes of shuffled levels: weights, bands and the picture of the cells.

        Plug-ins, their options and the number of steps are those under trial, edits by hand included.
        """
        self.measure(shuffled=True)
        rows = read_measurements(self.run.measurements(base_name(self.base, shuffled=True)))
        new_plan = make_plan(self.config.plan, self.config.train, shuffled, rows)
        stage, first_stage = self.plan.stages[0], new_plan.stages[0]
        changed_stage = replace(stage, weights=first_stage.weights, band=first_stage.band, bands=first_stage.bands)
        return Plan(new_plan.planner, (changed_stage,), new_plan.cells, why=new_plan.why)

    def _run_in_workers(self, jobs: Sequence[Job], title: str) -> None:
        if jobs and self.workers is not None:
            self.workers.run(jobs, title=title, progress=self.progress)
        elif jobs:
            with start_workers(self.config.trial) as workers:
                workers.run(jobs, title=title, progress=self.progress)
