"""Plans of several stages in trials: borders, resuming, and the arms."""

import dataclasses
import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from trial_parts import start_run, try_folder

from mixwright.answers.table import Answers
from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig, TrainConfig, TrialConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.learner.load import load_learner
from mixwright.plan.validate import validate_plan
from mixwright.records import Example, Plan, Stage, TrialResult
from mixwright.run.folder import RunFolder, read_measurements
from mixwright.trial import branch
from mixwright.trial.arm_plans import permuted_order
from mixwright.trial.arm_roles import make_branch, why_left_out
from mixwright.trial.jobs import Trial

FEW = 8
CONFIG = RunConfig(
    CorpusConfig("unused"),
    ModelConfig(width=32, depth=1, heads=2, vocabulary=264),
    MeasureConfig(items=24, samples=1, max_new_tokens=2),
    train=TrainConfig("sft", 2 * FEW, 16, learning_rate=8e-3, settings={"max_length": 32}),
    trial=TrialConfig(("steered",), seeds=1, workers=1),
)


def digits() -> Corpus:
    """Task `first` asks for the first digit of three, `last` for the last one, `none` for a letter that is always `x`."""
    rng, rows = random.Random(3), []
    for task, place in (("first", 0), ("last", 2), ("none", None)):
        for number in range(140):
            value = f"{rng.randrange(1000):03d}"
            answer, split = "x" if place is None else value[place], "eval" if number >= 116 else "train"
            prompt = f"{task[0]} {value} = "
            rows.append(Example(f"{task}{number}", task, prompt, target=answer, answer=answer, split=split))
    return Corpus.from_examples(rows)


def staged(*tasks: str, steps: int = FEW, **border: object) -> Plan:
    return Plan("by hand", tuple(Stage(f"{task} alone", "sft", steps, {task: 1.0}, **border) for task in tasks))  # type: ignore[arg-type]


def prepared(folder: Path, plan: Plan) -> RunFolder:
    return start_run(folder, digits(), plan, CONFIG.model)


def jobs_of(run: RunFolder, plan: Plan, arm: str = "steered", config: RunConfig = CONFIG) -> Trial:
    trial = Trial(run, config, plan, Corpus.load(run.corpus), str(run.path / "bases" / "base-0"), progress=lambda *_: None)
    trial.measure()
    trial.train(trial.arm_jobs([arm]))
    return trial


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".safetensors", ".jsonl", ".parquet"))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_trial_trains_every_stage_and_compares_with_all_tasks_together(tmp_path: Path) -> None:
    plan = staged("first", "last")
    run = prepared(tmp_path, plan)
    result: TrialResult = try_folder(run, CONFIG, progress=lambda *_: None)
    assert result.references == ("frozen", "joint")
    folder = run.branch("steered", 0)
    lines = [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(2 * FEW)), "steps are counted on over the border"
    drawn = [set(line["losses"]) for line in lines]
    assert set.union(*drawn[:FEW]) == {"first"}
    assert set.union(*drawn[FEW:]) == {"last"}
    measured = [read_measurements(folder / place) for place in ("stages/1/measured.parquet", "stages/2/measured.parquet")]
    assert measured[0] != measured[1] == read_measurements(folder / "after.parquet"), "each after its own stage"
    assert not list(folder.glob("stages/*/model")), "only the last model is kept"


def test_a_stage_starts_from_the_weights_that_the_one_before_left(tmp_path: Path) -> None:
    """The second stage trains at a rate that moves nothing, so the branch ends where the first stage did."""
    first, second = staged("first", "last").stages
    plan = Plan("by hand", (first, dataclasses.replace(second, learning_rate=1e-12)))
    run, shorter = prepared(tmp_path / "both", plan), prepared(tmp_path / "first", staged("first"))
    jobs_of(run, plan)
    jobs_of(shorter, staged("first"))
    folders = (run.path / "bases" / "base-0", shorter.branch("steered", 0) / "model", run.branch("steered", 0) / "model")
    base, between, end = (load_learner(str(folder)).model.state_dict() for folder in folders)
    assert min((value - base[name]).abs().max() for name, value in between.items()) > 1e-3
    assert max((value - between[name]).abs().max() for name, value in end.items()) < 1e-9


def test_an_interrupted_branch_goes_on_at_the_border_to_the_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = staged("first", "last")
    run = prepared(tmp_path, plan)
    (job,) = jobs_of(run, plan).arm_jobs(["steered"])
    folder, train, begun = run.branch("steered", 0), branch._train, list[str]()
    whole = digests(folder)
    shutil.rmtree(folder)

    def train_one(stage_job: branch.BranchJob, *args: Any, **named: Any) -> None:
        begun.append(stage_job.branch.plan.stages[0].name)
        if len(begun) == 2:
            raise KeyboardInterrupt
        train(stage_job, *args, **named)

    monkeypatch.setattr(branch, "_train", train_one)
    with pytest.raises(KeyboardInterrupt):
        branch.train_branch(job)
    branch.train_branch(job)
    assert begun == ["first alone", "last alone", "last alone"]
    assert digests(folder) == whole


@pytest.mark.slow
def test_sft_and_then_grpo(tmp_path: Path) -> None:
    plan = Plan(
        "by hand",
        (
            Stage("imitate", "sft", 8, {"first": 1.0}, learning_rate=8e-3),
            Stage("practise", "grpo", 2, {"first": 1.0}),
        ),
    )
    train = TrainConfig("grpo", 10, 4, learning_rate=1e-4, generations=4, canary_every=0)
    config = dataclasses.replace(CONFIG, train=train)
    run = prepared(tmp_path, plan)
    jobs_of(run, plan, config=config)
    folder = run.branch("steered", 0)
    lines = [json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(10))
    assert json.loads((folder / "branch.json").read_text())["objective"] == "grpo"
    measured = len(Answers.read(folder / "stages/1/measured.answers.parquet"))
    assert json.loads((folder / "proof.json").read_text())["rollouts"] == 2 * 4 * 4 + measured


def test_a_single_stage_trains_at_its_own_rate(tmp_path: Path) -> None:
    """As the settings do where they name that rate; `joint` makes one stage of several, and keeps the longest's rate."""
    losses = {}
    for name, border, rate in (("own", {"learning_rate": 1e-4}, 8e-3), ("settings", {}, 1e-4), ("other", {}, 8e-3)):
        plan = staged("first", **border)
        run = prepared(tmp_path / name, plan)
        config = dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, learning_rate=rate))
        jobs_of(run, plan, config=config)
        lines = (run.branch("steered", 0) / "steps.jsonl").read_text().splitlines()
        losses[name] = [json.loads(line)["loss"] for line in lines]
    assert losses["own"] == losses["settings"] != losses["other"]


def test_the_arms_of_a_plan_of_several_stages() -> None:
    corpus = digits()
    plan = Plan("x", (Stage("a", "sft", 30, {"first": 1.0}), Stage("b", "sft", 10, {"last": 0.5, "none": 0.5})))
    (joint,) = make_branch("joint", plan, corpus).plan.stages
    assert (joint.steps, joint.weights) == (40, {"first": 0.75, "last": 0.125, "none": 0.125})
    mixed = dataclasses.replace(plan, stages=(*plan.stages, Stage("c", "grpo", 5, {"first": 1.0})))
    assert [stage.steps for stage in make_branch("joint", mixed, corpus).plan.stages] == [40, 5]
    other = permuted_order(plan, 0)
    assert [stage.weights for stage in other.stages] == [dict(stage.weights) for stage in reversed(plan.stages)]
    assert [stage.name for stage in other.stages] == ["a", "b"]
    assert permuted_order(plan, 5) == permuted_order(plan, 5)
    why = {null: why_left_out(null, plan, corpus) for null in ("permuted_order", "shuffled_levels", "permuted")}
    assert why == {
        "permuted_order": "",
        "shuffled_levels": "the plan has several stages",
        "permuted": "there are no rewards to permute",
    }
    assert why_left_out("permuted_order", staged("first"), corpus) == "the plan has one stage"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": 10.5}, "learning_rate above 0 and at most 10"),
        ({"expected": {"first": 1.2}}, "expected success"),
        ({"expected": {"fist": 0.2}}, "first"),
    ],
)
def test_borders_that_make_no_sense_are_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        validate_plan(staged("first", "last", **change), digits().cells())
    with pytest.raises(InputError, match="different names"):
        validate_plan(staged("first", "first"), digits().cells())
