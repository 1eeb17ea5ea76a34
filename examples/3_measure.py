"""Measure: what the model can do now, per task and level, beside the chance level of a rule without the skill."""

from _shared import CONFIG, RUN

from mixwright.corpus import Corpus
from mixwright.learner.load import load_learner
from mixwright.measure.stage import measure_learner
from mixwright.runs import write_measurements

learner = load_learner(str(RUN.path / "bases" / "base-0"))
found = measure_learner(learner, Corpus.load(RUN.corpus), CONFIG.measure, seed=0)  # measures the held-out split
write_measurements(RUN.measurements("before"), found.measurements)

for row in found.measurements:
    if row.example is None and row.name == "pass@1":
        where = row.task if row.level is None else f"{row.task}@{row.level:g}"
        print(f"{where}: pass@1 {row.value:.2f} [{row.low:.2f}, {row.high:.2f}], {row.null_of} {row.null or 0:.2f}")
