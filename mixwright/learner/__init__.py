"""Learner, the model that is trained: load it, build a tiny one, sample from it, read its probabilities."""
