"""What a refused or unscored group does to the rest of TRL's GRPO: SteeredGRPOTrainer's docstring, sentence by sentence."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import grpo_parts as parts
import pandas as pd
import pytest
import torch
from grpo_table import LOSSES, TABLE, Setting, build, fake_server, from_disk, held_out
from trainers_tiny import UNIFORM, parameters, read, rows, script
from transformers import TrainerCallback

from mixwright import SteeredGRPOTrainer, SteeringConfig
from mixwright.records import Action

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*gradient_checkpointing.*:FutureWarning"  # TRL 1.16 still sets transformers' older name
)
PLAIN_STEPS = {"optim": "sgd", "max_grad_norm": 0.0, "lr_scheduler_type": "constant", "learning_rate": 1.0}
"""SGD without clipping: a step is the gradient."""


def steered(folder: Path, setting: Setting, refuse: Any = lambda groups: [], **more: Any) -> tuple[Any, list[Any]]:
    """A steered trainer that refuses what `refuse` picks from a batch's groups, and the batches it will have seen."""
    wide = SteeringConfig(UNIFORM, reward_range=(-10, 10))  # no reward is clipped
    trainer = build(SteeredGRPOTrainer, folder, setting, steering=wide, **more)
    seen = script(trainer, lambda groups: [Action("refuse", group.example, None, "test") for group in refuse(groups)])
    return trainer, seen


def outputs(trainer: Any) -> list[dict[str, Any]]:
    """What TRL makes of every generation batch of a training to come."""
    found: list[dict[str, Any]] = []
    score = trainer._generate_and_score_completions

    def watched(inputs: Any) -> Any:
        output = score(inputs)
        found.append(output)
        return output

    trainer._generate_and_score_completions = watched
    return found


def moved(trainer: Any) -> torch.Tensor:
    """How far a training moves the parameters."""
    before = parameters(trainer)
    trainer.train()
    return parameters(trainer) - before


@pytest.mark.parametrize("name", LOSSES)
def test_refused_groups_still_count_in_the_denominator_of_every_loss(name: str, tmp_path: Path) -> None:
    """The gradient of all groups is the sum of what each half gives when the other half is refused."""
    setting = Setting(LOSSES[name].config | PLAIN_STEPS | {"max_steps": 1, "mask_truncated_completions": False})
    steps = []
    for place, refuse in enumerate((lambda groups: [], lambda groups: groups[:2], lambda groups: groups[2:])):
        trainer, seen = steered(tmp_path / str(place), setting, refuse)
        steps.append(moved(trainer))
        assert len({group.example for group in seen[0]}) == 4
    whole, second, first = steps
    assert whole.norm() > 1e-3
    torch.testing.assert_close(first + second, whole, rtol=1e-3, atol=1e-6 + 1e-3 * float(whole.abs().max()))
    assert first.norm() > 1e-4
    assert second.norm() > 1e-4


@pytest.mark.parametrize(
    ("config", "acts"),
    [({}, False), ({"beta": 0.5}, True), ({"entropy_coef": 0.1}, True)],
    ids=["advantages alone", "KL", "entropy bonus"],
)
def test_what_still_acts_on_refused_groups(config: dict[str, Any], acts: bool, tmp_path: Path) -> None:
    """The first step teaches, so that there is something to pull back; everything after it is refused."""
    setting = Setting(PLAIN_STEPS | {"max_steps": 2} | config, kwargs=from_disk)
    trainer, seen = steered(tmp_path, setting, lambda groups: groups if trainer.state.global_step else [])
    values: list[torch.Tensor] = []

    class Watching(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            values.append(parameters(trainer))

    trainer.add_callback(Watching())
    trainer.train()
    assert len(seen) == len(values) == 2
    assert not torch.equal(values[0], values[1]) if acts else torch.equal(values[0], values[1])


def tied(completions: list[str], **kwargs: Any) -> list[float]:
    """A reward that says nothing."""
    return [0.25] * len(completions)


def test_frac_reward_zero_std_counts_a_refused_group_as_one_with_spread(tmp_path: Path) -> None:
    trainer, _ = steered(tmp_path, Setting({"max_steps": 1}, lambda: [tied]), lambda groups: groups[:1])
    trainer.train()
    assert trainer.state.log_history[0]["frac_reward_zero_std"] == 0.75
    assert read(tmp_path, "steps.jsonl")[0]["zero_signal"] == 4


@pytest.mark.parametrize("scale", ["batch", "normalize_then_sum"])
def test_other_groups_are_scaled_without_the_refused_one(scale: str, tmp_path: Path) -> None:
    config = {"scale_rewards": "batch"} if scale == "batch" else {"multi_objective_aggregation": scale}
    trainer, seen = steered(tmp_path, Setting({"max_steps": 1} | config), lambda groups: groups[:1])
    found = outputs(trainer)
    trainer.train()
    rewards = torch.tensor([group.rewards for group in seen[0]])[1:]
    if scale == "batch":
        wanted = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std() + 1e-4)
    else:
        own = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)
        wanted = (own - own.mean()) / (own.std() + 1e-4)
    torch.testing.assert_close(found[0]["advantages"].reshape(4, 4)[1:], wanted, rtol=1e-4, atol=1e-5)
    assert torch.equal(found[0]["advantages"][:4], torch.zeros(4))


@pytest.mark.parametrize("name", ["normalize_then_sum", "scale_rewards=batch", "scale_rewards=none", "loss_type=vespo"])
def test_a_batch_refused_as_a_whole_moves_nothing(name: str, tmp_path: Path) -> None:
    setting = Setting(TABLE[name].config | PLAIN_STEPS, TABLE[name].rewards)
    trainer, _ = steered(tmp_path, setting, lambda groups: groups)
    found = outputs(trainer)
    assert torch.equal(moved(trainer), torch.zeros_like(parameters(trainer)))
    assert all(torch.equal(output["advantages"], torch.zeros(16)) for output in found)


def test_means_and_the_completions_table_leave_refused_groups_out(tmp_path: Path) -> None:
    config = {"max_steps": 1, "log_completions": True, "reward_weights": [2.0, 1.0]}
    trainer, seen = steered(tmp_path, Setting(config, lambda: [parts.noted, tied]), lambda groups: groups[1:2])
    trainer.train()
    logged = trainer.state.log_history[0]
    admitted = [reward for place in (0, 2, 3) for reward in seen[0][place].rewards]
    assert logged["reward"] == pytest.approx(sum(admitted) / 12, rel=1e-5)
    assert logged["rewards/noted/mean"] == pytest.approx((sum(admitted) / 12 - 0.25) / 2, rel=1e-5)
    assert logged["steering/refused_share"] == 0.25
    table = pd.read_parquet(tmp_path / "completions" / "completions_00001.parquet")
    assert table["noted"].isna().tolist() == [place // 4 == 1 for place in range(16)]
    assert table["length"].notna().all()
    assert (table["advantage"][4:8] == 0).all()


def nothing(completions: list[str], **kwargs: Any) -> list[float | None]:
    """A reward that scores no completion."""
    return [None] * len(completions)


@pytest.mark.filterwarnings("ignore:.*All reward functions returned None.*")
def test_batches_without_any_score_are_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trainer, seen = steered(tmp_path, Setting(PLAIN_STEPS, lambda: [nothing]))
    assert torch.equal(moved(trainer), torch.zeros_like(parameters(trainer)))
    assert seen == [[], []]
    said = [record for record in caplog.records if record.name == "mixwright" and "nothing scored" in record.getMessage()]
    assert len(said) == 1
    (line,) = [line for line in read(tmp_path, "decisions.jsonl") if line["what"] == "nothing scored"]
    assert line["step"] == 0
    assert "4" in line["because"]
    proof = trainer.steered.proof()
    assert (proof["groups"], proof["unscored"], proof["rollouts"]) == (0, 8, 32)
    assert [line["groups"] for line in read(tmp_path, "steps.jsonl")] == [0, 0]


def some(completions: list[str], **kwargs: Any) -> list[float | None]:
    """Scores the first three of each four; nothing of the last group."""
    scores = parts.distinct(completions)
    return [None if place % 4 == 3 or place >= 12 else score for place, score in enumerate(scores)]


def test_unscored_completions_are_left_out_and_charged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)  # TRL warns of rows without a reward
    trainer, seen = steered(tmp_path, Setting(rewards=lambda: [some]))
    found = outputs(trainer)
    trainer.train()
    assert [[len(group.rewards) for group in batch] for batch in seen] == [[3, 3, 3], [3, 3, 3]]
    for output in found:
        silent = output["advantages"] == 0
        assert silent.tolist() == [place % 4 == 3 or place >= 12 for place in range(16)]
    proof = trainer.steered.proof()
    assert (proof["groups"], proof["unscored"], proof["rollouts"]) == (6, 2, 32)
    assert not [line for line in read(tmp_path, "decisions.jsonl") if line["what"] == "nothing scored"]


def test_evaluation_leaves_steering_alone(tmp_path: Path) -> None:
    config = {"per_device_eval_batch_size": 4, "num_generations_eval": 2, "eval_strategy": "steps", "eval_steps": 1}
    judged: list[bool] = []

    def judge(completions: list[str], **kwargs: Any) -> list[float]:
        judged.append("mixwright_index" in kwargs)
        return parts.distinct(completions)

    trainer, seen = steered(tmp_path, Setting(config, lambda: [judge], held_out))
    trainer.train()
    for task in ("letters", "sums"):  # TRL names the loss by task; the reward is beside it in the same line
        logged = [line for line in trainer.state.log_history if f"eval_{task}_loss" in line]
        assert len(logged) == 2
        assert all("eval_reward" in line and not [name for name in line if "steering" in name] for line in logged)
    state, lines = trainer.steered.state(), read(tmp_path, "steps.jsonl")
    metrics = trainer.evaluate() | trainer.evaluate(trainer.train_dataset.select(range(4)))
    assert {"eval_letters_loss", "eval_sums_loss", "eval_loss", "eval_reward"} <= metrics.keys()
    assert trainer.steered.state() == state
    assert read(tmp_path, "steps.jsonl") == lines
    assert len(seen) == len(lines) == 2
    assert not any(judged)


def test_a_vllm_server_is_asked_once_per_prompt_and_only_for_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_server(monkeypatch)
    asked: list[int] = []
    generate = parts.Server.generate

    def counted(self: Any, prompts: Any, n: int, **settings: Any) -> Any:
        asked.append(len(prompts))
        assert n == 4
        return generate(self, prompts, n, **settings)

    monkeypatch.setattr(parts.Server, "generate", counted)
    trainer, seen = steered(tmp_path, TABLE["vllm server"], train_dataset=rows(12))
    trainer.train()
    assert asked == [4, 4]
    assert trainer.vllm_generation.vllm_client.weights == 2 * sum(p.numel() for p in trainer.model.parameters())
    assert len(seen) == 2
