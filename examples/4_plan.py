"""Plan: weights, band and levers from what was measured, with a reason for each number. No torch."""

from _shared import CONFIG, RUN

from mixwright import pipeline
from mixwright.corpus import Corpus

plan = pipeline.plan(CONFIG, RUN, Corpus.load(RUN.corpus))

for cell in plan.cells:
    print(f"{cell.key}: {cell.state}, success {cell.success}")
for task, weight in plan.stages[0].weights.items():
    print(f"{task}: {weight:.3f}, because {plan.why[f'stages.0.weights.{task}']}")
print(f"Edit it if you know better: {RUN.plan}")
