"""Audit: read a JSONL file into a corpus and see what is in it. No model, no torch."""

from _shared import CONFIG, RUN, write_rows

from mixwright import pipeline
from mixwright.corpus import read_corpus

write_rows()
corpus = read_corpus(CONFIG.corpus)
corpus.save(RUN.corpus)

for cell in corpus.cells():
    print(f"{cell.key}: {cell.count} examples, chance level {cell.chance:.2f} ({cell.rule})")
for observation in pipeline.audit(corpus, RUN):
    print(f"{observation.severity}: {observation.check}: {observation.message}")
