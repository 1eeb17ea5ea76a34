"""Evaluation logs of other harnesses: one file per form of log, then pairing, metrics and the tables of a comparison."""
