"""Adapters in trials: arms that train the plan through one, what is left of them, and an adapter for all arms."""

import dataclasses
import json
import random
from pathlib import Path

import pytest
from safetensors.torch import load_file
from trial_parts import start_run, try_folder

from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig, TrainConfig, TrialConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.learner.load import load_learner, merge_adapter
from mixwright.measure.bases import seed_after
from mixwright.measure.stage import measure_learner, settings_after
from mixwright.records import Example, Plan, Stage
from mixwright.run.folder import RunFolder, read_measurements
from mixwright.run.preflight import check_trial
from mixwright.trial.jobs import Trial

RATES = {"svf": {"learning_rate": 3e-2}, "lora": {"learning_rate": 1e-2, "rank": 4}}
CONFIG = RunConfig(
    CorpusConfig("unused"),
    ModelConfig(width=32, depth=1, heads=2, vocabulary=264),
    MeasureConfig(items=24, samples=1, max_new_tokens=2),
    train=TrainConfig("sft", 60, 16, learning_rate=8e-3, settings={"max_length": 32}, adapters=RATES),
    trial=TrialConfig(("svf", "lora"), seeds=1, workers=1),
)


def prepared(folder: Path) -> tuple[RunFolder, Path]:
    """Rows whose target is the last digit of the prompt, and a new model."""
    rng, rows = random.Random(4), []
    for number in range(260):
        value = f"{rng.randrange(1000):03d}"
        split = "eval" if number >= 230 else "train"
        rows.append(Example(f"r{number}", "last", f"{value} = ", target=value[2], answer=value[2], split=split))
    plan = Plan("by hand", (Stage("main", "sft", 60, {"last": 1.0}),))
    run = start_run(folder, Corpus.from_examples(rows), plan, CONFIG.model)
    return run, run.path / "bases" / "base-0"


def test_arms_train_through_their_adapter_and_leave_it_or_plain_weights(tmp_path: Path) -> None:
    run, base = prepared(tmp_path)
    result = try_folder(run, CONFIG, progress=lambda *_: None)
    start = load_learner(str(base)).model.state_dict()
    for arm in ("svf", "lora"):
        lines = [json.loads(line) for line in (run.branch(arm, 0) / "steps.jsonl").read_text().splitlines()]
        losses = [sum(nats for nats, _ in line["losses"].values()) for line in lines]
        assert sum(losses[-10:]) < 0.97 * sum(losses[:10]), f"{arm} learns"
        left = run.branch(arm, 0) / ("model" if arm == "svf" else "adapter")
        trained = merge_adapter(load_learner(str(left)))
        assert type(trained.model).__name__ == "LlamaForCausalLM", "of the base's own class"
        assert (run.branch(arm, 0) / "model").is_dir() == (arm == "svf"), "an adapter of PEFT needs no copy of the model"
        moved = {name for name, value in trained.model.state_dict().items() if not value.equal(start[name])}
        assert moved, f"{arm} changes weights"
        assert not any("embed" in name or "norm" in name for name in moved), "embeddings and norms stay"
    (scales,) = (run.branch("svf", 0) / "adapter").glob("*.safetensors")
    assert sum(value.numel() for value in load_file(scales).values()) < 1000
    assert {effect.arm for effect in result.effects} == {"svf", "lora"}


def test_an_adapter_for_all_arms_and_what_is_refused(tmp_path: Path) -> None:
    run, base = prepared(tmp_path)
    train = dataclasses.replace(CONFIG.train, adapter="svf", steps=2)
    config = dataclasses.replace(CONFIG, train=train, trial=dataclasses.replace(CONFIG.trial, arms=("steered",)))
    plan, corpus = Plan("by hand", (Stage("main", "sft", 2, {"last": 1.0}),)), Corpus.load(run.corpus)
    trial = Trial(run, config, plan, corpus, str(base), progress=lambda *_: None)
    trial.measure()
    trial.train(trial.arm_jobs(["steered"]))
    assert (run.branch("steered", 0) / "adapter").is_dir()
    for wrong, words in (({"adapter": "svg"}, "svf"), ({"adapters": {"lora": {"rang": 3}}}, "rang")):
        settings = dataclasses.replace(CONFIG, train=dataclasses.replace(CONFIG.train, **wrong))
        with pytest.raises(InputError, match=words):
            check_trial(settings, corpus)


def test_with_and_without_merging_a_branch_says_the_same(tmp_path: Path) -> None:
    """The adapter is read on the base; a merged model gives the same measurements."""
    run, _ = prepared(tmp_path)
    config = dataclasses.replace(CONFIG, trial=dataclasses.replace(CONFIG.trial, arms=("lora",)))
    try_folder(run, config, progress=lambda *_: None)
    merged = merge_adapter(load_learner(str(run.branch("lora", 0) / "adapter")))
    seed, settings = seed_after(config.seed, 0), settings_after(config.measure)
    ours = measure_learner(merged, Corpus.load(run.corpus), settings, seed=seed).measurements
    found = read_measurements(run.branch("lora", 0) / "after.parquet")
    assert len(found) == len(ours) > 10
    for one, other in zip(found, ours, strict=True):
        assert (one.probe, one.task, one.name, one.n) == (other.probe, other.task, other.name, other.n)
        assert one.value == pytest.approx(other.value, abs=1e-4)
