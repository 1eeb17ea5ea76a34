"""Plan: weights, band and levers from what was measured, with a reason for each number. No torch."""

from _shared import CONFIG, RUN

from mixwright import Corpus
from mixwright.api import plan_measured
from mixwright.run.folder import read_measurements, write_plan

measured = read_measurements(RUN.measurements("before"))
made = plan_measured(Corpus.load(RUN.corpus), measured, settings=CONFIG.plan, train=CONFIG.train)
write_plan(RUN.plan, made)

for cell in made.cells:
    print(f"{cell.key}: {cell.state}, success {cell.success}")
for task, weight in made.stages[0].weights.items():
    print(f"{task}: {weight:.3f}, because {made.why[f'stages.0.weights.{task}']}")
print(f"Edit it if you know better: {RUN.plan}")
