"""Findings: one file = one research claim, re-run on tiny models; what it expects is written before the run."""
