"""Rollouts made elsewhere, in batches that come back two steps late: draw ahead, observe when they are there. No torch.

Threads stand for the rollout workers, and a table of abilities for the model: what a batch can do is what the model could
do when the batch was sent off. What the engine needs for that: docs/python.md.
"""

import sys
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mixwright import Engine, default_plan, make_pool, read_state, write_state
from mixwright.records import GroupOutcome, Signals

STEPS, PROMPTS, SAMPLES, AHEAD = 60, 8, 8, 2
"""Optimiser steps, prompts per batch, completions per prompt, batches under way beside the one that is waited for."""
FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/batched_rollouts")

rows = [("sum", float(level), f"{level}:{number}") for level in range(1, 6) for number in range(100)]
golds = [str(number % 7) for number in range(len(rows))]
pool = make_pool([name for _, _, name in rows], [task for task, _, _ in rows], [level for _, level, _ in rows], golds)
plan = default_plan(pool, "grpo", STEPS)
ability = np.array([0.97, 0.8, 0.45, 0.1, 0.0])
"""Success of the model by level; it grows with the informative groups."""


@dataclass(frozen=True)
class Batch:
    """Prompts that were sent off, and what comes back."""

    drawn: Sequence[int]
    """Rows; kept here, because the engine does not know which draws belong to which batch."""
    step: int
    """The step whose weights make it."""
    groups: "Future[list[GroupOutcome]]"


def rollouts(drawn: Sequence[int], step: int, abilities: np.ndarray) -> list[GroupOutcome]:
    """What a worker does with the weights that it was sent; here a wrong answer is 9."""
    rng, groups = np.random.default_rng(drawn), []
    for row in drawn:
        task, level, name = rows[row]
        won = rng.random(SAMPLES) < abilities[int(level) - 1]
        answers = tuple(golds[row] if each else "9" for each in won)
        groups.append(GroupOutcome(name, task, level, step, tuple(won.astype(float).tolist()), answers=answers))
    return groups


def send(drawn: Sequence[int], step: int) -> None:
    """Hand a batch to the workers, with the weights as they are now."""
    flying.append(Batch(drawn, step, workers.submit(rollouts, drawn, step, ability.copy())))


def learn(groups: Sequence[GroupOutcome], refused: set[str], factor: float) -> None:
    """Stands for an optimiser step: informative groups raise the ability of their level."""
    for group in groups:
        if group.example not in refused and not group.no_signal:
            ability[int(group.level or 0) - 1] += 0.004 * factor


def save(step: int) -> None:
    """The engine's state counts draws under way as drawn, so whoever saves keeps their rows."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    mine = {"step": step, "flying": [list(batch.drawn) for batch in flying]}
    write_state(FOLDER, "steering", {"engine": engine.state_dict(), "loop": mine})


def load() -> tuple[Engine, int]:
    """A fresh engine where the saved one stood; what was under way is sent off again, with the weights of now."""
    state, fresh = read_state(FOLDER, "steering"), Engine(plan, pool, seed=0)
    fresh.load_state_dict(state["engine"])
    flying.clear()
    step = state["loop"]["step"]
    for drawn in state["loop"]["flying"]:
        send(drawn, step)
    return fresh, step


engine, flying, step, factor = Engine(plan, pool, seed=0), deque[Batch](), 0, 1.0
with ThreadPoolExecutor(max_workers=2) as workers:
    while step < STEPS:
        while len(flying) <= AHEAD:
            send(engine.draw(PROMPTS), step)  # draws ahead follow what has been seen by now
        batch = flying.popleft()
        groups = batch.groups.result()  # waits
        actions = engine.observe(groups, Signals(step))  # the step that is about to be taken
        refused = {action.target for action in actions if action.kind == "refuse"}  # rows of this batch
        for action in actions:
            factor = action.value if action.kind == "lr_factor" and action.value is not None else factor
        if not any(action.kind == "skip_step" for action in actions):
            learn(groups, refused, factor)
        step += 1
        if step % 10 == 0:
            levels = [int(group.level or 0) for group in groups]
            print(f"step {step}: weights of step {batch.step}, levels {sorted(levels)}, {len(refused)} refused")
        if step == STEPS // 2:
            save(step)
            engine, step = load()
for decision in engine.take_decisions():
    print(f"step {decision.step}: {decision.what}: {decision.because}")
