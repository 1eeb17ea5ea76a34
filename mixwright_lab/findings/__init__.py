"""Findings: one file = one research claim, its prediction written before the run. None yet."""
