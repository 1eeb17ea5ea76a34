"""The stage of a plan in a trial: its learning rate, and plans that are refused."""

import dataclasses
import json
import random
from pathlib import Path

import pytest
from trial_parts import start_run

from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig, TrainConfig, TrialConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.plan.validate import validate_plan
from mixwright.records import Example, Plan, Stage
from mixwright.run.folder import RunFolder
from mixwright.trial.arm_roles import why_left_out
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
    trial = Trial(run, config, plan, Corpus.load(run.corpus), [str(run.path / "bases" / "base-0")], progress=lambda *_: None)
    trial.measure()
    trial.train(trial.arm_jobs([arm]))
    return trial


def test_a_single_stage_trains_at_its_own_rate(tmp_path: Path) -> None:
    """As the settings do where they name that rate."""
    losses = {}
    for name, border, rate in (("own", {"learning_rate": 1e-4}, 8e-3), ("settings", {}, 1e-4), ("other", {}, 8e-3)):
        plan = staged("first", **border)
        run = prepared(tmp_path / name, plan)
        config = dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, learning_rate=rate))
        jobs_of(run, plan, config=config)
        lines = (run.branch("steered", 0) / "steps.jsonl").read_text().splitlines()
        losses[name] = [json.loads(line)["loss"] for line in lines]
    assert losses["own"] == losses["settings"] != losses["other"]


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (staged("first", learning_rate=0.0), "learning_rate"),
        (staged("first", learning_rate=10.5), "learning_rate above 0 and at most 10"),
        (staged("first", "last"), "a plan of one stage, got 2"),
        (staged(), "a plan of one stage, got 0"),
    ],
)
def test_plans_that_make_no_sense_are_refused(plan: Plan, words: str) -> None:
    with pytest.raises(InputError, match=words):
        validate_plan(plan, digits().cells())


def test_a_null_that_has_nothing_to_permute_is_left_out() -> None:
    assert why_left_out("permuted", staged("first"), digits()) == "there are no rewards to permute"
