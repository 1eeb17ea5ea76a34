"""SteeredGRPOTrainer on a tiny Llama: what its levers do. The settings of TRL are in test_grpo_settings.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from trainers_tiny import UNIFORM, grpo_config, make, model, parameters, read, rows, script, tokenizer, vowels

from mixwright import SteeredGRPOTrainer, SteeringConfig
from mixwright.final_answer import final_answer
from mixwright.records import Action
from mixwright.trainers.rewards import read_completions

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*gradient_checkpointing.*:FutureWarning"  # TRL 1.16 still sets transformers' older name
)


def test_groups_are_whole_and_shares_as_planned(tmp_path: Path) -> None:
    trainer = make(SteeredGRPOTrainer, tmp_path, {"max_steps": 8}, steering=SteeringConfig(UNIFORM))
    seen = script(trainer, lambda groups: [])
    trainer.train()
    groups = [group for batch in seen for group in batch]
    assert all(len(group.rewards) == 4 for group in groups)
    steps = read(tmp_path, "steps.jsonl")
    assert len(steps) == len(seen)
    assert steps[-1]["rollouts"] == 4 * len(groups)
    letters = sum(group.task == "letters" for group in groups)
    assert abs(letters - 0.75 * len(groups)) <= 1
    drawn = pq.read_table(tmp_path / "steering" / "draws.parquet").to_pylist()
    used = [row["example"] for row in drawn if row["step"] is not None]
    assert used == [group.example for group in groups]
    proof = json.loads((tmp_path / "steering" / "proof.json").read_text())
    assert proof["groups"] == len(groups)
    assert proof["wanted"] == pytest.approx({"letters": 0.75, "sums": 0.25})


def distinct(completions: list[str], **kwargs: Any) -> list[float]:
    """A reward that hardly ever ties."""
    return [sum(ord(c) * 31**i for i, c in enumerate(text)) % 1009 / 1009 for text in completions]


def watch_advantages(trainer: Any) -> list[torch.Tensor]:
    """Advantages of every generation batch, in row order."""
    found: list[torch.Tensor] = []
    score = trainer._generate_and_score_completions

    def watched(inputs: Any) -> Any:
        output = score(inputs)
        found.append(output["advantages"].clone())
        return output

    trainer._generate_and_score_completions = watched
    return found


def test_a_step_without_informative_groups_moves_nothing(tmp_path: Path) -> None:
    trainer = make(SteeredGRPOTrainer, tmp_path, {"max_steps": 4}, steering=SteeringConfig(UNIFORM))
    script(trainer, lambda groups: [Action("skip_step", "step", None, "test")] if trainer.state.global_step == 2 else [])
    values: list[torch.Tensor] = []
    moments: list[torch.Tensor] = []
    step_end = trainer.hooks.on_step_end

    def record(args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        values.append(parameters(trainer))
        moments.append(torch.cat([s["exp_avg"].reshape(-1) for s in trainer.optimizer.state.values()]))
        return step_end(args, state, control, **kwargs)

    trainer.hooks.on_step_end = record
    trainer.train()
    assert torch.equal(values[2], values[1])
    assert torch.equal(moments[2], moments[1])
    assert not torch.equal(values[1], values[0])
    assert not torch.equal(values[3], values[2])
    assert json.loads((tmp_path / "steering" / "proof.json").read_text())["skipped_steps"] == 1


def test_lr_factor_scales_the_step_and_leaves_the_schedule_alone(tmp_path: Path) -> None:
    settings = {"max_steps": 1, "optim": "sgd", "max_grad_norm": 0.0, "lr_scheduler_type": "constant"}
    moved = []
    for factor in (1.0, 0.25):
        trainer = make(SteeredGRPOTrainer, tmp_path / str(factor), settings, steering=SteeringConfig(UNIFORM))
        script(trainer, lambda groups, factor=factor: [Action("lr_factor", "lr", factor, "test")])
        before = parameters(trainer)
        trainer.train()
        moved.append(parameters(trainer) - before)
        assert trainer.optimizer.param_groups[0]["lr"] == 1e-3
    # SGD moves by learning rate times gradient, so a quarter of the rate is a quarter of the way (up to float rounding).
    torch.testing.assert_close(moved[1], moved[0] / 4, rtol=1e-2, atol=1e-7)


def test_beta_moves_only_when_there_is_a_reference_model(tmp_path: Path) -> None:
    model().save_pretrained(tmp_path / "base")
    tokenizer().save_pretrained(tmp_path / "base")
    raised = [Action("coefficient", "beta", 0.5, "test")]
    with_beta = SteeredGRPOTrainer(
        str(tmp_path / "base"),
        vowels,
        grpo_config(tmp_path / "a", beta=0.1, max_steps=2),
        train_dataset=rows(),
        steering=SteeringConfig(UNIFORM),
    )
    script(with_beta, lambda groups: raised)
    with_beta.train()
    assert with_beta.beta == 0.5
    assert read(tmp_path / "a", "steps.jsonl")[-1]["kl_nats"] is not None
    without = make(SteeredGRPOTrainer, tmp_path / "b", {"max_steps": 1}, steering=SteeringConfig(UNIFORM))
    script(without, lambda groups: raised)
    without.train()
    assert without.beta == 0.0
    assert [d["what"] for d in read(tmp_path / "b", "decisions.jsonl")] == ["not executed: beta"]


def test_permuting_keeps_every_group_but_not_the_pairing(tmp_path: Path) -> None:
    """Advantages of a permuted run are those of the true rewards, shuffled inside each group."""

    found = []
    for permuted in (False, True):
        steering = SteeringConfig(UNIFORM, permute_rewards=permuted)
        trainer = make(
            SteeredGRPOTrainer, tmp_path / str(permuted), {"max_steps": 1}, steering=steering, reward_funcs=distinct
        )
        seen = script(trainer, lambda groups: [])
        trainer.hooks.begin = lambda step: None
        advantages = watch_advantages(trainer)
        trainer.train()
        found.append((seen, advantages[0]))
    (true_groups, true), (permuted_groups, shuffled) = found
    assert [g.rewards for g in true_groups[0]] == [g.rewards for g in permuted_groups[0]]
    for start in (0, 4):
        torch.testing.assert_close(true[start : start + 4].sort().values, shuffled[start : start + 4].sort().values)
    assert not torch.equal(true, shuffled)


def test_an_easy_reward_is_learnt(tmp_path: Path) -> None:
    settings = {"max_steps": 40, "learning_rate": 1e-2, "per_device_train_batch_size": 32, "num_generations": 8}
    trainer = make(SteeredGRPOTrainer, tmp_path, settings, steering=True)
    trainer.train()
    reward = [line["reward"] for line in read(tmp_path, "steps.jsonl")]
    assert sum(reward[-5:]) / 5 > sum(reward[:5]) / 5 + 0.3


def test_outcomes_carry_what_completions_show_plain_and_conversational(tmp_path: Path) -> None:
    chat = [{"role": "assistant", "content": "2 + 3 # 5"}]
    assert read_completions(range(3), ["2 + 3 # 5", chat, []]) == [(0, "5"), (1, "5"), (2, "")]
    texts: list[str] = []

    def reward(completions: list[str], **kwargs: Any) -> list[float]:
        texts.extend(completions)
        return vowels(completions)

    trainer = make(SteeredGRPOTrainer, tmp_path, {"max_steps": 2}, reward_funcs=reward, steering=SteeringConfig(UNIFORM))
    seen = script(trainer, lambda groups: [])
    trainer.train()
    answers = [answer for batch in seen for group in batch for answer in group.answers]
    assert answers == list(map(final_answer, texts[-len(answers) :]))
    assert len(answers) == 16
