"""Measure: what the model can do now, per task and level, beside the chance level of a rule without the skill."""

from _shared import CONFIG, RUN

from mixwright import Corpus
from mixwright.api import Measuring, measure
from mixwright.run.folder import write_measurements

corpus = Corpus.load(RUN.corpus)  # its held-out split is measured
wanted = Measuring(items=CONFIG.measure.items, samples=CONFIG.measure.samples, max_new_tokens=CONFIG.measure.max_new_tokens)
found = measure(RUN.path / "bases" / "base-0", corpus, measuring=wanted)
write_measurements(RUN.measurements("before"), found)

for row in found:
    if row.name == "pass@1":
        where = row.task if row.level is None else f"{row.task}@{row.level:g}"
        print(f"{where}: pass@1 {row.value:.2f} [{row.low:.2f}, {row.high:.2f}], {row.null_of} {row.null or 0:.2f}")
