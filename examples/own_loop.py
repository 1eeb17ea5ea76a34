"""Your own loop in plain PyTorch: the engine says what to draw, sees what came out, and its actions are carried out.

A policy gradient with a KL penalty on a network of 4,000 parameters: three tasks of 100 prompts, one of which nobody can
solve. Runs on a CPU in seconds and stops half-way, as if it had been killed. What each call promises: docs/python.md.
"""

import copy
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mixwright import Engine, default_plan, make_pool, read_state, write_state
from mixwright.records import GroupOutcome, Signals

STEPS, PROMPTS, SAMPLES, RATE = 80, 12, 8, 1e-2
FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/own_loop")
TASKS = ("first", "larger", "secret")
ANSWERS = {"first": lambda a, b: a, "larger": max, "secret": lambda a, b: 10}  # nobody here can say 10

rows = [(task, a, b) for task in range(len(TASKS)) for a in range(10) for b in range(10)]
golds = [ANSWERS[TASKS[task]](a, b) for task, a, b in rows]
prompts = torch.tensor([[a, 10 + b, 20 + task] for task, a, b in rows])
pool = make_pool([f"row {place}" for place in range(len(rows))], [TASKS[row[0]] for row in rows], answers=golds)
plan = default_plan(pool, "grpo", STEPS)


class Loop:
    """A policy, where it started, its optimiser, the engine, and the coefficients that the engine may move."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.policy = nn.Sequential(nn.Embedding(23, 16), nn.Flatten(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 10))
        self.start = copy.deepcopy(self.policy)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=RATE)
        self.engine = Engine(plan, pool, seed=0)
        self.step, self.beta, self.factor, self.stop = 0, 0.01, 1.0, ""

    def train(self, until: int) -> None:
        """Draw, sample, observe, act, and take the step, unless it is to be skipped."""
        while self.step < until and not self.stop:
            drawn = self.engine.draw(PROMPTS)
            logprobs = self.policy(prompts[drawn]).log_softmax(-1)
            said = torch.multinomial(logprobs.detach().exp(), SAMPLES, replacement=True)
            rewards = (said == torch.tensor([[golds[row]] for row in drawn])).float()
            actions = self.engine.observe(self.outcomes(drawn, said, rewards), self.signals())
            self.act(actions)
            refused = {action.target for action in actions if action.kind == "refuse"}
            if not any(action.kind == "skip_step" for action in actions):
                advantages = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)
                advantages *= torch.tensor([[pool.ids[row] not in refused] for row in drawn])  # 0: teaches nothing
                self.update(drawn, logprobs, said, advantages)
            self.step += 1

    def update(self, drawn: list[int], logprobs: Tensor, said: Tensor, advantages: Tensor) -> None:
        """One step at the learning rate and the KL coefficient that hold now."""
        with torch.no_grad():
            reference = self.start(prompts[drawn]).log_softmax(-1)
        kl = (logprobs.exp() * (logprobs - reference)).sum(-1).mean()
        loss = self.beta * kl - (advantages * logprobs.gather(1, said)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.param_groups[0]["lr"] = RATE * self.factor
        self.optimizer.step()

    def act(self, actions: list[Any]) -> None:
        """Carry out what lasts; refusals and skipped steps are about one batch alone. Print what was decided."""
        for action in actions:
            if action.kind == "coefficient":
                self.beta = action.value
            elif action.kind == "lr_factor":
                self.factor = action.value
            elif action.kind == "stop":
                self.stop = action.because
        for decision in self.engine.take_decisions():
            print(f"step {decision.step}: {decision.what}: {decision.because}")

    def outcomes(self, drawn: list[int], said: Tensor, rewards: Tensor) -> list[GroupOutcome]:
        """What each group showed, with its true rewards."""
        columns = zip(drawn, said.tolist(), rewards.tolist(), strict=True)
        return [
            GroupOutcome(pool.ids[row], TASKS[rows[row][0]], None, self.step, tuple(won), answers=tuple(map(str, texts)))
            for row, texts, won in columns
        ]

    def signals(self) -> Signals:
        """The step's own numbers; the engine moves the coefficients from where they are said to be."""
        return Signals(self.step, self.beta)

    def save(self) -> None:
        """The engine's state and the loop's own belong together."""
        FOLDER.mkdir(parents=True, exist_ok=True)
        mine = {"step": self.step, "beta": self.beta, "factor": self.factor, "stop": self.stop}
        write_state(FOLDER, "steering", {"engine": self.engine.state_dict(), "loop": mine})
        torch.save([self.policy.state_dict(), self.optimizer.state_dict(), torch.get_rng_state()], FOLDER / "model.pt")

    def load(self) -> None:
        """Go on as if nothing had happened."""
        state = read_state(FOLDER, "steering")
        self.engine.load_state_dict(state["engine"])
        vars(self).update(state["loop"])
        policy, optimizer, chance = torch.load(FOLDER / "model.pt")
        self.policy.load_state_dict(policy)
        self.optimizer.load_state_dict(optimizer)
        torch.set_rng_state(chance)


loop = Loop()
loop.train(STEPS // 2)
loop.save()
loop = Loop()
loop.load()
loop.train(STEPS)
loop.act([])
for cell, known in loop.engine.snapshot().items():
    print(f"{cell}: success {known['success']:.2f}, {known['state']}, {known['refused']} groups refused")
print(f"wanted now: { {task: round(share, 2) for task, share in loop.engine.wanted_shares().items()} }")
