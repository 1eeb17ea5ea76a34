"""Steer: the engine draws, is shown outcomes, and decides. Any training loop can call it; no torch."""

import numpy as np
from _shared import CONFIG, RUN

from mixwright.corpus import Corpus
from mixwright.records import GroupOutcome, Signals
from mixwright.runs import read_plan
from mixwright.steer._engine import Engine
from mixwright.steer._pool import corpus_pool

pool = corpus_pool(Corpus.load(RUN.corpus).select(split="train"))
engine = Engine(read_plan(RUN.plan), pool, seed=0)
rng = np.random.default_rng(0)
solves = {"last": 0.95, "sum@1": 0.1, "sum@2": 0.0}  # stands for the model, which only guesses sum@1
for step in range(40):
    groups = []
    for index in engine.draw(CONFIG.train.prompts):
        cell = pool.cells[pool.cell_of[index]]
        wins = rng.random(4) < solves[cell.key]
        groups.append(GroupOutcome(pool.ids[index], cell.task, cell.level, step, tuple(wins.astype(float))))
    actions = engine.observe(groups, Signals(step, groups=len(groups)))
    if step % 10 == 0:
        print(f"step {step}: {[f'{group.task}@{group.level}' for group in groups]}, {len(actions)} actions")
first = {decision.what: decision for decision in reversed(engine.take_decisions())}
for what, decision in reversed(first.items()):
    print(f"first at step {decision.step}: {what}: {decision.because}")
