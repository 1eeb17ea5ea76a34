"""Steer: the engine draws, is shown outcomes, and decides. Any training loop can call it; no torch."""

import numpy as np
from _shared import CONFIG, RUN

from mixwright import Corpus, Engine, corpus_pool
from mixwright.records import GroupOutcome, Signals
from mixwright.run.folder import read_plan

corpus = Corpus.load(RUN.corpus).select(split="train")
pool, golds = corpus_pool(corpus), [example.answer for example in corpus]
engine = Engine(read_plan(RUN.plan), pool, seed=0)
rng = np.random.default_rng(0)
solves = {"last": 0.95, "sum@1": 0.5, "sum@2": 0.0}  # stands for the model, which says 99 where it is wrong
for step in range(40):
    groups = []
    for index in engine.draw(CONFIG.train.prompts):
        cell = pool.cells[pool.cell_of[index]]
        answers = tuple(str(golds[index]) if win else "99" for win in rng.random(4) < solves[cell.key])
        rewards = tuple(float(answer == golds[index]) for answer in answers)
        groups.append(GroupOutcome(pool.ids[index], cell.task, cell.level, step, rewards, answers=answers))
    actions = engine.observe(groups, Signals(step))
    if step % 10 == 0:
        print(f"step {step}: {[f'{group.task}@{group.level}' for group in groups]}, {len(actions)} actions")
first = {decision.what: decision for decision in reversed(engine.take_decisions())}
for what, decision in reversed(first.items()):
    print(f"first at step {decision.step}: {what}: {decision.because}")
