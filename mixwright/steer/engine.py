"""Engine: a pure function of (state, outcomes) to actions. It draws, observes, decides, and writes down why.

It composes one stage's plug-ins: `TaskOrder` spreads tasks evenly by the stage's weights, a selector picks the item, and
`policy` asks the gates and moves coefficients by controllers and monitors. `snapshot` says what the ledger knows of the
cells in the words that plans use. No torch, no IO, no time of day: given the same seed
and the same outcomes, the same actions. Whoever trains executes the actions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mixwright import catalog
from mixwright.contracts import Selector, Steerer
from mixwright.errors import InputError
from mixwright.estimates.cell_states import side_of_band, state_of
from mixwright.estimates.intervals import effective_rollouts
from mixwright.plan.validate import validate_plan
from mixwright.records import (
    TRAINING_ONLY_FIELDS,
    Action,
    Decision,
    EngineOptions,
    GroupOutcome,
    PairOutcome,
    Plan,
    SFTOutcome,
    Signals,
    from_data,
    to_data,
)
from mixwright.steer.checkpointable import Checkpointable
from mixwright.steer.ledger import Ledger, read_rewards
from mixwright.steer.policy import GateRunner, Policy
from mixwright.steer.pool import Pool
from mixwright.steer.scene import Scene

STATE_VERSION = 14
"""Of a saved state; one that another version saved is refused. Count it up when what a state holds changes."""
TIE_TOLERANCE = 1e-9
"""Draws: more than rounding can make of what a task is owed."""


class TaskOrder(Checkpointable):
    """The next tasks by fixed shares, as evenly as can be: no task's count is ever a whole draw off its share.

    Of the tasks that are owed at least 1 / (2 tasks - 2) of a draw, the one whose next draw is due first is drawn.

    Source: Tijdeman, The chairman assignment problem, Discrete Mathematics 32 (1980).

    Args:
        weights: shares of shape (tasks,), non-negative, summing to 1; a task of weight 0 is never drawn.
    """

    STATE_FIELDS = ("credit",)

    def __init__(self, weights: np.ndarray) -> None:
        self._tasks = np.flatnonzero(weights)
        self._shares = weights[self._tasks]
        self.credit = np.zeros(len(self._tasks))
        """Draws owed to each task of a weight above 0; sums to 0."""

    def next(self, count: int) -> np.ndarray:
        """Return the indices of the next `count` tasks, int64."""
        least = 1 / max(2 * len(self._tasks) - 2, 1)
        picked = np.empty(count, dtype=np.int64)
        for draw_index in range(count):
            self.credit += self._shares
            draws_until_due = (1 - least - self.credit) / self._shares
            draws_until_due[self.credit < least - TIE_TOLERANCE] = np.inf
            chosen = int(np.argmin(draws_until_due))
            self.credit[chosen] -= 1
            picked[draw_index] = self._tasks[chosen]
        return picked


def check_drawn(selector: str, picked_rows: np.ndarray, tasks: np.ndarray, pool: Pool) -> None:
    """Raises RuntimeError when a selector picked what may not be drawn: no row of the pool, another task."""
    start = f"the selector {selector!r} picked"
    is_whole = picked_rows.shape == tasks.shape and picked_rows.dtype.kind in "iu"
    if not is_whole or ((picked_rows < 0) | (picked_rows >= len(pool.task_of))).any():
        raise RuntimeError(f"{start} what is no row of the pool for each of {len(tasks)} draws")
    if (pool.task_of[picked_rows] != tasks).any():
        raise RuntimeError(f"{start} a row of another task than was asked for")


def plan_digest(plan: Plan, stage: int) -> str:
    """Of what the engine reads of a plan: the stage but for its length, and what was measured before the run."""
    stage_data = to_data(replace(plan.stages[stage], steps=0))
    digested = (
        {name: value for name, value in stage_data.items() if name not in TRAINING_ONLY_FIELDS},
        [to_data(cell) for cell in plan.cells],
    )
    return hashlib.sha256(json.dumps(digested, sort_keys=True, default=str).encode()).hexdigest()[:16]


class Engine:
    """Steers one stage of a plan.

    Args:
        plan: what to follow; its cells are the evidence the run starts with.
        pool: the examples that may be drawn.
        seed: of every draw; the batch that begins with draw i has its own generator seeded by (seed, stage, i).
        stage: which stage of the plan.

    Raises:
        InputError: the plan does not fit the pool, or names plug-ins or options that do not exist.
    """

    def __init__(self, plan: Plan, pool: Pool, *, seed: int, stage: int = 0) -> None:
        validate_plan(plan, pool.cells)
        self._pool, self._seed, self._stage_index, self._plan_digest = pool, seed, stage, plan_digest(plan, stage)
        self._stage = plan.stages[stage]
        self.options: EngineOptions = self._stage.engine
        """The stage's own, typed."""
        self._ids_digest = hashlib.sha256("\0".join(pool.ids).encode("utf-8", "replace")).hexdigest()[:16]
        """A state knows its examples by row number."""
        self._keys = [cell.key for cell in pool.cells]
        states = dict.fromkeys(self._keys, "unknown") | {cell.key: cell.state for cell in plan.cells}
        self._ledger = Ledger(pool)
        self._decisions: list[Decision] = []
        self._record_measurements(plan)
        self._plugins: dict[str, Steerer] = {}  # by kind and name, in a fixed order
        self._selector: Selector
        (self._selector,) = self._create("selectors", [self._stage.selector])
        self._scene = Scene(pool, self._ledger, self._stage)
        self._gate_runner = GateRunner(self._create("gates", self._stage.gates), self._keys, states, self._note)
        controllers = self._create("controllers", self._stage.controllers)
        self._monitors = self._create("monitors", self._stage.monitors)
        self._policy = Policy(self.options, controllers, self._monitors, self._note)
        for plugin in self._plugins.values():
            plugin.begin(self._scene)
        weights = np.array([self._stage.weights.get(task, 0.0) for task in pool.tasks])
        self._weights = weights / weights.sum()
        self._order = TaskOrder(self._weights)
        self._parts: dict[str, Checkpointable | Steerer] = {
            "ledger": self._ledger,
            "order": self._order,
            "policy": self._policy,
            "gates": self._gate_runner,
            **self._plugins,
        }
        """All that has a state, by name."""

    def draw(self, count: int) -> list[int]:
        """The next `count` pool indices. Tasks by low discrepancy; items by the selector."""
        rng = np.random.default_rng((self._seed, self._stage_index, self._ledger.draws))
        tasks = self._order.next(count)
        picked_rows = self._selector.pick(tasks.copy(), rng)
        check_drawn(self._stage.selector, picked_rows, tasks, self._pool)
        drawn_rows = picked_rows.astype(np.int64)
        self._ledger.mark_drawn(drawn_rows)
        return drawn_rows.tolist()

    def observe(self, groups: Sequence[GroupOutcome | SFTOutcome | PairOutcome], signals: Signals) -> list[Action]:
        """Take in the outcomes of one generation batch, refused groups too, and say what to do about them.

        Args:
            groups: outcomes with true rewards, whole groups.
            signals: the step's own numbers.

        Returns:
            Actions in order: refusals (target is the example id), skip_step, coefficient, lr_factor, stop.

        Raises:
            InputError: an example that is not in the pool, or a group whose rewards are missing or not finite.
        """
        row_indices = self._pool.find([group.example for group in groups])
        if (row_indices < 0).any():
            name = groups[int(np.argmax(row_indices < 0))].example
            raise InputError("an example of the pool", repr(name), "Train on the data of the pool.")
        row_indices = row_indices[[isinstance(group, GroupOutcome) for group in groups]]
        rewarded_groups = [group for group in groups if isinstance(group, GroupOutcome)]
        rewarded_groups = read_rewards(rewarded_groups, self.options.reward_range)
        if rewarded_groups:
            self._ledger.learn(rewarded_groups, row_indices)
        self._ledger.advance_to(signals.step)
        for plugin in self._plugins.values():
            plugin.observe(signals.step, rewarded_groups or groups)
        actions = self._gate_runner.refusals(rewarded_groups, self._pool.cell_of[row_indices].tolist())
        refused = {action.target for action in actions}
        admitted_groups = [group for group in rewarded_groups if group.example not in refused]
        informative_count = sum(not group.no_signal for group in admitted_groups)
        deciding_count = len(rewarded_groups) if self._stage.gates else 0
        return actions + self._policy.react(signals, deciding_count, informative_count)

    def wanted_shares(self) -> dict[str, float]:
        """Share of draws each task should have, summing to 1."""
        return dict(zip(self._pool.tasks, self._weights.tolist(), strict=True))

    def snapshot(self) -> dict[str, Any]:
        """Per cell `task@level`: success (recent posterior mean), kappa, state, evidence in rollouts, groups refused.

        A run makes no permutation test, so a cell in the band that is not lucky is unknown here, never reachable.
        """
        ledger, all_cells = self._ledger, np.arange(len(self._keys))
        recent = ledger.recent.mean(all_cells)
        kappa, kappa_high = ledger.kappa(recent, all_cells), ledger.answers.kappa_high()
        tries = ledger.lasting.tries.tolist()
        sides = side_of_band(*ledger.lasting.effective_counts(all_cells), *self._scene.band_edges)
        return {
            key: {
                "success": float(recent[cell_index]),
                "kappa": float(kappa[cell_index]),
                "state": state_of(int(sides[cell_index]), tries[cell_index], kappa_high=float(kappa_high[cell_index])),
                "evidence": tries[cell_index],
                "refused": self._gate_runner.refused[key],
            }
            for cell_index, key in enumerate(self._keys)
        }

    def take_decisions(self) -> list[Decision]:
        """The decisions since the last call; the log is emptied."""
        taken, self._decisions = self._decisions, []
        return taken

    def state_dict(self) -> dict[str, Any]:
        """JSON-ready, for `write_state`; an engine built alike that loads it continues exactly."""
        return {
            "version": STATE_VERSION,
            "made_of": self._state_identity(),
            "decisions": [to_data(decision) for decision in self._decisions],
            "parts": {name: part.state() for name, part in self._parts.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` returned.

        Raises:
            InputError: the state belongs to another seed, stage, pool or set of plug-ins, or to another version.
        """
        if state.get("version") != STATE_VERSION:
            got = str(state.get("version", "a state without a version number"))
            remedy = "Resume with the Mixwright version that saved it, or start again."
            raise InputError(f"a state of version {STATE_VERSION}", got, remedy)
        saved_identity = state.get("made_of") or {}
        for name, value in self._state_identity().items():
            if saved_identity.get(name) != value:
                expected, got = (f"{name} {str(one)[:200]}" for one in (value, saved_identity.get(name)))
                raise InputError(f"the state of this run: {expected}", got, "Resume with the same seed, data and plan.")
        self._decisions = [from_data(Decision, fields) for fields in state["decisions"]]
        for name, part in self._parts.items():
            part.restore(state["parts"][name])

    def _state_identity(self) -> dict[str, Any]:
        """What a state must agree with before it is taken over."""
        return {
            "seed": self._seed,
            "stage": self._stage_index,
            "examples": len(self._pool.ids),
            "ids": self._ids_digest,
            "content_digest": self._pool.content_digest,
            "plan": self._plan_digest,
            "cells": self._keys,
            "plugins": list(self._plugins),
        }

    def _create(self, kind: str, names: Sequence[str]) -> list[Any]:
        """Plug-ins with the stage's options."""
        options = self._stage.options
        plugins = {f"{kind}.{name}": catalog.create(kind, name, dict(options.get(f"{kind}.{name}", {}))) for name in names}
        self._plugins |= plugins
        return list(plugins.values())

    def _record_measurements(self, plan: Plan) -> None:
        """Give the ledger what was measured before the run."""
        index_by_cell = {key: number for number, key in enumerate(self._keys)}
        for cell in plan.cells:
            if cell.key in index_by_cell and cell.success is not None:
                low, high = cell.low, cell.high
                effective = None if low is None or high is None else effective_rollouts(cell.success, low, high)
                for evidence in (self._ledger.recent, self._ledger.lasting):
                    evidence.start(index_by_cell[cell.key], cell.success, cell.n, effective)
                self._ledger.answers.start(index_by_cell[cell.key], cell.swapped, cell.kappa_high)

    def _note(self, step: int, decision_name: str, old: Any, new: Any, reason: str) -> None:
        """Write a decision down."""
        self._decisions.append(Decision(step, decision_name, old, new, reason))
