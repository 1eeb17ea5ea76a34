"""SteeringCallback with a trainer class of the user's own, patched the way speed-up packages patch TRL's."""

from __future__ import annotations

import functools
import json
import shutil
from pathlib import Path
from typing import Any

import grpo_parts as parts
import pytest
import torch
from trainers_tiny import grpo_config, losses, model, parameters, read, rows, tokenizer
from trl import GRPOTrainer

from mixwright import SteeringCallback, SteeringConfig
from mixwright.records import Action, Plan, Stage

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning"),  # TRL 1.16 sets transformers' older name
    pytest.mark.filterwarnings("ignore:.*All reward functions returned None.*"),
]
PLAN = Plan("test", (Stage("grpo", "grpo", 10, {"letters": 0.75, "sums": 0.25}),))


class PatchedTrainer(GRPOTrainer):
    """Its own signature, batching, loss and step; nothing of steering's, and no super() in what it replaces."""

    def __init__(self, network: Any, settings: Any, words: Any, *, data: Any, judges: Any, watchers: Any) -> None:
        self.advantages: list[torch.Tensor] = []
        super().__init__(network, judges, settings, data, processing_class=words, callbacks=watchers)

    def _prepare_inputs(self, batch: Any) -> Any:
        if not self.model.training:
            return super()._prepare_inputs(batch)
        parts_of_batch = self.args.steps_per_generation
        if self._step % (parts_of_batch * self.num_iterations) == 0:
            whole = self._generate_and_score_completions(batch)
            self.advantages.append(whole["advantages"])
            size = len(whole["advantages"]) // parts_of_batch
            cuts = [slice(start * size, start * size + size) for start in range(parts_of_batch)]
            self.pieces = [{k: v[cut] if v.ndim else v for k, v in whole.items()} for cut in cuts]
        return self.pieces[self._step % parts_of_batch]

    def compute_loss(self, net: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None) -> Any:
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
        mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1)
        count = inputs["completion_ids"].shape[1]
        logits = net(input_ids=ids, attention_mask=mask).logits[:, -count - 1 : -1]
        chosen = logits.log_softmax(-1).gather(2, inputs["completion_ids"][:, :, None])[:, :, 0]
        return -(inputs["advantages"][:, None] * chosen * inputs["completion_mask"]).mean()

    def training_step(self, net: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        net.train()
        loss = self.compute_loss(net, self._prepare_inputs(inputs)) / self.args.gradient_accumulation_steps
        self.accelerator.backward(loss)
        self._step += 1
        return loss.detach()


def make(folder: Path, network: Any = None, reward: Any = parts.distinct, **settings: Any) -> tuple[SteeringCallback, Any]:
    """A callback and a patched trainer, wired."""
    args = grpo_config(folder, shuffle_dataset=False, **settings)
    steering = SteeringCallback(SteeringConfig(PLAN), rows(), reward, args)
    trainer = PatchedTrainer(
        network or model(),
        args,
        tokenizer(),
        data=steering.train_dataset,
        judges=steering.reward_funcs,
        watchers=[steering],
    )
    return steering, trainer


def answer(steering: SteeringCallback, actions: Any) -> list[Any]:
    """Replace what the engine answers by `actions(groups)`; returns the list of batches it saw."""
    seen: list[Any] = []
    observe = steering.run.engine.observe

    def scripted(groups: Any, signals: Any) -> list[Action]:
        observe(groups, signals)
        seen.append(groups)
        return actions(groups)

    steering.run.engine.observe = scripted
    return seen


@pytest.mark.parametrize(
    "settings",
    [
        {"max_steps": 8},
        {"max_steps": 4, "steps_per_generation": 2, "gradient_accumulation_steps": 2},
        {"max_steps": 4, "steps_per_generation": 2, "num_iterations": 2},
    ],
    ids=["plain", "steps_per_generation", "num_iterations"],
)
def test_it_follows_the_plan(tmp_path: Path, settings: dict[str, Any]) -> None:
    steering, trainer = make(tmp_path, **settings)
    seen = answer(steering, lambda groups: [])
    before = parameters(trainer)
    trainer.train()
    groups = [group for batch in seen for group in batch]
    assert not torch.equal(before, parameters(trainer))
    assert len(losses(trainer)) == settings["max_steps"]
    assert len(seen) == len(trainer.advantages)
    assert abs(sum(group.task == "letters" for group in groups) - 0.75 * len(groups)) <= 1
    assert sum(line["groups"] for line in read(tmp_path, "steps.jsonl")) == len(groups)
    assert json.loads((tmp_path / "steering" / "proof.json").read_text())["rollouts"] == 4 * len(groups)


def test_a_refused_group_does_not_teach_and_others_do(tmp_path: Path) -> None:
    steering, trainer = make(tmp_path, max_steps=4, per_device_train_batch_size=16)
    seen = answer(steering, lambda groups: [Action("refuse", groups[0].example, None, "test")])
    trainer.train()
    for groups, values in zip(seen, trainer.advantages, strict=True):
        for place, group in enumerate(groups):
            mine = values[4 * place : 4 * place + 4]
            assert torch.equal(mine, torch.zeros(4)) == (group.example == groups[0].example)
    assert [line["refused"] for line in read(tmp_path, "steps.jsonl")] == [
        sum(group.example == groups[0].example for group in groups) for groups in seen
    ]


def test_skipping_and_the_learning_rate_reach_its_optimiser(tmp_path: Path) -> None:
    steering, trainer = make(tmp_path, max_steps=2, optim="sgd")
    answer(steering, lambda groups: [Action("skip_step", "step", None, "test")])
    before = parameters(trainer)
    trainer.train()
    assert torch.equal(parameters(trainer), before)


@pytest.mark.parametrize("stopped_at", [1, 3, 4])
def test_a_resumed_run_continues_as_the_uninterrupted_one(tmp_path: Path, stopped_at: int) -> None:
    settings = {"max_steps": 5, "save_strategy": "steps", "save_steps": 1}
    whole, trainer = make(tmp_path / "whole", **settings)
    trainer.train()
    shutil.copytree(tmp_path / "whole", tmp_path / "broken")
    resumed, again = make(tmp_path / "broken", **settings)
    again.train(resume_from_checkpoint=str(tmp_path / "broken" / f"checkpoint-{stopped_at}"))
    assert resumed.run.draws.rows == whole.run.draws.rows
    assert resumed.run.state() == whole.run.state()
    assert read(tmp_path / "broken", "steps.jsonl") == read(tmp_path / "whole", "steps.jsonl")
    assert torch.equal(parameters(again), parameters(trainer))


@pytest.mark.parametrize("given", [True, False], ids=["trainer given", "trainer not given"])
def test_beta_moves_where_the_trainer_was_given(tmp_path: Path, given: bool) -> None:
    network = type(model()).from_pretrained(parts.on_disk(tmp_path))
    steering, trainer = make(tmp_path, network, max_steps=2, beta=0.1)
    if given:
        steering.trainer = trainer
    answer(steering, lambda groups: [Action("coefficient", "beta", 0.5, "test")])
    trainer.train()
    said = [line["because"] for line in read(tmp_path, "decisions.jsonl") if line["what"] == "not executed: beta"]
    assert trainer.beta == steering.run.beta == (0.5 if given else 0.1)
    assert [line["beta"] for line in read(tmp_path, "steps.jsonl")] == [trainer.beta] * 2
    assert bool(said) != given
    assert all("steering.trainer = trainer" in because for because in said)


def test_rewards_may_be_called_in_any_order_without_the_newer_arguments(tmp_path: Path) -> None:
    """An older class: reward functions called last first, with nothing but columns."""

    class Older(PatchedTrainer):
        def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> torch.Tensor:
            columns = {key: [row[key] for row in inputs] for key in inputs[0] if key not in ("prompt", "completion")}
            table = [f(prompts=prompts, completions=completions, **columns) for f in reversed(self.reward_funcs)]
            return torch.tensor([[torch.nan if r is None else r for r in row] for row in reversed(table)]).T

    args = grpo_config(tmp_path, shuffle_dataset=False, reward_weights=[2.0, 1.0])
    steering = SteeringCallback(
        SteeringConfig(PLAN, reward_range=(-10, 10)), rows(), [parts.distinct, functools.partial(parts.correct)], args
    )
    assert [function.__name__ for function in steering.reward_funcs] == ["distinct", "correct"]
    seen = answer(steering, lambda groups: [])
    wiring = {"data": steering.train_dataset, "judges": steering.reward_funcs, "watchers": [steering]}
    trainer = Older(model(), args, tokenizer(), **wiring)
    trainer.train()
    assert len(seen) == len(trainer.advantages) == 3
    assert [line["groups"] for line in read(tmp_path, "steps.jsonl")] == [2, 2, 2]
    assert all(group.lengths == () for group in seen[0])


def test_evaluation_passes_through(tmp_path: Path) -> None:
    steering, trainer = make(tmp_path, max_steps=1, per_device_eval_batch_size=4)
    trainer.train()
    state = steering.run.state()
    assert "eval_reward" in trainer.evaluate(rows(4))
    assert steering.run.state() == state
