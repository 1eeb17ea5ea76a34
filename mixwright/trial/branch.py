"""Branch of a trial: one arm, one seed, from its base to a folder with everything that was seen. Runs in a worker."""

from __future__ import annotations

import gc
import hashlib
import json
import shutil
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mixwright
from mixwright.config import RunConfig, TrainConfig
from mixwright.errors import InputError, disk_full_error
from mixwright.measure.bases import base_name, seed_after
from mixwright.records import to_data
from mixwright.run.folder import RunFolder, answers_file, read_json, write_json, write_measurements
from mixwright.trial.arm_plans import permuted_order, permuted_weights
from mixwright.trial.arm_roles import is_data_arm
from mixwright.trial.plan_stages import MEASURED_FILE, join_stages, stage_folder
from mixwright.trial.seed_rows import BranchInfo

if TYPE_CHECKING:
    from mixwright.contracts import Branch
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner
    from mixwright.measure.stage import MeasureResult
    from mixwright.records import Stage

SEED_STEP_PER_STAGE = 9_000_011
"""Times the place of a stage, added to its branch's seed."""
INFO_FILE, BEGUN_FILE, TRAINED_FILE = "branch.json", "begun.json", "trained.json"
"""Marks with the digest of a branch: finished; saving checkpoints; trained, with nothing left but to measure."""
ANSWERS_FILE = "answers.jsonl"
"""Answers that a branch wrote while it is measured."""


@dataclass(frozen=True, slots=True)
class BranchJob:
    """One branch to train."""

    run: str
    """Run folder, with corpus/ and the base's measurements."""
    arm: str
    """Name of the arm."""
    branch: Branch
    """How it trains."""
    seed: int
    """Trial seed: data order, sampling and training noise. The same in every arm."""
    base: str
    """Checkpoint folder or hub name."""
    config: RunConfig
    """Settings of the run."""
    digest: str
    """Of everything that decides the outcome."""
    data: str = ""
    """Table of mined rows, where the arm trains on other rows than the corpus's."""


def branch_digest(
    branch: Branch,
    config: RunConfig,
    *,
    corpus: str,
    digest_of_base: str,
    arm: str,
    seed: int,
    digest_of_data: str = "",
) -> str:
    """Return the SHA-256 of what decides a branch's outcome: plan, settings, data, base, seed and version.

    Args:
        branch: how it trains; without training, neither the plan nor the settings of training matter.
        config: the part about training and measuring is used.
        corpus: digest of the corpus.
        digest_of_base: of the starting model.
        arm: name of the arm.
        seed: trial seed.
        digest_of_data: of the table whose rows it trains on.
    """
    measure = {name: value for name, value in to_data(config.measure).items() if name != "engine"}
    training = {
        "branch": to_data(branch),
        "train": to_data(config.train),
        "data": digest_of_data,
    }
    deciding_values = {
        "training": training if branch.trains else None,
        "measure": measure | config.measure.noted_engine,
        "seeds": [config.seed, seed],
        "inputs": [
            corpus,
            digest_of_base,
            arm,
            config.model.adapter,
            config.model.chat_template,
            config.model.system,
            config.model.template,
        ],
        "version": mixwright.__version__,
    }
    return hashlib.sha256(json.dumps(deciding_values, sort_keys=True).encode()).hexdigest()


def base_digest(base: str) -> str:
    """Return the SHA-256 over the weight and settings files of a checkpoint folder; of the name for one from the hub."""
    folder = Path(base)
    if not folder.is_dir():
        return hashlib.sha256(base.encode()).hexdigest()
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*")):
        if path.suffix in (".safetensors", ".json"):
            with path.open("rb") as file:
                digest.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def is_complete(folder: Path, digest: str) -> bool:
    """Return whether this very branch was finished before."""
    return _is_marked(folder / INFO_FILE, digest)


def can_resume(folder: Path, digest: str) -> bool:
    """Return whether this very branch goes on from what is in its folder."""
    return any(_is_marked(folder / name, digest) for name in (INFO_FILE, BEGUN_FILE, TRAINED_FILE))


def _is_marked(file: Path, digest: str) -> bool:
    try:
        return read_json(file, dict[str, Any]).get("digest") == digest
    except InputError:
        return False


def train_branch(job: BranchJob) -> str:
    """Train and measure one branch; its folder appears whole, under its final name, at the end. Returns the folder.

    Raises:
        InputError: something in plan, corpus or settings.
    """
    final_folder = RunFolder(job.run).branch(job.arm, job.seed)
    folder = final_folder.with_name(f".{final_folder.name}.partial")
    if not can_resume(folder, job.digest):
        shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not is_complete(folder, job.digest):
            _train_and_measure(job, folder)
        for name in (ANSWERS_FILE, BEGUN_FILE, TRAINED_FILE):
            (folder / name).unlink(missing_ok=True)
        shutil.rmtree(final_folder, ignore_errors=True)
        folder.rename(final_folder)
    except BaseException:
        if not can_resume(folder, job.digest):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return str(final_folder)


def _train_and_measure(job: BranchJob, folder: Path) -> None:
    """Train, measure, and write everything into `folder`; branch.json comes last."""
    from mixwright.corpus import Corpus
    from mixwright.learner.load import load_base
    from mixwright.mine.job import with_mined_rehearsal

    run, branch = RunFolder(job.run), job.branch
    corpus = with_mined_rehearsal(run, Corpus.load(run.corpus))
    if branch.trains and _is_marked(folder / TRAINED_FILE, job.digest):
        learner = _load_trained(job, folder)
    else:
        learner = load_base(job.config.model, job.base)
        if branch.trains and len(branch.plan.stages) > 1:
            learner = _train_stages(job, corpus, folder)
        elif branch.trains:
            _train(job, corpus, learner, folder)
        write_json(folder / TRAINED_FILE, {"digest": job.digest})
    measured, name = _measure_after(job, learner, corpus, folder), base_name(job.base)
    measured.answers.write(folder / "after.answers.parquet")
    write_measurements(folder / "after.parquet", measured.measurements)
    shutil.copyfile(run.answers(name), folder / "before.answers.parquet")
    shutil.copyfile(run.measurements(name), folder / "before.parquet")
    objective = job.branch.plan.stages[-1].objective
    info = BranchInfo(job.arm, job.seed, name, objective, branch.trains, job.digest)
    write_json(folder / INFO_FILE, info)


def _load_trained(job: BranchJob, folder: Path) -> Learner:
    """Load what a branch trained: a model of its own, or the starting model with the adapter on it."""
    from mixwright.learner.adapting import load_adapted
    from mixwright.learner.load import load_base, load_stage

    if (folder / "model").is_dir():
        return load_stage(job.config.model, folder / "model")
    learner = load_base(job.config.model, job.base)
    learner.model = load_adapted(learner.model, folder / "adapter")[1].eval()
    return learner


def _train_stages(job: BranchJob, corpus: Corpus, folder: Path) -> Learner:
    """Train a plan of several stages, each from what the one before left; return the learner after the last.

    After every stage the held-out items are measured. An interrupted branch goes on at the border.
    """
    from mixwright.learner.load import load_base, load_stage

    config, plan = job.config, job.branch.plan
    if job.branch.permuted == "order":
        plan = permuted_order(plan, config.seed + job.seed)
    write_json(folder / BEGUN_FILE, {"digest": job.digest})
    for number, stage in enumerate(plan.stages):
        own_folder = stage_folder(folder, number)
        if (own_folder / MEASURED_FILE).is_file():
            continue
        shutil.rmtree(own_folder, ignore_errors=True)
        own_folder.mkdir(parents=True)
        previous = stage_folder(folder, number - 1) / "model"
        learner = load_stage(config.model, previous) if number else load_base(config.model, job.base)
        stage_branch = replace(job.branch, plan=replace(plan, stages=(stage,), why={}))
        stage_job = replace(job, branch=stage_branch, seed=job.seed + SEED_STEP_PER_STAGE * number)
        _train(stage_job, corpus, learner, own_folder, is_stage=True)
        measured = _measure_after(job, learner, corpus, own_folder)
        measured.answers.write(answers_file(own_folder / MEASURED_FILE))
        write_measurements(own_folder / MEASURED_FILE, measured.measurements)
    join_stages(plan.stages, folder)
    return load_stage(config.model, folder / "model")


def stage_settings(train: TrainConfig, stage: Stage) -> TrainConfig:
    """Return the settings with the stage's learning rate, and without fields of TRL's meant for another objective."""
    rate = train.learning_rate if stage.learning_rate is None else stage.learning_rate
    settings = train.settings if stage.objective == train.objective else {}
    return replace(train, objective=stage.objective, learning_rate=rate, settings=settings)


def _train(job: BranchJob, corpus: Corpus, learner: Learner, folder: Path, *, is_stage: bool = False) -> None:
    """Train the learner on a plan of one stage, or a stage of several; what was seen on the way is in `folder`."""
    from mixwright.learner.adapting import can_switch_off
    from mixwright.measure.stage import training_probes
    from mixwright.trial.data_rows import choose_rows, read_data, repeat_to_fill, restrict_plan
    from mixwright.trial.training import add_adapter, make_trainer

    branch, config, seed = job.branch, job.config, job.config.seed + job.seed
    stage = branch.plan.stages[0]
    settings, adapter = stage_settings(config.train, stage), None
    corpus_of_arm = corpus.with_shuffled_levels(config.seed) if branch.permuted == "levels" else corpus
    data = read_data(Path(job.data), corpus) if job.data else None
    rows = choose_rows(branch.rows, corpus_of_arm, data, seed, stage.rehearse)
    if data is not None:
        rows = repeat_to_fill(rows, settings.prompts)
        branch = replace(branch, plan=restrict_plan(branch.plan, rows.cells()))
    if branch.permuted == "weights":
        branch = replace(branch, plan=permuted_weights(branch.plan, seed))
    adapter_name = branch.adapter or settings.adapter
    if adapter_name:
        settings, adapter = add_adapter(learner, adapter_name, settings, config.model.adapter)
    save_every = config.trial.save_every if not is_stage and adapter_name in (None, "lora") else 0
    resumes = bool(save_every) and _is_marked(folder / BEGUN_FILE, job.digest)
    try:
        trainer = make_trainer(
            learner,
            rows,
            branch,
            settings,
            config.measure,
            seed=seed,
            folder=folder,
            drop_short_batches=config.trial.data is not None and is_data_arm(job.arm),
            save_every=save_every,
        )
        if save_every:
            write_json(folder / BEGUN_FILE, {"digest": job.digest})
        trainer.train(resume_from_checkpoint=resumes or None)
    except Exception as error:
        raise as_settings_error(error, settings.settings) from error
    shutil.rmtree(folder / "trainer", ignore_errors=True)
    if adapter is not None:
        adapter.save(learner.model, folder / "adapter")
        reads_all_weights = is_stage or training_probes(config.measure)  # by the next stage, or by a probe
        if reads_all_weights or not can_switch_off(learner.model):
            learner.model, adapter = adapter.merge(learner.model), None
    learner.model.eval()
    if adapter is None:
        learner.save(folder / "model")
    del trainer
    gc.collect()  # trainer and model hold each other; a long-lived worker would keep every branch's copy


def as_settings_error(error: Exception, settings: Mapping[str, Any]) -> Exception:
    """Return an `InputError` that names `train.settings`, where TRL found only in training that it cannot use them."""
    if isinstance(error, InputError) or not settings or disk_full_error(error) is not None:
        return error
    traceback.print_exception(error)  # to the log of the branch
    got = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:160]}"
    remedy = "Correct train.settings, or remove what you added last. The log of the training run has the whole error."
    return InputError(f"train.settings ({', '.join(settings)}) that training accepts", got, remedy)


def _measure_after(job: BranchJob, learner: Learner, corpus: Corpus, folder: Path) -> MeasureResult:
    """Measure what a branch or a stage left, on the true items."""
    from mixwright.learner.load import plain_source
    from mixwright.learner.vllm_engine import run_engine
    from mixwright.measure.kept_answers import KeepingLearner
    from mixwright.measure.stage import measure_learner, settings_after

    config, plain_weights = job.config, None
    if (folder / "model").is_dir():
        plain_weights = plain_source(str(folder / "model"))
    elif not job.branch.trains and config.model.adapter is None:
        plain_weights = plain_source(job.base)
    settings, seed = settings_after(config.measure), seed_after(config.seed, job.seed)
    with run_engine(config, learner, plain_weights):
        return measure_learner(KeepingLearner(learner, folder / ANSWERS_FILE), corpus, settings, seed=seed)
