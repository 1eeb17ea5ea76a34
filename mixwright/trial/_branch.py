"""One branch of a trial: one arm, one seed, from its base to a folder with everything that was seen. Runs in a worker."""

from __future__ import annotations

import gc
import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mixwright
from mixwright import catalog
from mixwright.config import RunConfig
from mixwright.errors import InputError
from mixwright.records import from_data, to_data
from mixwright.runs import RunFolder, read_json, read_plan, write_json, write_measurements
from mixwright.trial._before import MEASURE_SEED, completions_path, read_completion_rows, write_completion_rows
from mixwright.trial._rows import BranchInfo

if TYPE_CHECKING:
    from mixwright.contracts import Branch
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner
    from mixwright.records import Plan

PROGRESS_SEED = 2_000_003
"""Added to the run's seed: items and samples of the evaluations on the way are the same in every arm and seed."""


@dataclass(frozen=True, slots=True)
class BranchJob:
    """One branch to train; plain data."""

    run: str
    """Run folder, with corpus/, plan.yaml and the base's measurements."""
    arm: str
    """Name of the arm."""
    seed: int
    """Trial seed: data order, sampling and training noise. The same in every arm."""
    base: str
    """Checkpoint folder or hub name."""
    base_name: str
    """Its name in files."""
    config: Mapping[str, Any]
    """A `RunConfig` as data."""
    digest: str
    """Of everything that decides the outcome."""


def branch_of(arm: str, plan: Plan, corpus: Corpus) -> Branch:
    """How this arm trains. Raises InputError for an unknown arm, or one that makes no sense under the plan's objective."""
    branch: Branch = catalog.create("arms", arm).branch(plan, corpus.cells())
    if branch.permute_rewards and branch.plan.stages[0].objective != "grpo":
        raise InputError(
            "arms that exist without rewards (there are none to permute)", arm, "Remove it from trial.arms in the settings."
        )
    return branch


def branch_digest(branch: Branch, config: RunConfig, *, corpus: str, base: str, arm: str, seed: int) -> str:
    """SHA-256 of what decides a branch's outcome: plan, settings, data, base, seed and version.

    Args:
        branch: plan and whether rewards are permuted.
        config: the part about training and measuring is used.
        corpus: digest of the corpus.
        base: digest of the starting model.
        arm: name of the arm.
        seed: trial seed.
    """
    used = {
        "branch": to_data(branch),
        "train": to_data(config.train),
        "measure": to_data(config.measure),
        "progress_every": config.trial.progress_every,
        "seeds": [config.seed, seed],
        "inputs": [corpus, base, arm, config.model.adapter],
        "version": mixwright.__version__,
    }
    return hashlib.sha256(json.dumps(used, sort_keys=True).encode()).hexdigest()


def base_digest(base: str) -> str:
    """SHA-256 over the weight and settings files of a checkpoint folder; of the name for one from the hub."""
    digest = hashlib.sha256()
    folder = Path(base)
    if not folder.is_dir():
        digest.update(base.encode())
    for path in sorted(folder.glob("*")) if folder.is_dir() else []:
        if path.suffix in (".safetensors", ".json"):
            digest.update(path.name.encode())
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()


def is_complete(folder: Path, digest: str) -> bool:
    """Whether this very branch was finished before."""
    try:
        return read_json(folder / "branch.json", BranchInfo).digest == digest
    except InputError:
        return False


def train_branch(job: BranchJob) -> str:
    """Train and measure one branch; its folder appears whole, under its final name, at the end. Returns the folder.

    Raises:
        InputError: something in plan, corpus or settings.
    """
    run, config = RunFolder(job.run), from_data(RunConfig, dict(job.config))
    final = run.branch(job.arm, job.seed)
    folder = final.with_name(f".{final.name}.partial")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    from mixwright.corpus import Corpus

    corpus, plan = Corpus.load(run.corpus), read_plan(run.plan)
    branch = branch_of(job.arm, plan, corpus)
    learner = _train(job, config, branch, corpus, folder)
    _measure(job, config, learner, corpus, run, folder)
    objective = branch.plan.stages[0].objective
    write_json(
        folder / "branch.json",
        BranchInfo(job.arm, job.seed, job.base_name, objective, branch.plan == plan, job.digest),
    )
    shutil.rmtree(final, ignore_errors=True)
    folder.rename(final)
    return str(final)


def _train(job: BranchJob, config: RunConfig, branch: Branch, corpus: Corpus, folder: Path) -> Learner:
    """The trained learner; what was seen on the way is in `folder`."""
    from mixwright.learner.load import load_learner
    from mixwright.trial._evaluation import ProgressCallback, choose_items
    from mixwright.trial._training import make_trainer

    learner = load_learner(job.base, adapter=config.model.adapter)
    held_out = corpus.select(split="eval")
    trainer = make_trainer(learner, corpus.select(split="train"), branch, config, seed=config.seed + job.seed, folder=folder)
    if branch.plan.stages[0].objective == "grpo":
        seed = config.seed + PROGRESS_SEED
        items = choose_items(held_out, branch.plan.cells, seed=seed)
        every = config.trial.progress_every
        trainer.add_callback(
            ProgressCallback(learner, held_out, items, config.measure, every=every, seed=seed, folder=folder)
        )
    trainer.train()
    shutil.rmtree(folder / "trainer", ignore_errors=True)
    learner.model.eval()
    learner.save(folder / "model")
    del trainer
    gc.collect()  # trainer and model hold each other; a long-lived worker would keep every branch's copy
    return learner


def _measure(job: BranchJob, config: RunConfig, learner: Learner, corpus: Corpus, run: RunFolder, folder: Path) -> None:
    """Measure after; put the base's measurements beside it."""
    from mixwright.learner.load import load_learner
    from mixwright.measure._stage import measure_learner

    start = load_learner(job.base, adapter=config.model.adapter)
    found = measure_learner(learner, corpus, config.measure, start=start, seed=config.seed + MEASURE_SEED)
    before = read_completion_rows(completions_path(run, job.base_name))
    after = [{**row, "when": "after"} for row in found.completions]
    write_completion_rows(folder / "completions.parquet", [*before, *after])
    write_measurements(folder / "after.parquet", found.measurements)
    shutil.copyfile(run.measurements(job.base_name), folder / "before.parquet")
