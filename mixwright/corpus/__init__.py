"""Corpus of examples, read from files, hub or generator into Arrow rows, with tasks, graders and cells."""

from mixwright.corpus.corpus import Corpus, find_generator, read_corpus, read_source, texts

__all__ = ["Corpus", "find_generator", "read_corpus", "read_source", "texts"]
