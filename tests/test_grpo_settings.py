"""SteeredGRPOTrainer under every setting of TRL's GRPO: exactly TRL without steering, right with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from grpo_table import TABLE, Setting, build, true_rewards
from trainers_tiny import losses, parameters, read, script
from trl import GRPOTrainer

from mixwright import SteeredGRPOTrainer, SteeringConfig
from mixwright.records import Action, Plan, Stage

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning"),  # TRL 1.16 sets transformers' older name
    pytest.mark.filterwarnings("ignore:.*use_liger_kernel.*:FutureWarning"),
]
PLAN = Plan("test", (Stage("grpo", "grpo", 10, {"letters": 0.5, "sums": 0.5}),))
SIZE = 4
"""Completions of a group."""


@pytest.mark.parametrize("name", TABLE)
def test_without_steering_it_is_trl_to_the_bit(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    TABLE[name].patch(monkeypatch)
    trained = []
    for cls in (GRPOTrainer, SteeredGRPOTrainer):
        trainer = build(cls, tmp_path / cls.__name__, TABLE[name])
        before = parameters(trainer)
        trainer.train()
        after = parameters(trainer)
        trained.append((losses(trainer), after))
        assert not torch.equal(before, after)
    (their_losses, theirs), (our_losses, ours) = trained
    assert our_losses == their_losses
    assert torch.equal(ours, theirs)
    assert not (tmp_path / "SteeredGRPOTrainer" / "steering").exists()


class Seen:
    """What a steered run generated, what it made of it, and what was decided."""

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer
        self.generated: list[tuple[list[Any], list[Any], list[Any]]] = []
        """Prompts, completions and token ids of each generation batch."""
        self.advantages: list[torch.Tensor] = []
        """In row order."""
        self.groups = script(trainer, lambda groups: [Action("refuse", groups[0].example, None, "test")])
        generate, score = trainer._generate, trainer._generate_and_score_completions

        def watched_generate(prompts: Any) -> Any:
            answer = generate(prompts)
            if self._live():
                self.generated.append((prompts, answer[3], answer[1]))
            return answer

        def watched_score(inputs: Any) -> Any:
            output = score(inputs)
            if self._live():
                self.advantages.append(output["advantages"].clone())
            return output

        trainer._generate, trainer._generate_and_score_completions = watched_generate, watched_score

    def _live(self) -> bool:
        """Whether this is training, and not an evaluation."""
        return self.trainer.model.training


@pytest.mark.parametrize("name", TABLE)
def test_with_steering_groups_are_whole_rewards_true_and_refusals_zero(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = TABLE[name]
    setting.patch(monkeypatch)
    trainer = build(SteeredGRPOTrainer, tmp_path, setting, steering=SteeringConfig(PLAN, reward_range=(-10, 10)))
    seen = Seen(trainer)
    before = parameters(trainer)
    trainer.train()
    assert not torch.equal(before, parameters(trainer))
    assert trainer.state.global_step == trainer.state.max_steps
    assert len(seen.groups) == len(seen.generated) == len(seen.advantages) > 0
    check_draws(trainer, tmp_path, seen)
    check_rewards(trainer, setting, seen)
    check_advantages(seen)


def check_draws(trainer: Any, folder: Path, seen: Seen) -> None:
    """Every generated row was drawn, every group observed and charged, in that order, and every batch is a line."""
    observed = [group.example for batch in seen.groups for group in batch]
    drawn = pq.read_table(folder / "steering" / "draws.parquet").to_pylist()
    assert [row["example"] for row in drawn if row["step"] is not None] == observed
    assert all(len(group.rewards) == SIZE for batch in seen.groups for group in batch)
    rows = [prompts[::SIZE] for prompts, _, _ in seen.generated]
    assert sum(map(len, rows)) == len(observed)
    steps = read(folder, "steps.jsonl")
    assert [line["groups"] for line in steps] == [len(batch) for batch in seen.groups]
    proof = trainer.steered.proof()
    assert proof["unscored"] == 0
    assert proof["rollouts"] == SIZE * len(observed)


def check_rewards(trainer: Any, setting: Setting, seen: Seen) -> None:
    """The engine was told the prompt that was answered, and the rewards that its answers truly earn."""
    data = {row["id"]: row for row in trainer.train_dataset}
    for groups, (prompts, completions, ids) in zip(seen.groups, seen.generated, strict=True):
        answered = [data[group.example] for group in groups for _ in range(SIZE)]
        assert [shown(row["prompt"]) for row in answered] == [
            shown(prompt)[: len(shown(row["prompt"]))] for prompt, row in zip(prompts, answered, strict=True)
        ]
        told = [reward for group in groups for reward in group.rewards]
        assert told == pytest.approx(true_rewards(setting, prompts, completions, ids, answered), abs=2e-3, rel=1e-4)


def shown(prompt: Any) -> str:
    """A prompt's text; an environment may have added to it."""
    return prompt if isinstance(prompt, str) else prompt[-1]["content"]


def check_advantages(seen: Seen) -> None:
    """Exactly 0 for refused groups, a signal for every other."""
    admitted = 0
    for groups, values in zip(seen.groups, seen.advantages, strict=True):
        assert len(values) == SIZE * len(groups)
        for place, group in enumerate(groups):
            mine = values[SIZE * place : SIZE * place + SIZE]
            if group.example == groups[0].example:
                assert torch.equal(mine, torch.zeros(SIZE))
            else:
                assert bool((mine != 0).any()) != group.no_signal
                admitted += 1
    assert admitted > 0
