"""Audit: read a JSONL file into a corpus and see what is in it. No model, no torch."""

from _shared import CONFIG, RUN, write_rows

from mixwright import read_corpus
from mixwright.api import audit
from mixwright.run.folder import write_json

write_rows()
corpus = read_corpus(CONFIG.corpus)
corpus.save(RUN.corpus)

for cell in corpus.cells():
    print(f"{cell.key}: {cell.count} examples, chance level {cell.chance:.2f} ({cell.rule})")
observations = audit(corpus).observations
write_json(RUN.audit, observations)
for observation in observations:
    print(f"{observation.severity}: {observation.check}: {observation.message}")
