"""SteeredDPOTrainer: what it tells, what it decides, what it leaves alone, on a tiny Llama."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from trainers_tiny import dpo_config, pairs, parameters, read, saved_model, script, tokenizer
from trl import DPOTrainer

from mixwright import SteeredDPOTrainer, SteeringConfig
from mixwright.config import MeasureConfig, TrainConfig
from mixwright.contracts import Branch
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.learner.learner import Learner
from mixwright.records import Action, Example, Plan, Stage
from mixwright.trial.training import make_trainer

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*gradient_checkpointing.*:FutureWarning"  # TRL 1.16 still sets transformers' older name
)

PLAN = Plan("test", (Stage("dpo", "dpo", 10, {"letters": 0.75, "sums": 0.25}),))


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("base") / "model"


def make(folder: Path, disk: Path, settings: dict[str, Any] | None = None, **kwargs: Any) -> Any:
    arguments = {"train_dataset": pairs(), "processing_class": tokenizer(), "steering": SteeringConfig(PLAN)} | kwargs
    return SteeredDPOTrainer(saved_model(disk), args=dpo_config(folder, **(settings or {})), **arguments)


def nats(trained: Any, prompt: str, answer: str) -> float:
    """Independent: log-probability of `answer` and the end after `prompt`, from full logits."""
    words = tokenizer()
    start = words(prompt)["input_ids"]
    ids = torch.tensor([[*start, *words(answer)["input_ids"], words.eos_token_id]])
    with torch.no_grad():
        table = trained(input_ids=ids).logits.log_softmax(-1)[0]
    return sum(table[i - 1, ids[0, i]].item() for i in range(len(start), ids.shape[1]))


def test_pairs_are_told_as_they_are(tmp_path: Path, disk: Path) -> None:
    trainer = make(tmp_path, disk, {"max_steps": 2, "beta": 0.3, "learning_rate": 3e-3})
    seen = script(trainer, lambda found: [])
    weights: list[Any] = []
    step = trainer.training_step
    trainer.training_step = lambda model, *rest, **kw: (
        weights.append({k: v.clone() for k, v in model.state_dict().items()}),
        step(model, *rest, **kw),
    )[1]
    trainer.train()
    examples = {row["id"]: row for row in pairs()}
    reference, then = saved_model(disk), saved_model(disk)
    then.load_state_dict(weights[1])  # before the second step: moved away from the reference
    assert [pair.task for pair in seen[0] + seen[1]].count("letters") == 6
    for pair in seen[1]:
        row = examples[pair.example]
        values = [nats(m, row["prompt"], row[name]) for m in (then, reference) for name in ("chosen", "rejected")]
        told = [pair.chosen_logprob, pair.rejected_logprob, pair.chosen_reference, pair.rejected_reference]
        assert told == pytest.approx(values, rel=1e-4)
        margin = 0.3 * ((values[0] - values[2]) - (values[1] - values[3]))
        assert pair.margin == pytest.approx(margin, abs=1e-4)
        assert abs(margin) > 1e-3
    line = read(tmp_path, "steps.jsonl")[1]
    letters = [pair.chosen_logratio for pair in seen[1] if pair.task == "letters"]
    assert line["chosen_logratio"]["letters"] == pytest.approx(sum(letters) / len(letters))
    assert not {"cells", "success", "beta", "groups", "rollouts"} & set(line)
    logged = trainer.state.log_history[1]
    assert logged["steering/margin/letters"] == pytest.approx(line["margin"]["letters"])
    assert {"steering/chosen_logratio/sums", "steering/rejected_logratio/sums", "steering/share/sums"} <= set(logged)
    proof = json.loads((tmp_path / "steering" / "proof.json").read_text())
    assert proof["pairs"] == 8
    assert not {"groups", "zero_signal_share", "rollouts"} & set(proof)


def test_a_preference_is_learnt_under_steering(tmp_path: Path, disk: Path) -> None:
    """Both tasks prefer the right answer; after training the margin is positive on every pair, in the shares of the plan."""
    settings = {"max_steps": 30, "learning_rate": 3e-3, "per_device_train_batch_size": 8, "lr_scheduler_type": "constant"}
    trainer = make(tmp_path, disk, settings)
    trainer.train()
    reference, examples = saved_model(disk), pairs()
    margins = []
    for row in examples:
        now, then = (
            [nats(m, row["prompt"], row[name]) for name in ("chosen", "rejected")] for m in (trainer.model, reference)
        )
        margins.append((now[0] - then[0]) - (now[1] - then[1]))
    assert min(margins) > 1
    lines = read(tmp_path, "steps.jsonl")
    assert lines[0]["margin"] == {"letters": 0, "sums": 0}
    assert min(lines[-1]["margin"].values()) > 0.1
    assert lines[-1]["loss"] < 0.5 < math.log(2) == pytest.approx(lines[0]["loss"], abs=1e-6)
    assert trainer.steered.proof()["drawn"] == pytest.approx({"letters": 0.75, "sums": 0.25})


def test_beta_is_never_moved(tmp_path: Path, disk: Path) -> None:
    trainer = make(tmp_path, disk)
    orders = [Action("coefficient", "beta", 0.4, "too far"), Action("lr_factor", "lr", 0.5, "too fast")]
    script(trainer, lambda found: orders)
    trainer.train()
    assert trainer.beta == trainer.args.beta == 0.1
    assert trainer.steered.lr_factor == 0.5
    notes = {line["what"]: line["because"] for line in read(tmp_path, "decisions.jsonl")}
    assert "temperature" in notes["not executed: beta"]
    assert "steering/beta" not in set().union(*trainer.state.log_history)


def test_learning_rate_skipped_steps_and_stop_act(tmp_path: Path, disk: Path) -> None:
    still = make(tmp_path / "still", disk)
    script(still, lambda found: [Action("skip_step", "step", None, "wait")])
    still.train()
    assert torch.equal(parameters(still), torch.cat([p.reshape(-1) for p in saved_model(disk).parameters()]))
    assert still.steered.proof()["skipped_steps"] == 3
    stopped = make(tmp_path / "stopped", disk)
    script(stopped, lambda found: [Action("stop", "run", None, "enough")])
    stopped.train()
    assert stopped.state.global_step == 1


def test_the_default_plan_watches_and_leaves_the_rest_alone(tmp_path: Path, disk: Path) -> None:
    """Weights by rows; only displacement, written down but not acted upon."""
    trainer = make(tmp_path, disk, {"max_steps": 20, "learning_rate": 2e-2, "lr_scheduler_type": "constant"}, steering=True)
    monitor = trainer.steered.engine._monitors[0]
    monitor.min_pairs, monitor.standard_errors, monitor.min_fall = 4, 0.0, -100.0  # alarms whenever margins grow
    trainer.train()
    decisions = read(tmp_path, "decisions.jsonl")
    (alarm,) = [line for line in decisions if line["what"] == "alarm.displacement"][:1]
    assert "nats less likely than under the reference" in alarm["because"]
    assert trainer.steered.lr_factor == 1.0
    assert not trainer.steered.stop_reason
    assert trainer.steered.proof()["wanted"] == {"letters": 0.5, "sums": 0.5}


def test_a_resumed_run_continues_as_the_uninterrupted_one(tmp_path: Path, disk: Path) -> None:
    settings = {"max_steps": 8, "save_strategy": "steps", "save_steps": 1, "per_device_train_batch_size": 5}
    stage = Stage("dpo", "dpo", 10, {"letters": 0.75, "sums": 0.25}, monitors=("displacement",))
    steering = SteeringConfig(Plan("test", (stage,)))
    whole = make(tmp_path / "whole", disk, settings, steering=steering)
    whole.train()
    shutil.copytree(tmp_path / "whole", tmp_path / "broken")
    resumed = make(tmp_path / "broken", disk, settings, steering=steering)
    resumed.train(resume_from_checkpoint=str(tmp_path / "broken" / "checkpoint-5"))
    assert resumed.steered.state() == whole.steered.state()
    one, two = (tmp_path / side / "steering" / "steps.jsonl" for side in ("whole", "broken"))
    assert one.read_text() == two.read_text()
    assert torch.equal(parameters(resumed), parameters(whole))


def test_a_plan_for_another_trainer_and_a_changed_trl_are_refused(
    tmp_path: Path, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sft = Plan("test", (Stage("sft", "sft", 10, {"letters": 1.0}),))
    with pytest.raises(InputError, match="objective is dpo"):
        make(tmp_path, disk, steering=SteeringConfig(sft))
    monkeypatch.delattr(DPOTrainer, "_set_signature_columns_if_needed")
    monkeypatch.delattr("transformers.Trainer._set_signature_columns_if_needed")
    with pytest.raises(InputError, match="_set_signature_columns_if_needed"):
        make(tmp_path, disk)


def corpus(worse: str | None = "x") -> Corpus:
    """Sums with a right and a wrong answer, as a corpus has them."""
    tasks = ["letters", "sums"] * 5
    return Corpus.from_examples(
        Example(f"row-{i}", task, f"{i}=", chosen="a", rejected=worse, answer="a") for i, task in enumerate(tasks)
    )


def test_a_trial_trains_pairs_of_a_corpus(tmp_path: Path, disk: Path) -> None:
    short = replace(PLAN, stages=(replace(PLAN.stages[0], steps=2),))
    learner, plan = Learner(saved_model(disk), tokenizer(), "tiny"), Branch(short)
    settings = (TrainConfig(objective="dpo", settings={"beta": 0.2}), MeasureConfig())
    trainer = make_trainer(learner, corpus(), plan, *settings, seed=0, folder=tmp_path / "branch")
    trainer.train()
    assert trainer.beta == 0.2
    lines = [json.loads(line) for line in (tmp_path / "branch" / "steps.jsonl").read_text().splitlines()]
    assert [line["pairs"] for line in lines] == [8, 2]  # an epoch has the ten pairs of the corpus
    assert lines[1]["margin"].keys() <= {"letters", "sums"}
    with pytest.raises(InputError, match=r"(?s)'rejected' in every.*10 of 10"):
        make_trainer(learner, corpus(None), plan, *settings, seed=0, folder=tmp_path / "none")
