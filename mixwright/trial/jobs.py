"""Jobs of a trial: which branches there are, what each starts from, and which of them are finished already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mixwright.answers.score import read_scores
from mixwright.config import RunConfig
from mixwright.corpus.shuffled_levels import shuffle_levels
from mixwright.measure.bases import MeasureJob, base_name, count_parts, measure_base, part_jobs, shuffled_name
from mixwright.measure.kept_folder import drop_kept
from mixwright.records import Plan
from mixwright.run.folder import RunFolder, read_measurements
from mixwright.run.ray_workers import start_workers
from mixwright.run.workers import Job, Workers, count_cores
from mixwright.trial.arm_roles import (
    Arms,
    choose_arms,
    is_data_arm,
    make_branch,
    null_name,
    role_of,
    with_order_arms,
)
from mixwright.trial.branch import BranchJob, base_digest, branch_digest, is_complete, train_branch

if TYPE_CHECKING:
    from mixwright.contracts import Branch
    from mixwright.corpus import Corpus
    from mixwright.run.progress import Progress
    from mixwright.trial.arm_roles import Replanner
    from mixwright.trial.data_rows import DataTable

CANARY_TIME_SHARE = 0.2
"""What canary passes add to the duration of a branch, about."""


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
    bases: Sequence[str]
    """Checkpoint folders or hub names with different last parts."""
    workers: Workers | None = None
    """Running workers; None starts own ones for each batch of jobs."""
    progress: Progress | None = None
    """Called after every job; None shows a line on the terminal."""
    data: DataTable | None = None
    """Mined rows, in a trial over data."""

    @property
    def arms(self) -> Arms:
        """The arms by role, those that a plan of several stages adds among them."""
        return with_order_arms(choose_arms(self.config, self.corpus, self.run), self.plan)

    @property
    def worker_count(self) -> int:
        """Jobs that run at a time."""
        return self.workers.count if self.workers is not None else self.config.trial.workers or count_cores()

    def arm_jobs(self, arms: Sequence[str]) -> list[BranchJob]:
        """One job per arm and seed, seeds outermost: an interrupted trial has whole pairs."""
        branches = {arm: make_branch(arm, self.plan, self.corpus) for arm in arms}
        uses_prior_measurement = {arm: is_data_arm(arm) or role_of(arm) not in ("reference", "untrained") for arm in arms}
        return self._make_jobs([(arm, branch, uses_prior_measurement[arm]) for arm, branch in branches.items()])

    def null_jobs(self, nulls: Sequence[str], lever: str, replan: Replanner | None) -> list[BranchJob]:
        """The jobs of a lever's nulls, made from its own plan."""
        arm_branches = []
        for null in nulls:
            branch = make_branch(null, make_branch(lever, self.plan, self.corpus).plan, self.corpus)
            if branch.shuffle_levels and replan is not None:
                shuffled = shuffle_levels(self.corpus, self.config.seed)
                shuffled_plan = make_branch(lever, self._plan_anew(shuffled, replan), shuffled).plan
                branch = make_branch(null, shuffled_plan, shuffled)
            arm_branches.append((null_name(null, lever), branch, True))
        return self._make_jobs(arm_branches)

    def measure(self, *, shuffled: bool = False) -> None:
        """Measure the starting models that were not, by the cells of shuffled levels where that is asked for.

        Raises:
            InputError: an earlier version measured them.
        """
        logs = self.run.path / "trial" / "logs"
        jobs, measure_jobs = [], []
        for base, name in ((base, base_name(base)) for base in self.bases):
            file = shuffled_name(name) if shuffled else name
            if not self.run.measurements(file).is_file():
                measure_jobs.append(job := MeasureJob(str(self.run.path), base, name, self.config, shuffled))
                jobs.append(Job(f"measure {file}", measure_base, job, log=logs / f"{file}.log"))
        if measure_jobs and not shuffled:
            parts = count_parts(self.config, self.corpus, self.worker_count, len(measure_jobs))
            self._run_in_workers(part_jobs(measure_jobs, parts) if parts > 1 else [], "write")
        self._run_in_workers(jobs, "measure")
        drop_kept(self.run.path)
        for base in self.bases:
            read_scores(self.run.measurements(base_name(base)))  # refused before hours of training

    def unfinished(self, jobs: Sequence[BranchJob]) -> list[BranchJob]:
        """Those that were not finished under the same plan, settings and data."""
        return [job for job in jobs if not is_complete(self.run.branch(job.arm, job.seed), job.digest)]

    def train(self, jobs: Sequence[BranchJob], title: str = "trial") -> None:
        """Train those that were not finished under the same plan, settings and data."""
        stage, logs = self.plan.stages[-1], self.run.path / "trial" / "logs"
        steps = sum(stage_of_plan.steps for stage_of_plan in self.plan.stages)
        canary_share = CANARY_TIME_SHARE if stage.monitors or stage.controllers else 0.0
        self._run_in_workers(
            [
                Job(
                    f"{job.arm}, seed {job.seed}",
                    train_branch,
                    job,
                    cost=steps * (1 + canary_share * job.uses_prior_measurement)
                    if job.branch.trains
                    else CANARY_TIME_SHARE * steps,
                    log=logs / f"{job.arm}.{job.seed}.log",
                )
                for job in self.unfinished(jobs)
            ],
            title,
        )

    def _make_jobs(self, arm_branches: Sequence[tuple[str, Branch, bool]]) -> list[BranchJob]:
        """Return the jobs of (arm, how it trains, whether it rests on measuring), on every seed."""
        corpus_digest, base_count = self.corpus.digest(), len(self.bases)
        digests = [base_digest(base) for base in self.bases]
        jobs = []
        for seed in range(self.config.trial.seeds):
            base_index = seed % base_count
            inputs = {"corpus": corpus_digest, "digest_of_base": digests[base_index], "seed": seed}
            for arm, branch, uses_prior_measurement in arm_branches:
                table = None if branch.rows == "all" else self.data
                data_digest = "" if table is None else table.digest_of_rows(branch.rows)
                digest = branch_digest(branch, self.config, arm=arm, digest_of_data=data_digest, **inputs)
                base, path = self.bases[base_index], "" if table is None else str(table.path)
                identity = (str(self.run.path), arm, branch, uses_prior_measurement, seed, base, base_name(base))
                jobs.append(BranchJob(*identity, self.config, digest, path))
        return jobs

    def _plan_anew(self, shuffled: Corpus, replan: Replanner) -> Plan:
        """The plan under trial with what the planner makes of shuffled levels: weights, bands and the picture of the cells.

        Plug-ins, their options and the number of steps are those under trial, edits by hand included.
        """
        self.measure(shuffled=True)
        rows = [read_measurements(self.run.measurements(shuffled_name(base_name(base)))) for base in self.bases]
        new_plan, stage = replan(shuffled, rows), self.plan.stages[0]
        first_stage = new_plan.stages[0]
        changed_stage = replace(stage, weights=first_stage.weights, band=first_stage.band, bands=first_stage.bands)
        return Plan(new_plan.planner, (changed_stage,), new_plan.cells, why=new_plan.why)

    def _run_in_workers(self, jobs: Sequence[Job], title: str) -> None:
        if jobs and self.workers is not None:
            self.workers.run(jobs, title=title, progress=self.progress)
        elif jobs:
            with start_workers(self.config.trial) as workers:
                workers.run(jobs, title=title, progress=self.progress)
