"""Corpus of examples, read from files, hub or generator into Arrow rows, with tasks, graders and cells."""

from mixwright.corpus.corpus import GENERATED_PREFIX, Corpus, read_corpus, read_source, texts

__all__ = ["GENERATED_PREFIX", "Corpus", "read_corpus", "read_source", "texts"]
