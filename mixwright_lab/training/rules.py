"""Rules that spend rollouts: what every rule promises, uniform choice, and our engine with all of its actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mixwright import Engine, Pool, make_pool
from mixwright.records import Action, Decision, Example, Plan, Signals, cell_key
from mixwright_lab.training.grpo import Arena, Learnt, Rollouts


class Rule(ABC):
    """Decides what is rolled out and what is learnt from it."""

    stop_reason = ""
    """Why the rule wants no further step; empty while it goes on."""

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        """Groups that were learnt from, those of them that are informative (admitted, rewards differ) and those refused."""

    @abstractmethod
    def step(self, arena: Arena) -> Learnt:
        """Ask for rollouts and make one update."""

    def record_update(self, rollouts: Rollouts, admitted: Sequence[bool] | None = None) -> None:
        """Keep the books of one update."""
        allowed = np.ones(len(rollouts.examples), bool) if admitted is None else np.array(admitted)
        mixed = rollouts.rewards.std(1) > 0
        self.totals.update(groups=len(allowed), teach=int((mixed & allowed).sum()), refused=int((~allowed).sum()))


class UniformRule(Rule):
    """Every example of the pool, or every one of some, equally often, in shuffled passes.

    Args:
        examples: how many the pool has, or indices of those to draw.
        seed: of the order.
    """

    def __init__(self, examples: int | np.ndarray, seed: int) -> None:
        super().__init__()
        self._examples, self._rng = examples, np.random.default_rng((seed, 2))
        self._queue: list[int] = []

    def step(self, arena: Arena) -> Learnt:
        """The next prompts of the pass."""
        rollouts = arena.roll(self.take(arena.settings.prompts), arena.settings.group)
        self.record_update(rollouts)
        return arena.learn(rollouts)

    def take(self, count: int) -> list[int]:
        """The next `count` indices of the pass."""
        while len(self._queue) < count:
            self._queue += self._rng.permutation(self._examples).tolist()
        drawn, self._queue = self._queue[:count], self._queue[count:]
        return drawn


class EngineRule(Rule):
    """Our engine: it draws, is shown outcomes, and what it decides is done.

    Args:
        plan: what it follows.
        pool: of the arena's examples, in their order.
        seed: of its draws.
    """

    def __init__(self, plan: Plan, pool: Pool, seed: int) -> None:
        super().__init__()
        self.engine = Engine(plan, pool, seed=seed)
        self.decisions: list[Decision] = []
        """All that was decided, with reasons."""
        self.beta: float | None = None
        self.lr_factor = 1.0
        self._kl: float | None = None

    def step(self, arena: Arena) -> Learnt:
        """Draw, roll out, judge, carry out what was decided, and learn."""
        if self.beta is None:
            self.beta = arena.settings.beta
        rollouts = arena.roll(self.engine.draw(arena.settings.prompts), arena.settings.group)
        outcomes = rollouts.outcomes(arena.steps)
        actions = self.engine.observe(outcomes, Signals(arena.steps, self.beta, self._kl))
        refused = {action.target for action in actions if action.kind == "refuse"}
        skip = any(action.kind == "skip_step" for action in actions)
        self._carry_out(actions)
        admitted = [outcome.example not in refused for outcome in outcomes]
        self.record_update(rollouts, admitted)
        self.totals["skipped"] += skip
        learnt = arena.learn(rollouts, admitted, lr_factor=0.0 if skip else self.lr_factor, beta=self.beta)
        self._kl = learnt.kl if self.beta else None
        return learnt

    def _carry_out(self, actions: Sequence[Action]) -> None:
        """Coefficients and stops; refusals and skipped steps are the caller's."""
        self.decisions += self.engine.take_decisions()
        for action in actions:
            if action.kind == "coefficient" and action.value is not None and self.beta:
                self.beta = action.value
            elif action.kind == "lr_factor" and action.value is not None:
                self.lr_factor = action.value
            elif action.kind == "stop":
                self.stop_reason = action.because


def pool_of(examples: Sequence[Example], chance: Callable[[Example], float]) -> Pool:
    """The engine's pool of these examples, with their gold answers where there is one that is right and no other.

    Args:
        examples: with ids of their own.
        chance: level of an example's cell.
    """
    chances = {cell_key(e.task, e.level): chance(e) for e in examples}
    columns = ([e.id for e in examples], [e.task for e in examples], [e.level for e in examples])
    golds = [None if "accepted" in e.extra else e.answer for e in examples]
    pool = make_pool(*columns, golds)
    return replace(pool, cells=tuple(replace(cell, chance=chances[cell.key]) for cell in pool.cells))


def unique_examples(examples: Sequence[Example]) -> list[Example]:
    """Each problem once, in order of first sight."""
    return list({example.id: example for example in examples}.values())


def drive(
    arena: Arena, rule: Rule, budget: int, look_every_rollouts: int, look: Callable[[Arena], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Train until `budget` rollouts are charged (or the rule stops), looking at the start and about each
    `look_every_rollouts` rollouts.

    Returns:
        What was seen, each with the rollouts charged until then and the steps taken.
    """
    seen = [{"charged": arena.charged, "steps": arena.steps} | look(arena)]
    due = look_every_rollouts
    while arena.charged < budget and not rule.stop_reason:
        rule.step(arena)
        if arena.charged >= min(due, budget) or rule.stop_reason:
            seen.append({"charged": arena.charged, "steps": arena.steps} | look(arena))
            due = arena.charged - arena.charged % look_every_rollouts + look_every_rollouts
    return seen
